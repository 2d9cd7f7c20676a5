"""From the encoded images of rows to all variants of them, encoded."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

import degrade
from degrade import mixture
from degrade.builder.settings import device, weights
from degrade.builder.tables import Table
from degrade.config import BuildConfig
from degrade.data import cells, images
from degrade.data.errors import RowError
from degrade.data.rows import Row
from degrade.kernels import layout
from degrade.severity import intensity_of
from degrade.suites import Variant

T = TypeVar("T")
Job = tuple[str, float]

PIXELS_AT_ONCE = 1 << 22
"""Pixels degraded in one call: bounds memory where images are large."""

WINDOW, WINDOW_BYTES = 16, 1 << 20
"""So many rows, and so many bytes of them, at most are looked at together for images of the same size, where that pays: on an accelerator.
On the CPU a row alone keeps a core busy, and its images stay in the cache."""


def windows(items: Iterable[T], most: int, size: Callable[[T], int]) -> Iterator[list[T]]:
    """Neighbours in lists of at most so many; a list ends with the item that makes it ``WINDOW_BYTES`` large.

    >>> list(windows("abcde", 2, len))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    window: list[T] = []
    held = 0
    for item in items:
        window.append(item)
        held += size(item)
        if len(window) >= most or held >= WINDOW_BYTES:
            yield window
            window, held = [], 0
    if window:
        yield window


def window_of(where: torch.device, batch: int | None) -> int:
    """How many neighbours are looked at together."""
    if batch is not None:
        return min(batch, WINDOW)
    return 1 if where.type == "cpu" else WINDOW


@dataclass(frozen=True)
class Encoded:
    """One image of one file."""

    data: bytes
    record: dict[str, Any] | None


@dataclass(frozen=True)
class MadeImage:
    """One image of a row, in all its variants."""

    key: str
    part: int | None
    style: cells.Style
    size: tuple[int, int]
    source_sha256: str
    variants: dict[str, Encoded]  # by stem

    def line(self, stem: str) -> dict[str, Any]:
        encoded = self.variants[stem]
        part = {} if self.part is None else {"part": self.part}
        hashes = {"source_sha256": self.source_sha256, "sha256": hashlib.sha256(encoded.data).hexdigest()}
        return {"key": self.key, **part, **hashes, "size": list(self.size), "record": encoded.record}


@dataclass(frozen=True)
class _Decoded:
    """An image of a row on its way; `made` fills by operator and intensity, None for the clean one, with what came of it."""

    image: Tensor
    key: str
    part: int | None
    style: cells.Style
    operator: str
    source_sha256: str
    made: dict[Job | None, Encoded | RowError] = field(default_factory=dict)


Made = list[MadeImage] | str | None
"""A row's images, or the reason why it has none, or None where it has none of its own."""


class Maker:
    """Makes all variants of the images of neighbouring rows; called from several threads.

    Images of the same size, of one row in all its variants and of its neighbours, are degraded together.
    """

    def __init__(self, config: BuildConfig, table: Table, wanted: Mapping[str, Variant]) -> None:
        self.config, self.table, self.wanted = config, table, wanted
        self.weights = weights(config.mixture)
        self.device = device(config.device)
        self.window = window_of(self.device, config.batch)
        self.only_decode = threading.Event()

    def __call__(self, rows: Sequence[Row]) -> list[tuple[Row, Made]]:
        decoded = [self._decoded(row) for row in rows]
        if degrading := not self.only_decode.is_set():
            self._degrade([image for found in decoded if isinstance(found, list) for image in found])
        return [self._finished(row, found, degrading) for row, found in zip(rows, decoded, strict=True)]

    def _decoded(self, row: Row) -> list[_Decoded] | str | None:
        if self.table.scan.entries[row.number].kind != "payload":
            return None
        try:
            encoded = self.table.source.images(row)
            key = f"{self.table.benchmark}/{row.index}"
            operator = mixture.choose(self.weights, self.config.seed, key)  # one for a row, also where it has several images
            found = []
            for number, data in enumerate(encoded.parts):
                part = None if encoded.style == "single" else number
                with _naming(part, len(encoded.parts)):
                    image = images.decode(
                        data, orientation=self.config.orientation, alpha=self.config.alpha, max_pixels=self.config.max_pixels
                    )
                digest = hashlib.sha256(data).hexdigest()
                found.append(_Decoded(image, key if part is None else f"{key}#{part}", part, encoded.style, operator, digest))
            return found
        except RowError as error:
            return str(error)

    def _degrade(self, found: Sequence[_Decoded]) -> None:
        """Fill `made` of all images."""
        groups: dict[tuple[str, int, int], list[tuple[float, _Decoded]]] = {}  # by operator, height and width
        for decoded in found:
            for job in dict.fromkeys(job_of(variant, decoded.operator) for variant in self.wanted.values()):
                if job is None:
                    decoded.made[None] = self._encoded(decoded.image, None)
                else:
                    name, intensity = job
                    groups.setdefault((name, *decoded.image.shape[1:]), []).append((intensity, decoded))
        there = {id(decoded): decoded.image.to(self.device) for decoded in found} if groups else {}  # each is sent once
        for (name, height, width), group in groups.items():
            at_once = max(1, min(self.config.batch or len(group), PIXELS_AT_ONCE // (height * width)))
            for start in range(0, len(group), at_once):
                part = group[start : start + at_once]
                out, records = degrade.apply(
                    torch.stack([there[id(decoded)] for _, decoded in part]),
                    name,
                    [intensity for intensity, _ in part],
                    seed=self.config.seed,
                    keys=[decoded.key for _, decoded in part],
                    return_records=True,
                )
                for (intensity, decoded), result, record in zip(part, out.cpu(), records, strict=True):
                    decoded.made[name, intensity] = self._encoded(result, record)

    def _encoded(self, image: Tensor, record: dict[str, Any] | None) -> Encoded | RowError:
        try:
            return Encoded(images.encode(layout.channels_last(image), self.config.codec, self.config.quality), record)
        except RowError as error:  # of this row alone, not of those that are made with it
            return error

    def _finished(self, row: Row, found: list[_Decoded] | str | None, degraded: bool) -> tuple[Row, Made]:
        if found is None:
            return row, None
        made: list[MadeImage] | str
        try:
            made = found if isinstance(found, str) else [self._image(image, len(found), degraded) for image in found]
        except RowError as error:
            made = str(error)
        if self.config.on_error == "keep" and isinstance(made, str):
            return row, made
        column = self.table.source.columns.index("image")  # the original images are done with: rows in flight need not hold them
        return replace(row, cells=(*row.cells[:column], "", *row.cells[column + 1 :])), made

    def _image(self, found: _Decoded, parts: int, degraded: bool) -> MadeImage:
        done: dict[Job | None, Encoded] = {}
        for job, encoded in found.made.items():
            if isinstance(encoded, RowError):
                with _naming(found.part, parts):
                    raise encoded
            done[job] = encoded
        stems = {stem: done[job_of(variant, found.operator)] for stem, variant in self.wanted.items()} if degraded else {}
        size = (found.image.shape[2], found.image.shape[1])
        return MadeImage(found.key, found.part, found.style, size, found.source_sha256, stems)


def job_of(variant: Variant, operator: str) -> Job | None:
    """Operator and intensity of a variant of an image to which the mixture gives `operator`; None for a clean one.

    A mixed file's image is that of a per-operator file where both are the same.
    """
    if variant.kind == "clean":
        return None
    return variant.operator or operator, intensity_of(variant.severity)


class _naming:
    """Errors inside say which image of a list they are about."""

    def __init__(self, part: int | None, parts: int) -> None:
        self.part, self.parts = part, parts

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, RowError) and self.part is not None:
            raise RowError(f"image {self.part + 1} of {self.parts}: {error}") from error
