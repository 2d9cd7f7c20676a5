"""Rows and blocks of images that move as wholes, on CUDA; what is computed is stated in ``degrade/kernels/warp.py``.

A program makes a part of one row in all channels, which go to the same places.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import part_of_line

_PIXELS = 512  # of one program
_NUMBERS = ("channels", "height", "width", "blocks")  # one compilation for all of their values


@triton.jit
def _neighbours(position, size):
    """The pixels before and after a position clipped to 0..size - 1, how far it is past the former, and whether it lay inside."""
    clipped = tl.minimum(tl.maximum(position, 0.0), (size - 1).to(position.dtype))
    before = clipped.to(tl.int32)
    return before, tl.minimum(before + 1, size - 1), clipped - before.to(position.dtype), clipped == position


@triton.jit
def _between(before, after, fraction):
    return before * (1.0 - fraction) + after * fraction


@triton.jit
def _sampled(shift, rows, channels, height, width, dtype: tl.constexpr, PIXELS: tl.constexpr):
    """Of a part of a row, in the first channel: where it is, which pixels exist, and rows and columns that it is sampled from."""
    line, x, there = part_of_line(width, PIXELS)
    size = height.to(tl.int64) * width
    first = line // height * channels * size
    above, below, down, down_inside = _neighbours(tl.load(rows + line).to(dtype), height)
    left, right, along, along_inside = _neighbours(x.to(dtype) + tl.load(shift + line).to(dtype), width)
    above, below = first + above.to(tl.int64) * width, first + below.to(tl.int64) * width
    return first + line % height * width + x, there, size, above, below, down, down_inside, left, right, along, along_inside


@triton.jit(do_not_specialize=_NUMBERS)
def _move_rows(images, shift, rows, result, channels, height, width, PIXELS: tl.constexpr):
    kind: tl.constexpr = result.dtype.element_ty
    dtype: tl.constexpr = tl.float32 if kind == tl.uint8 else kind
    here, there, size, above, below, down, _, left, right, along, _ = _sampled(shift, rows, channels, height, width, dtype, PIXELS)
    for _ in range(channels):
        at_left = _between(tl.load(images + above + left).to(dtype), tl.load(images + below + left).to(dtype), down)
        at_right = _between(tl.load(images + above + right).to(dtype), tl.load(images + below + right).to(dtype), down)
        level = _between(at_left, at_right, along)
        if kind == tl.uint8:
            level += 0.5  # below 256: a mean of bytes and a half
        tl.store(result + here, level.to(kind), mask=there)
        images += size
        result += size


@triton.jit(do_not_specialize=_NUMBERS)
def _move_rows_backward(
    gradient, images, shift, rows, to_images, shift_parts, rows_parts, channels, height, width,
    IMAGES: tl.constexpr, POSITIONS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """Adds to ``to_images``, in no fixed order; the parts get a number from each program, what it adds to the gradients of its row."""
    dtype: tl.constexpr = images.dtype.element_ty
    here, there, size, above, below, down, down_inside, left, right, along, along_inside = _sampled(
        shift, rows, channels, height, width, dtype, PIXELS
    )
    to_along, to_down = tl.zeros((PIXELS,), dtype), tl.zeros((PIXELS,), dtype)
    for _ in range(channels):
        passed = tl.load(gradient + here, mask=there, other=0)
        if IMAGES:
            to_above, to_below = passed * (1.0 - down), passed * down
            tl.atomic_add(to_images + above + left, to_above * (1.0 - along), mask=there, sem="relaxed")
            tl.atomic_add(to_images + above + right, to_above * along, mask=there, sem="relaxed")
            tl.atomic_add(to_images + below + left, to_below * (1.0 - along), mask=there, sem="relaxed")
            tl.atomic_add(to_images + below + right, to_below * along, mask=there, sem="relaxed")
            to_images += size
        if POSITIONS:
            above_left, above_right = tl.load(images + above + left), tl.load(images + above + right)
            below_left, below_right = tl.load(images + below + left), tl.load(images + below + right)
            to_along += passed * _between(above_right - above_left, below_right - below_left, down)
            to_down += passed * _between(below_left - above_left, below_right - above_right, along)
            images += size
        gradient += size
    if POSITIONS:
        tl.store(shift_parts + tl.program_id(0), tl.sum(tl.where(along_inside, to_along, 0.0), 0))
        tl.store(rows_parts + tl.program_id(0), tl.where(down_inside, tl.sum(to_down, 0), 0.0))


@triton.jit(do_not_specialize=_NUMBERS)
def _move_blocks(images, block, grid, source, result, channels, height, width, blocks, BACK: tl.constexpr, PIXELS: tl.constexpr):
    """With ``BACK`` each pixel goes back to where it came from."""
    line, x, there = part_of_line(width, PIXELS)
    number, y = line // height, line % height
    size = height.to(tl.int64) * width
    offset = number * channels * size
    side = tl.load(block + number).to(tl.int32)
    rows, columns = tl.load(grid + 2 * number).to(tl.int32), tl.load(grid + 2 * number + 1).to(tl.int32)
    row, column = y // side, x // side
    moves = there & (row < rows) & (column < columns)
    origin = tl.load(source + number * blocks + row * columns + column, mask=moves, other=0).to(tl.int32)
    columns = tl.maximum(columns, 1)
    from_y = tl.where(moves, origin // columns * side + y % side, y)
    from_x = tl.where(moves, origin % columns * side + x % side, x)
    origin, place = offset + from_y * width + from_x, offset + y * width + x
    if BACK:
        origin, place = place, origin
    for _ in range(channels):
        tl.store(result + place, tl.load(images + origin, mask=there), mask=there)
        images += size
        result += size


def _programs(images: Tensor) -> tuple[int]:
    return (images.shape[0] * images.shape[2] * triton.cdiv(images.shape[3], _PIXELS),)


def move_rows(images: Tensor, shift: Tensor, rows: Tensor) -> Tensor:
    """As ``move_rows_reference``."""
    images = images.contiguous()
    result = torch.empty_like(images)
    if result.numel() > 0:
        with torch.cuda.device_of(images):
            _move_rows[_programs(images)](
                images, shift.contiguous(), rows.contiguous(), result, *images.shape[1:],
                PIXELS=_PIXELS, num_warps=4, enable_fp_fusion=False,
            )  # fmt: skip
    return result


def move_rows_backward(gradient: Tensor, images: Tensor, shift: Tensor, rows: Tensor, wanted: list[bool]) -> list[Tensor]:
    """The wanted gradients of ``move_rows_reference`` for floats."""
    images = images.contiguous()
    want_images, want_shift, want_rows = wanted
    to_images = torch.zeros_like(images) if want_images else gradient
    programs = triton.cdiv(images.shape[3], _PIXELS)
    parts = [torch.empty(*shift.shape, programs, dtype=images.dtype, device=images.device) for _ in range(2)]
    if images.numel() > 0:
        with torch.cuda.device_of(images):
            _move_rows_backward[_programs(images)](
                gradient, images, shift.contiguous(), rows.contiguous(), to_images, *parts, *images.shape[1:],
                IMAGES=want_images, POSITIONS=want_shift or want_rows, PIXELS=_PIXELS, num_warps=4, enable_fp_fusion=False,
            )  # fmt: skip
    found = [to_images] if want_images else []
    for part, positions, want in zip(parts, (shift, rows), (want_shift, want_rows), strict=True):
        if want:
            found.append(part.sum(2, dtype=positions.dtype))
    return found


def _with_blocks_moved(images: Tensor, block: Tensor, grid: Tensor, source: Tensor, back: bool) -> Tensor:
    images = images.contiguous()
    result = torch.empty_like(images)
    if result.numel() > 0:
        with torch.cuda.device_of(images):
            _move_blocks[_programs(images)](
                images, block.contiguous(), grid.contiguous(), source.contiguous(), result, *images.shape[1:], source.shape[1],
                BACK=back, PIXELS=_PIXELS, num_warps=4,
            )  # fmt: skip
    return result


def move_blocks(images: Tensor, block: Tensor, grid: Tensor, source: Tensor) -> Tensor:
    """As ``move_blocks_reference``."""
    return _with_blocks_moved(images, block, grid, source, back=False)


def move_blocks_backward(gradient: Tensor, block: Tensor, grid: Tensor, source: Tensor) -> Tensor:
    """The gradient of the images: each pixel's is stored where the pixel came from, nothing is added, since the moves are a permutation."""
    return _with_blocks_moved(gradient, block, grid, source, back=True)
