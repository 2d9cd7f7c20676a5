"""Saturation on CUDA, that of bytes step by step as ``degrade/kernels/colour.py`` states it, in one pass."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import clip, divide, number, part_of_line, round_to_even, summed

_PIXELS = 1024  # of an image that one program works on


@triton.jit
def _share(part, whole, SCALE: tl.constexpr):
    reciprocal = round_to_even(divide(tl.full(whole.shape, SCALE * 4096, tl.float32), tl.maximum(whole, 1.0)))
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


@triton.jit
def _channels(values, at, size, inside):
    size = size.to(tl.int64)
    red = tl.load(values + at, mask=inside, other=0)
    green = tl.load(values + at + size, mask=inside, other=0)
    return red, green, tl.load(values + at + 2 * size, mask=inside, other=0)


@triton.jit
def _store(values, at, size, inside, red, green, blue):
    size = size.to(tl.int64)
    tl.store(values + at, red, mask=inside)
    tl.store(values + at + size, green, mask=inside)
    tl.store(values + at + 2 * size, blue, mask=inside)


@triton.jit(do_not_specialize=("size",))
def _scale_saturation(images, keep, out, size, BLOCK: tl.constexpr):
    image, pixel, inside = part_of_line(size, BLOCK)
    at = image * 3 * size + pixel
    red, green, blue = _channels(images, at, size, inside)
    red, green, blue = red.to(tl.float32), green.to(tl.float32), blue.to(tl.float32)
    value = tl.maximum(tl.maximum(red, green), blue)
    chroma = value - tl.minimum(tl.minimum(red, green), blue)

    turns = _hue(red, green, blue, value, chroma) * (6 / 180)
    s = tl.floor(_share(chroma, value, 255) * number(keep, image, tl.uint8)) * (1 / 255)
    high = value * (1 / 255)
    sector = tl.floor(turns)
    rising = turns - sector
    ramp = tl.where(sector.to(tl.int32) % 2 == 0, 1 - rising, rising)
    faded = (1 - s.to(tl.float64) * ramp.to(tl.float64)).to(tl.float32)  # rounded once
    highest, middle, lowest = _stored(high), _stored(high * faded), _stored(high * (1 - s))
    red = _channel(sector, highest, middle, lowest, 0)
    green = _channel(sector, highest, middle, lowest, 1)
    _store(out, at, size, inside, red, green, _channel(sector, highest, middle, lowest, 2))


@triton.jit
def _highest(red, green, blue):
    either = tl.maximum(red, green, propagate_nan=tl.PropagateNan.ALL)
    return tl.maximum(either, blue, propagate_nan=tl.PropagateNan.ALL)


@triton.jit(do_not_specialize=("size",))
def _fade(images, keep, out, size, BLOCK: tl.constexpr):
    """Of floats."""
    image, pixel, inside = part_of_line(size, BLOCK)
    at = image * 3 * size + pixel
    red, green, blue = _channels(images, at, size, inside)
    highest, kept = _highest(red, green, blue), number(keep, image, images.dtype.element_ty)
    _store(out, at, size, inside, highest - (highest - red) * kept, highest - (highest - green) * kept, highest - (highest - blue) * kept)


@triton.jit(do_not_specialize=("size",))
def _fade_backward(gradient, images, keep, to_images, parts, size, IMAGES: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr):
    """``parts`` gets a number from each program, what it adds to the gradient of its image's ``keep``."""
    image, pixel, inside = part_of_line(size, BLOCK)
    at = image * 3 * size + pixel
    red, green, blue = _channels(images, at, size, inside)
    to_red, to_green, to_blue = _channels(gradient, at, size, inside)
    highest, kept = _highest(red, green, blue), number(keep, image, images.dtype.element_ty)
    if IMAGES:
        ties = (red == highest).to(kept.dtype) + (green == highest).to(kept.dtype) + (blue == highest).to(kept.dtype)
        share = divide((to_red + to_green + to_blue) * (1 - kept), ties)
        _store(
            to_images, at, size, inside,
            to_red * kept + tl.where(red == highest, share, 0.0),
            to_green * kept + tl.where(green == highest, share, 0.0),
            to_blue * kept + tl.where(blue == highest, share, 0.0),
        )  # fmt: skip
    if KEEP:
        slope = to_red * (red - highest) + to_green * (green - highest) + to_blue * (blue - highest)
        tl.store(parts + tl.program_id(0), tl.sum(slope, 0))


def _prepared(images: Tensor, keep: Tensor) -> tuple[list[Tensor], int, int]:
    """The contiguous arguments, how many pixels an image has, and how many programs work on it."""
    size = images.shape[2] * images.shape[3]
    return [images.contiguous(), keep.contiguous()], size, triton.cdiv(size, _PIXELS)


def scale_saturation(images: Tensor, keep: Tensor) -> Tensor:
    """As ``scale_saturation_reference``."""
    given, size, programs = _prepared(images, keep)
    out = torch.empty_like(given[0])
    if out.numel() == 0:
        return out
    body = _fade if images.is_floating_point() else _scale_saturation
    with torch.cuda.device_of(images):
        body[(len(images) * programs,)](*given, out, size, BLOCK=_PIXELS, num_warps=4, enable_fp_fusion=False)
    return out


def scale_saturation_backward(gradient: Tensor, images: Tensor, keep: Tensor, wanted: list[bool]) -> list[Tensor]:
    """The wanted gradients of ``scale_saturation_reference`` for floats."""
    given, size, programs = _prepared(images, keep)
    want_images, want_keep = wanted
    to_images = torch.empty_like(given[0]) if want_images else gradient
    parts = torch.empty(len(images), programs, dtype=images.dtype, device=images.device)
    if parts.numel():
        with torch.cuda.device_of(images):
            _fade_backward[(parts.numel(),)](
                gradient, *given, to_images, parts, size,
                IMAGES=want_images, KEEP=want_keep, BLOCK=_PIXELS, num_warps=4, enable_fp_fusion=False,
            )  # fmt: skip
    found = [to_images] if want_images else []
    if want_keep:
        found.append(summed(parts, keep))
    return found
