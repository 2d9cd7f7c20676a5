"""MMD-Bench's report: every model's scores and drops, whole and by stratum, as plain data for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from degrade.scoring.answers import Profile
from degrade.scoring.benchmarks import ROTATION, Figure, Scored, circular_groups, listed, score_result
from degrade.scoring.builds import AS_THEY_ARE, Build, BuiltFile, severity_name, severity_place, variant_name, variant_place
from degrade.scoring.drops import Bootstrap, Drop, average, compare, score_interval
from degrade.scoring.results import Found, Result
from degrade.scoring.tables import ScoringError
from degrade.suites import OPERATOR_CATEGORIES, Variant, parse_stem, scoring_rule

Record = dict[str, Any]
SEVERAL = "(several)"
"""The operator of a group whose rows got different ones."""


@dataclass(frozen=True)
class Side:
    """A scored file and the file of the build that it answers (None: the official file, or no build)."""

    scored: Scored
    built: BuiltFile | None

    @property
    def result(self) -> Result:
        return self.scored.result


def choose(found: Found, judged: bool) -> list[Result]:
    """One file for every model and data set: answers or, with `judged` and for MM-Vet, what a judge made of them; notes name the others.

    Raises:
        ScoringError: where several judges judged one file.
    """
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in found.results:
        groups.setdefault((result.model, result.dataset), []).append(result)
    chosen, faults = [], []
    for (model, dataset), group in groups.items():
        judges = [result for result in group if result.judge is not None]
        plain = [result for result in group if result.judge is None]
        if judges and (judged or scoring_rule(judges[0].benchmark) == "judge" or not plain):
            if len(judges) > 1:
                paths = " and ".join(str(result.path) for result in judges)
                faults.append(f"{model}: {dataset} was judged by {listed(str(r.judge) for r in judges)}: keep one of {paths}")
            chosen.append(judges[0])
            found.notes.extend(f"{result.path}: left aside, {judges[0].path.name} holds what a judge made of it" for result in plain)
        else:
            chosen.append(plain[0])
            found.notes.extend(f"{result.path}: left aside, a judge's file is used with judged=true only" for result in judges)
    if faults:
        raise ScoringError("\n".join(faults))
    return chosen


def report(
    results: Sequence[Result], build: Build | None, profile: Profile, judged: bool, bootstrap: Bootstrap, notes: Iterable[str] = ()
) -> Record:
    """Score files and, with a build, the drops between them.

    Args:
        results: one for each model and data set, see :func:`choose`.
        build: the build that made the degraded files; None: plain scores.
        profile, judged: see :func:`degrade.scoring.benchmarks.score_result`.
        bootstrap: how intervals are drawn.
        notes: what was noticed before.

    Returns:
        see docs/scoring.md.

    Raises:
        ScoringError: with a line for every fault of every file.
    """
    faults: list[str] = []
    sides: list[Side] = []
    unjudged: list[str] = []
    results = sorted(results, key=lambda result: (result.model, result.benchmark, variant_place(_variant(result, build)), result.dataset))
    for result in results:
        try:
            scored = score_result(result, profile, judged)
            built = build.files.get(result.dataset) if build else None
            if build is not None:
                check_rows(result, build, built)
        except ScoringError as error:
            faults.append(str(error))
            continue
        sides.append(Side(scored, built))
        if judged and scored.how not in ("judged", "unjudged"):
            unjudged.append(result.stem)
    if faults:
        raise ScoringError("\n".join(faults))
    out: Record = {
        "profile": profile,
        "judged": judged,
        "bootstrap": {"seed": bootstrap.seed, "resamples": bootstrap.resamples, "interval": "95 % percentile"},
        "build": None if build is None else {"folder": str(build.folder), "standard": not build.why_not, "why_not": build.why_not},
        "files": {side.result.stem: file_record(side, bootstrap) for side in sides},
        **{name: [] for name in ("drops", "averages", "by_operator", "by_category", "by_capability")},
        "notes": [*notes, *(note for side in sides for note in side.scored.notes)]
        + [f"no judge's column, so matched exactly: {listed(unjudged)}"] * bool(unjudged),
    }
    if len(out["files"]) < len(sides):
        doubled = [stem for stem, n in Counter(side.result.stem for side in sides).items() if n > 1]
        raise ScoringError(f"several result files are named {listed(doubled)}: score one model's folder at a time")
    if build is not None:
        for model in dict.fromkeys(side.result.model for side in sides):
            try:
                _model_drops(out, model, [side for side in sides if side.result.model == model], build, bootstrap)
            except ScoringError as error:
                faults.append(str(error))
        if faults:
            raise ScoringError("\n".join(faults))
    return out


def file_record(side: Side, bootstrap: Bootstrap) -> Record:
    """What score.json says of one file."""
    scored, built = side.scored, side.built
    score = scored.figures.get("score")
    variant = built.variant if built else _variant(side.result, None)
    record: Record = {
        "model": side.result.model,
        "benchmark": side.result.benchmark,
        "dataset": side.result.dataset,
        "variant": variant_name(variant) if variant else "official",
        "score": score.mean() if score else None,
        "ci95": _list(score_interval(score, bootstrap, f"{side.result.stem}/score")) if score else None,
        "n": scored.n,
        "unparsed": len(scored.unparsed) if scored.how not in ("judged", "unjudged") else None,
        "scored_by": scored.how if scored.how in ("judged", "unjudged") else f"exact matching ({scored.how})",
        "judge": side.result.judge if scored.how == "judged" else None,
        "path": str(side.result.path),
    }
    for name, figure in scored.figures.items():
        if name != "score":
            record[name] = figure.mean()
            record[f"{name}_ci95"] = _list(score_interval(figure, bootstrap, f"{side.result.stem}/{name}"))
    if scored.rule == "circular" and score:
        record["groups"] = len(score.ids)
    if "pair_score" in scored.figures:
        record["pairs"] = len(scored.figures["pair_score"].ids)
    record["capabilities"] = {
        level: {name: {"score": part.mean(), "n": len(part.ids)} for name in _names(units) if (part := _part(score, units, name))}
        for level, units in scored.capabilities.items()
        if score
    }
    return record


def _variant(result: Result, build: Build | None) -> Variant | None:
    """The variant that a result file answers, None for the official file."""
    if build is not None and result.dataset in build.files:
        return build.files[result.dataset].variant
    parsed = parse_stem(result.dataset, OPERATOR_CATEGORIES)
    return parsed[1] if parsed else None


def check_rows(result: Result, build: Build, built: BuiltFile | None) -> None:
    """Refuse a result file whose rows are not those of the build.

    The official file may have more rows than a build that was told to skip some; and a judge leaves one row for each of MMBench's groups.

    Raises:
        ScoringError: names the rows that are missing and those that are too many.
    """
    wanted = built.rows if built else build.rows_of(result.benchmark)
    if wanted is None:
        return
    got = [row["index"] for row in result.table.rows]
    rotated = any(index.isdecimal() and int(index) >= ROTATION for index in got)
    if result.judge is not None and scoring_rule(result.benchmark) == "circular" and not rotated:
        wanted = {members[0]: wanted[members[0]] for members in circular_groups([{"index": index} for index in wanted]).values()}
    present = set(got)
    missing = [index for index in wanted if index not in present]
    extra = [index for index in got if index not in wanted] if built is not None or not build.why_not else []
    if not missing and not extra:
        return
    where = f"the manifest of {built.stem}" if built else f"the manifests of {result.benchmark}"
    parts = [f"{what} {len(rows)}: index {listed(rows)}" for what, rows in (("missing", missing), ("too many", extra)) if rows]
    none = "; no row is the same, is this another build's manifest?" if len(missing) == len(wanted) else ""
    raise ScoringError(f"{result.path}: its rows ({len(got)}) are not those of {where} ({len(wanted)}): {'; '.join(parts)}{none}")


def check_same_questions(clean: Result, degraded: Result) -> None:
    """Refuse to pair files whose rows of one index ask different questions.

    Raises:
        ScoringError: names the rows.
    """
    asked = {row["index"]: row for row in clean.table.rows}
    faults = []
    for row in degraded.table.rows:
        before = asked.get(row["index"])
        for name in ("question", "answer"):
            if before is not None and name in row and name in before and _plain(row[name]) != _plain(before[name]):
                faults.append(f"index {row['index']}: {name} {row[name][:40]!r}, not {before[name][:40]!r}")
    if faults:
        raise ScoringError(f"{degraded.path} and {clean.path} do not ask the same questions: {listed(faults, '; ')}")


def _plain(cell: str) -> str:
    """A cell without what formats change: line ends (MMStar's own text has xlsx's escape of one), blanks, how a number is written."""
    cell = " ".join(cell.replace("_x000D_", " ").split())
    try:
        return repr(float(cell))
    except ValueError:
        return cell


def _model_drops(out: Record, model: str, sides: Sequence[Side], build: Build, bootstrap: Bootstrap) -> None:
    by_benchmark: dict[str, list[Side]] = {}
    for side in sides:
        by_benchmark.setdefault(side.result.benchmark, []).append(side)
    averages: dict[str, dict[str, Drop]] = {}
    for benchmark, files in by_benchmark.items():
        clean = _clean_side(files)
        degraded = [side for side in files if side.built is not None and side.built.variant.kind != "clean"]
        if not degraded:
            if benchmark in build.benchmarks:
                out["notes"].append(f"{model}: no answers to degraded {benchmark}")
            continue
        if clean is None:
            out["notes"].append(f"{model}: no clean answers to {benchmark}, neither to its clean control nor to {benchmark}: no drop")
            continue
        absent = [v.stem for v in build.files.values() if v.benchmark == benchmark and v.stem not in {s.result.dataset for s in files}]
        if absent:
            out["notes"].append(f"{model}: no answers to {listed(absent)}")
        degraded = [side for side in degraded if "score" in side.scored.figures]
        if "score" not in clean.scored.figures or not degraded:
            continue  # a note of the file says that it needs a judge
        for side in degraded:
            check_same_questions(clean.result, side.result)
            _check_judges(clean, side)
        pairing = _Pairing(model, benchmark, clean, bootstrap)
        for side in degraded:
            if side.built is not None and side.built.variant.kind == "mixed":
                _mixed(out, pairing, side, side.built, averages)
        _per_operator(out, pairing, degraded)
    for severity, drops in sorted(averages.items(), key=lambda item: severity_place(item[0])):
        published = [side.scored.figures["score"].mean() for side in sides if side.result.benchmark in AS_THEY_ARE]
        out["averages"].append({"model": model, "severity": severity, **average(drops), "with_r_bench_dis": _with(drops, published)})


def _check_judges(clean: Side, degraded: Side) -> None:
    """Refuse to take a difference between judges for a drop."""
    one, other = (f"judged by {side.result.judge}" if side.scored.how == "judged" else "matched exactly" for side in (clean, degraded))
    if one != other:
        raise ScoringError(
            f"{clean.result.path} is {one}, {degraded.result.path} is {other}: a drop between them would be one between judges too"
        )


def _with(drops: Mapping[str, Drop], more: Sequence[float | None]) -> float | None:
    """The mean of degraded scores with those of benchmarks that are scored as they are, as the published tables have it."""
    scores = [*(drop.degraded for drop in drops.values()), *more]
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if more and len(known) == len(scores) else None


def _clean_side(files: Sequence[Side]) -> Side | None:
    control = [side for side in files if side.built is not None and side.built.variant.kind == "clean"]
    official = [side for side in files if side.built is None]
    return next(iter(control + official), None)


@dataclass(frozen=True)
class _Pairing:
    """One model on one benchmark: everything that is compared with its clean answers."""

    model: str
    benchmark: str
    clean: Side
    bootstrap: Bootstrap

    def head(self, built: BuiltFile) -> Record:
        severity = severity_name(built.variant.severity)
        return {"model": self.model, "benchmark": self.benchmark, "severity": severity, "source": built.variant.kind}

    def drop(self, sides: Sequence[Side], name: str, keep: Collection[str] | None = None, figure: str = "score") -> Drop:
        figures = [_degraded_only(side, side.scored.figures[figure]) for side in sides]
        label = f"{self.model}/{self.benchmark}/{name}/{figure}"
        return compare(self.clean.scored.figures[figure], figures, self.bootstrap, label, keep)


def _degraded_only(side: Side, figure: Figure) -> Figure:
    """The figure without units that a build with on_error=keep left clean."""
    if side.built is None or not side.built.kept:
        return figure
    row_of = side.scored.row_of
    inside = [i for i, unit in enumerate(figure.ids) if row_of.get(unit, unit) not in side.built.kept]
    strata = None if figure.strata is None else tuple(figure.strata[i] for i in inside)
    return replace(figure, ids=tuple(figure.ids[i] for i in inside), values=figure.values[inside], strata=strata)


def _mixed(out: Record, pairing: _Pairing, side: Side, built: BuiltFile, averages: dict[str, dict[str, Drop]]) -> None:
    clean, head = pairing.clean, pairing.head(built)
    whole = pairing.drop([side], built.stem)
    record = {
        **head,
        **whole.record(),
        "clean_file": clean.result.stem,
        "clean_side": "control" if clean.built is not None else "official",
        "degraded_file": side.result.stem,
        "scored_by": side.scored.how,
        "figures": {},
    }
    headline = whole
    for name in clean.scored.figures:
        if name != "score" and name in side.scored.figures:
            other = pairing.drop([side], built.stem, figure=name)
            record["figures"][name] = other.record()
            headline = other if name == clean.scored.headline else headline
    out["drops"].append(record)
    averages.setdefault(severity_name(built.variant.severity), {})[pairing.benchmark] = headline

    operators = _operators(side, built)
    for operator in _in_order(operators.values()):
        keep = [unit for unit, name in operators.items() if name == operator]
        drop = pairing.drop([side], f"{built.stem}/{operator}", keep)
        out["by_operator"].append({**head, "operator": operator, "category": OPERATOR_CATEGORIES.get(operator), **drop.record()})
    categories = {unit: OPERATOR_CATEGORIES.get(operator, SEVERAL) for unit, operator in operators.items()}
    for category in dict.fromkeys(OPERATOR_CATEGORIES.get(name, SEVERAL) for name in _in_order(operators.values())):
        keep = [unit for unit, name in categories.items() if name == category]
        drop = pairing.drop([side], f"{built.stem}/{category}", keep)
        out["by_category"].append({**head, "category": category, **drop.record()})
    for level, capabilities in clean.scored.capabilities.items():
        for name in _names(capabilities):
            keep = [unit for unit, names in capabilities.items() if name in names]
            drop = pairing.drop([side], f"{built.stem}/{level}/{name}", keep)
            out["by_capability"].append({**head, "level": level, "capability": name, **drop.record()})


def _per_operator(out: Record, pairing: _Pairing, degraded: Sequence[Side]) -> None:
    groups: dict[tuple[str, str], list[Side]] = {}
    for side in degraded:
        built = side.built
        if built is None or built.variant.kind != "operator":
            continue
        operator = built.variant.operator or SEVERAL
        category = OPERATOR_CATEGORIES.get(operator, SEVERAL)
        drop = pairing.drop([side], built.stem)
        out["by_operator"].append({**pairing.head(built), "operator": operator, "category": category, **drop.record()})
        groups.setdefault((severity_name(built.variant.severity), category), []).append(side)
    for (severity, category), sides in groups.items():
        built = sides[0].built
        assert built is not None
        drop = pairing.drop(sides, f"per_operator/{severity}/{category}")
        operators = [side.built.variant.operator for side in sides if side.built is not None]
        out["by_category"].append({**pairing.head(built), "category": category, "operators": operators, **drop.record()})


def _operators(side: Side, built: BuiltFile) -> dict[str, str]:
    """The operator that all rows of a unit got, for each unit."""
    if side.scored.rule != "circular":
        return {unit: built.rows[row] or SEVERAL for unit, row in side.scored.row_of.items()}
    operators = {}
    for unit, members in circular_groups(side.result.table.rows).items():
        names = {built.rows[index] for index in members}
        operators[unit] = (names.pop() or SEVERAL) if len(names) == 1 else SEVERAL
    return operators


def _in_order(names: Iterable[str]) -> list[str]:
    places = {name: place for place, name in enumerate(OPERATOR_CATEGORIES)}
    return sorted(set(names), key=lambda name: (places.get(name, len(places)), name))


def _names(units: Mapping[str, Sequence[str]]) -> list[str]:
    return sorted({name for names in units.values() for name in names})


def _part(figure: Figure | None, units: Mapping[str, Sequence[str]], name: str) -> Figure | None:
    if figure is None:
        return None
    inside = [i for i, unit in enumerate(figure.ids) if name in units.get(unit, ())]
    return Figure(tuple(figure.ids[i] for i in inside), figure.values[inside])


def _list(pair: tuple[float, float] | None) -> list[float] | None:
    return None if pair is None else list(pair)
