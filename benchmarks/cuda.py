"""All operators on a CUDA device: equal to the CPU's, how fast, and how far from the device's memory bandwidth.

    python benchmarks/cuda.py [--device cuda] [--tiny] [--operators mean_shift ...] [--runs 5] [--output FILE.json]

Four tables, each printed and written to the JSON as soon as it is known; about three minutes on a data-centre GPU.

- *equality*: bytes on the device against bytes on the CPU, every operator at three severities: how many values differ (0 is wanted).
  Beside it the greatest distance of the float results in levels and the cosine of the gradients, where sums may run in another order.
- *operators*: images per second, with the draws and the upload of the plan, at 512 x 512, batch 64; the rate of a plain copy, which no
  operator that reads and writes every pixel can beat; milliseconds until the host is free again; launches and their device time.  Bytes at
  three severities; at mid also floats, and floats with the gradient of images and intensity.
- *mixtures*: the same for ``RandomDegradation`` at 224 x 224, batch 256.
- *build*: a whole build of 32 photographs, three mixed files and one for each operator.

``--device cpu --tiny`` runs all of it on a few pixels; there are no launches then, and operations of torch are counted alone.
Exit status 1: some bytes differ.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

import degrade
from degrade.build import build
from degrade.config import BuildConfig
from degrade.data import images as files
from degrade.data import sample

ROOT = Path(__file__).parent.parent
ONE_GIB = 2**30
GRADIENT = "floats and their gradient"


@dataclass(frozen=True)
class Sizes:
    """(count, height, width) of each table's images."""

    equality: tuple[int, int, int] = (4, 250, 333)
    operators: tuple[int, int, int] = (64, 512, 512)
    mixtures: tuple[int, int, int] = (256, 224, 224)
    build: tuple[int, int, int] = (32, 512, 512)
    copy: int = ONE_GIB  # bytes


TINY = Sizes((2, 24, 31), (2, 16, 16), (4, 16, 16), (2, 16, 24), 2**20)


def photographs(count: int, height: int, width: int) -> Tensor:
    """(count, 3, height, width) uint8: the sample's photograph in that size, shifted a little further from image to image."""
    image = files.decode(sample.sample_image())[None].float()
    image = torch.nn.functional.interpolate(image, (height, width), mode="bicubic", antialias=True).round().clamp(0, 255).to(torch.uint8)
    return torch.cat([image.roll((5 * n, 3 * n), (2, 3)) for n in range(count)])


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(work: Callable[[], object], device: torch.device, runs: int) -> dict[str, Any]:
    """Seconds of ``runs`` calls after one that is not counted, and what one more call launches."""
    work()
    synchronize(device)
    whole, host = [], []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        host.append(time.perf_counter() - began)
        synchronize(device)
        whole.append(time.perf_counter() - began)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    with profile(activities=activities) as found:
        work()
        synchronize(device)
    events = found.events() or []
    launched = [e for e in events if e.device_type == DeviceType.CUDA and not e.name.startswith(("Memcpy", "Memset"))]
    return {
        "seconds": [round(s, 6) for s in whole],
        "host_ms": round(1e3 * statistics.median(host), 3),
        "operations": sum(e.name.startswith("aten::") for e in events),
        "launches": len(launched),
        "device_ms": round(sum(e.time_range.elapsed_us() for e in launched) / 1e3, 3),
        "peak_mb": round(torch.cuda.max_memory_allocated(device) / 1e6) if device.type == "cuda" else None,
    }


def copies_per_second(device: torch.device, size: int, runs: int) -> float:
    """Bytes per second of a copy on the device, of which each is read once and written once."""
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return size / min(timed(lambda: target.copy_(source), device, runs)["seconds"])


def equality(name: str, severity: str, images: Tensor, device: torch.device) -> dict[str, Any]:
    wanted, records = degrade.apply(images, name, severity, seed=1, return_records=True)
    differing = int((degrade.replay(images.to(device), records).cpu() != wanted).sum())
    floats = [(images.float() / 255).to(where).requires_grad_() for where in ("cpu", device)]
    results = [degrade.replay(f, records) for f in floats]
    for result in results:
        result.square().sum().backward()
    here, there = (result.detach().cpu() for result in results)
    gradients = [f.grad.cpu().flatten() for f in floats if f.grad is not None]
    return {
        "operator": name,
        "severity": severity,
        "differing": differing,
        "values": images.numel(),
        "greatest_float_distance": round(255 * (here - there).abs().max().item(), 6),
        "gradient_cosine": round(torch.nn.functional.cosine_similarity(*gradients, 0).item(), 6),
    }


def speed(work: Callable[[], object], batch: Tensor, runs: int, copied: float, **what: str) -> dict[str, Any]:
    measured = timed(work, batch.device, runs)
    size = batch[0].numel() * batch.element_size()
    return {
        **what,
        "images_per_second": round(len(batch) / statistics.median(measured["seconds"]), 1),
        "copies_per_second": round(copied / size),
        **measured,
    }


def with_gradient(images: Tensor, name: str) -> Callable[[], object]:
    """A forward and backward pass of one operator at mid, for the gradients of images and intensity."""
    images = images.clone().requires_grad_()
    intensity = torch.full((len(images),), degrade.SEVERITIES["mid"], dtype=torch.float64, device=images.device, requires_grad=True)
    weights = torch.ones_like(images)

    def work() -> None:
        images.grad = intensity.grad = None
        degrade.apply(images, name, intensity, seed=0).backward(weights)

    return work


def mixtures(images: Tensor) -> dict[str, Callable[[], object]]:
    floats = (images.float() / 255).requires_grad_()

    def with_gradient() -> None:
        degrade.RandomDegradation("training", seed=0)(floats, keys=keys).sum().backward()

    keys = [str(n) for n in range(len(images))]
    quick = {name: 1.0 for name in degrade.OPERATORS if name not in ("mean_shift", "watermark_damage")}
    return {
        "training, floats": lambda: degrade.RandomDegradation("training")(floats.detach(), keys=keys),
        f"training, {GRADIENT}": with_gradient,
        "training, bytes": lambda: degrade.RandomDegradation("training")(images, keys=keys),
        "every image, without mean_shift and watermark_damage, bytes": lambda: degrade.RandomDegradation(quick, p=1)(images, keys=keys),
    }


def whole_build(device: torch.device, shape: tuple[int, int, int]) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "photographs"
        source.mkdir()
        for n, image in enumerate(photographs(*shape)):
            (source / f"{n:03}.jpg").write_bytes(files.encode(image))
        for operators in ("all", "all but mean_shift"):
            names = [name for name in degrade.OPERATORS if operators == "all" or name != "mean_shift"]
            config = BuildConfig(
                source=str(source),
                output=str(Path(folder) / operators.replace(" ", "_")),
                variants=["mixed", "per_operator"],
                operators=names,
                mixture=dict.fromkeys(names, 1.0),
                device=str(device),
            )
            report = build(config)
            if not report.ok:
                raise RuntimeError(f"the build failed: {report}")
            outputs = report.images * len(report.files)
            row = {"operators": operators, "sources": report.images, "outputs": outputs, "seconds": round(report.seconds, 3)}
            rows.append({**row, "outputs_per_second": round(outputs / report.seconds, 1)})
    return rows


def machine(device: torch.device) -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    versions = {"python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda, "degrade": degrade.__version__}
    return {"device": name, "cores": os.cpu_count(), "commit": commit, "versions": versions}


def shown(table: str, row: dict[str, Any]) -> None:
    print(f"{table:12}", *(f"{key}={value}" for key, value in row.items() if key != "seconds" or not isinstance(value, list)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--operators", nargs="+", default=list(degrade.OPERATORS), choices=list(degrade.OPERATORS))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    device, sizes = torch.device(options.device), TINY if options.tiny else Sizes()
    output = options.output or ROOT / "benchmarks" / "results" / f"cuda{'_tiny' if options.tiny else ''}_{device.type}.json"
    began = time.perf_counter()
    tables: dict[str, list[dict[str, Any]]] = {"equality": [], "operators": [], "mixtures": [], "build": []}

    def put(table: str, row: dict[str, Any]) -> None:
        tables[table].append(row)
        shown(table, row)
        settings = {"tiny": options.tiny, "runs": options.runs, "sizes": vars(sizes), "seconds": round(time.perf_counter() - began, 1)}
        found = {"machine": machine(device), "settings": settings, "results": tables}
        output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

    images = photographs(*sizes.equality)
    for name in options.operators:
        for severity in degrade.SEVERITIES:
            put("equality", equality(name, severity, images, device))
    copied = copies_per_second(device, sizes.copy, options.runs)
    images = photographs(*sizes.operators).to(device)
    for name in options.operators:
        for severity in degrade.SEVERITIES:
            work = lambda name=name, severity=severity: degrade.apply(images, name, severity, seed=0)  # noqa: E731
            put("operators", speed(work, images, options.runs, copied, operator=name, severity=severity, images="bytes"))
    floats = images.float() / 255
    for name in options.operators:
        for what, work in (
            ("floats", lambda name=name: degrade.apply(floats, name, "mid", seed=0)),
            (GRADIENT, with_gradient(floats, name)),
        ):
            put("operators", speed(work, floats, options.runs, copied, operator=name, severity="mid", images=what))
    batch = photographs(*sizes.mixtures).to(device)
    for name, work in mixtures(batch).items():
        put("mixtures", speed(work, batch, options.runs, copied, mixture=name))
    for row in whole_build(device, sizes.build):
        put("build", row)
    different = [row for row in tables["equality"] if row["differing"]]
    if different:
        sys.exit(f"{len(different)} of {len(tables['equality'])} results differ from the CPU's")


if __name__ == "__main__":
    main()
