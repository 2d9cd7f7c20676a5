"""The baseline JPEG round trip: encoded at a quality, chroma halved both ways (4:2:0), decoded again.

One description of the codec (``_codec``) runs in two arithmetics.  With integers it is libjpeg-turbo's own fixed-point arithmetic
("islow" DCT, "fancy" upsampling), equal to the library in every bit, with each image at its own quality.  With real numbers it is
the smooth function that libjpeg-turbo rounds; only the rounding of the DCT coefficients, which is the degradation, stays.
The entropy coding in between loses nothing and is left out.

Source: ITU-T T.81 (tables of annex K, DCT of A.3.3), JFIF 1.02 (colours), the integer arithmetic of libjpeg-turbo 2 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from degrade.kernels import native, quantize
from degrade.kernels.dispatch import Kernel

_Matrix = tuple[tuple[int, ...], ...]

_LUMINANCE = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
_CHROMINANCE = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *[(99,) * 8] * 4,
)

# The 8-point DCT of libjpeg's islow method in units of 2^-13, times sqrt(8): its multiplications gathered into a matrix.  They are exact
# in integers, so the order does not matter.  The basis functions are even or odd about the middle, so four columns tell all eight; the
# inverse is the transpose.  10703 and 10704, 2259..2261 are sums of separately rounded constants.
EVEN = (
    (8192, 8192, 8192, 8192),
    (10703, 4433, -4433, -10703),
    (8192, -8192, -8192, 8192),
    (4433, -10704, 10704, -4433),
)
ODD = (
    (11363, 9633, 6437, 2260),
    (9633, -2259, -11362, -6436),
    (6437, -11362, 2261, 9633),
    (2260, -6436, 9633, -11363),
)


class _Arithmetic(Protocol):
    def shift(self, values: Tensor, bits: int, rounding: int | Tensor) -> Tensor:
        """``values`` divided by 2^bits, where integers drop the fraction after ``rounding`` is added."""

    def quantise(self, coefficients: Tensor, step: Tensor) -> Tensor:
        """The multiple of ``step`` that is nearest to ``coefficients / 8``."""


class _Integers:
    def shift(self, values: Tensor, bits: int, rounding: int | Tensor) -> Tensor:
        return (values + rounding) >> bits

    def quantise(self, coefficients: Tensor, step: Tensor) -> Tensor:
        counts = torch.div(coefficients.abs() + 4 * step, 8 * step, rounding_mode="floor")
        return counts * coefficients.sign() * step


class _Reals:
    def shift(self, values: Tensor, bits: int, rounding: int | Tensor) -> Tensor:
        return values / (1 << bits)

    def quantise(self, coefficients: Tensor, step: Tensor) -> Tensor:
        return quantize.round_through(coefficients / (8 * step)) * step


def quantisation_tables(qualities: Sequence[int]) -> Tensor:
    """The steps of luminance and chrominance at each quality: (B, 2, 8, 8) int32 on the CPU, in 1..255, as libjpeg scales them.

    Raises:
        ValueError: for a quality outside 1..100.

    >>> quantisation_tables([50])[0, :, 0, :3].tolist()
    [[16, 11, 10], [17, 18, 24]]
    """
    wrong = [quality for quality in qualities if not 1 <= quality <= 100]
    if wrong:
        raise ValueError(f"qualities: got {wrong[0]}, a JPEG quality is within 1..100")
    percent = torch.tensor([5000 // q if q < 50 else 200 - 2 * q for q in qualities], dtype=torch.int32, device="cpu")
    base = torch.tensor((_LUMINANCE, _CHROMINANCE), dtype=torch.int32, device="cpu")
    tables: Tensor = (base * percent[:, None, None, None] + 50) // 100
    return tables.clamp(1, 255)


def roundtrip(images: Tensor, tables: Tensor) -> Tensor:
    """Levels after encoding and decoding, each image with its own quantisation tables; same shape and dtype.

    Bytes come back as libjpeg-turbo gives them, bit for bit, on every device.  Floats go through the same codec with only the DCT
    coefficients rounded, and that with straight-through gradients: 42 to 55 dB from libjpeg-turbo.

    Args:
        images: (B, 3, H, W) RGB levels in [0, 255], uint8 or floating, H and W at least 1.
        tables: (B, 2, 8, 8) int32, from ``quantisation_tables``.  They come from the host because the standard's tables would have to
            be copied to the device.
    """
    return _roundtrip(images, tables)


def roundtrip_reference(images: Tensor, tables: Tensor) -> Tensor:
    if images.dtype == torch.uint8:
        return _codec(images.to(torch.int32), tables, _Integers()).to(torch.uint8)
    return _codec(images, tables.to(images.dtype), _Reals())


_roundtrip = Kernel("jpeg_roundtrip", roundtrip_reference, "Tensor images, Tensor tables")


@_roundtrip.on_cpu
def _roundtrip_cpu(images: Tensor, tables: Tensor) -> Tensor:
    height, width = images.shape[2:]
    images, tables = images.contiguous(), tables.contiguous()
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
    chroma_height, chroma_width = _up_to((height + 1) // 2, 8), _up_to((width + 1) // 2, 8)
    scratch = _up_to(height, 8) * _up_to(width, 8) + 2 * chroma_height * chroma_width + 5 * (2 * chroma_width + 2)
    body = native.function("degrade_jpeg_roundtrip", *[native.POINTER] * 4, *[native.INT] * 2)

    def one(n: int) -> None:
        planes = torch.empty(scratch, dtype=torch.int16, device="cpu")
        body(images[n].data_ptr(), tables[n].data_ptr(), out[n].data_ptr(), planes.data_ptr(), height, width)

    native.parallel(len(images), one)
    return out


@_roundtrip.on_cuda
def _roundtrip_cuda(images: Tensor, tables: Tensor) -> Tensor:
    from degrade.kernels.cuda import jpeg as body  # not every platform has Triton

    return body.roundtrip(images, tables)


@_roundtrip.gradient_on_cuda("images")
def _roundtrip_gradient_cuda(gradient: Tensor, images: Tensor, tables: Tensor, wanted: list[bool]) -> list[Tensor]:
    from degrade.kernels.cuda import jpeg as body

    return body.roundtrip_backward(gradient, images, tables, wanted)


def _codec(images: Tensor, tables: Tensor, arithmetic: _Arithmetic) -> Tensor:
    """RGB levels (B, 3, H, W) through the codec; ``tables`` in the dtype of ``images``, int32 or floating."""
    height, width = images.shape[2:]
    luma, chroma = _to_ycc(images, arithmetic)
    luma = _blocks_roundtrip(_extend(luma, _up_to(height, 8), _up_to(width, 8)), tables[:, :1], arithmetic)[..., :height, :width]

    # The encoder extends columns before it downsamples, rows after.
    half_height, half_width = (height + 1) // 2, (width + 1) // 2
    chroma = _downsample(_extend(chroma, 2 * half_height, 2 * _up_to(half_width, 8)), arithmetic)
    chroma = _blocks_roundtrip(_extend(chroma, _up_to(half_height, 8), _up_to(half_width, 8)), tables[:, 1:], arithmetic)
    chroma = _upsample(chroma[..., :half_height, :half_width], arithmetic)[..., :height, :width]
    return _to_rgb(luma, chroma, arithmetic)


def fixed(value: float) -> int:
    """A colour weight in libjpeg's units of 2^-16."""
    return int(value * 65536 + 0.5)


def _to_ycc(images: Tensor, arithmetic: _Arithmetic) -> tuple[Tensor, Tensor]:
    """Luma (B, 1, H, W) and chroma Cb, Cr (B, 2, H, W), all centred: 128 less than what JFIF stores."""
    red, green, blue = images.unbind(1)
    luma = fixed(0.299) * red + fixed(0.587) * green + fixed(0.114) * blue
    cb = fixed(0.5) * blue - fixed(0.168735892) * red - fixed(0.331264108) * green
    cr = fixed(0.5) * red - fixed(0.418687589) * green - fixed(0.081312411) * blue
    # One less than half keeps the largest chroma at 255.
    return arithmetic.shift(luma, 16, 32768)[:, None] - 128, arithmetic.shift(torch.stack([cb, cr], 1), 16, 32767)


def _to_rgb(luma: Tensor, chroma: Tensor, arithmetic: _Arithmetic) -> Tensor:
    luma = luma[:, 0] + 128
    cb, cr = chroma.unbind(1)
    red = luma + arithmetic.shift(fixed(1.402) * cr, 16, 32768)
    green = luma + arithmetic.shift(-fixed(0.34414) * cb - fixed(0.71414) * cr, 16, 32768)
    blue = luma + arithmetic.shift(fixed(1.772) * cb, 16, 32768)
    return quantize.clip(torch.stack([red, green, blue], 1), 0, 255)


def _up_to(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _extend(planes: Tensor, height: int, width: int) -> Tensor:
    """Last rows and columns repeated up to ``height`` x ``width``."""
    planes = torch.cat([planes, planes[..., -1:].expand(-1, -1, -1, width - planes.shape[-1])], -1)
    return torch.cat([planes, planes[..., -1:, :].expand(-1, -1, height - planes.shape[-2], -1)], -2)


def _downsample(planes: Tensor, arithmetic: _Arithmetic) -> Tensor:
    """Means of 2 x 2; rounded with 1 and 2 quarters in turn along a row, so that the halves do not drift upwards."""
    top, bottom = planes[..., 0::2, :], planes[..., 1::2, :]
    sums = top[..., 0::2] + top[..., 1::2] + bottom[..., 0::2] + bottom[..., 1::2]
    return arithmetic.shift(sums, 2, 1 + torch.arange(sums.shape[-1], dtype=torch.int32, device=sums.device) % 2)


def _upsample(planes: Tensor, arithmetic: _Arithmetic) -> Tensor:
    """Each sample made 2 x 2: three quarters of it and one of the nearer neighbour, along both axes, edges repeated."""
    if planes.shape[-1] <= 2:  # libjpeg-turbo repeats samples where there is no inner column
        return planes.repeat_interleave(2, -2).repeat_interleave(2, -1)
    rows = torch.cat([planes[..., :1, :], planes, planes[..., -1:, :]], -2)
    sums = torch.stack([3 * planes + rows[..., :-2, :], 3 * planes + rows[..., 2:, :]], -2).flatten(-3, -2)
    columns = torch.cat([sums[..., :1], sums, sums[..., -1:]], -1)
    left = arithmetic.shift(3 * sums + columns[..., :-2], 4, 8)
    right = arithmetic.shift(3 * sums + columns[..., 2:], 4, 7)  # 7: the same precaution against a drift
    return torch.stack([left, right], -1).flatten(-2)


def _blocks_roundtrip(planes: Tensor, tables: Tensor, arithmetic: _Arithmetic) -> Tensor:
    """Planes (B, C, H, W), sides multiples of 8, through DCT, quantisation and back; one table (B, 1, 8, 8) for all C."""
    batch, channels, height, width = planes.shape
    blocks = planes.reshape(batch, channels, height // 8, 8, width // 8, 8)
    step = tables[:, :, None, :, None, :]
    # Both transforms keep two more bits between their passes.  2^26 in all is the square of the unit 2^-13.
    rows = arithmetic.shift(_dct(blocks, 5), 11, 1 << 10)
    coefficients = arithmetic.quantise(arithmetic.shift(_dct(rows, 3), 15, 1 << 14), step)
    columns = arithmetic.shift(_inverse_dct(coefficients, 3), 11, 1 << 10)
    samples = arithmetic.shift(_inverse_dct(columns, 5), 18, 1 << 17)  # 3 bits more: both transforms carry a factor of sqrt(8) per axis
    return quantize.clip(samples, -128, 127).reshape(planes.shape)


def _products(matrix: _Matrix, values: Sequence[Tensor]) -> list[Tensor]:
    """A 4 x 4 matrix times 4 tensors, the numbers as scalars: a matrix on the device would have to be copied there."""
    return [a * values[0] + b * values[1] + c * values[2] + d * values[3] for a, b, c, d in matrix]


def _transposed(matrix: _Matrix) -> _Matrix:
    return tuple(zip(*matrix, strict=True))


def _dct(values: Tensor, dim: int) -> Tensor:
    """The forward transform of the 8 values along ``dim``, in units of 2^-13."""
    x = values.unbind(dim)
    sums = [x[k] + x[7 - k] for k in range(4)]
    differences = [x[k] - x[7 - k] for k in range(4)]
    even, odd = _products(EVEN, sums), _products(ODD, differences)
    return torch.stack([term for pair in zip(even, odd, strict=True) for term in pair], dim)


def _inverse_dct(values: Tensor, dim: int) -> Tensor:
    """The inverse (transposed) transform along ``dim``, in units of 2^-13."""
    x = values.unbind(dim)
    even, odd = _products(_transposed(EVEN), x[0::2]), _products(_transposed(ODD), x[1::2])
    first = [e + o for e, o in zip(even, odd, strict=True)]
    last = [e - o for e, o in zip(even, odd, strict=True)]
    return torch.stack(first + last[::-1], dim)
