"""Dark illumination: every level scaled down (operators.md, environment)."""

from __future__ import annotations

from torch import Tensor

from degrade.kernels import quantize
from degrade.operator import NoParams, Operator, Plan


class DarkIllumination(Operator[NoParams]):
    """trunc(image (1 - i^2)); draws nothing.

    Gradient: 1 - i^2 in the image, -2 i image in the intensity.
    """

    name = "dark_illumination"
    category = "environment"
    params = NoParams

    def weights(self, intensity: Tensor) -> Plan:
        return {"factor": 1 - intensity * intensity}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return quantize.scale_rows(images, self.with_gradient(plan, intensity)["factor"][:, None])
