"""Block exchange: square blocks change places (operators.md, transmission)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from degrade.draws import Stream, randint
from degrade.kernels import warp
from degrade.operator import Operator, Plan, Size

SWAPS = 35  # times the intensity
SMALLEST_BLOCK, BLOCK_GROWTH, LARGEST_BLOCK = 5, 30, 32  # pixels


@dataclass(frozen=True)
class Params:
    """swaps: (row1, col1, row2, col2) in units of blocks, applied one after the other."""

    swaps: tuple[tuple[int, int, int, int], ...]


def block_size(size: Size, intensity: float) -> int:
    """Pixels a side.  Where that would not give two blocks, the largest that does; 0 for an image of one pixel."""
    block = min(LARGEST_BLOCK, int(SMALLEST_BLOCK + BLOCK_GROWTH * intensity))
    if (size[0] // block) * (size[1] // block) >= 2:
        return block
    return min(min(size), max(size) // 2)


class BlockExchange(Operator[Params]):
    """Exchanges pairs of blocks; draws which.

    Gradient: each pixel's goes back to where it came from; none in the intensity, which only sets counts and sizes.
    """

    name = "block_exchange"
    category = "transmission"
    params = Params

    def draw(self, size: Size, intensity: float, stream: Stream) -> Params:
        block = block_size(size, intensity)
        if not block:
            return Params(())
        row, column = size[0] // block - 1, size[1] // block - 1  # the last ones
        marks = stream.uniforms("swaps", int(SWAPS * intensity), 4).tolist()
        return Params(tuple((randint(a, 0, row), randint(b, 0, column), randint(c, 0, row), randint(d, 0, column)) for a, b, c, d in marks))

    def check(self, size: Size, intensity: float, params: Params) -> None:
        block = block_size(size, intensity)
        rows, columns = (size[0] // block, size[1] // block) if block else (0, 0)
        for swap in params.swaps:
            if min(swap) < 0 or max(swap[0], swap[2]) >= rows or max(swap[1], swap[3]) >= columns:
                raise ValueError(
                    f"swaps: got {list(swap)}, want blocks inside {rows} rows and {columns} columns of {block} x {block} pixels"
                )

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Params]) -> Plan:
        blocks = [block_size(size, i) or 1 for i in intensities]
        grids = [(size[0] // b, size[1] // b) for b in blocks]
        sources = np.tile(np.arange(max(rows * columns for rows, columns in grids), dtype=np.int64), (len(blocks), 1))
        for source, (_, columns), p in zip(sources, grids, params, strict=True):
            for row1, column1, row2, column2 in p.swaps:
                one, other = row1 * columns + column1, row2 * columns + column2
                source[one], source[other] = source[other], source[one]
        return {"block": torch.tensor(blocks, device="cpu"), "grid": torch.tensor(grids, device="cpu"), "source": torch.from_numpy(sources)}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return warp.move_blocks(images, plan["block"], plan["grid"], plan["source"])
