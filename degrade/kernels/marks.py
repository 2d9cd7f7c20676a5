"""Painted canvases laid over images."""

from __future__ import annotations

import torch
from torch import Tensor

from degrade.kernels import filter, native, quantize


def cover_reference(images: Tensor, canvas: Tensor) -> Tensor:
    return torch.where(canvas[:, -1:] > 0, canvas[:, :-1], images)


_cover_bytes = native.operator_like_first("cover", cover_reference, "Tensor images, Tensor canvas")


@_cover_bytes.register_kernel("cpu")
def _cover_cpu(images: Tensor, canvas: Tensor) -> Tensor:
    images, canvas = images.contiguous(), canvas.contiguous()
    channels, size = images.shape[1], images.shape[2] * images.shape[3]
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
    body = native.function("degrade_cover", *[native.POINTER] * 4, native.INT)

    def plane(n: int) -> None:
        b, c = divmod(n, channels)
        body(images[b, c].data_ptr(), canvas[b, c].data_ptr(), canvas[b, channels].data_ptr(), out[b, c].data_ptr(), size)

    native.parallel(len(images) * channels, plane)
    return out


@_cover_bytes.register_kernel("cuda")
def _cover_cuda(images: Tensor, canvas: Tensor) -> Tensor:
    from degrade.kernels.cuda import marks as body  # not every platform has Triton

    return body.cover(images, canvas)


def cover(images: Tensor, canvas: Tensor) -> Tensor:
    """(B, C, H, W) levels, covered by the first C channels of the (B, C + 1, H, W) uint8 ``canvas`` where its last one is not 0."""
    if images.dtype == torch.uint8:
        result: Tensor = _cover_bytes(images, canvas)
        return result
    return cover_reference(images, canvas.to(images.dtype))


def _glowing(images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor) -> Tensor:
    """Floating ``images``, and a ``kernel`` of the dtype in which the marks are blurred."""
    glow = filter.separable(marks.to(kernel.dtype), kernel).to(images.dtype)
    return images + weight * glow * colour[:, :, None, None]


def add_glow_reference(images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor) -> Tensor:
    return quantize.trunc(_glowing(images.float(), marks, filter.fixed_point(kernel), weight, colour), torch.uint8)


_add_glow_bytes = native.operator_like_first(
    "add_glow", add_glow_reference, "Tensor images, Tensor marks, Tensor kernel, Tensor weight, Tensor colour"
)


@_add_glow_bytes.register_kernel("cpu")
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


@_add_glow_bytes.register_kernel("cuda")
def _add_glow_cuda(images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor) -> Tensor:
    from degrade.kernels.cuda import marks as body

    return body.add_glow(images, marks, kernel, weight, colour)


def add_glow(images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor) -> Tensor:
    """trunc(images + weight blurred marks colour), stored in the dtype of ``images``.

    Args:
        images: (B, C, H, W) levels.
        marks: (B, 1, H, W) uint8, 0 or 1.
        kernel: (B, 3) float64 weights of the blur along both axes.
        weight: (B, 1, 1, 1) floating.
        colour: (B, C) levels.
    """
    if images.dtype == torch.uint8:
        result: Tensor = _add_glow_bytes(images, marks, kernel, weight, colour)
        return result
    return quantize.trunc(_glowing(images, marks, kernel.to(images.dtype), weight, colour), images.dtype)
