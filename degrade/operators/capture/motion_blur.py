"""Motion blur: a line kernel at a random angle (operators.md, capture)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from degrade.draws import Stream, uniform
from degrade.kernels import filter
from degrade.operator import Operator, Plan, Size

LENGTH, SHORTEST = 30, 5  # pixels: the kernel has max(5, int(30 i)) rows and columns
GRID, FINE = 32, 32  # sampling positions are multiples of 1/32 pixel, their shares of 1/32 of that
FULL_TURN = 360.0  # degrees


@dataclass(frozen=True)
class Params:
    """angle: direction of the motion in degrees, counter-clockwise from the diagonal."""

    angle: float


def kernel_size(intensity: float) -> int:
    return max(SHORTEST, int(LENGTH * intensity))


def line_kernels(sizes: Sequence[int], angles: Sequence[float]) -> filter.Weights:
    """For each image the (size, size) identity rotated by ``angle`` degrees about (size/2, size/2), bilinear, zero outside, normalised.

    Together (B, K, K), zero-padded to the largest about their anchors size // 2.
    """
    turned = [math.radians(angle) for angle in angles]
    cos, sin = (np.array([[function(angle)] for angle in turned]) for function in (math.cos, math.sin))
    size = np.array(sizes)[:, None]
    centre = size / 2
    step = np.arange(max(sizes)) - (max(sizes) // 2 - size // 2)
    # as OpenCV finds positions: the shares of column and row are rounded on a finer grid, their sum half up on the coarse one
    x = _fine(cos * step)[:, None] + _fine(-sin * step + centre * (1 - cos + sin))[..., None]
    y = _fine(sin * step)[:, None] + _fine(cos * step + centre * (1 - sin - cos))[..., None]
    x, y = (x + FINE // 2) // FINE, (y + FINE // 2) // FINE
    inside = (step >= 0) & (step < size)
    # Few pixels are near the diagonal.
    near = np.nonzero(inside[:, None] & inside[..., None] & (np.abs(x // GRID - y // GRID) <= 1))
    x, y, size = x[near], y[near], size[near[0], 0]
    shares = np.zeros(len(x), np.int64)  # in units of 1/32 * 1/32
    for dy in (0, 1):
        for dx in (0, 1):
            place = y // GRID + dy
            diagonal = (place == x // GRID + dx) & (place >= 0) & (place < size)
            shares += diagonal * np.abs((1 - dy) * GRID - y % GRID) * np.abs((1 - dx) * GRID - x % GRID)
    kernels = np.zeros((len(sizes), max(sizes), max(sizes)))
    kernels[near] = shares
    kernels /= kernels.sum((1, 2), keepdims=True)
    return kernels


def _fine(pixels: npt.NDArray[np.floating]) -> npt.NDArray[np.int32]:
    fine: npt.NDArray[np.int32] = np.rint(pixels * (GRID * FINE)).astype(np.int32)
    return fine


class MotionBlur(Operator[Params]):
    """round(correlation with a rotated diagonal line); draws the angle.

    Gradient: linear in the image; none in the intensity, which only sets the size of the kernel.
    """

    name = "motion_blur"
    category = "capture"
    params = Params

    def draw(self, size: Size, intensity: float, stream: Stream) -> Params:
        return Params(uniform(stream.uniform("angle"), 0, FULL_TURN))

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Params]) -> Plan:
        kernels = line_kernels([kernel_size(i) for i in intensities], [p.angle for p in params])
        return {"kernel": torch.from_numpy(filter.to_fixed_point(kernels))}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return filter.correlate(images, plan["kernel"])
