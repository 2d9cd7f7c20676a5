"""Ours beside the libraries that do about the same thing, on the CPU with all cores.

    python benchmarks/peers.py [--batch 8] [--size 512] [--runs 5] [--output FILE.json]

Six things that most of them have, at about the strength of our mid severity. Each library gets what it is made for: kornia a batch of
floats, torchvision bytes, one image a call (a batch would get one draw), albumentations and imagecorruptions one (H, W, 3) byte image a
task in a thread pool over all cores; ours a batch of bytes, and of floats. Drawing is part of all of them. albumentations and
imagecorruptions are not among this package's extras: `pip install albumentations imagecorruptions`, best in an environment of their own
(imagecorruptions brings another OpenCV, and needs a setuptools that still has pkg_resources). A library that is not there is left out.
Runs are interleaved; medians of elapsed milliseconds a picture are printed, elapsed and CPU time of all runs are in the JSON.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import statistics
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import kornia.augmentation as K
import numpy as np
import torch
from torchvision.transforms import v2

import degrade

from operators import ROOT, machine, photographs, seconds

MID = degrade.SEVERITIES["mid"]
DEVIATION = 75 * MID / 255  # of a range of 1
LENGTH = int(30 * MID)  # pixels of motion
TAPS, SIGMA = 101, 20 * MID  # pixels
QUALITY = int(100 - 95 * MID)
KEEP = 1 - MID  # of the saturation
SCALE = 1 - MID**2  # of the brightness
OURS = {
    "Gaussian noise": "gaussian_noise",
    "motion blur": "motion_blur",
    "Gaussian blur": "lens_blur",
    "JPEG": "jpeg_compression",
    "saturation": "hsv_saturation",
    "brightness": "dark_illumination",
}
Way = Callable[[], Any]


def ours(images: torch.Tensor) -> dict[str, Way]:
    return {thing: lambda name=name: degrade.apply(images, name, "mid", seed=0) for thing, name in OURS.items()}


def of_kornia(images: torch.Tensor) -> dict[str, Way]:
    ways = {
        "Gaussian noise": K.RandomGaussianNoise(0.0, DEVIATION, p=1),
        "motion blur": K.RandomMotionBlur(LENGTH, 180.0, 0.0, p=1),
        "Gaussian blur": K.RandomGaussianBlur((TAPS, TAPS), (SIGMA, SIGMA), p=1),
        "JPEG": K.RandomJPEG((QUALITY, QUALITY), p=1),
        "saturation": K.RandomSaturation((KEEP, KEEP), p=1),
        "brightness": K.RandomBrightness((SCALE, SCALE), p=1),
    }
    return {thing: lambda way=way: way(images) for thing, way in ways.items()}


def of_torchvision(images: torch.Tensor) -> dict[str, Way]:
    ways = {
        "Gaussian noise": v2.GaussianNoise(sigma=DEVIATION),
        "Gaussian blur": v2.GaussianBlur(TAPS, (SIGMA, SIGMA)),
        "JPEG": v2.JPEG((QUALITY, QUALITY)),
        "saturation": v2.ColorJitter(saturation=(KEEP, KEEP)),
        "brightness": v2.ColorJitter(brightness=(SCALE, SCALE)),
    }
    return {thing: lambda way=way: [way(image) for image in images] for thing, way in ways.items()}


def of_albumentations(images: list[np.ndarray], pool: ThreadPoolExecutor) -> dict[str, Way]:
    A = importlib.import_module("albumentations")
    same = {"brightness": (1, 1), "contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0)}
    ways = {
        "Gaussian noise": A.GaussNoise((DEVIATION, DEVIATION), p=1),
        "motion blur": A.MotionBlur((LENGTH, LENGTH), p=1),
        "Gaussian blur": A.GaussianBlur((TAPS, TAPS), (SIGMA, SIGMA), p=1),
        "JPEG": A.ImageCompression("jpeg", (QUALITY, QUALITY), p=1),
        "saturation": A.ColorJitter(**same | {"saturation": (KEEP, KEEP)}, p=1),
        "brightness": A.ColorJitter(**same | {"brightness": (SCALE, SCALE)}, p=1),
    }
    return {thing: lambda way=way: list(pool.map(lambda image: way(image=image)["image"], images)) for thing, way in ways.items()}


def of_imagecorruptions(images: list[np.ndarray], pool: ThreadPoolExecutor) -> dict[str, Way]:
    """Its severities have their own scale; the nearest are taken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        corrupt = importlib.import_module("imagecorruptions").corrupt
    ways = {
        "Gaussian noise": ("gaussian_noise", 2),
        "motion blur": ("motion_blur", 2),
        "Gaussian blur": ("gaussian_blur", 5),
        "JPEG": ("jpeg_compression", 1),
        "saturation": ("saturate", 1),
        "brightness": ("brightness", 2),
    }
    return {
        thing: lambda name=name, severity=severity: list(
            pool.map(lambda image: corrupt(image, corruption_name=name, severity=severity), images)
        )
        for thing, (name, severity) in ways.items()
    }


def works(way: Way, who: str, thing: str) -> bool:
    """Calls it once, which also warms it up; says why it is left out where it fails."""
    try:
        way()
    except Exception as error:  # whatever another library raises: the others are still to be measured
        print(f"{who}: {thing} fails: {type(error).__name__}: {error}")
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "peers.json")
    options = parser.parse_args()
    cores = os.cpu_count() or 1
    cv2.setNumThreads(1)  # the pool is the parallelism
    torch.set_num_threads(cores)
    given = photographs(options.batch, options.size)
    floats = given.float() / 255
    arrays = [np.ascontiguousarray(image.permute(1, 2, 0).numpy()) for image in given]
    versions = {name: importlib.metadata.version(name) for name in ("kornia", "torchvision")}
    rows = []
    with ThreadPoolExecutor(cores) as pool:
        table = {"ours": ours(given), "ours, floats": ours(floats), "kornia": of_kornia(floats), "torchvision": of_torchvision(given)}
        for name, make in (("albumentations", of_albumentations), ("imagecorruptions", of_imagecorruptions)):
            try:
                table[name] = make(arrays, pool)
                versions[name] = importlib.metadata.version(name)
            except ImportError as error:
                print(f"left out: {name}: {error}")
        print(f"{'ms a picture':16}" + "".join(f"{who:>18}" for who in table))
        for thing in OURS:
            ways = {who: ways[thing] for who, ways in table.items() if thing in ways}
            ways = {who: way for who, way in ways.items() if works(way, who, thing)}
            times: dict[str, list[tuple[float, float]]] = {who: [] for who in ways}
            for _ in range(options.runs):
                for who, way in ways.items():
                    way()  # not counted: what another has left of caches and memory is nobody's own cost
                    times[who].append(seconds(way))
            for who, runs in times.items():
                ms, cpu = ([round(1e3 * run[n] / options.batch, 3) for run in runs] for n in (0, 1))
                rows.append({"what": thing, "who": who, "ms": ms, "cpu_ms": cpu})
            medians = {row["who"]: statistics.median(row["ms"]) for row in rows if row["what"] == thing}
            print(f"{thing:16}" + "".join(f"{medians[who]:18.2f}" if who in medians else f"{'':18}" for who in table), flush=True)
    found = machine()
    found["versions"] |= versions
    settings = {"batch": options.batch, "size": options.size, "runs": options.runs, "load": os.getloadavg()}
    options.output.write_text(json.dumps({"machine": found, "settings": settings, "results": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
