"""Rows of a benchmark, whatever file they come from.

A source is read twice: :meth:`Source.scan` reads what a build must know of all rows before it begins (one small :class:`Entry` for each),
and :meth:`Source.rows` then brings the rows one after the other with their text and images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from degrade.data.cells import Style
from degrade.data.errors import RowError

Kind = Literal["payload", "reference", "empty", "broken"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a row before its pixels are read.

    Attributes:
        index: the row's name, unique in its file.
        kind: whether it holds an image (or several), shares one, has none, or cannot be used.
        payload: the row's own number for a payload, that of the row whose image it shares for a reference, else -1.
        reason: why it is broken, else "".
    """

    index: str
    kind: Kind
    payload: int = -1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One row with its text.

    Attributes:
        number: its place in the source, from 0.
        index: its name.
        cells: one text for each column of the source; the image column holds the original image cell.
    """

    number: int
    index: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Encoded:
    """The encoded images of a payload row, and how its cell lists them."""

    parts: tuple[bytes, ...]
    style: Style


@dataclass(frozen=True)
class Scan:
    """What the first pass over a source finds.

    Attributes:
        entries: one for each row, in the source's order.
        sha256: of the whole source.
        image_bytes: about how many bytes of encoded images it holds.
        without_options: the indices of rows whose options could not be split from the question, which stays whole.
        left_out: how many further rows the source has that belong to another benchmark, and so are none of this one.
        text_bytes: about how many bytes its other cells hold.
    """

    entries: Sequence[Entry]
    sha256: str
    image_bytes: int
    without_options: Sequence[str] = ()
    left_out: int = 0
    text_bytes: int = 0


class Source(Protocol):
    """One table of questions with images.

    Attributes:
        path: the file or folder.
        kind: ``"tsv"``, ``"parquet"``, ...
        benchmark: the name in image keys and file names.
        columns: names of the cells of a row; ``image`` and ``index`` are among them.
    """

    path: Path
    kind: str
    benchmark: str
    columns: tuple[str, ...]

    def scan(self) -> Scan:
        """Read all but the pixels. Raises `SourceError` where the source as a whole cannot be used."""
        ...

    def rows(self, start: int = 0) -> Iterator[Row]:
        """The rows from number `start` on, as a stream."""
        ...

    def images(self, row: Row) -> Encoded:
        """The images of a payload row. Raises `RowError` where they cannot be read. Safe to call from several threads."""
        ...


def resolve(indices: Sequence[str], found: Sequence[tuple[Kind, str]]) -> list[Entry]:
    """Follow references, forward, backward and in chains, to the rows that hold the images.

    Args:
        indices: the index of every row.
        found: for every row its kind, and the index referred to (for a reference) or the reason (for a broken row).

    Returns:
        One entry for each row. Broken are also rows whose index has come before, references to nothing, to rows without an image or to
        broken rows, and references in a circle.

    >>> [e.payload for e in resolve(["a", "b", "c"], [("payload", ""), ("reference", "c"), ("reference", "a")])]
    [0, 0, 0]
    """
    first: dict[str, int] = {}
    for number, index in enumerate(indices):
        first.setdefault(index, number)
    entries = []
    for number, (index, (kind, detail)) in enumerate(zip(indices, found, strict=True)):
        try:
            if first[index] != number:
                raise RowError(f"index {index!r} has come before, in row {first[index]}")
            if kind == "broken":
                raise RowError(detail)
            payload = _follow(number, indices, found, first) if kind in ("payload", "reference") else -1
            entries.append(Entry(index, kind, payload))
        except RowError as error:
            entries.append(Entry(index, "broken", reason=str(error)))
    return entries


def _follow(number: int, indices: Sequence[str], found: Sequence[tuple[Kind, str]], first: dict[str, int]) -> int:
    seen = {number}
    at = number
    while found[at][0] == "reference":
        target = found[at][1]
        if target not in first:
            raise RowError(f"the image cell refers to index {target!r}, which is not in the file")
        at = first[target]
        if at in seen:
            raise RowError(f"the image cells refer to each other in a circle, by way of index {target!r}")
        seen.add(at)
    kind, detail = found[at]
    if kind == "empty":
        raise RowError(f"the image cell refers to index {indices[at]!r}, which has no image")
    if kind == "broken":
        raise RowError(f"the image cell refers to index {indices[at]!r}, which cannot be used: {detail}")
    return at
