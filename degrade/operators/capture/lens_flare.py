"""Lens flare: bluish white discs and streaks added to the image (operators.md, capture)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from degrade.draws import Stream, randint, uniform
from degrade.kernels import filter, marks, raster
from degrade.operator import Operator, Plan, Size

FEWEST, FLARES = 3, 30  # flares: 3 + int(30 i)
SMALLEST_GLOW, LARGEST_GLOW = 10, 50  # radius in pixels
SHORTEST_STREAK, LONGEST_STREAK = 30, 150  # pixels
STREAK_THICKNESS = 2  # pixels
COLOUR = (235, 255, 255)  # RGB levels
KERNEL_SIZE, SIGMA = 3, 20.0  # pixels; sigma times the intensity
ADDED = 0.9  # weight of the flare, times the intensity


@dataclass(frozen=True)
class Params:
    """glows: x, y, radius of discs; streaks: x1, y1, x2, y2; all in pixels."""

    glows: tuple[tuple[int, int, int], ...]
    streaks: tuple[tuple[int, int, int, int], ...]


class LensFlare(Operator[Params]):
    """trunc(image + 0.9 i flare), the flare slightly blurred; draws glows and streaks.

    Gradient: 1 in the image where it does not saturate; in the intensity through the weight and the width of the blur.
    """

    name = "lens_flare"
    category = "capture"
    params = Params
    coloured = True

    def draw(self, size: Size, intensity: float, stream: Stream) -> Params:
        height, width = size
        flares = FEWEST + int(FLARES * intensity)
        glows = stream.integers("glows", flares, (0, width), (0, height), (SMALLEST_GLOW, LARGEST_GLOW))
        streaks = []
        for (x, y, _), (turn, reach) in zip(glows, stream.uniforms("streaks", flares, 2).tolist(), strict=True):
            angle, length = uniform(turn, 0, 2 * math.pi), randint(reach, SHORTEST_STREAK, LONGEST_STREAK)
            streaks.append((x, y, int(x + length * math.cos(angle)), int(y + length * math.sin(angle))))
        return Params(glows, tuple(streaks))

    def check(self, size: Size, intensity: float, params: Params) -> None:
        raster.check_marks("glows", params.glows, [raster.POSITION, raster.POSITION, raster.LENGTH])
        raster.check_marks("streaks", params.streaks, [raster.POSITION] * 4)

    def weights(self, intensity: Tensor) -> Plan:
        return {"sigma": SIGMA * intensity, "added": ADDED * intensity}

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Params]) -> Plan:
        kernels = [filter.gaussian_weights(KERNEL_SIZE, SIGMA * i) for i in intensities]
        return {
            "flare": torch.from_numpy(_painted(size, params)),
            "kernel": filter.stack_about_centre(kernels),
            "colour": torch.tensor(COLOUR, device="cpu").repeat(len(params), 1),
            **self.planned_weights(intensities),
        }

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        plan = self.with_gradient(plan, intensity)
        kernel = filter.gaussian_with_gradient(plan["kernel"], plan["sigma"])
        return marks.add_glow(images, plan["flare"], kernel, plan["added"], plan["colour"])


def _painted(size: Size, params: Sequence[Params]) -> raster.Canvas:
    """(B, 1, H, W): 1 where a glow or a streak stands."""
    glows, streaks = [p.glows for p in params], [p.streaks for p in params]
    layers = [
        (raster.circles(raster.numbers(glows, 3), level=1), [*map(len, glows)]),
        (raster.strokes(raster.numbers(streaks, 4), STREAK_THICKNESS, level=1), [*map(len, streaks)]),
    ]
    return raster.paint(layers, size, len(params))
