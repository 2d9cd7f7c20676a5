"""Linear filters of bytes on CUDA; what they compute is stated in ``degrade/kernels/filter.py``.

One program sums a tile of pixels in registers, tap by tap; neighbouring taps read the same bytes, which stay in the cache.  All sums are
of whole numbers.  A first launch with a small program per image finds the taps that are not 0, so that the host need not know them and
the padding of a batch's smaller kernels costs no time.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import clip, round_to_even, rounded, truncated

_UNIT = tl.constexpr(65536)  # of a fixed-point weight of 1
_ROWS, _COLUMNS = 16, 128  # of a tile
_BLOCK = 1024  # taps that are listed at once
_NUMBERS = ("height", "width", "channels", "size")  # one compilation for all of their values


@triton.jit
def _tile(height, width, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The image and plane that this program works on, and the rows and columns of its tile; some may be past the end."""
    across, down = tl.cdiv(width, COLUMNS), tl.cdiv(height, ROWS)
    plane, tile = tl.program_id(0) // (across * down), tl.program_id(0) % (across * down)
    row = tile // across * ROWS + tl.arange(0, ROWS)[:, None]
    column = tile % across * COLUMNS + tl.arange(0, COLUMNS)[None]
    return (plane // channels).to(tl.int64), plane.to(tl.int64), row, column


@triton.jit
def _period(length):
    """After how many pixels a mirrored line repeats itself."""
    return tl.maximum(2 * length - 2, 1)


@triton.jit
def _mirrored(position, step, period):
    """The pixel at ``position + step`` of a mirrored line; the step is at least 0 and at most a period."""
    folded = position + step
    folded = tl.where(folded >= period, folded - period, folded)
    return tl.minimum(folded, period - folded)


@triton.jit
def _at(row, column, width):
    return row.to(tl.int64) * width + column


@triton.jit(do_not_specialize=_NUMBERS)
def _fixed_point(kernel, weights, reaches, size, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """``fixed_point`` of an image's weights >= 0 as whole numbers, with ROWS zeros on either side, and how far from the centre those reach
    that are not 0.
    """
    image = tl.program_id(0).to(tl.int64)
    tap = tl.arange(0, BLOCK) - ROWS
    exists, centre = (tap >= 0) & (tap < size), size // 2
    weight = round_to_even(tl.load(kernel + image * size + tap, mask=exists, other=0.0) * _UNIT).to(tl.int32)
    weight += tl.where(tap == centre, _UNIT - tl.sum(weight, 0), 0)
    tl.store(weights + image * (size + 2 * ROWS) + ROWS + tap, weight, mask=tap < size + ROWS)
    tl.store(reaches + image, tl.max(tl.where(weight != 0, tl.abs(tap - centre), 0), 0))


@triton.jit
def _next(step, period):
    return tl.where(step + 1 >= period, step + 1 - period, step + 1)


@triton.jit(do_not_specialize=_NUMBERS)
def _blur_lines(planes, weights, reaches, out, size, height, width, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Bytes to multiples of 1/256 level in 16 bits."""
    image, plane, row, column = _tile(height, width, channels, ROWS, COLUMNS)
    row, column = tl.minimum(row, height - 1), tl.minimum(column, width - 1)
    start = plane * height * width + row.to(tl.int64) * width
    planes += start
    reach = tl.load(reaches + image)
    weights += image * (size + 2 * ROWS) + ROWS + size // 2 - reach
    period = _period(width)
    step = period - reach % period
    total = tl.full((ROWS, COLUMNS), 128, tl.int32)  # half a multiple
    for tap in tl.range(0, 2 * reach + 1, loop_unroll_factor=2):
        total += tl.load(weights + tap) * tl.load(planes + _mirrored(column, step, period)).to(tl.int32)
        step = _next(step, period)
    tl.store(out + start + column, (total >> 8).to(tl.uint16))


@triton.jit(do_not_specialize=_NUMBERS)
def _blur_columns(lines, weights, reaches, factors, out, size, height, width, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """These to bytes, by sums of 32 bits.  A thread has all rows of its columns, so that each value it reads goes into ROWS sums."""
    image, plane, row, column = _tile(height, width, channels, ROWS, COLUMNS)
    column = tl.minimum(column, width - 1)
    start = plane * height * width + column
    reach = tl.load(reaches + image)
    weights += image * (size + 2 * ROWS) + ROWS + size // 2 - reach - tl.arange(0, ROWS)[:, None]
    period = _period(height)
    step = (tl.min(row) + period - reach % period) % period
    total = tl.zeros((ROWS, COLUMNS), tl.uint32)
    for n in tl.range(0, ROWS + 2 * reach, loop_unroll_factor=4):
        value = tl.load(lines + start + _mirrored(0, step, period).to(tl.int64) * width)
        total += tl.load(weights + n).to(tl.uint32) * value.to(tl.uint32)
        step = _next(step, period)
    level = total.to(tl.float64) * (1 / 16777216)  # exact
    tl.store(out + start + row.to(tl.int64) * width, truncated(level * tl.load(factors + image)), mask=row < height)


@triton.jit(do_not_specialize=_NUMBERS)
def _list_taps(kernels, taps, counts, size, height, width, BLOCK: tl.constexpr):
    """The taps of an image's kernel that are not 0: the steps down and to the right, within the period, and the weight."""
    image = tl.program_id(0).to(tl.int64)
    kernels += image * size * size
    taps += image * size * size * 3
    y_period, x_period = _period(height), _period(width)
    found = 0
    for first in range(0, size * size, BLOCK):
        tap = first + tl.arange(0, BLOCK)
        weight = tl.load(kernels + tap, mask=tap < size * size, other=0)
        wanted = weight != 0
        slot = taps + 3 * (found + tl.cumsum(wanted.to(tl.int32), 0) - 1)
        tl.store(slot, (tap // size + y_period - size // 2 % y_period) % y_period, mask=wanted)
        tl.store(slot + 1, (tap % size + x_period - size // 2 % x_period) % x_period, mask=wanted)
        tl.store(slot + 2, weight, mask=wanted)
        found += tl.sum(wanted.to(tl.int32), 0)
    tl.store(counts + image, found)


@triton.jit(do_not_specialize=_NUMBERS)
def _correlate(planes, taps, counts, out, size, height, width, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    image, plane, row, column = _tile(height, width, channels, ROWS, COLUMNS)
    row, column = tl.minimum(row, height - 1), tl.minimum(column, width - 1)
    start = plane * height * width
    planes += start
    taps += image * size * size * 3
    y_period, x_period = _period(height), _period(width)
    total = tl.zeros((ROWS, COLUMNS), tl.int32)
    for n in tl.range(0, tl.load(counts + image), loop_unroll_factor=4):
        y, x = _mirrored(row, tl.load(taps + 3 * n), y_period), _mirrored(column, tl.load(taps + 3 * n + 1), x_period)
        total += tl.load(taps + 3 * n + 2) * tl.load(planes + _at(y, x, width)).to(tl.int32)
    odd = total // _UNIT & 1
    value = (total + (_UNIT // 2 - 1) + odd) // _UNIT  # ties to even
    tl.store(out + start + _at(row, column, width), value.to(tl.uint8))


@triton.jit(do_not_specialize=_NUMBERS)
def _sharpen(planes, gains, out, kept, mixed, height, width, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    image, plane, row, column = _tile(height, width, channels, ROWS, COLUMNS)
    row, column = tl.minimum(row, height - 1), tl.minimum(column, width - 1)
    start = plane * height * width
    planes += start
    y_period, x_period = _period(height), _period(width)
    above, below = _mirrored(row, y_period - 1, y_period), _mirrored(row, 1, y_period)
    left, right = _mirrored(column, x_period - 1, x_period), _mirrored(column, 1, x_period)
    own = tl.load(planes + _at(row, column, width)).to(tl.int32)
    around = tl.load(planes + _at(above, column, width)).to(tl.int32) + tl.load(planes + _at(below, column, width)).to(tl.int32)
    around += tl.load(planes + _at(row, left, width)).to(tl.int32) + tl.load(planes + _at(row, right, width)).to(tl.int32)
    sharp = round_to_even(clip(tl.load(gains + image) * (5 * own - around).to(tl.float32)))
    tl.store(out + start + _at(row, column, width), rounded(own.to(tl.float32) * kept + sharp * mixed))


def _tiles(images: Tensor, rows: int, columns: int) -> tuple[int]:
    batch, channels, height, width = images.shape
    return (batch * channels * triton.cdiv(height, rows) * triton.cdiv(width, columns),)


def gaussian_blur(images: Tensor, kernel: Tensor, factor: Tensor) -> Tensor:
    """As ``gaussian_blur_reference``, for weights >= 0."""
    images, kernel, factor = images.contiguous(), kernel.double().contiguous(), factor.double().contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    batch, channels, height, width = images.shape
    size = kernel.shape[1]
    weights = torch.empty(batch, size + 2 * _ROWS, dtype=torch.int32, device=images.device)
    reaches = torch.empty(batch, dtype=torch.int32, device=images.device)
    lines = torch.empty_like(images, dtype=torch.uint16)
    sizes = size, height, width, channels
    options = {"ROWS": _ROWS, "num_warps": 4, "num_stages": 1, "enable_fp_fusion": False}
    with torch.cuda.device_of(images):
        _fixed_point[(batch,)](kernel, weights, reaches, size, BLOCK=triton.next_power_of_2(size + 2 * _ROWS), **options)
        _blur_lines[_tiles(images, _ROWS, _COLUMNS)](images, weights, reaches, lines, *sizes, COLUMNS=_COLUMNS, **options)
        _blur_columns[_tiles(images, _ROWS, 2 * _COLUMNS)](lines, weights, reaches, factor, out, *sizes, COLUMNS=2 * _COLUMNS, **options)
    return out


def correlate(images: Tensor, kernels: Tensor) -> Tensor:
    """As ``correlate_reference``."""
    images, kernels = images.contiguous(), kernels.contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    batch, channels, height, width = images.shape
    size = kernels.shape[-1]
    taps = torch.empty(batch, size * size, 3, dtype=torch.int32, device=images.device)
    counts = torch.empty(batch, dtype=torch.int32, device=images.device)
    tile = {"ROWS": _ROWS // 2, "COLUMNS": 2 * _COLUMNS}  # threads have few rows, whose places take longer to find than those of columns
    with torch.cuda.device_of(images):
        _list_taps[(batch,)](kernels, taps, counts, size, height, width, BLOCK=_BLOCK, num_warps=4, num_stages=1)
        _correlate[_tiles(images, *tile.values())](
            images, taps, counts, out, size, height, width, channels, **tile, num_warps=4, num_stages=1
        )
    return out


def sharpen(images: Tensor, gain: Tensor, kept: float, mixed: float) -> Tensor:
    """As ``sharpen_reference``."""
    images = images.contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    with torch.cuda.device_of(images):
        _sharpen[_tiles(images, _ROWS, _COLUMNS)](
            images, gain.float().contiguous(), out, kept, mixed, *images.shape[2:], images.shape[1],
            ROWS=_ROWS, COLUMNS=_COLUMNS, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip
    return out
