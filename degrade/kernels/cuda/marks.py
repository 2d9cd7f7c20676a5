"""Canvases laid over images on CUDA; what is computed is stated in ``degrade/kernels/marks.py``."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import number, part_of_line, round_to_even, stored_truncated, summed, through_clip

_PIXELS = 1024  # of an image that one program works on
_COLUMNS = 512


@triton.jit(do_not_specialize=("channels", "colours", "palette_channels"))
def _cover(images, canvas, palette, out, size, channels, colours, palette_channels, BLOCK: tl.constexpr):
    """Each program works on the same pixels of all channels.  Marks beyond the ``colours`` of the palette are 0."""
    image, pixel, inside = part_of_line(size, BLOCK)
    number = tl.load(canvas + image * size + pixel, mask=inside, other=0).to(tl.int32)
    covered = number > 0
    colour = palette + (image * colours + number - 1) * palette_channels
    for channel in range(channels):
        here = (image * channels + channel) * size + pixel
        own = tl.load(images + here, mask=inside, other=0)
        level = tl.load(colour + channel % palette_channels, mask=covered & (number <= colours), other=0)
        tl.store(out + here, tl.where(covered, level.to(own.dtype), own), mask=inside)


def _covered(images: Tensor, canvas: Tensor, palette: Tensor) -> Tensor:
    images, canvas, palette = images.contiguous(), canvas.contiguous(), palette.contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    batch, channels, height, width = images.shape
    with torch.cuda.device_of(images):
        _cover[(batch * triton.cdiv(height * width, _PIXELS),)](
            images, canvas, palette, out, height * width, channels, *palette.shape[1:], BLOCK=_PIXELS, num_warps=4, enable_fp_fusion=False
        )
    return out


def cover(images: Tensor, canvas: Tensor, palette: Tensor) -> Tensor:
    """As ``cover_reference``."""
    return _covered(images, canvas, palette)


def cover_backward(gradient: Tensor, images: Tensor, canvas: Tensor, palette: Tensor, wanted: list[bool]) -> list[Tensor]:
    """The gradient of the images of ``cover_reference``: a palette without colours leaves 0 where marks stand."""
    return [_covered(gradient, canvas, palette[:, :0])]


@triton.jit
def _mirrored(n, length):
    """n in -1..length as an index into a line."""
    n = tl.abs(n)
    return tl.maximum(tl.minimum(n, 2 * (length - 1) - n), 0)


@triton.jit
def _three(marks, row, column, inside, height, width, dtype: tl.constexpr):
    """A row of the marks of one image, and it moved by a pixel to either side."""
    marks += _mirrored(row, height) * width
    left = tl.load(marks + _mirrored(column - 1, width), mask=inside, other=0).to(dtype)
    middle = tl.load(marks + column, mask=inside, other=0).to(dtype)
    right = tl.load(marks + _mirrored(column + 1, width), mask=inside, other=0).to(dtype)
    return left, middle, right


@triton.jit
def _glow(marks, kernel, image, row, column, inside, height, width, dtype: tl.constexpr):
    """The blurred marks of a row, and what each weight of the kernel adds to them per unit.

    For bytes, weights are whole numbers of 1/65536 and sums exact, and the glow is rounded once, to float32.
    """
    before, centre, after = tl.load(kernel + 3 * image), tl.load(kernel + 3 * image + 1), tl.load(kernel + 3 * image + 2)
    if dtype == tl.uint8:
        before, after = round_to_even(before * 65536.0).to(tl.int64), round_to_even(after * 65536.0).to(tl.int64)
        centre = 65536 - before - after
    else:
        before, centre, after = before.to(dtype), centre.to(dtype), after.to(dtype)
    marks += image * height * width
    a0, a1, a2 = _three(marks, row - 1, column, inside, height, width, before.dtype)
    b0, b1, b2 = _three(marks, row, column, inside, height, width, before.dtype)
    c0, c1, c2 = _three(marks, row + 1, column, inside, height, width, before.dtype)
    above, here, below = (
        before * a0 + centre * a1 + after * a2,
        before * b0 + centre * b1 + after * b2,
        before * c0 + centre * c1 + after * c2,
    )
    glow = before * above + centre * here + after * below
    if dtype == tl.uint8:
        glow = glow.to(tl.float32) * 2.3283064365386963e-10  # 2^-32
    return (
        glow,
        above + before * a0 + centre * b0 + after * c0,
        here + before * a1 + centre * b1 + after * c1,
        below + before * a2 + centre * b2 + after * c2,
    )


@triton.jit(do_not_specialize=("channels", "height", "width"))
def _add_glow(images, marks, kernel, weight, colour, out, channels, height, width, BLOCK: tl.constexpr):
    """Each program works on one row of all channels."""
    line, column, inside = part_of_line(width, BLOCK)
    image, row = line // height, line % height
    weight = number(weight, image, images.dtype.element_ty)
    glow, _, _, _ = _glow(marks, kernel, image, row, column, inside, height, width, images.dtype.element_ty)
    added = weight * glow
    for channel in range(channels):
        here = ((image * channels + channel) * height + row) * width + column
        level = tl.load(images + here, mask=inside, other=0).to(weight.dtype)
        level += added * tl.load(colour + image * channels + channel).to(weight.dtype)
        tl.store(out + here, stored_truncated(level, out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=("channels", "height", "width", "programs"))
def _add_glow_backward(
    gradient, images, marks, kernel, weight, colour, to_images, parts, channels, height, width, programs,
    IMAGES: tl.constexpr, NUMBERS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """``parts`` gets four numbers from each program, what it adds to the gradient of its image's weight and kernel."""
    line, column, inside = part_of_line(width, BLOCK)
    image, row = line // height, line % height
    weight = number(weight, image, images.dtype.element_ty)
    glow, before, centre, after = _glow(marks, kernel, image, row, column, inside, height, width, images.dtype.element_ty)
    added = weight * glow
    to_added = tl.zeros([BLOCK], weight.dtype)
    for channel in range(channels):
        here = ((image * channels + channel) * height + row) * width + column
        level, own_colour = tl.load(images + here, mask=inside, other=0), tl.load(colour + image * channels + channel).to(weight.dtype)
        passed = through_clip(tl.load(gradient + here, mask=inside, other=0), level + added * own_colour)
        if IMAGES:
            tl.store(to_images + here, passed, mask=inside)
        if NUMBERS:
            to_added += passed * own_colour
    if NUMBERS:
        part = parts + tl.program_id(0)
        tl.store(part, tl.sum(to_added * glow, 0))
        tl.store(part + programs, weight * tl.sum(to_added * before, 0))
        tl.store(part + 2 * programs, weight * tl.sum(to_added * centre, 0))
        tl.store(part + 3 * programs, weight * tl.sum(to_added * after, 0))


def _prepared(images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor) -> list[Tensor]:
    return [tensor.contiguous() for tensor in (images, marks, kernel.double(), weight, colour.expand(*images.shape[:2]))]


def add_glow(images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor) -> Tensor:
    """As ``add_glow_reference``."""
    given = _prepared(images, marks, kernel, weight, colour)
    out = torch.empty_like(given[0])
    if out.numel() == 0:
        return out
    batch, channels, height, width = images.shape
    with torch.cuda.device_of(images):
        _add_glow[(batch * height * triton.cdiv(width, _COLUMNS),)](
            *given, out, channels, height, width, BLOCK=_COLUMNS, num_warps=4, enable_fp_fusion=False
        )
    return out


def add_glow_backward(
    gradient: Tensor, images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor, wanted: list[bool]
) -> list[Tensor]:
    """The wanted gradients of ``add_glow_reference`` for floats, of images, kernel and weight."""
    given = _prepared(images, marks, kernel, weight, colour)
    batch, channels, height, width = images.shape
    want_images, _, want_kernel, want_weight, _ = wanted
    to_images = torch.empty_like(given[0]) if want_images else gradient
    parts = torch.empty(4, batch, height * triton.cdiv(width, _COLUMNS), dtype=images.dtype, device=images.device)
    if parts.numel():
        with torch.cuda.device_of(images):
            _add_glow_backward[(parts[0].numel(),)](
                gradient, *given, to_images, parts, channels, height, width, parts[0].numel(),
                IMAGES=want_images, NUMBERS=want_kernel or want_weight, BLOCK=_COLUMNS, num_warps=4, enable_fp_fusion=False,
            )  # fmt: skip
    found = [to_images] if want_images else []
    if want_kernel:
        found.append(parts[1:].sum(2, dtype=kernel.dtype).t().contiguous())
    if want_weight:
        found.append(summed(parts[0], weight))
    return found
