"""The Triton bodies of quantize, marks and noise against the torch references, under Triton's interpreter; test_triton.py runs this."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from degrade.kernels import marks, noise, quantize
from degrade.kernels.cuda import marks as marks_body
from degrade.kernels.cuda import noise as noise_body
from degrade.kernels.cuda import quantize as quantize_body

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported

BATCH = 3
SIZES = [(1, 1), (1, 7), (9, 1), (2, 2), (17, 23), (2, 1100)]  # the last is wider than a block
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)
EACH_CHANNELS = pytest.mark.parametrize("channels", [1, 3])


@pytest.fixture(autouse=True)
def _nothing_is_stored_past_the_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On a device, that would be anybody's memory."""
    ends = []

    def empty_like(images: Tensor) -> Tensor:
        buffer = torch.full((images.numel() + 2048,), 77, dtype=images.dtype)
        ends.append(buffer[images.numel() :])
        return buffer[: images.numel()].view(images.shape)

    monkeypatch.setattr(torch, "empty_like", empty_like)
    yield
    assert ends
    assert all((end == 77).all() for end in ends)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def pixels(size: tuple[int, int], channels: int = 3) -> Tensor:
    """(B, channels, H, W), not contiguous."""
    return torch.randint(0, 256, (BATCH, *size, channels), dtype=torch.uint8, generator=generator()).permute(0, 3, 1, 2)


def per_image(*values: float) -> Tensor:
    return torch.tensor(values)[:, None, None, None]


def same(got: Tensor, wanted: Tensor) -> None:
    assert got.dtype == wanted.dtype
    assert got.is_contiguous()
    assert torch.equal(got, wanted), f"{(got != wanted).float().mean():.2%} differ"


@EACH_SIZE
@pytest.mark.parametrize(("channels", "other_channels"), [(1, 1), (3, 1), (3, 3)])
def test_blend(size: tuple[int, int], channels: int, other_channels: int) -> None:
    given = pixels(size, channels), per_image(0, 0.43, 1.7), pixels(size, other_channels).flip(0), per_image(1, 0.57, -0.9)
    same(quantize_body.blend(*given), quantize.blend_reference(*given))


def test_blend_of_every_pair_of_levels() -> None:
    """Many a sum is a tie: a multiplication and addition fused, or ties rounded otherwise, would show."""
    level = torch.arange(256, dtype=torch.uint8)
    first, second = (pair[None, None] for pair in torch.meshgrid(level, level, indexing="ij"))
    for weight in (0.5, 0.7, 0.1):
        given = first, per_image(weight), second, per_image(1 - weight)
        same(quantize_body.blend(*given), quantize.blend_reference(*given))


@EACH_SIZE
@EACH_CHANNELS
def test_scale_rows(size: tuple[int, int], channels: int) -> None:
    given = pixels(size, channels)
    rows = torch.rand(BATCH, size[0], dtype=torch.float64, generator=generator())
    for factors in (rows * 1.3, torch.tensor([[1.0], [0.01], [0.0]]).double(), torch.full((1, 1), 0.3).double().expand(BATCH, 1)):
        same(quantize_body.scale_rows(given, factors), quantize.scale_rows_reference(given, factors))


def test_scale_rows_of_every_level() -> None:
    """In float32 some products are a level off."""
    levels = torch.arange(256, dtype=torch.uint8).expand(1, 1, 100, 256)
    factors = torch.arange(100, dtype=torch.float64)[None] / 100
    same(quantize_body.scale_rows(levels, factors), quantize.scale_rows_reference(levels, factors))


def sparse(size: tuple[int, int]) -> Tensor:
    """(B, 1, H, W): 1 nowhere in the first image, in places of the others."""
    there = torch.rand(BATCH, 1, *size, generator=generator()) < torch.tensor([0, 0.1, 0.6])[:, None, None, None]
    return there.to(torch.uint8)


@EACH_SIZE
@EACH_CHANNELS
def test_cover(size: tuple[int, int], channels: int) -> None:
    given = pixels(size, channels), torch.cat([pixels(size, channels).flip(0), sparse(size) * 255], 1)
    same(marks_body.cover(*given), marks.cover_reference(*given))


@EACH_SIZE
@EACH_CHANNELS
def test_add_glow(size: tuple[int, int], channels: int) -> None:
    """Lop-sided kernels: equal weights on both sides would hide a turned one."""
    kernels = torch.tensor([[0.1, 0.7, 0.2], [0.0, 1.0, 0.0], [0.33334, 0.3, 0.36666]], dtype=torch.float64)
    for colours in (torch.tensor([[235, 255, 255], [255, 2, 3], [80, 0, 255]]), torch.rand(BATCH, 3, generator=generator()) * 255):
        given = pixels(size, channels), sparse(size), kernels, per_image(0.2, 1, 0.77), colours[:, :channels]
        same(marks_body.add_glow(*given), marks.add_glow_reference(*given))


def test_glow_is_of_weights_in_fixed_point() -> None:
    """Rounded, the weights are a half and quarters: of 16 levels, a diagonal neighbour takes 1, and one less if a weight is any lower."""
    image, mark = torch.zeros(2, 1, 1, 5, 5, dtype=torch.uint8)
    mark[..., 2, 2] = 1
    near = 0.25 - 4e-6
    given = image, mark, torch.tensor([[near, 1 - 2 * near, near]], dtype=torch.float64), per_image(1), torch.tensor([[16]])
    got = marks_body.add_glow(*given)
    same(got, marks.add_glow_reference(*given))
    assert got[0, 0, 1:4, 1:4].tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]


@EACH_SIZE
@EACH_CHANNELS
def test_add_noise(size: tuple[int, int], channels: int) -> None:
    given = pixels(size, channels), noise.keys([5, 6, 2**60]), noise.quantiles(), per_image(0, 3, 75)
    same(noise_body.add_noise(*given), noise.add_noise_reference(*given))


def test_nothing_comes_of_nothing() -> None:
    empty = torch.empty(0, 3, 5, 6, dtype=torch.uint8)
    none, line = torch.empty(0, 1, 1, 1), torch.empty(0, 3, dtype=torch.float64)
    results = [
        quantize_body.blend(empty, none, empty, none),
        quantize_body.scale_rows(empty, none[:, 0, 0].double()),
        marks_body.cover(empty, torch.cat([empty, empty[:, :1]], 1)),
        marks_body.add_glow(empty, empty[:, :1], line, none, line),
        noise_body.add_noise(empty, torch.empty(0, 2, dtype=torch.int32), noise.quantiles(), none),
    ]
    assert all(result.shape == empty.shape for result in results)
