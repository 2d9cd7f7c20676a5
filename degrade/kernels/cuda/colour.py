"""Saturation of bytes on CUDA, step by step as ``degrade/kernels/colour.py`` states it, in one pass."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import clip, part_of_line, round_to_even

_PIXELS = 1024  # of an image that one program works on


@triton.jit
def _share(part, whole, SCALE: tl.constexpr):
    reciprocal = round_to_even(tl.div_rn(tl.full(whole.shape, SCALE * 4096, tl.float32), tl.maximum(whole, 1.0)))
    return tl.floor(part * reciprocal * (1 / 4096) + 0.5)  # powers of two divide exactly as factors


@triton.jit
def _hue(red, green, blue, value, chroma):
    turned = tl.where(value == green, blue - red + 2 * chroma, red - green + 4 * chroma)
    hue = _share(tl.where(value == red, green - blue, turned), chroma, 30)
    return tl.where(hue < 0, hue + 180, hue)


@triton.jit
def _stored(part):
    return tl.floor(clip(part * 255))


@triton.jit
def _channel(sector, highest, middle, lowest, THIRD: tl.constexpr):
    place = sector - 2 * THIRD
    place = tl.where(place < 0, place + 6, place)
    place = tl.minimum(place, 5 - place)
    return tl.where(place < 1, highest, tl.where(place < 2, middle, lowest)).to(tl.int32).to(tl.uint8)


@triton.jit(do_not_specialize=("size",))
def _scale_saturation(images, keep, out, size, BLOCK: tl.constexpr):
    image, pixel, inside = part_of_line(size, BLOCK)
    at = image * 3 * size + pixel
    red = tl.load(images + at, mask=inside, other=0).to(tl.float32)
    green = tl.load(images + at + size, mask=inside, other=0).to(tl.float32)
    blue = tl.load(images + at + 2 * size.to(tl.int64), mask=inside, other=0).to(tl.float32)
    value = tl.maximum(tl.maximum(red, green), blue)
    chroma = value - tl.minimum(tl.minimum(red, green), blue)

    turns = _hue(red, green, blue, value, chroma) * (6 / 180)
    s = tl.floor(_share(chroma, value, 255) * tl.load(keep + image)) * (1 / 255)
    high = value * (1 / 255)
    sector = tl.floor(turns)
    rising = turns - sector
    ramp = tl.where(sector.to(tl.int32) % 2 == 0, 1 - rising, rising)
    faded = (1 - s.to(tl.float64) * ramp.to(tl.float64)).to(tl.float32)  # rounded once
    highest, middle, lowest = _stored(high), _stored(high * faded), _stored(high * (1 - s))
    tl.store(out + at, _channel(sector, highest, middle, lowest, 0), mask=inside)
    tl.store(out + at + size, _channel(sector, highest, middle, lowest, 1), mask=inside)
    tl.store(out + at + 2 * size.to(tl.int64), _channel(sector, highest, middle, lowest, 2), mask=inside)


def scale_saturation(images: Tensor, keep: Tensor) -> Tensor:
    """As ``scale_saturation_reference``."""
    images = images.contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    batch, _, height, width = images.shape
    with torch.cuda.device_of(images):
        _scale_saturation[(batch * triton.cdiv(height * width, _PIXELS),)](
            images, keep.float().contiguous(), out, height * width, BLOCK=_PIXELS, num_warps=4, enable_fp_fusion=False
        )
    return out
