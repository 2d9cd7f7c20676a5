"""Watermark damage: rectangles filled from their surroundings, as after the removal of a watermark (operators.md, post-processing)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from degrade.draws import Stream, randint
from degrade.kernels import inpaint, quantize
from degrade.operator import Operator, Plan, Size

FIRST, GROWTH = 1, 15  # rectangles: int(1 + 15 i)
MARGIN = 50  # pixels that a start keeps from the right and lower end, where there are as many
WIDTHS, HEIGHTS = (50, 200), (20, 80)  # pixels from one corner to the other
SMALLEST = 3  # pixels a side, below which no pixel has others on all sides to be filled from: nothing is drawn
EDGE_ABOVE = 0.5  # intensity beyond which the edge of the holes shows
EDGE_FACTOR = 0.8

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Params:
    """rectangles: (x1, y1, x2, y2) in pixels, corners included; they may leave the image."""

    rectangles: tuple[tuple[int, int, int, int], ...]


def union(size: Size, rectangles: Sequence[tuple[int, int, int, int]]) -> Mask:
    """(H, W) bool: the pixels of the rectangles."""
    mask = np.zeros(size, np.bool_)
    for x1, y1, x2, y2 in rectangles:
        mask[max(0, y1) : max(0, y2 + 1), max(0, x1) : max(0, x2 + 1)] = True
    return mask


def hole(size: Size, rectangles: Sequence[tuple[int, int, int, int]]) -> Mask:
    """(H, W) bool: the pixels to fill.  A union that covers the image spares its outermost pixels: something must be left to fill from."""
    mask = union(size, rectangles)
    if mask.all():
        mask[[0, -1]] = mask[:, [0, -1]] = False
    return mask


class WatermarkDamage(Operator[Params]):
    """blend(image, 1 - i, image with inpainted rectangles, i), their edge darkened if i > 0.5; draws the rectangles.

    Gradient: in the image through the filling, exactly; in the intensity through the weights.  Rectangles and edge are held fixed.
    """

    name = "watermark_damage"
    category = "postprocessing"
    params = Params

    def draw(self, size: Size, intensity: float, stream: Stream) -> Params:
        if min(size) < SMALLEST:
            return Params(())
        height, width = size
        rectangles = []
        for x, y, across, down in stream.uniforms("rectangles", int(FIRST + GROWTH * intensity), 4).tolist():
            x1, y1 = randint(x, 0, max(0, width - MARGIN)), randint(y, 0, max(0, height - MARGIN))
            rectangles.append((x1, y1, x1 + randint(across, *WIDTHS), y1 + randint(down, *HEIGHTS)))
        return Params(tuple(rectangles))

    def check(self, size: Size, intensity: float, params: Params) -> None:
        for x1, y1, x2, y2 in params.rectangles:
            if x2 < x1 or y2 < y1:
                raise ValueError(f"rectangles: got [{x1}, {y1}, {x2}, {y2}], want x1 <= x2 and y1 <= y2")

    def weights(self, intensity: Tensor) -> Plan:
        return {"kept": 1 - intensity, "mixed": intensity}

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Params]) -> Plan:
        masks = np.stack([hole(size, p.rectangles) for p in params])
        plan: Plan = {**inpaint.march(masks)._asdict(), **self.planned_weights(intensities)}
        shown = np.array([i > EDGE_ABOVE for i in intensities])
        if shown.any():
            plan["edge"] = inpaint.edge(masks & shown[:, None, None])[:, None]
        return plan

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        plan = self.with_gradient(plan, intensity)
        filled = inpaint.inpaint(images, plan["order"], plan["distance"], plan["schedule"])
        blended = quantize.blend(images, plan["kept"], filled, plan["mixed"])
        return inpaint.darken(blended, plan["edge"], EDGE_FACTOR) if "edge" in plan else blended
