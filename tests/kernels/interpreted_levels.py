"""The Triton bodies of levels against the torch references, under Triton's interpreter; test_triton.py runs this."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from degrade.kernels import levels
from degrade.kernels.cuda import levels as body

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported

SIZES = [(1, 1), (1, 7), (9, 1), (17, 23), (2, 1100)]  # the last is larger than a block
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
EACH_ORDER = pytest.mark.parametrize("order", [None, [2, 0, 3, 1], [3, 1]], ids=str)


def pixels(size: tuple[int, int], dtype: torch.dtype, channels: int = 3) -> Tensor:
    """(4, channels, H, W), not contiguous; floats leave [0, 1] a little, and some stand at its ends."""
    generator = torch.Generator().manual_seed(0)
    if dtype == torch.uint8:
        return torch.randint(0, 256, (4, *size, channels), dtype=dtype, generator=generator).permute(0, 3, 1, 2)
    values = (torch.rand(4, *size, channels, dtype=torch.float64, generator=generator) * 258).round() / 256 - 1 / 256
    return values.permute(0, 3, 1, 2).to(dtype)


def places(order: list[int] | None) -> tuple[Tensor | None, Tensor | None]:
    if order is None:
        return None, None
    back = torch.full((4,), -1)
    back[order] = torch.arange(len(order))
    return torch.tensor(order, dtype=torch.int64), back


def real(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def same(got: Tensor, wanted: Tensor) -> None:
    assert got.dtype == wanted.dtype
    assert got.is_contiguous()
    assert torch.equal(got, wanted)


def near(got: Tensor, wanted: Tensor) -> None:
    """Equal but for a rounding: where a device rounds to bfloat16, the interpreter cuts."""
    assert got.dtype == wanted.dtype
    assert got.is_contiguous()
    assert (got.double() - wanted.double()).abs().max() <= torch.finfo(wanted.dtype).eps * max(1, float(wanted.abs().max()))


@EACH_SIZE
@EACH_ORDER
@pytest.mark.parametrize("dtype", [torch.uint8, *FLOATS], ids=str)
def test_levels_and_back(size: tuple[int, int], order: list[int] | None, dtype: torch.dtype) -> None:
    images, (there, back) = pixels(size, dtype), places(order)
    dtypes = [torch.uint8] if dtype == torch.uint8 else [real(dtype), torch.uint8]
    for rounded in (False, True):
        for wanted in dtypes[: 1 + rounded]:
            given = levels.to_levels_reference(images, there, back, rounded, wanted)
            same(body.to_levels(images, there, rounded, wanted), given)
            check = near if dtype == torch.bfloat16 else same
            check(body.from_levels(images, given, back), levels.from_levels_reference(images, given, there, back))


def gradient_of(reference: Callable[..., Tensor], *given: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Weights of the result, and by autograd the gradients of the floating arguments."""
    given = tuple(t.clone().requires_grad_() if isinstance(t, Tensor) and t.is_floating_point() else t for t in given)
    leaves = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
    result = reference(*given)
    weights = torch.linspace(-1, 2, result.numel(), dtype=torch.float64).to(result.dtype).view(result.shape)
    return weights, torch.autograd.grad(result, leaves, weights, materialize_grads=True)


@EACH_SIZE
@EACH_ORDER
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_gradients(size: tuple[int, int], order: list[int] | None, dtype: torch.dtype) -> None:
    images, (there, back) = pixels(size, dtype), places(order)
    for rounded in (False, True):
        weights, (wanted,) = gradient_of(levels.to_levels_reference, images, there, back, rounded, real(dtype))
        near(body.to_levels_backward(weights, images, back), wanted.contiguous())
    given = levels.to_levels_reference(images, there, back, False, real(dtype))
    weights, gradients = gradient_of(levels.from_levels_reference, images, given, there, back)
    got = body.from_levels_backward(weights, given, there, back, [True, True, False, False])
    if back is not None:  # else nothing of the images is left
        near(got[0], gradients[0].contiguous())
    near(got[1], gradients[1])
    (alone,) = body.from_levels_backward(weights, given, there, back, [False, True, False, False])
    same(alone, got[1])


def test_a_nan_stays() -> None:
    images = torch.full((1, 1, 1, 3), float("nan"))
    assert body.to_levels(images, None, False, torch.float32).isnan().all()


@EACH_SIZE
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64], ids=str)
def test_luma(size: tuple[int, int], dtype: torch.dtype) -> None:
    images = pixels(size, dtype)
    if dtype == torch.uint8:
        same(body.luma(images), levels.luma_reference(images))
        return
    weights, (wanted,) = gradient_of(levels.luma_reference, images)
    near(body.luma(images), levels.luma_reference(images))
    near(body.luma_backward(weights), wanted.contiguous())
