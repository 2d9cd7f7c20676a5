"""The JPEG round trip of bytes on CUDA; what is computed is stated in ``degrade/kernels/jpeg.py``.

Two launches: the chroma planes, halved, through the blocks; then luma through the blocks and, with the chroma around it, back to RGB.
A program works on a tile of blocks side by side, 8 rows high.  Past the edge of the image pixels are read from the edge, which is how the
encoder extends it.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels import jpeg

_EVEN, _ODD = tl.constexpr(jpeg.EVEN), tl.constexpr(jpeg.ODD)
_LUMA = tl.constexpr((jpeg.fixed(0.299), jpeg.fixed(0.587), jpeg.fixed(0.114)))
_CB = tl.constexpr((-jpeg.fixed(0.168735892), -jpeg.fixed(0.331264108), jpeg.fixed(0.5)))
_CR = tl.constexpr((jpeg.fixed(0.5), -jpeg.fixed(0.418687589), -jpeg.fixed(0.081312411)))
_RED, _BLUE = tl.constexpr(jpeg.fixed(1.402)), tl.constexpr(jpeg.fixed(1.772))
_GREEN = tl.constexpr((-jpeg.fixed(0.34414), -jpeg.fixed(0.71414)))
_BLOCKS = 4  # of a tile: each thread of a warp has one row of one block, and the warp shuffles to turn rows into columns
_NUMBERS = ("height", "width", "half_height", "half_width")  # one compilation for all of their values


@triton.jit
def _split(x):
    """The 8 values along the last axis of (8, N, 8)."""
    even, odd = tl.split(tl.reshape(x, (8, x.shape[1], 4, 2)))
    x04, x26 = tl.split(tl.reshape(even, (8, x.shape[1], 2, 2)))
    x15, x37 = tl.split(tl.reshape(odd, (8, x.shape[1], 2, 2)))
    x0, x4 = tl.split(x04)
    x1, x5 = tl.split(x15)
    x2, x6 = tl.split(x26)
    x3, x7 = tl.split(x37)
    return x0, x1, x2, x3, x4, x5, x6, x7


@triton.jit
def _join(x0, x1, x2, x3, x4, x5, x6, x7):
    """The opposite of ``_split``: the bits of the index become axes, the highest first."""
    even = tl.join(tl.join(x0, x4), tl.join(x2, x6))
    odd = tl.join(tl.join(x1, x5), tl.join(x3, x7))
    return tl.reshape(tl.join(even, odd), (8, x0.shape[1], 8))


@triton.jit
def _row(matrix: tl.constexpr, k: tl.constexpr, a, b, c, d):
    return matrix[k][0] * a + matrix[k][1] * b + matrix[k][2] * c + matrix[k][3] * d


@triton.jit
def _column(matrix: tl.constexpr, k: tl.constexpr, a, b, c, d):
    return matrix[0][k] * a + matrix[1][k] * b + matrix[2][k] * c + matrix[3][k] * d


@triton.jit
def _dct(x, bits: tl.constexpr):
    """Along the last axis; shifted right by ``bits``, rounded to nearest."""
    x0, x1, x2, x3, x4, x5, x6, x7 = _split(x)
    a, b, c, d = x0 + x7, x1 + x6, x2 + x5, x3 + x4
    p, q, r, s = x0 - x7, x1 - x6, x2 - x5, x3 - x4
    y = _join(
        _row(_EVEN, 0, a, b, c, d), _row(_ODD, 0, p, q, r, s), _row(_EVEN, 1, a, b, c, d), _row(_ODD, 1, p, q, r, s),
        _row(_EVEN, 2, a, b, c, d), _row(_ODD, 2, p, q, r, s), _row(_EVEN, 3, a, b, c, d), _row(_ODD, 3, p, q, r, s),
    )  # fmt: skip
    return (y + (1 << (bits - 1))) >> bits


@triton.jit
def _inverse_dct(x, bits: tl.constexpr):
    x0, x1, x2, x3, x4, x5, x6, x7 = _split(x)
    a, b, c, d = (
        _column(_EVEN, 0, x0, x2, x4, x6), _column(_EVEN, 1, x0, x2, x4, x6),
        _column(_EVEN, 2, x0, x2, x4, x6), _column(_EVEN, 3, x0, x2, x4, x6),
    )  # fmt: skip
    p, q, r, s = (
        _column(_ODD, 0, x1, x3, x5, x7), _column(_ODD, 1, x1, x3, x5, x7),
        _column(_ODD, 2, x1, x3, x5, x7), _column(_ODD, 3, x1, x3, x5, x7),
    )  # fmt: skip
    y = _join(a + p, b + q, c + r, d + s, d - s, c - r, b - q, a - p)
    return (y + (1 << (bits - 1))) >> bits


@triton.jit
def _clip(x, low, high):
    return tl.minimum(tl.maximum(x, low), high)


@triton.jit
def _blocks_roundtrip(tile, table):
    """(8, 8 N) centred samples through DCT, quantisation by the 8 x 8 steps at the pointer ``table``, and back."""
    x = tl.reshape(tile, (8, tile.shape[1] // 8, 8))  # row, block, column
    x = _dct(tl.permute(_dct(x, 11), (2, 1, 0)), 15)
    step = tl.load(table + tl.arange(0, 8)[:, None, None] + 8 * tl.arange(0, 8)[None, None, :])  # rows and columns are swapped
    multiple = (tl.abs(x) + 4 * step) // (8 * step) * step
    x = tl.where(x < 0, -multiple, multiple)
    x = _inverse_dct(tl.permute(_inverse_dct(x, 11), (2, 1, 0)), 18)
    return tl.reshape(_clip(x, -128, 127), tile.shape)


@triton.jit
def _tile(height, width, BLOCKS: tl.constexpr):
    """Where this program works: image, rows (8, 1) and columns (1, 8 BLOCKS), of a plane of ``height`` x ``width``."""
    program = tl.program_id(0)
    across, down = tl.cdiv(width, 8 * BLOCKS), tl.cdiv(height, 8)
    y = program // across % down * 8 + tl.arange(0, 8)[:, None]
    x = program % across * (8 * BLOCKS) + tl.arange(0, 8 * BLOCKS)[None, :]
    return (program // across // down).to(tl.int64), y, x


@triton.jit
def _load(image, y, x, height, width):
    """Red, green and blue at (y, x), or where that is past the edge, at the edge."""
    size = height.to(tl.int64) * width
    pixel = image + tl.minimum(y, height - 1).to(tl.int64) * width + tl.minimum(x, width - 1)
    return tl.load(pixel).to(tl.int32), tl.load(pixel + size).to(tl.int32), tl.load(pixel + 2 * size).to(tl.int32)


@triton.jit
def _weighted(weights: tl.constexpr, red, green, blue, rounding: tl.constexpr):
    return (weights[0] * red + weights[1] * green + weights[2] * blue + rounding) >> 16


@triton.jit(do_not_specialize=_NUMBERS)
def _to_chroma(images, tables, chroma, height, width, half_height, half_width, BLOCKS: tl.constexpr):
    number, y, x = _tile(half_height, half_width, BLOCKS)
    image = images + number * 3 * height * width
    row = tl.minimum(y, half_height - 1)  # rows are extended after the downsampling, columns before
    cb = tl.zeros((8, 8 * BLOCKS), tl.int32) + 1 + (x & 1)
    cr = cb
    for k in tl.static_range(4):
        red, green, blue = _load(image, 2 * row + k // 2, 2 * x + k % 2, height, width)
        cb += _weighted(_CB, red, green, blue, 32767)
        cr += _weighted(_CR, red, green, blue, 32767)
    table = tables + number * 128 + 64
    size = half_height.to(tl.int64) * half_width
    to = chroma + number * 2 * size + y.to(tl.int64) * half_width + x
    there = (y < half_height) & (x < half_width)
    tl.store(to, _blocks_roundtrip(cb >> 2, table).to(tl.int8), mask=there)
    tl.store(to + size, _blocks_roundtrip(cr >> 2, table).to(tl.int8), mask=there)


@triton.jit
def _upsampled(plane, y, x, half_height, half_width):
    """The chroma at the pixels (y, x) of the image: three quarters of the sample there and one of the nearer neighbour, along both axes."""
    row, column = tl.minimum(y >> 1, half_height - 1), tl.minimum(x >> 1, half_width - 1)
    near_row, near_column = _clip(row + 2 * (y & 1) - 1, 0, half_height - 1), _clip(column + 2 * (x & 1) - 1, 0, half_width - 1)
    smooth = half_width > 2  # else samples are repeated, which four equal ones do
    near_row, near_column = tl.where(smooth, near_row, row), tl.where(smooth, near_column, column)
    here, near = plane + row.to(tl.int64) * half_width, plane + near_row.to(tl.int64) * half_width
    own = 3 * tl.load(here + column).to(tl.int32) + tl.load(near + column).to(tl.int32)
    other = 3 * tl.load(here + near_column).to(tl.int32) + tl.load(near + near_column).to(tl.int32)
    return (3 * own + other + 8 - (x & 1)) >> 4


@triton.jit(do_not_specialize=_NUMBERS)
def _to_rgb(images, tables, chroma, result, height, width, half_height, half_width, BLOCKS: tl.constexpr):
    number, y, x = _tile(height, width, BLOCKS)
    size, half_size = height.to(tl.int64) * width, half_height.to(tl.int64) * half_width
    red, green, blue = _load(images + number * 3 * size, y, x, height, width)
    luma = _blocks_roundtrip(_weighted(_LUMA, red, green, blue, 32768) - 128, tables + number * 128) + 128
    cb = _upsampled(chroma + number * 2 * half_size, y, x, half_height, half_width)
    cr = _upsampled(chroma + number * 2 * half_size + half_size, y, x, half_height, half_width)
    red = luma + ((_RED * cr + 32768) >> 16)
    green = luma + ((_GREEN[0] * cb + _GREEN[1] * cr + 32768) >> 16)
    blue = luma + ((_BLUE * cb + 32768) >> 16)
    to = result + number * 3 * size + y.to(tl.int64) * width + x
    there = (y < height) & (x < width)
    tl.store(to, _clip(red, 0, 255).to(tl.uint8), mask=there)
    tl.store(to + size, _clip(green, 0, 255).to(tl.uint8), mask=there)
    tl.store(to + 2 * size, _clip(blue, 0, 255).to(tl.uint8), mask=there)


def _tiles(batch: int, height: int, width: int) -> tuple[int]:
    return (batch * triton.cdiv(height, 8) * triton.cdiv(width, 8 * _BLOCKS),)


def roundtrip(images: Tensor, tables: Tensor) -> Tensor:
    """As ``roundtrip_reference``."""
    result = torch.empty(images.shape, dtype=torch.uint8, device=images.device)
    if result.numel() == 0:
        return result
    batch, _, height, width = images.shape
    half = (height + 1) // 2, (width + 1) // 2
    images, tables = images.contiguous(), tables.contiguous()
    chroma = torch.empty((batch, 2, *half), dtype=torch.int8, device=images.device)
    with torch.cuda.device_of(images):
        _to_chroma[_tiles(batch, *half)](images, tables, chroma, height, width, *half, BLOCKS=_BLOCKS, num_warps=1)
        _to_rgb[_tiles(batch, height, width)](images, tables, chroma, result, height, width, *half, BLOCKS=_BLOCKS, num_warps=1)
    return result
