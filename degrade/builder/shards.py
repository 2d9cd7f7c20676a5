"""One source into its shards: staged row by row, resumable, published when complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import degrade
from degrade.builder.pixels import Made, Maker, windows
from degrade.builder.report import BadRow, BuildReport
from degrade.builder.settings import libraries, settings, shard_name, staged_name
from degrade.builder.tables import Table, note_published, published, recorded
from degrade.config import BuildConfig
from degrade.data import cells, images, manifest, staging, text, writers
from degrade.data.errors import SourceError
from degrade.data.rows import Row
from degrade.data.sources.cell_images import image_cell
from degrade.data.staging import FolderError
from degrade.engines import local
from degrade.severity import intensity_of


@dataclass
class State:
    """How far a pass over a source has come."""

    rows: int = 0
    bad: dict[int, str] = field(default_factory=dict)  # reason by row number
    complete: bool = False

    def plain(self) -> dict[str, Any]:
        return {"rows": self.rows, "bad": list(self.bad.items()), "complete": self.complete}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> State:
        return cls(plain["rows"], {int(number): reason for number, reason in plain["bad"]}, plain["complete"])


def build_table(config: BuildConfig, table: Table, report: BuildReport, progress: Callable[[int], None]) -> None:
    """Make what is missing of one source's files."""
    output, folder = Path(config.output), Path(config.output) / staging.FOLDER / table.benchmark
    known = staging.journal(folder)
    if known.state is not None and known.state["complete"]:
        _publish(config, table, folder, State.of(known.state))
    held = recorded(output)
    missing = [stem for stem in table.wanted if not published(output, stem, held)]
    for stem in missing:
        _remove_rest(output, stem, config.writer, ours=stem in held)
    # Files that an earlier run has begun go on together from where they are; further ones then need a pass of their own.
    begun = [stem for stem in missing if staged_name(stem) in known.lengths and not known.state["complete"]]
    for stems in filter(None, (begun, [stem for stem in missing if stem not in begun])):
        if foreign := [path for path in (output / shard_name(stem, config.writer) for stem in stems) if path.exists()]:
            raise FolderError(f"{foreign[0]} is there without a manifest, so it is not from a build: move it away")
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


def _remove_rest(output: Path, stem: str, writer: str, ours: bool) -> None:
    """Remove what is left of files that are to be made anew, because one of them is lost or cut short."""
    path = output / (stem + manifest.SUFFIX)
    if ours or path.exists():
        for shard in writers.shards(output, stem, writer):
            shard.unlink()
        path.unlink(missing_ok=True)  # the last: it says that the shards are ours


def _pass(
    config: BuildConfig, table: Table, stems: Sequence[str], folder: Path, report: BuildReport, progress: Callable[[int], None]
) -> State:
    """Read a source from where the journal stands to its end, and stage the files named."""
    names = [name for stem in stems for name in (staged_name(stem), stem + manifest.SUFFIX)]
    with staging.Growing(folder, names) as growing:
        if growing.state is None:
            state = State()
            for stem in stems:
                growing.append(staged_name(stem), text.line(table.source.columns))
                growing.append(stem + manifest.SUFFIX, manifest.dump(_header(config, table, stem)))
        else:
            state = State.of(growing.state)
        progress(state.rows)
        maker = Maker(config, table, {stem: table.wanted[stem] for stem in stems})
        if config.on_error == "fail" and (state.bad or any(entry.kind == "broken" for entry in table.scan.entries)):
            maker.only_decode.set()
        rows = windows(table.source.rows(state.rows), maker.window, lambda row: sum(map(len, row.cells)))
        with closing(local.ordered(maker, rows, config.workers)) as done:
            for row, made in chain.from_iterable(done):
                _emit(config, table, stems, growing, state, row, made)
                if state.bad and config.on_error == "fail":
                    maker.only_decode.set()
                state.rows += 1
                report.rows += 1
                report.images += len(made) if isinstance(made, list) else 0
                growing.mark(state.plain())
                progress(state.rows)
        _find_late(table, state)
        state.complete = not (state.bad and config.on_error == "fail")
        growing.sync(state.plain())
    return state


def _find_late(table: Table, state: State) -> None:
    """Rows that share an image further down which then turned out bad are bad too."""
    for number, entry in enumerate(table.scan.entries):
        if entry.kind == "reference" and entry.payload in state.bad and number not in state.bad:
            state.bad[number] = _shared_reason(table, entry.payload, state)


def _shared_reason(table: Table, payload: int, state: State) -> str:
    return f"it shares the image of index {table.scan.entries[payload].index!r}, which cannot be used: {state.bad[payload]}"


def _emit(
    config: BuildConfig,
    table: Table,
    stems: Sequence[str],
    growing: staging.Growing,
    state: State,
    row: Row,
    made: Made,
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
    original = image_cell(table.source, row) if reason and config.on_error == "keep" else row.cells[column]
    for stem in stems:
        cell, entries = original, [base]
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
            growing.append(staged_name(stem), text.line([*row.cells[:column], cell, *row.cells[column + 1 :]]))
        for line in entries:
            growing.append(stem + manifest.SUFFIX, manifest.dump(line))


_STATUS = {"skip": "skipped", "keep": "kept"}


def _header(config: BuildConfig, table: Table, stem: str) -> dict[str, Any]:
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


def _publish(config: BuildConfig, table: Table, folder: Path, state: State) -> None:
    """Give complete files their names, the manifest last; may be interrupted and repeated."""
    output = Path(config.output)
    for path in sorted(folder.glob("*" + manifest.SUFFIX)):
        stem = path.name.removesuffix(manifest.SUFFIX)
        staged = folder / staged_name(stem)
        if staged.exists():
            _drop_late(config, table, staged, path, state)
        writers.publish(staged, output, config.writer, suffix=images.CODECS[config.codec], shard_rows=config.shard_rows)
        files = {shard.name: shard.stat().st_size for shard in writers.shards(output, stem, config.writer)}
        note_published(output, stem, {**files, path.name: path.stat().st_size})
        os.replace(path, output / path.name)
        staging.sync_folder(output)
    staging.remove(folder)


def _drop_late(config: BuildConfig, table: Table, shard: Path, lines: Path, state: State) -> None:
    """Take out, or give back their own cell, rows whose shared image, further down, turned out bad after they had been written."""
    entries = table.scan.entries
    late = {n for n in state.bad if entries[n].kind == "reference" and entries[n].payload > n}
    if not late:
        return
    indices = {entries[n].index.encode("utf-8") for n in late}
    at, column = table.source.columns.index("index"), table.source.columns.index("image")
    with shard.open("rb") as old, shard.with_suffix(".late").open("wb") as new:
        for number, (_, raw) in enumerate(text.records(old, str(shard)), start=-1):  # the header comes first
            row = [cell.decode("utf-8") for cell in raw]
            if config.on_error == "skip" and number >= 0 and raw[at] in indices:  # the shard may lack rows, but no two have one index
                continue
            if config.on_error == "keep" and number in late:  # it has all rows, also those whose index came before
                row[column] = next(iter(table.source.rows(number))).cells[column]
            new.write(text.line(row))
        new.flush()
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


def _report_rows(config: BuildConfig, table: Table, state: State | None, report: BuildReport) -> None:
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
