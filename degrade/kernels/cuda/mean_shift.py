"""Mean-shift filtering on CUDA; what is computed is stated in ``degrade/kernels/mean_shift.py``.

A first launch of each climb lists the pixels to filter of each block of an image, and each lane of a program of the second climbs for
one of a list.  All programs that a block could need are launched, and those past the end of its list end at once, so that the host
never waits to know how many there are.

Whole levels are summed in float32, where sums below 2^24 are exact, others in float64.  Multiplications and additions must not be
fused: a mean is rounded once before it is rounded to a whole number.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import part_of_line, round_to_even

_LANES = 32  # one warp: a program goes on as long as one of its pixels climbs
_STEPS = tl.constexpr(5)
_MIN_EDGE = tl.constexpr(16)
_PIXELS = 1024  # of an image, that are listed together
_ROWS, _COLUMNS = 16, 64  # of the pyramid, that one program works on
_NUMBERS = ("height", "width", "level")  # one compilation for all of their values
_SIZES = ("lines", "height", "width")


# -- the pyramid ----------------------------------------------------------------------------------------------------------


@triton.jit
def _tile(lines, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Of ``lines`` rows, ``height`` to a plane, what this program works on: planes and rows, columns, and which exist."""
    across = tl.cdiv(width, COLUMNS)
    line = (tl.program_id(0) // across).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)[None]
    return line // height, (line % height).to(tl.int32), column, (line < lines) & (column < width)


@triton.jit
def _weight_down(j, x, size):
    """Of pixel ``x``, at most 2 away from 2 ``j``, in pixel ``j`` of the smaller of two levels; ``size`` is the larger's.  Mirrored
    without repeating the edge pixel.
    """
    total = tl.zeros_like(x)
    for step in tl.static_range(-2, 3):
        position = tl.abs(2 * j + step)
        position = tl.maximum(tl.minimum(position, 2 * (size - 1) - position), 0)
        total += tl.where(position == x, 6 if step == 0 else (4 if step * step == 1 else 1), 0)
    return total


@triton.jit
def _weight_up(x, j, half):
    """Of pixel ``j``, at most 1 away from ``x`` // 2, in pixel ``x`` of the larger of two levels; ``half`` is the smaller's size.
    Mirrored at the start, the last pixel repeated at the end.
    """
    centre, odd = x // 2, x % 2
    before, after = tl.minimum(tl.abs(centre - 1), half - 1), tl.minimum(centre + 1, half - 1)
    return tl.where(before == j, 1 - odd, 0) + tl.where(centre == j, 6 - 2 * odd, 0) + tl.where(after == j, 1 + 3 * odd, 0)


@triton.jit
def _stored(value, dtype: tl.constexpr):
    """For bytes rounded half up."""
    return (value + 0.5).to(tl.int32).to(tl.uint8) if dtype == tl.uint8 else value.to(dtype)


@triton.jit
def _real(images):
    dtype: tl.constexpr = tl.float32 if images.dtype.element_ty == tl.uint8 else images.dtype.element_ty
    return dtype


@triton.jit(do_not_specialize=_SIZES)
def _pyramid_down(images, out, lines, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Each program sums a part of the smaller images."""
    half_height, half_width = (height + 1) // 2, (width + 1) // 2
    plane, row, column, inside = _tile(lines, half_height, half_width, ROWS, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), _real(images))
    for dx in tl.static_range(-2, 3):
        x = 2 * column + dx
        of_column = tl.zeros((ROWS, COLUMNS), total.dtype)
        for dy in tl.static_range(-2, 3):
            y = 2 * row + dy
            exists = inside & (y >= 0) & (y < height) & (x >= 0) & (x < width)
            value = tl.load(images + (plane * height + y) * width + x, mask=exists, other=0).to(total.dtype)
            of_column += value * _weight_down(row, y, height).to(total.dtype)
        total += of_column * _weight_down(column, x, width).to(total.dtype)
    to = out + (plane * half_height + row) * half_width + column
    tl.store(to, _stored(total * (1 / 256), out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=_SIZES)
def _pyramid_down_backward(gradient, out, lines, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Each program sums a part of the larger images."""
    half_height, half_width = (height + 1) // 2, (width + 1) // 2
    plane, row, column, inside = _tile(lines, height, width, ROWS, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), out.dtype.element_ty)
    for dx in tl.static_range(-1, 2):
        x = column // 2 + dx
        of_column = tl.zeros((ROWS, COLUMNS), total.dtype)
        for dy in tl.static_range(-1, 2):
            y = row // 2 + dy
            exists = inside & (y >= 0) & (y < half_height) & (x >= 0) & (x < half_width)
            value = tl.load(gradient + (plane * half_height + y) * half_width + x, mask=exists, other=0)
            of_column += value * _weight_down(y, row, height).to(total.dtype)
        total += of_column * _weight_down(x, column, width).to(total.dtype)
    tl.store(out + (plane * height + row) * width + column, total * (1 / 256), mask=inside)


def _launch(kernel, lines: int, length: int, *given: Tensor | int, **constants: bool) -> None:
    """Run ``kernel`` on all parts of ``lines`` rows of ``length`` pixels."""
    if lines * length:
        programs = triton.cdiv(lines, _ROWS) * triton.cdiv(length, _COLUMNS)
        with torch.cuda.device_of(given[0]):
            kernel[(programs,)](*given, ROWS=_ROWS, COLUMNS=_COLUMNS, num_warps=4, enable_fp_fusion=False, **constants)


def pyramid_down(images: Tensor) -> Tensor:
    """As ``pyramid_down_reference``."""
    batch, channels, height, width = images.shape
    half = (height + 1) // 2, (width + 1) // 2
    out = torch.empty((batch, channels, *half), dtype=images.dtype, device=images.device)
    lines = batch * channels * half[0]
    _launch(_pyramid_down, lines, half[1], images.contiguous(), out, lines, height, width)
    return out


def pyramid_down_backward(gradient: Tensor, images: Tensor) -> Tensor:
    """The gradient of floating ``images``."""
    batch, channels, height, width = images.shape
    out = torch.empty(images.shape, dtype=images.dtype, device=images.device)
    lines = batch * channels * height
    _launch(_pyramid_down_backward, lines, width, gradient, out, lines, height, width)
    return out


@triton.jit
def _colour(images, row, column, height, width, inside):
    """Of a pixel; ``images`` points to the first plane."""
    images += row.to(tl.int64) * width + column
    size = height.to(tl.int64) * width
    dtype: tl.constexpr = _real(images)
    return (
        tl.load(images, mask=inside, other=0).to(dtype),
        tl.load(images + size, mask=inside, other=0).to(dtype),
        tl.load(images + 2 * size, mask=inside, other=0).to(dtype),
    )


@triton.jit
def _differs(coarse, row, column, height, width, least, inside):
    """Whether a pixel that is not at a border differs from one of its neighbours."""
    inside = inside & (row >= 1) & (row <= height - 2) & (column >= 1) & (column <= width - 2)
    red, green, blue = _colour(coarse, row, column, height, width, inside)
    found = inside & False
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            if dy != 0 or dx != 0:
                r, g, b = _colour(coarse, row + dy, column + dx, height, width, inside)
                found = found | ((red - r) * (red - r) + (green - g) * (green - g) + (blue - b) * (blue - b) >= least)
    return found & inside


@triton.jit(do_not_specialize=_SIZES)
def _edges(coarse, radius, out, lines, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """For each row of ``coarse`` two rows of edges: one where its pixels (a, b) stand, at (2 a + 1, 2 b - 1), and the one above."""
    half_height, half_width = (height + 1) // 2, (width + 1) // 2
    image, row, column, inside = _tile(lines, half_height, half_width, ROWS, COLUMNS)
    reach = tl.load(radius + image, mask=image * half_height < lines, other=0)
    least = tl.maximum(reach * reach, _MIN_EDGE)
    coarse += image * 3 * half_height * half_width
    here = _differs(coarse, row, column, half_height, half_width, least, inside)
    right = _differs(coarse, row, column + 1, half_height, half_width, least, inside)
    above = here | _differs(coarse, row - 1, column, half_height, half_width, least, inside)
    above_right = right | _differs(coarse, row - 1, column + 1, half_height, half_width, least, inside)
    out += (image * height + 2 * row) * width + 2 * column
    has_right, has_below = inside & (2 * column + 1 < width), 2 * row + 1 < height
    tl.store(out, above | above_right, mask=inside)
    tl.store(out + 1, above_right, mask=has_right)
    tl.store(out + width, here | right, mask=inside & has_below)
    tl.store(out + width + 1, right, mask=has_right & has_below)


def edges(coarse: Tensor, radius: Tensor, height: int, width: int) -> Tensor:
    """As ``edges_reference``."""
    batch, _, half_height, half_width = coarse.shape
    out = torch.empty((batch, height, width), dtype=torch.bool, device=coarse.device)
    lines = batch * half_height
    _launch(_edges, lines, half_width, coarse.contiguous(), radius.contiguous(), out, lines, height, width)
    return out


@triton.jit(do_not_specialize=_SIZES)
def _merge(fine, coarse, edges, out, lines, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    half_height, half_width = (height + 1) // 2, (width + 1) // 2
    plane, row, column, inside = _tile(lines, height, width, ROWS, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), _real(coarse))
    for dx in tl.static_range(-1, 2):
        x = column // 2 + dx
        of_column = tl.zeros((ROWS, COLUMNS), total.dtype)
        for dy in tl.static_range(-1, 2):
            y = row // 2 + dy
            exists = inside & (y >= 0) & (y < half_height) & (x >= 0) & (x < half_width)
            value = tl.load(coarse + (plane * half_height + y) * half_width + x, mask=exists, other=0).to(total.dtype)
            of_column += value * _weight_up(row, y, half_height).to(total.dtype)
        total += of_column * _weight_up(column, x, half_width).to(total.dtype)
    at_edge = tl.load(edges + (plane // 3 * height + row) * width + column, mask=inside, other=0) != 0
    here = (plane * height + row) * width + column
    own = tl.load(fine + here, mask=inside & at_edge, other=0)
    tl.store(out + here, tl.where(at_edge, own, _stored(total * (1 / 64), out.dtype.element_ty)), mask=inside)


@triton.jit(do_not_specialize=_SIZES)
def _merge_backward(
    gradient, edges, to_fine, to_coarse, lines, height, width,
    FINE: tl.constexpr, COARSE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Each program works on a part of ``to_coarse``, and for each pixel of it on four of ``to_fine``."""
    half_height, half_width = (height + 1) // 2, (width + 1) // 2
    plane, row, column, inside = _tile(lines, half_height, half_width, ROWS, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), gradient.dtype.element_ty)
    for dx in tl.static_range(-2, 3):
        x = 2 * column + dx
        of_column = tl.zeros((ROWS, COLUMNS), total.dtype)
        for dy in tl.static_range(-2, 3):
            y = 2 * row + dy
            exists = inside & (y >= 0) & (y < height) & (x >= 0) & (x < width)
            here = (plane * height + y) * width + x
            value = tl.load(gradient + here, mask=exists, other=0)
            at_edge = tl.load(edges + (plane // 3 * height + y) * width + x, mask=exists, other=0) != 0
            if COARSE:
                of_column += tl.where(at_edge, 0.0, value) * _weight_up(y, row, half_height).to(total.dtype)
            if FINE and dy // 2 == 0 and dx // 2 == 0:
                tl.store(to_fine + here, tl.where(at_edge, value, 0.0), mask=exists)
        if COARSE:
            total += of_column * _weight_up(x, column, half_width).to(total.dtype)
    if COARSE:
        tl.store(to_coarse + (plane * half_height + row) * half_width + column, total * (1 / 64), mask=inside)


def merge(fine: Tensor, coarse: Tensor, edges: Tensor) -> Tensor:
    """As ``merge_reference``."""
    fine = fine.contiguous()
    batch, channels, height, width = fine.shape
    out = torch.empty_like(fine)
    lines = batch * channels * height
    _launch(_merge, lines, width, fine, coarse.contiguous(), edges.contiguous(), out, lines, height, width)
    return out


def merge_backward(gradient: Tensor, coarse: Tensor, edges: Tensor, wanted: list[bool]) -> list[Tensor]:
    """The wanted gradients of ``merge_reference`` for floats."""
    want_fine, want_coarse, _ = wanted
    batch, channels, half_height, half_width = coarse.shape
    to_fine = torch.empty_like(gradient) if want_fine else gradient
    to_coarse = torch.empty(coarse.shape, dtype=coarse.dtype, device=coarse.device) if want_coarse else gradient
    lines = batch * channels * half_height
    given = gradient, edges.contiguous(), to_fine, to_coarse, lines, *gradient.shape[2:]
    _launch(_merge_backward, lines, half_width, *given, FINE=want_fine, COARSE=want_coarse)
    return [to_fine] * want_fine + [to_coarse] * want_coarse


# -- the climb ------------------------------------------------------------------------------------------------------------


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
def _prepare(images, wanted, planes, pixels, counts, result, size, BLOCK: tl.constexpr):
    """The planes to climb on and zeros for the result; of each block those of its pixels that are wanted, in order, and their number."""
    image, place, inside = part_of_line(size, BLOCK)
    for channel in tl.static_range(3):
        here = (3 * image + channel) * size + place
        if planes is not None:
            tl.store(planes + here, tl.load(images + here, mask=inside, other=0).to(planes.dtype.element_ty), mask=inside)
        tl.store(result + here, tl.zeros((BLOCK,), result.dtype.element_ty), mask=inside)
    if wanted is not None:
        chosen = (tl.load(wanted + image * size + place, mask=inside, other=0) != 0).to(tl.int32)
        block = tl.program_id(0).to(tl.int64)
        tl.store(pixels + block * BLOCK + tl.cumsum(chosen, 0) - 1, place, mask=chosen != 0)
        tl.store(counts + block, tl.sum(chosen, 0))


@triton.jit
def _listed(counts, size, LANES: tl.constexpr, BLOCK: tl.constexpr):
    """The block that this program works on, the first of its pixels on the list that the program has, and how many are listed."""
    per_block: tl.constexpr = BLOCK // LANES
    block, first = (tl.program_id(0) // per_block).to(tl.int64), tl.program_id(0) % per_block * LANES
    rest = size - block % tl.cdiv(size, BLOCK) * BLOCK
    return block, first, tl.minimum(rest, BLOCK).to(tl.int32) if counts is None else tl.load(counts + block)


@triton.jit
def _lanes(pixels, block, first, total, radius, height, width, level, LANES: tl.constexpr, BLOCK: tl.constexpr):
    """What the lanes of this program work on: whether at all, first index of the image, row, column, diameter and radius."""
    size = height.to(tl.int64) * width
    image, start = block // tl.cdiv(size, BLOCK), block % tl.cdiv(size, BLOCK) * BLOCK
    slot = first + tl.arange(0, LANES)
    active = slot < total
    place = start.to(tl.int32) + slot if pixels is None else tl.load(pixels + block * BLOCK + slot, mask=active, other=0)
    reach = tl.load(radius + image)
    return active, image * 3 * size, place // width, place % width, tl.maximum((2 * reach) >> level, 2), reach


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
        new_row = round_to_even((rows + top.to(tl.int64) * count).to(tl.float64) * scale).to(tl.int32)
        new_column = round_to_even((columns + left.to(tl.int64) * count).to(tl.float64) * scale).to(tl.int32)
        new_red, new_green, new_blue = reds.to(tl.float64) * scale, greens.to(tl.float64) * scale, blues.to(tl.float64) * scale
        if ROUNDED:
            new_red, new_green, new_blue = round_to_even(new_red), round_to_even(new_green), round_to_even(new_blue)
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
def _forward(planes, pixels, counts, radius, result, height, width, level, LANES: tl.constexpr, BLOCK: tl.constexpr):
    size = height.to(tl.int64) * width
    block, first, total = _listed(counts, size, LANES, BLOCK)
    if first >= total:
        return
    active, offset, row, column, diameter, reach = _lanes(pixels, block, first, total, radius, height, width, level, LANES, BLOCK)
    limit = (reach * reach).to(planes.dtype.element_ty)
    whole: tl.constexpr = result.dtype.element_ty == tl.uint8
    red, green, blue, _, _, _, _, _, _ = _climb(planes + offset, active, row, column, diameter, limit, height, width, whole)
    if whole:
        red, green, blue = red.to(tl.int32), green.to(tl.int32), blue.to(tl.int32)
    to = result + offset + row.to(tl.int64) * width + column
    tl.store(to, red.to(result.dtype.element_ty), mask=active)
    tl.store(to + size, green.to(result.dtype.element_ty), mask=active)
    tl.store(to + 2 * size, blue.to(result.dtype.element_ty), mask=active)


@triton.jit(do_not_specialize=_NUMBERS)
def _share_out(gradient, planes, pixels, counts, radius, result, height, width, level, LANES: tl.constexpr, BLOCK: tl.constexpr):
    size = height.to(tl.int64) * width
    block, first, total = _listed(counts, size, LANES, BLOCK)
    if first >= total:
        return
    active, offset, row, column, diameter, reach = _lanes(pixels, block, first, total, radius, height, width, level, LANES, BLOCK)
    limit = (reach * reach).to(planes.dtype.element_ty)
    _, _, _, last_row, last_column, red, green, blue, members = _climb(
        planes + offset, active, row, column, diameter, limit, height, width, False
    )
    gradient += offset + row.to(tl.int64) * width + column
    red_share = tl.load(gradient, mask=active, other=0.0).to(tl.float64) / members
    green_share = tl.load(gradient + size, mask=active, other=0.0).to(tl.float64) / members
    blue_share = tl.load(gradient + 2 * size, mask=active, other=0.0).to(tl.float64) / members
    top, bottom, left, right = _window(last_row, last_column, diameter, height, width)
    longest = _longest(left, right, active)
    for j in range(_longest(top, bottom, active)):
        first_in_row = offset + (top + j).to(tl.int64) * width + left
        in_row = active & (top + j <= bottom)
        for k in range(longest):
            at = first_in_row + k
            _, _, _, member = _near(planes + at, size, in_row & (left + k <= right), red, green, blue, limit)
            tl.atomic_add(result + at, red_share, mask=member, sem="relaxed")
            tl.atomic_add(result + at + size, green_share, mask=member, sem="relaxed")
            tl.atomic_add(result + at + 2 * size, blue_share, mask=member, sem="relaxed")


def _prepared(images: Tensor, wanted: Tensor | None, result: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Contiguous planes in the dtype of the sums, pixels and counts; ``result`` becomes 0."""
    images = images.contiguous()
    batch, _, height, width = images.shape
    dtype = torch.float32 if images.dtype == torch.uint8 else torch.float64
    planes = images if images.dtype == dtype else torch.empty_like(images, dtype=dtype)
    blocks = batch * triton.cdiv(height * width, _PIXELS)
    pixels = counts = None
    if wanted is not None:
        wanted = wanted.contiguous()
        pixels = torch.empty(blocks * _PIXELS, dtype=torch.int32, device=images.device)
        counts = torch.empty(blocks, dtype=torch.int32, device=images.device)
    _prepare[(blocks,)](
        images, wanted, None if planes is images else planes, pixels, counts, result, height * width, BLOCK=_PIXELS, num_warps=4
    )
    return planes, pixels, counts


def _programs(images: Tensor) -> tuple[int]:
    return (len(images) * triton.cdiv(images[0, 0].numel(), _PIXELS) * (_PIXELS // _LANES),)


def climb(images: Tensor, wanted: Tensor | None, radius: Tensor, level: int) -> Tensor:
    """As ``mean_shift_climb_reference``."""
    result = torch.empty(images.shape, dtype=images.dtype, device=images.device)
    if result.numel() == 0:
        return result
    with torch.cuda.device_of(images):
        _forward[_programs(images)](
            *_prepared(images, wanted, result), radius.contiguous(), result, *images.shape[-2:], level,
            LANES=_LANES, BLOCK=_PIXELS, num_warps=1, num_stages=1, enable_fp_fusion=False,
        )  # fmt: skip
    return result


def climb_backward(gradient: Tensor, images: Tensor, wanted: Tensor | None, radius: Tensor, level: int) -> Tensor:
    """As ``mean_shift_climb_backward_reference``, to the rounding of float64: the order of the additions is not fixed."""
    result = torch.empty(images.shape, dtype=torch.float64, device=images.device)
    if result.numel() > 0:
        with torch.cuda.device_of(images):
            _share_out[_programs(images)](
                gradient.contiguous(), *_prepared(images, wanted, result), radius.contiguous(), result, *images.shape[-2:], level,
                LANES=_LANES, BLOCK=_PIXELS, num_warps=1, num_stages=1, enable_fp_fusion=False,
            )  # fmt: skip
    return result.to(images.dtype)
