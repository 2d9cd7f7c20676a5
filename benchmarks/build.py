"""A whole build against the published way of doing the same.

    python benchmarks/build.py [--small 24] [--large 6] [--slow 4 2] [--runs 3] [--output FILE.json]

All variants (mixed at three severities, sixteen operators at three severities, clean) of `small` photographs around 512 x 512 and `large`
ones of 1536 x 1024, from base64 JPEG in a TSV to base64 JPEG in TSVs. The published way decodes the image anew for every file, one image
a task in a thread pool over all cores: decode, OpenCV's operator, quality-95 encode, base64. Its draws are made beforehand and are not
counted; ours are, with reading, hashing, manifests and writing.

mean_shift is shown apart: OpenCV needs minutes for it. It is timed on `slow` photographs, small and large, and the totals with mean_shift
add that time by pixels. Pure encoding is what all outputs take to be encoded in the same pool, and nothing else: the bound.
Runs are interleaved; medians are printed, all runs are in the JSON.
"""

from __future__ import annotations

import argparse
import base64
import csv
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

import degrade
from degrade import mixture, record
from degrade.build import build, variants
from degrade.config import BuildConfig
from degrade.data import images, sample
from degrade.draws import Stream
from degrade.severity import intensity_of

from operators import REFERENCES, ROOT, machine, noise

BENCHMARK, QUALITY = "Photographs", 95
SMALL, LARGE = 512, (1536, 1024)  # pixels; width and height of the large ones


@dataclass(frozen=True)
class Photograph:
    index: str
    data: bytes  # JPEG

    @property
    def pixels(self) -> int:
        width, height = images.size(self.data)
        return width * height


def photographs(small: int, large: int) -> list[Photograph]:
    """The photographs of the sample, scaled up, turned and mirrored."""
    limit = csv.field_size_limit(2**31 - 1)
    cells: dict[str, None] = {}
    for path in sorted(sample.sample_folder().glob("*.tsv")):
        with path.open(encoding="utf-8", newline="") as file:
            cells |= {
                row["image"]: None for row in csv.DictReader(file, delimiter="\t") if len(row["image"]) > 64 and row["image"][0] != "["
            }
    csv.field_size_limit(limit)
    pictures = [cv2.imdecode(np.frombuffer(base64.b64decode(cell), np.uint8), cv2.IMREAD_COLOR) for cell in cells]
    found = []
    for n in range(small + large):
        size = LARGE if n >= small else (SMALL + 16 * (n % 5 - 2), SMALL + 16 * (n % 3 - 1))
        picture = cv2.resize(np.rot90(pictures[n % len(pictures)], n // len(pictures)), size, interpolation=cv2.INTER_CUBIC)
        found.append(Photograph(str(n), encoded(picture)))
    return found


def write_source(path: Path, pictures: Sequence[Photograph]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(["index", "image", "question", "answer"])
        writer.writerows([p.index, base64.b64encode(p.data).decode(), "What is this?", "A"] for p in pictures)


def configuration(source: Path, output: Path, operators: Sequence[str], *, mixed: bool) -> BuildConfig:
    weights = {name: weight for name, weight in mixture.MMD_BENCH.items() if name in operators}
    return BuildConfig(
        source=str(source),
        output=str(output),
        variants=["mixed", "per_operator", "clean"] if mixed else ["per_operator"],
        per_operator_severities=list(degrade.SEVERITIES),
        operators=list(operators),
        mixture=weights,
        device="cpu",
    )


Task = tuple[str, str | None, float, dict[str, Any]]  # base64 cell, operator, intensity, params


def tasks(pictures: Sequence[Photograph], config: BuildConfig) -> list[list[Task]]:
    """For each file the tasks of the published way, with the draws that ours makes."""
    found = []
    cells = [base64.b64encode(p.data).decode() for p in pictures]
    sizes = [images.size(p.data)[::-1] for p in pictures]
    for variant in variants(config):
        file: list[Task] = []
        for picture, cell, size in zip(pictures, cells, sizes, strict=True):
            if variant.kind == "clean":
                file.append((cell, None, 0.0, {}))
                continue
            key = f"{BENCHMARK}/{picture.index}"
            name = variant.operator or mixture.choose(config.mixture, config.seed, key)
            intensity = intensity_of(variant.severity)
            params = degrade.OPERATORS[name].draw(size, intensity, Stream(config.seed, key, name))
            file.append((cell, name, intensity, record.make(name, intensity, params)["params"]))
        found.append(file)
    return found


def published(task: Task) -> str:
    cell, name, intensity, params = task
    image = cv2.imdecode(np.frombuffer(base64.b64decode(cell), np.uint8), cv2.IMREAD_COLOR_RGB)
    if name is not None:
        image = REFERENCES.get(name, noise)(image, intensity, params)
    return base64.b64encode(encoded(image[..., ::-1])).decode()


def encoded(image: np.ndarray) -> bytes:
    return cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1].tobytes()


def seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """Elapsed, and CPU time of the process."""
    start, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - busy


def compare(
    pictures: Sequence[Photograph], operators: Sequence[str], *, mixed: bool, runs: int, pool: ThreadPoolExecutor
) -> dict[str, Any]:
    """Elapsed and CPU seconds of each run."""
    found: dict[str, Any] = {name: [] for name in ("published", "ours", "encoding")}
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / f"{BENCHMARK}.tsv", Path(folder) / "output"
        write_source(source, pictures)
        config = configuration(source, output, operators, mixed=mixed)
        files = tasks(pictures, config)
        found["files"] = len(files)
        for _ in range(runs):
            found["published"].append(seconds(lambda: [list(pool.map(published, file)) for file in files]))
            shutil.rmtree(output, ignore_errors=True)
            found["ours"].append(seconds(lambda: build(config)))
            timed = [encoding(path, pool) for path in sorted(output.glob("*.tsv"))]
            found["encoding"].append(tuple(map(sum, zip(*(times for times, _ in timed), strict=True))))
            found["images"] = sum(count for _, count in timed)
    return found


def encoding(path: Path, pool: ThreadPoolExecutor) -> tuple[tuple[float, float], int]:
    """Seconds to encode the images of a file of the build, and how many there are."""
    limit = csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8", newline="") as file:
        cells = [row["image"] for row in csv.DictReader(file, delimiter="\t")]
    csv.field_size_limit(limit)
    outputs = [cv2.imdecode(np.frombuffer(base64.b64decode(cell), np.uint8), cv2.IMREAD_COLOR) for cell in cells]
    return seconds(lambda: list(pool.map(encoded, outputs))), len(outputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=24)
    parser.add_argument("--large", type=int, default=6)
    parser.add_argument("--slow", type=int, nargs=2, default=(4, 2), help="photographs that mean_shift is timed on, small and large")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "build.json")
    options = parser.parse_args()
    cores = os.cpu_count() or 1
    cv2.setNumThreads(1)  # the pool is the parallelism
    torch.set_num_threads(cores)
    pictures = photographs(options.small, options.large)
    few = photographs(*options.slow)
    quick = [name for name in degrade.OPERATORS if name != "mean_shift"]
    with ThreadPoolExecutor(cores) as pool:
        compare(few[:1], quick, mixed=True, runs=1, pool=pool)  # warms up
        without = compare(pictures, quick, mixed=True, runs=options.runs, pool=pool)
        apart = compare(few, ["mean_shift"], mixed=False, runs=1, pool=pool)
    more = sum(p.pixels for p in pictures) / sum(p.pixels for p in few)
    totals: dict[str, dict[str, float]] = {}
    for what, n in (("seconds", 0), ("cpu_seconds", 1)):
        plain = {who: statistics.median(run[n] for run in without[who]) for who in ("published", "ours", "encoding")}
        shift = {who: more * statistics.median(run[n] for run in apart[who]) for who in ("published", "ours", "encoding")}
        for name, values in (("without", plain), ("mean_shift", shift), ("with", {who: plain[who] + shift[who] for who in plain})):
            totals[f"{name}, {what}"] = {who: round(value, 3) for who, value in values.items()}
    print(f"{len(pictures)} photographs, {without['files']} + {apart['files']} files, {without['images']} images without mean_shift")
    print(f"{'':26}{'published':>12}{'ours':>10}{'ratio':>8}{'encoding':>10}{'of ours':>9}")
    for name, row in totals.items():
        row["ratio"] = round(row["published"] / row["ours"], 2)
        share = row["encoding"] / row["ours"]
        print(f"{name:26}{row['published']:12.2f}{row['ours']:10.2f}{row['ratio']:8.2f}{row['encoding']:10.2f}{share:9.0%}")
    settings = {"small": options.small, "large": options.large, "slow": options.slow, "runs": options.runs, "load": os.getloadavg()}
    result = {
        "machine": machine(),
        "settings": settings,
        "totals": totals,
        "without": without,
        "mean_shift": apart,
        "scaled_by": round(more, 3),
    }
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
