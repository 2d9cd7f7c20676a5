"""The Triton bodies of quantize and noise against the torch references, under Triton's interpreter; test_triton.py runs this."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from degrade.kernels import noise, quantize
from degrade.kernels.cuda import noise as noise_body
from degrade.kernels.cuda import quantize as quantize_body
from tests.kernels.gradients import check_floats, generator, same

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported

BATCH = 3
SIZES = [(1, 1), (1, 7), (9, 1), (2, 2), (17, 23), (2, 1100)]  # the last is wider than a block
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)
EACH_CHANNELS = pytest.mark.parametrize("channels", [1, 3])
EACH_DTYPE = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


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


def pixels(size: tuple[int, int], channels: int = 3) -> Tensor:
    """(B, channels, H, W), not contiguous."""
    return torch.randint(0, 256, (BATCH, *size, channels), dtype=torch.uint8, generator=generator()).permute(0, 3, 1, 2)


def floats(size: tuple[int, int], channels: int, dtype: torch.dtype) -> Tensor:
    """Levels, not contiguous."""
    return torch.rand(BATCH, *size, channels, dtype=dtype, generator=generator()).permute(0, 3, 1, 2) * 255


def per_image(*values: float) -> Tensor:
    return torch.tensor(values)[:, None, None, None]


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


@EACH_SIZE
@EACH_DTYPE
@pytest.mark.parametrize(("channels", "other_channels"), [(1, 1), (3, 1), (3, 3)])
def test_blend_of_floats(size: tuple[int, int], channels: int, other_channels: int, dtype: torch.dtype) -> None:
    weights = per_image(0, 0.43, 1.7).to(dtype), per_image(1, 0.57, -0.9).to(dtype)
    given = floats(size, channels, dtype), weights[0], floats(size, other_channels, dtype).flip(0), weights[1]
    bodies = quantize_body.blend, quantize_body.blend_backward, quantize.blend_reference
    check_floats(*bodies, *given, differentiated=(0, 1, 2, 3))


@EACH_SIZE
@EACH_DTYPE
def test_scale_rows_of_floats(size: tuple[int, int], dtype: torch.dtype) -> None:
    rows = torch.rand(BATCH, size[0], dtype=torch.float64, generator=generator()) * 1.3
    for factors in (rows, rows[:, :1].clone()):
        given = floats(size, 3, dtype), factors
        bodies = quantize_body.scale_rows, quantize_body.scale_rows_backward, quantize.scale_rows_reference
        check_floats(*bodies, *given, differentiated=(0, 1))


@EACH_SIZE
@EACH_CHANNELS
def test_add_noise(size: tuple[int, int], channels: int) -> None:
    given = pixels(size, channels), noise.keys([5, 6, 2**60]), noise.quantiles(), per_image(0, 3, 75)
    same(noise_body.add_noise(*given), noise.add_noise_reference(*given))


@EACH_SIZE
@EACH_DTYPE
def test_add_noise_of_floats(size: tuple[int, int], dtype: torch.dtype) -> None:
    given = floats(size, 3, dtype), noise.keys([5, 6, 2**60]), noise.quantiles(), per_image(0, 3, 75).to(dtype)
    check_floats(noise_body.add_noise, noise_body.add_noise_backward, noise.add_noise_reference, *given, differentiated=(0, 3))


@EACH_DTYPE
def test_gradients_pass_at_the_ends_of_the_range(dtype: torch.dtype) -> None:
    """Levels of 0 and 255 that nothing is done to."""
    ends = (pixels((3, 5)) % 2 * 255).to(dtype)
    zero, one = per_image(0, 0, 0).to(dtype), per_image(1, 1, 1).to(dtype)
    given = ends, noise.keys([1, 2, 3]), noise.quantiles(), zero
    check_floats(noise_body.add_noise, noise_body.add_noise_backward, noise.add_noise_reference, *given, differentiated=(0, 3))
    bodies = quantize_body.blend, quantize_body.blend_backward, quantize.blend_reference
    check_floats(*bodies, ends, one, ends.flip(0), zero, differentiated=(0, 1, 2, 3))
    bodies = quantize_body.scale_rows, quantize_body.scale_rows_backward, quantize.scale_rows_reference
    check_floats(*bodies, ends, one[:, 0, 0].double(), differentiated=(0, 1))


def test_nothing_comes_of_nothing() -> None:
    keys, none, line = torch.empty(0, 2, dtype=torch.int32), torch.empty(0, 1, 1, 1), torch.empty(0, 1, dtype=torch.float64)
    for dtype in (torch.uint8, torch.float32):
        empty = torch.empty(0, 3, 5, 6, dtype=dtype)
        assert quantize_body.blend(empty, none, empty, none).shape == empty.shape
        assert quantize_body.scale_rows(empty, line).shape == empty.shape
        assert noise_body.add_noise(empty, keys, noise.quantiles(), none).shape == empty.shape
    for found, wanted in (
        (quantize_body.blend_backward(empty, empty, none, empty, none, [True] * 4), [empty, none, empty, none]),
        (quantize_body.scale_rows_backward(empty, empty, line, [True] * 2), [empty, line]),
        (noise_body.add_noise_backward(empty, empty, keys, noise.quantiles(), none, [True, False, False, True]), [empty, none]),
    ):
        assert [g.shape for g in found] == [w.shape for w in wanted]
