"""jpeg_compression, block_exchange, mean_shift, scan_lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np

from tests.reference.images import Pixels, trunc


def jpeg_compression(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    quality = max(5, int(100 - 95 * intensity))
    encoded = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return np.ascontiguousarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR)[..., ::-1])


def block_exchange(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    block = min(32, int(5 + 30 * intensity))
    out = image.copy()
    for row1, column1, row2, column2 in params["swaps"]:
        one = np.s_[row1 * block : (row1 + 1) * block, column1 * block : (column1 + 1) * block]
        other = np.s_[row2 * block : (row2 + 1) * block, column2 * block : (column2 + 1) * block]
        out[one], out[other] = out[other].copy(), out[one].copy()
    return out


def mean_shift(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    radius = int(40 * intensity)
    return cv2.pyrMeanShiftFiltering(image, radius, radius, maxLevel=1)


def scan_lines(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    period, width = max(3, int(20 / (intensity + 0.1))), max(5, int(7 * intensity))
    out = image.copy()
    for y in range(len(image)):
        if y % period < width:
            out[y] = trunc(out[y] * 0.01)
    return out
