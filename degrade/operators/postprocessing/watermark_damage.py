"""Watermark damage: rectangles filled from their surroundings, as after the removal of a watermark (operators.md, post-processing)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from degrade.draws import Stream, randint
from degrade.kernels import inpaint, quantize
from degrade.operator import Operator, Plan, Size, per_image

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


def edge(mask: Mask) -> Mask:
    """(H, W) bool: the edge of ``mask``, one pixel wide; equal to OpenCV's Canny with every gradient counted."""
    height, width = mask.shape
    padded = np.pad(mask.astype(np.int8), 1, mode="edge")
    rows = padded[:-2] + 2 * padded[1:-1] + padded[2:]
    columns = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    gx, gy = rows[:, 2:] - rows[:, :-2], columns[2:] - columns[:-2]
    around = np.pad(abs(gx) + abs(gy), 1)

    def at(dx: int, dy: int) -> npt.NDArray[np.int8]:
        return around[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]

    size, tangent = at(0, 0), math.tan(math.pi / 8)
    horizontal, vertical = abs(gy) < tangent * abs(gx), abs(gx) < tangent * abs(gy)
    diagonal = np.where((gx < 0) == (gy < 0), np.maximum(at(-1, -1), at(1, 1)), np.maximum(at(1, -1), at(-1, 1)))
    kept = np.where(
        horizontal,
        (size > at(-1, 0)) & (size >= at(1, 0)),
        np.where(vertical, (size > at(0, -1)) & (size >= at(0, 1)), size > diagonal),
    )
    return kept & (size > 0)


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

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Params]) -> Plan:
        masks = np.stack([hole(size, p.rectangles) for p in params])
        plan: Plan = inpaint.march(masks)._asdict()
        if any(i > EDGE_ABOVE for i in intensities):
            edges = [edge(mask) & (i > EDGE_ABOVE) for mask, i in zip(masks, intensities, strict=True)]
            plan["edge"] = torch.from_numpy(np.stack(edges))[:, None]
        return plan

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        filled = inpaint.inpaint(images, plan["order"], plan["distance"], plan["schedule"])
        blended = quantize.blend(images, per_image(1 - intensity, images), filled, per_image(intensity, images))
        if "edge" not in plan:
            return blended
        factors = torch.full((1, 1), EDGE_FACTOR, dtype=torch.float64, device=images.device).expand(len(images), 1)
        return torch.where(plan["edge"], quantize.scale_rows(blended, factors), blended)
