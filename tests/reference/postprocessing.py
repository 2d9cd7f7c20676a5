"""sharpness_change, graffiti, watermark_damage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np

from tests.reference.images import Pixels, trunc


def sharpness_change(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    if intensity > 0:
        kernel = 80 * intensity * np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float64)
        sharpened = cv2.filter2D(image, -1, kernel)
    else:
        sharpened = cv2.GaussianBlur(image, (3, 3), 0.8)
    return cv2.addWeighted(image, 0.7, sharpened, 0.3, 0)


def graffiti(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    out = np.ascontiguousarray(image.copy())
    for x1, y1, x2, y2, thickness, *colour in params["strokes"]:
        cv2.line(out, (x1, y1), (x2, y2), tuple(colour), thickness)
    if text := params["text"]:
        place = (text["x"], text["y"])
        cv2.putText(out, text["string"], place, cv2.FONT_HERSHEY_SIMPLEX, text["scale"], (255, 0, 0), text["thickness"])
    return out


def watermark_damage(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    mask = np.zeros(image.shape[:2], np.uint8)
    for x1, y1, x2, y2 in params["rectangles"]:
        cv2.rectangle(mask, (x1, y1), (x2, y2), 255, -1)
    filled = cv2.inpaint(image, mask, 3, cv2.INPAINT_TELEA)
    out = cv2.addWeighted(image, 1 - intensity, filled, intensity, 0)
    if intensity > 0.5:
        edge = cv2.Canny(mask, 100, 200) > 0
        out[edge] = trunc(out[edge] * 0.8)
    return out
