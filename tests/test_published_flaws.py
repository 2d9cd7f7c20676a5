"""What the published pipeline gets wrong, and ours does right: one test for each item of that section of operators.md."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import degrade
from tests import images
from tests.reference import REFERENCES

OPERATORS = pytest.mark.parametrize("name", degrade.OPERATORS)


def recorded(image: torch.Tensor, name: str, severity: float | str, key: str = "0"):
    out, (record,) = degrade.apply(image[None], name, severity, seed=0, keys=[key], return_records=True)
    return out[0], record


@pytest.mark.parametrize("size", [(8, 20), (20, 8), (31, 31), (5, 64), (11, 21), (2, 3), (1, 2), (3, 1)])
@pytest.mark.parametrize("severity", degrade.SEVERITIES)
def test_block_exchange_works_on_images_smaller_than_two_blocks(size, severity):
    image = images.tensor(images.noise(*size))
    changed = 0
    for key in "abcdefgh":
        out, record = recorded(image, "block_exchange", severity, key)
        assert record["params"]["swaps"]
        pixels, moved = image.flatten(1).T.tolist(), out.flatten(1).T.tolist()
        assert sorted(pixels) == sorted(moved)  # pixels change places, none is lost
        changed += not torch.equal(out, image)
    assert changed > 0


@pytest.mark.parametrize(("size", "block"), [((20, 50), 20), ((40, 63), 31), ((50, 20), 20), ((7, 13), 6), ((9, 200), 9)])
def test_block_exchange_takes_the_largest_block_that_gives_two(size, block):
    """In the longer direction; the swap shows the block's side."""
    image = images.tensor(images.noise(*size))
    wide = size[1] >= size[0]
    record = {"operator": "block_exchange", "intensity": 0.9, "params": {"swaps": [[0, 0, 0, 1] if wide else [0, 0, 1, 0]]}}
    out = degrade.replay(image[None], [record])[0]
    if not wide:
        image, out = image.transpose(1, 2), out.transpose(1, 2)
    assert torch.equal(out[:, :block, :block], image[:, :block, block : 2 * block])
    assert torch.equal(out[:, :block, block : 2 * block], image[:, :block, :block])
    rest = torch.ones(image.shape, dtype=torch.bool)
    rest[:, :block, : 2 * block] = False
    assert torch.equal(out[rest], image[rest])


def test_block_exchange_says_so_where_no_two_blocks_fit():
    image = images.tensor(images.noise(1, 1))
    out, record = recorded(image, "block_exchange", "high")
    assert torch.equal(out, image)
    assert record["params"] == {"swaps": []}


@pytest.mark.parametrize("size", [(3, 3), (20, 30), (49, 200), (200, 49), (50, 50), (51, 80)])
@pytest.mark.parametrize("severity", degrade.SEVERITIES)
def test_watermark_damage_draws_on_images_under_fifty_pixels(size, severity):
    image = images.tensor(images.noise(*size))
    out, record = recorded(image, "watermark_damage", severity)
    rectangles = record["params"]["rectangles"]
    assert len(rectangles) == int(1 + 15 * degrade.SEVERITIES[severity])
    for x1, y1, x2, y2 in rectangles:
        assert 0 <= x1 <= max(size[1] - 50, 0)
        assert 0 <= y1 <= max(size[0] - 50, 0)
        assert 50 <= x2 - x1 <= 200
        assert 20 <= y2 - y1 <= 80
    assert not torch.equal(out, image)


def test_watermark_damage_says_so_where_nothing_can_be_filled():
    image = images.tensor(images.noise(2, 60))
    out, record = recorded(image, "watermark_damage", "high")
    assert torch.equal(out, image)
    assert record["params"] == {"rectangles": []}


@OPERATORS
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (2, 2), (5, 5), (30, 31)])
def test_every_operator_works_at_every_size(name, size):
    """Nothing raises; and what comes out is not the clean image, where the size leaves anything to change."""
    image = images.tensor(images.noise(*size))
    for severity in degrade.SEVERITIES:
        out, _ = recorded(image, name, severity)
        assert out.shape == image.shape
    if min(size) >= 5:
        assert not torch.equal(recorded(image, name, "high")[0], image)


def digests() -> dict[str, str]:
    """Of the results and records of every operator."""
    given, found = images.batch(3, 40, 56), {}
    for name in degrade.OPERATORS:
        out, records = degrade.apply(given, name, "mid", seed=3, keys=["x", "y", "z"], return_records=True)
        found[name] = hashlib.sha256(out.numpy().tobytes() + json.dumps(records).encode()).hexdigest()
    return found


def test_results_do_not_depend_on_the_process():
    """The same bytes from a process that has drawn and degraded other things before, with another hash seed and number of threads."""
    program = """
import json, random, torch
from tests import test_published_flaws as tests
torch.set_num_threads(1); torch.manual_seed(99); random.seed(5)
tests.degrade.apply(tests.images.batch(2, 20, 30), "lens_flare", "mid")
print(json.dumps(tests.digests()))
"""
    environment = {**os.environ, "PYTHONHASHSEED": "17"}
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120, env=environment)
    assert json.loads(done.stdout) == digests()


def test_colours_are_red_green_blue():
    """Where channels are not alike: a red word, a flare with less red, JPEG's and grey's weights, hue."""
    black = torch.zeros(3, 240, 420, dtype=torch.uint8)
    out = recorded(black, "lens_flare", "high")[0].float()
    assert out[0].max() < out[1].max() == out[2].max()

    text = {"string": "FAKE", "x": 10, "y": 160, "scale": 4.5, "thickness": 4}
    record = {"operator": "graffiti", "intensity": 0.9, "params": {"strokes": [[5, 5, 60, 5, 3, 10, 120, 250]], "text": text}}
    (out,) = degrade.replay(black[None], [record])
    colours = {tuple(c) for c in out.flatten(1).T.tolist()}
    assert colours == {(0, 0, 0), (10, 120, 250), (255, 0, 0)}

    levels = []
    for channel in range(3):
        pure = torch.zeros(3, 16, 16, dtype=torch.uint8)
        pure[channel] = 255
        levels.append(images.pixels(recorded(pure, "jpeg_compression", "high")[0]).mean((0, 1)).round())
    for channel, mean in enumerate(levels):
        assert mean.argmax() == channel
        expected = REFERENCES["jpeg_compression"](
            images.pixels(torch.eye(3)[channel][:, None, None].expand(3, 16, 16).byte() * 255), 0.9, {}
        )
        assert np.abs(expected.mean((0, 1)) - mean).max() < 1
