"""From the encoded images of a row to all variants of them, encoded."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

import degrade
from degrade import mixture
from degrade.builder.settings import device, weights
from degrade.builder.tables import Table
from degrade.config import BuildConfig
from degrade.data import cells, images
from degrade.data.errors import RowError
from degrade.data.rows import Row
from degrade.severity import intensity_of
from degrade.suites import Variant

PIXELS_AT_ONCE = 1 << 24
"""Pixels degraded in one call: bounds memory where images are large."""


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


class Maker:
    """Makes all variants of a row's images; called from several threads.

    Returns the row with its images, or with the reason why it has none (a text), or with None where it has none of its own.
    """

    def __init__(self, config: BuildConfig, table: Table, wanted: Mapping[str, Variant]) -> None:
        self.config, self.table, self.wanted = config, table, wanted
        self.weights = weights(config)
        self.device = device(config.device)
        self.only_decode = threading.Event()

    def __call__(self, row: Row) -> tuple[Row, list[MadeImage] | str | None]:
        if self.table.scan.entries[row.number].kind != "payload":
            return row, None
        try:
            made: list[MadeImage] | str = self._images(row)
        except RowError as error:
            made = str(error)
        if self.config.on_error == "keep" and isinstance(made, str):
            return row, made
        column = self.table.source.columns.index("image")  # the original images are done with: rows in flight need not hold them
        return replace(row, cells=(*row.cells[:column], "", *row.cells[column + 1 :])), made

    def _images(self, row: Row) -> list[MadeImage]:
        encoded = self.table.source.images(row)
        key = f"{self.table.benchmark}/{row.index}"
        operator = mixture.choose(self.weights, self.config.seed, key)  # one for a row, also where it has several images
        found = []
        for number, data in enumerate(encoded.parts):
            part = None if encoded.style == "single" else number
            try:
                found.append(self._image(data, key if part is None else f"{key}#{part}", part, operator, encoded.style))
            except RowError as error:
                raise RowError(str(error) if part is None else f"image {number + 1} of {len(encoded.parts)}: {error}") from error
        return found

    def _image(self, data: bytes, key: str, part: int | None, operator: str, style: cells.Style) -> MadeImage:
        config = self.config
        image = images.decode(data, orientation=config.orientation, alpha=config.alpha, max_pixels=config.max_pixels)
        size = (image.shape[2], image.shape[1])
        made: dict[tuple[str, float] | None, Encoded] = {}
        if not self.only_decode.is_set():
            made = self._degrade(image, key, operator)
        stems = {stem: made[job_of(variant, operator)] for stem, variant in self.wanted.items()} if made else {}
        return MadeImage(key, part, style, size, hashlib.sha256(data).hexdigest(), stems)

    def _degrade(self, image: Tensor, key: str, operator: str) -> dict[tuple[str, float] | None, Encoded]:
        """By operator and intensity: a mixed file's image is that of a per-operator file where both are the same."""
        wanted = dict.fromkeys(job_of(variant, operator) for variant in self.wanted.values())
        jobs = sorted(job for job in wanted if job is not None)
        made: dict[tuple[str, float] | None, Encoded] = {}
        if None in wanted:
            made[None] = self._encode(image, None)
        at_once = max(1, min(self.config.batch or len(jobs), PIXELS_AT_ONCE // (image.shape[1] * image.shape[2])))
        on_device = image.to(self.device)
        for start in range(0, len(jobs), at_once):
            some = jobs[start : start + at_once]
            out, records = degrade.apply(
                on_device.expand(len(some), -1, -1, -1),
                [name for name, _ in some],
                [intensity for _, intensity in some],
                seed=self.config.seed,
                keys=[key] * len(some),
                return_records=True,
            )
            for job, result, record in zip(some, out.cpu(), records, strict=True):
                made[job] = self._encode(result, record)
        return made

    def _encode(self, image: Tensor, record: dict[str, Any] | None) -> Encoded:
        return Encoded(images.encode(image, self.config.codec, self.config.quality), record)


def job_of(variant: Variant, operator: str) -> tuple[str, float] | None:
    """Operator and intensity of a variant of an image to which the mixture gives `operator`; None for a clean one."""
    if variant.kind == "clean":
        return None
    return variant.operator or operator, intensity_of(variant.severity)
