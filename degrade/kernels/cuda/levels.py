"""Levels on CUDA, in one pass each way; what is computed is stated in ``degrade/kernels/levels.py``."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import divide, part_of_line, round_to_even

_PIXELS = 1024  # of an image that one program works on


@triton.jit
def _row(index, n):
    """``index[n]``, or ``n`` where there is no index."""
    return n if index is None else tl.load(index + n)


@triton.jit
def _to_levels(images, there, out, size, ROUNDED: tl.constexpr, REAL: tl.constexpr, BLOCK: tl.constexpr):
    n, place, inside = part_of_line(size, BLOCK)
    value = tl.load(images + _row(there, n) * size + place, mask=inside, other=0)
    if images.dtype.element_ty != tl.uint8:
        value = value.to(REAL)
        value = tl.where(value < 0, 0.0, tl.where(value > 1, 1.0, value)) * 255  # a nan stays
        if ROUNDED:
            value = round_to_even(value)
        if out.dtype.element_ty == tl.uint8:
            value = value.to(tl.int32)
    tl.store(out + n * size + place, value.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _to_levels_backward(gradient, images, back, out, size, BLOCK: tl.constexpr):
    n, place, inside = part_of_line(size, BLOCK)
    row = _row(back, n)
    inside_too = inside & (row >= 0)
    value = tl.load(images + n * size + place, mask=inside_too, other=0).to(gradient.dtype.element_ty)
    passed = tl.load(gradient + row * size + place, mask=inside_too & (value >= 0) & (value <= 1), other=0) * 255
    tl.store(out + n * size + place, passed.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _from_levels(images, levels, back, out, size, REAL: tl.constexpr, BLOCK: tl.constexpr):
    n, place, inside = part_of_line(size, BLOCK)
    row = _row(back, n)
    if row >= 0:
        value = tl.load(levels + row * size + place, mask=inside, other=0)
        if out.dtype.element_ty != tl.uint8:
            value = divide(value.to(REAL), tl.full((BLOCK,), 255, REAL))
        tl.store(out + n * size + place, value.to(out.dtype.element_ty), mask=inside)
    else:
        tl.store(out + n * size + place, tl.load(images + n * size + place, mask=inside, other=0), mask=inside)


@triton.jit
def _from_levels_backward(gradient, there, out, size, BLOCK: tl.constexpr):
    n, place, inside = part_of_line(size, BLOCK)
    passed = tl.load(gradient + _row(there, n) * size + place, mask=inside, other=0).to(out.dtype.element_ty)
    tl.store(out + n * size + place, divide(passed, tl.full((BLOCK,), 255, passed.dtype)), mask=inside)


@triton.jit
def _untouched(gradient, back, out, size, BLOCK: tl.constexpr):
    n, place, inside = part_of_line(size, BLOCK)
    kept = tl.load(gradient + n * size + place, mask=inside & (_row(back, n) < 0), other=0)
    tl.store(out + n * size + place, kept, mask=inside)


@triton.jit
def _luma(images, out, size, BLOCK: tl.constexpr):
    n, place, inside = part_of_line(size, BLOCK)
    images += place
    red, green = tl.load(images + 3 * n * size, mask=inside, other=0), tl.load(images + (3 * n + 1) * size, mask=inside, other=0)
    blue = tl.load(images + (3 * n + 2) * size, mask=inside, other=0)
    if out.dtype.element_ty == tl.uint8:
        grey = (red.to(tl.int32) * 19595 + green.to(tl.int32) * 38470 + blue.to(tl.int32) * 7471 + 32768) >> 16
    else:
        grey = red + 0.587 * (green - red) + 0.114 * (blue - red)
    tl.store(out + n * size + place, grey.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _luma_backward(gradient, out, size, BLOCK: tl.constexpr):
    n, place, inside = part_of_line(size, BLOCK)
    value = tl.load(gradient + n * size + place, mask=inside, other=0)
    out += place
    tl.store(out + 3 * n * size, value * (1 - 0.587 - 0.114), mask=inside)
    tl.store(out + (3 * n + 1) * size, value * 0.587, mask=inside)
    tl.store(out + (3 * n + 2) * size, value * 0.114, mask=inside)


def _launch(kernel, *given, out: Tensor, rows: int, size: int, **constants) -> Tensor:
    """Run ``kernel`` on blocks of ``rows`` lines of ``size`` values."""
    if rows * size:
        with torch.cuda.device_of(out):
            kernel[(rows * triton.cdiv(size, _PIXELS),)](*given, out, size, BLOCK=_PIXELS, num_warps=4, enable_fp_fusion=False, **constants)
    return out


def _real(images: Tensor):
    return tl.float64 if images.dtype == torch.float64 else tl.float32


def to_levels(images: Tensor, there: Tensor | None, rounded: bool, dtype: torch.dtype) -> Tensor:
    """As ``to_levels_reference``."""
    images = images.contiguous()
    out = torch.empty(len(images) if there is None else len(there), *images.shape[1:], dtype=dtype, device=images.device)
    size = images[:1].numel()
    return _launch(_to_levels, images, there, out=out, rows=len(out), size=size, ROUNDED=rounded, REAL=_real(images))


def to_levels_backward(gradient: Tensor, images: Tensor, back: Tensor | None) -> Tensor:
    """The gradient of floating ``images``."""
    images = images.contiguous()
    return _launch(_to_levels_backward, gradient, images, back, out=torch.empty_like(images), rows=len(images), size=images[:1].numel())


def from_levels(images: Tensor, levels: Tensor, back: Tensor | None) -> Tensor:
    """As ``from_levels_reference``."""
    images = images.contiguous()
    out = torch.empty_like(images)
    return _launch(_from_levels, images, levels.contiguous(), back, out=out, rows=len(out), size=images[:1].numel(), REAL=_real(images))


def from_levels_backward(gradient: Tensor, levels: Tensor, there: Tensor | None, back: Tensor | None, wanted: list[bool]) -> list[Tensor]:
    """The wanted gradients of ``from_levels_reference`` for floats."""
    size = gradient[:1].numel()
    found = []
    if wanted[0]:
        found.append(_launch(_untouched, gradient, back, out=torch.empty_like(gradient), rows=len(gradient), size=size))
    if wanted[1]:
        out = torch.empty(levels.shape, dtype=levels.dtype, device=levels.device)
        found.append(_launch(_from_levels_backward, gradient, there, out=out, rows=len(out), size=size))
    return found


def luma(images: Tensor) -> Tensor:
    """As ``luma_reference``."""
    images = images.contiguous()
    out = torch.empty(len(images), 1, *images.shape[2:], dtype=images.dtype, device=images.device)
    return _launch(_luma, images, out=out, rows=len(out), size=out[:1].numel())


def luma_backward(gradient: Tensor) -> Tensor:
    """The gradient of floating levels whose luma has the ``gradient``."""
    out = torch.empty(len(gradient), 3, *gradient.shape[2:], dtype=gradient.dtype, device=gradient.device)
    return _launch(_luma_backward, gradient, out=out, rows=len(gradient), size=gradient[:1].numel())
