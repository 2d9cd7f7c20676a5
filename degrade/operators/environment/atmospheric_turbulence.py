"""Atmospheric turbulence: rows sway along a sine (operators.md, environment)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from degrade.kernels import quantize, warp
from degrade.operator import NoParams, Operator, Plan, Size

AMPLITUDE = 40.0  # pixels, times the intensity
WAVE = 30.0  # pixels per radian
PHASE = 5.0  # radians, times the intensity
VERTICAL = 0.7  # vertical displacement per horizontal displacement


class AtmosphericTurbulence(Operator[NoParams]):
    """The bilinear sample at (x + d, y + 0.7 d), d = 40 i sin(y / 30 + 5 i), clipped to the image; draws nothing.

    Positions are multiples of 1/32 pixel; that rounding is part of the degradation and stays for floats, with straight-through
    gradients.  Bytes are rounded to nearest, ties up, as the fixed point of OpenCV's remap does.
    Gradient: linear in the image; in the intensity the slope of the image times the change of d, 0 where a position is clipped.
    """

    name = "atmospheric_turbulence"
    category = "environment"
    params = NoParams

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[NoParams]) -> Plan:
        """Shifts and row positions on the grid, (B, H) in pixels: sin is not equal on all devices."""
        y = np.arange(size[0])
        i = np.array(intensities, dtype=np.float64).reshape(-1, 1)
        shift = AMPLITUDE * i * np.sin(y / WAVE + PHASE * i)
        rows = y + VERTICAL * shift
        return {name: torch.from_numpy(np.rint(v * warp.GRID) / warp.GRID) for name, v in (("shift", shift), ("rows", rows))}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        shift, rows = plan["shift"], plan["rows"]
        if intensity.requires_grad:
            y = torch.arange(images.shape[2], dtype=intensity.dtype, device=images.device)
            i = intensity[:, None]
            smooth = AMPLITUDE * i * torch.sin(y / WAVE + PHASE * i)
            shift, rows = quantize.straight_through(smooth, shift), quantize.straight_through(y + VERTICAL * smooth, rows)
        return warp.move_rows(images, shift, rows)
