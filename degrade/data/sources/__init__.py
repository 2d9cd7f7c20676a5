"""Where rows come from; each reader brings them as :class:`degrade.data.rows.Source` says."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from degrade import suites
from degrade.data.errors import SourceError
from degrade.data.rows import Source
from degrade.data.sample import sample_folder
from degrade.data.sources.tsv import TsvSource

SAMPLE = "sample"
SUFFIXES = (".tsv",)


def open_sources(source: str, *, data_dir: str | Path = "data", image_roots: Sequence[str | Path] = ()) -> list[Source]:
    """The tables that a source means, sorted by benchmark.

    Args:
        source: ``sample``, a file, a folder of files, or the name of a benchmark whose file is in `data_dir`.
        image_roots: folders that ``image_path`` columns may point into, besides the files' own.

    Raises:
        SourceError: if there is nothing there, it cannot be read, or two files hold the same benchmark.
    """
    roots = [Path(root) for root in image_roots]
    found = sorted((open_file(path, roots) for path in _files(source, Path(data_dir))), key=lambda table: table.benchmark)
    for one, two in pairwise(found):
        if one.benchmark == two.benchmark:
            raise SourceError(f"{one.path} and {two.path} are both {one.benchmark}: build them into different folders")
    return found


def open_file(path: Path, image_roots: Sequence[Path] = ()) -> Source:
    """One file as a table; its benchmark is its name without the suffix, under the official spelling."""
    if path.suffix.lower() == ".tsv":
        return TsvSource(path, suites.canonical(path.stem), image_roots)
    raise SourceError(f"{path} cannot be read: it must be a file with suffix {', '.join(SUFFIXES)}")


def _files(source: str, data_dir: Path) -> list[Path]:
    if source == SAMPLE:
        return _inside(sample_folder())
    path = Path(source).expanduser()
    if path.is_dir():
        return _inside(path)
    if path.exists():
        return [path]
    name = suites.canonical(source)
    if name in suites.BENCHMARKS:
        if not suites.BENCHMARKS[name].degraded:
            raise SourceError(f"{name} is already degraded: it is only scored")
        for suffix in SUFFIXES:
            if (held := data_dir / (name + suffix)).exists():
                return [held]
        raise SourceError(
            f"source {source!r}: {data_dir / name}.tsv is not there. `degrade download benchmarks=[{name}] output={data_dir}` fetches it"
        )
    names = [SAMPLE, *(b.name for b in suites.BENCHMARKS.values() if b.degraded)]
    near = difflib.get_close_matches(source, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise SourceError(f"source {source!r}: no such file or folder, nor one of {', '.join(names)}{hint}")


def _inside(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    if not files:
        raise SourceError(f"{folder} holds no file with suffix {', '.join(SUFFIXES)}")
    return files
