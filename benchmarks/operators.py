"""Operators on the CPU against their OpenCV versions in a thread pool on the same cores.

    python benchmarks/operators.py [--operators mean_shift watermark_damage] [--batch 8] [--size 512] [--runs 5] [--slow-runs 1]

The baseline runs one image per task, as the published pipeline does; ours takes the batch in one call, drawing included. Both are timed in
one run, interleaved; a ratio is OpenCV's median over ours (above 1: ours is faster), of elapsed time and of CPU time. Prints a table and
writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

import degrade
from degrade.data import sample

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # the OpenCV versions live with the tests

from tests.reference import REFERENCES  # noqa: E402  (after the path is set)

SLOW = ("mean_shift", "watermark_damage")  # reported one by one: they would swamp a mean


def photographs(count: int, size: int) -> torch.Tensor:
    """(count, 3, size, size) uint8: the sample's photograph, scaled up, and its mirror images and quarter turns."""
    image = cv2.resize(
        cv2.imdecode(np.frombuffer(sample.sample_image(), np.uint8), cv2.IMREAD_COLOR_RGB), (size, size), interpolation=cv2.INTER_CUBIC
    )
    turns = [np.rot90(image[:, ::mirror], quarter).copy() for mirror in (1, -1) for quarter in range(4)]
    return torch.from_numpy(np.stack([turns[n % 8] for n in range(count)])).permute(0, 3, 1, 2).contiguous()


def seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """Elapsed, and CPU time of the whole process, which waiting for a core is not part of."""
    start, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - busy


def noise(image: np.ndarray, intensity: float, params: dict[str, Any]) -> np.ndarray:
    """The published pipeline's noise: its statistics, not our pixels."""
    noisy = image.astype(np.float32) + np.random.normal(0, 75 * intensity, image.shape)  # noqa: NPY002  (as the published pipeline draws it)
    return np.clip(noisy, 0, 255).astype(np.uint8)


def compare(name: str, severity: str, images: torch.Tensor, pool: ThreadPoolExecutor, runs: int) -> dict[str, Any]:
    reference = REFERENCES.get(name, noise)
    _, records = degrade.apply(images, name, severity, seed=0, return_records=True)  # also warms up
    arrays = [np.ascontiguousarray(image.permute(1, 2, 0).numpy()) for image in images]
    jobs = [(array, record["intensity"], record["params"]) for array, record in zip(arrays, records, strict=True)]
    ours, theirs = [], []
    for _ in range(runs):
        theirs.append(seconds(lambda: list(pool.map(lambda job: reference(*job), jobs))))
        ours.append(seconds(lambda: degrade.apply(images, name, severity, seed=0)))
    row: dict[str, Any] = {"operator": name, "severity": severity}
    for n, (time_of, ratio) in enumerate((("ms", "ratio"), ("cpu_ms", "cpu_ratio"))):
        for who, runs_of in (("opencv", theirs), ("ours", ours)):
            row[f"{who}_{time_of}"] = [round(1e3 * run[n] / len(images), 3) for run in runs_of]
        row[ratio] = round(statistics.median(row[f"opencv_{time_of}"]) / statistics.median(row[f"ours_{time_of}"]), 2)
    return row


def machine() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), platform.machine()
    )
    versions = {"python": platform.python_version(), "torch": torch.__version__, "opencv": cv2.__version__, "numpy": np.__version__}
    return {"cpu": cpu, "cores": os.cpu_count(), "commit": commit, "versions": versions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", nargs="+", default=list(degrade.OPERATORS), choices=list(degrade.OPERATORS))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--slow-runs", type=int, default=1, help="of mean_shift, for which OpenCV needs minutes")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "operators.json")
    options = parser.parse_args()

    cores = os.cpu_count() or 1
    cv2.setNumThreads(1)  # the pool is the parallelism
    torch.set_num_threads(cores)
    images = photographs(options.batch, options.size)
    rows = []
    with ThreadPoolExecutor(cores) as pool:
        print(f"{'operator':24}{'severity':>10}{'OpenCV ms':>12}{'ours ms':>10}{'ratio':>8}{'CPU':>8}")
        for name in options.operators:
            for severity in degrade.SEVERITIES:
                row = compare(name, severity, images, pool, options.slow_runs if name == "mean_shift" else options.runs)
                rows.append(row)
                middle = statistics.median(row["opencv_ms"]), statistics.median(row["ours_ms"])
                print(f"{name:24}{severity:>10}{middle[0]:12.2f}{middle[1]:10.2f}{row['ratio']:8.2f}{row['cpu_ratio']:8.2f}", flush=True)
    for ratio in ("ratio", "cpu_ratio"):
        quick = [row[ratio] for row in rows if row["operator"] not in SLOW]
        print(f"geometric mean of {ratio} without {' and '.join(SLOW)}: {statistics.geometric_mean(quick):.2f}" if quick else "")
    settings = {"batch": options.batch, "size": options.size, "runs": options.runs, "slow_runs": options.slow_runs, "load": os.getloadavg()}
    options.output.write_text(json.dumps({"machine": machine(), "settings": settings, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
