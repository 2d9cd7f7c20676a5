"""Kernels of motion blur, made for a whole batch at once."""

from __future__ import annotations

import torch

import degrade
from degrade.operators.capture import motion_blur

INTENSITIES = [0.95, 0.0, 0.45, 0.2, 0.9]  # kernels of 28, 5, 13, 6 and 27 pixels
ANGLES = [0.0, 180.0, 123.4, 90.0, 359.9]


def test_kernels_of_a_batch_are_those_of_each_image_about_the_same_anchor():
    operator = degrade.OPERATORS["motion_blur"]
    params = [motion_blur.Params(angle) for angle in ANGLES]
    together = operator.plan((9, 9), INTENSITIES, params)["kernel"]
    assert together.shape == (5, 28, 28)
    for kernel, intensity, param in zip(together, INTENSITIES, params, strict=True):
        (alone,) = operator.plan((9, 9), [intensity], [param])["kernel"]
        size = len(alone)
        assert size == motion_blur.kernel_size(intensity)
        start = 28 // 2 - size // 2
        wanted = torch.zeros_like(kernel)
        wanted[start : start + size, start : start + size] = alone
        assert torch.equal(kernel, wanted)
        assert kernel.sum() == 65536
