"""Color diffusion: colours run into each other, with spots at the highest intensities (operators.md, environment)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from degrade.draws import Stream
from degrade.kernels import filter, marks, quantize, raster
from degrade.operator import Operator, Plan, Size

SIGMA = 50.0  # pixels, times the intensity
SMALLEST_KERNEL, KERNEL_GROWTH = 3, 20  # pixels: 3 + 2 int(20 i)
KEPT, LEAST_KEPT = 0.9, 0.1  # blend weight max(0.1, 1 - 0.9 i)
MIXED, MOST_MIXED = 0.9, 0.9  # blend weight min(0.9, 0.9 i)
SPOTS, SPOTS_FROM = 100, 0.9  # int(100 i) spots above this intensity
RADII = 5, 19  # pixels
VALUES = 0, 254  # grey levels


@dataclass(frozen=True)
class Params:
    """spots: filled circles (x, y, radius, value) in pixels and grey levels."""

    spots: tuple[tuple[int, int, int, int], ...]


class ColorDiffusion(Operator[Params]):
    """blend(image, max(0.1, 1 - 0.9 i), trunc(i^2 Gaussian blur, spots over it), min(0.9, 0.9 i)); draws spots above i = 0.9.

    Gradient: linear in the image, none through the blur under spots; in the intensity through the weights, the factor i^2 and the
    width of the blur, its size and the spots held fixed.
    """

    name = "color_diffusion"
    category = "environment"
    params = Params

    def draw(self, size: Size, intensity: float, stream: Stream) -> Params:
        if intensity <= SPOTS_FROM:
            return Params(())
        height, width = size
        return Params(stream.integers("spots", int(SPOTS * intensity), (0, width - 1), (0, height - 1), RADII, VALUES))

    def check(self, size: Size, intensity: float, params: Params) -> None:
        raster.check_marks("spots", params.spots, [raster.POSITION, raster.POSITION, raster.LENGTH, VALUES])

    def weights(self, intensity: Tensor) -> Plan:
        return {
            "sigma": SIGMA * intensity,
            "factor": intensity * intensity,
            "kept": (1 - KEPT * intensity).clamp(min=LEAST_KEPT),
            "mixed": (MIXED * intensity).clamp(max=MOST_MIXED),
        }

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Params]) -> Plan:
        kernels = [filter.gaussian_weights(SMALLEST_KERNEL + 2 * int(KERNEL_GROWTH * i), SIGMA * i) for i in intensities]
        plan = {"kernel": filter.stack_about_centre(kernels), **self.planned_weights(intensities)}
        if any(i > SPOTS_FROM for i in intensities):
            plan["spots"] = torch.from_numpy(_painted(size, params))
            plan["values"] = torch.from_numpy(np.tile(np.arange(VALUES[1] + 1, dtype=np.uint8)[:, None], (len(params), 1, 1)))
        return plan

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        plan = self.with_gradient(plan, intensity)
        kernel = filter.gaussian_with_gradient(plan["kernel"], plan["sigma"])
        diffused = filter.gaussian_blur(images, kernel, plan["factor"])
        if "spots" in plan:
            diffused = marks.cover(diffused, plan["spots"], plan["values"])
        return quantize.blend(images, plan["kept"], diffused, plan["mixed"])


def _painted(size: Size, params: Sequence[Params]) -> raster.Canvas:
    """The spots' values plus one on (B, 1, H, W) canvases of zeros."""
    spots = [p.spots for p in params]
    numbers = raster.numbers(spots, 4)
    return raster.paint([(raster.circles(numbers[:, :3], numbers[:, 3] + 1), [*map(len, spots)])], size, len(params))
