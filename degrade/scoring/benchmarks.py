"""The rules of the benchmarks: from a result file to a score for every row, and to the figures that the benchmark is reported by.

A figure is a mean over *units*: rows, MMBench's groups of rotations, MMVP's pairs, or CV-Bench's rows averaged by source. Drops pair the
units of two files by their ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from degrade.scoring.answers import Profile, letter, options_of
from degrade.scoring.results import Result
from degrade.scoring.tables import ScoringError
from degrade.suites import Rule, scoring_rule

Rows = Sequence[Mapping[str, str]]
Hits = Mapping[str, float]

ROTATION = 1_000_000
"""A rotation of an MMBench question has the question's index plus a multiple of this."""

LISTED = 10  # how many faults of one kind an error names


@dataclass(frozen=True)
class Figure:
    """One figure of a benchmark: units with a value each.

    Attributes:
        ids: the id of each unit, in file order.
        values: (n,) values in [0, 1].
        strata: the stratum of each unit where the figure is the mean of the strata's means, else None.
    """

    ids: tuple[str, ...]
    values: NDArray[np.float64]
    strata: tuple[str, ...] | None = None

    def mean(self) -> float | None:
        """The figure, or None where there is no unit."""
        if not self.ids:
            return None
        return mean(self.values, self.strata)


def mean(values: NDArray[np.float64], strata: Sequence[str] | None = None) -> float:
    """The mean of at least one value; with strata, the unweighted mean of the strata's means."""
    if strata is None:
        return float(values.mean())
    names = np.array(strata)
    return float(np.mean([values[names == name].mean() for name in sorted(set(strata))]))


@dataclass(frozen=True)
class Scored:
    """A result file, scored.

    Attributes:
        result: the file.
        rule: the rule of its benchmark.
        how: "judged" or the profile of the exact matching.
        figures: name -> figure; the first, "score", is the one that strata are reported by. Empty where a judge is needed and was not run.
        headline: the figure that enters averages over benchmarks (upstream's own).
        row_of: the row that decides what a unit of "score" is: its operator and its capability.
        capabilities: level ("category", "l2-category") -> unit of "score" -> its capabilities.
        n: rows.
        unparsed: indices of rows without an answer.
        notes: what is missing, in words.
    """

    result: Result
    rule: Rule
    how: str
    figures: Mapping[str, Figure]
    headline: str
    row_of: Mapping[str, str]
    capabilities: Mapping[str, Mapping[str, tuple[str, ...]]]
    n: int
    unparsed: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())


def score_result(result: Result, profile: Profile = "clear", judged: bool = False) -> Scored:
    """Score a result file by its benchmark's rule.

    Args:
        result: the file.
        profile: how letters are read, see :func:`degrade.scoring.answers.letter`.
        judged: use the `hit` column where the file has one. MM-Vet's `score` column is used in either case: it has no other rule.

    Raises:
        ScoringError: names every row that is doubled, has no index, or whose `hit` or `score` is no number from 0 to 1.
    """
    rows, columns, rule = result.table.rows, result.table.columns, scoring_rule(result.benchmark)
    check_indices(result)
    if rule == "judge":
        if "score" not in columns:
            note = f"{result.path}: {result.benchmark} needs a judge: its file {result.stem}_{{judge}} with a score column is not there"
            return Scored(result, rule, "unjudged", {}, "score", {}, {}, len(rows), (), (note,))
        return _scored(result, rule, "judged", _column(result, "score"), ())
    if judged and "hit" in columns:
        return _scored(result, rule, "judged", _column(result, "hit"), ())
    if missing := [name for name in ("prediction", "answer") if name not in columns]:
        raise ScoringError(f"{result.path}: no column {missing[0]!r} to match answers by; it has {', '.join(columns)}")
    hits, unparsed = {}, []
    for row in rows:
        said = letter(row["prediction"], options_of(row), profile)
        hits[row["index"]] = float(said is not None and said == row["answer"].strip())
        if said is None:
            unparsed.append(row["index"])
    return _scored(result, rule, profile, hits, tuple(unparsed))


def check_indices(result: Result) -> None:
    """Refuse rows without an index, and indices that stand there twice."""
    seen: dict[str, int] = {}
    faults = []
    for number, row in enumerate(result.table.rows, start=1):
        index = row["index"]
        if index == "":
            faults.append(f"row {number} has no index")
        elif index in seen:
            faults.append(f"index {index} stands in row {seen[index]} and again in row {number}")
        seen.setdefault(index, number)
    if faults:
        raise ScoringError(f"{result.path}: {listed(faults, '; ')}")


def listed(items: Iterable[str], separator: str = ", ") -> str:
    """The first items in words, and how many more there are."""
    items = list(items)
    more = f" and {len(items) - LISTED} more" if len(items) > LISTED else ""
    return separator.join(items[:LISTED]) + more


def _column(result: Result, name: str) -> dict[str, float]:
    hits, faults = {}, []
    for row in result.table.rows:
        try:
            hits[row["index"]] = float({"True": "1", "False": "0"}.get(row[name], row[name]))
        except ValueError:
            hits[row["index"]] = math.nan
        if not 0 <= hits[row["index"]] <= 1:
            faults.append(f"index {row['index']}: {row[name]!r}")
    if faults:
        raise ScoringError(f"{result.path}: column {name} must hold numbers from 0 to 1: {listed(faults)}")
    return hits


def _scored(result: Result, rule: Rule, how: str, hits: Hits, unparsed: tuple[str, ...]) -> Scored:
    rows = result.table.rows
    notes: list[str] = []
    by_row = _figure(hits, [(row["index"], [row["index"]]) for row in rows])
    figures, headline = {"score": by_row}, "score"
    row_of = {row["index"]: row["index"] for row in rows}
    if rule == "circular":
        groups = circular_groups(rows)
        figures = {"score": _figure(hits, groups.items(), min)}
        if any(len(members) > 1 for members in groups.values()) or how != "judged":
            figures["row_score"] = by_row
        else:
            notes.append(f"{result.path}: a judge's file of groups, without their rotations: no score by rows")
        row_of = {group: members[0] for group, members in groups.items()}
    elif rule == "pairs":
        pairs, fault = neighbours(list(row_of))
        if fault:
            notes.append(f"{result.path}: no score of pairs: {fault}")
        else:
            figures["pair_score"] = _figure(hits, [(pair[0], pair) for pair in pairs], min)
    elif rule == "sources":
        if "source" in result.table.columns:
            figures["source_mean"] = Figure(by_row.ids, by_row.values, tuple(row["source"] for row in rows))
            headline = "source_mean"
        else:
            notes.append(f"{result.path}: no mean over sources: there is no column source; averages use the share of rows")
    capabilities = _capabilities(result, row_of, several=rule == "judge")
    return Scored(result, rule, how, figures, headline, row_of, capabilities, len(rows), unparsed, tuple(notes))


def _figure(hits: Hits, units: Iterable[tuple[str, Sequence[str]]], of: Callable[[Iterable[float]], float] = max) -> Figure:
    ids, values = [], []
    for name, members in units:
        ids.append(name)
        values.append(of([hits[index] for index in members]))
    return Figure(tuple(ids), np.array(values, dtype=np.float64))


def circular_groups(rows: Rows) -> dict[str, list[str]]:
    """MMBench's groups: group -> the indices of its rows, the unrotated first. `g_index` names the group where the file has it."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        index = row["index"]
        groups.setdefault(row.get("g_index") or (str(int(index) % ROTATION) if index.isdecimal() else index), []).append(index)
    return {group: sorted(members, key=_by_number) for group, members in groups.items()}


def neighbours(indices: Sequence[str]) -> tuple[list[list[str]], str]:
    """MMVP's pairs, neighbours when sorted by index; and why there are none, where one is not whole."""
    ordered = sorted(indices, key=_by_number)
    pairs = [ordered[i : i + 2] for i in range(0, len(ordered), 2)]
    for pair in pairs:
        if len(pair) < 2 or (pair[0].isdecimal() and pair[1].isdecimal() and int(pair[1]) != int(pair[0]) + 1):
            return [], f"index {pair[0]} has no neighbour"
    return pairs, ""


def _by_number(index: str) -> tuple[int, str]:
    return (int(index), "") if index.isdecimal() else (-1, index)


def _capabilities(result: Result, row_of: Mapping[str, str], several: bool) -> dict[str, dict[str, tuple[str, ...]]]:
    rows = {row["index"]: row for row in result.table.rows}
    levels: dict[str, dict[str, tuple[str, ...]]] = {}
    for level, names in (("category", ("category",)), ("l2-category", ("l2-category", "l2_category"))):
        column = next((name for name in names if name in result.table.columns), None)
        if column is None:
            continue
        levels[level] = {}
        for unit, index in row_of.items():
            cell = rows[index][column]
            parts = [part.strip() for part in cell.split(",")] if several else [cell]
            levels[level][unit] = tuple(part for part in dict.fromkeys(parts) if part)
    return levels
