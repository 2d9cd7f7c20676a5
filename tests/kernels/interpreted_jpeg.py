"""The Triton bodies of jpeg against the torch reference, under Triton's interpreter; test_triton.py runs this in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor

from degrade.kernels import jpeg
from degrade.kernels.cuda import jpeg as body
from tests.kernels.gradients import near

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported

# Of one pixel a side, of 2 and 3 chroma columns, of whole blocks alone, past a tile both ways.
SIZES = [(1, 1), (1, 7), (9, 1), (2, 4), (6, 5), (8, 16), (9, 67)]
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)
EACH_DTYPE = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
TABLES = jpeg.quantisation_tables([100, 1, 14])


@pytest.fixture(autouse=True)
def _nothing_is_stored_past_the_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On a device, that would be anybody's memory."""
    ends = []

    def empty(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
        size = torch.Size(shape).numel()
        buffer = torch.full((size + 2048,), 77, dtype=dtype, device=device)
        ends.append(buffer[size:])
        return buffer[:size].view(shape)

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(torch, "empty_like", lambda images: empty(images.shape, images.dtype, images.device))
    yield
    assert ends
    assert all((end == 77).all() for end in ends)


def pixels(size: tuple[int, int]) -> Tensor:
    """(3, 3, H, W) of noise, of the strongest contrasts and of a smooth course; not contiguous."""
    generator = torch.Generator().manual_seed(0)
    noise, strongest, smooth = torch.randint(0, 256, (3, 1, 3, *size), dtype=torch.uint8, generator=generator)
    return torch.cat([noise, strongest // 128 * 255, smooth.sort(-1).values]).to(memory_format=torch.channels_last)


def same(got: Tensor, wanted: Tensor) -> None:
    assert got.dtype == wanted.dtype
    assert got.is_contiguous()
    assert torch.equal(got, wanted), f"{(got != wanted).float().mean():.2%} differ"


def check_floats(images: Tensor, tables: Tensor) -> None:
    """Every operation is the reference's, so that the rounding of no coefficient tips: all bits of the result are equal."""
    leaf = images.clone().requires_grad_()
    result = jpeg.roundtrip_reference(leaf, tables)
    same(body.roundtrip(images, tables), result.detach())
    weights = torch.rand(result.shape, generator=torch.Generator().manual_seed(1), dtype=result.dtype) - 0.3
    (gradient,) = torch.autograd.grad(result, leaf, weights)
    (found,) = body.roundtrip_backward(weights, images, tables, [True, False])
    near(found, gradient.contiguous(), images.dtype)


@EACH_SIZE
def test_roundtrip(size: tuple[int, int]) -> None:
    given = pixels(size), TABLES
    same(body.roundtrip(*given), jpeg.roundtrip_reference(*given))


@EACH_SIZE
def test_roundtrip_of_floats(size: tuple[int, int]) -> None:
    check_floats(pixels(size)[:2] / 1.01, TABLES[:2])


def test_roundtrip_of_doubles() -> None:
    check_floats(pixels((10, 23)).double() / 1.01, TABLES)


@EACH_DTYPE
def test_ties_and_ends_of_floats(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every constant grey: with steps of 16 and 112 many coefficients are ties, with 8 and 16 samples are just 127 and -128."""
    monkeypatch.setattr(body, "_BLOCKS", 512)
    images = torch.arange(256, dtype=dtype).repeat_interleave(16).expand(3, 3, 16, -1)
    check_floats(images, torch.tensor([8, 16, 112], dtype=torch.int32)[:, None, None, None].expand(-1, 2, 8, 8))


def test_a_nan_stays_in_its_blocks() -> None:
    images = torch.full((1, 3, 9, 41), 100.0)
    images[0, 1, 2, 3] = torch.nan
    wanted = jpeg.roundtrip_reference(images, TABLES[:1])
    torch.testing.assert_close(body.roundtrip(images, TABLES[:1]), wanted, rtol=0, atol=0, equal_nan=True)


def test_nothing_comes_of_nothing() -> None:
    empty = torch.zeros(0, 3, 5, 6)
    assert body.roundtrip(empty.byte(), TABLES[:0]).shape == empty.shape
    assert body.roundtrip(empty, TABLES[:0]).shape == empty.shape
    assert [g.shape for g in body.roundtrip_backward(empty, empty, TABLES[:0], [True, False])] == [empty.shape]
