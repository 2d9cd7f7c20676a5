"""Rounding to 8 bits, and gradients that go past a rounding.

Images are handled as *levels*: numbers in 0..255, either uint8 or floating point.  Bytes are rounded wherever the published
pipeline stores an image; floats are only clipped there, so that the same formula is smooth.  The gradient of a clip is 1 inside
and at the ends of [0, 255], 0 outside.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from degrade.kernels import native
from degrade.kernels.dispatch import Kernel


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


def per_image(numbers: Tensor, images: Tensor) -> Tensor:
    """A number for each image as (B, 1, 1, 1) in the dtype that a formula is worked out in: float32 for bytes."""
    return numbers.reshape(-1, 1, 1, 1).to(images.dtype if images.is_floating_point() else torch.float32)


def blend_reference(first: Tensor, weight: Tensor, second: Tensor, other_weight: Tensor) -> Tensor:
    weight, other_weight = per_image(weight, first), per_image(other_weight, first)
    if first.dtype == torch.uint8:
        return round(first.float() * weight + second.float() * other_weight, torch.uint8)
    return round(first * weight + second * other_weight, first.dtype)


_blend = Kernel("blend", blend_reference, "Tensor first, Tensor weight, Tensor second, Tensor other_weight")


@_blend.on_cpu
def _blend_cpu(first: Tensor, weight: Tensor, second: Tensor, other_weight: Tensor) -> Tensor:
    body = native.function("degrade_blend", *[native.POINTER] * 3, *[native.DOUBLE] * 2, native.INT)
    first, second = first.contiguous(), second.contiguous()
    channels, size = first.shape[1], first[0, 0].numel() if len(first) else 0
    out = torch.empty(first.shape, dtype=torch.uint8, device="cpu")
    weights = list(zip(weight.flatten().tolist(), other_weight.flatten().tolist(), strict=True))

    def plane(n: int) -> None:
        b, c = divmod(n, channels)
        body(first[b, c].data_ptr(), second[b, c % second.shape[1]].data_ptr(), out[b, c].data_ptr(), *weights[b], size)

    native.parallel(len(first) * channels, plane)
    return out


@_blend.on_cuda
def _blend_cuda(first: Tensor, weight: Tensor, second: Tensor, other_weight: Tensor) -> Tensor:
    from degrade.kernels.cuda import quantize as body  # not every platform has Triton

    return body.blend(first, weight, second, other_weight)


@_blend.gradient_on_cuda("first", "weight", "second", "other_weight")
def _blend_gradient_cuda(
    gradient: Tensor, first: Tensor, weight: Tensor, second: Tensor, other_weight: Tensor, wanted: list[bool]
) -> list[Tensor]:
    from degrade.kernels.cuda import quantize as body

    found: list[Tensor] = body.blend_backward(gradient, first, weight, second, other_weight, wanted)
    return found


def blend(first: Tensor, weight: Tensor | float, second: Tensor, other_weight: Tensor | float) -> Tensor:
    """round(weight first + other_weight second), stored in the dtype of ``first``.

    Single operations in float32 (no fused multiply-add), so that every device gives the same bits for bytes.

    Args:
        first: (B, C, H, W) levels.
        second: (B, C, H, W) or (B, 1, H, W) levels of the same dtype.
        weight, other_weight: numbers, or (B,) float64.
    """
    return _blend(first, _each(weight, first), second, _each(other_weight, first))


def _each(value: Tensor | float, images: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else torch.full((len(images),), value, dtype=torch.float64, device=images.device)


def scale_rows_reference(images: Tensor, factors: Tensor) -> Tensor:
    if images.dtype == torch.uint8:
        return trunc(images.double() * factors[:, None, :, None], torch.uint8)
    return trunc(images * factors.to(images.dtype)[:, None, :, None], images.dtype)


_scale_rows = Kernel("scale_rows", scale_rows_reference, "Tensor images, Tensor factors")


@_scale_rows.on_cpu
def _scale_rows_cpu(images: Tensor, factors: Tensor) -> Tensor:
    body = native.function("degrade_scale_rows", *[native.POINTER] * 3, *[native.INT] * 2)
    channels, height, width = images.shape[1:]
    images, factors = images.contiguous(), factors.expand(-1, height).contiguous()
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")

    def plane(n: int) -> None:
        b, c = divmod(n, channels)
        body(images[b, c].data_ptr(), factors[b].data_ptr(), out[b, c].data_ptr(), height, width)

    native.parallel(len(images) * channels, plane)
    return out


@_scale_rows.on_cuda
def _scale_rows_cuda(images: Tensor, factors: Tensor) -> Tensor:
    from degrade.kernels.cuda import quantize as body

    return body.scale_rows(images, factors)


@_scale_rows.gradient_on_cuda("images", "factors")
def _scale_rows_gradient_cuda(gradient: Tensor, images: Tensor, factors: Tensor, wanted: list[bool]) -> list[Tensor]:
    from degrade.kernels.cuda import quantize as body

    found: list[Tensor] = body.scale_rows_backward(gradient, images, factors, wanted)
    return found


def scale_rows(images: Tensor, factors: Tensor) -> Tensor:
    """trunc(factors images), stored in the dtype of (B, C, H, W) ``images``; float64 ``factors`` are (B, H), or (B, 1) for all rows.

    Bytes are multiplied in float64: in float32 some products are a level off.
    """
    return _scale_rows(images, factors)


class _StraightThrough(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(smooth: Tensor, exact: Tensor) -> Tensor:
        return exact.to(smooth.dtype, copy=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


def straight_through(smooth: Tensor, exact: Tensor) -> Tensor:
    """The values of ``exact``, of any dtype, in the floating dtype of ``smooth``, with the gradient of ``smooth``; both of one shape."""
    result: Tensor = _StraightThrough.apply(smooth, exact.detach())
    return result


def round_through(values: Tensor) -> Tensor:
    """Nearest integers, ties to even, with the gradient of the identity: for roundings that are the degradation itself."""
    return straight_through(values, values.detach().round())
