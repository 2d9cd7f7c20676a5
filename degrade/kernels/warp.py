"""Sampling of images whose rows or blocks move as wholes."""

from __future__ import annotations

import torch
from torch import Tensor

from degrade.kernels import native, quantize
from degrade.kernels.dispatch import Kernel

GRID = 32  # sampling positions are multiples of 1/32 pixel, as in OpenCV's remap
_ROWS = 64  # that one call of a compiled body works on


def move_rows_reference(images: Tensor, shift: Tensor, rows: Tensor) -> Tensor:
    if images.dtype == torch.uint8:
        return quantize.trunc(_moved(images.float(), shift, rows) + 0.5, torch.uint8)
    return _moved(images, shift, rows)


_move_rows = Kernel("move_rows", move_rows_reference, "Tensor images, Tensor shift, Tensor rows")


@_move_rows.on_cpu
def _move_rows_cpu(images: Tensor, shift: Tensor, rows: Tensor) -> Tensor:
    channels, height, width = images.shape[1:]
    images, shift, rows = images.contiguous(), shift.contiguous(), rows.contiguous()
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
    body = native.function("degrade_move_rows", *[native.POINTER] * 5, *[native.INT] * 4)
    step = native.share(height, _ROWS)
    blocks = -(-height // step)

    def part(n: int) -> None:
        b, c, block = n // (channels * blocks), n // blocks % channels, n % blocks
        line = torch.empty(width + 1, dtype=torch.int16, device="cpu")  # unsigned in C
        first, last = block * step, min(height, (block + 1) * step)
        places = shift[b].data_ptr(), rows[b].data_ptr()
        body(images[b, c].data_ptr(), *places, out[b, c].data_ptr(), line.data_ptr(), height, width, first, last)

    native.parallel(len(images) * channels * blocks, part)
    return out


@_move_rows.on_cuda
def _move_rows_cuda(images: Tensor, shift: Tensor, rows: Tensor) -> Tensor:
    from degrade.kernels.cuda import warp as body  # not every platform has Triton

    return body.move_rows(images, shift, rows)


@_move_rows.gradient_on_cuda("images", "shift", "rows")
def _move_rows_gradient_cuda(gradient: Tensor, images: Tensor, shift: Tensor, rows: Tensor, wanted: list[bool]) -> list[Tensor]:
    from degrade.kernels.cuda import warp as body

    found: list[Tensor] = body.move_rows_backward(gradient, images, shift, rows, wanted)
    return found


def move_rows(images: Tensor, shift: Tensor, rows: Tensor) -> Tensor:
    """(B, C, H, W) levels sampled at (x + shift[b, y], rows[b, y]), bilinear, positions clipped to the image.

    Bytes come back rounded to nearest, ties up, as from the fixed point of OpenCV's remap; their positions are multiples of 1/32, so
    that all values are exact multiples of 1/1024.  Floats are not rounded; gradients flow to the images and to the positions: the slope
    between the two neighbours, 0 where a position is clipped.

    Args:
        images: uint8, float32 or float64.
        shift: (B, H) float64, pixels to the right.
        rows: (B, H) float64, row positions in pixels.
    """
    return _move_rows(images, shift, rows)


def _moved(images: Tensor, shift: Tensor, rows: Tensor) -> Tensor:
    height, width = images.shape[2:]
    y = rows.to(images.dtype)[:, None, :, None]
    x = torch.arange(width, dtype=images.dtype, device=images.device) + shift.to(images.dtype)[:, None, :, None]
    down = _between_neighbours(images, quantize.clip(y, 0, height - 1), 2)
    return _between_neighbours(down, quantize.clip(x, 0, width - 1), 3)


def _between_neighbours(images: Tensor, positions: Tensor, dim: int) -> Tensor:
    """Linear interpolation of ``images`` along ``dim`` at ``positions``, which broadcast against them."""
    before = positions.detach().floor()
    fraction = positions - before
    first = before.long()
    second = (first + 1).clamp(max=images.shape[dim] - 1)  # beyond the last pixel the fraction is 0
    return images.gather(dim, first.expand_as(images)) * (1 - fraction) + images.gather(dim, second.expand_as(images)) * fraction


def move_blocks_reference(images: Tensor, block: Tensor, grid: Tensor, source: Tensor) -> Tensor:
    height, width = images.shape[-2:]
    block = block[:, None, None]
    rows, columns = grid[:, 0, None, None], grid[:, 1, None, None]
    y = torch.arange(height, device=images.device)[:, None]
    x = torch.arange(width, device=images.device)
    row, column = y // block, x // block
    moves = (row < rows) & (column < columns)
    origin = source.gather(1, torch.where(moves, row * columns + column, 0).flatten(1)).view(moves.shape)
    from_y = torch.where(moves, origin // columns * block + y % block, y)
    from_x = torch.where(moves, origin % columns * block + x % block, x)
    index = (from_y * width + from_x).flatten(1)[:, None].expand(-1, images.shape[1], -1)
    return images.flatten(2).gather(2, index).view(images.shape)


_move_blocks = Kernel("move_blocks", move_blocks_reference, "Tensor images, Tensor block, Tensor grid, Tensor source")


@_move_blocks.on_cpu
def _move_blocks_cpu(images: Tensor, block: Tensor, grid: Tensor, source: Tensor) -> Tensor:
    channels, height, width = images.shape[1:]
    images, source = images.contiguous(), source.contiguous()
    sizes, grids = block.tolist(), grid.tolist()
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
    body = native.function("degrade_move_blocks", *[native.POINTER] * 3, *[native.INT] * 5)

    def plane(n: int) -> None:
        b, c = divmod(n, channels)
        body(images[b, c].data_ptr(), source[b].data_ptr(), out[b, c].data_ptr(), height, width, sizes[b], *grids[b])

    native.parallel(len(images) * channels, plane)
    return out


@_move_blocks.on_cuda
def _move_blocks_cuda(images: Tensor, block: Tensor, grid: Tensor, source: Tensor) -> Tensor:
    from degrade.kernels.cuda import warp as body  # not every platform has Triton

    return body.move_blocks(images, block, grid, source)


@_move_blocks.gradient_on_cuda("images")
def _move_blocks_gradient_cuda(
    gradient: Tensor, images: Tensor, block: Tensor, grid: Tensor, source: Tensor, wanted: list[bool]
) -> list[Tensor]:
    from degrade.kernels.cuda import warp as body

    return [body.move_blocks_backward(gradient, block, grid, source)]


def move_blocks(images: Tensor, block: Tensor, grid: Tensor, source: Tensor) -> Tensor:
    """(B, C, H, W) images whose blocks change places; what lies outside the grid of blocks stays.

    A pixel's gradient goes back to where the pixel came from.

    Args:
        images: uint8, float32 or float64.
        block: (B,) int64, pixels a side.
        grid: (B, 2) int64, rows and columns of blocks.
        source: (B, N) int64: block n, counted along the rows, gets the pixels of block ``source[b, n]``; a permutation of the blocks
            of a grid, where N may be larger than their number.
    """
    return _move_blocks(images, block, grid, source)
