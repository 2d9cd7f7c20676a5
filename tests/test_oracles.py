"""Every operator against slow OpenCV 4, on images, sizes and intensities of all kinds, driven by the same drawn parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
import pytest
import torch

import degrade
from tests import images
from tests.images import Pixels
from tests.reference import REFERENCES

# Share of pixels that may be more than one level off in any channel, and the least PSNR in dB
TOLERANCE = {
    "lens_blur": (0.0001, 50),
    "motion_blur": (0.0005, 50),
    "lens_flare": (0.002, 50),
    "dirty_lens": (0.001, 62),
    "hsv_saturation": (0.001, 58),
    "jpeg_compression": (0.0, 99),
    "block_exchange": (0.0, 99),
    "mean_shift": (0.005, 50),
    "scan_lines": (0.0, 99),
    "dark_illumination": (0.0, 99),
    "atmospheric_turbulence": (0.001, 50),
    "color_diffusion": (0.0001, 60),
    "sharpness_change": (0.0005, 48),
    "graffiti": (0.001, 45),
    "watermark_damage": (0.05, 48),
}
SMALL = 1500  # pixels; below, a few values off by one exceed a PSNR, so they are only counted where they are off by more
INTENSITIES = (0.0, 0.07, *degrade.SEVERITIES.values(), 0.95)
SIZES = ((128, 160), (49, 200), (101, 83), (33, 37), (7, 13), (1, 64), (64, 1), (1, 1))
# Strokes that leave the image differ between OpenCV 4.7, which made the published pixels, and later ones
_MARGIN = 4  # pixels


def psnr(a: Pixels, b: Pixels) -> float:
    error = np.square(a.astype(np.float64) - b).mean()
    return 99.0 if error == 0 else min(99.0, float(10 * np.log10(255**2 / error)))


def reason_against(name: str, size: tuple[int, int], intensity: float) -> str | None:
    """Why OpenCV's version says nothing about this case."""
    height, width = size
    if name == "block_exchange":
        block = min(32, int(5 + 30 * intensity))
        if (height // block) * (width // block) < 2:
            return "the published pipeline needs two blocks; test_published_flaws.py says what ours does"
    if name == "watermark_damage" and (height < 50 or width < 50):
        return "the published pipeline cannot draw here; what ours does is in test_published_flaws.py"
    if name == "mean_shift" and min(size) == 1:
        return "OpenCV needs two rows and columns for its pyramid"
    return None


def inside(record: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """The record with its thick strokes moved into the image."""
    height, width = size
    params = dict(record["params"])

    def moved(x: int, y: int) -> list[int]:
        return [min(max(x, _MARGIN), max(width - 1 - _MARGIN, 0)), min(max(y, _MARGIN), max(height - 1 - _MARGIN, 0))]

    if record["operator"] == "lens_flare":
        params["streaks"] = [[*moved(*s[:2]), *moved(*s[2:])] for s in params["streaks"]]
    if record["operator"] == "graffiti":
        params["strokes"] = [[*moved(*s[:2]), *moved(*s[2:4]), *s[4:]] for s in params["strokes"]]
        if text := params["text"]:
            (wide, _), _ = cv2.getTextSize(text["string"], cv2.FONT_HERSHEY_SIMPLEX, text["scale"], text["thickness"])
            if text["x"] + wide + _MARGIN > width:
                params["text"] = None
    return {**record, "params": params}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("name", REFERENCES)
def test_equals_opencv(name, size):
    kinds = images.KINDS if size[0] * size[1] > SMALL else {"noise": images.noise, "photograph": images.photograph}
    compared = 0
    for number, (kind, make) in enumerate(kinds.items()):
        for intensity in INTENSITIES[number % 2 :: 2] if kind in ("page", "scene") else INTENSITIES:
            if reason_against(name, size, intensity):
                continue
            clean = make(*size, seed_of(kind))
            given = images.tensor(clean)[None]
            _, (drawn,) = degrade.apply(given, name, intensity, seed=2, keys=[kind], return_records=True)
            record = inside(drawn, size)
            got = images.pixels(degrade.replay(given, [record])[0])
            expected = REFERENCES[name](clean, intensity, record["params"])
            most, least = TOLERANCE[name]
            off = (np.abs(got.astype(int) - expected) > 1).any(-1).mean()
            where = f"{kind} {size} at {intensity}"
            assert off <= most, f"{where}: {100 * off:.3f} % off by more than 1"
            if clean.size >= SMALL:
                assert psnr(got, expected) >= least, f"{where}: {psnr(got, expected):.1f} dB"
            compared += 1
    if not compared:
        pytest.skip(str(reason_against(name, size, 1.0)))


def seed_of(kind: str) -> int:
    return {"noise": 3, "scene": 4, "page": 5, "photograph": 1}[kind]


def test_every_operator_has_a_reference():
    assert set(degrade.OPERATORS) == {*REFERENCES, "gaussian_noise"}
    assert set(TOLERANCE) == set(REFERENCES)


@pytest.mark.parametrize("name", REFERENCES)
def test_comparison_can_fail(name):
    """The tolerance tells the operator from the same one at a nearby intensity."""
    clean = images.photograph(128, 160)
    given = images.tensor(clean)[None]
    _, (record,) = degrade.apply(given, name, 0.45, seed=2, return_records=True)
    record = inside(record, (128, 160))
    expected = REFERENCES[name](clean, 0.45, record["params"])
    wrong = images.pixels(degrade.apply(given, name, 0.7, seed=3)[0])
    most, least = TOLERANCE[name]
    assert (np.abs(wrong.astype(int) - expected) > 1).any(-1).mean() > most or psnr(wrong, expected) < least


def test_batch_of_records():
    """One replay of every operator's record at once."""
    clean = images.photograph(96, 120)
    given = images.tensor(clean)[None].expand(len(REFERENCES), -1, -1, -1)
    names = list(REFERENCES)
    _, records = degrade.apply(given, names, "mid", seed=2, return_records=True)
    records = [inside(r, (96, 120)) for r in records]
    out = degrade.replay(given, records)
    for name, record, image in zip(names, records, out, strict=True):
        expected = REFERENCES[name](clean, record["intensity"], record["params"])
        assert psnr(images.pixels(image), expected) >= TOLERANCE[name][1], name
    assert torch.equal(out, degrade.replay(given.flip(0), records[::-1]).flip(0))
