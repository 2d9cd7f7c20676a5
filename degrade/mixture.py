"""Which operator an image gets: a weighted choice that depends on seed and key alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from degrade.draws import Stream

T = TypeVar("T")
# Weights of operators.md, out of their sum.
MMD_BENCH: Mapping[str, float] = MappingProxyType(
    {
        "lens_blur": 20,
        "lens_flare": 20,
        "motion_blur": 20,
        "dirty_lens": 20,
        "hsv_saturation": 20,
        "jpeg_compression": 25,
        "block_exchange": 25,
        "mean_shift": 25,
        "scan_lines": 25,
        "dark_illumination": 25,
        "atmospheric_turbulence": 25,
        "gaussian_noise": 25,
        "color_diffusion": 25,
        "sharpness_change": 33,
        "graffiti": 33,
        "watermark_damage": 34,
    }
)
TRAINING: Mapping[str, float] = MappingProxyType(
    {
        "lens_blur": 30,
        "lens_flare": 15,
        "motion_blur": 30,
        "dirty_lens": 15,
        "hsv_saturation": 10,
        "jpeg_compression": 15,
        "block_exchange": 40,
        "mean_shift": 15,
        "scan_lines": 30,
        "dark_illumination": 40,
        "atmospheric_turbulence": 30,
        "gaussian_noise": 15,
        "color_diffusion": 15,
        "sharpness_change": 10,
        "graffiti": 45,
        "watermark_damage": 45,
    }
)
TRAINING_SEVERITIES: Mapping[str | float, float] = MappingProxyType({"low": 0.2, "mid": 0.3, "high": 0.5})
MIXTURES: Mapping[str, Mapping[str, float]] = MappingProxyType({"mmd": MMD_BENCH, "training": TRAINING})


def choose(weights: Mapping[T, float], seed: int, key: str, what: str = "operator") -> T:
    """The name that the image ``key`` gets, with probability weight / sum of weights; ``what`` tells two choices for it apart.

    Raises:
        ValueError: if the weights are not finite numbers >= 0 with a sum above 0.

    >>> choose({"graffiti": 1, "mean_shift": 0}, seed=0, key="a")
    'graffiti'
    """
    total = sum(weights.values())
    if not math.isfinite(total) or total <= 0 or min(weights.values()) < 0:
        raise ValueError(f"weights: got {dict(weights)}, want finite numbers >= 0 with a sum above 0")
    u = Stream(seed, key, "mixture").uniform(what) * total
    for name, weight in weights.items():
        if u < weight:
            return name
        u -= weight
    return [name for name, weight in weights.items() if weight > 0][-1]  # u reached the sum by rounding
