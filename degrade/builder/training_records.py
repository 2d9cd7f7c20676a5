"""What ``degrade images`` notes of its work, in JSON lines: the settings in the first, and one for each image behind it.

- ``name``, ``key`` (decides the draws) and ``status``: ``ok``, or ``failed`` with a ``reason``;
- for ``ok`` also ``source_sha256`` and ``source_bytes``, ``sha256`` and ``bytes`` (of the encoded image before and after), ``size``
  ([width, height]) and ``record`` (operator, intensity, params);
- the last line of a shard's records has status ``shard``, and hashes and bytes of the shard itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from degrade.builder.folder import sha256
from degrade.data import manifest
from degrade.data.staging import FolderError

FORMAT = "degrade-images-1"
RECORDS = "manifest.jsonl"
"""The records of a folder's images; those of the shard ``a.tar`` are in ``a.manifest.jsonl``."""

Line = dict[str, Any]

_FILES = ("source_sha256", "source_bytes", "sha256", "bytes")
_KEYS = {"ok": ("key", *_FILES), "shard": _FILES, "failed": ("reason",)}


def header(path: Path) -> Line:
    """The first line.

    Raises:
        FolderError: if the file is not from ``degrade images``.
    """
    with path.open("rb") as file:
        first = file.readline()
    try:
        head = json.loads(first)
        if head["format"] == FORMAT:
            return dict(head)
    except (ValueError, KeyError, TypeError):
        pass  # said below
    raise FolderError(f"{path} is not from `degrade images`, by its first line: choose another output folder, or move it away")


def shard_of(records: Path) -> str:
    """The name of the shard whose records a file holds."""
    return records.name.removesuffix(manifest.SUFFIX) + ".tar"


def lines(path: Path, length: int | None = None, bad: list[int] | None = None) -> Iterator[Line]:
    """The lines behind the first; none where the file is not there.

    Args:
        path: the file.
        length: so many bytes count, if given.
        bad: takes the numbers of lines that cannot be read, from 1 on.

    Raises:
        FolderError: a line cannot be read, and `bad` is not given.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        end = len(file.readline())
        for number, raw in enumerate(file, start=2):
            end += len(raw)
            if length is not None and end > length:
                return
            if (line := _parsed(raw)) is not None:
                yield line
            elif bad is None:
                raise FolderError(f"{path}, line {number}: cut off, or not a line of `degrade images`. Start anew with overwrite=true")
            else:
                bad.append(number)


def _parsed(raw: bytes) -> Line | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(line, dict) or not isinstance(line.get("name"), str) or line.get("status") not in _KEYS:
        return None
    return line if all(key in line for key in _KEYS[line["status"]]) else None


def intact(line: Line, source: Path, output: Path) -> bool:
    """Whether an output and its source are still those of a line.

    An output has its source's time of change. Where the two have that in common, and the sizes are those of the line, both count as
    unchanged; where only the times differ, as in a copy, hashes decide, and the output is given the time that it lacks.
    """
    try:
        there, here = source.stat(), output.stat()
    except FileNotFoundError:
        return False
    if (there.st_size, here.st_size) != (line["source_bytes"], line["bytes"]):
        return False
    if here.st_mtime_ns != there.st_mtime_ns:
        if sha256(output) != line["sha256"] or sha256(source) != line["source_sha256"]:
            return False
        os.utime(output, ns=(here.st_atime_ns, there.st_mtime_ns))
    return True
