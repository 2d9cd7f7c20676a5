"""Filled marks and strokes, not anti-aliased, with the pixels that OpenCV 4 gives them (operators.md, conventions).

Every mark is a set of spans, intervals of columns on a row.  This runs on the host, in whole numbers: marks are few, and what
the device gets is a painted layer.  Sizes are (height, width); x runs right, y runs down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from degrade.kernels import native

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Canvas = npt.NDArray[np.uint8]
Size = tuple[int, int]

UNITS_PER_PIXEL = 65536
_FARTHEST = 2**30  # pixels; beyond it the whole numbers here could overflow
POSITION, LENGTH, THICKNESS, LEVEL = (-_FARTHEST, _FARTHEST), (0, _FARTHEST), (1, _FARTHEST), (0, 255)  # ranges for check_marks
_ELLIPSE_GROWTH = 0.35  # pixels; brings the analytic ellipse closest to the polygon that OpenCV fills


@dataclass(frozen=True)
class Spans:
    """Mark ``mark[k]`` covers the columns ``first[k]..last[k]`` of row ``row[k]``; all int64, rows inside the image, columns unclipped."""

    mark: Ints
    row: Ints
    first: Ints
    last: Ints

    @staticmethod
    def join(parts: Iterable[Spans]) -> Spans:
        marks, rows, firsts, lasts = zip(*((p.mark, p.row, p.first, p.last) for p in parts), strict=True)
        return Spans(np.concatenate(marks), np.concatenate(rows), np.concatenate(firsts), np.concatenate(lasts))

    def take(self, index: Ints | Bools) -> Spans:
        return Spans(self.mark[index], self.row[index], self.first[index], self.last[index])

    def renumbered(self, numbers: Ints) -> Spans:
        return Spans(numbers[self.mark], self.row, self.first, self.last)


_NOTHING = Spans(*[np.empty(0, dtype=np.int64)] * 4)
Layer = tuple[Spans, npt.ArrayLike, npt.ArrayLike]  # spans; the (N, C) levels, and the number of the canvas, of each mark


def owners(marks: Iterable[Sized]) -> Ints:
    """The number of the group of each mark, where all marks of several groups follow one another."""
    counts = [len(group) for group in marks]
    return np.repeat(np.arange(len(counts)), counts)


def check_marks(field: str, marks: Iterable[Iterable[int]], ranges: Iterable[tuple[int, int]]) -> None:
    """Raise ``ValueError`` where a number of a mark lies outside its range, both ends included."""
    ranges = list(ranges)
    for n, mark in enumerate(marks):
        for m, (value, (low, high)) in enumerate(zip(mark, ranges, strict=True)):
            if not low <= value <= high:
                raise ValueError(f"{field}[{n}][{m}]: got {value}, want {low}..{high}")


def circles(marks: npt.ArrayLike, size: Size) -> Spans:
    """Filled circles ``x y radius``, (N, 3): the pixels at most ``radius`` from the centre."""
    x, y, radius = _columns(marks, 3)
    mark, row = _rows(y - radius, y + radius + 1, size)
    half = np.floor(np.sqrt(radius[mark] ** 2 - (row - y[mark]) ** 2)).astype(np.int64)
    return Spans(mark, row, x[mark] - half, x[mark] + half)


def ellipses(marks: npt.ArrayLike, size: Size) -> Spans:
    """Filled ellipses ``x y a b angle``, (N, 5): half-axis a turned clockwise on screen by ``angle`` degrees.

    Within a few pixels of OpenCV's, on the outline.
    """
    x, y, a, b, angle = _columns(marks, 5)
    wide, high = a + _ELLIPSE_GROWTH, b + _ELLIPSE_GROWTH
    cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    # p dx^2 + 2 q dx dy + r dy^2 <= 1, where p r - q^2 = 1 / (wide high)^2
    p = (cos / wide) ** 2 + (sin / high) ** 2
    q = cos * sin * (wide**-2.0 - high**-2.0)
    reach = np.floor(wide * high * np.sqrt(p)).astype(np.int64)
    mark, row = _rows(y - reach, y + reach + 1, size)
    dy = row - y[mark]
    centre = x[mark] - q[mark] * dy / p[mark]
    half = np.sqrt(np.maximum(p[mark] - (dy / (wide * high)[mark]) ** 2, 0)) / p[mark]
    return Spans(mark, row, np.ceil(centre - half).astype(np.int64), np.floor(centre + half).astype(np.int64))


def strokes(ends: npt.ArrayLike, thickness: npt.ArrayLike, size: Size) -> Spans:
    """Strokes with round ends ``x1 y1 x2 y2``, (N, 4), in whole pixels; N thicknesses of at least 1."""
    return fine_strokes(np.asarray(ends, dtype=np.int64).reshape(-1, 4) * UNITS_PER_PIXEL, thickness, size)


def fine_strokes(ends: Ints, thickness: npt.ArrayLike, size: Size) -> Spans:
    """``strokes`` with ends in units of 1/65536 pixel; those of thickness 1 go from pixel to pixel."""
    thickness = np.asarray(thickness, dtype=np.int64)
    thin, thick = np.flatnonzero(thickness == 1), np.flatnonzero(thickness > 1)
    parts = [_NOTHING]  # dozens of small steps stand behind each kind: none are taken for no mark
    if len(thin):
        parts.append(_thin(_pixel(ends[thin]), size).renumbered(thin))
    if len(thick):
        parts.append(_thick(ends[thick], thickness[thick], size).renumbered(thick))
    return Spans.join(parts)


def paint(layers: Iterable[Layer], size: Size, count: int, channels: int = 1) -> Canvas:
    """The (count, channels, H, W) canvases, 0 where nothing stands.

    Later layers cover earlier ones, and in a layer marks of higher number those of lower number.

    >>> paint([(circles([[1, 1, 1]], (3, 5)), [[7]], [0])], (3, 5), count=1)
    array([[[[0, 7, 0, 0, 0],
             [7, 7, 7, 0, 0],
             [0, 7, 0, 0, 0]]]], dtype=uint8)
    """
    height, width = size
    canvas = np.zeros((count, channels, height, width), dtype=np.uint8)
    body = native.function("degrade_paint", *[native.POINTER] * 6, *[native.INT] * 4)
    for spans, levels, canvases in layers:
        spans = spans.take(np.argsort(spans.mark, kind="stable"))
        level = np.asarray(levels, dtype=np.uint8).reshape(-1, channels)[spans.mark]
        numbers = np.asarray(canvases, dtype=np.int64)[spans.mark]
        arrays = [np.ascontiguousarray(array) for array in (numbers, spans.row, spans.first, spans.last, level)]
        body(*(array.ctypes.data for array in (*arrays, canvas)), len(numbers), channels, height, width)
    return canvas


def _columns(marks: npt.ArrayLike, count: int) -> Ints:
    return np.asarray(marks, dtype=np.int64).reshape(-1, count).T


def _expanded(counts: Ints) -> tuple[Ints, Ints]:
    """(owner, step) of ``counts[k]`` items for each k, numbered from 0; a negative count is none."""
    counts = np.maximum(counts, 0)
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)


def _rows(top: Ints, bottom: Ints, size: Size) -> tuple[Ints, Ints]:
    """(owner, row) of the rows ``top[k]..bottom[k] - 1`` that lie in the image."""
    top = np.maximum(top, 0)
    owner, step = _expanded(np.minimum(bottom, size[0]) - top)
    return owner, top[owner] + step


def _pixel(units: Ints) -> Ints:
    """The pixel of a position in 1/65536, rounded half up."""
    return (units + UNITS_PER_PIXEL // 2) // UNITS_PER_PIXEL


def _quotient(a: Ints, b: Ints) -> Ints:
    """a / b truncated towards zero, b positive."""
    return np.sign(a) * (np.abs(a) // b)


def _points(mark: Ints, x: Ints, y: Ints, size: Size) -> Spans:
    return Spans(mark, y, x, x).take((y >= 0) & (y < size[0]))


def _cut(ends: Ints, limit: Ints) -> tuple[Ints, Bools]:
    """Lines (N, 2 ends, x y) cut to 0..limit (x, y), rows first, moves truncated towards zero; and which lines are left."""
    ends = ends.copy()
    for axis in (1, 0):
        missed = np.any(np.all(ends < 0, axis=1) | np.all(ends > limit, axis=1), axis=1)
        for end in (0, 1):
            target = np.clip(ends[:, end, axis], 0, limit[axis])
            gap = target - ends[:, end, axis]
            k = np.flatnonzero(~missed & (gap != 0))
            across, along = (ends[k, 1, 1 - axis] - ends[k, 0, 1 - axis]), (ends[k, 1, axis] - ends[k, 0, axis])
            ends[k, end, 1 - axis] += np.trunc(gap[k].astype(np.float64) * across / along).astype(np.int64)
            ends[k, end, axis] = target[k]
    inside: Bools = np.all((ends >= 0) & (ends <= limit), axis=(1, 2))
    return ends, inside


def _along_major(ends: Ints, steep: Bools) -> Ints:
    """Ends (N, 2, x y) with the coordinate that steps first: y where ``steep``."""
    return np.where(steep[:, None, None], ends[:, :, ::-1], ends)


def _thin(segments: Ints, size: Size) -> Spans:
    """Lines one pixel thick from the end of smaller x; on a tie the minor coordinate does not step."""
    ends, left = _cut(segments.reshape(-1, 2, 2), np.array([size[1], size[0]]) - 1)
    mark, ends = np.flatnonzero(left), ends[left]
    ends = np.where((ends[:, 1, 0] < ends[:, 0, 0])[:, None, None], ends[:, ::-1], ends)
    steep = np.abs(ends[:, 1, 1] - ends[:, 0, 1]) > ends[:, 1, 0] - ends[:, 0, 0]
    ends = _along_major(ends, steep)
    major, minor = (ends[:, 1] - ends[:, 0]).T
    line, step = _expanded(np.abs(major) + 1)
    long, short = np.abs(major)[line], np.abs(minor)[line]
    a = ends[line, 0, 0] + np.sign(major)[line] * step
    b = ends[line, 0, 1] + np.sign(minor)[line] * ((2 * short * step + long - 1) // np.maximum(2 * long, 1))
    return _points(mark[line], np.where(steep[line], b, a), np.where(steep[line], a, b), size)


def _thick(segments: Ints, thickness: Ints, size: Size) -> Spans:
    """Strokes of thickness 2 and more, ends (N, 4) in 1/65536: a disc at each end and a rectangle between them."""
    half = (thickness + 1) // 2
    discs = [circles(np.column_stack([_pixel(centre), half]), size) for centre in (segments[:, :2], segments[:, 2:])]
    start, stop = segments[:, :2], segments[:, 2:]
    long = np.flatnonzero((start != stop).any(1))
    start, stop, half = start[long], stop[long], half[long]
    across = (start - stop) / UNITS_PER_PIXEL * [1, -1]
    scale = half * float(UNITS_PER_PIXEL) / np.sqrt((across**2).sum(1))
    offset = np.rint(across[:, ::-1] * scale[:, None]).astype(np.int64)
    corners = np.stack([start + offset, start - offset, stop - offset, stop + offset], axis=1)
    sides = np.stack([np.roll(corners, 1, axis=1), corners], axis=2).reshape(-1, 4)
    owner = np.repeat(long, 4)
    return Spans.join([*discs, _outline(owner, sides, size), _inside(owner, sides, size)])


def _outline(mark: Ints, segments: Ints, size: Size) -> Spans:
    """The pixels along lines with ends (N, 4) in 1/65536, cut to the image."""
    ends, left = _cut(segments.reshape(-1, 2, 2), np.array([size[1], size[0]]) * UNITS_PER_PIXEL - 1)
    mark, ends = mark[left], ends[left]
    dx, dy = (ends[:, 1] - ends[:, 0]).T
    steep = np.abs(dx) <= np.abs(dy)
    ends = _along_major(ends, steep)
    ends = np.where((ends[:, 1, 0] < ends[:, 0, 0])[:, None, None], ends[:, ::-1], ends)
    major, minor = (ends[:, 1] - ends[:, 0]).T
    slope = _quotient(minor * UNITS_PER_PIXEL, major | 1)
    line, step = _expanded(major // UNITS_PER_PIXEL + 1)
    a = np.concatenate([_pixel(ends[:, 0, 0])[line] + step, _pixel(ends[:, 1, 0])])
    b = np.concatenate([_pixel(ends[line, 0, 1] + step * slope[line]), _pixel(ends[:, 1, 1])])
    line = np.concatenate([line, np.arange(len(mark))])
    return _points(mark[line], np.where(steep[line], b, a), np.where(steep[line], a, b), size)


def _inside(mark: Ints, sides: Ints, size: Size) -> Spans:
    """The rows of convex shapes between their sides (N, 4), in 1/65536: every row of a shape meets two of its sides."""
    down = _pixel(sides[:, 3]) > _pixel(sides[:, 1])
    xs, ys, xe, ye = np.where(down[:, None], sides, sides[:, [2, 3, 0, 1]]).T
    top, bottom = _pixel(ys), _pixel(ye)
    rows = np.maximum(bottom - top, 1)
    step = _quotient(2 * (xe - xs) + rows, 2 * rows)
    side, row = _rows(top, bottom, size)
    x = xs[side] + (row - top[side]) * step[side]
    pair = np.lexsort((row, mark[side])).reshape(-1, 2)
    x, first = x[pair], pair[:, 0]
    return Spans(mark[side[first]], row[first], _pixel(x.min(1)), _pixel(x.max(1)))
