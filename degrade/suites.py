"""The facts of the benchmarks, in one place: names, addresses, classes in VLMEvalKit, and the names of the files of a build."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Rule = Literal["rows", "circular", "pairs", "sources", "judge"]


@dataclass(frozen=True)
class Benchmark:
    """One public benchmark.

    Attributes:
        name: the official name, that of the TSV file without its suffix.
        rows: how many rows the official file has; 0 if that is not known here.
        url, md5: where the official TSV file is, and its checksum.
        vlmevalkit_class: the dataset class that evaluates it.
        aliases: other names it goes by, compared without case, ``-``, ``_`` and spaces.
        degraded: whether a build degrades it (R-Bench-Dis is only scored).
        rule: how it is scored: by rows, by circular groups of rotations, by rows and pairs, by rows and sources, or by a judge.
    """

    name: str
    rows: int
    url: str
    md5: str
    vlmevalkit_class: str = "ImageMCQDataset"
    aliases: tuple[str, ...] = ()
    degraded: bool = True
    rule: Rule = "rows"


_OPENCOMPASS = "https://opencompass.openxlab.space/utils"

BENCHMARKS: dict[str, Benchmark] = {
    b.name: b
    for b in (
        Benchmark(
            "MMBench_DEV_EN_V11",
            0,
            f"{_OPENCOMPASS}/benchmarks/MMBench/MMBench_DEV_EN_V11.tsv",
            "30c05be8f2f347a50be25aa067248184",
            aliases=("MMBench", "MMBench_EN", "MMBench_DEV_EN"),
            rule="circular",
        ),
        Benchmark(
            "MMVet",
            218,
            f"{_OPENCOMPASS}/VLMEval/MMVet.tsv",
            "748aa6d4aa9d4de798306a63718455e3",
            vlmevalkit_class="MMVet",
            aliases=("MM-Vet",),
            rule="judge",
        ),
        Benchmark("MMVP", 300, f"{_OPENCOMPASS}/VLMEval/MMVP.tsv", "8cb732b141a0cba5b42159df2839e557", rule="pairs"),
        Benchmark(
            "CV-Bench-2D",
            1438,
            f"{_OPENCOMPASS}/VLMEval/CV-Bench-2D.tsv",
            "a7cff4cc2857cc237ee2b89e62bccb2d",
            vlmevalkit_class="CVBench",
            aliases=("CVBench", "CVBench2D"),
            rule="sources",
        ),
        Benchmark("MMStar", 1500, f"{_OPENCOMPASS}/VLMEval/MMStar.tsv", "e1ecd2140806c1b1bbf54b43372efb9e"),
        Benchmark("RealWorldQA", 765, f"{_OPENCOMPASS}/VLMEval/RealWorldQA.tsv", "4de008f55dc4fd008ca9e15321dc44b7"),
        Benchmark(
            "R-Bench-Dis",
            0,
            "https://huggingface.co/datasets/lcysyzxdxc/R-Bench/resolve/main/R-bench-dis.tsv",
            "d6e961dbfc43350688af2560226830b4",
            aliases=("R-Bench", "RBench"),
            degraded=False,
        ),
    )
}
"""By official name."""

_CLASSES = {"MME": "ImageYORNDataset"}
"""VLMEvalKit's classes of benchmarks that are not among ours."""

OPERATOR_CATEGORIES: dict[str, str] = {
    "lens_blur": "capture",
    "lens_flare": "capture",
    "motion_blur": "capture",
    "dirty_lens": "capture",
    "hsv_saturation": "capture",
    "jpeg_compression": "transmission",
    "block_exchange": "transmission",
    "mean_shift": "transmission",
    "scan_lines": "transmission",
    "dark_illumination": "environment",
    "atmospheric_turbulence": "environment",
    "gaussian_noise": "environment",
    "color_diffusion": "environment",
    "sharpness_change": "postprocessing",
    "graffiti": "postprocessing",
    "watermark_damage": "postprocessing",
}
"""The operators of MMD-Bench by name, in its order, with their categories: for those who read file names and reports, not pixels."""

NAMED_SEVERITIES = ("low", "mid", "high")
DEFAULT_OPERATOR_SEVERITY = "high"
"""A per-operator file at this severity carries no severity in its name."""


def fold(name: str) -> str:
    """A name without case and separators, for comparison."""
    return re.sub(r"[-_ ]", "", name).lower()


_BY_FOLDED = {fold(alias): b.name for b in BENCHMARKS.values() for alias in (b.name, *b.aliases)}


def canonical(name: str) -> str:
    """The official name of a benchmark; other names as they are.

    >>> canonical("cvbench2d"), canonical("my set")
    ('CV-Bench-2D', 'my set')
    """
    return _BY_FOLDED.get(fold(name), name)


def vlmevalkit_class(benchmark: str) -> str:
    """The class of VLMEvalKit that evaluates a benchmark, degraded or not.

    >>> vlmevalkit_class("MMVet_my_part"), vlmevalkit_class("anything")
    ('MMVet', 'ImageMCQDataset')
    """
    known = release_of(benchmark)
    return known.vlmevalkit_class if known else _CLASSES.get(benchmark, "ImageMCQDataset")


def release_of(benchmark: str) -> Benchmark | None:
    """The known benchmark of which this is a release or a part, by the words that its name begins with.

    >>> release_of("MMBench_dev_20230712").name, release_of("my set")
    ('MMBench_DEV_EN_V11', None)
    """
    words = benchmark.split("_")
    names = (canonical("_".join(words[:n])) for n in range(len(words), 0, -1))
    return next((BENCHMARKS[name] for name in names if name in BENCHMARKS), None)


def scoring_rule(benchmark: str) -> Rule:
    """How a benchmark is scored; other releases of a known one (``MMBench_dev_20230712``) as that, unknown ones by rows.

    >>> scoring_rule("MMBench_dev_20230712"), scoring_rule("MMVP"), scoring_rule("my set")
    ('circular', 'pairs', 'rows')
    """
    known = release_of(benchmark)
    return known.rule if known else "rows"


@dataclass(frozen=True)
class Variant:
    """One way of degrading a whole benchmark: one file.

    Attributes:
        kind: ``"mixed"`` (one operator a row), ``"operator"`` (one for all), ``"clean"``.
        severity: a name or an intensity in [0, 1]; None for clean.
        operator: for ``"operator"``.
    """

    kind: Literal["mixed", "operator", "clean"]
    severity: str | float | None = None
    operator: str | None = None

    def stem(self, benchmark: str, tag: str = "") -> str:
        """The file's name without its suffix.

        >>> Variant("mixed", "low").stem("MMStar"), Variant("operator", 0.5, "graffiti").stem("MMStar", "v2")
        ('MMStar_LOW_LEVEL_LOW', 'MMStar_graffiti_I0500-v2')
        """
        if self.kind == "clean":
            name = f"{benchmark}_CLEAN"
        elif self.kind == "mixed":
            name = f"{benchmark}_LOW_LEVEL_{severity_mark(self.severity)}"
        elif self.severity == DEFAULT_OPERATOR_SEVERITY:
            name = f"{benchmark}_{self.operator}"
        else:
            name = f"{benchmark}_{self.operator}_{severity_mark(self.severity)}"
        return f"{name}-{tag}" if tag else name


def severity_mark(severity: str | float | None) -> str:
    """A severity as it stands in file names.

    >>> severity_mark("mid"), severity_mark(0.25)
    ('MID', 'I0250')
    """
    if isinstance(severity, str):
        return severity.upper()
    if severity is None or not 0 <= severity <= 1:
        raise ValueError(f"severity: got {severity}, want a name or a number in [0, 1]")
    thousandths = round(severity * 1000)
    if abs(thousandths - severity * 1000) > 1e-6:
        raise ValueError(f"severity: got {severity}; file names hold thousandths, so at most three decimals are possible")
    return f"I{thousandths:04d}"


def parse_stem(stem: str, operators: Iterable[str]) -> tuple[str, Variant, str] | None:
    """Benchmark, variant and tag of a file's name; None if it is not that of a build's file.

    Args:
        stem: a file name without suffix, possibly behind a model's name and ``_`` (which then stays before the benchmark).
        operators: the operators' names.

    >>> parse_stem("MMStar_graffiti_LOW-v2", ["graffiti"])
    ('MMStar', Variant(kind='operator', severity='low', operator='graffiti'), 'v2')
    """
    names = "|".join(map(re.escape, operators))
    mark = r"LOW|MID|HIGH|I[01]\d{3}"
    pattern = rf"(.+)_(?:(CLEAN)|LOW_LEVEL_({mark})|({names})(?:_({mark}))?)(?:-([A-Za-z0-9.]+))?"
    if not (found := re.fullmatch(pattern, stem)):
        return None
    benchmark, clean, mixed, operator, level, tag = found.groups()
    if clean:
        return benchmark, Variant("clean"), tag or ""
    if mixed:
        return benchmark, Variant("mixed", _unmark(mixed)), tag or ""
    return benchmark, Variant("operator", _unmark(level) if level else DEFAULT_OPERATOR_SEVERITY, operator), tag or ""


def _unmark(mark: str) -> str | float:
    return int(mark[1:]) / 1000 if mark[0] == "I" else mark.lower()
