"""Lens blur: a wide Gaussian blur mixed into the image (operators.md, capture)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from degrade.kernels import filter, quantize
from degrade.operator import NoParams, Operator, Plan, Size

SIGMA = 20.0  # pixels, times the intensity
SMALLEST_KERNEL, KERNEL_GROWTH, LARGEST_KERNEL = 3, 300, 101  # pixels
KEPT, MIXED = 0.7, 0.9  # blend weights 1 - 0.7 i and 0.9 i


def kernel_size(intensity: float) -> int:
    return min(LARGEST_KERNEL, int(SMALLEST_KERNEL + KERNEL_GROWTH * intensity)) | 1


class LensBlur(Operator[NoParams]):
    """blend(image, 1 - 0.7 i, trunc(Gaussian blur), 0.9 i); draws nothing.

    Gradient: linear in the image; in the intensity through the weights and the width of the blur, its size held fixed.
    """

    name = "lens_blur"
    category = "capture"
    params = NoParams

    def weights(self, intensity: Tensor) -> Plan:
        return {"sigma": SIGMA * intensity, "kept": 1 - KEPT * intensity, "mixed": MIXED * intensity}

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[NoParams]) -> Plan:
        kernels = [filter.gaussian_weights(kernel_size(i), SIGMA * i) for i in intensities]
        return {"kernel": filter.stack_about_centre(kernels), **self.planned_weights(intensities)}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        plan = self.with_gradient(plan, intensity)
        kernel = filter.gaussian_with_gradient(plan["kernel"], plan["sigma"])
        return quantize.blend(images, plan["kept"], filter.gaussian_blur(images, kernel), plan["mixed"])
