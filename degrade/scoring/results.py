"""Where VLMEvalKit leaves its results, and which model and data set a file belongs to.

VLMEvalKit writes ``{model}/{run}/{model}_{dataset}.xlsx`` and links the newest of a model's runs into ``{model}/``; a judge adds
``{model}_{dataset}_{judge}_result.xlsx`` or, for MM-Vet, ``{model}_{dataset}_{judge}.xlsx``. Names are matched whole: ``{model}_MMStar``
begins the name of every variant of MMStar too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from degrade.scoring.tables import SUFFIXES, ScoringError, Table, read_table
from degrade.suites import OPERATOR_CATEGORIES, parse_stem

JUDGED_COLUMNS = ("hit", "score")


@dataclass(frozen=True)
class Result:
    """A result file and what its name says.

    Attributes:
        table: its rows.
        model: the model.
        dataset: the file stem of the data set it answers, such as ``MMStar_LOW_LEVEL_HIGH``.
        benchmark: the benchmark that it is a variant of, such as ``MMStar``.
        judge: who judged it ("judge" where the name does not say), or None where the file holds answers only.
    """

    table: Table
    model: str
    dataset: str
    benchmark: str
    judge: str | None = None

    @property
    def path(self) -> Path:
        return self.table.path

    @property
    def stem(self) -> str:
        return self.path.stem


@dataclass
class Found:
    """The result files of a folder, and what was left aside and why."""

    results: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find(path: Path, benchmarks: Collection[str], datasets: Mapping[str, str] | None = None) -> Found:
    """Find and read the result files of a folder, or read one file.

    Args:
        path: a result file, or a folder that holds them at any depth.
        benchmarks: the names of benchmarks that a file's name may hold.
        datasets: the data sets to look for, each with its benchmark; None: any whose name begins with a benchmark's.

    Returns:
        at most one file of answers and one of each judge for every model and data set; notes name every other file.

    Raises:
        ScoringError: for files that carry a result's name but are none, for a single file whose name says no benchmark, and for different
            answers of one model to one data set that no link of VLMEvalKit decides between.
        FileNotFoundError: where there is no such path.
    """
    if not path.exists():
        raise FileNotFoundError(f"results: there is no file or folder {str(path)!r}")
    found, faults = Found(), []
    files = sorted(f for f in path.rglob("*") if f.suffix.lower() in SUFFIXES and f.is_file()) if path.is_dir() else [path]
    read: list[tuple[Path, str, str, str, Table]] = []
    for file in files:
        named = split_name(file, benchmarks)
        if named is None:
            if path.is_file():
                known = ", ".join(sorted(benchmarks))
                wanted = f"{{model}}_{{dataset}}{file.suffix}, where the data set begins with one of {known}"
                raise ScoringError(f"{file}: the name is not that of a model's answers to a benchmark; wanted is {wanted}")
            found.notes.append(f"{file}: left aside, the name is not that of a result, {{model}}_{{dataset}}")
            continue
        model, benchmark, rest = named
        try:
            table = read_table(file)
        except ScoringError as error:
            if _is_byproduct(file):
                found.notes.append(f"{file}: left aside, a by-product of an evaluation")
            else:
                faults.append(str(error))
            continue
        if "index" not in table.columns or not {"prediction", *JUDGED_COLUMNS} & set(table.columns):
            if path.is_file() or rest == benchmark or rest in (datasets or {}):
                faults.append(f"{file}: no result file: it needs columns index and prediction, it has {', '.join(table.columns) or 'none'}")
            else:
                found.notes.append(f"{file}: left aside, it has no index and prediction (a by-product of an evaluation)")
            continue
        read.append((file, model, benchmark, rest, table))
    if faults:
        raise ScoringError("\n".join(faults))

    answers = {file.with_suffix(""): rest for file, _, _, rest, table in read if not _judged(table)}
    groups: dict[tuple[str, str, str | None], list[Result]] = {}
    for file, model, _, rest, table in read:
        dataset, judge = rest, None
        if _judged(table):
            dataset, judge = _judge_of(file, rest, benchmarks, answers)
        if datasets is not None and dataset not in datasets:
            found.notes.append(f"{file}: left aside, {dataset} is no data set of this build")
            continue
        parsed = parse_stem(dataset, OPERATOR_CATEGORIES)
        benchmark = datasets[dataset] if datasets is not None else parsed[0] if parsed else dataset
        groups.setdefault((model, dataset, judge), []).append(Result(table, model, dataset, benchmark, judge))
    for group in groups.values():
        try:
            found.results.append(_newest(group, path, found.notes))
        except ScoringError as error:
            faults.append(str(error))
    if faults:
        raise ScoringError("\n".join(faults))
    return found


def split_name(file: Path, benchmarks: Iterable[str]) -> tuple[str, str, str] | None:
    """The model, the benchmark, and the file stem behind the model, or None where no benchmark is named.

    A folder above the file that bears the model's name decides where the model ends.

    >>> split_name(Path("vila_8b_MMStar_LOW_LEVEL_HIGH.xlsx"), ["MMStar"])
    ('vila_8b', 'MMStar', 'MMStar_LOW_LEVEL_HIGH')
    """
    by_length = sorted(benchmarks, key=len, reverse=True)
    for folder in sorted((parent.name for parent in file.parents if parent.name), key=len, reverse=True):
        rest = file.stem.removeprefix(folder + "_")
        if rest != file.stem and (benchmark := next((b for b in by_length if rest == b or rest.startswith(b + "_")), None)):
            return folder, benchmark, rest
    places = [(found.start(), b) for b in by_length for found in re.finditer(rf"(?<=_){re.escape(b)}(?=_|$)", file.stem)]
    if not places:
        return None
    start, benchmark = max(places, key=lambda place: (place[0] + len(place[1]), len(place[1])))
    return file.stem[: start - 1], benchmark, file.stem[start:]


def _judged(table: Table) -> bool:
    return any(name in table.columns for name in JUDGED_COLUMNS)


def _judge_of(file: Path, rest: str, benchmarks: Collection[str], answers: Mapping[Path, str]) -> tuple[str, str]:
    """The data set and the judge of a judged file: as much of the name as is a data set's, or that of a file of answers beside it."""
    words = rest.split("_")
    prefixes = ["_".join(words[:n]) for n in range(len(words), 0, -1)]
    names = [name for name in prefixes if name in benchmarks or parse_stem(name, OPERATOR_CATEGORIES)]
    names += [dataset for stem, dataset in answers.items() if stem.parent == file.parent and file.stem.startswith(stem.name + "_")]
    dataset = max(names, key=len, default=rest)
    return dataset, rest[len(dataset) + 1 :].removesuffix("_result").removesuffix("result") or "judge"


def _is_byproduct(file: Path) -> bool:
    return file.stem.endswith(("_acc", "_score", "_rating", "_judge", "_status"))


def _newest(group: list[Result], root: Path, notes: list[str]) -> Result:
    """One of several files of the same answers: VLMEvalKit's link in the model's folder, or any where all say the same."""
    depth = min(len(result.path.parts) for result in group)
    top = [result for result in group if len(result.path.parts) == depth]
    if any(_said(result) != _said(top[0]) for result in top[1:]):
        paths = " and ".join(str(result.path) for result in top)
        raise ScoringError(f"{top[0].model}: different answers to {top[0].dataset} in {paths}: remove all but one")
    others = [result for result in group if result is not top[0] and _said(result) != _said(top[0])]
    notes.extend(f"{other.path}: left aside, {top[0].path} is nearer to the top and so the newest run" for other in others)
    return top[0]


def _said(result: Result) -> list[tuple[str, ...]]:
    columns = ("index", "prediction", *JUDGED_COLUMNS)
    return sorted(tuple(row.get(name, "") for name in columns) for row in result.table.rows)
