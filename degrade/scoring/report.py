"""A report for people: tables for the terminal and CSV files, from the plain data of :mod:`degrade.scoring.mmd` and of MMR."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from degrade.data.staging import make_folder
from degrade.scoring.builds import severity_place
from degrade.suites import OPERATOR_CATEGORIES

Record = Mapping[str, Any]
UNDEFINED = "-"
_DROP_HEADER = ["clean", "degraded", "drop", "95 %", "kept", "right>wrong", "wrong>right", "McNemar p"]

TABLES = ("files", "drops", "averages", "by_operator", "by_category", "by_capability")


def grid(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in plain text: the first column to the left, the others to the right.

    >>> print(grid(["name", "n"], [["a", "10"], ["long", "2"]]))
    name   n
    a     10
    long   2
    """
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    lines = [[line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))] for line in lines]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def per_cent(value: float | None, places: int = 2) -> str:
    """A fraction in per cent, without the sign; "-" for what is undefined.

    >>> per_cent(0.41667), per_cent(None)
    ('41.67', '-')
    """
    return UNDEFINED if value is None else f"{round(100 * value, places) + 0.0:.{places}f}"  # no -0.00


def _between(pair: Sequence[float] | None) -> str:
    return UNDEFINED if pair is None else f"[{per_cent(pair[0], 1)}, {per_cent(pair[1], 1)}]"


def _p(value: float | None) -> str:
    return UNDEFINED if value is None else "<.0001" if value < 0.0001 else f"{value:.4f}"


def mmd_table(report: Record) -> str:
    """What `score` prints: scores, drops, averages, operators, notes. All figures in per cent."""
    shown = {stem: f for stem, f in report["files"].items() if not report["build"] or "/" not in f["variant"]}
    parts: list[str] = []
    header = ["file", "score", "95 %", "rows", "unparsed", "other figures", "scored by"]
    rows = [
        [
            stem,
            per_cent(f["score"]),
            _between(f["ci95"]),
            str(f["n"]),
            UNDEFINED if f["unparsed"] is None else str(f["unparsed"]),
            ", ".join(f"{name} {per_cent(f[name])}" for name in ("row_score", "pair_score", "source_mean") if name in f) or UNDEFINED,
            f["scored_by"] + (f" by {f['judge']}" if f["judge"] and f["judge"] != "judge" else ""),
        ]
        for stem, f in shown.items()
    ]
    more = len(report["files"]) - len(shown)
    parts.append("Scores, in per cent\n" + grid(header, rows) + (f"\nand {more} more, per operator, in files.csv" if more else ""))
    if report["drops"]:
        header = ["drop", "severity", *_DROP_HEADER, "clean side"]
        rows = [
            [
                f"{d['model']} {d['benchmark']}",
                d["severity"],
                *_drop_cells(d),
                f"{d['clean_side']} {d['clean_file']}",
            ]
            for d in report["drops"]
        ]
        parts.append("Drops, in points of per cent; kept: the share of the clean score\n" + grid(header, rows))
    if report["averages"]:
        header = ["average", "severity", "benchmarks", "clean", "degraded", "drop", "95 %", "kept", "with R-Bench-Dis"]
        rows = [
            [
                a["model"],
                a["severity"],
                str(len(a["benchmarks"])),
                *map(per_cent, (a["clean"], a["degraded"], a["drop"])),
                _between(a["ci95"]),
                per_cent(a["kept"], 1),
                per_cent(a["with_r_bench_dis"]),
            ]
            for a in report["averages"]
        ]
        parts.append("Means over benchmarks (CV-Bench-2D by its mean over sources)\n" + grid(header, rows))
    parts += [_strata(report, "by_category", "category"), _strata(report, "by_operator", "operator"), _capabilities(report)]
    parts = [part for part in parts if part]
    if report["build"] and not report["build"]["standard"]:
        parts.append(f"This build is not standard: {report['build']['why_not']}; such rows count on neither side of a drop.")
    if report["notes"]:
        parts.append("\n".join(f"note: {note}" for note in report["notes"]))
    return "\n\n".join(parts)


def _strata(report: Record, table: str, name: str) -> str:
    """Drops by operator or category: a grid for each model, severity and kind of file, with a column for each benchmark."""
    grids = []
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in report[table]:
        groups.setdefault((record["model"], record["severity"], record["source"]), []).append(record)
    by_place = sorted(groups.items(), key=lambda group: (group[0][0], group[0][2] != "mixed", severity_place(group[0][1])))
    for (model, severity, source), records in by_place:
        benchmarks = list(dict.fromkeys(r["benchmark"] for r in records))
        cells = {(r[name], r["benchmark"]): f"{per_cent(r['drop'], 1)} {_between(r['ci95'])}" for r in records}
        order = list(OPERATOR_CATEGORIES if name == "operator" else dict.fromkeys(OPERATOR_CATEGORIES.values()))
        keys = sorted({r[name] for r in records}, key=lambda key: order.index(key) if key in order else len(order))
        rows = [[key, *(cells.get((key, b), UNDEFINED) for b in benchmarks)] for key in keys]
        what = "rows of the mixed files" if source == "mixed" else "per-operator files"
        grids.append(f"Drop by {name} at {severity}, {model}, {what}\n" + grid([name, *benchmarks], rows))
    return "\n\n".join(grids)


def _capabilities(report: Record) -> str:
    """Drops by capability, a column for each severity; the finer level is in by_capability.csv alone."""
    records = [r for r in report["by_capability"] if r["level"] == "category"]
    severities = sorted({r["severity"] for r in records}, key=severity_place)
    cells = {(r["model"], r["benchmark"], r["capability"], r["severity"]): r for r in records}
    rows = []
    for key in dict.fromkeys((r["model"], r["benchmark"], r["capability"]) for r in records):
        drops = [cells.get((*key, severity)) for severity in severities]
        one = next(r for r in drops if r is not None)
        shown = [UNDEFINED if r is None else f"{per_cent(r['drop'], 1)} {_between(r['ci95'])}" for r in drops]
        rows.append([" ".join(key), str(one["n"]), per_cent(one["clean"]), *shown])
    return "Drop by capability\n" + grid(["capability", "n", "clean", *severities], rows) if rows else ""


def _drop_cells(d: Record) -> list[str]:
    return [
        *map(per_cent, (d["clean"], d["degraded"], d["drop"])),
        _between(d["ci95"]),
        per_cent(d["kept"], 1),
        per_cent(d["right_to_wrong"], 1),
        per_cent(d["wrong_to_right"], 1),
        _p(d["mcnemar_p"]),
    ]


def mmr_table(report: Record) -> str:
    """What `mmr` prints."""
    overall = report["overall"]
    parts = []
    header = ["MMR", "pairs", "RR", "RW", "RA %", "MR %"]
    rows = [[name, *_rate_cells(rates)] for name, rates in _mmr_rows(report)]
    parts.append(f"Profile {report['profile']}, {report['unparsed']} unparsed\n" + grid(header, rows))
    if other := report["other_profile"]:
        o = other["overall"]
        parts.append(
            f"Profile {other['profile']} reads some answers differently: RA {_rate(o['ra'])}, MR {_rate(o['mr'])} "
            f"(here {_rate(overall['ra'])}, {_rate(overall['mr'])}), {other['unparsed']} unparsed"
        )
    for table, name in (("by_severity", "severity"), ("by_category", "category"), ("by_operator", "operator")):
        if report.get(table):
            rates = ["RA clean", "RA", "drop", "95 %", "MR clean", "MR", "rise", "95 %"]
            header = [name, "severity", "pairs", *rates, "right>wrong", "wrong>right", "p"]
            rows = [
                [
                    str(r[name]),
                    f"{r['severity']}{' file' if r['source'] == 'operator' else ''}",
                    str(r["n"]),
                    *(_rate(r[k]) for k in ("clean_ra", "ra", "ra_drop")),
                    _rates(r["ra_drop_ci95"]),
                    *(_rate(r[k]) for k in ("clean_mr", "mr", "mr_rise")),
                    _rates(r["mr_rise_ci95"]),
                    per_cent(r["right_to_wrong"], 1),
                    per_cent(r["wrong_to_right"], 1),
                    _p(r["mcnemar_p"]),
                ]
                for r in report[table]
            ]
            clean = report["clean"]
            parts.append(f"Under degradation, by {name}; clean side: {clean['side']} ({clean['file']})\n" + grid(header, rows))
    if report["oddities"]:
        parts.append("Odd in the question file:\n" + "\n".join(f"  {oddity}" for oddity in report["oddities"]))
    if report.get("notes"):
        parts.append("\n".join(f"note: {note}" for note in report["notes"]))
    return "\n\n".join(parts)


def _mmr_rows(report: Record) -> list[tuple[str, Record]]:
    return [("overall", report["overall"]), *report["levels"].items(), *report["categories"].items()]


def _rate_cells(rates: Record) -> list[str]:
    return [str(rates["n"]), str(rates["rr"]), str(rates["rw"]), _rate(rates["ra"]), _rate(rates["mr"])]


def _rate(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.2f}"


def _rates(pair: Sequence[float] | None) -> str:
    return UNDEFINED if pair is None else f"[{pair[0]:.1f}, {pair[1]:.1f}]"


def write_json(path: Path, report: Record) -> None:
    """Write a report; NaN has no place in it."""
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def write_csv(path: Path, records: Iterable[Record]) -> None:
    """Write records as CSV: what is nested or a list becomes columns of its own (an interval "_low" and "_high"), undefined is empty."""
    flat = [_flat(record) for record in records]
    columns = list(dict.fromkeys(name for record in flat for name in record))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(flat)


def _flat(record: Record, prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{name}."))
        elif name.endswith("ci95"):
            low, high = value if value is not None else ("", "")
            flat[f"{prefix}{name}_low"], flat[f"{prefix}{name}_high"] = low, high
        else:
            flat[prefix + name] = ";".join(map(str, value)) if isinstance(value, list) else "" if value is None else value
    return flat


def write_mmd(folder: Path, report: Record) -> None:
    """Write score.json and a CSV file for each table that has something in it."""
    make_folder(folder)
    write_json(folder / "score.json", report)
    for table in TABLES:
        records = [{"file": stem} | f for stem, f in report["files"].items()] if table == "files" else report[table]
        if records:
            write_csv(folder / f"{table}.csv", [{k: v for k, v in record.items() if k != "capabilities"} for record in records])
    capabilities = [
        {"file": stem, "level": level, "capability": name} | part
        for stem, f in report["files"].items()
        for level, parts in f["capabilities"].items()
        for name, part in parts.items()
    ]
    if capabilities:
        write_csv(folder / "capabilities.csv", capabilities)


def write_mmr(folder: Path, report: Record) -> None:
    """Write mmr.json, its rates as rates.csv, and a CSV file for each table of the report under degradation."""
    make_folder(folder)
    write_json(folder / "mmr.json", report)
    write_csv(folder / "rates.csv", [{"part": name} | dict(rates) for name, rates in _mmr_rows(report)])
    for table in ("by_severity", "by_category", "by_operator"):
        if report.get(table):
            write_csv(folder / f"{table}.csv", report[table])
