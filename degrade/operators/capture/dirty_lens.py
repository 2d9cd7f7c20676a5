"""Dirty lens: blurred grey smears, specks and blobs mixed into the image (operators.md, capture)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from degrade.draws import Stream, randint
from degrade.kernels import filter, quantize, raster
from degrade.operator import Operator, Plan, Size, per_image

SMEARS, SMEARS_FROM, SMEAR_LEVEL = 10, 0.1, 50  # int(10 i) of them, above this intensity
SMEAR_LONG, SMEAR_SHORT = (150, 300), (100, 200)  # half-axes in pixels
SPECKS, SPECK_RADIUS, SPECK_LEVEL = 300, (4, 20), (50, 100)  # int(300 i) of them
BLOBS, BLOBS_FROM = 5, 0.5  # int(5 i) of them, above this intensity
BLOB_OUTER, BLOB_INNER = (20, 50), (10, 30)  # radii in pixels
OUTER_LEVEL, INNER_LEVEL = 80, 120
KERNEL_SIZE, SIGMA = 241, 30.0  # pixels
KEPT, MIXED = 0.7, 0.8  # blend weights 1 - 0.7 i and 0.8 i

_CENTRE = [raster.POSITION] * 2


@dataclass(frozen=True)
class Params:
    """smears: x, y, half-axes and angle in degrees, clockwise; specks: x, y, radius, level; blobs: x, y, outer and inner radius."""

    smears: tuple[tuple[int, int, int, int, int], ...]
    specks: tuple[tuple[int, int, int, int], ...]
    blobs: tuple[tuple[int, int, int, int], ...]


class DirtyLens(Operator[Params]):
    """blend(image, 1 - 0.7 i, trunc(blurred dirt), 0.8 i); draws the dirt.

    Gradient: linear in the image; in the intensity through the weights.
    """

    name = "dirty_lens"
    category = "capture"
    params = Params

    def draw(self, size: Size, intensity: float, stream: Stream) -> Params:
        height, width = size
        smears = int(SMEARS * intensity) if intensity > SMEARS_FROM else 0
        blobs = int(BLOBS * intensity) if intensity > BLOBS_FROM else 0
        return Params(
            tuple(
                (
                    randint(x, 0, width),
                    randint(y, 0, height),
                    randint(long, *SMEAR_LONG),
                    randint(short, *SMEAR_SHORT),
                    randint(angle, 0, 180),
                )
                for x, y, long, short, angle in stream.uniforms("smears", smears, 5).tolist()
            ),
            tuple(
                (randint(x, 0, width), randint(y, 0, height), randint(radius, *SPECK_RADIUS), randint(level, *SPECK_LEVEL))
                for x, y, radius, level in stream.uniforms("specks", int(SPECKS * intensity), 4).tolist()
            ),
            tuple(
                (randint(x, 0, width), randint(y, 0, height), randint(outer, *BLOB_OUTER), randint(inner, *BLOB_INNER))
                for x, y, outer, inner in stream.uniforms("blobs", blobs, 4).tolist()
            ),
        )

    def check(self, size: Size, intensity: float, params: Params) -> None:
        raster.check_marks("smears", params.smears, [*_CENTRE, raster.LENGTH, raster.LENGTH, raster.POSITION])
        raster.check_marks("specks", params.specks, [*_CENTRE, raster.LENGTH, raster.LEVEL])
        raster.check_marks("blobs", params.blobs, [*_CENTRE, raster.LENGTH, raster.LENGTH])

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Params]) -> Plan:
        kernel = torch.from_numpy(filter.gaussian_weights(KERNEL_SIZE, SIGMA))
        return {
            "dirt": torch.from_numpy(_painted(size, params)),
            "kernel": kernel.repeat(len(params), 1),
        }

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        dirt = filter.gaussian_blur(plan["dirt"].to(images.dtype), plan["kernel"])
        return quantize.blend(images, per_image(1 - KEPT * intensity, images), dirt, per_image(MIXED * intensity, images))


def _painted(size: Size, params: Sequence[Params]) -> raster.Canvas:
    """The dirt before the blur, (B, 1, H, W) levels."""
    smears, specks, blobs = [p.smears for p in params], [p.specks for p in params], [p.blobs for p in params]
    smear, speck, blob = (np.array([mark for marks in group for mark in marks], dtype=np.int64) for group in (smears, specks, blobs))
    speck, blob = speck.reshape(-1, 4), blob.reshape(-1, 4)
    discs = np.stack([blob[:, [0, 1, 2]], blob[:, [0, 1, 3]]], axis=1).reshape(-1, 3)  # each inner disc right after its outer one
    layers: list[raster.Layer] = [
        (raster.ellipses(smear, size), np.full(len(smear), SMEAR_LEVEL), raster.owners(smears)),
        (raster.circles(speck[:, :3], size), speck[:, 3], raster.owners(specks)),
        (raster.circles(discs, size), np.tile([OUTER_LEVEL, INNER_LEVEL], len(blob)), np.repeat(raster.owners(blobs), 2)),
    ]
    return raster.paint(layers, size, len(params))
