"""Graffiti: coloured strokes and a red word over the image (operators.md, post-processing)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from degrade.draws import Stream, randint
from degrade.kernels import hershey, marks, raster
from degrade.operator import Operator, Plan, Size

STROKES = 10  # strokes, times the intensity
THICKEST = 5  # pixels, times the intensity
TEXT_FROM = 0.55  # intensity above which there is text
SCALE, SMALLEST_SCALE, LARGEST_SCALE = (
    5.0,
    0.5,
    1000.0,
)  # pixels per font unit: 5 i, at least 0.5; the last bounds what a record may ask for
MARGIN = 10  # pixels between the text and the border
WORDS = ("X", "FAKE", "COPY", "VOID", "COPYRIGHT")
LARGEST_NUMBER = 100  # a number 1..100 is the sixth choice
TEXT_COLOUR = (255, 0, 0)
CANVAS_STROKES = 254  # a byte numbers them, the text and what is bare

Stroke = tuple[int, int, int, int, int, int, int, int]
_STROKE_RANGES = [raster.POSITION] * 4 + [raster.THICKNESS] + [raster.LEVEL] * 3


@dataclass(frozen=True)
class Text:
    """string: capitals of the words above and digits; x, y: start of its baseline; scale: pixels per font unit; thickness in pixels."""

    string: str
    x: int
    y: int
    scale: float
    thickness: int


@dataclass(frozen=True)
class Params:
    """strokes: x1, y1, x2, y2, thickness in pixels and red, green, blue in 0..255; text: over the strokes."""

    strokes: tuple[Stroke, ...]
    text: Text | None


class Graffiti(Operator[Params]):
    """Strokes and text at full cover; draws all of them.

    Gradient: 1 in the image where nothing stands, 0 under the marks; none in the intensity.
    """

    name = "graffiti"
    category = "postprocessing"
    params = Params
    coloured = True

    def draw(self, size: Size, intensity: float, stream: Stream) -> Params:
        height, width = size
        thickest = max(1, int(THICKEST * intensity))
        ends = (0, width - 1), (0, height - 1)
        strokes = stream.integers("strokes", int(STROKES * intensity), *ends, *ends, (1, thickest), *[raster.LEVEL] * 3)
        return Params(strokes, self._draw_text(size, intensity, stream) if intensity > TEXT_FROM else None)

    def _draw_text(self, size: Size, intensity: float, stream: Stream) -> Text | None:
        choice, number, x, y = stream.uniforms("text", 1, 4)[0].tolist()
        string = [*WORDS, str(randint(number, 1, LARGEST_NUMBER))][randint(choice, 0, len(WORDS))]
        scale = max(SMALLEST_SCALE, SCALE * intensity)
        thickness = max(1, int(scale))
        height, width = hershey.text_size(string, scale, thickness)
        top, bottom = height + MARGIN, size[0] - MARGIN
        if bottom <= top:
            return None
        return Text(string, randint(x, 0, max(1, size[1] - width - MARGIN)), randint(y, top, bottom), scale, thickness)

    def check(self, size: Size, intensity: float, params: Params) -> None:
        raster.check_marks("strokes", params.strokes, _STROKE_RANGES)
        if params.text is None:
            return
        text = params.text
        if unknown := sorted(set(text.string) - hershey.CHARACTERS):
            raise ValueError(f"text['string']: got {unknown[0]!r} in {text.string!r}, want only {''.join(sorted(hershey.CHARACTERS))}")
        if not 0 < text.scale <= LARGEST_SCALE:
            raise ValueError(f"text['scale']: got {text.scale}, want a number above 0 and at most {LARGEST_SCALE:g}")
        for name, (low, high) in {"x": raster.POSITION, "y": raster.POSITION, "thickness": raster.THICKNESS}.items():
            if not low <= (value := getattr(text, name)) <= high:
                raise ValueError(f"text[{name!r}]: got {value}, want {low}..{high}")

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Params]) -> Plan:
        canvases, palettes = _painted(size, params)
        return {"canvas": torch.from_numpy(canvases), "palette": torch.from_numpy(palettes)}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        for n in range(plan["canvas"].shape[1]):
            images = marks.cover(images, plan["canvas"][:, n : n + 1], plan["palette"][:, n])
        return images


def _painted(size: Size, params: Sequence[Params]) -> tuple[raster.Canvas, raster.Canvas]:
    """(B, L, H, W) canvases with the numbers of the marks on each, from 1, and their colours, (B, L, N, 3).

    The text is the mark after the last stroke.  A canvas is enough for all strokes that are drawn; a record may hold more of them.
    """
    layers = max(1, *(-(-len(p.strokes) // CANVAS_STROKES) for p in params))
    parts = [p.strokes[n * CANVAS_STROKES : (n + 1) * CANVAS_STROKES] for p in params for n in range(layers)]
    texts = [p.text if n == layers - 1 else None for p in params for n in range(layers)]
    counts = np.array([*map(len, parts)])
    strokes = raster.numbers(parts, 8)
    number = np.concatenate([np.arange(1, count + 1) for count in counts])
    letters = [hershey.segments(t.string, t.x, t.y, t.scale) if t else hershey.NOTHING for t in texts]
    letter_counts = [*map(len, letters)]
    thickness = np.repeat([t.thickness if t else 1 for t in texts], letter_counts)
    marks = [
        (raster.strokes(strokes[:, :4], strokes[:, 4], number), counts.tolist()),
        (raster.fine_strokes(np.concatenate(letters), thickness, np.repeat(counts + 1, letter_counts)), letter_counts),
    ]
    canvases = raster.paint(marks, size, len(parts))
    palettes = np.zeros((len(parts), counts.max() + 1, 3), dtype=np.uint8)
    palettes[np.repeat(np.arange(len(parts)), counts), number - 1] = strokes[:, 5:]
    palettes[np.arange(len(parts)), counts] = TEXT_COLOUR
    return canvases.reshape(len(params), layers, *size), palettes.reshape(len(params), layers, -1, 3)
