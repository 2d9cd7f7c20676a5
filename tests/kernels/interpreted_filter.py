"""The Triton bodies of filters against the torch references, under Triton's interpreter; test_triton.py runs this."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.kernels import filter
from degrade.kernels.cuda import filter as body
from tests.kernels.gradients import check_floats, generator, same

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported

SIZES = [(1, 1), (1, 7), (9, 1), (2, 2), (17, 23), (3, 261)]
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)


@pytest.fixture(autouse=True)
def _nothing_is_stored_past_the_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On a device, that would be anybody's memory."""
    ends = []

    def empty_like(images: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        buffer = torch.full((images.numel() + 2048,), 77, dtype=dtype or images.dtype)
        ends.append(buffer[images.numel() :])
        return buffer[: images.numel()].view(images.shape)

    monkeypatch.setattr(torch, "empty_like", empty_like)
    yield
    assert all((end == 77).all() for end in ends)


def pixels(size: tuple[int, int], channels: int = 3) -> Tensor:
    """(2, channels, H, W), not contiguous."""
    return torch.randint(0, 256, (2, *size, channels), dtype=torch.uint8, generator=generator()).permute(0, 3, 1, 2)


def settings(*values: float) -> Tensor:
    return torch.tensor(values)[:, None, None, None]


def lines(*sizes: int) -> list[filter.Weights]:
    """Lop-sided kernels that sum to 1: equal weights on both sides would hide a turned one."""
    weights = [torch.rand(size, dtype=torch.float64, generator=generator()).numpy() for size in sizes]
    return [w / w.sum() for w in weights]


def about_anchor(*kernels: filter.Weights) -> Tensor:
    """Square kernels in fixed point as (B, K, K), zero-padded to the largest about their anchors K // 2."""
    largest = max(len(k) for k in kernels)
    starts = [largest // 2 - len(k) // 2 for k in kernels]
    padded = [np.pad(k, (start, largest - len(k) - start)) for k, start in zip(kernels, starts, strict=True)]
    return torch.from_numpy(filter.to_fixed_point(np.stack(padded)))


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
    body._pad_weights[(2,)](kernel, weights, reaches, 9, BLOCK=16, ROWS=2)
    assert torch.equal(weights, torch.nn.functional.pad((filter.fixed_point(kernel) * filter.UNIT).int(), (2, 2)))
    assert reaches.tolist() == [2, 0]


@EACH_SIZE
@pytest.mark.parametrize("taps", [1, 4, 7])
def test_correlate(size: tuple[int, int], taps: int) -> None:
    """Kernels with zeros between the weights; the second is smaller than the first."""
    (line,), (other,) = lines(taps), lines(max(1, taps - 1))
    sparse = np.diag(line)
    given = pixels(size), about_anchor(sparse, np.outer(other, other[::-1]))
    same(body.correlate(*given), filter.correlate_reference(*given))


def test_correlate_lists_all_taps_of_large_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than are listed at once."""
    monkeypatch.setattr(body, "_BLOCK", 8)
    (line,) = lines(5)
    given = pixels((3, 4), 1), about_anchor(np.outer(line, line), np.diag(line))
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


def floats(size: tuple[int, int], dtype: torch.dtype) -> Tensor:
    """Levels, not contiguous; of several channels in one size, to save time."""
    channels = 3 if size == (17, 23) else 1
    return torch.rand(2, *size, channels, dtype=dtype, generator=generator()).permute(0, 3, 1, 2) * 255


def check(name: str, *given: Tensor | float | None, differentiated: tuple[int, ...]) -> None:
    """By the functions that are registered for CUDA."""
    forward, backward, reference = (getattr(filter, form.format(name)) for form in ("_{}_cuda", "_{}_gradient_cuda", "{}_reference"))
    check_floats(forward, backward, reference, *given, differentiated=differentiated)


OF_FLOATS = [*((size, torch.float64) for size in SIZES[:-1]), (SIZES[-1], torch.float32)]
EACH_SIZE_OF_FLOATS = pytest.mark.parametrize(("size", "dtype"), OF_FLOATS, ids=str)


@EACH_SIZE_OF_FLOATS
def test_gaussian_blur_of_floats(size: tuple[int, int], dtype: torch.dtype) -> None:
    """Some levels are clipped; the kernels are symmetric, which the gradient is for, and reach past several images of a small image."""
    kernel = filter.stack_about_centre([filter.gaussian_weights(n, n / 4) for n in (9, 3)])
    factor = torch.tensor([0.81, 1.8], dtype=torch.float64)
    check("gaussian_blur", floats(size, dtype), kernel, factor, differentiated=(0, 1, 2))


def test_gaussian_blur_of_floats_without_a_factor() -> None:
    kernel = filter.stack_about_centre([filter.gaussian_weights(n, n / 4) for n in (1, 5)])
    check("gaussian_blur", floats((4, 5), torch.float32) * 1.01, kernel, None, differentiated=(0, 1))


def corners(size: int) -> filter.Weights:
    """Another weight in each corner, one beside the anchor: no kernel of its reach takes fewer taps to tell all directions apart."""
    kernel = np.zeros((size, size))
    kernel[0, 0], kernel[0, -1], kernel[-1, 0], kernel[-1, -1] = 0.1, 0.2, 0.25, 0.15
    kernel[size // 2, size // 2 - 1] += 0.3
    return kernel / kernel.sum()


@EACH_SIZE_OF_FLOATS
@pytest.mark.parametrize("taps", [4, 9])
def test_correlate_of_floats(size: tuple[int, int], taps: int, dtype: torch.dtype) -> None:
    """The largest kernels reach past several mirror images of the smallest images."""
    kernels = about_anchor(corners(taps), corners(taps - 1))
    check("correlate", floats(size, dtype), kernels, differentiated=(0,))


def test_correlate_of_floats_between_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    """With tiles of 2 x 2: some rows are at no border, some are just within reach of one."""
    monkeypatch.setattr(body, "_ROWS", 2)
    monkeypatch.setattr(body, "_COLUMNS", 4)
    check("correlate", floats((10, 6), torch.float64), about_anchor(corners(5), corners(3)), differentiated=(0,))


@EACH_SIZE_OF_FLOATS
def test_sharpen_of_floats(size: tuple[int, int], dtype: torch.dtype) -> None:
    """The weights have the blend clipped too."""
    check("sharpen", floats(size, dtype), settings(0.2, 1.7).to(dtype), 0.7, 0.9, differentiated=(0, 1))


def test_nothing() -> None:
    empty, none = pixels((4, 5))[:0], settings()
    assert body.gaussian_blur(empty, torch.ones(0, 3).double(), none.flatten().double()).shape == (0, 3, 4, 5)
    assert body.correlate(empty, torch.ones(0, 3, 3, dtype=torch.int32)).shape == (0, 3, 4, 5)
    assert body.sharpen(empty, none, 0.7, 0.3).shape == (0, 3, 4, 5)
    blur = empty.double(), empty.double(), torch.ones(0, 3).double(), none.flatten().double()
    assert [t.shape for t in body.gaussian_blur_backward(*blur, [True, True, True])] == [(0, 3, 4, 5), (0, 3), (0,)]
    assert body.correlate_backward(empty.double(), torch.ones(0, 3, 3, dtype=torch.int32)).shape == (0, 3, 4, 5)
    shapes = [t.shape for t in body.sharpen_backward(empty.double(), empty.double(), none.double(), 0.7, 0.3, [True, True, False, False])]
    assert shapes == [(0, 3, 4, 5), (0, 1, 1, 1)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_correlate_of_floats_clips_past_its_gradient(dtype: torch.dtype) -> None:
    """As where the rounding of a sum has taken the mean of white pixels past 255."""
    images, kernels = torch.full((2, 1, 3, 4), 256.0, dtype=dtype), about_anchor(corners(4), corners(3))
    assert body.correlate(images, kernels).max() == 255
    check("correlate", images, kernels, differentiated=(0,))
