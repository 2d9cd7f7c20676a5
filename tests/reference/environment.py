"""dark_illumination, atmospheric_turbulence, color_diffusion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np

from tests.reference.images import Pixels, trunc


def dark_illumination(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    return trunc(image * (1 - intensity**2))


def atmospheric_turbulence(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    height, width = image.shape[:2]
    y, x = np.mgrid[:height, :width].astype(np.float64)
    shift = 40 * intensity * np.sin(y / 30 + 5 * intensity)
    column = np.clip(x + shift, 0, width - 1).astype(np.float32)
    row = np.clip(y + 0.7 * shift, 0, height - 1).astype(np.float32)
    return cv2.remap(image, column, row, cv2.INTER_LINEAR)


def color_diffusion(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    size = 3 + 2 * int(20 * intensity)
    diffused = image.astype(np.float32)
    if intensity > 0:
        diffused = cv2.GaussianBlur(diffused, (size, size), 50 * intensity)
    diffused = diffused * np.float32(intensity**2)
    for x, y, radius, value in params["spots"]:
        cv2.circle(diffused, (x, y), radius, (value,) * 3, -1)
    return cv2.addWeighted(image, max(0.1, 1 - 0.9 * intensity), trunc(diffused), min(0.9, 0.9 * intensity), 0)
