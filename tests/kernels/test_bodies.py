"""The compiled bodies for bytes against the references that state their meaning: sizes around the widths that are worked on at once,
images of one pixel a side, strides, and another setting for each image."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.kernels import colour, filter, layout, marks, noise, quantize, warp

BATCH = 3
SIZES = [(1, 1), (1, 7), (9, 1), (2, 2), (17, 23), (67, 64), (3, 65), (70, 129), (130, 200)]
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)


@pytest.fixture(autouse=True, params=[1, 2], ids=lambda count: f"{count} threads")
def threads(request):
    """Alone, a thread does in one call what several share out."""
    torch.set_num_threads(request.param)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def pixels(size: tuple[int, int], channels: int = 3, top: int = 256) -> Tensor:
    """(B, channels, H, W), not contiguous."""
    return torch.randint(0, top, (BATCH, *size, channels), dtype=torch.uint8, generator=generator()).permute(0, 3, 1, 2)


def per_image(low: float, high: float) -> Tensor:
    return torch.linspace(low, high, BATCH, dtype=torch.float64).float()[:, None, None, None]


def kernels(taps: int) -> Tensor:
    """Lop-sided ones: equal weights on both sides would hide a turned kernel."""
    weights = torch.rand(BATCH, taps, dtype=torch.float64, generator=generator())
    return weights / weights.sum(1, keepdim=True)


def same(got: Tensor, wanted: Tensor) -> None:
    assert got.dtype == wanted.dtype
    assert got.is_contiguous()
    assert torch.equal(got, wanted), f"{(got != wanted).float().mean():.2%} differ"


@EACH_SIZE
@pytest.mark.parametrize("channels", [1, 3])
def test_blend(size, channels):
    given = pixels(size), per_image(0, 1.1), pixels(size, channels).flip(0), per_image(0.9, 0.2)
    same(quantize.blend(*given), quantize.blend_reference(*given))


def test_blend_rounds_ties_to_even():
    levels = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    half = torch.full((1, 1, 1, 1), 0.5)
    assert torch.equal(quantize.blend(levels, half, levels * 0, half).flatten(), (torch.arange(256) / 2).round().to(torch.uint8))
    weights = (torch.tensor([number], dtype=torch.float64) for number in (0.7, 0.3))
    same(quantize.blend(levels, 0.7, levels, 0.3), quantize.blend_reference(levels, next(weights), levels, next(weights)))


@EACH_SIZE
def test_scale_rows(size):
    given = pixels(size)
    for factors in (
        torch.rand(BATCH, size[0], dtype=torch.float64, generator=generator()) * 1.3,
        torch.tensor([[1.0], [0.01], [0.3]]).double(),
    ):
        same(quantize.scale_rows(given, factors), quantize.scale_rows_reference(given, factors))


@EACH_SIZE
def test_channels_last(size):
    image = pixels(size)[0].contiguous()
    for given in (image, pixels(size)[0], image.float(), image[:2], image.transpose(1, 2)):
        moved = layout.channels_last(given)
        assert torch.equal(moved, given)
        assert moved.permute(1, 2, 0).is_contiguous()


def test_scale_rows_of_every_level():
    levels = torch.arange(256, dtype=torch.uint8).view(1, 1, 1, 256).expand(100, -1, -1, -1)
    factors = torch.arange(100, dtype=torch.float64)[:, None] / 100
    wanted = np.clip(np.arange(256) * factors.numpy(), 0, 255).astype(np.uint8)
    assert np.array_equal(quantize.scale_rows(levels, factors)[:, 0, 0], wanted)


@EACH_SIZE
@pytest.mark.parametrize("taps", [1, 3, 25, 101])
def test_gaussian_blur(size, taps):
    given = pixels(size), kernels(taps), torch.tensor([1.0, 0.81, 1.2], dtype=torch.float64)
    same(filter.gaussian_blur(*given), filter.gaussian_blur_reference(*given))
    ones = torch.ones(BATCH, dtype=torch.float64)
    same(filter.gaussian_blur(*given[:2]), filter.gaussian_blur_reference(*given[:2], ones))


@EACH_SIZE
@pytest.mark.parametrize("taps", [1, 4, 5])
def test_correlate(size, taps):
    weights = [filter.to_fixed_point(kernel.outer(kernel.flip(0).roll(n)).numpy()) for n, kernel in enumerate(kernels(taps))]
    given = pixels(size), torch.from_numpy(np.stack(weights))
    same(filter.correlate(*given), filter.correlate_reference(*given))


@EACH_SIZE
def test_sharpen(size):
    given = pixels(size), per_image(0.1, 40), 0.7, 0.3
    same(filter.sharpen(*given), filter.sharpen_reference(*given))


@EACH_SIZE
def test_scale_saturation(size):
    given = pixels(size), per_image(0, 1)
    same(colour.scale_saturation(*given), colour.scale_saturation_reference(*given))


@pytest.mark.parametrize("blue", [0, 77, 255])
def test_scale_saturation_of_every_pair_of_levels(blue):
    level = torch.arange(256, dtype=torch.uint8)
    image = torch.stack([*torch.meshgrid(level, level, indexing="ij"), torch.full((256, 256), blue, dtype=torch.uint8)])
    given = torch.stack([image, image.roll(1, 0), image.roll(2, 0)]), per_image(0.1, 0.9)
    same(colour.scale_saturation(*given), colour.scale_saturation_reference(*given))


@EACH_SIZE
def test_add_noise(size):
    given = pixels(size), noise.keys([5, 6, 2**60]), noise.quantiles(), per_image(3, 75)
    same(noise.add_noise(*given), noise.add_noise_reference(*given))


@EACH_SIZE
@pytest.mark.parametrize("reach", [0.4, 3, 300])
def test_move_rows(size, reach):
    shift, rows = ((torch.randn(BATCH, size[0], dtype=torch.float64, generator=generator()) * reach * 32).round() / 32 for _ in range(2))
    given = pixels(size), shift, rows + torch.arange(size[0])
    same(warp.move_rows(*given), warp.move_rows_reference(*given))


@EACH_SIZE
def test_move_blocks(size):
    block = torch.tensor([1, 2, 5]).clamp(max=min(size))
    grid = torch.tensor(size) // block[:, None]
    source = torch.zeros(BATCH, size[0] * size[1], dtype=torch.int64)
    for order, (rows, columns) in zip(source, grid.tolist(), strict=True):
        order[: rows * columns] = torch.randperm(rows * columns, generator=generator())
    given = pixels(size), block, grid, source
    same(warp.move_blocks(*given), warp.move_blocks_reference(*given))


def sparse(size: tuple[int, int]) -> Tensor:
    """(B, 1, H, W): 1 in a few places, nowhere in the first image."""
    there = torch.rand(BATCH, 1, *size, generator=generator()) < torch.tensor([0, 0.004, 0.2])[:, None, None, None]
    return there.to(torch.uint8)


@EACH_SIZE
@pytest.mark.parametrize(("palette_channels", "colours"), [(3, 1), (3, 5), (1, 255)])
def test_cover(size, palette_channels, colours):
    numbers = torch.randint(1, colours + 1, (BATCH, 1, *size), dtype=torch.uint8, generator=generator())
    palette = torch.randint(0, 256, (BATCH, palette_channels, colours), dtype=torch.uint8, generator=generator()).transpose(1, 2)
    given = pixels(size), numbers * sparse(size), palette
    same(marks.cover(*given), marks.cover_reference(*given))


@EACH_SIZE
def test_add_glow(size):
    colours = torch.tensor([[235, 255, 255], [1, 2, 3], [80, 0, 255]])
    given = pixels(size), sparse(size), kernels(3), per_image(0, 0.9), colours
    same(marks.add_glow(*given), marks.add_glow_reference(*given))


def test_nothing_comes_of_nothing():
    empty = torch.empty(0, 3, 5, 6, dtype=torch.uint8)
    none, line = torch.empty(0, 1, 1, 1), torch.empty(0, 5, dtype=torch.float64)
    results = [
        quantize.blend(empty, 0.5, empty, 0.5),
        quantize.scale_rows(empty, line),
        filter.gaussian_blur(empty, line),
        filter.sharpen(empty, none, 0.7, 0.3),
        colour.scale_saturation(empty, none),
        warp.move_rows(empty, line, line),
        marks.cover(empty, empty[:, :1], torch.empty(0, 2, 3, dtype=torch.uint8)),
    ]
    assert all(result.shape == empty.shape for result in results)
