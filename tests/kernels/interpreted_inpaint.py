"""The Triton bodies of inpaint against the torch references, under Triton's interpreter; test_triton.py runs this."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.kernels import inpaint
from degrade.kernels.cuda import inpaint as body

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported


def levels(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, shape)).double()


def check_fill(images: Tensor, masks: np.ndarray) -> None:
    plan = inpaint.march(masks)
    got, expected = body.fill(images, *plan), inpaint.inpaint_reference(images, *plan)
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
    masks = np.zeros((2, 4, 4), bool)
    masks[0, 2:, :2] = masks[1, :2, 2:] = True
    check_fill(levels(2, 1, 4, 4), masks)


def test_fills_in_one_row_equal_the_reference() -> None:
    images = torch.tensor([255, 255, 0, 0, 0, 255, 255, 0, 9])[None, None, None]
    masks = np.array([[[0, 0, 1, 1, 1, 0, 0, 0, 1]]], bool)
    check_fill(images.to(torch.uint8), masks)
    check_fill(images.to(torch.float32), masks)


def test_fills_nothing() -> None:
    plan = inpaint.march(np.zeros((2, 4, 5), bool))
    images = levels(2, 3, 4, 5)
    assert torch.equal(body.fill(images, *plan), images)
    assert torch.equal(body.fill_backward(images, images, images, *plan), images)
    none = images[:0], *(p[:0] for p in plan)
    assert body.fill(*none).shape == (0, 3, 4, 5)
    assert body.fill_backward(*none[:1] * 2, *none).shape == (0, 3, 4, 5)


def check_gradient(images: Tensor, plan: inpaint.March) -> None:
    images = images.to(memory_format=torch.channels_last)
    filled = inpaint.inpaint(images, *plan)
    gradient = torch.randn(images.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(images.dtype)
    before = gradient.clone(), images.clone(), filled.clone()
    got = body.fill_backward(gradient, images, filled, *plan)
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
    got = body.darken(images, places, 0.8)
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
        assert torch.equal(body.darken(images, everywhere, factor), inpaint.darken_reference(images, everywhere, factor))
    assert body.darken(images[:0], everywhere[:0], 0.8).shape == (0, 1, 1, 256)
