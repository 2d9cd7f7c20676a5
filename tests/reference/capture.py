"""lens_blur, lens_flare, motion_blur, dirty_lens, hsv_saturation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np

from tests.reference.images import Pixels, trunc


def lens_blur(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    size, sigma = min(101, int(3 + 300 * intensity)) | 1, 20 * intensity
    blurred = image.astype(np.float32)
    if sigma > 0:
        blurred = cv2.GaussianBlur(blurred, (size, size), sigma)
    return cv2.addWeighted(image, 1 - 0.7 * intensity, trunc(blurred), 0.9 * intensity, 0)


def motion_blur(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    size = max(5, int(30 * intensity))
    rotation = cv2.getRotationMatrix2D((size / 2, size / 2), params["angle"], 1)
    kernel = cv2.warpAffine(np.eye(size), rotation, (size, size))
    return cv2.filter2D(image, -1, kernel / kernel.sum())


def lens_flare(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    flare = np.zeros(image.shape, np.float32)
    for (x, y, radius), streak in zip(params["glows"], params["streaks"], strict=True):
        cv2.circle(flare, (x, y), radius, (235, 255, 255), -1)
        cv2.line(flare, tuple(streak[:2]), tuple(streak[2:]), (235, 255, 255), 2)
    if intensity > 0:
        flare = cv2.GaussianBlur(flare, (3, 3), 20 * intensity)
    return trunc(image.astype(np.float32) + 0.9 * intensity * flare)


def dirty_lens(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    dirt = np.zeros(image.shape, np.float32)
    for x, y, long, short, angle in params["smears"]:
        cv2.ellipse(dirt, (x, y), (long, short), angle, 0, 360, (50, 50, 50), -1)
    for x, y, radius, value in params["specks"]:
        cv2.circle(dirt, (x, y), radius, (value,) * 3, -1)
    for x, y, outer, inner in params["blobs"]:
        cv2.circle(dirt, (x, y), outer, (80,) * 3, -1)
        cv2.circle(dirt, (x, y), inner, (120,) * 3, -1)
    dirt = cv2.GaussianBlur(dirt, (241, 241), 30)
    return cv2.addWeighted(image, 1 - 0.7 * intensity, trunc(dirt), 0.8 * intensity, 0)


def hsv_saturation(image: Pixels, intensity: float, params: Mapping[str, Any]) -> Pixels:
    width = image.shape[1]  # OpenCV drops fractions in whole groups of 32 columns, and rounds in the rest
    image = np.pad(image, ((0, 0), (0, 32 + -width % 32), (0, 0)))
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
    hsv[..., 1] = trunc(hsv[..., 1].astype(np.float32) * np.float32(1 - intensity))
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)[:, :width]
