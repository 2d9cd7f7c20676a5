"""Pictures of a report: a heat map of drop by operator and benchmark, and drop against severity. One PNG of each for every model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from degrade.scoring.builds import severity_place
from degrade.suites import OPERATOR_CATEGORIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = Mapping[str, Any]

_WORST = 5.0  # points; a scale of less would make noise look like a finding


def write_plots(folder: Path, report: Record) -> list[Path]:
    """Write ``heatmap_{model}_{severity}.png`` and ``severity_{model}.png`` for what the report holds.

    Returns:
        the files.
    """
    written = []
    for model in dict.fromkeys(f["model"] for f in report["files"].values()):
        rows = [r for r in report["by_operator"] if r["model"] == model and r["drop"] is not None]
        for severity in dict.fromkeys(r["severity"] for r in rows):
            picture = heat_map(model, severity, [r for r in rows if r["severity"] == severity])
            written.append(_save(picture, folder, f"heatmap_{model}_{severity}"))
        drops = [d for d in report["drops"] if d["model"] == model and d["drop"] is not None]
        if drops:
            averages = [a for a in report["averages"] if a["model"] == model and a["drop"] is not None]
            written.append(_save(severity_curve(model, drops, averages), folder, f"severity_{model}"))
    return written


def heat_map(model: str, severity: str, records: Sequence[Record]) -> Figure:
    """Drop in points, operators by benchmarks, with the mean over benchmarks where there are several.

    A per-operator file (every row with that operator) stands before a mixed file's rows with it; the title says which were used.
    """
    figure, axes = _figure(2.8 + 1.15 * (len({r["benchmark"] for r in records}) + 1), 2.2 + 0.34 * len({r["operator"] for r in records}))
    cells: dict[tuple[str, str], Record] = {}
    for record in sorted(records, key=lambda r: r["source"] == "operator"):
        cells[record["operator"], record["benchmark"]] = record
    benchmarks = list(dict.fromkeys(r["benchmark"] for r in records))
    operators = [o for o in OPERATOR_CATEGORIES if any(o == operator for operator, _ in cells)]
    operators += sorted({operator for operator, _ in cells} - set(operators))
    drops = np.array([[100 * cells[o, b]["drop"] if (o, b) in cells else np.nan for b in benchmarks] for o in operators])
    labels = list(benchmarks)
    if len(benchmarks) > 1:
        drops = np.column_stack([drops, drops.mean(axis=1)])
        labels.append("mean")
    worst = max(_WORST, float(np.nanmax(np.abs(drops))))
    image = axes.imshow(drops, cmap="RdBu_r", vmin=-worst, vmax=worst, aspect="auto")
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(operators)), operators)
    for row, column in np.ndindex(*drops.shape):
        value = drops[row, column]
        if not np.isnan(value):
            colour = "white" if abs(value) > 0.6 * worst else "black"
            axes.text(column, row, f"{value + 0.0:+.1f}".replace("-0.0", "+0.0"), ha="center", va="center", fontsize=8, color=colour)
    categories = [OPERATOR_CATEGORIES.get(o) for o in operators]
    for row in range(1, len(operators)):
        if categories[row] != categories[row - 1]:
            axes.axhline(row - 0.5, color="black", linewidth=0.8)
    if len(benchmarks) > 1:
        axes.axvline(len(benchmarks) - 0.5, color="black", linewidth=0.8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    sources = {record["source"] for record in cells.values()}
    what = "per-operator files, else the mixed file's rows"
    if len(sources) == 1:
        what = "per-operator files" if sources == {"operator"} else "the mixed file's rows of each operator"
    axes.set_title(f"{model}: drop by operator at {severity}\n({what})", fontsize=10)
    figure.colorbar(image, ax=axes, label="drop in points (red: worse than clean)", shrink=0.8)
    return figure


def severity_curve(model: str, drops: Sequence[Record], averages: Sequence[Record]) -> Figure:
    """Score against severity, a line for each benchmark with the 95 % interval of its drop, and their mean."""
    figure, axes = _figure(7.4, 4.4)
    palette = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB")
    benchmarks = list(dict.fromkeys(d["benchmark"] for d in drops))
    for number, benchmark in enumerate(benchmarks):
        points = sorted((d for d in drops if d["benchmark"] == benchmark), key=_place)
        _line(axes, points, benchmark, palette[number % len(palette)], 1.4, 0.006 * (number - len(benchmarks) / 2))
    if averages and len(benchmarks) > 1:
        _line(axes, sorted(averages, key=_place), "mean", "black", 2.6)
    places = {"clean": 0.0} | {d["severity"]: _place(d) for d in drops}
    axes.set_xticks(list(places.values()), list(places))
    axes.set_xlabel("severity (at its intensity)")
    axes.set_ylabel("score in per cent; bar: 95 % interval of the drop", fontsize=9)
    axes.set_title(f"{model}: score against severity", fontsize=10)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def _line(axes: Any, points: Sequence[Record], label: str, colour: str, width: float, aside: float = 0.0) -> None:
    """One line; `aside` keeps the bars of several lines apart."""
    x = [aside, *(_place(point) + aside for point in points)]
    y = [100 * points[0]["clean"], *(100 * point["degraded"] for point in points)]
    axes.plot(x, y, marker="o", markersize=4, color=colour, linewidth=width, label=label)
    for point in points:
        if point["ci95"] is not None:
            low, high = point["ci95"]
            ends = [100 * (point["clean"] - high), 100 * (point["clean"] - low)]
            axes.plot([_place(point) + aside] * 2, ends, color=colour, linewidth=width * 0.6, alpha=0.7)


def _place(record: Record) -> float:
    return severity_place(record["severity"])


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure  # slow to load; the class itself keeps no global state, unlike pyplot

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _save(figure: Figure, folder: Path, name: str) -> Path:
    path = folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)}.png"
    figure.savefig(path, dpi=150)
    return path
