"""VLMEvalKit's TSV files, as a stream: a file may be larger than memory."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from degrade.data import cells, text
from degrade.data.errors import RowError, SourceError
from degrade.data.rows import Encoded, Kind, Row, Scan, resolve


class TsvSource:
    """A TSV file with an ``index`` column and an ``image`` or ``image_path`` column.

    Args:
        path: the file.
        benchmark: the name in image keys and file names.
        image_roots: folders that ``image_path`` may point into, besides the file's own.
    """

    kind = "tsv"

    def __init__(self, path: Path, benchmark: str, image_roots: Sequence[Path] = ()) -> None:
        self.path, self.benchmark = path, benchmark
        self.roots = [root.resolve() for root in (path.parent, *image_roots)]
        self._offsets: array[int] = array("Q")
        with path.open("rb") as file:
            self._first = len(text.BOM) if file.read(len(text.BOM)) == text.BOM else 0
            file.seek(self._first)
            _, found = next(text.records(file, str(path)), (0, []))
        header = self._header(found)
        self._has_image = "image" in header
        self.columns = header if self._has_image else (*header, "image")
        self._index = header.index("index")
        self._image = self.columns.index("image")
        self._image_path = header.index("image_path") if "image_path" in header else None
        self._width = len(header)

    def _header(self, found: list[bytes]) -> tuple[str, ...]:
        try:
            names = tuple(name.decode("utf-8") for name in found)
        except UnicodeDecodeError as error:
            raise SourceError(f"{self.path}: the header line is not UTF-8 text; a VLMEvalKit TSV file is wanted") from error
        if "\r" in "".join(names):
            raise SourceError(
                f"{self.path}: a bare carriage return (CR) stands in the header line. Lines end with LF or CRLF, and a CR alone is text: "
                f"if the file's lines end with it, make a new one with `tr '\\r' '\\n'`"
            )
        if "index" not in names or not {"image", "image_path"} & set(names):
            raise SourceError(
                f"{self.path}: a VLMEvalKit TSV file has the columns index and image (or image_path); "
                f"this one has {', '.join(names)[:300] or 'none'}"
            )
        if twice := [name for name in ("index", "image", "image_path") if names.count(name) > 1]:
            raise SourceError(f"{self.path}: the column {twice[0]} stands there twice")
        return names

    def scan(self) -> Scan:
        digest = hashlib.sha256()
        self._offsets = array("Q")
        indices: list[str] = []
        found: list[tuple[Kind, str]] = []
        size = text_bytes = 0
        with self.path.open("rb") as file:
            digest.update(file.read(self._first))
            bare: set[int] = set()
            rows = text.records(_Hashed(file, digest.update), str(self.path), bare)
            next(rows)
            for offset, raw in rows:
                self._offsets.append(offset)
                index, kind, detail = self._look(raw, len(indices), offset in bare)
                indices.append(index)
                found.append((kind, detail))
                text_bytes += sum(map(len, raw)) - (len(raw[self._image]) if self._has_image and self._image < len(raw) else 0)
                if kind == "payload":
                    size += len(raw[self._image]) * 3 // 4 if self._has_image else 0
        return Scan(resolve(indices, found), digest.hexdigest(), size, text_bytes=text_bytes)

    def _look(self, raw: list[bytes], number: int, bare: bool) -> tuple[str, Kind, str]:
        """Index, kind, and target or reason of one row; `bare` where it has a CR outside of quotes."""
        index = raw[self._index].decode("utf-8", "backslashreplace") if self._index < len(raw) else ""
        try:
            if bare:
                raise RowError(
                    "a bare carriage return (CR) stands outside of quotes: pandas, which VLMEvalKit reads with, begins a new row there. "
                    "Quote the cell, or take the CR out"
                )
            row = self._row(number, raw)
            if not index:
                raise RowError("the index cell is empty")
            image = cells.parse(row.cells[self._image])
            if isinstance(image, cells.Reference):
                return index, "reference", image.target
            has_path = self._image_path is not None and not cells.is_empty(row.cells[self._image_path])
            return index, "payload" if isinstance(image, cells.Payload) or has_path else "empty", ""
        except RowError as error:
            return index, "broken", str(error)

    def _row(self, number: int, raw: list[bytes]) -> Row:
        if len(raw) != self._width:
            raise RowError(f"the row has {len(raw)} cells where the header has {self._width}")
        try:
            values = tuple(cell.decode("utf-8") for cell in raw)
        except UnicodeDecodeError as error:
            raise RowError(f"the row is not UTF-8 text: {error.reason} in {error.object[error.start : error.start + 8]!r}") from error
        return Row(number, values[self._index], values if self._has_image else (*values, ""))

    def rows(self, start: int = 0) -> Iterator[Row]:
        if start >= len(self._offsets):
            return
        with self.path.open("rb") as file:
            file.seek(self._offsets[start])
            for number, (offset, raw) in enumerate(text.records(file, str(self.path)), start=start):
                if number >= len(self._offsets) or offset != self._offsets[number]:
                    raise SourceError(f"{self.path} has changed while it was being read")
                try:
                    yield self._row(number, raw)
                except RowError:  # known from the scan; as much of it as there is, for the list of bad rows
                    values = [cell.decode("utf-8", "backslashreplace") for cell in raw][: self._width]
                    values += [""] * (len(self.columns) - len(values))
                    yield Row(number, values[self._index], tuple(values))

    def row(self, number: int) -> Row:
        """One row, by its number in the scan."""
        return next(self.rows(number))

    def images(self, row: Row) -> Encoded:
        image = cells.parse(row.cells[self._image])
        if isinstance(image, cells.Payload):
            return Encoded(tuple(cells.from_base64(part) for part in image.parts), image.style)
        if self._image_path is None:
            raise RowError("the row holds no image of its own")
        paths = row.cells[self._image_path].strip()
        if paths.startswith("[") and paths.endswith("]"):
            parts, style = cells.parse_list(paths)
            return Encoded(tuple(self._read(part) for part in parts), style)
        return Encoded((self._read(paths),), "single")

    def _read(self, name: str) -> bytes:
        """The bytes of an image file.  Errors name no folder: they stand in manifests, which do not depend on where a source lies."""
        inside = False
        try:
            for path in [(root / name).resolve() for root in self.roots]:
                if any(path.is_relative_to(allowed) for allowed in self.roots):
                    inside = True
                    if path.is_file():
                        return path.read_bytes()
        except ValueError as error:  # a NUL in the name
            raise RowError(f"image_path {name!r} is no file name: {error}") from error
        except OSError as error:
            raise RowError(f"image_path {name!r} cannot be read: {error.strerror}") from error
        if not inside:
            raise RowError(f"image_path {name!r} leads out of the source's folder; name further folders with image_roots")
        raise RowError(f"image_path {name!r} is no file in the source's folder or image_roots")


class _Hashed:
    """A file that tells a hash of every line that is read."""

    def __init__(self, file: BinaryIO, update: Callable[[bytes], None]) -> None:
        self._file, self._update = file, update

    def tell(self) -> int:
        return self._file.tell()

    def readline(self) -> bytes:
        line = self._file.readline()
        self._update(line)
        return line
