"""How cost grows: with the batch, the area, the variants of a build, its workers, and its rows.

    python benchmarks/growth.py [--runs 3] [--most-pixels 4194304] [--folder benchmarks/results]

CPU time of every operator at mid severity, per picture by batch (256 x 256) and per pixel by area (batch 1): both should stay level or
fall. A build of six photographs by its variants (should be a straight line) and by its workers (should fall until the cores are used up).
Peak memory of a build by rows, each in a process of its own (should stay level). Writes growth.json and growth.png.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch

import degrade
from degrade.build import build

from build import BENCHMARK, configuration, photographs, write_source
from operators import ROOT, machine, seconds
from operators import photographs as square

BATCHES, BATCH_SIZE = (1, 2, 4, 8, 16, 32), 256
SIDES = (64, 128, 256, 512, 1024, 2048)
WORKERS = (1, 2, 3, 4)
ROWS = (12, 24, 48, 96)
VARIANTS = (1, 3, 6, 10, 15)  # operators, each one file
QUICK = [name for name in degrade.OPERATORS if name != "mean_shift"]
Curves = dict[str, dict[int, float]]


def median_of(runs: int, work: Any) -> float:
    """CPU seconds, which others on the machine disturb less than elapsed ones; after one run that is not counted."""
    work()
    return statistics.median(seconds(work)[1] for _ in range(runs))


def by_batch(runs: int) -> Curves:
    """CPU ms a picture."""
    images = square(max(BATCHES), BATCH_SIZE)
    return {
        name: {n: 1e3 * median_of(runs, lambda name=name, n=n: degrade.apply(images[:n], name, "mid", seed=0)) / n for n in BATCHES}
        for name in degrade.OPERATORS
    }


def by_area(runs: int, most: int) -> Curves:
    """CPU ns a pixel, by the side; of mean_shift up to a quarter of the greatest area."""
    found: Curves = {name: {} for name in degrade.OPERATORS}
    for side in (side for side in SIDES if side**2 <= most):
        image = square(1, side)
        for name, curve in found.items():
            if name == "mean_shift" and 4 * side**2 > most:
                continue
            curve[side] = 1e9 * median_of(runs, lambda name=name, image=image: degrade.apply(image, name, "mid", seed=0)) / side**2
    return found


def building(rows: int, operators: list[str], workers: int | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{BENCHMARK}.tsv"
        write_source(source, photographs(rows, 0))
        config = configuration(source, Path(folder) / "output", operators, mixed=False)
        config.per_operator_severities, config.workers = ["high"], workers
        took, busy = seconds(lambda: build(config))
    with Path("/proc/self/status").open(encoding="ascii") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    print(json.dumps({"seconds": took, "cpu_seconds": busy, "peak_mb": peak / 1024}))


def in_process(runs: int, what: str, rows: int, operators: list[str], workers: int | None = None) -> float:
    """The median of a figure of ``building``, each time in a process of its own."""
    program = f"import growth; growth.building({rows}, {operators}, {workers})"
    found = []
    for _ in range(runs):
        done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1])[what])
    return statistics.median(found)


def plot(curves: dict[str, tuple[str, str, Curves]], path: Path) -> None:
    figure, axes = plt.subplots(2, 3, figsize=(20, 12))
    for axis, (title, (across, up, lines)) in zip(axes.flat, curves.items(), strict=False):
        for n, (name, points) in enumerate(lines.items()):
            axis.plot(list(points), list(points.values()), marker="o", label=name, linestyle=("-", "--")[n // 10])
        axis.set(title=title, xlabel=across, ylabel=up)
        if len(lines) > 1:
            axis.set(xscale="log", yscale="log")
            axis.legend(fontsize=7, ncols=2)
        else:
            axis.set_ylim(bottom=0)
    axes.flat[-1].set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--most-pixels", type=int, default=2048**2)
    parser.add_argument("--folder", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    torch.set_num_threads(os.cpu_count() or 1)
    runs = options.runs
    variants = {n: in_process(runs, "seconds", 6, QUICK[:n]) for n in VARIANTS}
    workers = {n: in_process(runs, "seconds", 12, QUICK, n) for n in WORKERS}
    memory = {n: in_process(1, "peak_mb", n, ["gaussian_noise", "dark_illumination"]) for n in ROWS}
    curves = {
        "operators by batch": ("pictures a call", "CPU ms a picture", by_batch(runs)),
        "operators by area": ("side, pixels", "CPU ns a pixel", by_area(runs, options.most_pixels)),
        "build by variants": ("files", "s", {"": variants}),
        "build by workers": ("threads", "s", {"": workers}),
        "peak memory of a build by rows": ("rows", "MB", {"": memory}),
    }
    plot(curves, options.folder / "growth.png")
    for title, (across, up, lines) in curves.items():
        print(f"{title}: {up} by {across}")
        for name, points in lines.items():
            print(f"  {name:24}" + "".join(f"{at:>8}: {value:<10.3f}" for at, value in points.items()))
    settings = {"runs": runs, "batch_size": BATCH_SIZE, "load": os.getloadavg()}
    results = {title: lines for title, (_, _, lines) in curves.items()}
    found = {"machine": machine(), "settings": settings, "results": results}
    (options.folder / "growth.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
