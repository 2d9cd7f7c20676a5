"""The Triton bodies of jpeg and warp against the torch references, under Triton's interpreter; test_triton.py runs this in a process of
its own."""

from __future__ import annotations

import os

import pytest
import torch
from torch import Tensor

from degrade.kernels import jpeg, warp
from degrade.kernels.cuda import jpeg as jpeg_body
from degrade.kernels.cuda import warp as warp_body

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported

BATCH = 3
# Of one pixel a side, of no whole block, of whole blocks alone, of 2 and 3 chroma columns, past a tile of chroma, past a part of a row.
SIZES = [(1, 1), (1, 7), (9, 1), (2, 4), (5, 5), (17, 23), (8, 16), (9, 259), (2, 515)]
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def pixels(size: tuple[int, int], channels: int = 3) -> Tensor:
    """(B, channels, H, W), not contiguous."""
    return torch.randint(0, 256, (BATCH, *size, channels), dtype=torch.uint8, generator=generator()).permute(0, 3, 1, 2)


def same(got: Tensor, wanted: Tensor) -> None:
    assert got.dtype == wanted.dtype
    assert got.is_contiguous()
    assert torch.equal(got, wanted), f"{(got != wanted).float().mean():.2%} differ"


@EACH_SIZE
def test_jpeg_roundtrip(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    if size[1] > 128:  # a program takes the interpreter as long with many blocks as with few
        monkeypatch.setattr(jpeg_body, "_BLOCKS", 16)
    noise, strongest, smooth = pixels(size).split(1)
    images = torch.cat([noise, strongest // 128 * 255, smooth.sort(-1).values]).to(memory_format=torch.channels_last)
    tables = jpeg.quantisation_tables([100, 1, 14])
    same(jpeg_body.roundtrip(images, tables), jpeg.roundtrip_reference(images, tables))


@EACH_SIZE
@pytest.mark.parametrize(("reach", "grid", "channels"), [(40, 32, 3), (0.5, 1000, 1)])
def test_move_rows(size: tuple[int, int], reach: float, grid: int, channels: int) -> None:
    """At multiples of 1/32 pixel, and at others."""
    shift, rows = (torch.randn(2, size[0], BATCH, dtype=torch.float64, generator=generator()) * reach * grid).round() / grid
    given = pixels(size, channels), shift.T, rows.T + torch.arange(size[0])
    same(warp_body.move_rows(*given), warp.move_rows_reference(*given))


@EACH_SIZE
@pytest.mark.parametrize("channels", [1, 3])
def test_move_blocks(size: tuple[int, int], channels: int) -> None:
    block = torch.tensor([1, 2, 5]).clamp(max=min(size))
    grid = torch.tensor(size) // block[:, None]
    grid[1] -= (grid[1] > 1).long()  # whole blocks outside of the grid stay too
    source = torch.zeros(BATCH, size[0] * size[1], dtype=torch.int64)
    for order, (rows, columns) in zip(source, grid.tolist(), strict=True):
        order[: rows * columns] = torch.randperm(rows * columns, generator=generator())
    given = pixels(size, channels), block, grid, source
    same(warp_body.move_blocks(*given), warp.move_blocks_reference(*given))


def test_nothing_comes_of_nothing() -> None:
    empty, line = torch.empty(0, 3, 5, 6, dtype=torch.uint8), torch.empty(0, 5, dtype=torch.float64)
    numbers = torch.empty(0, 2, dtype=torch.int64)
    assert jpeg_body.roundtrip(empty, jpeg.quantisation_tables([])).shape == empty.shape
    assert warp_body.move_rows(empty, line, line).shape == empty.shape
    assert warp_body.move_blocks(empty, numbers[:, 0], numbers, numbers).shape == empty.shape
