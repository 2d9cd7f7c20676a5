"""What Triton bodies share."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def part_of_line(size, BLOCK: tl.constexpr):
    """Of lines of ``size`` values, each shared out to cdiv(size, BLOCK) programs: the line that this program works on, places, which exist.

    A line may be a row, a plane or an image.  Its number is int64, as are offsets made of it.  Where the compiler may know that
    ``size`` is a multiple of 16, it reads and writes many bytes at once.
    """
    blocks = tl.cdiv(size, BLOCK)
    place = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    return (tl.program_id(0) // blocks).to(tl.int64), place, place < size


@triton.jit
def round_to_even(x):
    """Floating x >= 0, below 2^22 (float32) or 2^51 (float64), to the nearest whole number, ties to even."""
    whole: tl.constexpr = 8388608.0 if x.dtype == tl.float32 else 4503599627370496.0  # no bits are left for a fraction from here on
    return (x + whole) - whole


@triton.jit
def divide(x, y):
    """As IEEE 754 says; Triton's own division of float32 may be a bit off."""
    return tl.div_rn(x, y) if x.dtype == tl.float32 else x / y


@triton.jit
def clip(x):
    return tl.where(x < 0, 0.0, tl.where(x > 255, 255.0, x))  # a nan stays


@triton.jit
def rounded(x):
    """``quantize.round`` to bytes."""
    return round_to_even(clip(x)).to(tl.int32).to(tl.uint8)


@triton.jit
def truncated(x):
    """``quantize.trunc`` to bytes."""
    return clip(x).to(tl.int32).to(tl.uint8)


@triton.jit
def stored_rounded(x, dtype: tl.constexpr):
    """``quantize.round``."""
    return rounded(x) if dtype == tl.uint8 else clip(x).to(dtype)


@triton.jit
def stored_truncated(x, dtype: tl.constexpr):
    """``quantize.trunc``."""
    return truncated(x) if dtype == tl.uint8 else clip(x).to(dtype)


@triton.jit
def through_clip(gradient, x):
    """The gradient of ``quantize.clip`` where ``x`` was clipped."""
    return tl.where((x >= 0) & (x <= 255), gradient, 0.0)


@triton.jit
def number(values, image, dtype: tl.constexpr):
    """``values[image]`` as a formula for images of ``dtype`` takes it: float32 for bytes."""
    return tl.load(values + image).to(tl.float32 if dtype == tl.uint8 else dtype)


def real(images: Tensor) -> torch.dtype:
    """In which a formula is worked out for ``images``: their own dtype, and float32 for bytes."""
    return images.dtype if images.is_floating_point() else torch.float32


def summed(parts: Tensor, argument: Tensor) -> Tensor:
    """The gradient of ``argument``, a number per image, from what (B, N) programs add to it."""
    return parts.sum(1, dtype=argument.dtype).view(argument.shape)
