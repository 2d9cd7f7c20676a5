"""Sources with what their first pass found and the files wanted of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from degrade import suites
from degrade.builder.report import Estimate
from degrade.builder.settings import shard_name, variants
from degrade.config import BuildConfig
from degrade.data import images, manifest
from degrade.data.errors import RowError, SourceError
from degrade.data.rows import Scan, Source
from degrade.data.sources import open_sources
from degrade.data.staging import FolderError
from degrade.suites import Variant


@dataclass(frozen=True)
class Table:
    """One source with what its scan found and the files wanted of it."""

    source: Source
    scan: Scan
    wanted: dict[str, Variant]  # by stem
    sha256: str

    @property
    def benchmark(self) -> str:
        return self.source.benchmark


def open_tables(config: BuildConfig) -> list[Table]:
    found = []
    places: dict[str, Any] = {
        "data_dir": config.data_dir,
        "image_roots": config.image_roots,
        "questions": config.questions,
        "images": config.images,
    }
    for source in open_sources(config.source, **places):
        scan = source.scan()
        if not scan.entries:
            raise SourceError(f"{source.path} has no rows")
        wanted = {variant.stem(source.benchmark, config.tag): variant for variant in variants(config)}
        if official := set(wanted) & set(suites.BENCHMARKS):
            raise FolderError(f"a file may not have an official benchmark's own name: {official.pop()}")
        found.append(Table(source, scan, wanted, scan.sha256))
    return found


def published(output: Path, stem: str) -> bool:
    return (output / (stem + manifest.SUFFIX)).exists()


_SAMPLED = 16
_BYTES_A_PIXEL = {"jpeg": 0.5, "png": 2.2, "webp": 1.6}  # of degraded photographs, before base64
_SECONDS_A_MEGAPIXEL = 0.25  # one core, one image degraded and encoded, the operators' average
_SECONDS_A_MEGAPIXEL_CLEAN = 0.02


def estimate_of(config: BuildConfig, tables: Sequence[Table]) -> Estimate:
    output = Path(config.output)
    files, done, rows, count, size, seconds = [], [], 0, 0, 0.0, 0.0
    for table in tables:
        payloads = [n for n, entry in enumerate(table.scan.entries) if entry.kind == "payload"]
        missing = [stem for stem in table.wanted if not published(output, stem)]
        files += [shard_name(stem, config.writer) for stem in missing]
        done += [shard_name(stem, config.writer) for stem in table.wanted if stem not in missing]
        rows += len(table.scan.entries)
        count += len(payloads)
        if missing and payloads:
            pixels = _pixels(table, payloads)
            degraded = sum(table.wanted[stem].kind != "clean" for stem in missing)
            size += len(missing) * pixels * _BYTES_A_PIXEL[config.codec] * 4 / 3
            seconds += pixels / 1e6 * (degraded * _SECONDS_A_MEGAPIXEL + len(missing) * _SECONDS_A_MEGAPIXEL_CLEAN)
    workers = (os.cpu_count() or 1) if config.workers is None else max(1, config.workers)
    return Estimate(files, done, rows, count, round(size), seconds / workers)


def _pixels(table: Table, payloads: Sequence[int]) -> float:
    """Pixels of all images, from the headers of a few spread over the file."""
    sizes = []
    for number in payloads[:: max(1, len(payloads) // _SAMPLED)]:
        for row in islice(table.source.rows(number), 1):
            try:
                sizes += [width * height for width, height in map(images.size, table.source.images(row).parts)]
            except RowError:  # reported when its turn comes
                continue
    return sum(sizes) / max(1, len(sizes)) * len(payloads)
