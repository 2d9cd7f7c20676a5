"""MMD-Bench from benchmarks: source -> decode -> degrade -> encode -> write, and any image of it again.

With ``preview.py`` the only place that knows both pixels and files.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.metadata
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import degrade
from degrade import mixture, suites
from degrade.config import BuildConfig, ConfigError, check
from degrade.data import cells, images, manifest, staging, text
from degrade.data.errors import RowError, SourceError
from degrade.data.rows import Row, Scan, Source
from degrade.data.sources import open_sources
from degrade.data.staging import FolderError
from degrade.engines import local
from degrade.severity import intensity_of
from degrade.suites import Variant

PIXELS_AT_ONCE = 1 << 24
"""Pixels degraded in one call: bounds memory where images are large."""

REPORT_FILE, VLMEVALKIT_FILE = "build.json", "vlmevalkit.json"

Progress = Callable[[int, int], None]
"""Told the rows done and the rows there are, every variant of a row counting once."""


class ReplayError(ValueError):
    """An image that cannot be made again; the message says why."""


@dataclass(frozen=True)
class BadRow:
    """A row that could not be used."""

    benchmark: str
    file: str
    row: int
    index: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, row {self.row + 1}, index {self.index!r}: {self.reason}"


@dataclass(frozen=True)
class Estimate:
    """What a build will write, roughly.

    Attributes:
        files: names of the shards that are not there yet; done: of those that are.
        rows, images: in the sources.
        bytes, seconds: for the shards that are not there yet, guessed from the sizes of a few images.
    """

    files: list[str]
    done: list[str]
    rows: int
    images: int
    bytes: int
    seconds: float


@dataclass
class BuildReport:
    """What a build did.

    Attributes:
        output: its folder.
        files: the shards that are there now.
        rows, images: how many rows were read and images made in this run (an earlier run's, if it was resumed, not counted).
        failed: rows that could not be used, of all sources.
        empty: rows without an image, kept as they are.
        unpublished: benchmarks whose files were not written because of failed rows.
        stale: folders in which VLMEvalKit keeps images of files of these names: remove them if they were unpacked from another build.
    """

    output: Path
    files: list[Path] = field(default_factory=list)
    rows: int = 0
    images: int = 0
    failed: list[BadRow] = field(default_factory=list)
    empty: list[BadRow] = field(default_factory=list)
    unpublished: list[str] = field(default_factory=list)
    stale: list[Path] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether all that was asked for was done."""
        return not self.failed


# ------------------------------------------------------------------------------------------------------------------- settings


def variants(config: BuildConfig) -> list[Variant]:
    """The files of one benchmark."""
    found: list[Variant] = []
    if "mixed" in config.variants:
        found += [Variant("mixed", severity) for severity in config.severities]
    if "per_operator" in config.variants:
        operators = list(degrade.OPERATORS) if config.operators is None else config.operators
        found += [Variant("operator", severity, name) for name in operators for severity in config.per_operator_severities]
    if "clean" in config.variants:
        found.append(Variant("clean"))
    return found


def weights(config: BuildConfig) -> dict[str, float]:
    """The mixture's weights, in the operators' order: the order in which they were written must not decide anything."""
    chosen = mixture.MIXTURES[config.mixture] if isinstance(config.mixture, str) else config.mixture
    return {name: float(chosen[name]) for name in degrade.OPERATORS if chosen.get(name)}


def settings(config: BuildConfig) -> dict[str, Any]:
    """What decides the bytes of a shard, apart from its source and variant."""
    found: dict[str, Any] = {"seed": config.seed, "mixture": weights(config), "codec": config.codec}
    if config.codec == "jpeg":
        found["quality"] = config.quality
    found |= {"orientation": config.orientation, "alpha": config.alpha, "max_pixels": config.max_pixels, "on_error": config.on_error}
    found |= {"writer": config.writer, "tag": config.tag}
    if config.writer == "webdataset":
        found["shard_rows"] = config.shard_rows
    return found


def libraries() -> dict[str, str]:
    """Versions of all that takes part."""
    names = ("torch", "numpy")
    return {"degrade": degrade.__version__, **{name: importlib.metadata.version(name) for name in names}, **images.codec_versions()}


def _check(config: BuildConfig) -> None:
    check(config)
    if config.alpha != "drop":
        try:
            images.colour(config.alpha)
        except ValueError as error:
            raise ConfigError(str(error)) from error
    if config.tag and not all(c.isascii() and (c.isalnum() or c == ".") for c in config.tag):
        raise ConfigError(f"tag: got {config.tag!r}, want letters, digits and dots only")
    if config.max_pixels > images.MAX_PIXELS:
        raise ConfigError(f"max_pixels: got {config.max_pixels}, want at most {images.MAX_PIXELS}, the decoder's own limit")
    if config.engine != "local":
        raise ConfigError(f"engine={config.engine} is not there yet: use engine=local")
    if config.writer != "tsv":
        raise ConfigError(f"writer={config.writer} is not there yet: use writer=tsv")
    stems = [variant.stem("", config.tag) for variant in variants(config)]
    if not stems:
        raise ConfigError("nothing to write: variants, severities or operators are empty")
    if twice := sorted({stem for stem in stems if stems.count(stem) > 1}):
        raise ConfigError(f"two files would have the same name ...{twice[0]}: name each severity once")


def _sources(config: BuildConfig) -> list[Source]:
    return open_sources(config.source, data_dir=config.data_dir, image_roots=config.image_roots)


# ---------------------------------------------------------------------------------------------------------------------- build


@dataclass(frozen=True)
class _Table:
    """One source with what its scan found and the files wanted of it."""

    source: Source
    scan: Scan
    wanted: dict[str, Variant]  # by stem
    sha256: str

    @property
    def benchmark(self) -> str:
        return self.source.benchmark


def estimate(config: BuildConfig) -> Estimate:
    """What :func:`build` would write; writes nothing."""
    _check(config)
    with images.quiet():
        return _estimate(config, _tables(config))


def build(config: BuildConfig, progress: Progress | None = None, announce: Callable[[Estimate], None] | None = None) -> BuildReport:
    """Degrade every source of a configuration into its output folder.

    A build that was interrupted goes on where it stopped; files that are there already are left alone. The same configuration gives the
    same bytes, whatever the workers, the device, and the interruptions.

    Args:
        config: the settings.
        progress: told how far it is, after every row.
        announce: told what will be written, before anything is.

    Returns:
        The report. Look at `failed`: with ``on_error="fail"`` a benchmark with bad rows is not written.

    Raises:
        ConfigError, ValueError: a setting that cannot be used.
        SourceError: a source that cannot be used.
        FolderError: an output folder that another build holds, that holds a build with other settings, or that is full.
    """
    _check(config)
    output = Path(config.output)
    begun = time.monotonic()
    report = BuildReport(output)
    try:
        with staging.locked(output), images.quiet():
            tables = _tables(config)
            if config.overwrite:
                _clear(output)
            _refuse_other_settings(output, config, tables)
            if announce:
                announce(_estimate(config, tables))
            staged = output / staging.FOLDER
            staged.mkdir(exist_ok=True)
            staging.write_json(staged / "settings.json", _facts(config, {t.benchmark: t.sha256 for t in tables}))
            done, total = 0, sum(len(table.scan.entries) for table in tables)
            for table in tables:

                def rows_done(rows: int, before: int = done) -> None:
                    if progress:
                        progress(before + rows, total)

                _build_table(config, table, report, rows_done)
                done += len(table.scan.entries)
            report.seconds = time.monotonic() - begun
            _finish(config, tables, report)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FolderError(f"no space left in {output}. What is done is kept: make room, and the same command goes on") from error
        raise
    return report


def _tables(config: BuildConfig) -> list[_Table]:
    found = []
    for source in _sources(config):
        scan = source.scan()
        if not scan.entries:
            raise SourceError(f"{source.path} has no rows")
        wanted = {variant.stem(source.benchmark, config.tag): variant for variant in variants(config)}
        if official := set(wanted) & set(suites.BENCHMARKS):
            raise FolderError(f"a file may not have an official benchmark's own name: {official.pop()}")
        found.append(_Table(source, scan, wanted, scan.sha256))
    return found


def _published(output: Path, stem: str) -> bool:
    return (output / (stem + manifest.SUFFIX)).exists()


def _facts(config: BuildConfig, sources: Mapping[str, str]) -> dict[str, Any]:
    return {"settings": settings(config), "codecs": images.codec_versions(), "degrade": degrade.__version__, "sources": dict(sources)}


def _refuse_other_settings(output: Path, config: BuildConfig, tables: Sequence[_Table]) -> None:
    """Raise `FolderError` if the folder holds work of a build whose bytes would differ."""
    asked = _facts(config, {table.benchmark: table.sha256 for table in tables})
    held: list[dict[str, Any]] = []
    path = output / staging.FOLDER / "settings.json"
    if path.exists():
        held.append(staging.read_json(path))
    for path in sorted(output.glob("*" + manifest.SUFFIX)):
        head = manifest.header(path)
        codecs = {name: head["libraries"].get(name, "none") for name in images.codec_versions()}
        facts = {"settings": head["configuration"], "codecs": codecs, "degrade": head["libraries"]["degrade"]}
        held.append({**facts, "sources": {head["benchmark"]: head["source"]["sha256"]}})
    differing: dict[str, None] = {}
    for facts in held:
        for group in ("settings", "codecs"):
            for name in sorted(set(facts[group]) | set(asked[group])):
                old, new = facts[group].get(name), asked[group].get(name)
                if old != new:
                    differing[f"{name} (there: {old}, now: {new})"] = None
        if facts["degrade"] != asked["degrade"]:
            differing[f"version of degrade (there: {facts['degrade']}, now: {asked['degrade']})"] = None
        for benchmark, digest in facts["sources"].items():
            if asked["sources"].get(benchmark, digest) != digest:
                differing[f"the source of {benchmark} (its sha256 was {digest[:12]}..., is {asked['sources'][benchmark][:12]}...)"] = None
    if differing:
        raise FolderError(
            f"{output} holds a build made with other settings: {'; '.join(differing)}. "
            "Choose another output folder, or start anew with overwrite=true"
        )


def _clear(output: Path) -> None:
    """Remove what builds have left in a folder, and nothing else."""
    staging.remove(output / staging.FOLDER)
    for path in output.glob("*" + manifest.SUFFIX):
        stem = manifest.header(path)["stem"]
        for shard in [output / f"{stem}.tsv", output / f"{stem}.parquet", *output.glob(f"{stem}-[0-9][0-9][0-9][0-9][0-9][0-9].tar")]:
            shard.unlink(missing_ok=True)
        path.unlink()
    for name in (REPORT_FILE, VLMEVALKIT_FILE):
        (output / name).unlink(missing_ok=True)


@dataclass
class _State:
    """How far a pass over a source has come."""

    rows: int = 0
    bad: dict[int, str] = field(default_factory=dict)  # reason by row number
    complete: bool = False

    def plain(self) -> dict[str, Any]:
        return {"rows": self.rows, "bad": list(self.bad.items()), "complete": self.complete}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> _State:
        return cls(plain["rows"], {int(number): reason for number, reason in plain["bad"]}, plain["complete"])


def _build_table(config: BuildConfig, table: _Table, report: BuildReport, progress: Callable[[int], None]) -> None:
    """Make what is missing of one source's files."""
    output, folder = Path(config.output), Path(config.output) / staging.FOLDER / table.benchmark
    known = staging.journal(folder)
    if known.state is not None and known.state["complete"]:
        _publish(config, table, folder, _State.of(known.state))
    missing = [stem for stem in table.wanted if not _published(output, stem)]
    # Files that an earlier run has begun go on together from where they are; further ones then need a pass of their own.
    begun = [stem for stem in missing if _file(stem) in known.lengths and not known.state["complete"]]
    for stems in filter(None, (begun, [stem for stem in missing if stem not in begun])):
        if foreign := [stem for stem in stems if (output / _file(stem)).exists()]:
            raise FolderError(f"{output / _file(foreign[0])} is there without a manifest, so it is not from a build: move it away")
        state = _pass(config, table, stems, folder, report, progress)
        _report_rows(config, table, state, report)
        if state.bad and config.on_error == "fail":
            report.unpublished.append(table.benchmark)
            staging.remove(folder)
            return
        _publish(config, table, folder, state)
    if not missing:
        _report_rows(config, table, None, report)
        progress(len(table.scan.entries))


def _file(stem: str) -> str:
    return stem + ".tsv"


def _pass(
    config: BuildConfig, table: _Table, stems: Sequence[str], folder: Path, report: BuildReport, progress: Callable[[int], None]
) -> _State:
    """Read a source from where the journal stands to its end, and stage the files named."""
    growing = staging.Growing(folder, [name for stem in stems for name in (_file(stem), stem + manifest.SUFFIX)])
    try:
        if growing.state is None:
            state = _State()
            for stem in stems:
                growing.append(_file(stem), text.line(table.source.columns))
                growing.append(stem + manifest.SUFFIX, manifest.dump(_header(config, table, stem)))
        else:
            state = _State.of(growing.state)
        progress(state.rows)
        maker = _Maker(config, table, {stem: table.wanted[stem] for stem in stems})
        if config.on_error == "fail" and (state.bad or any(entry.kind == "broken" for entry in table.scan.entries)):
            maker.only_decode.set()
        for row, made in local.ordered(maker, table.source.rows(state.rows), config.workers):
            _emit(config, table, stems, growing, state, row, made)
            if state.bad and config.on_error == "fail":
                maker.only_decode.set()
            state.rows += 1
            report.rows += 1
            report.images += len(made) if isinstance(made, list) else 0
            if growing.due():
                growing.sync(state.plain())
            progress(state.rows)
        _find_late(table, state)
        state.complete = not (state.bad and config.on_error == "fail")
        growing.sync(state.plain())
    finally:
        growing.close()
    return state


def _find_late(table: _Table, state: _State) -> None:
    """Rows that share an image further down which then turned out bad are bad too."""
    for number, entry in enumerate(table.scan.entries):
        if entry.kind == "reference" and entry.payload in state.bad and number not in state.bad:
            state.bad[number] = _shared_reason(table, entry.payload, state)


def _shared_reason(table: _Table, payload: int, state: _State) -> str:
    return f"it shares the image of index {table.scan.entries[payload].index!r}, which cannot be used: {state.bad[payload]}"


def _emit(
    config: BuildConfig,
    table: _Table,
    stems: Sequence[str],
    growing: staging.Growing,
    state: _State,
    row: Row,
    made: list[_Image] | str | None,
) -> None:
    """Add one row to every staged file."""
    entry = table.scan.entries[row.number]
    if entry.index != row.index:
        raise SourceError(f"{table.source.path} has changed while it was being read")
    column = table.source.columns.index("image")
    base = {"row": row.number, "index": row.index}
    reason = entry.reason if entry.kind == "broken" else made if isinstance(made, str) else ""
    if entry.kind == "reference" and entry.payload in state.bad:
        reason = _shared_reason(table, entry.payload, state)
    if reason:
        state.bad[row.number] = reason
        if config.on_error == "fail":
            return
    for stem in stems:
        cell, entries = row.cells[column], [base]
        if reason:
            entries = [{**base, "status": _STATUS[config.on_error], "reason": reason}]
        elif entry.kind == "reference":
            cell = table.scan.entries[entry.payload].index  # VLMEvalKit does not follow chains
            entries = [{**base, "status": "reference", "payload": entry.payload}]
        elif entry.kind == "empty":
            entries = [{**base, "status": "empty"}]
        elif isinstance(made, list):
            if not made[0].variants:  # only decoded, because the build has failed already
                return
            cell = cells.write([image.variants[stem].data for image in made], made[0].style)
            entries = [{**base, "status": "ok", **image.line(stem)} for image in made]
        if not (reason and config.on_error == "skip"):
            growing.append(_file(stem), text.line([*row.cells[:column], cell, *row.cells[column + 1 :]]))
        for line in entries:
            growing.append(stem + manifest.SUFFIX, manifest.dump(line))


_STATUS = {"skip": "skipped", "keep": "kept"}


# --------------------------------------------------------------------------------------------------------------------- pixels


@dataclass(frozen=True)
class _Encoded:
    """One image of one file."""

    data: bytes
    record: dict[str, Any] | None


@dataclass(frozen=True)
class _Image:
    """One image of a row, in all its variants."""

    key: str
    part: int | None
    style: cells.Style
    size: tuple[int, int]
    source_sha256: str
    variants: dict[str, _Encoded]  # by stem

    def line(self, stem: str) -> dict[str, Any]:
        encoded = self.variants[stem]
        part = {} if self.part is None else {"part": self.part}
        hashes = {"source_sha256": self.source_sha256, "sha256": hashlib.sha256(encoded.data).hexdigest()}
        return {"key": self.key, **part, **hashes, "size": list(self.size), "record": encoded.record}


class _Maker:
    """Makes all variants of a row's images; called from several threads.

    Returns the row with its images, or with the reason why it has none (a text), or with None where it has none of its own.
    """

    def __init__(self, config: BuildConfig, table: _Table, wanted: Mapping[str, Variant]) -> None:
        self.config, self.table, self.wanted = config, table, wanted
        self.weights = weights(config)
        self.device = device(config.device)
        self.only_decode = threading.Event()

    def __call__(self, row: Row) -> tuple[Row, list[_Image] | str | None]:
        if self.table.scan.entries[row.number].kind != "payload":
            return row, None
        try:
            made: list[_Image] | str = self._images(row)
        except RowError as error:
            made = str(error)
        if self.config.on_error == "keep" and isinstance(made, str):
            return row, made
        column = self.table.source.columns.index("image")  # the original images are done with: rows in flight need not hold them
        return replace(row, cells=(*row.cells[:column], "", *row.cells[column + 1 :])), made

    def _images(self, row: Row) -> list[_Image]:
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

    def _image(self, data: bytes, key: str, part: int | None, operator: str, style: cells.Style) -> _Image:
        config = self.config
        image = images.decode(data, orientation=config.orientation, alpha=config.alpha, max_pixels=config.max_pixels)
        size = (image.shape[2], image.shape[1])
        made: dict[tuple[str, float] | None, _Encoded] = {}
        if not self.only_decode.is_set():
            made = self._degrade(image, key, operator)
        stems = {stem: made[_job(variant, operator)] for stem, variant in self.wanted.items()} if made else {}
        return _Image(key, part, style, size, hashlib.sha256(data).hexdigest(), stems)

    def _degrade(self, image: Tensor, key: str, operator: str) -> dict[tuple[str, float] | None, _Encoded]:
        """By operator and intensity: a mixed file's image is that of a per-operator file where both are the same."""
        wanted = dict.fromkeys(_job(variant, operator) for variant in self.wanted.values())
        jobs = sorted(job for job in wanted if job is not None)
        made: dict[tuple[str, float] | None, _Encoded] = {}
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

    def _encode(self, image: Tensor, record: dict[str, Any] | None) -> _Encoded:
        return _Encoded(images.encode(image, self.config.codec, self.config.quality), record)


def _job(variant: Variant, operator: str) -> tuple[str, float] | None:
    """Operator and intensity of a variant of an image to which the mixture gives `operator`; None for a clean one."""
    if variant.kind == "clean":
        return None
    return variant.operator or operator, intensity_of(variant.severity)


def device(name: str) -> torch.device:
    """The torch device of a name; ``auto`` is CUDA where there is one.

    Raises:
        ValueError: if it is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(name)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device: got {name!r}, which torch cannot use here: {str(error).splitlines()[0]}") from error
    return found


# ------------------------------------------------------------------------------------------------------------------ publishing


def _header(config: BuildConfig, table: _Table, stem: str) -> dict[str, Any]:
    variant = table.wanted[stem]
    intensity = None if variant.severity is None else intensity_of(variant.severity)
    facts = {
        "benchmark": table.benchmark,
        "stem": stem,
        "variant": {**asdict(variant), "intensity": intensity},
        "configuration": settings(config),
        "source": {
            "kind": table.source.kind,
            "sha256": table.sha256,
            "rows": len(table.scan.entries),
            "columns": list(table.source.columns),
        },
    }
    moving = {**facts, "codecs": images.codec_versions(), "degrade": degrade.__version__}
    return {"format": manifest.FORMAT, **facts, "libraries": libraries(), "fingerprint": manifest.fingerprint(moving)}


def _publish(config: BuildConfig, table: _Table, folder: Path, state: _State) -> None:
    """Give complete files their names, the manifest last; may be interrupted and repeated."""
    output = Path(config.output)
    for path in sorted(folder.glob("*" + manifest.SUFFIX)):
        stem = path.name.removesuffix(manifest.SUFFIX)
        staged = folder / _file(stem)
        if staged.exists():
            _drop_late(config, table, staged, path, state)
            os.replace(staged, output / _file(stem))
        staging.sync_folder(output)
        os.replace(path, output / path.name)
        staging.sync_folder(output)
    staging.remove(folder)


def _drop_late(config: BuildConfig, table: _Table, shard: Path, lines: Path, state: _State) -> None:
    """Take out rows whose shared image, further down, turned out bad after they had been written."""
    entries = table.scan.entries
    late = {n for n in state.bad if entries[n].kind == "reference" and entries[n].payload > n}
    if not late:
        return
    indices = {entries[n].index.encode("utf-8") for n in late}
    if config.on_error == "skip":
        with shard.open("rb") as old, shard.with_suffix(".late").open("wb") as new:
            at = table.source.columns.index("index")
            for _, raw in text.records(old, str(shard)):
                if raw[at] not in indices:
                    new.write(text.line([cell.decode("utf-8") for cell in raw]))
            os.fsync(new.fileno())
        os.replace(shard.with_suffix(".late"), shard)
    with lines.with_suffix(".late").open("wb") as file:
        file.write(manifest.dump(manifest.header(lines)))
        for line in manifest.lines(lines):
            if line["row"] in late:
                line = {"row": line["row"], "index": line["index"], "status": _STATUS[config.on_error], "reason": state.bad[line["row"]]}
            file.write(manifest.dump(line))
        file.flush()
        os.fsync(file.fileno())
    os.replace(lines.with_suffix(".late"), lines)


def _report_rows(config: BuildConfig, table: _Table, state: _State | None, report: BuildReport) -> None:
    """Note bad and empty rows; those of a build that was complete before are in its manifests."""
    bad = state.bad if state else {}
    if state is None:
        stem = next(iter(table.wanted))
        lines = manifest.lines(Path(config.output) / (stem + manifest.SUFFIX))
        bad = {line["row"]: line["reason"] for line in lines if line["status"] not in manifest.STANDARD}

    def row(number: int, reason: str) -> BadRow:
        return BadRow(table.benchmark, str(table.source.path), number, table.scan.entries[number].index, reason)

    known = {(bad_row.benchmark, bad_row.row) for bad_row in (*report.failed, *report.empty)}
    report.failed += [row(n, reason) for n, reason in sorted(bad.items()) if (table.benchmark, n) not in known]
    empty = [n for n, entry in enumerate(table.scan.entries) if entry.kind == "empty"]
    report.empty += [row(n, "no image") for n in empty if (table.benchmark, n) not in known]


def _finish(config: BuildConfig, tables: Sequence[_Table], report: BuildReport) -> None:
    """Write build.json and vlmevalkit.json over all that is in the folder."""
    output = report.output
    staging.remove(output / staging.FOLDER)
    report_path = output / REPORT_FILE
    before: dict[str, Any] = staging.read_json(report_path)["benchmarks"] if report_path.exists() else {}
    benchmarks: dict[str, Any] = {name: entry for name, entry in before.items() if name not in {t.benchmark for t in tables}}
    for table in tables:
        benchmarks[table.benchmark] = {
            "source": _whereabouts(config),
            "file": str(table.source.path.resolve()),
            "kind": table.source.kind,
            "sha256": table.sha256,
            "rows": len(table.scan.entries),
            "failed": [asdict(bad) for bad in report.failed if bad.benchmark == table.benchmark],
            "empty": [asdict(bad) for bad in report.empty if bad.benchmark == table.benchmark],
            "files": {},
        }
    old_files = {stem: entry for known in before.values() for stem, entry in known["files"].items()}
    data: dict[str, Any] = {}
    for path in sorted(output.glob("*" + manifest.SUFFIX)):
        head = manifest.header(path)
        stem, benchmark = head["stem"], head["benchmark"]
        shards = [output / _file(stem)]
        report.files += shards
        entry = old_files.get(stem) or _describe(head, path, shards)
        benchmarks.setdefault(benchmark, {"files": {}})["files"][stem] = entry
        data[stem] = {"class": suites.vlmevalkit_class(benchmark), "dataset": stem}
    report.stale = [folder for folder in (_cache() / stem for stem in data) if folder.is_dir()]
    facts = _facts(config, {name: entry.get("sha256", "") for name, entry in benchmarks.items()})
    staging.write_json(
        report_path,
        {
            "format": "degrade-build-1",
            "versions": libraries() | {"python": platform.python_version()},
            "configuration": asdict(config),
            "seed": config.seed,
            "standard": config.on_error == "fail",
            "fingerprint": manifest.fingerprint(facts),
            "benchmarks": dict(sorted(benchmarks.items())),
            "timings": {"seconds": round(report.seconds, 3), "rows": report.rows, "images": report.images},
            "host": {
                "machine": platform.machine(),
                "system": platform.system(),
                "device": str(device(config.device)),
                "cores": os.cpu_count(),
            },
        },
    )
    staging.write_json(output / VLMEVALKIT_FILE, {"model": {}, "data": data})


def _describe(head: dict[str, Any], path: Path, shards: Iterable[Path]) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for line in manifest.lines(path):
        counts[line["status"]] = counts.get(line["status"], 0) + 1
    files = {shard.name: {"sha256": sha256(shard), "bytes": shard.stat().st_size} for shard in [*shards, path]}
    return {"variant": head["variant"], "fingerprint": head["fingerprint"], "counts": counts, "files": files}


def sha256(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _whereabouts(config: BuildConfig) -> dict[str, Any]:
    """The settings that lead to the sources, valid from any folder."""

    def absolute(value: str) -> str:
        return str(Path(value).expanduser().resolve())

    found: dict[str, Any] = {"source": absolute(config.source) if Path(config.source).expanduser().exists() else config.source}
    found |= {"data_dir": absolute(config.data_dir), "image_roots": [absolute(root) for root in config.image_roots]}
    found |= {name: absolute(value) for name in ("questions", "images") if (value := getattr(config, name))}
    return found


def _cache() -> Path:
    """Where VLMEvalKit unpacks images."""
    return Path(os.environ.get("LMUData") or Path.home() / "LMUData") / "images"  # noqa: SIM112  VLMEvalKit's spelling


# ------------------------------------------------------------------------------------------------------------------- estimates

_SAMPLED = 16
_BYTES_A_PIXEL = {"jpeg": 0.5, "png": 2.2, "webp": 1.6}  # of degraded photographs, before base64
_SECONDS_A_MEGAPIXEL = 0.25  # one core, one image degraded and encoded, the operators' average
_SECONDS_A_MEGAPIXEL_CLEAN = 0.02


def _estimate(config: BuildConfig, tables: Sequence[_Table]) -> Estimate:
    output = Path(config.output)
    files, done, rows, count, size, seconds = [], [], 0, 0, 0.0, 0.0
    for table in tables:
        payloads = [n for n, entry in enumerate(table.scan.entries) if entry.kind == "payload"]
        missing = [stem for stem in table.wanted if not _published(output, stem)]
        files += [_file(stem) for stem in missing]
        done += [_file(stem) for stem in table.wanted if stem not in missing]
        rows += len(table.scan.entries)
        count += len(payloads)
        if missing and payloads:
            pixels = _pixels(table, payloads)
            degraded = sum(table.wanted[stem].kind != "clean" for stem in missing)
            size += len(missing) * pixels * _BYTES_A_PIXEL[config.codec] * 4 / 3
            seconds += pixels / 1e6 * (degraded * _SECONDS_A_MEGAPIXEL + len(missing) * _SECONDS_A_MEGAPIXEL_CLEAN)
    workers = (os.cpu_count() or 1) if config.workers is None else max(1, config.workers)
    return Estimate(files, done, rows, count, round(size), seconds / workers)


def _pixels(table: _Table, payloads: Sequence[int]) -> float:
    """Pixels of all images, from the headers of a few spread over the file."""
    sizes = []
    for number in payloads[:: max(1, len(payloads) // _SAMPLED)]:
        for row in islice(table.source.rows(number), 1):
            try:
                sizes += [width * height for width, height in map(images.size, table.source.images(row).parts)]
            except RowError:  # reported when its turn comes
                continue
    return sum(sizes) / max(1, len(sizes)) * len(payloads)


# ---------------------------------------------------------------------------------------------------------------------- replay


@dataclass(frozen=True)
class Replayed:
    """An image made again.

    Attributes:
        image: uint8 RGB, (3, H, W), before encoding.
        data: the encoded image, the bytes of the shard.
        suffix: of a file that holds `data`.
        line: the manifest's line.
    """

    image: Tensor
    data: bytes
    suffix: str
    line: dict[str, Any]


def replay(manifest_path: str | Path, index: str, part: int = 0, source: str | Path | None = None, device_name: str = "auto") -> Replayed:
    """Make one image of a build again, bit for bit, from its manifest and the source.

    Args:
        manifest_path: a ``.manifest.jsonl`` file.
        index: the row's index; a row that shares another's image gives that image.
        part: which image, where the cell is a list of several.
        source: where the source is now; by default where ``build.json`` beside the manifest says it was.
        device_name: where to degrade.

    Raises:
        ReplayError: if the manifest has no such image, the source is another, or the bytes come out differently.
        SourceError: if manifest or source cannot be read.
    """
    path = Path(manifest_path)
    head = manifest.header(path)
    line = _line(path, index, part)
    table = _reopen(path, head, source)
    number = line["row"]
    table.scan()
    row = next(table.rows(number), None)
    if row is None or row.index != line["index"]:
        raise ReplayError(f"{table.path} is not the source of {path.name}: its row {number + 1} is not index {line['index']!r}")
    with images.quiet():
        return remake(head, line, table.images(row).parts[line.get("part", 0)], device_name)


def remake(head: dict[str, Any], line: dict[str, Any], data: bytes, device_name: str = "auto") -> Replayed:
    """An image again from its source bytes, its manifest's header and its line.

    Raises:
        ReplayError: if the source bytes or the result are not those of the manifest.
    """
    what = f"index {line['index']!r} of {head['stem']}"
    if hashlib.sha256(data).hexdigest() != line["source_sha256"]:
        raise ReplayError(f"{what}: the source's image is not the one that the build read")
    made = head["configuration"]
    image = images.decode(data, orientation=made["orientation"], alpha=made["alpha"], max_pixels=made["max_pixels"])
    if line["record"] is not None:
        image = degrade.replay(image.to(device(device_name))[None], [line["record"]])[0].cpu()
    encoded = images.encode(image, made["codec"], made.get("quality", 95))
    if hashlib.sha256(encoded).hexdigest() != line["sha256"]:
        now = libraries()
        other = [f"{name} {version} there, {now.get(name)} here" for name, version in head["libraries"].items() if now.get(name) != version]
        raise ReplayError(f"{what} comes out with other bytes. Versions that differ: {'; '.join(other) or 'none'}")
    return Replayed(image, encoded, images.CODECS[made["codec"]], line)


def _line(path: Path, index: str, part: int) -> dict[str, Any]:
    """The manifest's line of an image, references followed."""
    named = [line for line in manifest.lines(path) if line["index"] == index]
    if not named:
        raise ReplayError(f"{path} has no row of index {index!r}")
    if named[0]["status"] == "reference":
        named = [line for line in manifest.lines(path) if line["row"] == named[0]["payload"]]
    if named[0]["status"] != "ok":
        raise ReplayError(f"index {index!r} of {path.name} has no image of the build's: it is {named[0]['status']}")
    if not 0 <= part < len(named):
        raise ReplayError(f"part: got {part}; the cell of index {index!r} holds {len(named)} image(s), counted from 0")
    return named[part]


def _reopen(path: Path, head: dict[str, Any], source: str | Path | None) -> Source:
    """The source that a manifest was made from."""
    benchmark = head["benchmark"]
    where: dict[str, Any] = {}
    report = path.parent / REPORT_FILE
    if report.exists():
        where = staging.read_json(report)["benchmarks"].get(benchmark, {}).get("source", {})
    if source is not None:
        where |= {"source": str(source)}
    if "source" not in where:
        raise SourceError(f"{report} does not say where the source of {benchmark} is: name it with source=")
    tables = open_sources(where["source"], data_dir=where.get("data_dir", "data"), image_roots=where.get("image_roots", ()))
    for table in tables:
        if table.benchmark == benchmark or len(tables) == 1:
            return table
    raise SourceError(f"{where['source']} holds no {benchmark}")
