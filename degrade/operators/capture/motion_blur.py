"""Motion blur: a line kernel at a random angle (operators.md, capture)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from degrade.draws import Stream, uniform
from degrade.kernels import filter
from degrade.operator import Operator, Plan, Size

LENGTH, SHORTEST = 30, 5  # pixels: the kernel has max(5, int(30 i)) rows and columns
GRID = 32  # sampling positions are multiples of 1/32 pixel
FULL_TURN = 360.0  # degrees


@dataclass(frozen=True)
class Params:
    """angle: direction of the motion in degrees, counter-clockwise from the diagonal."""

    angle: float


def kernel_size(intensity: float) -> int:
    return max(SHORTEST, int(LENGTH * intensity))


def line_kernel(size: int, angle: float) -> filter.Weights:
    """The (size, size) identity rotated by ``angle`` degrees about (size/2, size/2), bilinear, zero outside, normalised."""
    centre = size / 2
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    row, column = np.mgrid[:size, :size].astype(np.float64)
    x = cos * (column - centre) - sin * (row - centre) + centre
    y = sin * (column - centre) + cos * (row - centre) + centre
    x, y = np.rint(x * GRID).astype(int), np.rint(y * GRID).astype(int)
    padded = np.zeros((size + 2, size + 2))  # zero outside
    padded[1:-1, 1:-1] = np.eye(size)
    kernel = np.zeros((size, size))
    for dy in (0, 1):
        for dx in (0, 1):
            weight = np.abs(1 - dy - y % GRID / GRID) * np.abs(1 - dx - x % GRID / GRID)
            at = np.clip(y // GRID + dy, -1, size) + 1, np.clip(x // GRID + dx, -1, size) + 1
            kernel += weight * padded[at]
    kernel /= kernel.sum()
    return kernel


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
        kernels = [filter.to_fixed_point(line_kernel(kernel_size(i), p.angle)) for i, p in zip(intensities, params, strict=True)]
        return {"kernel": filter.stack_about_anchor(kernels)}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        blurred = filter.correlate(images, plan["kernel"])
        return blurred if images.dtype == torch.uint8 else blurred.clamp(0, 255)
