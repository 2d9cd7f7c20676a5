"""Lens blur: a wide Gaussian blur mixed into the image (operators.md, capture)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from degrade.kernels import filter, quantize
from degrade.operator import NoParams, Operator, Plan, Size, per_image

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

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[NoParams]) -> Plan:
        return {"kernel": filter.stack_about_centre([filter.gaussian_weights(kernel_size(i), SIGMA * i) for i in intensities])}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        kernel = filter.gaussian_with_gradient(plan["kernel"], SIGMA * intensity)
        blurred = filter.gaussian_blur(images, kernel)
        return quantize.blend(images, per_image(1 - KEPT * intensity, images), blurred, per_image(MIXED * intensity, images))
