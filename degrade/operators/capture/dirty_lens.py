"""Dirty lens: blurred grey smears, specks and blobs mixed into the image (operators.md, capture)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from degrade.draws import Stream
from degrade.kernels import filter, quantize, raster
from degrade.operator import Operator, Plan, Size

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
        centre = (0, width), (0, height)
        return Params(
            stream.integers("smears", smears, *centre, SMEAR_LONG, SMEAR_SHORT, (0, 180)),
            stream.integers("specks", int(SPECKS * intensity), *centre, SPECK_RADIUS, SPECK_LEVEL),
            stream.integers("blobs", blobs, *centre, BLOB_OUTER, BLOB_INNER),
        )

    def check(self, size: Size, intensity: float, params: Params) -> None:
        raster.check_marks("smears", params.smears, [*_CENTRE, raster.LENGTH, raster.LENGTH, raster.POSITION])
        raster.check_marks("specks", params.specks, [*_CENTRE, raster.LENGTH, raster.LEVEL])
        raster.check_marks("blobs", params.blobs, [*_CENTRE, raster.LENGTH, raster.LENGTH])

    def weights(self, intensity: Tensor) -> Plan:
        return {"kept": 1 - KEPT * intensity, "mixed": MIXED * intensity}

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Params]) -> Plan:
        return {
            "dirt": torch.from_numpy(_painted(size, params)),
            "kernel": torch.from_numpy(np.tile(filter.gaussian_weights(KERNEL_SIZE, SIGMA), (len(params), 1))),
            **self.planned_weights(intensities),
        }

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        plan = self.with_gradient(plan, intensity)
        dirt = filter.blur_bytes(plan["dirt"], plan["kernel"], images.dtype)
        return quantize.blend(images, plan["kept"], dirt, plan["mixed"])


def _painted(size: Size, params: Sequence[Params]) -> raster.Canvas:
    """The dirt before the blur, (B, 1, H, W) levels."""
    smears, specks, blobs = [p.smears for p in params], [p.specks for p in params], [p.blobs for p in params]
    speck, blob = raster.numbers(specks, 4), raster.numbers(blobs, 4)
    discs = blob[:, [0, 1, 2, 0, 1, 3]].reshape(-1, 3)  # each inner disc right after its outer one
    layers = [
        (raster.ellipses(raster.numbers(smears, 5), SMEAR_LEVEL), [*map(len, smears)]),
        (raster.circles(speck[:, :3], speck[:, 3]), [*map(len, specks)]),
        (raster.circles(discs, np.tile([OUTER_LEVEL, INNER_LEVEL], len(blob))), [2 * len(group) for group in blobs]),
    ]
    return raster.paint(layers, size, len(params))
