"""The Triton bodies against the torch references, under Triton's interpreter; test_triton.py runs this in a process of its own."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.kernels.cuda import mean_shift as mean_shift_body
from degrade.kernels.mean_shift import mean_shift_climb_backward_reference, mean_shift_climb_reference

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported


def levels(*shape: int, low: int = 0, high: int = 256, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(low, high, shape)).double()


# Colours so near to one another that the climbs go on, of two images at different levels.
IMAGES = torch.cat([levels(1, 3, 8, 9, low=90, high=100), levels(1, 3, 8, 9, low=100, high=112, seed=2)])
RADIUS = torch.tensor([5, 4], dtype=torch.int32)
WANTED = torch.rand(2, 8, 9, generator=torch.Generator().manual_seed(1)) < 0.8
FRACTIONS = torch.rand(IMAGES[:1].shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.5


@pytest.mark.parametrize("level", [0, 1])
def test_climbs_of_whole_levels_equal_the_reference(level: int) -> None:
    images = IMAGES.float()
    got = mean_shift_body.climb(images, WANTED, RADIUS, level, True)
    assert got.dtype == torch.float32
    assert torch.equal(got, mean_shift_climb_reference(images, WANTED, RADIUS, level, True, 5))
    assert (got != images).movedim(1, -1)[WANTED].float().mean() > 0.5


@pytest.mark.parametrize(("size", "radius"), [((1, 40), (3, 0)), ((8, 9), (1, 2))])
def test_climbs_in_small_windows_equal_the_reference(size: tuple[int, int], radius: tuple[int, int]) -> None:
    images = levels(2, 3, *size, low=100, high=103).float()
    wanted = torch.ones(2, *size, dtype=torch.bool)
    for level in (0, 1):
        got = mean_shift_body.climb(images, wanted, torch.tensor(radius, dtype=torch.int32), level, True)
        assert torch.equal(got, mean_shift_climb_reference(images, wanted, torch.tensor(radius, dtype=torch.int32), level, True, 3))


def test_smooth_climbs_and_their_gradient_equal_the_reference() -> None:
    images, wanted, radius = (IMAGES + FRACTIONS)[1:], WANTED[1:], RADIUS[1:]
    got = mean_shift_body.climb(images, wanted, radius, 0, False)
    torch.testing.assert_close(got, mean_shift_climb_reference(images, wanted, radius, 0, False, 5), rtol=0, atol=1e-9)
    assert (got != images).movedim(1, -1)[wanted].float().mean() > 0.5
    gradient = torch.randn(images.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    back = mean_shift_body.climb_backward(gradient, images, wanted, radius, 0, False)
    expected = mean_shift_climb_backward_reference(gradient, images, wanted, radius, 0, False, 5)
    torch.testing.assert_close(back, expected, rtol=0, atol=1e-9)


def test_nothing_to_climb() -> None:
    nowhere = torch.zeros_like(WANTED)
    assert (mean_shift_body.climb(IMAGES, nowhere, RADIUS, 0, True) == 0).all()
    assert mean_shift_body.climb(IMAGES[:0], nowhere[:0], RADIUS[:0], 0, True).shape == (0, 3, 8, 9)
    assert mean_shift_body.climb_backward(IMAGES[:0], IMAGES[:0], nowhere[:0], RADIUS[:0], 0, True).shape == (0, 3, 8, 9)


def test_list() -> None:
    wanted = torch.tensor([[[False, True, True]], [[False, False, True]]])
    pixels, count = mean_shift_body._list(wanted)
    assert count.tolist() == [3]
    assert pixels[:3].tolist() == [1, 2, 5]
