"""Sources whose image cell holds the images as text, as in a TSV file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from degrade.data import cells
from degrade.data.errors import RowError
from degrade.data.rows import Encoded, Row, Source


class CellImages:
    """The part of a source that finds the images in the image cell."""

    columns: tuple[str, ...]

    def images(self, row: Row) -> Encoded:
        """The images of a payload row."""
        found = cells.parse(row.cells[self.columns.index("image")])
        if not isinstance(found, cells.Payload):
            raise RowError("the row holds no image of its own")
        return Encoded(tuple(map(cells.from_base64, found.parts)), found.style)


def image_cell(source: Source, row: Row) -> str:
    """A row's image cell; where its images are files beside the table, these as a cell, "" where they cannot be read."""
    cell = row.cells[source.columns.index("image")]
    if cell:
        return cell
    try:
        found = source.images(row)
    except RowError:
        return ""
    return cell_of([part for part in found.parts if part], found.style != "single")


def digest_of(paths: Sequence[Path]) -> str:
    """The sha256 of a table's files, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def cell_of(parts: Sequence[bytes], listed: bool = False) -> str:
    """The image cell for encoded images as a source has them."""
    if not listed and len(parts) == 1 and len(parts[0]) > 48:
        return base64.b64encode(parts[0]).decode("ascii")
    # a shorter text would be taken for a reference
    return cells.write(parts, "python") if parts else ""
