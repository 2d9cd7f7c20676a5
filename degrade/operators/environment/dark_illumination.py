"""Dark illumination: every level scaled down (operators.md, environment)."""

from __future__ import annotations

import torch
from torch import Tensor

from degrade.kernels import quantize
from degrade.operator import NoParams, Operator, Plan, levels


class DarkIllumination(Operator[NoParams]):
    """trunc(image (1 - i^2)); draws nothing.

    Gradient: 1 - i^2 in the image, -2 i image in the intensity.
    """

    name = "dark_illumination"
    category = "environment"
    params = NoParams

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        exact = levels(images, torch.float64)  # in float32 some products of bytes are a level off
        scale = (1 - intensity * intensity)[:, None, None, None].to(exact.dtype)
        return quantize.trunc(exact * scale, images.dtype)
