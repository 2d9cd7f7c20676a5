"""Training images: a folder or webdataset shards in, the same names out, degraded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from degrade.builder.pixels import windows
from degrade.builder.settings import check_pixels, device, differences, libraries, weights
from degrade.builder.training_pixels import Maker
from degrade.builder.training_records import FORMAT, RECORDS, header, lines, shard_of
from degrade.builder.training_units import Unit, units_of
from degrade.config import ImagesConfig, check
from degrade.data import images, manifest, staging
from degrade.data.staging import FolderError
from degrade.engines import local


@dataclass
class ImagesReport:
    """What was done.

    Attributes:
        output: the folder.
        made: how many images this run has written; there: how many an earlier run had.
        failed: images that could not be used, one text each.
        notes: what else is to be said, one text each: outputs made again because they had changed or were missing, or left although their
            source is gone.
    """

    output: Path
    made: int = 0
    there: int = 0
    failed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def degrade_images(
    config: ImagesConfig,
    progress: Callable[[int, int | None], None] | None = None,
    announce: Callable[[int | None, int], None] | None = None,
) -> ImagesReport:
    """Degrade every image of a folder or of webdataset shards, each by an operator and at a severity of its own.

    The draws are those of ``degrade.RandomDegradation(mixture, p=1, seed=seed)`` with the image's name (behind a shard's name and a slash)
    as its key. What an earlier run has finished is left alone, unless it or its source is gone or has changed since.

    Args:
        config: the settings.
        progress: told the images done and, where that is known, how many there are.
        announce: told, before anything is written, how many images are left (None: not known) and how many are done.

    Raises:
        ConfigError: a setting that cannot be used.
        SourceError: a source that cannot be used.
        FolderError: an output folder that another run holds, that holds images made with other settings, whose records are damaged, or that
            is full.
    """
    check(config)
    check_pixels(config.alpha, config.max_pixels)
    device(config.device)
    begun = time.monotonic()
    source, output = Path(config.source).expanduser(), Path(config.output)
    units = units_of(source, output)
    report = ImagesReport(output)
    with staging.resumable(output), staging.locked(output), images.quiet():
        if config.overwrite:
            _clear(output, report)
        _refuse_other_settings(output, config)
        todo = _look(units, report)
        if announce:
            counts = [unit.left() for unit in todo]
            announce(None if None in counts else sum(filter(None, counts)), report.there)
        for unit in todo:
            if not config.overwrite:
                unit.refuse_foreign()
            _stage(config, unit, report, progress)
            unit.publish()
        for unit in units:
            failed = (line for line in lines(unit.records) if line["status"] == "failed")
            report.failed += [f"{unit.source}, {line['name']}: {line['reason']}" for line in failed]
        staging.remove(output / staging.FOLDER)
    report.seconds = time.monotonic() - begun
    return report


def _look(units: Sequence[Unit], report: ImagesReport) -> list[Unit]:
    """Note what earlier runs have left, and return the units in which something is to be done."""
    todo: list[Unit] = []
    changed: list[str] = []
    missing: list[str] = []
    known = {unit.records for unit in units}
    others = (shard_of(path) for path in report.output.glob(f"*{RECORDS}") if path not in known)
    gone = sorted(name for name in others if (report.output / name).exists())
    for unit in units:
        found = unit.look()
        report.there += found.there
        changed += found.changed
        missing += found.missing
        gone += found.gone
        if not found.complete:
            todo.append(unit)
    if changed:
        report.notes.append(f"made again, because they, their records or their sources had changed: {_some(changed)}")
    if missing:
        report.notes.append(f"made again, because they were missing: {_some(missing)}")
    if gone:
        report.notes.append(f"left in {report.output}, though their sources are gone: {_some(gone)}")
    return todo


def _some(names: Sequence[str], most: int = 5) -> str:
    """A few of many names.

    >>> _some(["a", "b"]), _some(["a", "b", "c"], most=1)
    ('a, b', 'a and 2 more')
    """
    rest = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _stage(config: ImagesConfig, unit: Unit, report: ImagesReport, progress: Callable[[int, int | None], None] | None) -> None:
    """Degrade what is left of a unit."""
    left, records = unit.left(), unit.records.name
    total = None if left is None else report.there + left
    with staging.Growing(unit.staged, unit.growing, unit.settle) as growing:
        number = failed = 0
        if growing.state is None:
            growing.append(records, manifest.dump(_header(config)))
            unit.begin(growing)
            growing.sync({"samples": 0, "complete": False, "source": unit.stamp})
        else:
            number = growing.state["samples"]
        maker = Maker(config)
        with closing(local.ordered(maker, windows(unit.samples(number), maker.window, lambda _: 0), config.workers)) as done:
            for made in chain.from_iterable(done):
                unit.put(growing, made)
                for line in made.lines:
                    growing.append(records, manifest.dump(line))
                    report.made += line["status"] == "ok"
                    failed += line["status"] == "failed"
                number += 1
                growing.mark({"samples": number, "complete": False, "source": unit.stamp})
                if progress:
                    progress(report.there + report.made + failed, total)
        unit.end(growing)
        growing.sync({"samples": number, "complete": True, "source": unit.stamp})


def _settings(config: ImagesConfig) -> dict[str, Any]:
    """What decides the bytes of an image, apart from its source."""
    found = {"seed": config.seed, "mixture": weights(config.mixture), "codec": config.codec, "quality": config.quality}
    return found | {"orientation": config.orientation, "alpha": config.alpha, "max_pixels": config.max_pixels}


def _header(config: ImagesConfig) -> dict[str, Any]:
    facts = {"configuration": _settings(config), "libraries": libraries()}
    moving = {"configuration": _settings(config), "codecs": images.codec_versions()}
    return {"format": FORMAT, **facts, "fingerprint": manifest.fingerprint(moving)}


def _all_records(output: Path) -> list[Path]:
    """Published records, and staged ones as far as a journal says that they can be read."""
    staged = output.glob(f"{staging.FOLDER}/*/*{RECORDS}")
    return [*output.glob(f"*{RECORDS}"), *(path for path in staged if staging.journal(path.parent).lengths.get(path.name))]


def _refuse_other_settings(output: Path, config: ImagesConfig) -> None:
    asked = _settings(config) | images.codec_versions()
    for path in _all_records(output):
        head = header(path)
        held = head["configuration"] | {name: head["libraries"].get(name, "none") for name in images.codec_versions()}
        if differing := differences(held, asked):
            raise FolderError(
                f"{output} holds images made with other settings: {'; '.join(differing)}. "
                "Choose another output folder, or start anew with overwrite=true"
            )


def _clear(output: Path, report: ImagesReport) -> None:
    """Remove what earlier runs have left in a folder, and nothing else."""
    published, staged = sorted(output.glob(f"*{RECORDS}")), list(output.glob(f"{staging.FOLDER}/*/*{RECORDS}"))
    for path in [*published, *filter(_has_header, staged)]:
        header(path)  # before anything is removed
    for path in [*published, *staged]:
        bad: list[int] = []
        if path.name == RECORDS:
            for line in lines(path, bad=bad):
                if not _leads_out(line["name"]):
                    (output / line["name"]).unlink(missing_ok=True)
        elif path in published:
            (output / shard_of(path)).unlink(missing_ok=True)
        if bad and path in published:
            report.notes.append(f"damaged lines of {path}: {len(bad)}; images that only they named are left, unless the source has them")
    staging.remove(output / staging.FOLDER)
    for path in published:
        path.unlink()


def _leads_out(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts


def _has_header(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().endswith(b"\n")
