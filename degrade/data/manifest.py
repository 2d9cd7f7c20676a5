"""What a build did, enough to do it again: one JSON-lines file for each shard.

The first line is the header: versions, settings, source, fingerprint. Every further line is one image (or one row without an image of its
own), in the order of the shard:

- ``row``: the row's place in the source, from 0; ``index``: its name;
- ``status``: ``ok``; ``reference`` (shares the image of row ``payload``); ``empty``; ``skipped`` or ``kept`` with a ``reason``;
- for ``ok`` also ``key`` (the image key that decides draws), ``part`` (which image of a list, else absent), ``source_sha256`` and
  ``sha256`` (of the encoded image before and after), ``size`` ([width, height]) and ``record`` (operator, intensity, params; null for a
  clean image).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from degrade.data.errors import SourceError

FORMAT = "degrade-manifest-1"
SUFFIX = ".manifest.jsonl"
STANDARD = ("ok", "reference", "empty")
"""The statuses of rows that could be used."""

_HEADER_KEYS = ("benchmark", "stem", "variant", "configuration", "source", "libraries", "fingerprint")
_LINE_KEYS = {
    "ok": ("key", "source_sha256", "sha256", "size", "record"),
    "reference": ("payload",),
    "empty": (),
    "skipped": ("reason",),
    "kept": ("reason",),
}

Line = dict[str, Any]


def dump(line: Line) -> bytes:
    """One line."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


def fingerprint(facts: Line) -> str:
    """A hash of all that moves bytes."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("utf-8")).hexdigest()


def header(path: Path) -> Line:
    """The first line of a manifest.

    Raises:
        SourceError: if there is no such file, or it is no manifest.
    """
    try:
        with path.open("rb") as file:
            first = file.readline()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}; a file *{SUFFIX} of a build is wanted") from error
    try:
        line = json.loads(first)
    except ValueError as error:
        raise SourceError(f"{path} is no manifest of a build: its first line is not JSON") from error
    if not isinstance(line, dict) or line.get("format") != FORMAT:
        raise SourceError(f"{path} is no manifest of a build: its first line does not say {FORMAT}")
    if missing := [key for key in _HEADER_KEYS if key not in line]:
        raise SourceError(f"{path}: the first line lacks {', '.join(missing)}")
    return line


def lines(path: Path) -> Iterator[Line]:
    """The lines behind the header."""
    header(path)
    with path.open("rb") as file:
        file.readline()
        for number, raw in enumerate(file, start=2):
            try:
                line = json.loads(raw)
            except ValueError as error:
                raise SourceError(f"{path}, line {number}: not JSON") from error
            if missing := _missing(line):
                raise SourceError(f"{path}, line {number}: {missing}")
            yield line


def _missing(line: object) -> str:
    """What a line lacks, or "" where it is whole."""
    if not isinstance(line, dict) or not isinstance(line.get("row"), int) or "index" not in line:
        return "it does not say which row it is about"
    if line.get("status") not in _LINE_KEYS:
        return f"status: got {line.get('status')!r}, want one of {', '.join(_LINE_KEYS)}"
    lacking = [key for key in _LINE_KEYS[line["status"]] if key not in line]
    return f"it lacks {', '.join(lacking)}" if lacking else ""
