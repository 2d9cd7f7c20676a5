"""Saturation loss: colours fade in 8-bit HSV (operators.md, capture)."""

from __future__ import annotations

from torch import Tensor

from degrade.kernels import colour
from degrade.operator import NoParams, Operator, Plan


class HsvSaturation(Operator[NoParams]):
    """Saturation times 1 - i, in 8-bit HSV with its coarse hue; draws nothing.

    Floats keep their hue exactly: c becomes V - (V - c)(1 - i), with V the largest channel.
    Gradient: of that formula; channels that tie for V share its gradient.
    """

    name = "hsv_saturation"
    category = "capture"
    params = NoParams
    coloured = True

    def weights(self, intensity: Tensor) -> Plan:
        return {"keep": 1 - intensity}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return colour.scale_saturation(images, self.with_gradient(plan, intensity)["keep"])
