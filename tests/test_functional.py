"""What ``apply`` and ``replay`` refuse, and how they say so."""

import numpy as np
import pytest
import torch

import degrade

IMAGES = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"operator": "lens_blurr"}, ValueError, "operator: got 'lens_blurr'.*did you mean 'lens_blur'"),
        ({"operator": 3}, TypeError, "operator: got int, want one operator, or a list of 2"),
        ({"operator": ["lens_blur"]}, ValueError, "operator: got 1, want one for each of the 2 images"),
        ({"severity": "hihg"}, ValueError, "severity: got 'hihg'.*did you mean 'high'"),
        ({"severity": [0.5, 1.5]}, ValueError, r"severity\[1\]: got 1.5, want a number in \[0, 1\]"),
        ({"severity": None}, TypeError, "severity: got NoneType"),
        ({"severity": torch.ones(3)}, ValueError, r"severity: got a tensor of shape \(3,\), want \(2,\)"),
        ({"keys": "a"}, TypeError, "keys: got str, want a list of 2"),
        ({"keys": ["a", 1]}, TypeError, r"keys\[1\]: got int"),
        ({"seed": 0.5}, TypeError, "seed: got float"),
        ({"images": np.zeros((2, 3, 8, 8))}, TypeError, "images: got ndarray, want a torch.Tensor"),
        ({"images": torch.zeros(2, 4, 8, 8)}, ValueError, r"images: got shape \(2, 4, 8, 8\)"),
        ({"images": torch.zeros(2, 3, 8, 8, dtype=torch.int32)}, TypeError, "images: got torch.int32"),
        ({"images": torch.full((2, 3, 8, 8), 255.0)}, ValueError, r"images: got floats in \[255, 255\].*divide"),
        ({"images": torch.full((2, 3, 8, 8), float("nan"))}, ValueError, "images: got floats"),
    ],
    ids=str,
)
def test_apply_names_what_is_wrong(arguments, error, words):
    with pytest.raises(error, match=words):
        degrade.apply(**{"images": IMAGES, "operator": "lens_blur", "severity": "high", **arguments})


def record(**changes):
    return {"operator": "motion_blur", "intensity": 0.5, "params": {"angle": 30.0}, **changes}


@pytest.mark.parametrize(
    ("records", "error", "words"),
    [
        ([record()], ValueError, "records: got 1, want one for each of the 2 images"),
        (record(), TypeError, "records: got dict, want a list of 2"),
        ("text", TypeError, "records: got str"),
        ([None, 5], ValueError, r"records\[1\]: got 5"),
        ([None, {"operator": "motion_blur"}], ValueError, r"records\[1\]: 'intensity' is missing"),
        ([None, [record(), record(operator="blur")]], ValueError, r"records\[1\]\[1\]\['operator'\]: got 'blur'"),
        ([None, record(params={})], ValueError, r"records\[1\]\['params'\]: 'angle' is missing"),
        ([None, record(params={"angel": 3.0})], ValueError, "got 'angel'.*did you mean 'angle'"),
        ([None, record(params={"angle": "3"})], ValueError, r"\['angle'\]: got '3', want float"),
        ([None, record(params={"angle": float("nan")})], ValueError, r"\['angle'\]: got nan, want a finite number"),
        ([None, record(intensity=2)], ValueError, r"records\[1\]\['intensity'\]: got 2"),
        ([None, {"operator": "block_exchange", "intensity": 0.9, "params": {"swaps": [[0, 0, 9, 9]]}}], ValueError, "swaps: got"),
    ],
    ids=str,
)
def test_replay_names_what_is_wrong(records, error, words):
    with pytest.raises(error, match=words):
        degrade.replay(IMAGES, records)


def test_numpy_numbers_will_do():
    given = degrade.apply(IMAGES, "motion_blur", [np.float32(0.9), np.float64(0.45)], seed=np.int64(3))
    assert torch.equal(given, degrade.apply(IMAGES, "motion_blur", ["high", "mid"], seed=3))


def test_chains_and_untouched_images():
    images = torch.arange(2 * 3 * 64, dtype=torch.uint8).view(2, 3, 8, 8)
    dark = {"operator": "dark_illumination", "intensity": 0.5, "params": {}}
    lines = {"operator": "scan_lines", "intensity": 0.9, "params": {}}
    out = degrade.replay(images, [[dark, lines], None])
    assert torch.equal(out[1], images[1])
    assert torch.equal(out[0], degrade.replay(degrade.replay(images[0], dark), lines))
    assert torch.equal(out[0], degrade.replay(images[0], [dark, lines]))
    assert "RandomDegradation" in dir(degrade)
