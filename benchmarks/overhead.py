"""What ``RandomDegradation`` costs in a training step, beside the same step with kornia's and torchvision's own augmentations.

    python benchmarks/overhead.py [--device cuda] [--batch 64] [--size 224] [--runs 3] [--output FILE.json]

Three tables. *Operators*: images per second of each operator alone (every image degraded, training severities) and of the nearest
augmentation of kornia and torchvision where there is one; so that a user can see what to leave out. *Mixtures*: images per second when
every image is degraded with probability 0.5 by one operator of a mixture. *Steps*: the same in front of one training step of a ResNet-18.
kornia draws for every image of a batch; torchvision draws once for a batch, so it is called image by image, as in a data set.
Runs of one table are interleaved; medians are printed, all runs are in the JSON.  Where others use the machine, read the rates for CPU
time, with ``--threads 1``: waiting for a core is not in them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kornia
import kornia.augmentation as K
import torch
import torchvision
from torch import Tensor
from torchvision.transforms import v2

import degrade
from degrade.mixture import TRAINING

from operators import ROOT, machine, photographs

P = 0.5
SLOW = ("mean_shift", "watermark_damage")
Augment = Callable[[Tensor], Tensor]


def kornia_peers(p: float) -> dict[str, torch.nn.Module]:
    """The nearest augmentation for an operator, at about its strength, applied to each image with probability ``p``."""
    return {
        "lens_blur": K.RandomGaussianBlur((101, 101), (4.6, 18.0), p=p),
        "motion_blur": K.RandomMotionBlur((7, 27), 180.0, 0.0, p=p),
        "hsv_saturation": K.RandomSaturation((0.1, 0.8), p=p),
        "jpeg_compression": K.RandomJPEG((14.0, 78.0), p=p),
        "block_exchange": K.RandomJigsaw((8, 8), p=p),
        "scan_lines": K.RandomErasing((0.02, 0.3), p=p),
        "dark_illumination": K.RandomBrightness((0.2, 0.95), p=p),
        "atmospheric_turbulence": K.RandomElasticTransform(p=p),
        "gaussian_noise": K.RandomGaussianNoise(0.0, 0.2, p=p),
        "sharpness_change": K.RandomSharpness(5.0, p=p),
    }


def torchvision_peers() -> dict[str, Augment]:
    return {
        "lens_blur": v2.GaussianBlur(101, (4.6, 18.0)),
        "hsv_saturation": v2.ColorJitter(saturation=(0.1, 0.8)),
        "jpeg_compression": in_bytes(v2.JPEG((14, 78))),
        "scan_lines": v2.RandomErasing(1, (0.02, 0.3)),
        "dark_illumination": v2.ColorJitter(brightness=(0.2, 0.95)),
        "atmospheric_turbulence": v2.ElasticTransform(),
        "gaussian_noise": v2.GaussianNoise(sigma=0.2),
        "sharpness_change": v2.RandomAdjustSharpness(5, p=1),
    }


def image_by_image(transform: Augment) -> Augment:
    return lambda images: torch.stack([transform(image) for image in images])


def in_bytes(transform: Augment) -> Augment:
    """For a transform that takes bytes only: there and back is part of its cost for floats."""
    return lambda image: transform((image * 255).to(torch.uint8)).float() / 255


def peers_of(name: str) -> dict[str, Augment]:
    found: dict[str, Augment] = {}
    if transform := kornia_peers(1.0).get(name):
        found["kornia"] = transform
    if transform := torchvision_peers().get(name):
        found["torchvision"] = image_by_image(transform)
    return found


def mixtures() -> dict[str, Augment]:
    quick = {name: weight for name, weight in TRAINING.items() if name in degrade.OPERATORS and name not in SLOW}
    one_of, peers = list(torchvision_peers().values()), kornia_peers(1.0)
    return {
        "degrade, training": degrade.RandomDegradation("training", p=P),
        f"degrade, training without {' and '.join(SLOW)}": degrade.RandomDegradation(quick, p=P),
        f"kornia, {len(peers)} peers, each with p = {P}/{len(peers)}": K.ImageSequential(*kornia_peers(P / len(peers)).values()),
        f"torchvision, one of {len(one_of)} peers": image_by_image(v2.RandomApply([v2.RandomChoice(one_of)], p=P)),
    }


def training_step(device: torch.device) -> Callable[[Tensor], None]:
    model = torchvision.models.resnet18(num_classes=10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(images: Tensor) -> None:
        labels = torch.zeros(len(images), dtype=torch.int64, device=images.device)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def timed(ways: dict[str, Callable[[Tensor], Any]], images: Tensor, runs: int) -> dict[str, list[tuple[float, float]]]:
    """(elapsed, CPU) seconds of each run of each way, after one on a few images that is not counted."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for way in ways.values():
        way(images[:4])
    for run in range(runs):
        for name, way in ways.items():
            torch.manual_seed(run)
            synchronize(images.device)
            began, busy = time.perf_counter(), time.process_time()
            way(images)
            synchronize(images.device)
            seconds[name].append((time.perf_counter() - began, time.process_time() - busy))
    return seconds


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def rows_of(table: str, group: str, seconds: dict[str, list[tuple[float, float]]], count: int) -> list[dict[str, Any]]:
    rows = []
    for name, runs in seconds.items():
        elapsed, busy = zip(*runs, strict=True)
        row = {
            "table": table,
            "group": group,
            "way": name,
            "seconds": [round(s, 4) for s in elapsed],
            "cpu_seconds": [round(s, 4) for s in busy],
        }
        row |= {"images_per_second": round(count / statistics.median(elapsed), 1)}
        row |= {"images_per_cpu_second": round(count / statistics.median(busy), 1)}
        rows.append(row)
        print(f"{group:24}{name:58}{row['images_per_second']:10.1f} /s{row['images_per_cpu_second']:10.1f} / CPU s", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--operators", nargs="*", default=list(degrade.OPERATORS), choices=list(degrade.OPERATORS))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.set_num_threads(options.threads)
    images = (photographs(options.batch, options.size).float() / 255).to(device)
    rows: list[dict[str, Any]] = []
    for name in options.operators:
        ways = {"degrade": degrade.RandomDegradation({name: 1}, p=1), **peers_of(name)}
        rows += rows_of("operators", name, timed(ways, images, options.runs), options.batch)
    rows += rows_of("mixtures", "", timed(mixtures(), images, options.runs), options.batch)
    step = training_step(device)
    steps: dict[str, Callable[[Tensor], None]] = {"no augmentation": step}
    steps |= {name: lambda images, augment=augment: step(augment(images)) for name, augment in mixtures().items()}
    rows += rows_of("steps", "ResNet-18", timed(steps, images, options.runs), options.batch)
    found = machine()
    found["versions"] |= {"kornia": kornia.__version__, "torchvision": torchvision.__version__}
    found |= {"threads": options.threads, "load_average": os.getloadavg()}
    if device.type == "cuda":
        found["device"] = torch.cuda.get_device_name(device)
    settings = {"device": options.device, "batch": options.batch, "size": options.size, "runs": options.runs, "dtype": "float32"}
    output = options.output or ROOT / "benchmarks" / "results" / f"overhead_{device.type}.json"
    output.write_text(json.dumps({"machine": found, "settings": settings, "results": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
