"""Hue, saturation and value, as OpenCV defines them for 8 bits.

Source: A. R. Smith, "Color gamut transform pairs", 1978; the 8-bit arithmetic of OpenCV's cvtColor.
"""

from __future__ import annotations

import torch
from torch import Tensor

HUES = 180  # 8-bit hue counts steps of two degrees
_SECTORS = 6
_SHIFT = 12  # bits behind the point of the reciprocals


def rgb_to_hsv(images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue in 0..179, saturation and value in 0..255, each (B, H, W) int32, of (B, 3, H, W) uint8 RGB levels."""
    red, green, blue = images.to(torch.int32).unbind(1)
    value = torch.maximum(torch.maximum(red, green), blue)
    chroma = value - torch.minimum(torch.minimum(red, green), blue)
    saturation = _times(chroma, _reciprocal(255, value))
    turned = torch.where(value == red, green - blue, torch.where(value == green, blue - red + 2 * chroma, red - green + 4 * chroma))
    hue = _times(turned, _reciprocal(HUES // _SECTORS, chroma))
    return torch.where(hue < 0, hue + HUES, hue), saturation, value


def hsv_to_rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """(B, 3, H, W) uint8 RGB levels, fractions dropped, of hue in 0..179, saturation and value in 0..255, each (B, H, W).

    Single operations in float32 in OpenCV's order, so that every device gives the same bits.
    """
    turns = hue.to(torch.float32) * (_SECTORS / HUES)
    s = saturation.to(torch.float32) * (1 / 255)
    highest = value.to(torch.float32) * (1 / 255)
    sector = turns.trunc()
    ramp = turns - sector
    sector = sector.to(torch.int32)
    falling = sector % 2 == 1  # the middle channel falls in odd sectors, and rises in even ones
    ramp = torch.where(falling, ramp, 1 - ramp)
    # OpenCV's 1 - s * ramp is rounded once (a fused multiply-add).  In float64 the product is exact.
    middle = highest * (1 - s.double() * ramp.double()).float()
    lowest = highest * (1 - s)

    def channel(offset: int) -> Tensor:
        """Red is highest in sectors 0 and 5, middle in 1 and 4, lowest in 2 and 3; green and blue are shifted by a third."""
        place = (sector + offset) % _SECTORS
        place = torch.minimum(place, _SECTORS - 1 - place)
        return torch.where(place == 0, highest, torch.where(place == 1, middle, lowest))

    return (torch.stack([channel(0), channel(4), channel(2)], 1) * 255).clamp(0, 255).to(torch.uint8)


def desaturate(images: Tensor, keep: Tensor) -> Tensor:
    """(B, 3, H, W) floating levels with the saturation times ``keep`` (B, 1, 1, 1); hue and value stay.

    Where channels tie for the value, they share its gradient.
    """
    value = images.amax(1, keepdim=True)
    return value - (value - images) * keep


def _reciprocal(numerator: int, denominator: Tensor) -> Tensor:
    """numerator / denominator, rounded, in units of 2^-12; for a denominator of 0 that of 1.  No ties occur within 1..255."""
    denominator = denominator.clamp(min=1)
    return torch.div((numerator << _SHIFT + 1) + denominator, 2 * denominator, rounding_mode="floor")


def _times(values: Tensor, reciprocals: Tensor) -> Tensor:
    return (values * reciprocals + (1 << _SHIFT - 1)) >> _SHIFT
