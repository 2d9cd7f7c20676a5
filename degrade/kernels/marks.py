"""Painted canvases laid over images."""

from __future__ import annotations

import torch
from torch import Tensor

from degrade.kernels import filter, native, quantize
from degrade.kernels.dispatch import Kernel


def cover_reference(images: Tensor, canvas: Tensor, palette: Tensor) -> Tensor:
    channels = images.shape[1]
    levels = palette.to(images.dtype).transpose(1, 2).expand(-1, channels, -1)
    place = (canvas.long() - 1).clamp(min=0).flatten(2).expand(-1, channels, -1)
    return torch.where(canvas > 0, levels.gather(2, place).view(images.shape), images)


_cover = Kernel("cover", cover_reference, "Tensor images, Tensor canvas, Tensor palette")


@_cover.on_cpu
def _cover_cpu(images: Tensor, canvas: Tensor, palette: Tensor) -> Tensor:
    images, canvas, palette = images.contiguous(), canvas.contiguous(), palette.contiguous()
    channels, size = images.shape[1], images.shape[2] * images.shape[3]
    colours, step = palette.shape[1:]
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
    body = native.function("degrade_cover", *[native.POINTER] * 4, *[native.INT] * 3)
    first, below, levels, result = (tensor.data_ptr() for tensor in (images, canvas, palette, out))

    def plane(n: int) -> None:
        b, c = divmod(n, channels)
        body(first + n * size, below + b * size, levels + b * colours * step + c % step, result + n * size, size, colours, step)

    native.parallel(len(images) * channels, plane)
    return out


@_cover.on_cuda
def _cover_cuda(images: Tensor, canvas: Tensor, palette: Tensor) -> Tensor:
    from degrade.kernels.cuda import marks as body  # not every platform has Triton

    return body.cover(images, canvas, palette)


@_cover.gradient_on_cuda("images")
def _cover_gradient_cuda(gradient: Tensor, images: Tensor, canvas: Tensor, palette: Tensor, wanted: list[bool]) -> list[Tensor]:
    from degrade.kernels.cuda import marks as body

    return body.cover_backward(gradient, images, canvas, palette, wanted)


def cover(images: Tensor, canvas: Tensor, palette: Tensor) -> Tensor:
    """The levels that marks cover become theirs.

    Args:
        images: (B, C, H, W) levels.
        canvas: (B, 1, H, W) uint8, the number of the mark that stands on a pixel, from 1, or 0.
        palette: (B, N, C) or (B, N, 1) uint8, N at least the largest number and at least 1: the levels of each mark.
    """
    return _cover(images, canvas, palette)


def add_glow_reference(images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor) -> Tensor:
    if images.dtype == torch.uint8:
        levels, taps = images.float(), filter.fixed_point(kernel)
    else:
        levels, taps = images, kernel.to(images.dtype)
    glow = filter.separable(marks.to(taps.dtype), taps).to(levels.dtype)
    return quantize.trunc(levels + quantize.per_image(weight, images) * glow * colour[:, :, None, None], images.dtype)


_add_glow = Kernel("add_glow", add_glow_reference, "Tensor images, Tensor marks, Tensor kernel, Tensor weight, Tensor colour")


@_add_glow.on_cpu
def _add_glow_cpu(images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor) -> Tensor:
    channels, height, width = images.shape[1:]
    images, marks = images.contiguous(), marks.contiguous()
    taps = (filter.fixed_point(kernel) * filter.UNIT).contiguous()
    weights, colours = weight.flatten().tolist(), colour.tolist()
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
    body = native.function("degrade_add_glow", *[native.POINTER] * 4, *[native.DOUBLE] * 2, *[native.INT] * 2)

    def plane(n: int) -> None:
        b, c = divmod(n, channels)
        pointers = images[b, c].data_ptr(), marks[b, 0].data_ptr(), taps[b].data_ptr(), out[b, c].data_ptr()
        body(*pointers, weights[b], colours[b][c], height, width)

    native.parallel(len(images) * channels, plane)
    return out


@_add_glow.on_cuda
def _add_glow_cuda(images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor) -> Tensor:
    from degrade.kernels.cuda import marks as body

    return body.add_glow(images, marks, kernel, weight, colour)


@_add_glow.gradient_on_cuda("images", "kernel", "weight")
def _add_glow_gradient_cuda(
    gradient: Tensor, images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor, wanted: list[bool]
) -> list[Tensor]:
    from degrade.kernels.cuda import marks as body

    return body.add_glow_backward(gradient, images, marks, kernel, weight, colour, wanted)


def add_glow(images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor) -> Tensor:
    """trunc(images + weight blurred marks colour), stored in the dtype of ``images``.

    Args:
        images: (B, C, H, W) levels.
        marks: (B, 1, H, W) uint8, 0 or 1.
        kernel: (B, 3) float64 weights of the blur along both axes.
        weight: (B,) float64.
        colour: (B, C) levels.
    """
    return _add_glow(images, marks, kernel, weight, colour)
