"""Color diffusion: colours run into each other, with spots at the highest intensities (operators.md, environment)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from degrade.draws import Stream, randint
from degrade.kernels import filter, quantize, raster
from degrade.operator import Operator, Plan, Size, per_image

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
        marks = stream.uniforms("spots", int(SPOTS * intensity), 4).tolist()
        return Params(
            tuple((randint(x, 0, width - 1), randint(y, 0, height - 1), randint(r, *RADII), randint(v, *VALUES)) for x, y, r, v in marks)
        )

    def check(self, size: Size, intensity: float, params: Params) -> None:
        for spot in params.spots:
            if spot[2] < 0 or not VALUES[0] <= spot[3] <= VALUES[1]:
                raise ValueError(f"spots: got {list(spot)}, want a radius >= 0 and a value in {VALUES[0]}..{VALUES[1]}")

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Params]) -> Plan:
        sizes = [SMALLEST_KERNEL + 2 * int(KERNEL_GROWTH * i) for i in intensities]
        plan = {
            "kernel": filter.stack_about_centre([filter.gaussian_weights(k, SIGMA * i) for k, i in zip(sizes, intensities, strict=True)])
        }
        if any(i > SPOTS_FROM for i in intensities):
            plan["spots"] = torch.from_numpy(_painted(size, params))
        return plan

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        kernel = filter.gaussian_with_gradient(plan["kernel"], SIGMA * intensity)
        diffused = filter.gaussian_blur(images, kernel, intensity * intensity)
        if "spots" in plan:
            spots = plan["spots"]
            diffused = torch.where(spots > 0, (spots - 1).to(diffused.dtype), diffused)
        kept = per_image((1 - KEPT * intensity).clamp(min=LEAST_KEPT), images)
        mixed = per_image((MIXED * intensity).clamp(max=MOST_MIXED), images)
        return quantize.blend(images, kept, diffused, mixed)


def _painted(size: Size, params: Sequence[Params]) -> raster.Canvas:
    """The spots' values plus one on (B, 1, H, W) canvases of zeros."""
    spots = np.array([spot for p in params for spot in p.spots], dtype=np.int64).reshape(-1, 4)
    layer = raster.circles(spots[:, :3], size), spots[:, 3] + 1, raster.owners([p.spots for p in params])
    return raster.paint([layer], size, len(params))
