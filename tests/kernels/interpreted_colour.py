"""The Triton bodies of colour against the torch references, under Triton's interpreter; test_triton.py runs this."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from degrade.kernels import colour
from degrade.kernels.cuda import colour as body
from tests.kernels.gradients import check_floats, generator, same

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported

EACH_SIZE = pytest.mark.parametrize("size", [(1, 1), (1, 7), (9, 1), (17, 23), (3, 361)], ids=str)  # the last is larger than a block
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


def pixels(size: tuple[int, int]) -> Tensor:
    """(2, 3, H, W), not contiguous."""
    return torch.randint(0, 256, (2, *size, 3), dtype=torch.uint8, generator=generator()).permute(0, 3, 1, 2)


def keep(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).float()[:, None, None, None]


@EACH_SIZE
def test_scale_saturation(size: tuple[int, int]) -> None:
    given = pixels(size), keep(0, 1)
    same(body.scale_saturation(*given), colour.scale_saturation_reference(*given))


@pytest.mark.parametrize("blue", [0, 77, 255])
def test_scale_saturation_of_every_pair_of_levels(blue: int) -> None:
    level = torch.arange(256, dtype=torch.uint8)
    image = torch.stack([*torch.meshgrid(level, level, indexing="ij"), torch.full((256, 256), blue, dtype=torch.uint8)])
    given = torch.stack([image, image.roll(1, 0)]), keep(0.1, 0.77)
    same(body.scale_saturation(*given), colour.scale_saturation_reference(*given))


@EACH_SIZE
@EACH_DTYPE
def test_scale_saturation_of_floats(size: tuple[int, int], dtype: torch.dtype) -> None:
    """Of any levels, and of so few that two and three channels tie for the highest, black among them."""
    given = torch.rand(2, *size, 3, dtype=dtype, generator=generator()).permute(0, 3, 1, 2) * 255
    for images in (given, (given / 128).round() * 127.5):
        bodies = body.scale_saturation, body.scale_saturation_backward, colour.scale_saturation_reference
        check_floats(*bodies, images, keep(0.3, 0.77).to(dtype), differentiated=(0, 1))


def test_a_nan_stays() -> None:
    images = torch.tensor([[1, 2, torch.nan], [torch.nan, 2, 1], [1, torch.nan, 2], [1, 2, 3]])[:, :, None, None]
    got = body.scale_saturation(images, keep(0.5, 0.5, 0.5, 0.5))
    assert got.isnan().flatten(1).all(1).tolist() == [True, True, True, False]


def test_nothing_comes_of_nothing() -> None:
    for dtype in (torch.uint8, torch.float32):
        empty = torch.empty(0, 3, 4, 5, dtype=dtype)
        assert body.scale_saturation(empty, keep()).shape == empty.shape
    assert [g.shape for g in body.scale_saturation_backward(empty, empty, keep(), [True, True])] == [empty.shape, keep().shape]
