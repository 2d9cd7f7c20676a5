"""MMR under degradation: RA and MR by operator and severity, beside clean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from degrade.scoring.answers import MmrProfile
from degrade.scoring.benchmarks import listed
from degrade.scoring.builds import Build, BuiltFile, severity_name, variant_place
from degrade.scoring.drops import Bootstrap, interval, mcnemar
from degrade.scoring.mmr import Questions, load_answers, rates, right, score_answers
from degrade.scoring.tables import ScoringError
from degrade.suites import OPERATOR_CATEGORIES

Record = dict[str, Any]
Pair = tuple[int, int]

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".xlsx")


@dataclass(frozen=True)
class Answered:
    """A file of answers to one file of the build (None: to the undegraded images)."""

    path: Path
    built: BuiltFile | None
    hits: Sequence[bool]


def find_answers(path: Path, build: Build) -> tuple[dict[str, Path], list[str]]:
    """The files of answers in a folder, by the stem of the build's file they answer; the benchmark's name (MMR) is the official images.

    A file is named after the build's file, ``{stem}.jsonl``, or ``{model}_{stem}.jsonl``.

    Raises:
        ScoringError: where two files answer one, the files are of several models, or the build is not of one benchmark.
    """
    if len(build.benchmarks) != 1:
        raise ScoringError(f"build: {build.folder} holds {listed(build.benchmarks)}; a build of MMR alone is wanted")
    stems = sorted([*build.benchmarks, *build.files], key=len, reverse=True)
    found: dict[str, list[Path]] = {}
    models, notes = set(), []
    for file in sorted(f for f in path.rglob("*") if f.suffix.lower() in SUFFIXES and f.is_file()):
        stem = next((s for s in stems if file.stem == s or file.stem.endswith(f"_{s}")), None)
        if stem is None:
            notes.append(f"{file}: left aside, the name is that of no file of the build")
            continue
        found.setdefault(stem, []).append(file)
        models.add(file.stem[: -len(stem)].rstrip("_"))
    if len(models) > 1:
        names = listed(sorted(model or "(no name)" for model in models))
        raise ScoringError(f"answers: {path} holds answers of several models, {names}; give one at a time")
    if doubled := [files for files in found.values() if len(files) > 1]:
        raise ScoringError(f"answers: {' and '.join(map(str, doubled[0]))} answer the same images; keep one")
    in_order = sorted(found, key=lambda stem: variant_place(build.files[stem].variant if stem in build.files else None))
    return {stem: found[stem][0] for stem in in_order}, notes


def report(questions: Questions, path: Path, build: Build, profile: MmrProfile, bootstrap: Bootstrap) -> Record:
    """MMR's report on clean answers, with ``by_severity``, ``by_operator`` and ``by_category`` for the degraded ones.

    Args:
        questions: the question file.
        path: the folder of answers.
        build: the build that degraded MMR's images.
        profile: how letters are read.
        bootstrap: how intervals are drawn, over pairs.

    Raises:
        ScoringError: where there are no clean answers, and for every fault of a file.
    """
    files, notes = find_answers(path, build)
    answers, faults = {}, []
    for stem, file in files.items():
        try:
            answers[stem] = load_answers(file, questions)
            if stem in build.files:
                _check_rows(questions, build.files[stem])
        except ScoringError as error:
            faults.append(str(error))
    if faults:
        raise ScoringError("\n".join(faults))
    control = next((stem for stem in answers if stem in build.files and build.files[stem].variant.kind == "clean"), None)
    (official,) = build.benchmarks
    clean_stem = control or (official if official in answers else None)
    if clean_stem is None:
        wanted = [stem for stem, built in build.files.items() if built.variant.kind == "clean"] + [official]
        raise ScoringError(f"answers: {path} holds no answers to clean images, {' or '.join(wanted)}{{.jsonl, .json, .csv, .tsv, .xlsx}}")
    clean = Answered(files[clean_stem], build.files.get(clean_stem), right(questions, answers[clean_stem], profile)[0])
    out: Record = {
        **score_answers(questions, answers[clean_stem], profile),
        "clean": {"side": "control" if control else "official", "file": clean.path.name},
        "files": {},
        "by_severity": [],
        "by_category": [],
        "by_operator": [],
        "notes": notes,
    }
    degraded = [
        Answered(files[stem], build.files[stem], right(questions, answers[stem], profile)[0])
        for stem in answers
        if stem in build.files and stem != control
    ]
    for stem in answers:
        one = score_answers(questions, answers[stem], profile)
        out["files"][stem] = {"path": str(files[stem]), **{k: one[k] for k in ("overall", "unparsed", "other_profile")}}
    absent = [stem for stem, built in build.files.items() if stem not in answers and built.variant.kind != "clean"]
    if absent:
        notes.append(f"no answers to {listed(absent)}")
    _strata(out, questions, clean, degraded, bootstrap)
    return out


def _check_rows(questions: Questions, built: BuiltFile) -> None:
    wanted = questions.names(built.rows)
    for what, indices in (
        ("lacks", [index for index in wanted if index not in built.rows]),
        ("has more than", sorted(set(built.rows) - set(wanted))),
    ):
        if indices:
            raise ScoringError(f"the manifest of {built.stem} {what} the rows of {questions.path}: index {listed(indices)}")


def _strata(out: Record, questions: Questions, clean: Answered, degraded: Sequence[Answered], bootstrap: Bootstrap) -> None:
    per_file: dict[tuple[str, str], list[Answered]] = {}
    for answered in degraded:
        built = answered.built
        assert built is not None
        severity, kind = severity_name(built.variant.severity), built.variant.kind
        names = questions.names(built.rows)
        usable = [pair for pair in questions.pairs if _degraded(questions, answered, pair)]
        head = {"severity": severity, "source": kind}
        if kind == "mixed":
            out["by_severity"].append(head | _compare(questions, clean, [answered], usable, bootstrap, built.stem))
            got = {pair: (built.rows[names[pair[0]]], built.rows[names[pair[1]]]) for pair in usable}
            operators = {pair: first for pair, (first, second) in got.items() if first == second}
            for operator in OPERATOR_CATEGORIES:
                if chosen := [pair for pair, name in operators.items() if name == operator]:
                    record = _compare(questions, clean, [answered], chosen, bootstrap, f"{built.stem}/{operator}")
                    out["by_operator"].append({"operator": operator, "category": OPERATOR_CATEGORIES[operator]} | head | record)
            for category in dict.fromkeys(OPERATOR_CATEGORIES.values()):
                if chosen := [pair for pair, name in operators.items() if name and OPERATOR_CATEGORIES.get(name) == category]:
                    record = _compare(questions, clean, [answered], chosen, bootstrap, f"{built.stem}/{category}")
                    out["by_category"].append({"category": category} | head | record)
        else:
            operator = built.variant.operator or ""
            category = OPERATOR_CATEGORIES.get(operator, "")
            record = _compare(questions, clean, [answered], usable, bootstrap, built.stem)
            out["by_operator"].append({"operator": operator, "category": category} | head | record)
            per_file.setdefault((severity, category), []).append(answered)
    for (severity, category), several in per_file.items():
        usable = [pair for pair in questions.pairs if all(_degraded(questions, answered, pair) for answered in several)]
        record = _compare(questions, clean, several, usable, bootstrap, f"operator/{severity}/{category}")
        out["by_category"].append({"category": category, "severity": severity, "source": "operator"} | record)


def _degraded(questions: Questions, answered: Answered, pair: Pair) -> bool:
    """Whether no row of a pair was left clean for an error."""
    names = questions.names(answered.built.rows) if answered.built else []
    return answered.built is None or not answered.built.kept & {names[pair[0]], names[pair[1]]}


def _compare(
    questions: Questions, clean: Answered, degraded: Sequence[Answered], pairs: Sequence[Pair], bootstrap: Bootstrap, name: str
) -> Record:
    """RA and MR of clean and degraded answers on the same pairs; several degraded files are pooled."""
    before = rates(questions, clean.hits, pairs)
    after = [rates(questions, answered.hits, pairs) for answered in degraded]
    n, rr, rw = sum(a.n for a in after), sum(a.rr for a in after), sum(a.rw for a in after)
    columns = np.array(
        [[*_outcome(clean.hits, pair), *np.mean([_outcome(answered.hits, pair) for answered in degraded], axis=0)] for pair in pairs]
    ).reshape(len(pairs), 4)
    fell = sum(_outcome(clean.hits, p)[0] > _outcome(a.hits, p)[0] for a in degraded for p in pairs)
    rose = sum(_outcome(clean.hits, p)[0] < _outcome(a.hits, p)[0] for a in degraded for p in pairs)
    ra, clean_ra = _share(rr, n), _share(before.rr, before.n)
    mr, clean_mr = _share(rw, rr + rw), _share(before.rw, before.rr + before.rw)
    record: Record = {
        "n": len(pairs),
        "rr": rr,
        "rw": rw,
        "clean_ra": _points(clean_ra),
        "ra": _points(ra),
        "ra_drop": None if ra is None or clean_ra is None else _points(clean_ra - ra),
        "ra_drop_ci95": None,
        "clean_mr": _points(clean_mr),
        "mr": _points(mr),
        "mr_rise": None if mr is None or clean_mr is None else _points(mr - clean_mr),
        "mr_rise_ci95": None,
        "right_to_wrong": fell / n if n else None,
        "wrong_to_right": rose / n if n else None,
        "mcnemar_p": mcnemar(fell, rose) if len(degraded) == 1 else None,
    }
    if len(pairs) > 1:
        means = bootstrap.means(columns, name)
        record["ra_drop_ci95"] = _pair(interval(100 * (means[:, 0] - means[:, 2])))
        understood = means[:, [0, 2]] + means[:, [1, 3]]
        if (understood > 0).all():
            record["mr_rise_ci95"] = _pair(interval(100 * (means[:, 3] / understood[:, 1] - means[:, 1] / understood[:, 0])))
    return record


def _outcome(hits: Sequence[bool], pair: Pair) -> tuple[float, float]:
    positive, negative = hits[pair[0]], hits[pair[1]]
    return float(positive and negative), float(positive and not negative)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _points(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 2)


def _pair(pair: Iterable[float]) -> list[float]:
    return [round(value, 2) for value in pair]
