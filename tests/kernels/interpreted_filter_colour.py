"""The Triton bodies of filters and colours against the torch references, under Triton's interpreter; test_triton.py runs this in a process
of its own."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.kernels import colour, filter
from degrade.kernels.cuda import colour as colour_body
from degrade.kernels.cuda import filter as body

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported

EACH_SIZE = pytest.mark.parametrize("size", [(1, 1), (1, 7), (9, 1), (2, 2), (17, 23), (3, 261)], ids=str)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def pixels(size: tuple[int, int], channels: int = 3) -> Tensor:
    """(2, channels, H, W), not contiguous."""
    return torch.randint(0, 256, (2, *size, channels), dtype=torch.uint8, generator=generator()).permute(0, 3, 1, 2)


def settings(*values: float) -> Tensor:
    return torch.tensor(values)[:, None, None, None]


def same(got: Tensor, wanted: Tensor) -> None:
    assert got.dtype == wanted.dtype
    assert got.is_contiguous()
    assert torch.equal(got, wanted), f"{(got != wanted).float().mean():.2%} differ"


def lines(*sizes: int) -> list[filter.Weights]:
    """Lop-sided kernels that sum to 1: equal weights on both sides would hide a turned one."""
    weights = [torch.rand(size, dtype=torch.float64, generator=generator()).numpy() for size in sizes]
    return [w / w.sum() for w in weights]


@EACH_SIZE
@pytest.mark.parametrize("taps", [(1, 1), (3, 5), (13, 1)], ids=str)
def test_gaussian_blur(size: tuple[int, int], taps: tuple[int, int]) -> None:
    for channels in (1, 3):
        given = pixels(size, channels), filter.stack_about_centre(lines(*taps)), torch.tensor([0.81, 1.2], dtype=torch.float64)
        same(body.gaussian_blur(*given), filter.gaussian_blur_reference(*given))


def test_gaussian_blur_at_the_ends() -> None:
    """Of white, whose sums take 32 bits, and of tails that round to nothing; no factor is too large."""
    kernel = torch.from_numpy(np.stack([filter.gaussian_weights(101, sigma) for sigma in (30, 0.5)]))
    white = torch.full((2, 1, 3, 4), 255, dtype=torch.uint8)
    for factor in (1.0, 1e300):
        given = white, kernel, torch.tensor([factor, 0.0], dtype=torch.float64)
        same(body.gaussian_blur(*given), filter.gaussian_blur_reference(*given))


def test_gaussian_blur_reaches_as_far_as_its_weights() -> None:
    """Weights past the reach are not read: here a batch holds one kernel of 9 taps of which 5 count, and one without a neighbour."""
    kernel = torch.zeros(2, 9, dtype=torch.float64)
    kernel[0, 2], kernel[0, 4], kernel[1, 4] = 0.25, 0.75, 1.0
    weights, reaches = torch.full((2, 13), -1, dtype=torch.int32), torch.empty(2, dtype=torch.int32)
    body._fixed_point[(2,)](kernel, weights, reaches, 9, BLOCK=16, ROWS=2)
    assert torch.equal(weights, torch.nn.functional.pad((filter.fixed_point(kernel) * filter.UNIT).int(), (2, 2)))
    assert reaches.tolist() == [2, 0]


@EACH_SIZE
@pytest.mark.parametrize("taps", [1, 4, 7])
def test_correlate(size: tuple[int, int], taps: int) -> None:
    """Kernels with zeros between the weights; the second is smaller than the first."""
    (line,), (other,) = lines(taps), lines(max(1, taps - 1))
    sparse = np.diag(line)
    given = pixels(size), filter.stack_about_anchor([filter.to_fixed_point(w) for w in (sparse, np.outer(other, other[::-1]))])
    same(body.correlate(*given), filter.correlate_reference(*given))


def test_correlate_lists_all_taps_of_large_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than are listed at once."""
    monkeypatch.setattr(body, "_BLOCK", 8)
    (line,) = lines(5)
    given = pixels((3, 4), 1), filter.stack_about_anchor([filter.to_fixed_point(w) for w in (np.outer(line, line), np.diag(line))])
    same(body.correlate(*given), filter.correlate_reference(*given))


def test_correlate_rounds_ties_to_even() -> None:
    image = torch.arange(256, dtype=torch.uint8).view(1, 1, 1, 256)
    given = image, torch.tensor([[[0, 0, 0], [0, filter.UNIT // 2, filter.UNIT // 2], [0, 0, 0]]], dtype=torch.int32)
    same(body.correlate(*given), filter.correlate_reference(*given))


@EACH_SIZE
def test_sharpen(size: tuple[int, int]) -> None:
    for channels in (1, 3):
        given = pixels(size, channels), settings(0.1, 40), 0.7, 0.3
        same(body.sharpen(*given), filter.sharpen_reference(*given))


def test_sharpen_rounds_ties_to_even() -> None:
    given = pixels((17, 23)), settings(0.5, 0.25), 0.5, 0.5
    same(body.sharpen(*given), filter.sharpen_reference(*given))


@EACH_SIZE
def test_scale_saturation(size: tuple[int, int]) -> None:
    given = pixels(size), settings(0, 1)
    same(colour_body.scale_saturation(*given), colour.scale_saturation_reference(*given))


@pytest.mark.parametrize("blue", [0, 77, 255])
def test_scale_saturation_of_every_pair_of_levels(blue: int) -> None:
    level = torch.arange(256, dtype=torch.uint8)
    image = torch.stack([*torch.meshgrid(level, level, indexing="ij"), torch.full((256, 256), blue, dtype=torch.uint8)])
    given = torch.stack([image, image.roll(1, 0)]), settings(0.1, 0.77)
    same(colour_body.scale_saturation(*given), colour.scale_saturation_reference(*given))


def test_nothing() -> None:
    empty, none = pixels((4, 5))[:0], settings()
    assert body.gaussian_blur(empty, torch.ones(0, 3).double(), none.flatten().double()).shape == (0, 3, 4, 5)
    assert body.correlate(empty, torch.ones(0, 3, 3, dtype=torch.int32)).shape == (0, 3, 4, 5)
    assert body.sharpen(empty, none, 0.7, 0.3).shape == (0, 3, 4, 5)
    assert colour_body.scale_saturation(empty, none).shape == (0, 3, 4, 5)
