"""Sharpness change: violent sharpening, mixed into the image (operators.md, post-processing)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from degrade.kernels import filter, quantize
from degrade.operator import NoParams, Operator, Plan, Size

GAIN = 80.0  # times the intensity: factor on the sharpening kernel
KEPT, MIXED = 0.7, 0.3  # blend weights
BLUR_SIZE = 3  # pixels: at intensity 0 the image is blurred instead
BLUR_SIGMA = 0.3 * ((BLUR_SIZE - 1) / 2 - 1) + 0.8  # pixels


class SharpnessChange(Operator[NoParams]):
    """blend(image, 0.7, round(80 i times the Laplacian-sharpened image), 0.3); at i = 0 a small Gaussian blur; draws nothing.

    Gradient: linear in image and intensity where the sharpened value is not clipped (it nearly always is), else that of 0.7 image.
    """

    name = "sharpness_change"
    category = "postprocessing"
    params = NoParams

    def weights(self, intensity: Tensor) -> Plan:
        return {"gain": GAIN * intensity}

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[NoParams]) -> Plan:
        plan = self.planned_weights(intensities)
        if all(intensities):
            return plan
        line = filter.gaussian_weights(BLUR_SIZE, BLUR_SIGMA)
        blur = torch.from_numpy(filter.to_fixed_point(np.outer(line, line)))
        blurred = torch.tensor([i == 0 for i in intensities], device="cpu")
        return {**plan, "blurred": blurred, "blur": blur.expand(len(intensities), -1, -1)}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        plan = self.with_gradient(plan, intensity)
        changed = filter.sharpen(images, plan["gain"], KEPT, MIXED)
        if "blur" in plan:
            blurred = quantize.blend(images, KEPT, filter.correlate(images, plan["blur"]), MIXED)
            changed = torch.where(plan["blurred"][:, None, None, None], blurred, changed)
        return changed
