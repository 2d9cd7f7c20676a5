"""The climbs of mean-shift filtering on CUDA; what they compute is stated in ``degrade/kernels/mean_shift.py``.

The pixels to filter are listed on the device, and each lane of a program climbs for one of the list.  All programs that the image
could need are launched, and those past the end of the list end at once, so that the host never waits to know how many there are.

Whole levels are summed in float32, where sums below 2^24 are exact, others in float64.  Multiplications and additions must not be
fused: a mean is rounded once before it is rounded to a whole number.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_LANES = 32  # one warp: a program goes on as long as one of its pixels climbs
_STEPS = tl.constexpr(5)
_NUMBERS = ("height", "width", "level")  # one compilation for all of their values


@triton.jit
def _round(x):
    """float64 in [0, 2^51] to the nearest whole number, ties to even: the sum has no bits left for a fraction."""
    return (x + 4503599627370496.0) - 4503599627370496.0


@triton.jit
def _half(n):
    """Whole n / 2 to the nearest whole number, ties to even."""
    below = n >> 1
    return below + (n & below & 1)


@triton.jit
def _window(row, column, diameter, height, width):
    """First and last row, first and last column."""
    top, bottom = tl.maximum(_half(2 * row - diameter), 0), tl.minimum(_half(2 * row + diameter), height - 1)
    left, right = tl.maximum(_half(2 * column - diameter), 0), tl.minimum(_half(2 * column + diameter), width - 1)
    return top, bottom, left, right


@triton.jit
def _longest(first, last, active):
    """The number of rows or columns of the largest window."""
    return tl.max(tl.where(active, last - first + 1, 0), 0)


@triton.jit
def _near(image, size, inside, red, green, blue, limit):
    """The colours at the pointers ``image`` into the first plane, and whether they are members."""
    r, g, b = (
        tl.load(image, mask=inside, other=0.0),
        tl.load(image + size, mask=inside, other=0.0),
        tl.load(image + 2 * size, mask=inside, other=0.0),
    )
    distance = (r - red) * (r - red) + (g - green) * (g - green) + (b - blue) * (b - blue)
    return r, g, b, inside & (distance <= limit)


@triton.jit
def _listed(pixels, total, radius, height, width, level, LANES: tl.constexpr):
    """What the lanes of this program work on: whether at all, first index of the image, row, column, diameter and radius."""
    slot = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    active = slot < total
    pixel = tl.load(pixels + slot, mask=active, other=0)
    size = height.to(tl.int64) * width
    image, place = pixel // size, pixel % size
    reach = tl.load(radius + image, mask=active, other=0)
    return active, image * 3 * size, (place // width).to(tl.int32), (place % width).to(tl.int32), tl.maximum((2 * reach) >> level, 2), reach


@triton.jit
def _climb(image, active, row, column, diameter, limit, height, width, ROUNDED: tl.constexpr):
    """The colours at the end of the climbs; of the last windows: centre, its colour and the number of members.

    ``image`` points to the first value of each lane's image.
    """
    size = height.to(tl.int64) * width
    start = image + row.to(tl.int64) * width + column
    red, green, blue = (
        tl.load(start, mask=active, other=0.0),
        tl.load(start + size, mask=active, other=0.0),
        tl.load(start + 2 * size, mask=active, other=0.0),
    )
    nothing, none = tl.zeros_like(red), tl.zeros_like(row)
    last_row, last_column, last_red, last_green, last_blue, members = row, column, red, green, blue, none + 1
    moving = active
    step = 0
    while (step < _STEPS) & (tl.max(moving.to(tl.int32), 0) > 0):
        top, bottom, left, right = _window(row, column, diameter, height, width)
        count, rows, columns = none, none, none
        reds, greens, blues = nothing, nothing, nothing
        longest = _longest(left, right, moving)
        for j in range(_longest(top, bottom, moving)):
            first = image + (top + j).to(tl.int64) * width + left
            in_row = moving & (top + j <= bottom)
            here = none
            for k in range(longest):
                r, g, b, member = _near(first + k, size, in_row & (left + k <= right), red, green, blue, limit)
                here += member.to(tl.int32)
                columns += tl.where(member, k, 0)
                reds += tl.where(member, r, 0.0)
                greens += tl.where(member, g, 0.0)
                blues += tl.where(member, b, 0.0)
            count += here
            rows += here * j
        moving = moving & (count > 0)
        scale = 1.0 / tl.maximum(count, 1).to(tl.float64)
        new_row = _round((rows + top.to(tl.int64) * count).to(tl.float64) * scale).to(tl.int32)
        new_column = _round((columns + left.to(tl.int64) * count).to(tl.float64) * scale).to(tl.int32)
        new_red, new_green, new_blue = reds.to(tl.float64) * scale, greens.to(tl.float64) * scale, blues.to(tl.float64) * scale
        if ROUNDED:
            new_red, new_green, new_blue = _round(new_red), _round(new_green), _round(new_blue)
        r, g, b = new_red - red, new_green - green, new_blue - blue
        distance = tl.abs(new_row - row) + tl.abs(new_column - column)
        stopped = (distance == 0) | (distance + (r * r + g * g + b * b) <= 1)
        last_row, last_column = tl.where(moving, row, last_row), tl.where(moving, column, last_column)
        last_red, last_green = tl.where(moving, red, last_red), tl.where(moving, green, last_green)
        last_blue = tl.where(moving, blue, last_blue)
        members = tl.where(moving, count, members)
        row, column = tl.where(moving, new_row, row), tl.where(moving, new_column, column)
        red = tl.where(moving, new_red.to(red.dtype), red)
        green = tl.where(moving, new_green.to(red.dtype), green)
        blue = tl.where(moving, new_blue.to(red.dtype), blue)
        moving = moving & (stopped == 0)
        step += 1
    return red, green, blue, last_row, last_column, last_red, last_green, last_blue, members


@triton.jit(do_not_specialize=_NUMBERS)
def _forward(planes, pixels, count, radius, result, height, width, level, ROUNDED: tl.constexpr, LANES: tl.constexpr):
    total = tl.load(count)
    if tl.program_id(0).to(tl.int64) * LANES >= total:
        return
    active, offset, row, column, diameter, reach = _listed(pixels, total, radius, height, width, level, LANES)
    limit = (reach * reach).to(planes.dtype.element_ty)
    red, green, blue, _, _, _, _, _, _ = _climb(planes + offset, active, row, column, diameter, limit, height, width, ROUNDED)
    size = height.to(tl.int64) * width
    to = result + offset + row.to(tl.int64) * width + column
    tl.store(to, red.to(result.dtype.element_ty), mask=active)
    tl.store(to + size, green.to(result.dtype.element_ty), mask=active)
    tl.store(to + 2 * size, blue.to(result.dtype.element_ty), mask=active)


@triton.jit(do_not_specialize=_NUMBERS)
def _share_out(gradient, planes, pixels, count, radius, result, height, width, level, ROUNDED: tl.constexpr, LANES: tl.constexpr):
    total = tl.load(count)
    if tl.program_id(0).to(tl.int64) * LANES >= total:
        return
    active, offset, row, column, diameter, reach = _listed(pixels, total, radius, height, width, level, LANES)
    limit = (reach * reach).to(planes.dtype.element_ty)
    size = height.to(tl.int64) * width
    _, _, _, last_row, last_column, red, green, blue, members = _climb(
        planes + offset, active, row, column, diameter, limit, height, width, ROUNDED
    )
    at = gradient + offset + row.to(tl.int64) * width + column
    red_share = tl.load(at, mask=active, other=0.0).to(tl.float64) / members
    green_share = tl.load(at + size, mask=active, other=0.0).to(tl.float64) / members
    blue_share = tl.load(at + 2 * size, mask=active, other=0.0).to(tl.float64) / members
    top, bottom, left, right = _window(last_row, last_column, diameter, height, width)
    longest = _longest(left, right, active)
    for j in range(_longest(top, bottom, active)):
        first = offset + (top + j).to(tl.int64) * width + left
        in_row = active & (top + j <= bottom)
        for k in range(longest):
            _, _, _, member = _near(planes + first + k, size, in_row & (left + k <= right), red, green, blue, limit)
            tl.atomic_add(result + first + k, red_share, mask=member, sem="relaxed")
            tl.atomic_add(result + first + k + size, green_share, mask=member, sem="relaxed")
            tl.atomic_add(result + first + k + 2 * size, blue_share, mask=member, sem="relaxed")


def _list(wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The flat indices of the True of ``wanted``, in order and then anything; how many they are, on the device too."""
    flat = wanted.flatten()
    counted = flat.cumsum(0)
    pixels = torch.empty(len(flat) + 1, dtype=torch.int64, device=flat.device)
    slots = torch.where(flat, counted - 1, len(flat))
    return pixels.scatter_(0, slots, torch.arange(len(flat), device=flat.device)), counted[-1:]


def _planes(images: Tensor, rounded: bool) -> Tensor:
    return images.to(torch.float32 if rounded else torch.float64).contiguous()


def climb(images: Tensor, wanted: Tensor, radius: Tensor, level: int, rounded: bool) -> Tensor:
    """As ``mean_shift_climb_reference``."""
    result = torch.zeros_like(images, memory_format=torch.contiguous_format)
    if wanted.numel() == 0:
        return result
    with torch.cuda.device_of(images):
        _forward[(triton.cdiv(wanted.numel(), _LANES),)](
            _planes(images, rounded), *_list(wanted), radius.contiguous(), result, *images.shape[-2:], level,
            ROUNDED=rounded, LANES=_LANES, num_warps=1, num_stages=1, enable_fp_fusion=False,
        )  # fmt: skip
    return result


def climb_backward(gradient: Tensor, images: Tensor, wanted: Tensor, radius: Tensor, level: int, rounded: bool) -> Tensor:
    """As ``mean_shift_climb_backward_reference``, to the rounding of float64: the order of the additions is not fixed."""
    result = torch.zeros(images.shape, dtype=torch.float64, device=images.device)
    if wanted.numel() > 0:
        with torch.cuda.device_of(images):
            _share_out[(triton.cdiv(wanted.numel(), _LANES),)](
                gradient.contiguous(), _planes(images, rounded), *_list(wanted), radius.contiguous(), result, *images.shape[-2:], level,
                ROUNDED=rounded, LANES=_LANES, num_warps=1, num_stages=1, enable_fp_fusion=False,
            )  # fmt: skip
    return result.to(images.dtype)
