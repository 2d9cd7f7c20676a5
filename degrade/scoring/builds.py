"""A build's folder as scoring sees it: which variants there are, and which operator each row got."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from degrade.data import manifest
from degrade.data.errors import SourceError
from degrade.scoring.tables import ScoringError
from degrade.suites import BENCHMARKS, OPERATOR_CATEGORIES, Variant

Severity = str | float


@dataclass(frozen=True)
class BuiltFile:
    """One variant of one benchmark in a build.

    Attributes:
        stem: the file's name without suffix.
        benchmark: the benchmark's name.
        variant: kind, severity and operator.
        rows: index -> the operator that its image got; None for clean images, rows without one, and rows whose images got several.
        kept: rows whose image could not be degraded and stands there clean.
    """

    stem: str
    benchmark: str
    variant: Variant
    rows: Mapping[str, str | None]
    kept: frozenset[str]


def variant_name(variant: Variant) -> str:
    """A variant in a report: the severity of a mixed file, operator and severity of another, or "clean"."""
    if variant.kind == "clean":
        return "clean"
    return severity_name(variant.severity) if variant.kind == "mixed" else f"{variant.operator}/{severity_name(variant.severity)}"


def severity_name(severity: Severity | None) -> str:
    """A severity in a report: its name, or the number.

    >>> severity_name("high"), severity_name(0.5)
    ('high', '0.5')
    """
    return severity if isinstance(severity, str) else f"{severity:g}"


AS_THEY_ARE = tuple(b.name for b in BENCHMARKS.values() if not b.degraded)
"""Benchmarks of images that are degraded already: R-Bench-Dis."""

INTENSITY = {"clean": 0.0, "low": 0.23, "mid": 0.45, "high": 0.9}
"""Where named severities stand among numbers."""


def severity_place(name: str) -> float:
    """The intensity of a severity's name in a report, for order and axes.

    >>> severity_place("mid"), severity_place("0.5")
    (0.45, 0.5)
    """
    return INTENSITY[name] if name in INTENSITY else float(name)


def variant_place(variant: Variant | None) -> tuple[int, float, int]:
    """For order: the official file (None), the clean control, mixed files by severity, the others by severity and operator.

    >>> sorted(["high", "low", 0.5, "mid"], key=lambda severity: variant_place(Variant("mixed", severity)))
    ['low', 'mid', 0.5, 'high']
    """
    if variant is None or variant.kind == "clean":
        return int(variant is not None), 0.0, 0
    operators = [None, *OPERATOR_CATEGORIES]
    return 2 + (variant.kind == "operator"), severity_place(severity_name(variant.severity)), operators.index(variant.operator)


@dataclass(frozen=True)
class Build:
    """A build's folder.

    Attributes:
        folder: where it is.
        files: its variants by stem.
        why_not: why it is not standard, "" if it is.
    """

    folder: Path
    files: Mapping[str, BuiltFile]
    why_not: str = ""

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmarks that were degraded."""
        return tuple(dict.fromkeys(file.benchmark for file in self.files.values()))

    @property
    def datasets(self) -> dict[str, str]:
        """The data sets that answers may be to, the official ones too (and those that are scored as they are), each with its benchmark."""
        official = [*self.benchmarks, *AS_THEY_ARE]
        return {name: name for name in official} | {stem: file.benchmark for stem, file in self.files.items()}

    def rows_of(self, benchmark: str) -> Mapping[str, str | None] | None:
        """The rows of a benchmark, None where the build has none of it."""
        return next((file.rows for file in self.files.values() if file.benchmark == benchmark), None)


def read_build(folder: Path | str, accept_nonstandard: bool = False) -> Build:
    """Read what a build did from its manifests.

    Raises:
        ScoringError: where the folder holds no finished build, something in it cannot be read, or rows were skipped or kept clean
            (on_error=skip, on_error=keep) and this is not accepted.
        FileNotFoundError: where there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"build: there is no folder {str(folder)!r}")
    paths = sorted(folder.glob(f"*{manifest.SUFFIX}"))
    if not paths:
        raise ScoringError(f"build: {folder} holds no finished build: there is no file *{manifest.SUFFIX} in it")
    files, odd = {}, []
    for path in paths:
        try:
            head, lines = manifest.header(path), list(manifest.lines(path))
        except SourceError as error:
            raise ScoringError(str(error)) from error
        variant = Variant(head["variant"]["kind"], head["variant"]["severity"], head["variant"]["operator"])
        files[head["stem"]] = BuiltFile(head["stem"], head["benchmark"], variant, *_rows(lines))
        odd += [f"{head['stem']} {line['status']} row {line['index']}" for line in lines if line["status"] not in manifest.STANDARD]
    why_not = _why_not(folder, odd)
    if why_not and not accept_nonstandard:
        raise ScoringError(
            f"build: {folder} is not standard: {why_not}. Its drops are not comparable with others; "
            "accept_nonstandard=true scores it all the same, without these rows"
        )
    return Build(folder, files, why_not)


def _rows(lines: list[manifest.Line]) -> tuple[dict[str, str | None], frozenset[str]]:
    """Index -> operator of the rows that a file has, and which of them show a clean image for an error."""
    operators: dict[int, set[str]] = {}
    for line in lines:
        records = line.get("record") or []
        for record in [records] if isinstance(records, dict) else records:
            operators.setdefault(line["row"], set()).add(record["operator"])
    kept_rows = {line["row"] for line in lines if line["status"] == "kept"}
    rows: dict[str, str | None] = {}
    kept = set()
    for line in lines:
        if line["status"] == "skipped":
            continue
        shown = line["payload"] if line["status"] == "reference" else line["row"]
        names = operators.get(shown, set())
        rows[line["index"]] = next(iter(names)) if len(names) == 1 else None
        if shown in kept_rows:
            kept.add(line["index"])
    return rows, frozenset(kept)


def _why_not(folder: Path, odd: list[str]) -> str:
    """Why a build is not standard: rows that it skipped or kept clean, by its manifests or by what build.json says."""
    path = folder / "build.json"
    try:
        facts = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except json.JSONDecodeError as error:
        raise ScoringError(f"{path}: this is no JSON ({error})") from error
    if odd:
        return f"rows could not be degraded ({len(odd)}): {', '.join(odd[:5])}{', ...' if len(odd) > 5 else ''}"
    return "" if facts.get("standard", True) else "build.json says that it is not standard"
