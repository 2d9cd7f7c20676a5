"""Sources with what their first pass found and the files wanted of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from degrade import suites
from degrade.builder.report import REPORT_FILE, Estimate, read_report
from degrade.builder.settings import device, shard_name, variants, weights
from degrade.config import BuildConfig
from degrade.data import images, manifest, staging
from degrade.data.errors import RowError, SourceError
from degrade.data.rows import Scan, Source
from degrade.data.sources import open_sources
from degrade.data.staging import FolderError
from degrade.severity import intensity_of
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
            others = f" of {source.benchmark}: all {scan.left_out} are of another benchmark" if scan.left_out else ""
            raise SourceError(f"{source.path} has no rows{others}")
        wanted = {variant.stem(source.benchmark, config.tag): variant for variant in variants(config)}
        if official := set(wanted) & set(suites.BENCHMARKS):
            raise FolderError(f"a file may not have an official benchmark's own name: {official.pop()}")
        found.append(Table(source, scan, wanted, scan.sha256))
    return found


PUBLISHED = "published.json"
"""In the staging folder: what this run, and interrupted ones before it, have published, until ``build.json`` says so."""


def note_published(output: Path, stem: str, files: Mapping[str, int]) -> None:
    """Record a stem's files, with their sizes in bytes; overwrites what is known of it."""
    path = output / staging.FOLDER / PUBLISHED
    staging.write_json(path, {**newly_published(output), stem: dict(files)})


def newly_published(output: Path) -> dict[str, dict[str, int]]:
    """By stem, the files that ``build.json`` does not tell of yet, with their sizes in bytes."""
    path = output / staging.FOLDER / PUBLISHED
    return staging.read_json(path) if path.exists() else {}


def recorded(output: Path) -> dict[str, dict[str, int]]:
    """By stem, all files that a folder is said to hold, with their sizes in bytes."""
    found: dict[str, dict[str, int]] = {}
    for entry in read_report(output)["benchmarks"].values() if (output / REPORT_FILE).exists() else ():
        found |= {stem: {name: file["bytes"] for name, file in of_stem["files"].items()} for stem, of_stem in entry["files"].items()}
    return found | newly_published(output)


def published(output: Path, stem: str, known: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether manifest and shards of a stem are there, each of the size that `known` (:func:`recorded`) says."""
    files = known.get(stem, {})
    whole = all((output / name).exists() and (output / name).stat().st_size == size for name, size in files.items())
    return whole and stem + manifest.SUFFIX in files and len(files) > 1


_SAMPLED = 16
# Measured on the sample and on photographs of a megapixel, on one core of a server of 2023.
_BYTES_A_PIXEL = {"jpeg": 0.35, "png": 1.3, "webp": 0.9}  # of degraded photographs, before base64
_SECONDS_AN_IMAGE = 0.001  # of any size
_SECONDS_A_MEGAPIXEL_ENCODED = 0.012
_SECONDS_A_MEGAPIXEL = 0.04  # degraded by an operator
_SECONDS_A_MEGAPIXEL_OF_MEAN_SHIFT = 1.2  # times the intensity: the radius grows with it


def estimate_of(config: BuildConfig, tables: Sequence[Table]) -> Estimate:
    output = Path(config.output)
    known = {} if config.overwrite else recorded(output)
    files, done, rows, count, size, seconds = [], [], 0, 0, 0.0, 0.0
    shares, on_cpu = weights(config.mixture), device(config.device).type == "cpu"
    for table in tables:
        payloads = [n for n, entry in enumerate(table.scan.entries) if entry.kind == "payload"]
        missing = [stem for stem in table.wanted if not published(output, stem, known)]
        files += [shard_name(stem, config.writer) for stem in missing]
        done += [shard_name(stem, config.writer) for stem in table.wanted if stem not in missing]
        rows += len(table.scan.entries)
        count += len(payloads)
        size += len(missing) * table.scan.text_bytes
        if missing and payloads:
            pixels = _pixels(table, payloads)
            size += len(missing) * pixels * _BYTES_A_PIXEL[config.codec] * 4 / 3
            degrading = sum(_degrading(table.wanted[stem], shares) for stem in missing) if on_cpu else 0.0
            seconds += pixels / 1e6 * (degrading + len(missing) * _SECONDS_A_MEGAPIXEL_ENCODED)
            seconds += len(payloads) * len(missing) * _SECONDS_AN_IMAGE
    cores = os.cpu_count() or 1
    workers = cores if config.workers is None else min(cores, max(1, config.workers))
    return Estimate(files, done, rows, count, round(size), seconds / workers)


def _degrading(variant: Variant, shares: Mapping[str, float]) -> float:
    """Seconds a megapixel."""
    if variant.severity is None:
        return 0.0
    slow = variant.operator == "mean_shift" if variant.operator else shares.get("mean_shift", 0.0) / sum(shares.values())
    return slow * _SECONDS_A_MEGAPIXEL_OF_MEAN_SHIFT * intensity_of(variant.severity) + (1 - slow) * _SECONDS_A_MEGAPIXEL


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
