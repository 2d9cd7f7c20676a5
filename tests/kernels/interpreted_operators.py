"""All operators as they go on CUDA, by Triton's interpreter: equal to the CPU's, and no pass over the images outside of the bodies."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

import degrade
from tests import images, laws
from tests.kernels.as_cuda import launches, use_the_bodies_for_cuda

SIZE = (10, 19)
SHAPES = {"watermark_damage": (1, 1, 4, 6), "mean_shift": (2, 3, 6, 9)}  # the slowest
# The interpreter's time is that of the taps: wide kernels only where an operator has no others.
INTENSITIES = {"lens_blur": 0.04, "motion_blur": 0.1, "color_diffusion": 0.95, "mean_shift": 0.06}
CASES = [(name, INTENSITIES.get(name, 0.95), 3) for name in degrade.OPERATORS]
CASES += [("hsv_saturation", 0.5, 1), ("graffiti", 0.3, 1), ("color_diffusion", 0.02, 3), ("sharpness_change", 0.0, 3)]
# Where images go two ways through an operator, autograd adds up the two gradients; channels of a grey image are summed.
ALLOWED = {"lens_blur": {"add"}, "color_diffusion": {"add"}, "watermark_damage": {"add"}, "mean_shift": {"add"}}


@dataclass
class Outcome:
    records: list[dict[str, Any]]
    exact: Tensor
    smooth: Tensor
    whole: Tensor  # of quantize=True
    gradients: tuple[Tensor, ...]  # in image and intensity
    passes: Counter[str]


def outcome(name: str, intensity: float, channels: int, records: list[dict[str, Any]] | None = None) -> Outcome:
    count, channels, *size = SHAPES.get(name, (2, channels, *SIZE))
    pixels = images.batch(count, *size)[:, :channels]
    records = records or laws.records_for(name, pixels, intensity)
    floats = (pixels.double() / 255).requires_grad_()
    single = pixels / 255
    intensities = torch.full((count,), intensity, dtype=torch.float64, requires_grad=True)
    weights = torch.linspace(-1, 2, pixels.numel(), dtype=torch.float64).view(pixels.shape)
    with launches(pixels) as found:
        exact = degrade.replay(pixels, records)
        whole = degrade.replay(single, records, quantize=True, check=False)
        smooth = degrade.apply(floats, name, intensities, seed=0, check=False)
        gradients = torch.autograd.grad(smooth, [floats, intensities], weights, materialize_grads=True)
    return Outcome(records, exact, smooth.detach(), whole, gradients, found.passes)


WANTED = {case: outcome(*case) for case in CASES}
use_the_bodies_for_cuda()


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_operator(case: tuple[str, float, int]) -> None:
    wanted = WANTED[case]
    got = outcome(*case, wanted.records)
    laws.assert_same(got.exact, wanted.exact, "bytes")
    laws.assert_same(got.whole, wanted.whole, "quantize=True")
    laws.assert_near(got.smooth, wanted.smooth, 1e-9, "floats")
    for one, other in zip(got.gradients, wanted.gradients, strict=True):
        laws.assert_near(one, other, 1e-8 * max(1, float(other.abs().max())), "gradient")
    if case[1] > 0:  # where sharpness_change blurs some images and sharpens others, torch chooses
        assert set(got.passes) <= ALLOWED.get(case[0], set()) | ({"sum"} if case[2] == 1 else set()), got.passes


def test_mixture() -> None:
    """One pass of torch, which puts the results of the operators side by side, and its gradient."""
    pixels = images.batch(4, *SIZE)
    floats = (pixels / 255).requires_grad_()
    names = ["scan_lines", "dark_illumination", "scan_lines", "graffiti"]
    weights = torch.ones_like(floats)
    with launches(pixels) as found:
        exact = degrade.apply(pixels, names, 0.5, seed=0)
        degrade.apply(floats, names, 0.5, seed=0, check=False).backward(weights)
    assert found.passes == {"cat": 3}
    assert torch.equal(exact[3:], degrade.apply(pixels[3:], "graffiti", 0.5, seed=0, keys="3"))
