"""Saturation loss: colours fade in 8-bit HSV (operators.md, capture)."""

from __future__ import annotations

import torch
from torch import Tensor

from degrade.kernels import colour
from degrade.operator import NoParams, Operator, Plan, per_image


class HsvSaturation(Operator[NoParams]):
    """Saturation times 1 - i, in 8-bit HSV with its coarse hue; draws nothing.

    Floats keep their hue exactly: c becomes V - (V - c)(1 - i), with V the largest channel.
    Gradient: of that formula; channels that tie for V share its gradient.
    """

    name = "hsv_saturation"
    category = "capture"
    params = NoParams
    coloured = True

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        keep = per_image(1 - intensity, images)
        if images.dtype != torch.uint8:
            return colour.desaturate(images, keep)
        hue, saturation, value = colour.rgb_to_hsv(images)
        faded = (saturation * keep[:, 0]).floor()  # in float32: in float64, 30 * 0.1 would become 2
        return colour.hsv_to_rgb(hue, faded, value)
