"""Slow, plain OpenCV 4 versions of the operators, as the published pipeline wrote them; in RGB, driven by the drawn parameters of a record.

A reference takes an (H, W, 3) uint8 image, the intensity and the parameters of a record, and returns an image of the same kind.
They share nothing with the package, which never imports them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.reference import capture, environment, postprocessing, transmission
from tests.reference.images import Pixels

Reference = Callable[[Pixels, float, Mapping[str, Any]], Pixels]

REFERENCES: Mapping[str, Reference] = {
    "lens_blur": capture.lens_blur,
    "lens_flare": capture.lens_flare,
    "motion_blur": capture.motion_blur,
    "dirty_lens": capture.dirty_lens,
    "hsv_saturation": capture.hsv_saturation,
    "jpeg_compression": transmission.jpeg_compression,
    "block_exchange": transmission.block_exchange,
    "mean_shift": transmission.mean_shift,
    "scan_lines": transmission.scan_lines,
    "dark_illumination": environment.dark_illumination,
    "atmospheric_turbulence": environment.atmospheric_turbulence,
    "color_diffusion": environment.color_diffusion,
    "sharpness_change": postprocessing.sharpness_change,
    "graffiti": postprocessing.graffiti,
    "watermark_damage": postprocessing.watermark_damage,
}  # gaussian_noise has no expected pixels, only statistics
