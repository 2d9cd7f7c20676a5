"""The contact sheet: what every operator does to one image at every severity, on one page."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from degrade.config import ConfigError, PreviewConfig, check, check_suffix
from degrade.data import staging
from degrade.data.errors import RowError, SourceError
from degrade.data.images import decode
from degrade.data.sample import sample_image
from degrade.functional import apply
from degrade.operators import OPERATORS
from degrade.severity import intensity_of

WIDTH = 144  # of a thumbnail, in pixels: six side by side fill the page of a README
KEY = "preview"

_PAPER, _INK, _FAINT = (255, 255, 255), (32, 32, 32), (110, 110, 110)
_COLOURS = {"capture": (36, 98, 164), "transmission": (166, 84, 20), "environment": (38, 120, 66), "postprocessing": (128, 58, 140)}
_GAP, _MARGIN, _GUTTER = 4, 12, 22
_TITLE, _HEADER, _LABEL, _SMALL = 24, 17, 14, 12  # sizes of type
_CATEGORY_ROW, _LABEL_ROW = 40, 20  # heights of the lines of text above thumbnails
_SPACE = 10  # above a category, part of its row


@dataclass(frozen=True)
class _Block:
    """The thumbnails of one category: for each of its operators one image per severity."""

    category: str
    rows: list[tuple[str, list[Image.Image]]]

    def height(self, thumbnail: int) -> int:
        return _CATEGORY_ROW + len(self.rows) * (_LABEL_ROW + thumbnail + _GAP)


def contact_sheet(
    image: Tensor,
    operators: Iterable[str] | None = None,
    severities: Sequence[str | float] = ("low", "mid", "high"),
    seed: int = 0,
    width: int = WIDTH,
) -> Tensor:
    """Every operator at every severity, labelled and grouped by category, with the clean image on top.

    The image is degraded at its own size, since the operators count in pixels, and made smaller afterwards.

    Args:
        image: (3, H, W) uint8, RGB.
        operators: names of ``degrade.OPERATORS``; None for all.
        severities: names or numbers in [0, 1], left to right.
        seed: decides the draws.
        width: of a thumbnail, in pixels.

    Returns:
        (3, h, w) uint8, RGB.

    Raises:
        ValueError: for another shape or dtype, or a name that does not exist.
    """
    if image.ndim != 3 or image.shape[0] != 3 or image.dtype != torch.uint8:
        raise ValueError(f"image: got {tuple(image.shape)} of {image.dtype}, want (3, H, W) of torch.uint8")
    names = list(OPERATORS) if operators is None else list(operators)
    height = max(1, round(width * image.shape[1] / image.shape[2]))
    copies = image.expand(len(severities), -1, -1, -1)
    grouped: dict[str, list[tuple[str, list[Image.Image]]]] = {}
    for name in names:
        degraded = apply(copies, name, list(severities), seed=seed, keys=[KEY] * len(severities))
        grouped.setdefault(OPERATORS[name].category, []).append((name, [_thumbnail(one, width, height) for one in degraded]))
    columns = _columns([_Block(category, rows) for category, rows in grouped.items()], height)
    return _draw(columns, _thumbnail(image, width, height), (image.shape[2], image.shape[1]), severities, seed)


def preview(config: PreviewConfig, announce: Callable[[int, int, int], None] | None = None) -> Path:
    """Write the contact sheet that `config` asks for as a PNG; returns its path.

    Args:
        config: the settings.
        announce: told how many images will be made, and their width and height, before any is.

    Raises:
        ConfigError: a setting that cannot be used.
        SourceError: the image cannot be read.
        FolderError: the sheet cannot be written.
    """
    check(config)
    if config.operators == [] or not config.severities:
        raise ConfigError("nothing to show: operators or severities are empty")
    check_suffix(config.output, [".png"], "a contact sheet is a PNG file")
    if config.image == "sample":
        data = sample_image()
    else:
        try:
            data = Path(config.image).read_bytes()
        except OSError as error:
            raise SourceError(f"image={config.image}: {error.strerror}; a JPEG, PNG or other image file is wanted, or `sample`") from error
    try:
        image = decode(data)
    except RowError as error:
        raise SourceError(f"image={config.image}: {error}") from error
    if announce:
        operators = OPERATORS if config.operators is None else config.operators
        announce(len(operators) * len(config.severities), image.shape[2], image.shape[1])
    sheet = contact_sheet(image, config.operators, config.severities, config.seed, config.width)
    output = Path(config.output)
    encoded = io.BytesIO()
    Image.fromarray(sheet.permute(1, 2, 0).numpy()).save(encoded, "PNG", optimize=True)
    staging.write_output(output, encoded.getvalue())
    return output


def _thumbnail(image: Tensor, width: int, height: int) -> Image.Image:
    whole = Image.fromarray(image.permute(1, 2, 0).contiguous().numpy())
    return whole.resize((width, height), Image.Resampling.LANCZOS)


def _columns(blocks: Sequence[_Block], thumbnail: int) -> list[list[_Block]]:
    """The blocks in two columns, each block in the one that is shorter so far."""
    columns: list[list[_Block]] = [[], []]
    for block in blocks:
        min(columns, key=lambda column: sum(b.height(thumbnail) for b in column)).append(block)
    return [column for column in columns if column]


def _draw(
    columns: Sequence[Sequence[_Block]], clean: Image.Image, size: tuple[int, int], severities: Sequence[str | float], seed: int
) -> Tensor:
    step = clean.width + _GAP
    column_width = max(len(severities) * step - _GAP, 190)
    top = _MARGIN + clean.height + _GAP + _LABEL_ROW
    body = max(sum(b.height(clean.height) for b in column) for column in columns)
    page_width = max(2 * _MARGIN + len(columns) * (column_width + _GUTTER) - _GUTTER, clean.width + 2 * _MARGIN + 330)
    page = Image.new("RGB", (page_width, top + body + _MARGIN), _PAPER)
    pen = ImageDraw.Draw(page)
    page.paste(clean, (_MARGIN, _MARGIN))
    count = sum(len(block.rows) for column in columns for block in column)
    left = _MARGIN + clean.width + 14
    pen.text((left, _MARGIN - 4), f"{count} degradation{'s' if count > 1 else ''} of one image", _INK, _font(_TITLE))
    for n, line in enumerate((f"left: the clean image, {size[0]} x {size[1]} pixels", f"columns: {_list(severities)}", f"seed {seed}")):
        pen.text((left, _MARGIN + 32 + n * 19), line, _FAINT, _font(_LABEL))
    for c, column in enumerate(columns):
        x, y = _MARGIN + c * (column_width + _GUTTER), top
        for block in column:
            colour = _COLOURS[block.category]
            pen.line([(x, y), (x + column_width - 1, y)], colour, 3)
            pen.text((x, y + 6), block.category, colour, _font(_HEADER))
            y += _CATEGORY_ROW - _SPACE
            for name, images in block.rows:
                pen.text((x, y + 1), name, _INK, _font(_LABEL))
                for s, (severity, image) in enumerate(zip(severities, images, strict=True)):
                    corner = (x + s * step, y + _LABEL_ROW)
                    page.paste(image, corner)
                    _tag(pen, str(severity), corner[0], corner[1] + clean.height)
                y += _LABEL_ROW + clean.height + _GAP
            y += _SPACE
    return torch.from_numpy(np.array(page).transpose(2, 0, 1).copy())


def _tag(pen: ImageDraw.ImageDraw, text: str, left: int, bottom: int) -> None:
    """A severity in a thumbnail's lower left corner, on a dark ground so that it is legible on every picture."""
    font = _font(_SMALL)
    width = round(pen.textlength(text, font))
    pen.rectangle([left, bottom - 16, left + width + 7, bottom - 1], _INK)
    pen.text((left + 4, bottom - 8), text, _PAPER, font, anchor="lm")


def _list(severities: Sequence[str | float]) -> str:
    return ", ".join(f"{s} ({intensity_of(s):g})" if isinstance(s, str) else f"{s:g}" for s in severities)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
