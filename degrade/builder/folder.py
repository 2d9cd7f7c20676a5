"""A whole build in its output folder."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import degrade
from degrade import suites
from degrade.builder.report import FORMAT, REPORT_FILE, BuildReport, Estimate, read_report
from degrade.builder.settings import check_config, device, differences, libraries, settings
from degrade.builder.shards import build_table
from degrade.builder.tables import Table, estimate_of, newly_published, open_tables
from degrade.config import BuildConfig
from degrade.data import images, manifest, staging, writers
from degrade.data.staging import FolderError

VLMEVALKIT_FILE = "vlmevalkit.json"

Progress = Callable[[int, int], None]
"""Told the rows done and the rows there are."""


def estimate(config: BuildConfig) -> Estimate:
    """What :func:`build` would write; writes nothing."""
    check_config(config)
    with images.quiet():
        return estimate_of(config, open_tables(config))


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
    check_config(config)
    output = Path(config.output)
    begun = time.monotonic()
    report = BuildReport(output)
    with staging.resumable(output), staging.locked(output), images.quiet():
        tables = open_tables(config)
        if config.overwrite:
            _clear(output)
        _refuse_other_settings(output, config, tables)
        if announce:
            announce(estimate_of(config, tables))
        staged = output / staging.FOLDER
        staged.mkdir(exist_ok=True)
        staging.write_json(staged / "settings.json", facts_of(config, {t.benchmark: t.sha256 for t in tables}))
        done, total = 0, sum(len(table.scan.entries) for table in tables)
        for table in tables:

            def rows_done(rows: int, before: int = done) -> None:
                if progress:
                    progress(before + rows, total)

            build_table(config, table, report, rows_done)
            done += len(table.scan.entries)
        report.seconds = time.monotonic() - begun
        _finish(config, tables, report)
    return report


def facts_of(config: BuildConfig, sources: Mapping[str, str]) -> dict[str, Any]:
    return {"settings": settings(config), "codecs": images.codec_versions(), "degrade": degrade.__version__, "sources": dict(sources)}


def _refuse_other_settings(output: Path, config: BuildConfig, tables: Sequence[Table]) -> None:
    """Raise `FolderError` if the folder holds work of a build whose bytes would differ."""
    asked = facts_of(config, {table.benchmark: table.sha256 for table in tables})
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
            differing |= dict.fromkeys(differences(facts[group], asked[group]))
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
        for shard in [path for writer in writers.WRITERS for path in writers.shards(output, stem, writer)]:
            shard.unlink(missing_ok=True)
        path.unlink()
    for name in (REPORT_FILE, VLMEVALKIT_FILE):
        (output / name).unlink(missing_ok=True)


def _finish(config: BuildConfig, tables: Sequence[Table], report: BuildReport) -> None:
    """Write build.json, and for TSV vlmevalkit.json, over all that is in the folder."""
    output = report.output
    report_path = output / REPORT_FILE
    before: dict[str, Any] = read_report(output)["benchmarks"] if report_path.exists() else {}
    benchmarks: dict[str, Any] = {name: entry for name, entry in before.items() if name not in {t.benchmark for t in tables}}
    for table in tables:
        benchmarks[table.benchmark] = {
            "source": _whereabouts(config),
            "file": str(table.source.path.resolve()),
            "kind": table.source.kind,
            "sha256": table.sha256,
            "rows": len(table.scan.entries),
            "complete": table.benchmark not in report.unpublished,
            "failed": [asdict(bad) for bad in report.failed if bad.benchmark == table.benchmark],
            "empty": [asdict(bad) for bad in report.empty if bad.benchmark == table.benchmark],
            "without_options": list(table.scan.without_options),
            "left_out": table.scan.left_out,
            "files": {},
        }
    made = newly_published(output)
    entries = {stem: entry for known in before.values() for stem, entry in known["files"].items() if stem not in made}
    there = [(path, manifest.header(path)) for path in sorted(output.glob("*" + manifest.SUFFIX))]
    new = [(path, head, writers.shards(output, head["stem"], config.writer)) for path, head in there if head["stem"] not in entries]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # hashing takes most of the time, and needs no lock
        entries |= {head["stem"]: entry for (_, head, _), entry in zip(new, pool.map(lambda one: _describe(*one), new), strict=True)}
    data: dict[str, Any] = {}
    for _, head in there:
        stem, benchmark = head["stem"], head["benchmark"]
        report.files += writers.shards(output, stem, config.writer)
        if benchmark not in benchmarks:  # of a build whose build.json is lost
            of_source = {name: head["source"][name] for name in ("kind", "sha256", "rows")}
            rows: dict[str, Any] = {"failed": [], "empty": [], "without_options": [], "left_out": 0}
            benchmarks[benchmark] = {**of_source, "complete": True, **rows, "files": {}}
        benchmarks[benchmark]["files"][stem] = entries[stem]
        data[stem] = {"class": suites.vlmevalkit_class(benchmark), "dataset": stem}
    report.without_options = {table.benchmark: list(table.scan.without_options) for table in tables if table.scan.without_options}
    report.left_out = {table.benchmark: table.scan.left_out for table in tables if table.scan.left_out}
    if config.writer == "tsv":
        report.vlmevalkit = output / VLMEVALKIT_FILE
        report.stale = [folder for folder in (_cache() / stem for stem in data) if folder.is_dir()]
    facts = facts_of(config, {name: entry.get("sha256", "") for name, entry in benchmarks.items()})
    staging.write_json(
        report_path,
        {
            "format": FORMAT,
            "versions": libraries() | {"python": platform.python_version()},
            "configuration": asdict(config),
            "seed": config.seed,
            "standard": config.on_error == "fail",
            "complete": all(entry.get("complete", True) for entry in benchmarks.values()),
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
    if report.vlmevalkit:
        staging.write_json(report.vlmevalkit, {"model": {}, "data": data})
    staging.remove(output / staging.FOLDER)


def _describe(path: Path, head: dict[str, Any], shards: Iterable[Path]) -> dict[str, Any]:
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
