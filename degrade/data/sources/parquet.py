"""Benchmarks as parquet, in the layouts of dataset hubs, as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from degrade import suites
from degrade.data import cells
from degrade.data.errors import RowError, SourceError
from degrade.data.rows import Kind, Row, Scan, resolve
from degrade.data.sources import layouts
from degrade.data.sources.cell_images import CellImages, cell_of, digest_of

_BATCH_ROWS = 8
"""Rows in memory at once: an image may be large."""


class ParquetSource(CellImages):
    """One table in one or more parquet files, with an image column of ``{bytes, path}``, raw bytes, or VLMEvalKit's base64 text.

    Args:
        paths: the files, in the table's order.
        name: of the benchmark, where its columns do not tell.
        image_roots: folders that an image's path may point into, besides the files' own.
    """

    kind = "parquet"

    def __init__(self, paths: Sequence[Path], name: str, image_roots: Sequence[Path] = ()) -> None:
        self.paths = list(paths)
        self.path = self.paths[0]
        self.roots = [root.resolve() for root in (self.path.parent, *image_roots)]
        try:
            names = pq.read_schema(self.path).names
        except pa.ArrowInvalid as error:
            raise SourceError(f"{self.path} is no parquet file: {error}") from error
        layout = layouts.recognise(names)
        if layout is None:
            raise SourceError(
                f"{self.path}: the columns {', '.join(names)} are none of the known layouts of the six benchmarks, nor VLMEvalKit's "
                "(index and image)"
            )
        self._layout = layout
        self.benchmark = layout.benchmark or suites.canonical(name)
        self.columns: tuple[str, ...] = (layout.columns[0], "image", *layout.columns[1:])

    def scan(self) -> Scan:
        indices: list[str] = []
        found: list[tuple[Kind, str]] = []
        without_options: list[str] = []
        size = text_bytes = 0
        for row, reason in self._rows(0):
            indices.append(row.index)
            if self._layout.lacks_options(dict(zip(self.columns, row.cells, strict=True))):
                without_options.append(row.index)
            cell = row.cells[1]
            text_bytes += sum(len(text.encode()) for text in row.cells) - len(cell.encode())
            try:
                if reason:
                    raise RowError(reason)
                if not row.index:
                    raise RowError("the index cell is empty")
                image = cells.parse(cell)
                if isinstance(image, cells.Reference):
                    found.append(("reference", image.target))
                else:
                    found.append(("payload" if isinstance(image, cells.Payload) else "empty", ""))
                    size += len(cell) * 3 // 4
            except RowError as error:
                found.append(("broken", str(error)))
        left_out = sum(pq.read_metadata(path).num_rows for path in self.paths) - len(indices)
        return Scan(resolve(indices, found), digest_of(self.paths), size, without_options, left_out, text_bytes)

    def rows(self, start: int = 0) -> Iterator[Row]:
        return (row for row, _ in self._rows(start))

    def _rows(self, start: int) -> Iterator[tuple[Row, str]]:
        """Rows, each with the reason why its image cannot be read, or "" where it can."""
        number = 0
        for raw_number, raw in enumerate(self._raw()):
            low = {name.lower(): value for name, value in raw.items()}
            converted = self._layout.convert(low, raw_number)
            if converted is None:
                continue
            if number >= start:
                texts = [converted[name] for name in self._layout.columns]
                cell, reason = "", ""
                try:
                    cell = self._cell(low["image"])
                except RowError as error:
                    reason = str(error)
                yield Row(number, texts[0], (texts[0], cell, *texts[1:])), reason
            number += 1

    def _raw(self) -> Iterator[dict[str, Any]]:
        for path in self.paths:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(_BATCH_ROWS):
                    yield from batch.to_pylist()

    def _cell(self, image: Any) -> str:
        """An image as the cell of a TSV file."""
        if isinstance(image, str):
            return image
        items = image if isinstance(image, list) else [image]
        return cell_of([data for data in map(self._bytes, items) if data], isinstance(image, list))

    def _bytes(self, image: Any) -> bytes:
        if image is None:
            return b""
        if isinstance(image, bytes):
            return bytes(image)
        if image.get("bytes"):
            return bytes(image["bytes"])
        if not image.get("path"):
            return b""
        for root in self.roots:
            path = (root / str(image["path"])).resolve()
            if path.is_file() and any(path.is_relative_to(allowed) for allowed in self.roots):
                return path.read_bytes()
        raise RowError(
            f"the image {image['path']!r} is no file in {', '.join(map(str, self.roots))}; name further folders with image_roots"
        )
