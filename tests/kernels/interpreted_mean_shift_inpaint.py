"""The Triton bodies against the torch references, under Triton's interpreter; test_triton.py runs this in a process of its own."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.kernels import inpaint
from degrade.kernels.cuda import inpaint as inpaint_body
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


def check_fill(images: Tensor, masks: np.ndarray) -> None:
    plan = inpaint.march(masks)
    got, expected = inpaint_body.fill(images, *plan), inpaint.inpaint_reference(images, *plan)
    assert got.dtype == images.dtype
    assert torch.equal(got, expected)
    assert (expected != images).movedim(1, -1)[torch.from_numpy(masks)].float().mean() > 0.5


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_fills_equal_the_reference(dtype: torch.dtype) -> None:
    """Holes at the first row and column and in the last corner, and none."""
    masks = np.zeros((2, 6, 6), bool)
    masks[0, :2, :2] = masks[0, 4:, 3:] = True
    images = levels(2, 1, 6, 6).to(dtype)
    check_fill(images * 0.99 if dtype.is_floating_point else images, masks)


def test_fills_of_dust_equal_the_reference() -> None:
    """Of two images with two channels."""
    masks = np.random.default_rng(3).random((2, 4, 5)) < 0.12
    check_fill(levels(2, 2, 4, 5).to(torch.uint8), masks)


def test_fills_do_not_look_past_the_borders() -> None:
    """Where the next pixel in memory, unknown like this one, is at the other end of the image or in another one."""
    masks = np.ones((3, 4, 4), bool)
    masks[:, 1:3, 1:3] = masks[2, :, 2:] = False
    check_fill(levels(3, 1, 4, 4), masks)


def test_fills_in_one_row_equal_the_reference() -> None:
    images = torch.tensor([255, 255, 0, 0, 0, 255, 255, 0, 9])[None, None, None]
    masks = np.array([[[0, 0, 1, 1, 1, 0, 0, 0, 1]]], bool)
    check_fill(images.to(torch.uint8), masks)
    check_fill(images.to(torch.float32), masks)


def test_fills_nothing() -> None:
    plan = inpaint.march(np.zeros((2, 4, 5), bool))
    images = levels(2, 3, 4, 5)
    assert torch.equal(inpaint_body.fill(images, *plan), images)
    assert torch.equal(inpaint_body.fill_backward(images, images, images, *plan), images)
    none = images[:0], *(p[:0] for p in plan)
    assert inpaint_body.fill(*none).shape == (0, 3, 4, 5)
    assert inpaint_body.fill_backward(*none[:1] * 2, *none).shape == (0, 3, 4, 5)


def check_gradient(images: Tensor, plan: inpaint.March) -> None:
    images = images.to(memory_format=torch.channels_last)
    filled = inpaint.inpaint(images, *plan)
    gradient = torch.randn(images.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(images.dtype)
    before = gradient.clone(), images.clone(), filled.clone()
    got = inpaint_body.fill_backward(gradient, images, filled, *plan)
    expected = inpaint.inpaint_backward_reference(gradient, images, filled, *plan)
    tolerance = 20 * torch.finfo(images.dtype).eps * float(expected.abs().max())
    torch.testing.assert_close(got, expected, rtol=0, atol=tolerance)
    assert all(map(torch.equal, (gradient, images, filled), before))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_equal_the_reference(dtype: torch.dtype) -> None:
    """Of two images with two channels.  Near the first row and column filled pixels read what was in the hole before."""
    masks = np.zeros((2, 6, 6), bool)
    masks[0, :2, :2] = masks[0, 4:, 4:] = masks[1, 1, 2] = True
    images = levels(2, 2, 6, 6, seed=132)
    images[0, 1] = 255
    images[1, 0] = images[1, 0] / 1000 + 90  # hardly changes: the bounded term is held fixed
    images[1, 1] %= 3
    images, plan = images.to(dtype), inpaint.march(masks)
    filled = inpaint.inpaint(images, *plan)
    assert [filled[0, 1, 5, 5], filled[1, 1, 1, 2]] == [255, 0]  # clipped
    check_gradient(images, plan)


@pytest.mark.parametrize("size", [(1, 9), (9, 1)])
def test_gradients_in_one_line_equal_the_reference(size: tuple[int, int]) -> None:
    """In more steps than a step has lanes."""
    images = torch.tensor([255, 255, 3, 9, 7, 2, 40, 0, 9]).view(1, 1, *size).double()
    masks = np.array([0, 0, 1, 1, 1, 0, 0, 0, 1], bool).reshape(1, *size)
    plan = inpaint.march(masks)
    schedule = plan.schedule[..., :2]
    assert (schedule >= 0).sum() == masks.sum()
    assert (schedule[0, :, 0] >= 0).sum() > 2
    check_gradient(images, plan._replace(schedule=schedule))


PLACES = torch.tensor([[False, True, True], [True, False, False]])[:, None, None]


@pytest.mark.parametrize("width", [3, 3 * 400])  # the latter is wider than a block
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_darkening_equals_the_reference(width: int, channels: int, dtype: torch.dtype) -> None:
    images = levels(2, 1, width, channels).to(dtype).permute(0, 3, 1, 2)
    places = PLACES.repeat(1, 1, 1, width // 3)
    got = inpaint_body.darken(images, places, 0.8)
    assert torch.equal(got, inpaint.darken_reference(images, places, 0.8))
    assert got.dtype == dtype
    if dtype.is_floating_point:
        given = images.clone().requires_grad_()
        gradient = torch.rand(images.shape, dtype=dtype) - 0.5
        (expected,) = torch.autograd.grad(inpaint.darken_reference(given, places, 0.8), given, gradient)
        (found,) = inpaint._darken_gradient_cuda(gradient, images, places, 0.8, [True, False, False])
        assert torch.equal(found, expected)


def test_darkens_every_level_in_float64() -> None:
    images = torch.arange(256, dtype=torch.uint8).view(1, 1, 1, 256)
    everywhere = torch.ones(1, 1, 1, 256, dtype=torch.bool)
    for factor in (0.0, 0.01, 0.29, 0.57, 0.8, 1.0):
        assert torch.equal(inpaint_body.darken(images, everywhere, factor), inpaint.darken_reference(images, everywhere, factor))
    assert inpaint_body.darken(images[:0], everywhere[:0], 0.8).shape == (0, 1, 1, 256)
