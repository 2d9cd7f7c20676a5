"""Rows and blocks of bytes that move as wholes, on CUDA; what is computed is stated in ``degrade/kernels/warp.py``.

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
    """Of a position clipped to 0..size - 1: the pixels before and after it, and how far it is past the former."""
    position = tl.minimum(tl.maximum(position, 0.0), (size - 1).to(tl.float32))
    before = position.to(tl.int32)
    return before, tl.minimum(before + 1, size - 1), position - before.to(tl.float32)


@triton.jit
def _between(before, after, fraction):
    return before * (1.0 - fraction) + after * fraction


@triton.jit(do_not_specialize=_NUMBERS)
def _move_rows(images, shift, rows, result, channels, height, width, PIXELS: tl.constexpr):
    line, x, there = part_of_line(width, PIXELS)
    size = height.to(tl.int64) * width
    offset = line // height * channels * size
    above, below, down = _neighbours(tl.load(rows + line).to(tl.float32), height)
    left, right, along = _neighbours(x.to(tl.float32) + tl.load(shift + line).to(tl.float32), width)
    above, below = images + offset + above.to(tl.int64) * width, images + offset + below.to(tl.int64) * width
    result += offset + line % height * width + x
    for _ in range(channels):
        at_left = _between(tl.load(above + left).to(tl.float32), tl.load(below + left).to(tl.float32), down)
        at_right = _between(tl.load(above + right).to(tl.float32), tl.load(below + right).to(tl.float32), down)
        tl.store(result, (_between(at_left, at_right, along) + 0.5).to(tl.uint8), mask=there)  # below 256: a mean of bytes and a half
        above += size
        below += size
        result += size


@triton.jit(do_not_specialize=_NUMBERS)
def _move_blocks(images, block, grid, source, result, channels, height, width, blocks, PIXELS: tl.constexpr):
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
    images += offset + from_y * width + from_x
    result += offset + y * width + x
    for _ in range(channels):
        tl.store(result, tl.load(images, mask=there), mask=there)
        images += size
        result += size


def _programs(images: Tensor) -> tuple[int]:
    return (images.shape[0] * images.shape[2] * triton.cdiv(images.shape[3], _PIXELS),)


def move_rows(images: Tensor, shift: Tensor, rows: Tensor) -> Tensor:
    """As ``move_rows_reference``."""
    result = torch.empty(images.shape, dtype=torch.uint8, device=images.device)
    if result.numel() > 0:
        with torch.cuda.device_of(images):
            _move_rows[_programs(images)](
                images.contiguous(), shift.contiguous(), rows.contiguous(), result, *images.shape[1:],
                PIXELS=_PIXELS, num_warps=4, enable_fp_fusion=False,
            )  # fmt: skip
    return result


def move_blocks(images: Tensor, block: Tensor, grid: Tensor, source: Tensor) -> Tensor:
    """As ``move_blocks_reference``."""
    result = torch.empty(images.shape, dtype=torch.uint8, device=images.device)
    if result.numel() > 0:
        with torch.cuda.device_of(images):
            _move_blocks[_programs(images)](
                images.contiguous(), block.contiguous(), grid.contiguous(), source.contiguous(), result, *images.shape[1:], source.shape[1],
                PIXELS=_PIXELS, num_warps=4,
            )  # fmt: skip
    return result
