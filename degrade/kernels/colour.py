"""Hue, saturation and value, as OpenCV defines them for 8 bits.

All in float32: single operations whose results are exact or rounded once, so that every device gives the same bits.  Choices are
made by factors of 0 and 1, which is many times quicker on the CPU than ``torch.where`` and than integers.

Source: A. R. Smith, "Color gamut transform pairs", 1978; the 8-bit arithmetic of OpenCV's cvtColor.
"""

from __future__ import annotations

import torch
from torch import Tensor

from degrade.kernels import native, quantize
from degrade.kernels.dispatch import Kernel

_HUES = 180  # 8-bit hue counts steps of two degrees
_SECTORS = 6
_UNIT = 4096  # reciprocals are multiples of 1/4096
_PIXELS = 32768  # that one call of the compiled body works on


def rgb_to_hsv(images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue in 0..179, saturation and value in 0..255, each (B, H, W) float32 of whole numbers, of (B, 3, H, W) uint8 RGB levels."""
    red, green, blue = images.to(torch.float32).unbind(1)
    value = torch.maximum(torch.maximum(red, green), blue)
    chroma = value - torch.minimum(torch.minimum(red, green), blue)
    saturation = _share(chroma, value, 255)
    not_red, not_green = (value - red).clamp(max=1), (value - green).clamp(max=1)
    red_highest, green_highest, blue_highest = green - blue, blue - red + 2 * chroma, red - green + 4 * chroma
    turned = _choose(not_red, _choose(not_green, blue_highest, green_highest), red_highest)
    return _wrap(_share(turned, chroma, _HUES / _SECTORS), _HUES), saturation, value


def _choose(flag: Tensor, one: Tensor, zero: Tensor) -> Tensor:
    """``one`` where ``flag`` is 1 and ``zero`` where it is 0; both whole numbers."""
    return zero + flag * (one - zero)


def _wrap(values: Tensor, period: int) -> Tensor:
    """Whole numbers from -period to period - 1, the negative ones raised by ``period``."""
    return values - period * (values / period).floor()


def _share(part: Tensor, whole: Tensor, scale: float) -> Tensor:
    """scale * part / whole, rounded as OpenCV's integers are: the reciprocal first, then the product; 0 for a whole of 0.

    All products stay below 2^24, where float32 is exact; the reciprocals of 1..255 are far enough from ties.
    """
    reciprocal = (scale * _UNIT / whole.clamp(min=1)).round()
    return (part * reciprocal / _UNIT + 0.5).floor()


def hsv_to_rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """(B, 3, H, W) uint8 RGB levels, fractions dropped, of what ``rgb_to_hsv`` returns, in OpenCV's order of operations."""
    turns = hue * (_SECTORS / _HUES)
    s = saturation * (1 / 255)
    highest = value * (1 / 255)
    sector = turns.floor()
    ramp = turns - sector
    rises = 1 - 2 * (sector / 2).frac()  # the middle channel rises in even sectors, and falls in odd ones
    ramp = (rises - ramp).abs()
    # OpenCV's 1 - s * ramp is rounded once (a fused multiply-add).  In float64 the product is exact.
    middle = highest * (1 - s.double() * ramp.double()).float()
    lowest = highest * (1 - s)
    highest, middle, lowest = ((plane * 255).clamp(0, 255).floor() for plane in (highest, middle, lowest))

    def channel(third: int) -> Tensor:
        """Red is highest in sectors 5 and 0, middle in 1 and 4, lowest in 2 and 3; green and blue follow by thirds of the circle."""
        place = _wrap(sector - 2 * third, _SECTORS)
        place = torch.minimum(place, _SECTORS - 1 - place)
        return _choose((place - 1).clamp(min=0), lowest, _choose(place.clamp(max=1), middle, highest)).to(torch.uint8)

    return torch.stack([channel(0), channel(1), channel(2)], 1)


def scale_saturation_reference(images: Tensor, keep: Tensor) -> Tensor:
    if images.is_floating_point():
        highest = images.amax(1, keepdim=True)
        return highest - (highest - images) * quantize.per_image(keep, images)
    hue, saturation, value = rgb_to_hsv(images)
    faded = (saturation * quantize.per_image(keep, images)[:, 0]).floor()  # in float32: in float64, 30 * 0.1 would become 2
    return hsv_to_rgb(hue, faded, value)


_scale_saturation = Kernel("scale_saturation", scale_saturation_reference, "Tensor images, Tensor keep")


@_scale_saturation.on_cpu
def _scale_saturation_cpu(images: Tensor, keep: Tensor) -> Tensor:
    images, factors, size = images.contiguous(), keep.flatten().tolist(), images.shape[2] * images.shape[3]
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
    body = native.function("degrade_scale_saturation", *[native.POINTER] * 2, native.DOUBLE, *[native.INT] * 3)
    step = native.share(size, _PIXELS)
    blocks = -(-size // step)

    def part(n: int) -> None:
        b, block = divmod(n, blocks)
        first = block * step
        body(images[b].data_ptr(), out[b].data_ptr(), factors[b], size, first, min(size, first + step))

    native.parallel(len(images) * blocks, part)
    return out


@_scale_saturation.on_cuda
def _scale_saturation_cuda(images: Tensor, keep: Tensor) -> Tensor:
    from degrade.kernels.cuda import colour as body  # not every platform has Triton

    return body.scale_saturation(images, keep)


@_scale_saturation.gradient_on_cuda("images", "keep")
def _scale_saturation_gradient_cuda(gradient: Tensor, images: Tensor, keep: Tensor, wanted: list[bool]) -> list[Tensor]:
    from degrade.kernels.cuda import colour as body

    found: list[Tensor] = body.scale_saturation_backward(gradient, images, keep, wanted)
    return found


def scale_saturation(images: Tensor, keep: Tensor) -> Tensor:
    """(B, 3, H, W) levels with the saturation times ``keep``; hue and value stay.

    Bytes go through 8-bit HSV with its coarse hue.  In floats, channels that tie for the value share its gradient.

    Args:
        images: uint8, float32 or float64.
        keep: (B,) float64.
    """
    return _scale_saturation(images, keep)
