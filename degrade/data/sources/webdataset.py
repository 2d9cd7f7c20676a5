"""Webdataset shards as a stream: tar files in which members of one key, up to the name's first dot, make a row."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from degrade.data.errors import SourceError
from degrade.data.rows import Kind, Row, Scan, resolve
from degrade.data.sources.cell_images import CellImages, cell_of, digest_of
from degrade.data.sources.folder import SUFFIXES
from degrade.data.sources.layouts import text_of

_TEXTS = (".txt", ".cls", ".text")


class WebdatasetSource(CellImages):
    """Images, and as text columns the fields of a ``json`` member and the members ``txt``, ``cls`` and ``text``.

    A row's index is the field ``index`` where there is one, else its key.

    Args:
        paths: the shards, in order.
        benchmark: the name in image keys and file names.
    """

    kind = "webdataset"

    def __init__(self, paths: Sequence[Path], benchmark: str) -> None:
        self.paths, self.benchmark = list(paths), benchmark
        self.path = self.paths[0]
        self.columns: tuple[str, ...] = ("index", "image")  # further ones are known after the scan

    def scan(self) -> Scan:
        columns: dict[str, None] = {}
        indices: list[str] = []
        found: list[tuple[Kind, str]] = []
        size = text_bytes = 0
        for texts, images in self._samples():
            columns |= dict.fromkeys(name for name in texts if name not in ("index", "image"))
            indices.append(texts["index"])
            found.append(("payload" if images else "empty", ""))
            size += sum(map(len, images))
            text_bytes += sum(len(text.encode("utf-8", "surrogatepass")) for text in texts.values())
        self.columns = ("index", "image", *columns)
        return Scan(resolve(indices, found), digest_of(self.paths), size, text_bytes=text_bytes)

    def rows(self, start: int = 0) -> Iterator[Row]:
        for number, (texts, images) in enumerate(self._samples()):
            if number >= start:
                cell = cell_of(images, len(images) > 1)
                yield Row(number, texts["index"], tuple(cell if name == "image" else texts.get(name, "") for name in self.columns))

    def _samples(self) -> Iterator[tuple[dict[str, str], list[bytes]]]:
        for path in self.paths:
            try:
                with tarfile.open(path) as archive:
                    for key, members in groupby((m for m in archive if m.isfile()), key=lambda member: key_of(member.name)):
                        yield self._sample(archive, key, members)
            except (tarfile.TarError, EOFError) as error:
                raise SourceError(f"{path} cannot be read as a tar file: {error}") from error

    def _sample(self, archive: tarfile.TarFile, key: str, members: Iterator[tarfile.TarInfo]) -> tuple[dict[str, str], list[bytes]]:
        texts = {"index": key}
        images: list[tuple[str, bytes]] = []
        for member in members:
            suffix = _suffix(member.name)
            file = archive.extractfile(member)
            data = file.read() if file else b""
            try:
                if suffix in SUFFIXES:
                    images.append((member.name, data))
                elif suffix == ".json":
                    fields = json.loads(data)
                    if isinstance(fields, dict):
                        texts |= {name: value if isinstance(value, str) else text_of(value) for name, value in fields.items()}
                elif suffix in _TEXTS:
                    texts[suffix[1:]] = data.decode("utf-8")
            except ValueError as error:
                raise SourceError(f"{archive.name!s}, member {member.name}: {error}") from error
        return texts, [data for _, data in images]


def key_of(name: str) -> str:
    """The key of a member: its name up to the first dot."""
    folder, slash, file = name.rpartition("/")
    return folder + slash + file.partition(".")[0]


def is_image(name: str) -> bool:
    """Whether a member is an image, by what stands behind its name's last dot."""
    return _suffix(name) in SUFFIXES


def _suffix(name: str) -> str:
    return "." + name.rpartition("/")[2].partition(".")[2].rpartition(".")[2].lower()
