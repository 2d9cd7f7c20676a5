"""Rounding to 8 bits, and gradients that go past a rounding.

Images are handled as *levels*: numbers in 0..255, either uint8 or floating point.  Bytes are rounded wherever the published
pipeline stores an image; floats are only clipped there, so that the same formula is smooth.  The gradient of a clip is 1 inside
and at the ends of [0, 255], 0 outside.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def clip(values: Tensor, low: float, high: float) -> Tensor:
    """``values`` within [low, high]; the gradient is 1 inside and at both ends, 0 outside.

    The gradient of ``torch.clamp`` at the ends is 1 in some versions of torch and 0 in others.
    """
    clipped = values.clamp(low, high)
    return torch.where(clipped == values, values, clipped.detach()) if values.requires_grad else clipped


def trunc(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Floating ``values`` stored as ``dtype``: clipped to [0, 255], and for uint8 without the fraction."""
    return clip(values, 0, 255).to(dtype)


def round(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Floating ``values`` stored as ``dtype``: clipped to [0, 255], and for uint8 rounded to nearest, ties to even."""
    clipped = clip(values, 0, 255)
    return clipped.round().to(dtype) if dtype == torch.uint8 else clipped.to(dtype)


def blend(first: Tensor, weight: Tensor | float, second: Tensor, other_weight: Tensor | float, dtype: torch.dtype) -> Tensor:
    """round(weight first + other_weight second), stored as ``dtype``; weights are numbers or (B, 1, 1, 1).

    Single operations (no fused multiply-add), so that every device gives the same bits.
    """
    compute = dtype if dtype.is_floating_point else torch.float32
    return round(first.to(compute) * weight + second.to(compute) * other_weight, dtype)


class _StraightThrough(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(smooth: Tensor, exact: Tensor) -> Tensor:
        return exact.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


def straight_through(smooth: Tensor, exact: Tensor) -> Tensor:
    """The values of ``exact`` with the gradient of ``smooth``; both of one shape and floating dtype."""
    result: Tensor = _StraightThrough.apply(smooth, exact.detach())
    return result


def round_through(values: Tensor) -> Tensor:
    """Nearest integers, ties to even, with the gradient of the identity: for roundings that are the degradation itself."""
    return straight_through(values, values.detach().round())
