"""Bytes blended and scaled on CUDA; what is computed is stated in ``degrade/kernels/quantize.py``."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import part_of_line, rounded, truncated

_PIXELS = 1024  # of a plane that one program works on
_COLUMNS = 512


@triton.jit(do_not_specialize=("channels", "other_channels"))
def _blend(first, weight, second, other_weight, out, size, channels, other_channels, BLOCK: tl.constexpr):
    plane, pixel, inside = part_of_line(size, BLOCK)
    image, channel = plane // channels, plane % channels
    here = plane * size + pixel
    there = (image * other_channels + channel % other_channels) * size + pixel
    own = tl.load(first + here, mask=inside, other=0).to(tl.float32) * tl.load(weight + image)
    other = tl.load(second + there, mask=inside, other=0).to(tl.float32) * tl.load(other_weight + image)
    tl.store(out + here, rounded(own + other), mask=inside)


def blend(first: Tensor, weight: Tensor, second: Tensor, other_weight: Tensor) -> Tensor:
    """As ``blend_reference``."""
    first, second = first.contiguous(), second.contiguous()
    out = torch.empty_like(first)
    if out.numel() == 0:
        return out
    batch, channels, height, width = first.shape
    weights = [w.float().expand(batch, 1, 1, 1).contiguous() for w in (weight, other_weight)]
    with torch.cuda.device_of(first):
        _blend[(batch * channels * triton.cdiv(height * width, _PIXELS),)](
            first, weights[0], second, weights[1], out, height * width, channels, second.shape[1],
            BLOCK=_PIXELS, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip
    return out


@triton.jit(do_not_specialize=("factors_of_image", "factors_of_row", "channels", "height"))
def _scale_rows(images, factors, out, factors_of_image, factors_of_row, channels, height, width, BLOCK: tl.constexpr):
    """The factor of a row is found by the strides of ``factors``."""
    row, column, inside = part_of_line(width, BLOCK)
    factor = tl.load(factors + row // height // channels * factors_of_image + row % height * factors_of_row)
    here = row * width + column
    level = tl.load(images + here, mask=inside, other=0).to(tl.float64)
    tl.store(out + here, truncated(level * factor), mask=inside)


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
