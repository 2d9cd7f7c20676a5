"""The Triton bodies of warp against the torch references, under Triton's interpreter; test_triton.py runs this in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from degrade.kernels import warp
from degrade.kernels.cuda import warp as body
from tests.kernels.gradients import check_floats, generator, same

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported

BATCH = 3
SIZES = [(1, 1), (1, 7), (9, 1), (2, 4), (6, 23)]
EACH_SIZE = pytest.mark.parametrize("size", [*SIZES, (17, 23), (2, 515)], ids=str)  # the last is wider than a block
EACH_CHANNELS = pytest.mark.parametrize("channels", [1, 3])
EACH_DTYPE = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
EACH_REACH = pytest.mark.parametrize(("reach", "grid"), [(40, 32), (0.5, 1000)])  # on multiples of 1/32 pixel, and on others


@pytest.fixture(autouse=True)
def _nothing_is_stored_past_the_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On a device, that would be anybody's memory."""
    ends = []

    def filled(images: Tensor, value: int) -> Tensor:
        buffer = torch.full((images.numel() + 2048,), 77, dtype=images.dtype)
        ends.append(buffer[images.numel() :])
        return buffer[: images.numel()].fill_(value).view(images.shape)

    monkeypatch.setattr(torch, "empty_like", lambda images: filled(images, 77))
    monkeypatch.setattr(torch, "zeros_like", lambda images: filled(images, 0))
    yield
    assert ends
    assert all((end == 77).all() for end in ends)


def pixels(size: tuple[int, int], channels: int = 3) -> Tensor:
    """(B, channels, H, W), not contiguous."""
    return torch.randint(0, 256, (BATCH, *size, channels), dtype=torch.uint8, generator=generator()).permute(0, 3, 1, 2)


def floats(size: tuple[int, int], channels: int, dtype: torch.dtype) -> Tensor:
    """Levels, not contiguous."""
    return torch.rand(BATCH, *size, channels, dtype=dtype, generator=generator()).permute(0, 3, 1, 2) * 255


def positions(size: tuple[int, int], reach: float, grid: int) -> tuple[Tensor, Tensor]:
    """Shifts and rows, not contiguous.  Those of the first image move nothing, so that they meet both ends."""
    shift, rows = (torch.randn(2, size[0], BATCH, dtype=torch.float64, generator=generator()) * reach * grid).round() / grid
    shift[:, 0] = rows[:, 0] = 0
    return shift.T, rows.T + torch.arange(size[0])


def exchange(size: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Blocks, grids and sources; of a second image whole blocks outside of the grid stay too."""
    block = torch.tensor([1, 2, 5]).clamp(max=min(size))
    grid = torch.tensor(size) // block[:, None]
    grid[1] -= (grid[1] > 1).long()
    source = torch.zeros(BATCH, size[0] * size[1], dtype=torch.int64)
    for order, (rows, columns) in zip(source, grid.tolist(), strict=True):
        order[: rows * columns] = torch.randperm(rows * columns, generator=generator())
    return block, grid, source


@EACH_SIZE
@EACH_REACH
@EACH_CHANNELS
def test_move_rows(size: tuple[int, int], reach: float, grid: int, channels: int) -> None:
    given = pixels(size, channels), *positions(size, reach, grid)
    same(body.move_rows(*given), warp.move_rows_reference(*given))


@pytest.mark.parametrize("size", SIZES, ids=str)
@EACH_REACH
@EACH_DTYPE
def test_move_rows_of_floats(size: tuple[int, int], reach: float, grid: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "_PIXELS", 16)  # the sums of long rows would not agree as well
    given = floats(size, 1 if reach < 1 else 3, dtype), *positions(size, reach, grid)
    check_floats(body.move_rows, body.move_rows_backward, warp.move_rows_reference, *given, differentiated=(0, 1, 2))


@EACH_SIZE
@EACH_CHANNELS
def test_move_blocks(size: tuple[int, int], channels: int) -> None:
    given = pixels(size, channels), *exchange(size)
    same(body.move_blocks(*given), warp.move_blocks_reference(*given))


def move_blocks_backward(gradient: Tensor, images: Tensor, *rest: Tensor | list[bool]) -> list[Tensor]:
    return [body.move_blocks_backward(gradient, *rest[:-1])]


@EACH_SIZE
@EACH_DTYPE
def test_move_blocks_of_floats(size: tuple[int, int], dtype: torch.dtype) -> None:
    given = floats(size, 3, dtype), *exchange(size)
    check_floats(body.move_blocks, move_blocks_backward, warp.move_blocks_reference, *given, differentiated=(0,))


def test_nothing_comes_of_nothing() -> None:
    line, numbers = torch.empty(0, 5, dtype=torch.float64), torch.empty(0, 2, dtype=torch.int64)
    for dtype in (torch.uint8, torch.float32):
        empty = torch.empty(0, 3, 5, 6, dtype=dtype)
        assert body.move_rows(empty, line, line).shape == empty.shape
        assert body.move_blocks(empty, numbers[:, 0], numbers, numbers).shape == empty.shape
    assert [g.shape for g in body.move_rows_backward(empty, empty, line, line, [True] * 3)] == [empty.shape, line.shape, line.shape]
    assert body.move_blocks_backward(empty, numbers[:, 0], numbers, numbers).shape == empty.shape
