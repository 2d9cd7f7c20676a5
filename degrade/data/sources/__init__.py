"""Where rows come from; each reader brings them as :class:`degrade.data.rows.Source` says."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path

from degrade import suites
from degrade.data.errors import SourceError
from degrade.data.rows import Source
from degrade.data.sample import sample_folder
from degrade.data.sources.folder import FolderSource, image_files
from degrade.data.sources.mmr import MmrSource
from degrade.data.sources.tsv import TsvSource

SAMPLE, MMR = "sample", "mmr"
SUFFIXES = (".tsv", ".parquet", ".tar")

# `name-00000-of-00003.parquet` of the hubs, `name-000000.tar` of webdataset
_SHARD = re.compile(r"(.+?)-\d{5,6}(?:-of-\d{5})?")


def open_sources(
    source: str,
    *,
    data_dir: str | Path = "data",
    image_roots: Sequence[str | Path] = (),
    questions: str | Path | None = None,
    images: str | Path | None = None,
) -> list[Source]:
    """The tables that a source means, sorted by benchmark.

    Args:
        source: ``sample``, ``mmr``, a file, a folder of files or of images, or the name of a benchmark whose file is in `data_dir`.
            R-Bench-Dis in a folder is left aside: it is degraded already.
        image_roots: folders that image paths in tables may point into, besides the files' own.
        questions, images: with ``mmr``, its question file, and the folder or zip file of its images.

    Raises:
        SourceError: if there is nothing there, it cannot be read, or two files hold the same benchmark.
    """
    if source == MMR:
        for name, value in (("questions", questions), ("images", images)):
            if value is None or not Path(value).expanduser().exists():
                raise SourceError(f"{name}: source=mmr needs MMR's question file and its images, but {name} is {value or 'not given'}")
        return [MmrSource(Path(str(questions)).expanduser(), Path(str(images)).expanduser())]
    place = _place(source, Path(data_dir))
    roots = [Path(root).expanduser() for root in image_roots]
    files = [place]
    if place.is_dir():
        files = sorted(path for path in place.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file() and not _only_scored(path))
        if not files and next(image_files(place), None):
            return [FolderSource(place, place.resolve().name)]
        if not files:
            raise SourceError(f"{place} holds neither images nor files with suffix {', '.join(SUFFIXES)}")
    found = []
    for _, group in groupby(files, key=_table):
        paths = list(group)
        try:
            found.append(_open(paths, roots))
        except SourceError as error:
            if place.is_dir() and next(image_files(place), None):
                raise SourceError(
                    f"{error}. {place} holds images too, but was taken for a folder of benchmarks because of {paths[0].name}: "
                    "to degrade the images, put that file elsewhere"
                ) from error
            raise
    found.sort(key=lambda table: table.benchmark)
    for one, two in pairwise(found):
        if one.benchmark == two.benchmark:
            raise SourceError(f"{one.path} and {two.path} are both {one.benchmark}: build them into different folders")
    return found


def _place(source: str, data_dir: Path) -> Path:
    """The file or folder that a source means."""
    if source == SAMPLE:
        return sample_folder()
    path = Path(source).expanduser()
    if path.exists():
        return path
    name = suites.canonical(source)
    if name not in suites.BENCHMARKS:
        known = [SAMPLE, MMR, *(b.name for b in suites.BENCHMARKS.values() if b.degraded)]
        near = difflib.get_close_matches(source, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise SourceError(f"source {source!r}: no such file or folder, nor one of {', '.join(known)}{hint}")
    if not suites.BENCHMARKS[name].degraded:
        raise SourceError(f"{name} is already degraded: it is only scored")
    for suffix in SUFFIXES:
        if (held := data_dir / (name + suffix)).exists():
            return held
    raise SourceError(
        f"source {source!r}: {data_dir / name}.tsv is not there. `degrade download benchmarks=[{name}] output={data_dir}` fetches it"
    )


def _only_scored(path: Path) -> bool:
    """Whether a file is that of a benchmark whose images are degraded already, as `degrade download` leaves it beside the others."""
    name = suites.canonical(_table(path)[0])
    return name in suites.BENCHMARKS and not suites.BENCHMARKS[name].degraded


def _table(path: Path) -> tuple[str, str]:
    """What files of one table have in common: the name without a shard's number, and the suffix."""
    shard = _SHARD.fullmatch(path.stem)
    return (shard[1] if shard else path.stem, path.suffix.lower())


def _open(paths: list[Path], roots: Sequence[Path]) -> Source:
    """The files of one table."""
    name, suffix = _table(paths[0])
    if suffix == ".tsv":
        if len(paths) > 1:
            raise SourceError(f"{paths[0]} and {paths[1]}: a TSV file is a table of its own; give each its own name")
        return TsvSource(paths[0], suites.canonical(paths[0].stem), roots)
    if suffix == ".parquet":
        from degrade.data.sources.parquet import ParquetSource  # only those who read parquet wait for its library

        return ParquetSource(paths, name, roots)
    if suffix == ".tar":
        from degrade.data.sources.webdataset import WebdatasetSource

        return WebdatasetSource(paths, suites.canonical(name))
    raise SourceError(f"{paths[0]} cannot be read: it must be a folder, or a file with suffix {', '.join(SUFFIXES)}")
