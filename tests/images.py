"""Test images: seeded synthetic ones of any size, and crops of the photographs inside the package."""

from __future__ import annotations

import base64
import csv
import functools

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from degrade.data.sample import sample_folder

Pixels = npt.NDArray[np.uint8]
_CELL_LIMIT = 2**31 - 1  # characters


def noise(height: int, width: int, seed: int = 0) -> Pixels:
    """(H, W, 3) RGB: every level independent."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def scene(height: int, width: int, seed: int = 0) -> Pixels:
    """(H, W, 3) RGB: smooth colours, edges, a little grain, and some fully black and white pixels."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    phase = rng.uniform(0, 6, 3)
    planes = [128 + 90 * np.sin(x / 17 + p) * np.cos(y / 23 - p) + 30 * ((x // 20 + y // 13 + k) % 2) for k, p in enumerate(phase)]
    pixels = np.stack(planes, -1) + rng.normal(0, 2, (height, width, 3))
    pixels[rng.random((height, width)) < 0.02] = 255
    pixels[rng.random((height, width)) < 0.02] = 0
    return pixels.clip(0, 255).astype(np.uint8)


def page(height: int, width: int, seed: int = 0) -> Pixels:
    """(H, W, 3) RGB: a white page with dark text."""
    pixels = np.full((height, width, 3), 255, np.uint8)
    rng = np.random.default_rng(seed)
    for baseline in range(12, height + 12, 14):
        text = "".join(chr(c) for c in rng.integers(33, 122, 1 + width // 8))
        colour = [int(c) for c in rng.integers(0, 90, 3)]
        cv2.putText(pixels, text, (2, baseline), cv2.FONT_HERSHEY_SIMPLEX, 0.4, colour)
    return pixels


@functools.cache
def _photographs() -> tuple[Pixels, ...]:
    limit = csv.field_size_limit(_CELL_LIMIT)
    try:
        with (sample_folder() / "MMStar.tsv").open(encoding="utf-8", newline="") as file:
            encoded = [base64.b64decode(row["image"]) for row in csv.DictReader(file, delimiter="\t")]
    finally:
        csv.field_size_limit(limit)
    decoded = [cv2.imdecode(np.frombuffer(e, np.uint8), cv2.IMREAD_COLOR) for e in encoded]
    return tuple(np.ascontiguousarray(d[..., ::-1]) for d in decoded)


def photograph(height: int, width: int, number: int = 0) -> Pixels:
    """(H, W, 3) RGB: the middle of a photograph, scaled down first where that fills the size."""
    image = _photographs()[number % len(_photographs())]
    scale = max(height / image.shape[0], width / image.shape[1])
    size = max(width, round(image.shape[1] * scale)), max(height, round(image.shape[0] * scale))
    scaled = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    top, left = (scaled.shape[0] - height) // 2, (scaled.shape[1] - width) // 2
    return np.ascontiguousarray(scaled[top : top + height, left : left + width])


KINDS = {"noise": noise, "scene": scene, "page": page, "photograph": photograph}


def tensor(pixels: Pixels) -> Tensor:
    """(H, W, C) pixels as a (C, H, W) tensor."""
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def pixels(image: Tensor) -> Pixels:
    """The inverse of ``tensor``."""
    array: Pixels = image.permute(1, 2, 0).contiguous().numpy()
    return array


def batch(count: int, height: int, width: int, seed: int = 0) -> Tensor:
    """(B, 3, H, W) uint8: different images of all kinds but the page."""
    kinds = (scene, noise, photograph)
    shown = [tensor(kinds[n % len(kinds)](height, width, seed + n)) for n in range(count)]
    return torch.stack(shown) if shown else torch.empty(0, 3, height, width, dtype=torch.uint8)
