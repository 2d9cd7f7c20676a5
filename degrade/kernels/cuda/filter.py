"""Linear filters on CUDA; what they compute is stated in ``degrade/kernels/filter.py``.

One program sums a tile of pixels in registers, tap by tap; neighbouring taps read the same values, which stay in the cache.  All sums for
bytes are of whole numbers.  A first launch with a small program per image finds the taps that are not 0, so that the host need not know
them and the padding of a batch's smaller kernels costs no time.

A mirrored line repeats itself, so positions on it are numbered within one period.  There a pixel stands once if it is at an end, else
twice, the second time turned about the first pixel.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import clip, number, round_to_even, stored_rounded, stored_truncated, summed, through_clip

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


@triton.jit
def _at_ends(value: tl.constexpr, position, length):
    """``value`` at both ends of a line, else 1."""
    return tl.where((position == 0) | (position == length - 1), value, 1.0)


@triton.jit(do_not_specialize=_NUMBERS)
def _pad_weights(kernel, weights, reaches, size, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """An image's weights, for bytes as the whole numbers of ``fixed_point``, with ROWS zeros on either side, and how far from the centre
    those reach that are not 0.
    """
    image = tl.program_id(0).to(tl.int64)
    tap = tl.arange(0, BLOCK) - ROWS
    exists, centre = (tap >= 0) & (tap < size), size // 2
    weight = tl.load(kernel + image * size + tap, mask=exists, other=0.0)
    if weights.dtype.element_ty == tl.int32:
        weight = round_to_even(weight * _UNIT).to(tl.int32)
        weight += tl.where(tap == centre, _UNIT - tl.sum(weight, 0), 0)
    weight = weight.to(weights.dtype.element_ty)
    tl.store(weights + image * (size + 2 * ROWS) + ROWS + tap, weight, mask=tap < size + ROWS)
    tl.store(reaches + image, tl.max(tl.where(weight != 0, tl.abs(tap - centre), 0), 0))


@triton.jit
def _next(step, period):
    return tl.where(step + 1 >= period, step + 1 - period, step + 1)


@triton.jit(do_not_specialize=_NUMBERS)
def _blur_lines(
    planes, weights, reaches, out, size, height, width, channels, BACKWARD: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Bytes to multiples of 1/256 level in 16 bits, or floats; gradients, which go backward, count twice at each border."""
    image, plane, row, column = _tile(height, width, channels, ROWS, COLUMNS)
    row, column = tl.minimum(row, height - 1), tl.minimum(column, width - 1)
    start = plane * height * width + row.to(tl.int64) * width
    planes += start
    reach = tl.load(reaches + image)
    weights += image * (size + 2 * ROWS) + ROWS + size // 2 - reach
    period = _period(width)
    step = period - reach % period
    total = tl.zeros((ROWS, COLUMNS), weights.dtype.element_ty)
    for tap in tl.range(0, 2 * reach + 1, loop_unroll_factor=2):
        place = _mirrored(column, step, period)
        value = tl.load(planes + place).to(total.dtype)
        if BACKWARD:
            value *= _at_ends(2.0, place, width)
        total += tl.load(weights + tap) * value
        step = _next(step, period)
    if BACKWARD:
        total *= _at_ends(2.0, row, height)
    if out.dtype.element_ty == tl.uint16:
        total = ((total + 128) >> 8).to(tl.uint16)
    tl.store(out + start + column, total)


@triton.jit(do_not_specialize=_NUMBERS)
def _blur_columns(
    lines, weights, reaches, factors, out, size, height, width, channels,
    BACKWARD: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """These to levels, by sums of 32 bits for bytes; to gradients, halved at each border.  A thread has all rows of its columns, so that
    each value it reads goes into ROWS sums.
    """
    image, plane, row, column = _tile(height, width, channels, ROWS, COLUMNS)
    start = plane * height * width
    lines += start + tl.minimum(column, width - 1)
    reach = tl.load(reaches + image)
    weights += image * (size + 2 * ROWS) + ROWS + size // 2 - reach - tl.arange(0, ROWS)[:, None]
    period = _period(height)
    step = (tl.min(row) + period - reach % period) % period
    of_bytes: tl.constexpr = lines.dtype.element_ty == tl.uint16
    total = tl.zeros((ROWS, COLUMNS), tl.uint32 if of_bytes else lines.dtype.element_ty)
    for n in tl.range(0, ROWS + 2 * reach, loop_unroll_factor=4):
        value = tl.load(lines + _mirrored(0, step, period).to(tl.int64) * width)
        total += tl.load(weights + n).to(total.dtype) * value.to(total.dtype)
        step = _next(step, period)
    if of_bytes:
        total = total.to(tl.float64) * (1 / 16777216)  # exact
    if factors is not None:
        total *= tl.load(factors + image).to(total.dtype)
    if BACKWARD:
        total *= _at_ends(0.5, row, height) * _at_ends(0.5, column, width)
    else:
        total = stored_truncated(total, out.dtype.element_ty)
    tl.store(out + start + _at(row, column, width), total, mask=(row < height) & (column < width))


@triton.jit(do_not_specialize=_NUMBERS)
def _sum_taps(gradient, lines, columns, down, across, size, height, width, BLOCK: tl.constexpr):
    """Of a plane and a tap the sum of the gradient times the pixels that the tap weighs, of images blurred along the other axis."""
    plane, tap = (tl.program_id(0) // size).to(tl.int64), tl.program_id(0) % size
    start = plane * height * width
    y_period, x_period = _period(height), _period(width)
    y_step, x_step = (tap + y_period - size // 2 % y_period) % y_period, (tap + x_period - size // 2 % x_period) % x_period
    to_down = tl.zeros((BLOCK,), gradient.dtype.element_ty)
    to_across = to_down
    for first in range(0, height * width, BLOCK):
        pixel = first + tl.arange(0, BLOCK)
        inside = pixel < height * width
        row, column = pixel // width, pixel % width
        passed = tl.load(gradient + start + pixel, mask=inside, other=0)
        to_down += passed * tl.load(lines + start + _mirrored(row, y_step, y_period) * width + column, mask=inside, other=0)
        to_across += passed * tl.load(columns + start + row * width + _mirrored(column, x_step, x_period), mask=inside, other=0)
    tl.store(down + tl.program_id(0), tl.sum(to_down, 0))
    tl.store(across + tl.program_id(0), tl.sum(to_across, 0))


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
    of_bytes: tl.constexpr = planes.dtype.element_ty == tl.uint8
    total = tl.zeros((ROWS, COLUMNS), tl.int32 if of_bytes else planes.dtype.element_ty)
    for n in tl.range(0, tl.load(counts + image), loop_unroll_factor=4):
        y, x = _mirrored(row, tl.load(taps + 3 * n), y_period), _mirrored(column, tl.load(taps + 3 * n + 1), x_period)
        total += tl.load(taps + 3 * n + 2).to(total.dtype) * tl.load(planes + _at(y, x, width)).to(total.dtype)
    if of_bytes:
        odd = total // _UNIT & 1
        value = (total + (_UNIT // 2 - 1) + odd) // _UNIT  # ties to even
    else:
        value = clip(total * (1 / _UNIT))
    tl.store(out + start + _at(row, column, width), value.to(out.dtype.element_ty))


@triton.jit
def _standing(position, turned, length, period, reach):
    """Where pixels stand on a mirrored line, as they are or turned about the first one, whether each does, and whether any of these places
    is within reach of the line's own.
    """
    place = tl.where(turned, period - position, position)
    stands = (not turned) | ((position > 0) & (position < length - 1))
    return place, stands, (not turned) | (tl.min(position) <= reach) | (tl.max(position) >= length - 1 - reach)


@triton.jit
def _back(place, step, period):
    """The position a step before, which is at most a period."""
    return tl.where(place < step, place - step + period, place - step)


@triton.jit(do_not_specialize=_NUMBERS)
def _correlate_backward(gradient, taps, counts, out, size, height, width, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """What reads a pixel stands a tap before one of its places; of the mirrored positions only those of the image have a gradient."""
    image, plane, row, column = _tile(height, width, channels, ROWS, COLUMNS)
    row, column = tl.minimum(row, height - 1), tl.minimum(column, width - 1)
    start = plane * height * width
    gradient += start
    taps += image * size * size * 3
    y_period, x_period = _period(height), _period(width)
    total = tl.zeros((ROWS, COLUMNS), gradient.dtype.element_ty)
    for turn in range(4):
        y_place, y_stands, y_near = _standing(row, turn // 2 == 1, height, y_period, size // 2)
        x_place, x_stands, x_near = _standing(column, turn % 2 == 1, width, x_period, size // 2)
        for n in tl.range(0, tl.where(y_near & x_near, tl.load(counts + image), 0), loop_unroll_factor=4):
            y, x = _back(y_place, tl.load(taps + 3 * n), y_period), _back(x_place, tl.load(taps + 3 * n + 1), x_period)
            reads = y_stands & (y < height) & x_stands & (x < width)
            total += tl.load(taps + 3 * n + 2).to(total.dtype) * tl.load(gradient + _at(y, x, width), mask=reads, other=0.0)
    tl.store(out + start + _at(row, column, width), total * (1 / _UNIT))


@triton.jit
def _around(row, column, height, width):
    """The rows above and below and the columns to the left and right, mirrored."""
    y_period, x_period = _period(height), _period(width)
    above, below = _mirrored(row, y_period - 1, y_period), _mirrored(row, 1, y_period)
    return above, below, _mirrored(column, x_period - 1, x_period), _mirrored(column, 1, x_period)


@triton.jit
def _sharpened(planes, row, column, height, width, dtype: tl.constexpr):
    """Pixels, and five times each less its four neighbours."""
    above, below, left, right = _around(row, column, height, width)
    own = tl.load(planes + _at(row, column, width)).to(dtype)
    around = tl.load(planes + _at(above, column, width)).to(dtype) + tl.load(planes + _at(below, column, width)).to(dtype)
    around += tl.load(planes + _at(row, left, width)).to(dtype)
    around += tl.load(planes + _at(row, right, width)).to(dtype)
    return own, 5 * own - around


@triton.jit(do_not_specialize=_NUMBERS)
def _sharpen(
    planes, gains, out, kept: tl.float64, mixed: tl.float64, height, width, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    image, plane, row, column = _tile(height, width, channels, ROWS, COLUMNS)
    row, column = tl.minimum(row, height - 1), tl.minimum(column, width - 1)
    start = plane * height * width
    gain = number(gains, image, planes.dtype.element_ty)
    kept, mixed = tl.full([], kept, gain.dtype), tl.full([], mixed, gain.dtype)
    own, sharp = _sharpened(planes + start, row, column, height, width, gain.dtype)
    sharp = stored_rounded(gain * sharp, out.dtype.element_ty).to(gain.dtype)
    tl.store(out + start + _at(row, column, width), stored_rounded(own * kept + sharp * mixed, out.dtype.element_ty))


@triton.jit
def _through_sharpened(gradient, planes, gain, kept, mixed, row, column, height, width):
    """The gradients that pass through the clip of the blend, and through that of the sharpened pixels too, and these before gain."""
    own, sharp = _sharpened(planes, row, column, height, width, gain.dtype)
    passed = through_clip(tl.load(gradient + _at(row, column, width)), own * kept + clip(gain * sharp) * mixed)
    return passed, through_clip(passed * mixed, gain * sharp), sharp


@triton.jit(do_not_specialize=_NUMBERS)
def _sharpen_backward(
    gradient, planes, gains, out, parts, kept: tl.float64, mixed: tl.float64, height, width, channels,
    IMAGES: tl.constexpr, GAINS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """What passes is found anew at the neighbours, from the cache, rather than stored by a launch of its own.  ``parts`` gets a number
    from each program, what it adds to the gradient of its image's gain.
    """
    image, plane, row, column = _tile(height, width, channels, ROWS, COLUMNS)
    inside = (row < height) & (column < width)
    row, column = tl.minimum(row, height - 1), tl.minimum(column, width - 1)
    start = plane * height * width
    gradient += start
    planes += start
    gain = number(gains, image, planes.dtype.element_ty)
    kept, mixed = tl.full([], kept, gain.dtype), tl.full([], mixed, gain.dtype)
    passed, own, sharp = _through_sharpened(gradient, planes, gain, kept, mixed, row, column, height, width)
    if IMAGES:
        above, below, left, right = _around(row, column, height, width)
        vertical = _at_ends(2.0, above, height) * _through_sharpened(gradient, planes, gain, kept, mixed, above, column, height, width)[1]
        vertical += _at_ends(2.0, below, height) * _through_sharpened(gradient, planes, gain, kept, mixed, below, column, height, width)[1]
        horizontal = _at_ends(2.0, left, width) * _through_sharpened(gradient, planes, gain, kept, mixed, row, left, height, width)[1]
        horizontal += _at_ends(2.0, right, width) * _through_sharpened(gradient, planes, gain, kept, mixed, row, right, height, width)[1]
        around = vertical * _at_ends(0.5, row, height) + horizontal * _at_ends(0.5, column, width)
        tl.store(out + start + _at(row, column, width), passed * kept + gain * (5 * own - around))
    if GAINS:
        tl.store(parts + tl.program_id(0), tl.sum(tl.where(inside, own * sharp, 0.0)))


def _tiles(images: Tensor, rows: int, columns: int) -> tuple[int]:
    batch, channels, height, width = images.shape
    return (batch * channels * triton.cdiv(height, rows) * triton.cdiv(width, columns),)


def _prepared(
    images: Tensor, kernel: Tensor, dtype: torch.dtype
) -> tuple[tuple[Tensor, Tensor], tuple[int, int, int, int], dict[str, int]]:
    """The weights and their reaches, the sizes, and options of launches, for a result in ``dtype``."""
    batch, channels, height, width = images.shape
    size = kernel.shape[1]
    exact = dtype == torch.uint8
    weights = torch.empty(batch, size + 2 * _ROWS, dtype=torch.int32 if exact else dtype, device=images.device)
    reaches = torch.empty(batch, dtype=torch.int32, device=images.device)
    options = {"ROWS": _ROWS, "num_warps": 4, "num_stages": 1, "enable_fp_fusion": not exact}
    block = triton.next_power_of_2(size + 2 * _ROWS)
    _pad_weights[(batch,)](kernel.double().contiguous(), weights, reaches, size, BLOCK=block, **options)
    return (weights, reaches), (size, height, width, channels), options


def _blur(images: Tensor, kernel: Tensor, factor: Tensor | None, dtype: torch.dtype, backward: bool) -> Tensor:
    images = images.contiguous()
    out = torch.empty_like(images, dtype=dtype)
    if out.numel() == 0:
        return out
    lines = torch.empty_like(images, dtype=torch.uint16 if dtype == torch.uint8 else dtype)
    factors = None if factor is None else factor.contiguous()
    with torch.cuda.device_of(images):
        weights, sizes, options = _prepared(images, kernel, dtype)
        options = {**options, "BACKWARD": backward}
        _blur_lines[_tiles(images, _ROWS, _COLUMNS)](images, *weights, lines, *sizes, COLUMNS=_COLUMNS, **options)
        _blur_columns[_tiles(images, _ROWS, 2 * _COLUMNS)](lines, *weights, factors, out, *sizes, COLUMNS=2 * _COLUMNS, **options)
    return out


def gaussian_blur(images: Tensor, kernel: Tensor, factor: Tensor | None, dtype: torch.dtype | None = None) -> Tensor:
    """As ``gaussian_blur_reference`` of ``images`` in ``dtype``, their own or a floating one, for weights >= 0."""
    return _blur(images, kernel, factor, images.dtype if dtype is None else dtype, backward=False)


def gaussian_blur_backward(gradient: Tensor, images: Tensor, kernel: Tensor, factor: Tensor | None, wanted: list[bool]) -> list[Tensor]:
    """The wanted gradients of ``gaussian_blur_reference`` for floats, that of the images for symmetric kernels.

    What flows back along a mirrored line is a blur as well: its ends count twice in what is blurred, and half in the result.
    """
    want_images, want_kernel, want_factor = wanted
    found = [_blur(gradient, kernel, factor, gradient.dtype, backward=True)] if want_images else []
    if want_kernel or want_factor:
        down, across = _tap_sums(gradient, images.contiguous(), kernel)
    if want_kernel:
        found.append(down + across if factor is None else (down + across) * factor[:, None])
    if want_factor and factor is not None:
        found.append((down * kernel).sum(1, dtype=factor.dtype))
    return found


def _tap_sums(gradient: Tensor, images: Tensor, kernel: Tensor) -> tuple[Tensor, Tensor]:
    """(B, K): what a unit of each tap would add to the sum of ``gradient`` times the blurred images, as a step down and to the right."""
    batch, channels = images.shape[:2]
    size = kernel.shape[1]
    lines, columns = torch.empty_like(images), torch.empty_like(images)
    down, across = (torch.empty(batch, channels, size, dtype=images.dtype, device=images.device) for _ in range(2))
    if down.numel():
        with torch.cuda.device_of(images):
            weights, sizes, options = _prepared(images, kernel, images.dtype)
            options = {**options, "BACKWARD": False}
            _blur_lines[_tiles(images, _ROWS, _COLUMNS)](images, *weights, lines, *sizes, COLUMNS=_COLUMNS, **options)
            _blur_columns[_tiles(images, _ROWS, 2 * _COLUMNS)](images, *weights, None, columns, *sizes, COLUMNS=2 * _COLUMNS, **options)
            _sum_taps[(down.numel(),)](gradient, lines, columns, down, across, size, *images.shape[2:], BLOCK=_BLOCK, num_warps=4)
    return down.sum(1, dtype=kernel.dtype), across.sum(1, dtype=kernel.dtype)


def _listed(images: Tensor, kernels: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[int, int, int, int]]:
    """The taps and how many there are, and the sizes."""
    batch, channels, height, width = images.shape
    size = kernels.shape[-1]
    taps = torch.empty(batch, size * size, 3, dtype=torch.int32, device=images.device)
    counts = torch.empty(batch, dtype=torch.int32, device=images.device)
    _list_taps[(batch,)](kernels.contiguous(), taps, counts, size, height, width, BLOCK=_BLOCK, num_warps=4, num_stages=1)
    return (taps, counts), (size, height, width, channels)


def correlate(images: Tensor, kernels: Tensor) -> Tensor:
    """As ``correlate_reference``."""
    images = images.contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    tile = {"ROWS": _ROWS // 2, "COLUMNS": 2 * _COLUMNS}  # threads have few rows, whose places take longer to find than those of columns
    with torch.cuda.device_of(images):
        taps, sizes = _listed(images, kernels)
        _correlate[_tiles(images, *tile.values())](images, *taps, out, *sizes, **tile, num_warps=4, num_stages=1)
    return out


def correlate_backward(gradient: Tensor, kernels: Tensor) -> Tensor:
    """The gradient of the images of ``correlate_reference`` for floats."""
    out = torch.empty_like(gradient)
    if out.numel() == 0:
        return out
    tile = {"ROWS": _ROWS, "COLUMNS": _COLUMNS // 2}  # narrow, so that few tiles are at a border, where they sum more often
    with torch.cuda.device_of(gradient):
        taps, sizes = _listed(gradient, kernels)
        _correlate_backward[_tiles(gradient, *tile.values())](gradient, *taps, out, *sizes, **tile, num_warps=4, num_stages=1)
    return out


def sharpen(images: Tensor, gain: Tensor, kept: float, mixed: float) -> Tensor:
    """As ``sharpen_reference``."""
    images = images.contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    with torch.cuda.device_of(images):
        _sharpen[_tiles(images, _ROWS, _COLUMNS)](
            images, gain.contiguous(), out, kept, mixed, *images.shape[2:], images.shape[1],
            ROWS=_ROWS, COLUMNS=_COLUMNS, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip
    return out


def sharpen_backward(gradient: Tensor, images: Tensor, gain: Tensor, kept: float, mixed: float, wanted: list[bool]) -> list[Tensor]:
    """The wanted gradients of ``sharpen_reference`` for floats, of the images and the gain."""
    images = images.contiguous()
    want_images, want_gain, *_ = wanted
    to_images = torch.empty_like(images) if want_images else gradient
    tiles = _tiles(images, _ROWS, _COLUMNS)
    parts = torch.empty(len(images), tiles[0] // max(len(images), 1), dtype=images.dtype, device=images.device)
    if images.numel():
        with torch.cuda.device_of(images):
            _sharpen_backward[tiles](
                gradient, images, gain.contiguous(), to_images, parts, kept, mixed, *images.shape[2:], images.shape[1],
                IMAGES=want_images, GAINS=want_gain, ROWS=_ROWS, COLUMNS=_COLUMNS, num_warps=4, enable_fp_fusion=False,
            )  # fmt: skip
    found = [to_images] if want_images else []
    if want_gain:
        found.append(summed(parts, gain))
    return found
