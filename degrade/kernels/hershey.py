"""The glyphs of the Hershey Simplex face that graffiti writes, as polylines.

The Hershey fonts were originally created by Dr. A. V. Hershey while working at the U.S. National Bureau of Standards; the
format of their usual distribution was originally created by James Hurt, Cognition, Inc.  They are free to use and to
redistribute in any form but the NTIS format.  Taken from the face ``futural`` of the package ``hershey-fonts``.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from degrade.kernels.raster import UNITS_PER_PIXEL, Ints

NOTHING: Ints = np.empty((0, 4), dtype=np.int64)  # the segments of no string
CAP_LINE, BASE_LINE = 12, 9  # font units above and below the origin of a glyph, which is halfway up; y runs down

# "left edge, right edge: polylines of points x,y separated by semicolons", in font units
_GLYPHS = {
    "A": "-9 9: 0,-12 -8,9; 0,-12 8,9; -5,2 5,2",
    "C": "-10 11: 8,-7 7,-9 5,-11 3,-12 -1,-12 -3,-11 -5,-9 -6,-7 -7,-4 -7,1 -6,4 -5,6 -3,8 -1,9 3,9 5,8 7,6 8,4",
    "D": "-11 10: -7,-12 -7,9; -7,-12 0,-12 3,-11 5,-9 6,-7 7,-4 7,1 6,4 5,6 3,8 0,9 -7,9",
    "E": "-10 9: -6,-12 -6,9; -6,-12 7,-12; -6,-2 2,-2; -6,9 7,9",
    "F": "-10 8: -6,-12 -6,9; -6,-12 7,-12; -6,-2 2,-2",
    "G": "-10 11: 8,-7 7,-9 5,-11 3,-12 -1,-12 -3,-11 -5,-9 -6,-7 -7,-4 -7,1 -6,4 -5,6 -3,8 -1,9 3,9 5,8 7,6 8,4 8,1; 3,1 8,1",
    "H": "-11 11: -7,-12 -7,9; 7,-12 7,9; -7,-2 7,-2",
    "I": "-4 4: 0,-12 0,9",
    "K": "-11 10: -7,-12 -7,9; 7,-12 -7,2; -2,-3 7,9",
    "O": "-11 11: -2,-12 -4,-11 -6,-9 -7,-7 -8,-4 -8,1 -7,4 -6,6 -4,8 -2,9 2,9 4,8 6,6 7,4 8,1 8,-4 7,-7 6,-9 4,-11 2,-12 -2,-12",
    "P": "-11 10: -7,-12 -7,9; -7,-12 2,-12 5,-11 6,-10 7,-8 7,-5 6,-3 5,-2 2,-1 -7,-1",
    "R": "-11 10: -7,-12 -7,9; -7,-12 2,-12 5,-11 6,-10 7,-8 7,-6 6,-4 5,-3 2,-2 -7,-2; 0,-2 7,9",
    "T": "-8 8: 0,-12 0,9; -7,-12 7,-12",
    "V": "-9 9: -8,-12 0,9; 8,-12 0,9",
    "X": "-10 10: -7,-12 7,9; 7,-12 -7,9",
    "Y": "-9 9: -8,-12 0,-2 0,9; 8,-12 0,-2",
    "0": "-10 10: -1,-12 -4,-11 -6,-8 -7,-3 -7,0 -6,5 -4,8 -1,9 1,9 4,8 6,5 7,0 7,-3 6,-8 4,-11 1,-12 -1,-12",
    "1": "-10 10: -4,-8 -2,-9 1,-12 1,9",
    "2": "-10 10: -6,-7 -6,-8 -5,-10 -4,-11 -2,-12 2,-12 4,-11 5,-10 6,-8 6,-6 5,-4 3,-1 -7,9 7,9",
    "3": "-10 10: -5,-12 6,-12 0,-4 3,-4 5,-3 6,-2 7,1 7,3 6,6 4,8 1,9 -2,9 -5,8 -6,7 -7,5",
    "4": "-10 10: 3,-12 -7,2 8,2; 3,-12 3,9",
    "5": "-10 10: 5,-12 -5,-12 -6,-3 -5,-4 -2,-5 1,-5 4,-4 6,-2 7,1 7,3 6,6 4,8 1,9 -2,9 -5,8 -6,7 -7,5",
    "6": "-10 10: 6,-9 5,-11 2,-12 0,-12 -3,-11 -5,-8 -6,-3 -6,2 -5,6 -3,8 0,9 1,9 4,8 6,6 7,3 7,2 6,-1 4,-3 1,-4 0,-4 -3,-3 -5,-1 -6,2",
    "7": "-10 10: 7,-12 -3,9; -7,-12 7,-12",
    "8": (
        "-10 10: -2,-12 -5,-11 -6,-9 -6,-7 -5,-5 -3,-4 1,-3 4,-2 6,0 7,2 7,5 6,7 5,8 2,9 -2,9 -5,8 -6,7 -7,5 -7,2 -6,0 -4,-2 -1,-3 "
        "3,-4 5,-5 6,-7 6,-9 5,-11 2,-12 -2,-12"
    ),
    "9": "-10 10: 6,-5 5,-2 3,0 0,1 -1,1 -4,0 -6,-2 -7,-5 -7,-6 -6,-9 -4,-11 -1,-12 0,-12 3,-11 5,-9 6,-5 6,0 5,5 3,8 0,9 -2,9 -5,8 -6,6",
}


@dataclass(frozen=True)
class _Glyph:
    left: int
    right: int
    segments: Ints  # (N, 4): x1 y1 x2 y2 in font units

    @staticmethod
    def parse(text: str) -> _Glyph:
        edges, polylines = text.split(":")
        left, right = edges.split()
        joined = []
        for polyline in polylines.split(";"):
            points = np.array([point.split(",") for point in polyline.split()], dtype=np.int64)
            joined.append(np.concatenate([points[:-1], points[1:]], axis=1))
        return _Glyph(int(left), int(right), np.concatenate(joined))


_FONT = {character: _Glyph.parse(text) for character, text in _GLYPHS.items()}
CHARACTERS = frozenset(_FONT)


@functools.lru_cache(maxsize=256)
def _placed(string: str) -> Ints:
    """The strokes of ``string``, (N, 4) in font units, from the start of its baseline, glyph origins at their height."""
    start, placed = 0, [NOTHING]
    for glyph in (_FONT[character] for character in string):
        start -= glyph.left
        placed.append(glyph.segments + np.array([start, -BASE_LINE, start, -BASE_LINE], dtype=np.int64))
        start += glyph.right
    return np.concatenate(placed)


def segments(string: str, x: int, y: int, scale: float) -> Ints:
    """The strokes of ``string``, its baseline starting at pixel (x, y): (N, 4) ends x1 y1 x2 y2 in 1/65536 pixel.

    ``scale`` is pixels per font unit, rounded to 1/65536; ``string`` consists of ``CHARACTERS``.
    """
    return _placed(string) * round(scale * UNITS_PER_PIXEL) + np.array([x, y, x, y], dtype=np.int64) * UNITS_PER_PIXEL


def text_size(string: str, scale: float, thickness: int) -> tuple[int, int]:
    """Height above the baseline and width in pixels of ``string`` in strokes of ``thickness`` pixels.

    >>> text_size("FAKE", scale=4.5, thickness=4)
    (96, 346)
    """
    advance = sum(_FONT[character].right - _FONT[character].left for character in string)
    return round((CAP_LINE + BASE_LINE) * scale + (thickness + 1) // 2), round(advance * scale + thickness)
