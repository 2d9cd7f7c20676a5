"""Filled marks and strokes, not anti-aliased, with the pixels that OpenCV 4 gives them (operators.md, conventions).

Marks are painted on the host, in whole numbers: they are few, and what the device gets is a painted canvas.  Sizes are
(height, width); x runs right, y runs down.  Each mark has a level of 0..255.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt

from degrade.kernels import native

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64] | npt.NDArray[np.float64]
Canvas = npt.NDArray[np.uint8]
Size = tuple[int, int]

UNITS_PER_PIXEL = 65536
_FARTHEST = 2**30  # pixels; beyond it the whole numbers here could overflow
POSITION, LENGTH, THICKNESS, LEVEL = (-_FARTHEST, _FARTHEST), (0, _FARTHEST), (1, _FARTHEST), (0, 255)  # ranges for check_marks
_ELLIPSE_GROWTH = 0.35  # pixels; brings the analytic ellipse closest to the polygon that OpenCV fills


@dataclass(frozen=True)
class Marks:
    """Marks of one kind: the C function that paints them, and a contiguous row of numbers for each, as that function takes them."""

    painter: str
    rows: Rows


Layer = tuple[Marks, Sequence[int]]  # marks of several canvases, one after another; how many each canvas has


def numbers(groups: Iterable[Iterable[Iterable[int]]], columns: int) -> Ints:
    """The (N, columns) numbers of all marks of several groups."""
    return np.fromiter(chain.from_iterable(chain.from_iterable(groups)), np.int64).reshape(-1, columns)


def check_marks(field: str, marks: Iterable[Iterable[int]], ranges: Iterable[tuple[int, int]]) -> None:
    """Raise ``ValueError`` where a number of a mark lies outside its range, both ends included."""
    ranges = list(ranges)
    for n, mark in enumerate(marks):
        for m, (value, (low, high)) in enumerate(zip(mark, ranges, strict=True)):
            if not low <= value <= high:
                raise ValueError(f"{field}[{n}][{m}]: got {value}, want {low}..{high}")


def circles(marks: npt.ArrayLike, level: npt.ArrayLike) -> Marks:
    """Filled circles ``x y radius``, (N, 3): the pixels at most ``radius`` from the centre.  One level for all, or (N,)."""
    return Marks("degrade_paint_circles", _rows(_columns(marks, 3), level))


def ellipses(marks: npt.ArrayLike, level: npt.ArrayLike) -> Marks:
    """Filled ellipses ``x y a b angle``, (N, 5): half-axis a turned clockwise on screen by ``angle`` degrees.

    Within a few pixels of OpenCV's, on the outline.
    """
    x, y, a, b, angle = _columns(marks, 5).T
    wide, high = a + _ELLIPSE_GROWTH, b + _ELLIPSE_GROWTH
    cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    # p dx^2 + 2 q dx dy + r dy^2 <= 1, where p r - q^2 = 1 / (wide high)^2
    p = (cos / wide) ** 2 + (sin / high) ** 2
    q = cos * sin * (wide**-2.0 - high**-2.0)
    reach = np.floor(wide * high * np.sqrt(p))
    return Marks("degrade_paint_ellipses", _rows(np.column_stack([x, y, reach, wide * high, p, q]), level))


def strokes(ends: npt.ArrayLike, thickness: npt.ArrayLike, level: npt.ArrayLike) -> Marks:
    """Strokes with round ends ``x1 y1 x2 y2``, (N, 4), in whole pixels; thickness of at least 1."""
    return fine_strokes(_columns(ends, 4) * UNITS_PER_PIXEL, thickness, level)


def fine_strokes(ends: Ints, thickness: npt.ArrayLike, level: npt.ArrayLike) -> Marks:
    """``strokes`` with ends in units of 1/65536 pixel; those of thickness 1 go from pixel to pixel."""
    return Marks("degrade_paint_strokes", _rows(ends, thickness, level))


def paint(layers: Iterable[Layer], size: Size, count: int) -> Canvas:
    """The (count, 1, H, W) canvases, 0 where nothing stands.

    Later layers cover earlier ones, and in a layer later marks earlier ones.

    >>> paint([(circles([[1, 1, 1]], level=7), [1])], (3, 5), count=1)
    array([[[[0, 7, 0, 0, 0],
             [7, 7, 7, 0, 0],
             [0, 7, 0, 0, 0]]]], dtype=uint8)
    """
    canvases = np.zeros((count, 1, *size), dtype=np.uint8)
    placed = []
    for marks, counts in layers:
        body = native.function(marks.painter, *[native.POINTER] * 2, *[native.INT] * 3)
        placed.append((body, marks.rows, [0, *accumulate(counts)]))

    def work(n: int) -> None:
        for body, rows, starts in placed:
            own = rows[starts[n] : starts[n + 1]]
            if len(own):
                body(own.ctypes.data, canvases[n].ctypes.data, len(own), *size)

    native.parallel(count, work)
    return canvases


def _columns(marks: npt.ArrayLike, count: int) -> Ints:
    return np.asarray(marks, dtype=np.int64).reshape(-1, count)


def _rows(marks: Rows, *more: npt.ArrayLike) -> Rows:
    """``marks`` (N, K) with columns, given as a number or as (N,), after it."""
    rows = np.empty((len(marks), marks.shape[1] + len(more)), dtype=marks.dtype)
    rows[:, : marks.shape[1]] = marks
    for column, values in enumerate(more, marks.shape[1]):
        rows[:, column] = values
    return rows
