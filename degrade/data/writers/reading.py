"""Published shards, read again: what is checked is what a user holds."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow.parquet as pq

from degrade.data import cells, text
from degrade.data.errors import RowError, SourceError
from degrade.data.rows import Encoded

_BATCH_ROWS = 16


@dataclass(frozen=True)
class ShardRow:
    """One row of a published shard.

    Attributes:
        texts: the cells by column, without the image column.
        cell: the image cell of a TSV shard; None in other formats.
        images: the encoded images; empty for a cell that refers to another, is empty, or cannot be read.
    """

    texts: dict[str, str]
    cell: str | None
    images: tuple[bytes, ...]


def rows(paths: Sequence[Path]) -> Iterator[ShardRow]:
    """The rows of a shard's files, as a stream.

    Raises:
        SourceError: if a file is damaged.
    """
    for path in paths:
        try:
            yield from _READERS[path.suffix](path)
        except (OSError, tarfile.TarError, ValueError, KeyError) as error:  # Arrow's errors are ValueErrors or OSErrors
            raise SourceError(f"{path} is damaged: {error}") from error


def _tsv(path: Path) -> Iterator[ShardRow]:
    with path.open("rb") as file:
        found = text.records(file, str(path))
        _, header = next(found, (0, []))
        columns = [name.decode("utf-8") for name in header]
        at = columns.index("image")
        for _, raw in found:
            if len(raw) != len(columns):
                raise SourceError(f"a row has {len(raw)} cells where the header has {len(columns)}")
            values = [cell.decode("utf-8") for cell in raw]
            texts = {name: cell for n, (name, cell) in enumerate(zip(columns, values, strict=True)) if n != at}
            yield ShardRow(texts, values[at], _images(values[at]).parts)


def _images(cell: str) -> Encoded:
    try:
        found = cells.parse(cell)
        if isinstance(found, cells.Payload):
            return Encoded(tuple(map(cells.from_base64, found.parts)), found.style)
    except RowError:  # its hash is missed where one is expected
        pass
    return Encoded((), "single")


def _parquet(path: Path) -> Iterator[ShardRow]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS):
            for row in batch.to_pylist():
                image = row.pop("image")
                pictures = image if isinstance(image, list) else [image] if image else []
                yield ShardRow(row, None, tuple(picture["bytes"] for picture in pictures))


def _webdataset(path: Path) -> Iterator[ShardRow]:
    with tarfile.open(path) as archive:
        for _, members in groupby(archive, key=lambda member: member.name.partition(".")[0]):
            texts: dict[str, str] = {}
            images: list[bytes] = []
            for member in members:
                file = archive.extractfile(member)
                data = file.read() if file else b""
                if member.name.endswith(".json"):
                    texts = json.loads(data)
                else:
                    images.append(data)
            yield ShardRow(texts, None, tuple(images))


_READERS = {".tsv": _tsv, ".parquet": _parquet, ".tar": _webdataset}
