"""A complete TSV shard as rows with their images, references followed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from degrade.data.errors import RowError
from degrade.data.rows import Encoded, Row
from degrade.data.sources.tsv import TsvSource


@dataclass(frozen=True)
class ResolvedRow:
    """One row.

    Attributes:
        number: its place in the shard.
        texts: the cells by column, without the image column.
        images: its encoded images, its own or those of the row that it names; empty where it has none that can be read.
        listed: whether its cell is a list.
    """

    number: int
    texts: dict[str, str]
    images: tuple[bytes, ...]
    listed: bool


class Shard:
    """A TSV shard, read as a stream.

    Attributes:
        columns: the names of the text columns.
    """

    def __init__(self, path: Path) -> None:
        self._table = TsvSource(path, path.stem)
        self._entries = self._table.scan().entries
        self.columns = [name for name in self._table.columns if name != "image"]

    def __iter__(self) -> Iterator[ResolvedRow]:
        for row in self._table.rows():
            encoded = self._images(row)
            texts = {name: cell for name, cell in zip(self._table.columns, row.cells, strict=True) if name != "image"}
            yield ResolvedRow(row.number, texts, encoded.parts, encoded.style != "single")

    def _images(self, row: Row) -> Encoded:
        payload = self._entries[row.number].payload
        try:
            return self._table.images(row if payload in (-1, row.number) else self._table.row(payload))
        except RowError:  # no cell, or a kept one that is no image, which the manifest flags
            return Encoded((), "single")
