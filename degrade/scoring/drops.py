"""Drops: two scored files of the same questions, paired unit by unit, with their uncertainty."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from degrade.scoring.benchmarks import Figure, mean

Array = NDArray[np.float64]
LEVEL = (2.5, 97.5)  # percentiles of a 95 % interval


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are drawn.

    Attributes:
        seed: decides the resamples, together with the name of what is resampled: an interval does not hang on what else is reported.
        resamples: how many.
    """

    seed: int = 0
    resamples: int = 2000

    def means(self, columns: Array, name: str, strata: Sequence[str] | None = None) -> Array:
        """Means of resampled units.

        A resample of n units is a multinomial draw over their distinct values, which is the same distribution and far less work.

        Args:
            columns: (n, k): k values of each unit, which stay together.
            name: what is resampled.
            strata: the stratum of each unit: resampled within strata, and the means averaged over them.

        Returns:
            (resamples, k).
        """
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
        stream = np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))
        names = np.array(strata if strata is not None else [""] * len(columns))
        total = np.zeros((self.resamples, columns.shape[1]))
        distinct = sorted(set(names.tolist()))
        for stratum in distinct:
            values, counts = np.unique(columns[names == stratum], axis=0, return_counts=True)
            n = int(counts.sum())
            total += stream.multinomial(n, counts / n, size=self.resamples) @ values / n
        return total / len(distinct)


@dataclass(frozen=True)
class Drop:
    """A drop with what belongs to it; shares are fractions, None is undefined.

    Attributes:
        n: units that stand in both files.
        clean, degraded: the figure of these units.
        drop: clean - degraded.
        ci95: its 95 % interval, None with fewer than two units.
        kept: degraded / clean, None where clean is 0.
        kept_ci95: its interval, None where a resample has a clean figure of 0.
        right_to_wrong, wrong_to_right: shares of units whose value falls and rises.
        mcnemar_p: McNemar's exact test of the two (with values between 0 and 1 the sign test, which is the same formula).
        draws: (resamples,) drops of the resamples, for averages over benchmarks.
    """

    n: int
    clean: float | None
    degraded: float | None
    drop: float | None
    ci95: tuple[float, float] | None
    kept: float | None
    kept_ci95: tuple[float, float] | None
    right_to_wrong: float | None
    wrong_to_right: float | None
    mcnemar_p: float | None
    draws: Array | None = None

    def record(self) -> dict[str, object]:
        """For JSON."""
        names = ("n", "clean", "degraded", "drop", "ci95", "kept", "kept_ci95", "right_to_wrong", "wrong_to_right", "mcnemar_p")
        return {name: list(value) if isinstance(value := getattr(self, name), tuple) else value for name in names}


def compare(
    clean: Figure, degraded: Figure | Sequence[Figure], bootstrap: Bootstrap, name: str, keep: Collection[str] | None = None
) -> Drop:
    """The drop from a clean to a degraded figure.

    Args:
        clean: the figure on clean images.
        degraded: the same figure on degraded ones; of several (the operators of a category), each unit's change is averaged over those that
            have it.
        bootstrap: how intervals are drawn.
        name: names the resamples.
        keep: the units to compare; None: all. Those that both sides have are compared.

    A stratified figure (CV-Bench's mean over sources) is compared as such.
    """
    several = [degraded] if isinstance(degraded, Figure) else list(degraded)
    values: dict[str, list[float]] = {}
    for figure in several:
        for unit, value in zip(figure.ids, figure.values.tolist(), strict=True):
            values.setdefault(unit, []).append(value)
    wanted = None if keep is None else set(keep)
    units = [i for i, unit in enumerate(clean.ids) if unit in values and (wanted is None or unit in wanted)]
    if not units:
        return Drop(0, None, None, None, None, None, None, None, None, None)
    before = clean.values[units]
    after = np.array([math.fsum(v) / len(v) for v in (values[clean.ids[i]] for i in units)])
    strata = None if clean.strata is None else tuple(clean.strata[i] for i in units)
    c, d = (mean(column, strata) for column in (before, after))
    ci95 = kept_ci95 = draws = None
    if len(units) > 1:
        means = bootstrap.means(np.stack([before, after], axis=1), name, strata)
        draws = means[:, 0] - means[:, 1]
        ci95 = interval(draws)
        if (means[:, 0] > 0).all():
            kept_ci95 = interval(means[:, 1] / means[:, 0])
    changes = np.array([v - b for i, b in zip(units, before.tolist(), strict=True) for v in values[clean.ids[i]]])
    fell, rose = int((changes < 0).sum()), int((changes > 0).sum())
    p = mcnemar(fell, rose) if len(several) == 1 else None  # repeated units are not independent
    return Drop(
        len(units), c, d, c - d, ci95, d / c if c > 0 else None, kept_ci95, fell / len(changes), rose / len(changes), p, draws
    )  # fmt: skip


def interval(draws: Array) -> tuple[float, float]:
    """The 95 % percentile interval of resamples."""
    low, high = np.percentile(draws, LEVEL)
    return float(low), float(high)


def score_interval(figure: Figure, bootstrap: Bootstrap, name: str) -> tuple[float, float] | None:
    """The 95 % interval of one figure, None with fewer than two units."""
    if len(figure.ids) < 2:
        return None
    return interval(bootstrap.means(figure.values[:, None], name, figure.strata)[:, 0])


def mcnemar(fell: int, rose: int) -> float:
    """McNemar's exact test: the two-sided binomial probability of so uneven a split of the changed pairs.

    >>> mcnemar(0, 0), mcnemar(5, 0)
    (1.0, 0.0625)
    """
    n = fell + rose
    tail = sum(math.comb(n, k) for k in range(min(fell, rose) + 1))
    return min(1.0, tail / 2 ** (n - 1)) if n else 1.0


def average(drops: Mapping[str, Drop]) -> dict[str, object]:
    """The unweighted mean over benchmarks, its interval from their resamples (benchmarks are independent)."""
    clean, degraded = ([getattr(drop, side) for drop in drops.values()] for side in ("clean", "degraded"))
    record: dict[str, object] = {"benchmarks": list(drops), "clean": None, "degraded": None, "drop": None, "ci95": None, "kept": None}
    if drops and all(value is not None for value in clean + degraded):
        c, d = math.fsum(clean) / len(clean), math.fsum(degraded) / len(degraded)
        record.update(clean=c, degraded=d, drop=c - d, kept=d / c if c > 0 else None)
        draws = [drop.draws for drop in drops.values()]
        if all(draw is not None for draw in draws):
            record["ci95"] = list(interval(np.mean([draw for draw in draws if draw is not None], axis=0)))
    return record
