"""Scan lines: dark stripes at a regular distance (operators.md, transmission)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from degrade.kernels import quantize
from degrade.operator import NoParams, Operator, Plan, Size

DARKENED = 0.01  # what is left of a row in a stripe


def period(intensity: float) -> int:
    """Rows from one stripe to the next."""
    return max(3, int(20 / (intensity + 0.1)))


def width(intensity: float) -> int:
    """Rows of a stripe."""
    return max(5, int(7 * intensity))


class ScanLines(Operator[NoParams]):
    """trunc(0.01 row) for the rows of the stripes; draws nothing.

    Gradient: 0.01 in the stripes, 1 elsewhere; none in the intensity, which only sets period and width.
    """

    name = "scan_lines"
    category = "transmission"
    params = NoParams

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[NoParams]) -> Plan:
        row = torch.arange(size[0], device="cpu")
        dark = torch.stack([row % period(i) < width(i) for i in intensities])
        return {"factor": torch.where(dark, torch.tensor(DARKENED, dtype=torch.float64, device="cpu"), 1.0)}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return quantize.scale_rows(images, plan["factor"])
