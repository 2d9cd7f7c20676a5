"""Between the images of a caller, of any dtype and in any order, and the levels that operators work on."""

from __future__ import annotations

import torch
from torch import Tensor

from degrade.kernels import quantize
from degrade.kernels.dispatch import Kernel

_LUMA_GREEN, _LUMA_BLUE = 0.587, 0.114  # ITU-R BT.601, the grey of JPEG and PNG readers; red has the rest


def to_levels_reference(images: Tensor, there: Tensor | None, back: Tensor | None, rounded: bool, dtype: torch.dtype) -> Tensor:
    chosen = images if there is None else images.index_select(0, there)
    if images.dtype == torch.uint8:
        return chosen.clone() if there is None else chosen
    real = torch.float64 if images.dtype == torch.float64 else torch.float32
    levels = quantize.clip(chosen.to(real), 0, 1) * 255
    return (quantize.round_through(levels) if rounded else levels).to(dtype)


_to_levels = Kernel(
    "to_levels",
    to_levels_reference,
    "Tensor images, Tensor? there, Tensor? back, bool rounded, ScalarType dtype",
    like=lambda images, there, back, rounded, dtype: images.new_empty(
        (len(images if there is None else there), *images.shape[1:]), dtype=dtype
    ),
)


@_to_levels.on_cuda
def _to_levels_cuda(images: Tensor, there: Tensor | None, back: Tensor | None, rounded: bool, dtype: torch.dtype) -> Tensor:
    from degrade.kernels.cuda import levels as body  # not every platform has Triton

    return body.to_levels(images, there, rounded, dtype)


@_to_levels.gradient_on_cuda("images")
def _to_levels_gradient_cuda(
    gradient: Tensor, images: Tensor, there: Tensor | None, back: Tensor | None, rounded: bool, dtype: torch.dtype, wanted: list[bool]
) -> list[Tensor]:
    from degrade.kernels.cuda import levels as body

    return [body.to_levels_backward(gradient, images, back)]


def to_levels(images: Tensor, there: Tensor | None, back: Tensor | None, rounded: bool, dtype: torch.dtype) -> Tensor:
    """The levels of some images, in another order.

    Args:
        images: (B, C, H, W), uint8 or floating in [0, 1], which is clipped.
        there: (N,) int64, which image each of the N results is of; None for all in their order.
        back: (B,) int64, the place of each image among the results, or -1; None for all in their order.
        rounded: whether floats become whole levels, to nearest, ties to even; their gradient goes past it.
        dtype: of the result: for bytes uint8; for floats float64 for float64, float32 for all others, or uint8 if ``rounded``.
    """
    return _to_levels(images, there, back, rounded, dtype)


def from_levels_reference(images: Tensor, levels: Tensor, there: Tensor | None, back: Tensor | None) -> Tensor:
    if images.is_floating_point():
        real = torch.float64 if images.dtype == torch.float64 else torch.float32
        levels = (levels.to(real) / 255).to(images.dtype)
    if back is None:
        return levels
    chosen = levels.index_select(0, back.clamp(min=0))
    return torch.where((back >= 0)[:, None, None, None], chosen, images)


_from_levels = Kernel("from_levels", from_levels_reference, "Tensor images, Tensor levels, Tensor? there, Tensor? back")


@_from_levels.on_cuda
def _from_levels_cuda(images: Tensor, levels: Tensor, there: Tensor | None, back: Tensor | None) -> Tensor:
    from degrade.kernels.cuda import levels as body

    return body.from_levels(images, levels, back)


@_from_levels.gradient_on_cuda("images", "levels")
def _from_levels_gradient_cuda(
    gradient: Tensor, images: Tensor, levels: Tensor, there: Tensor | None, back: Tensor | None, wanted: list[bool]
) -> list[Tensor]:
    from degrade.kernels.cuda import levels as body

    return body.from_levels_backward(gradient, levels, there, back, wanted)


def from_levels(images: Tensor, levels: Tensor, there: Tensor | None, back: Tensor | None) -> Tensor:
    """``images`` with ``levels`` in the places that ``to_levels`` took them from, in the dtype and range of the images.

    Args:
        images: (B, C, H, W), uint8, or floating in [0, 1].
        levels: (N, C, H, W), uint8, or for floating images also float32 or float64.
        there, back: as for ``to_levels``.
    """
    return _from_levels(images, levels, there, back)


def luma_reference(images: Tensor) -> Tensor:
    if images.dtype == torch.uint8:
        red, green, blue = torch.split(images.to(torch.int32), 1, 1)
        grey: Tensor = (red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16
        return grey.to(torch.uint8)
    red, green, blue = torch.split(images, 1, 1)
    return red + _LUMA_GREEN * (green - red) + _LUMA_BLUE * (blue - red)


_luma = Kernel("luma", luma_reference, "Tensor images", like=lambda images: images.new_empty((len(images), 1, *images.shape[2:])))


@_luma.on_cuda
def _luma_cuda(images: Tensor) -> Tensor:
    from degrade.kernels.cuda import levels as body

    return body.luma(images)


@_luma.gradient_on_cuda("images")
def _luma_gradient_cuda(gradient: Tensor, images: Tensor, wanted: list[bool]) -> list[Tensor]:
    from degrade.kernels.cuda import levels as body

    return [body.luma_backward(gradient)]


def luma(images: Tensor) -> Tensor:
    """(B, 3, H, W) levels to (B, 1, H, W); three equal channels come out exactly."""
    return _luma(images)
