"""Mean shift: a flat, posterised image (operators.md, transmission)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from degrade.kernels import mean_shift
from degrade.operator import NoParams, Operator, Plan, Size

RADIUS = 40  # pixels and colour levels, times the intensity


class MeanShift(Operator[NoParams]):
    """Mean-shift filter on a two-level pyramid, radius int(40 i) in space and colour; draws nothing.

    The choice of the averaged pixels is the degradation and stays for floats; their averages are then not rounded.
    Gradient: to the averaged pixels, the choice held fixed; none in the intensity, which only sets the radius.
    """

    name = "mean_shift"
    category = "transmission"
    params = NoParams
    coloured = True

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[NoParams]) -> Plan:
        radius = torch.tensor([int(RADIUS * i) for i in intensities], dtype=torch.int32, device="cpu")
        return {
            "radius": radius,
            "reach": torch.arange(int(radius.max()), device="cpu"),
        }  # its length bounds the radius where looking would sync

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return mean_shift.mean_shift(images, plan["radius"], max_radius=len(plan["reach"]))
