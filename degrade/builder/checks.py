"""A build's folder held against its own records and its sources."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from degrade.builder import training_records
from degrade.builder.again import ReplayError, remake, reopen
from degrade.builder.folder import VLMEVALKIT_FILE, sha256
from degrade.builder.report import REPORT_FILE, read_report
from degrade.data import cells, images, manifest, staging
from degrade.data.errors import RowError, SourceError
from degrade.data.rows import Encoded, Row, Source
from degrade.data.sources import SUFFIXES
from degrade.data.sources.cell_images import image_cell
from degrade.data.staging import FolderError
from degrade.data.writers import reading

MOST_PROBLEMS = 20
"""Of each shard; further ones would say the same."""


@dataclass
class VerifyReport:
    """What was checked and what was found.

    Attributes:
        problems: one line each, naming file, row and column, a benchmark whose files were not all written, or a source that is another.
        shards, rows, images, replayed: how many were looked at.
    """

    problems: list[str] = field(default_factory=list)
    shards: int = 0
    rows: int = 0
    images: int = 0
    replayed: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(
    folder: str | Path, sample: int = 20, source: str | Path | None = None, progress: Callable[[int, int], None] | None = None
) -> VerifyReport:
    """Check hashes, counts, order, text cells against the source, images against the manifest, and make a sample of images again.

    Of the output of ``degrade images`` hashes alone are checked, and those of its source where that is given. Where the source of a build
    has changed, the hashes of its files alone are.

    Args:
        folder: of a build, or of degraded training images.
        sample: how many images of each shard to make again.
        source: where the source is now; by default where the build found it.
        progress: told rows done and rows in all, a benchmark's row counting once (of training images: files).

    Raises:
        SourceError: if the folder holds no build, or the source is not there.
    """
    folder = Path(folder)
    if not (folder / REPORT_FILE).exists():
        records = sorted(folder.glob(f"*{training_records.RECORDS}"))
        if not records:
            raise SourceError(f"{folder} holds no build: neither {REPORT_FILE} nor a file *{manifest.SUFFIX} is there")
        if not any(map(_is_a_builds, records)):
            return _verify_training(folder, records, Path(source) if source else None, progress)
    report = VerifyReport()
    try:
        found = read_report(folder)
    except FolderError as error:
        report.problems.append(str(error))
        return report
    benchmarks: dict[str, Any] = found["benchmarks"]
    report.problems += [*_unknown(folder, benchmarks), *_vlmevalkit(folder, found)]
    done, total = 0, sum(entry["rows"] for entry in benchmarks.values() if entry["files"])
    for benchmark, entry in benchmarks.items():
        if not entry.get("complete", True):
            failed = f"{len(entry['failed'])} of {entry['rows']} rows could not be degraded, so that its files were not written"
            report.problems.append(f"{benchmark} is not complete: {failed}; they are listed in {REPORT_FILE}")
        shards = [shard for stem in entry["files"] if (shard := _open(folder, stem, entry["files"][stem], sample, report))]
        if not shards:
            continue
        table = reopen(folder / (shards[0].stem + manifest.SUFFIX), shards[0].head, source)
        if (digest := table.scan().sha256) != entry["sha256"]:
            report.problems.append(
                f"{table.path} is not the source that {benchmark} was made from: its sha256 is {digest[:12]}..., {REPORT_FILE} says "
                f"{entry['sha256'][:12]}.... Nothing was compared with it; source= names another"
            )
            continue
        with images.quiet():
            for row in table.rows():
                source_images = _Once(table, row)
                for shard in shards:
                    shard.step(row, source_images)
                done += 1
                if progress:
                    progress(done, total)
        for shard in shards:
            shard.finish()
    return report


def _verify_training(
    folder: Path, records: Sequence[Path], source: Path | None, progress: Callable[[int, int], None] | None
) -> VerifyReport:
    """Hold the output of ``degrade images``, and its source if given, against the records' hashes."""
    if source and not source.exists():
        raise SourceError(f"source: there is no {source}")
    base = source if source is None or source.is_dir() else source.parent
    report = VerifyReport()
    wanted: list[tuple[Path, str, str]] = []  # file, its sha256, and the records that say so
    for path in records:
        training_records.header(path)
        report.shards += 1
        last = ""
        bad: list[int] = []
        for line in training_records.lines(path, bad=bad):
            last = line["status"]
            report.rows += last != "shard"
            report.images += last == "ok"
            if last == "failed":
                name = line["name"] if path.name == training_records.RECORDS else f"{training_records.shard_of(path)}, {line['name']}"
                report.problems.append(f"{name} could not be degraded: {line['reason']}")
            elif last == "shard" or path.name == training_records.RECORDS:
                wanted.append((folder / line["name"], line["sha256"], path.name))
                if base:
                    wanted.append((base / line["name"], line["source_sha256"], path.name))
        report.problems += [f"{path.name}, line {number}: cut off, or not a line of `degrade images`" for number in bad[:MOST_PROBLEMS]]
        if path.name != training_records.RECORDS and last != "shard":
            report.problems.append(f"{path.name}: cut off, its last line should be that of the shard")
    known = {training_records.shard_of(path) for path in records}
    shards = sorted(path.name for path in folder.glob("*.tar") if folder / training_records.RECORDS not in records)
    report.problems += [f"{name} has no records ({Path(name).stem}{manifest.SUFFIX})" for name in shards if name not in known]
    for done, (path, digest, said_by) in enumerate(wanted, start=1):
        if not path.is_file():
            report.problems.append(f"{path} is missing")
        elif (found := sha256(path)) != digest:
            report.problems.append(f"{path}: its sha256 is {found[:12]}..., {said_by} says {digest[:12]}...")
        if progress:
            progress(done, len(wanted))
    return report


def _is_a_builds(path: Path) -> bool:
    try:
        manifest.header(path)
    except SourceError:
        return False
    return True


def _unknown(folder: Path, benchmarks: dict[str, Any]) -> Iterator[str]:
    """Shards and manifests of the folder that its report does not know."""
    known = {name for entry in benchmarks.values() for file in entry["files"].values() for name in file["files"]}
    for path in sorted(folder.iterdir()):
        if path.name.endswith((manifest.SUFFIX, *SUFFIXES)) and path.name not in known:
            yield f"{path.name} is there, but not in {REPORT_FILE}: it is of an unfinished build, or of none"


def _vlmevalkit(folder: Path, found: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the data sets of VLMEvalKit's configuration."""
    if found["configuration"]["writer"] != "tsv":
        return
    path = folder / VLMEVALKIT_FILE
    wanted = [stem for entry in found["benchmarks"].values() for stem in entry["files"]]
    if not path.exists():
        yield f"{path.name} is missing: the build's command, given again, writes it"
        return
    try:
        named = {stem: entry["dataset"] for stem, entry in staging.read_json(path)["data"].items()}
    except FolderError as error:
        yield str(error)
        return
    except (KeyError, TypeError, AttributeError):
        yield f"{path.name} is no configuration of VLMEvalKit, which has data: {{name: {{class, dataset}}, ...}}"
        return
    if missing := [stem for stem in wanted if named.get(stem) != stem]:
        yield f"{path.name} does not name {', '.join(missing)}"
    if more := [stem for stem in named if stem not in wanted]:
        yield f"{path.name} names {', '.join(more)}, which {REPORT_FILE} does not"


def _open(folder: Path, stem: str, entry: dict[str, Any], sample: int, report: VerifyReport) -> _Shard | None:
    """Check a shard's files as a whole, and open it if it can be read."""
    report.shards += 1
    for name, file in entry["files"].items():
        path = folder / name
        if not path.exists():
            report.problems.append(f"{name} is missing")
            return None
        if (digest := sha256(path)) != file["sha256"]:
            report.problems.append(f"{name}: its sha256 is {digest[:12]}..., {REPORT_FILE} says {file['sha256'][:12]}...")
    path = folder / (stem + manifest.SUFFIX)
    try:
        head = manifest.header(path)
    except SourceError as error:
        report.problems.append(str(error))
        return None
    if head["fingerprint"] != entry["fingerprint"]:
        report.problems.append(f"{path.name}: its fingerprint is not the one in {REPORT_FILE}")
    ok = entry["counts"].get("ok", 0)
    chosen = set(random.Random(stem).sample(range(ok), min(sample, ok)))
    shards = [folder / name for name in entry["files"] if name != path.name]
    return _Shard(stem, head, path, shards, chosen, report)


AROUND = 40
"""Characters shown on either side of where two texts begin to differ."""


def _differing(found: str | None, wanted: str | None) -> str:
    """Two cells that differ; of long ones, what stands around the first difference.

    >>> _differing("2.5", "2.50"), _differing("2", None)
    ("'2.5' where the source has '2.50'", "'2' where the source has None")
    """
    one, two = found or "", wanted or ""
    at = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    place = f"from character {at} on (the first is 0), " if max(len(one), len(two)) > 2 * AROUND else ""
    return f"{place}{_piece(found, at)} where the source has {_piece(wanted, at)}"


def _piece(text: str | None, at: int) -> str:
    if text is None or len(text) <= 2 * AROUND:
        return repr(text)
    start, end = max(0, at - AROUND), at + AROUND
    return f"{'...' if start else ''}{text[start:end]!r}{'...' if end < len(text) else ''}"


class _Once:
    """A source row's images, read when first asked for."""

    def __init__(self, table: Source, row: Row) -> None:
        self._table, self._row = table, row
        self.columns = table.columns
        self._images: Encoded | None = None

    def parts(self) -> tuple[bytes, ...]:
        if self._images is None:
            self._images = self._table.images(self._row)
        return self._images.parts

    def cell(self) -> str:
        return image_cell(self._table, self._row)


class _Shard:
    """One shard and its manifest, read side by side with the source."""

    def __init__(self, stem: str, head: dict[str, Any], lines: Path, shards: list[Path], chosen: set[int], report: VerifyReport) -> None:
        self.stem, self.head, self._chosen, self._report = stem, head, chosen, report
        self._lines = groupby(manifest.lines(lines), key=lambda line: line["row"])
        self._rows = reading.rows(shards)
        self._hashes: dict[int, tuple[str, list[str]]] = {}  # index and hashes of the payload rows so far
        self._awaited: list[tuple[int, int, list[str]]] = []  # references to rows further down: row, payload, hashes in the shard
        self._ordinal = 0
        self._problems = 0
        self._stopped = False

    def _problem(self, text: str, *, stop: bool = False) -> None:
        self._problems += 1
        if self._problems <= MOST_PROBLEMS:
            self._report.problems.append(f"{self.stem}: {text}")
        self._stopped |= stop

    def step(self, row: Row, source: _Once) -> None:
        """Check one row of the source."""
        if self._stopped:
            return
        try:
            self._step(row, source)
        except (SourceError, ReplayError, RowError) as error:
            self._problem(str(error), stop=isinstance(error, SourceError))

    def _step(self, row: Row, source: _Once) -> None:
        number, group = next(self._lines, (-1, iter(())))
        lines = list(group)
        where = f"row {row.number}, index {row.index!r}"
        if number != row.number or lines[0]["index"] != row.index:
            self._problem(f"{where}: the manifest has no line for it in its place", stop=True)
            return
        status = lines[0]["status"]
        if status == "skipped":
            return
        found = next(self._rows, None)
        texts = {name: cell for name, cell in zip(source.columns, row.cells, strict=True) if name != "image"}
        if found is None or found.texts.get("index") != row.index:
            there = "the shard ends before it" if found is None else f"index {found.texts.get('index')!r} stands in its place"
            self._problem(f"{where}: {there}", stop=True)
            return
        self._report.rows += 1
        for name in texts.keys() | found.texts.keys():
            if texts.get(name) != found.texts.get(name):
                self._problem(f"{where}, column {name}: {_differing(found.texts.get(name), texts.get(name))}")
        hashes = [hashlib.sha256(data).hexdigest() for data in found.images]
        if status == "ok":
            self._images(where, row.number, lines, hashes, source)
        elif status == "reference":
            self._awaited.append((row.number, lines[0]["payload"], hashes if found.cell is None else [found.cell]))
        elif status == "empty" and (hashes or not cells.is_empty(found.cell or "")):
            self._problem(f"{where}: an image where the source has none")
        elif status == "kept" and found.cell not in (None, source.cell()):
            self._problem(f"{where}: the image cell was to be kept and is another")

    def _images(self, where: str, number: int, lines: list[dict[str, Any]], hashes: list[str], source: _Once) -> None:
        self._report.images += len(hashes)
        self._hashes[number] = (lines[0]["index"], hashes)
        if hashes != [line["sha256"] for line in lines]:
            self._problem(f"{where}: the image is not the one in the manifest")
        for part, line in enumerate(lines):
            if self._ordinal in self._chosen:
                self._report.replayed += 1
                try:
                    remake(self.head, line, source.parts()[part])
                except ReplayError as error:
                    self._problem(str(error))
            self._ordinal += 1

    def finish(self) -> None:
        """Check what is left when the source is at its end."""
        if self._stopped:
            return
        for number, payload, found in self._awaited:
            index, hashes = self._hashes.get(payload, ("", []))
            if found not in ([index], hashes):
                self._problem(f"row {number}: it does not share the image of row {payload}")
        try:
            rest: Iterator[object] = iter((next(self._lines, None), next(self._rows, None)))
            if any(item is not None for item in rest):
                self._problem("there is more in it than in the source")
        except SourceError as error:
            self._problem(str(error))
