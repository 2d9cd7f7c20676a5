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
from degrade.kernels import filter, quantize
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


def line_kernel(size: int, angle: float) -> filter.Weights:
    """The (size, size) identity rotated by ``angle`` degrees about (size/2, size/2), bilinear, zero outside, normalised."""
    centre = size / 2
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    step = np.arange(size, dtype=np.float64)
    # as OpenCV finds positions: the shares of column and row are rounded on a finer grid, their sum half up on the coarse one
    x = _fine(cos * step) + _fine(-sin * step + centre * (1 - cos + sin))[:, None]
    y = _fine(sin * step) + _fine(cos * step + centre * (1 - sin - cos))[:, None]
    x, y = (x + FINE // 2) // FINE, (y + FINE // 2) // FINE
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


def _fine(pixels: npt.NDArray[np.floating]) -> npt.NDArray[np.int_]:
    fine: npt.NDArray[np.int_] = np.rint(pixels * (GRID * FINE)).astype(np.int_)
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
        kernels = [filter.to_fixed_point(line_kernel(kernel_size(i), p.angle)) for i, p in zip(intensities, params, strict=True)]
        return {"kernel": filter.stack_about_anchor(kernels)}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        blurred = filter.correlate(images, plan["kernel"])
        return blurred if images.dtype == torch.uint8 else quantize.clip(blurred, 0, 255)
