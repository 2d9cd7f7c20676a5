"""What Triton bodies share."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import triton
import triton.language as tl


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
def clip(x):
    return tl.minimum(tl.maximum(x, 0.0), 255.0)


@triton.jit
def rounded(x):
    """``quantize.round`` to bytes."""
    return round_to_even(clip(x)).to(tl.int32).to(tl.uint8)


@triton.jit
def truncated(x):
    """``quantize.trunc`` to bytes."""
    return clip(x).to(tl.int32).to(tl.uint8)
