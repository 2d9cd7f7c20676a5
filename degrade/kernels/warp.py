"""Bilinear sampling of images whose rows move as wholes."""

from __future__ import annotations

import torch
from torch import Tensor

GRID = 32  # sampling positions are multiples of 1/32 pixel, as in OpenCV's remap


def move_rows(images: Tensor, shift: Tensor, rows: Tensor) -> Tensor:
    """(B, C, H, W) floating levels sampled at (x + shift[b, y], rows[b, y]), positions clipped to the image; not rounded.

    On positions that are multiples of 1/32, integer levels come out exactly, as multiples of 1/1024, whatever the device.
    Gradients flow to the images and to the positions: the slope between the two neighbours, 0 where a position is clipped.

    Args:
        images: float32 or float64.
        shift: (B, H) pixels to the right.
        rows: (B, H) row positions in pixels.
    """
    height, width = images.shape[2:]
    y = rows.to(images.dtype)[:, None, :, None].clamp(0, height - 1)
    x = (torch.arange(width, dtype=images.dtype, device=images.device) + shift.to(images.dtype)[:, None, :, None]).clamp(0, width - 1)
    return _between_neighbours(_between_neighbours(images, y, 2), x, 3)


def _between_neighbours(images: Tensor, positions: Tensor, dim: int) -> Tensor:
    """Linear interpolation of ``images`` along ``dim`` at ``positions``, which broadcast against them."""
    before = positions.detach().floor()
    fraction = positions - before
    first = before.long()
    second = (first + 1).clamp(max=images.shape[dim] - 1)  # beyond the last pixel the fraction is 0
    return images.gather(dim, first.expand_as(images)) * (1 - fraction) + images.gather(dim, second.expand_as(images)) * fraction
