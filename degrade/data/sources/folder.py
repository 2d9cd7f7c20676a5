"""A folder of images as a benchmark without questions: every image is a row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from degrade.data.errors import RowError
from degrade.data.rows import Encoded, Kind, Row, Scan, resolve

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif")


class FolderSource:
    """The images in a folder and the folders in it, sorted by path; the index of each is its path inside the folder."""

    kind = "folder"
    columns: tuple[str, ...] = ("index", "image")

    def __init__(self, path: Path, benchmark: str) -> None:
        self.path, self.benchmark = path, benchmark
        self._names: list[str] = sorted(file.relative_to(path).as_posix() for file in image_files(path))

    def scan(self) -> Scan:
        digest = hashlib.sha256()
        size = 0
        for name in self._names:
            data = (self.path / name).read_bytes()
            digest.update(f"{name}\0{len(data)}\0".encode() + data)
            size += len(data)
        found: list[tuple[Kind, str]] = [("payload", "")] * len(self._names)
        return Scan(resolve(self._names, found), digest.hexdigest(), size)

    def rows(self, start: int = 0) -> Iterator[Row]:
        for number, name in enumerate(self._names[start:], start=start):
            yield Row(number, name, (name, ""))

    def images(self, row: Row) -> Encoded:
        try:
            return Encoded(((self.path / row.index).read_bytes(),), "single")
        except OSError as error:
            raise RowError(f"the file cannot be read: {error.strerror}") from error


def image_files(folder: Path) -> Iterator[Path]:
    """The image files in a folder and the folders in it, by their suffixes."""
    return (path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
