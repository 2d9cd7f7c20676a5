"""The JPEG round trip on CUDA; what is computed is stated in ``degrade/kernels/jpeg.py``.

Two launches: the chroma planes, halved, through the blocks; then luma through the blocks and, with the chroma around it, back to RGB.
A program works on a tile of blocks side by side, 8 rows high.  Past the edge of the image pixels are read from the edge, which is how the
encoder extends it.  Floats go through the operations of the reference in its order, so that no other rounding tips a coefficient.

The gradient takes three: the chroma anew, for what is clipped; then from RGB back through the blocks of luma; then from the pixels around
each sample of chroma back through its blocks, and with luma to RGB.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels import jpeg
from degrade.kernels.cuda.arithmetic import divide, round_to_even, through_clip

_EVEN, _ODD = tl.constexpr(jpeg.EVEN), tl.constexpr(jpeg.ODD)
_LUMA = tl.constexpr((jpeg.fixed(0.299), jpeg.fixed(0.587), jpeg.fixed(0.114)))
_CB = tl.constexpr((jpeg.fixed(0.5), -jpeg.fixed(0.168735892), -jpeg.fixed(0.331264108)))  # of blue, red and green
_CR = tl.constexpr((jpeg.fixed(0.5), -jpeg.fixed(0.418687589), -jpeg.fixed(0.081312411)))
_RED, _BLUE = tl.constexpr(jpeg.fixed(1.402)), tl.constexpr(jpeg.fixed(1.772))
_GREEN = tl.constexpr((-jpeg.fixed(0.34414), -jpeg.fixed(0.71414)))
_BLOCKS = 4  # of a tile: each thread of a warp has one row of one block, and the warp shuffles to turn rows into columns
_NEAR = tl.constexpr((1, 3, 3, 1))  # quarters of a sample of chroma in the pixels before it, of its own two, and after it
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
    return a * matrix[k][0] + b * matrix[k][1] + c * matrix[k][2] + d * matrix[k][3]


@triton.jit
def _column(matrix: tl.constexpr, k: tl.constexpr, a, b, c, d):
    return a * matrix[0][k] + b * matrix[1][k] + c * matrix[2][k] + d * matrix[3][k]


@triton.jit
def _worked(x):
    """What is worked in: integers of 32 bits for bytes, floats as they are."""
    return x if x.dtype.is_floating() else x.to(tl.int32)


@triton.jit
def _shift(x, bits: tl.constexpr, rounding):
    """``x`` divided by 2^bits, where integers drop the fraction after ``rounding`` is added."""
    return x * (1.0 / (1 << bits)) if x.dtype.is_floating() else (x + rounding) >> bits


@triton.jit
def _dct(x, bits: tl.constexpr):
    """Along the last axis; divided by 2^bits."""
    x0, x1, x2, x3, x4, x5, x6, x7 = _split(x)
    a, b, c, d = x0 + x7, x1 + x6, x2 + x5, x3 + x4
    p, q, r, s = x0 - x7, x1 - x6, x2 - x5, x3 - x4
    y = _join(
        _row(_EVEN, 0, a, b, c, d), _row(_ODD, 0, p, q, r, s), _row(_EVEN, 1, a, b, c, d), _row(_ODD, 1, p, q, r, s),
        _row(_EVEN, 2, a, b, c, d), _row(_ODD, 2, p, q, r, s), _row(_EVEN, 3, a, b, c, d), _row(_ODD, 3, p, q, r, s),
    )  # fmt: skip
    return _shift(y, bits, 1 << (bits - 1))


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
    return _shift(y, bits, 1 << (bits - 1))


@triton.jit
def _clip(x, low, high):
    return tl.where(x < low, low, tl.where(x > high, high, x))  # a nan stays


@triton.jit
def _coefficients(tile):
    """8 times the DCT coefficients of (8, 8 N) centred samples: (8, N, 8), where rows and columns are swapped."""
    rows = _dct(tl.reshape(tile, (8, tile.shape[1] // 8, 8)), 11)  # row, block, column
    return _dct(tl.permute(rows, (2, 1, 0)), 15)


@triton.jit
def _samples(x):
    """The inverse of ``_coefficients`` for coefficients that are not multiplied by 8."""
    x = _inverse_dct(tl.permute(_inverse_dct(x, 11), (2, 1, 0)), 18)
    return tl.reshape(x, (8, 8 * x.shape[1]))


@triton.jit
def _quantised(x, table):
    """The multiples nearest to x / 8 of the 8 x 8 steps at the pointer ``table``; rows and columns of ``x`` are swapped."""
    step = tl.load(table + tl.arange(0, 8)[:, None, None] + 8 * tl.arange(0, 8)[None, None, :]).to(x.dtype)
    counts = round_to_even(divide(tl.abs(x), 8 * step)) if x.dtype.is_floating() else (tl.abs(x) + 4 * step) // (8 * step)
    return tl.where(x < 0, -counts, counts) * step


@triton.jit
def _blocks_roundtrip(tile, table):
    """(8, 8 N) centred samples through DCT, quantisation and back; not clipped to [-128, 127]."""
    return _samples(_quantised(_coefficients(tile), table))


@triton.jit
def _through_blocks(gradient, samples):
    """The gradient of the clipped ``_blocks_roundtrip`` where ``samples`` were clipped; either transform is the other one's adjoint."""
    inside = tl.where((samples >= -128) & (samples <= 127), gradient, 0.0)
    return _samples(_coefficients(inside) * 0.125)


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
    return _worked(tl.load(pixel)), _worked(tl.load(pixel + size)), _worked(tl.load(pixel + 2 * size))


@triton.jit
def _weighted(weights: tl.constexpr, a, b, c, rounding: tl.constexpr):
    return _shift(a * weights[0] + b * weights[1] + c * weights[2], 16, rounding)


@triton.jit(do_not_specialize=_NUMBERS)
def _to_chroma(images, tables, chroma, height, width, half_height, half_width, BLOCKS: tl.constexpr):
    """Bytes are stored clipped, centred; floats unclipped, for the gradient."""
    number, y, x = _tile(half_height, half_width, BLOCKS)
    image = images + number * 3 * height * width
    row = tl.minimum(y, half_height - 1)  # rows are extended after the downsampling, columns before
    cb = 0
    cr = 0
    for k in tl.static_range(4):
        red, green, blue = _load(image, 2 * row + k // 2, 2 * x + k % 2, height, width)
        cb += _weighted(_CB, blue, red, green, 32767)
        cr += _weighted(_CR, red, green, blue, 32767)
    table = tables + number * 128 + 64
    cb = _blocks_roundtrip(_shift(cb, 2, 1 + (x & 1)), table)
    cr = _blocks_roundtrip(_shift(cr, 2, 1 + (x & 1)), table)
    if chroma.dtype.element_ty == tl.int8:
        cb, cr = _clip(cb, -128, 127).to(tl.int8), _clip(cr, -128, 127).to(tl.int8)
    size = half_height.to(tl.int64) * half_width
    to = chroma + number * 2 * size + y.to(tl.int64) * half_width + x
    there = (y < half_height) & (x < half_width)
    tl.store(to, cb, mask=there)
    tl.store(to + size, cr, mask=there)


@triton.jit
def _upsampled(plane, y, x, half_height, half_width):
    """The chroma at the pixels (y, x) of the image: three quarters of the sample there and one of the nearer neighbour, along both axes."""
    row, column = tl.minimum(y >> 1, half_height - 1), tl.minimum(x >> 1, half_width - 1)
    near_row, near_column = _clip(row + 2 * (y & 1) - 1, 0, half_height - 1), _clip(column + 2 * (x & 1) - 1, 0, half_width - 1)
    smooth = half_width > 2  # else samples are repeated, which four equal ones do
    near_row, near_column = tl.where(smooth, near_row, row), tl.where(smooth, near_column, column)
    here, near = plane + row.to(tl.int64) * half_width, plane + near_row.to(tl.int64) * half_width
    own = 3 * _sample(here + column) + _sample(near + column)
    other = 3 * _sample(here + near_column) + _sample(near + near_column)
    return _shift(3 * own + other, 4, 8 - (x & 1))


@triton.jit
def _sample(pointer):
    return _clip(_worked(tl.load(pointer)), -128, 127)


@triton.jit
def _decoded(images, tables, chroma, number, y, x, height, width, half_height, half_width):
    """Unclipped: red, green and blue at (y, x), and the samples of luma, centred."""
    size, half_size = height.to(tl.int64) * width, half_height.to(tl.int64) * half_width
    red, green, blue = _load(images + number * 3 * size, y, x, height, width)
    samples = _blocks_roundtrip(_weighted(_LUMA, red, green, blue, 32768) - 128, tables + number * 128)
    luma = _clip(samples, -128, 127) + 128
    cb = _upsampled(chroma + number * 2 * half_size, y, x, half_height, half_width)
    cr = _upsampled(chroma + number * 2 * half_size + half_size, y, x, half_height, half_width)
    red = luma + _shift(cr * _RED, 16, 32768)
    green = luma + _shift(cb * _GREEN[0] + cr * _GREEN[1], 16, 32768)
    blue = luma + _shift(cb * _BLUE, 16, 32768)
    return red, green, blue, samples


@triton.jit(do_not_specialize=_NUMBERS)
def _to_rgb(images, tables, chroma, result, height, width, half_height, half_width, BLOCKS: tl.constexpr):
    number, y, x = _tile(height, width, BLOCKS)
    red, green, blue, _ = _decoded(images, tables, chroma, number, y, x, height, width, half_height, half_width)
    size = height.to(tl.int64) * width
    to = result + number * 3 * size + y.to(tl.int64) * width + x
    there = (y < height) & (x < width)
    tl.store(to, _clip(red, 0, 255).to(result.dtype.element_ty), mask=there)
    tl.store(to + size, _clip(green, 0, 255).to(result.dtype.element_ty), mask=there)
    tl.store(to + 2 * size, _clip(blue, 0, 255).to(result.dtype.element_ty), mask=there)


@triton.jit
def _past(x, place, size, axis: tl.constexpr):
    """The sum along an axis of what lies past the edge.  The extension of an edge is within its block."""
    return tl.sum(tl.where(place >= size, x, 0.0), axis, keep_dims=True)


@triton.jit
def _to_edge(x, place, size, axis: tl.constexpr):
    """The gradient of an extension along an axis: what lies past the edge is added to the edge."""
    return x + tl.where(place == size - 1, _past(x, place, size, axis), 0.0)


@triton.jit(do_not_specialize=_NUMBERS)
def _through_luma(gradient, images, tables, chroma, to_ycc, height, width, half_height, half_width, BLOCKS: tl.constexpr):
    """``to_ycc`` gets the gradients of luma and of the upsampled chroma."""
    number, y, x = _tile(height, width, BLOCKS)
    red, green, blue, samples = _decoded(images, tables, chroma, number, y, x, height, width, half_height, half_width)
    size = height.to(tl.int64) * width
    at = number * 3 * size + y.to(tl.int64) * width + x
    there = (y < height) & (x < width)
    red = through_clip(tl.load(gradient + at, mask=there, other=0), red)
    green = through_clip(tl.load(gradient + at + size, mask=there, other=0), green)
    blue = through_clip(tl.load(gradient + at + 2 * size, mask=there, other=0), blue)
    luma = _to_edge(_to_edge(_through_blocks(red + green + blue, samples), y, height, 0), x, width, 1)
    tl.store(to_ycc + at, luma, mask=there)
    tl.store(to_ycc + at + size, _shift(green * _GREEN[0] + blue * _BLUE, 16, 0), mask=there)
    tl.store(to_ycc + at + 2 * size, _shift(red * _RED + green * _GREEN[1], 16, 0), mask=there)


@triton.jit
def _to_samples(plane, y, x, height, width, half_height, half_width):
    """The gradient of ``_upsampled`` for the sample (y, x), from the gradients at the pixels it went to."""
    smooth = half_width > 2
    first_row, last_row = tl.where(smooth, 0, 2 * y), tl.where(smooth, 2 * half_height - 1, 2 * y + 1)
    first_column, last_column = tl.where(smooth, 0, 2 * x), tl.where(smooth, 2 * half_width - 1, 2 * x + 1)
    there = (y < half_height) & (x < half_width)
    total = 0
    for k in tl.static_range(16):
        row, column = _clip(2 * y + k // 4 - 1, first_row, last_row), _clip(2 * x + k % 4 - 1, first_column, last_column)
        pixel = plane + row.to(tl.int64) * width + column
        total += tl.load(pixel, mask=there & (row < height) & (column < width), other=0) * (_NEAR[k // 4] * _NEAR[k % 4])
    return _shift(total, 4, 0)


@triton.jit
def _to_pixels(own, past, row, column, height, width, k: tl.constexpr):
    """The gradient of the downsampling for the pixel number ``k`` of 2 x 2, from ``own`` at the sample and ``past`` from columns beyond."""
    # Where a size is odd the last pixel is two of the four; every sample past the edge is the last pixel twice a row.
    across = tl.where(column == width - 1, own * (2 - k % 2) + 2 * past, own)
    return _shift(tl.where((row == height - 1) & (k // 2 == 0), 2 * across, across), 2, 0)


@triton.jit(do_not_specialize=_NUMBERS)
def _through_chroma(to_ycc, chroma, to_images, height, width, half_height, half_width, BLOCKS: tl.constexpr):
    number, y, x = _tile(half_height, half_width, BLOCKS)
    size, half_size = height.to(tl.int64) * width, half_height.to(tl.int64) * half_width
    to_ycc += number * 3 * size
    to_images += number * 3 * size
    there = (y < half_height) & (x < half_width)
    sample = chroma + number * 2 * half_size + y.to(tl.int64) * half_width + x
    cb = _to_samples(to_ycc + size, y, x, height, width, half_height, half_width)
    cr = _to_samples(to_ycc + 2 * size, y, x, height, width, half_height, half_width)
    cb = _to_edge(_through_blocks(cb, tl.load(sample, mask=there, other=0)), y, half_height, 0)
    cr = _to_edge(_through_blocks(cr, tl.load(sample + half_size, mask=there, other=0)), y, half_height, 0)
    past_cb, past_cr = _past(cb, x, half_width, 1), _past(cr, x, half_width, 1)
    for k in tl.static_range(4):
        row, column = 2 * y + k // 2, 2 * x + k % 2
        pixel = row.to(tl.int64) * width + column
        here = there & (row < height) & (column < width)
        luma = tl.load(to_ycc + pixel, mask=here, other=0)
        b = _to_pixels(cb, past_cb, row, column, height, width, k)
        r = _to_pixels(cr, past_cr, row, column, height, width, k)
        tl.store(to_images + pixel, _shift(luma * _LUMA[0] + b * _CB[1] + r * _CR[0], 16, 0), mask=here)
        tl.store(to_images + pixel + size, _shift(luma * _LUMA[1] + b * _CB[2] + r * _CR[1], 16, 0), mask=here)
        tl.store(to_images + pixel + 2 * size, _shift(luma * _LUMA[2] + b * _CB[0] + r * _CR[2], 16, 0), mask=here)


def _launch(kernel, images: Tensor, *tensors: Tensor, on_chroma: bool = False) -> None:
    """``kernel`` with a program for each tile of the images, or of their halved chroma."""
    size, half = images.shape[2:], _half(images)
    height, width = half if on_chroma else size
    programs = len(images) * triton.cdiv(height, 8) * triton.cdiv(width, 8 * _BLOCKS)
    kernel[(programs,)](*tensors, *size, *half, BLOCKS=_BLOCKS, num_warps=1, enable_fp_fusion=False)


def _half(images: Tensor) -> tuple[int, int]:
    return (images.shape[2] + 1) // 2, (images.shape[3] + 1) // 2


def _chroma(images: Tensor, tables: Tensor) -> Tensor:
    dtype = torch.int8 if images.dtype == torch.uint8 else images.dtype
    chroma = torch.empty((len(images), 2, *_half(images)), dtype=dtype, device=images.device)
    _launch(_to_chroma, images, images, tables, chroma, on_chroma=True)
    return chroma


def roundtrip(images: Tensor, tables: Tensor) -> Tensor:
    """As ``roundtrip_reference``."""
    images, tables = images.contiguous(), tables.contiguous()
    result = torch.empty_like(images)
    if result.numel() == 0:
        return result
    with torch.cuda.device_of(images):
        _launch(_to_rgb, images, images, tables, _chroma(images, tables), result)
    return result


def roundtrip_backward(gradient: Tensor, images: Tensor, tables: Tensor, wanted: list[bool]) -> list[Tensor]:
    """The wanted gradients of ``roundtrip_reference`` for floats: of the images, the only ones there are."""
    images, tables = images.contiguous(), tables.contiguous()
    to_ycc, to_images = torch.empty_like(images), torch.empty_like(images)
    if to_images.numel():
        with torch.cuda.device_of(images):
            chroma = _chroma(images, tables)
            _launch(_through_luma, images, gradient, images, tables, chroma, to_ycc)
            _launch(_through_chroma, images, to_ycc, chroma, to_images, on_chroma=True)
    return [to_images]
