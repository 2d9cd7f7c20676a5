"""What stands in a benchmark's image cell, and how to write it back."""

from __future__ import annotations

import ast
import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from degrade.data.errors import RowError

LONGEST_REFERENCE = 64
"""VLMEvalKit's rule: an image cell of at most so many characters names another row."""

Style = Literal["single", "json", "python"]


@dataclass(frozen=True)
class Empty:
    """No image: the row is kept as it is."""


@dataclass(frozen=True)
class Reference:
    """The image of the row whose index is `target`."""

    target: str


@dataclass(frozen=True)
class Payload:
    """One encoded image, or a list of several, as text."""

    parts: tuple[str, ...]
    style: Style


def is_empty(cell: str) -> bool:
    """Whether a cell holds no image.

    >>> is_empty(" "), is_empty("[]"), is_empty("12")
    (True, True, False)
    """
    return cell.strip() in ("", "[]")


def parse(cell: str) -> Empty | Reference | Payload:
    """What an image cell holds; nothing is decoded.

    Raises:
        RowError: if a list cannot be read.

    >>> parse("12")
    Reference(target='12')
    """
    if is_empty(cell):
        return Empty()
    text = cell.strip()
    if text.startswith("[") and text.endswith("]"):
        return Payload(*parse_list(text))
    return Reference(text) if len(text) <= LONGEST_REFERENCE else Payload((text,), "single")


def parse_list(text: str) -> tuple[tuple[str, ...], Style]:
    """The strings of a JSON or Python list, and which of the two it was."""
    style: Style = "json"
    try:
        items = json.loads(text)
    except ValueError:
        style = "python"
        try:
            items = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            raise RowError(f"the cell looks like a list ({_start(text)}) but is neither JSON nor Python: {error}") from error
    if not isinstance(items, list) or not items or not all(isinstance(item, str) for item in items):
        raise RowError(f"the cell is a list ({_start(text)}), but not one of strings")
    return tuple(items), style


def write(parts: Sequence[bytes], style: Style) -> str:
    """The cell for encoded images: base64 without line breaks or prefix, in a list where there was one."""
    texts = [base64.b64encode(part).decode("ascii") for part in parts]
    if style == "single":
        (text,) = texts
        return text
    return json.dumps(texts) if style == "json" else repr(texts)


def from_base64(text: str) -> bytes:
    """The bytes of a base64 image, forgiving a ``data:`` prefix, line breaks and missing padding.

    Raises:
        RowError: if it is no base64.

    >>> from_base64("data:image/png;base64,aGVs\\nbG8")
    b'hello'
    """
    body = text.strip()
    if body.startswith("data:"):
        head, comma, body = body.partition(",")
        if not comma or not head.endswith(";base64"):
            raise RowError(f"a data: address that is not base64 ({_start(text)})")
    body = "".join(body.split()).rstrip("=")
    if "-" in body or "_" in body:  # the alphabet of URLs
        body = body.replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(body + "=" * (-len(body) % 4), strict_mode=True)
    except (binascii.Error, ValueError) as error:  # ValueError: characters outside ASCII
        raise RowError(f"the image cell ({len(text)} characters, {_start(text)}) is not base64: {error}") from error


def _start(text: str) -> str:
    return repr(text if len(text) <= 24 else text[:24] + "...")
