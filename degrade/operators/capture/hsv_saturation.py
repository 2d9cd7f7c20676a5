"""Saturation loss: colours fade in 8-bit HSV (operators.md, capture)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from degrade.kernels import colour
from degrade.operator import NoParams, Operator, Plan, Size, per_image


class HsvSaturation(Operator[NoParams]):
    """Saturation times 1 - i, in 8-bit HSV with its coarse hue; draws nothing.

    Floats keep their hue exactly: c becomes V - (V - c)(1 - i), with V the largest channel.
    Gradient: of that formula; channels that tie for V share its gradient.
    """

    name = "hsv_saturation"
    category = "capture"
    params = NoParams
    coloured = True

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[NoParams]) -> Plan:
        """The scaled saturation of each of the 256: in float32, since in float64 30 * 0.1 would become 2."""
        keep = torch.tensor([1 - i for i in intensities], dtype=torch.float32)
        return {"saturation": (torch.arange(256, dtype=torch.float32) * keep[:, None]).to(torch.uint8)}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        if images.dtype != torch.uint8:
            return colour.desaturate(images, per_image(1 - intensity, images))
        hue, saturation, value = colour.rgb_to_hsv(images)
        scaled = plan["saturation"].gather(1, saturation.flatten(1).long()).view_as(saturation)
        return colour.hsv_to_rgb(hue, scaled, value)
