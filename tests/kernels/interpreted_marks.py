"""The Triton bodies of marks against the torch references, under Triton's interpreter; test_triton.py runs this."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from degrade.kernels import marks
from degrade.kernels.cuda import marks as body
from tests.kernels.gradients import check_floats, generator, same

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported

BATCH = 3
SIZES = [(1, 1), (1, 7), (4, 1), (2, 2), (5, 23), (2, 1100)]  # the last is wider than a block
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)
EACH_CHANNELS = pytest.mark.parametrize("channels", [1, 3])
EACH_FLOAT = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
# Lop-sided ones: equal weights on both sides would hide a turned kernel
KERNELS = torch.tensor([[0.1, 0.7, 0.2], [0.0, 1.0, 0.0], [0.33334, 0.3, 0.36666]], dtype=torch.float64)


@pytest.fixture(autouse=True)
def _nothing_is_stored_past_the_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On a device, that would be anybody's memory."""
    ends = []

    def empty(*shape: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        size = torch.Size(shape).numel()
        buffer = torch.full((size + 2048,), 77, dtype=dtype, device=device)
        ends.append(buffer[size:])
        return buffer[:size].view(shape)

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(torch, "empty_like", lambda images: empty(*images.shape, dtype=images.dtype, device=images.device))
    yield
    assert ends
    assert all((end == 77).all() for end in ends)


def pixels(size: tuple[int, int], channels: int, dtype: torch.dtype = torch.uint8) -> Tensor:
    """(B, channels, H, W) levels, not contiguous."""
    whole = torch.randint(0, 256, (BATCH, *size, channels), dtype=torch.uint8, generator=generator())
    fractions = torch.rand(whole.shape, dtype=torch.float64, generator=generator()) if dtype.is_floating_point else 0
    return (whole - fractions).clamp(min=0).to(dtype).permute(0, 3, 1, 2)


def sparse(size: tuple[int, int]) -> Tensor:
    """(B, 1, H, W): 1 nowhere in the first image, in places of the others."""
    there = torch.rand(BATCH, 1, *size, generator=generator()) < torch.tensor([0, 0.1, 0.6])[:, None, None, None]
    return there.to(torch.uint8)


def painted(size: tuple[int, int], channels: int, colours: int = 5) -> tuple[Tensor, Tensor]:
    """A canvas, and the palette of it."""
    numbers = torch.randint(1, colours + 1, (BATCH, 1, *size), dtype=torch.uint8, generator=generator())
    palette = torch.randint(0, 256, (BATCH, channels, colours), dtype=torch.uint8, generator=generator())
    return sparse(size) * numbers, palette.transpose(1, 2)


def per_image(*values: float) -> Tensor:
    return torch.tensor(values)[:, None, None, None]


@EACH_SIZE
@pytest.mark.parametrize(("channels", "palette_channels", "colours"), [(1, 1, 1), (3, 1, 255), (3, 3, 5)])
def test_cover(size: tuple[int, int], channels: int, palette_channels: int, colours: int) -> None:
    given = pixels(size, channels), *painted(size, palette_channels, colours)
    same(body.cover(*given), marks.cover_reference(*given))


@EACH_SIZE
@EACH_FLOAT
def test_cover_of_floats(size: tuple[int, int], dtype: torch.dtype) -> None:
    given = pixels(size, 3, dtype), *painted(size, 3)
    same(body.cover(*given), marks.cover_reference(*given))
    check_floats(body.cover, body.cover_backward, marks.cover_reference, *given, differentiated=(0,))


@EACH_SIZE
@EACH_CHANNELS
def test_add_glow(size: tuple[int, int], channels: int) -> None:
    whole, real = torch.tensor([[235, 255, 255], [255, 2, 3], [80, 0, 255]]), torch.rand(BATCH, 3, generator=generator()) * 255
    for colours in (whole, real):
        given = pixels(size, channels), sparse(size), KERNELS, per_image(0.2, 1, 0.77), colours[:, :channels]
        same(body.add_glow(*given), marks.add_glow_reference(*given))


@EACH_SIZE
@EACH_FLOAT
def test_add_glow_of_floats(size: tuple[int, int], dtype: torch.dtype) -> None:
    colours = torch.tensor([[235, 255, 255], [255, 2, 3], [80, 0, 255]])
    given = pixels(size, 3, dtype), sparse(size), KERNELS, per_image(0.2, 1, 0.77).to(dtype), colours
    check_floats(body.add_glow, body.add_glow_backward, marks.add_glow_reference, *given, differentiated=(0, 2, 3))


def test_the_gradient_passes_at_both_ends() -> None:
    levels = torch.tensor([-1.0, 0, 255, 256]).view(1, 1, 1, 4)
    mark, weight = torch.zeros(1, 1, 1, 4, dtype=torch.uint8), per_image(1)
    given = levels, mark, KERNELS[:1], weight, torch.tensor([[9]])
    (found,) = body.add_glow_backward(torch.ones(levels.shape), *given, [True, False, False, False, False])
    assert found.flatten().tolist() == [0, 1, 1, 0]


def test_glow_is_of_weights_in_fixed_point() -> None:
    """Rounded, the weights are a half and quarters: of 16 levels, a diagonal neighbour takes 1, and one less if a weight is any lower."""
    image, mark = torch.zeros(2, 1, 1, 5, 5, dtype=torch.uint8)
    mark[..., 2, 2] = 1
    near = 0.25 - 4e-6
    given = image, mark, torch.tensor([[near, 1 - 2 * near, near]], dtype=torch.float64), per_image(1), torch.tensor([[16]])
    got = body.add_glow(*given)
    same(got, marks.add_glow_reference(*given))
    assert got[0, 0, 1:4, 1:4].tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]


def test_weights_in_fixed_point_sum_to_one() -> None:
    """Rounded alone, these would be a unit short, and all levels one less."""
    image, kernel = torch.zeros(1, 1, 4, 5, dtype=torch.uint8), torch.tensor([[0.2, 0.4, 0.4]], dtype=torch.float64)
    assert (body.add_glow(image, image + 1, kernel, per_image(1), torch.tensor([[16]])) == 16).all()


def test_nothing_comes_of_nothing() -> None:
    images = torch.zeros(0, 3, 5, 6, dtype=torch.uint8)
    none, line = torch.zeros(0, 1, 1, 1), torch.zeros(0, 3, dtype=torch.float64)
    assert body.cover(images, images[:, :1], torch.zeros(0, 2, 3, dtype=torch.uint8)).shape == images.shape
    assert body.add_glow(images, images[:, :1], line, none, line).shape == images.shape
    levels = images.float()
    found = body.add_glow_backward(levels, levels, images[:, :1], line, none, line, [True, False, True, True, False])
    assert [gradient.shape for gradient in found] == [images.shape, line.shape, none.shape]
