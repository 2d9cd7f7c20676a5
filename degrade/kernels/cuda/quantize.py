"""Images blended and scaled on CUDA; what is computed is stated in ``degrade/kernels/quantize.py``."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import number, part_of_line, stored_rounded, stored_truncated, summed, through_clip

_PIXELS = 1024  # of a plane that one program works on
_COLUMNS = 512


@triton.jit
def _blended(first, weight, second, other_weight, size, channels, other_channels, BLOCK: tl.constexpr):
    """Both levels and weights, and where they stand."""
    plane, pixel, inside = part_of_line(size, BLOCK)
    image, channel = plane // channels, plane % channels
    here = plane * size + pixel
    there = (image * other_channels + channel % other_channels) * size + pixel
    weight, other_weight = number(weight, image, first.dtype.element_ty), number(other_weight, image, first.dtype.element_ty)
    own = tl.load(first + here, mask=inside, other=0).to(weight.dtype)
    other = tl.load(second + there, mask=inside, other=0).to(weight.dtype)
    return own, weight, other, other_weight, here, inside


@triton.jit(do_not_specialize=("channels", "other_channels"))
def _blend(first, weight, second, other_weight, out, size, channels, other_channels, BLOCK: tl.constexpr):
    own, own_weight, other, other_weight, here, inside = _blended(
        first, weight, second, other_weight, size, channels, other_channels, BLOCK
    )
    tl.store(out + here, stored_rounded(own * own_weight + other * other_weight, out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=("channels", "other_channels"))
def _blend_backward(
    gradient, first, weight, second, other_weight, to_first, to_second, own_parts, other_parts, size, channels, other_channels,
    FIRST: tl.constexpr, SECOND: tl.constexpr, WEIGHTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """``own_parts`` and ``other_parts`` get a number from each program, what it adds to the gradient of either weight."""
    own, own_weight, other, other_weight, here, inside = _blended(
        first, weight, second, other_weight, size, channels, other_channels, BLOCK
    )
    passed = through_clip(tl.load(gradient + here, mask=inside, other=0), own * own_weight + other * other_weight)
    if FIRST:
        tl.store(to_first + here, passed * own_weight, mask=inside)
    if SECOND:
        tl.store(to_second + here, passed * other_weight, mask=inside)
    if WEIGHTS:
        tl.store(own_parts + tl.program_id(0), tl.sum(passed * own, 0))
        tl.store(other_parts + tl.program_id(0), tl.sum(passed * other, 0))


def _prepared(first: Tensor, weight: Tensor, second: Tensor, other_weight: Tensor) -> tuple[list[Tensor], tuple[int, int, int], int]:
    """The contiguous arguments, the sizes, and the number of programs."""
    batch, channels, height, width = first.shape
    given = [t.contiguous() for t in (first, weight, second, other_weight)]
    return given, (height * width, channels, second.shape[1]), batch * channels * triton.cdiv(height * width, _PIXELS)


def blend(first: Tensor, weight: Tensor, second: Tensor, other_weight: Tensor) -> Tensor:
    """As ``blend_reference``."""
    given, sizes, programs = _prepared(first, weight, second, other_weight)
    out = torch.empty_like(given[0])
    if out.numel() == 0:
        return out
    with torch.cuda.device_of(first):
        _blend[(programs,)](*given, out, *sizes, BLOCK=_PIXELS, num_warps=4, enable_fp_fusion=False)
    return out


def blend_backward(
    gradient: Tensor, first: Tensor, weight: Tensor, second: Tensor, other_weight: Tensor, wanted: list[bool]
) -> list[Tensor]:
    """The wanted gradients of ``blend_reference`` for floats."""
    given, sizes, programs = _prepared(first, weight, second, other_weight)
    want_first, want_weight, want_second, want_other = wanted
    to_first, to_second = (torch.empty_like(given[0]) if want else gradient for want in (want_first, want_second))
    parts = [torch.empty(len(first), programs // max(len(first), 1), dtype=first.dtype, device=first.device) for _ in range(2)]
    if programs:
        with torch.cuda.device_of(first):
            _blend_backward[(programs,)](
                gradient, *given, to_first, to_second, *parts, *sizes,
                FIRST=want_first, SECOND=want_second, WEIGHTS=want_weight or want_other, BLOCK=_PIXELS, num_warps=4, enable_fp_fusion=False,
            )  # fmt: skip
    found = []
    if want_first:
        found.append(to_first)
    if want_weight:
        found.append(summed(parts[0], weight))
    if want_second:
        found.append(to_second if second.shape == first.shape else to_second.sum(1, keepdim=True))
    if want_other:
        found.append(summed(parts[1], other_weight))
    return found


@triton.jit
def _scaled(images, factors, factors_of_image, factors_of_row, channels, height, width, BLOCK: tl.constexpr):
    """The levels, their factor, found by the strides of ``factors``, and where they stand.  Bytes are multiplied in float64."""
    row, column, inside = part_of_line(width, BLOCK)
    factor = tl.load(factors + row // height // channels * factors_of_image + row % height * factors_of_row)
    dtype: tl.constexpr = tl.float64 if images.dtype.element_ty == tl.uint8 else images.dtype.element_ty
    here = row * width + column
    return tl.load(images + here, mask=inside, other=0).to(dtype), factor.to(dtype), here, inside


@triton.jit(do_not_specialize=("factors_of_image", "factors_of_row", "channels", "height"))
def _scale_rows(images, factors, out, factors_of_image, factors_of_row, channels, height, width, BLOCK: tl.constexpr):
    level, factor, here, inside = _scaled(images, factors, factors_of_image, factors_of_row, channels, height, width, BLOCK)
    tl.store(out + here, stored_truncated(level * factor, out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=("factors_of_image", "factors_of_row", "channels", "height"))
def _scale_rows_backward(
    gradient, images, factors, to_images, parts, factors_of_image, factors_of_row, channels, height, width,
    IMAGES: tl.constexpr, FACTORS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """``parts`` gets a number from each program, what it adds to the gradient of its row's factor."""
    level, factor, here, inside = _scaled(images, factors, factors_of_image, factors_of_row, channels, height, width, BLOCK)
    passed = through_clip(tl.load(gradient + here, mask=inside, other=0), level * factor)
    if IMAGES:
        tl.store(to_images + here, passed * factor, mask=inside)
    if FACTORS:
        tl.store(parts + tl.program_id(0), tl.sum(passed * level, 0))


def scale_rows(images: Tensor, factors: Tensor) -> Tensor:
    """As ``scale_rows_reference``."""
    images = images.contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    batch, channels, height, width = images.shape
    factors = factors.double().expand(batch, height)
    with torch.cuda.device_of(images):
        _scale_rows[(batch * channels * height * triton.cdiv(width, _COLUMNS),)](
            images, factors, out, *factors.stride(), channels, height, width, BLOCK=_COLUMNS, num_warps=4, enable_fp_fusion=False
        )
    return out


def scale_rows_backward(gradient: Tensor, images: Tensor, factors: Tensor, wanted: list[bool]) -> list[Tensor]:
    """The wanted gradients of ``scale_rows_reference`` for floats."""
    images = images.contiguous()
    batch, channels, height, width = images.shape
    expanded = factors.double().expand(batch, height)
    want_images, want_factors = wanted
    to_images = torch.empty_like(images) if want_images else gradient
    parts = torch.empty(batch, channels, height, triton.cdiv(width, _COLUMNS), dtype=images.dtype, device=images.device)
    if parts.numel():
        with torch.cuda.device_of(images):
            _scale_rows_backward[(parts.numel(),)](
                gradient, images, expanded, to_images, parts, *expanded.stride(), channels, height, width,
                IMAGES=want_images, FACTORS=want_factors, BLOCK=_COLUMNS, num_warps=4, enable_fp_fusion=False,
            )  # fmt: skip
    found = [to_images] if want_images else []
    if want_factors:
        by_row = parts.sum((1, 3), dtype=factors.dtype)
        found.append(by_row if factors.shape[1] == height else by_row.sum(1, keepdim=True))
    return found
