"""The public sources: fetched in pieces that add up, checked, and never half there under a final name."""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from degrade import suites
from degrade.data.staging import locked, sync_folder

ATTEMPTS = 5
PAUSE_SECONDS = 2.0
"""Before the second attempt; doubled before each further one."""
TIMEOUT_SECONDS = 60.0
_CHUNK = 1 << 20

Progress = Callable[[int, int | None], None]
"""Told the bytes there are of a file and, where the server says so, those there will be."""


class DownloadError(OSError):
    """A file that could not be fetched; the message names it, the address and what to do."""


@dataclass(frozen=True)
class Remote:
    """A file to fetch: its name here, its address, and its md5."""

    name: str
    url: str
    md5: str


def download(files: Sequence[Remote], folder: Path, progress: Progress | None = None) -> list[Path]:
    """Fetch what is not there yet.

    Args:
        files: what to fetch. A file that is there with the right md5 is left alone; one with another is not touched, but refused.
        folder: where to.
        progress: told how far each file is.

    Returns:
        The files, in order.

    Raises:
        DownloadError: if a file cannot be fetched, comes with another md5, or another file stands under its name.
        FolderError: if another download is at work in the folder.
    """
    with locked(folder):
        return [_fetch(file, folder, progress) for file in files]


def md5(path: Path) -> str:
    """The md5 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _fetch(remote: Remote, folder: Path, progress: Progress | None) -> Path:
    target, part = folder / remote.name, folder / (remote.name + ".part")
    if target.exists():
        if (found := md5(target)) != remote.md5:
            raise DownloadError(f"{target} is there with md5 {found}, but {remote.md5} is wanted: move it away, or delete it")
        return target
    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_SECONDS * 2 ** (attempt - 1))
        try:
            whole = _continue(remote, part, progress)
        except urllib.error.HTTPError as error:
            if error.code == 416 and part.exists():  # nothing behind what is there: whole, or not its beginning
                whole = True
            elif error.code < 500 and error.code not in (408, 429):
                raise DownloadError(f"{remote.url}: {error.code} {error.reason}") from error
            else:
                reason = f"{error.code} {error.reason}"
                continue
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
            continue
        if not whole:
            reason = "the connection ended early"
            continue
        if (found := md5(part)) == remote.md5:
            os.replace(part, target)
            sync_folder(folder)
            return target
        part.unlink()  # no beginning to go on from
        reason = f"what came has md5 {found}, wanted is {remote.md5}"
    kept = f" {part} holds {part.stat().st_size} bytes, from which the next run goes on." if part.exists() else ""
    raise DownloadError(f"{remote.name} could not be fetched from {remote.url} in {ATTEMPTS} attempts: {reason}.{kept}")


def _continue(remote: Remote, part: Path, progress: Progress | None) -> bool:
    """Fetch what is missing behind a part; whether it is whole as far as the server says."""
    there = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(remote.url, headers={"User-Agent": "degrade", "Accept-Encoding": "identity"})
    if there:
        request.add_header("Range", f"bytes={there}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        if there and not (answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {there}-")):
            there = 0  # the server ignores ranges and sends all of it
        length = answer.headers.get("Content-Length")
        total = there + int(length) if length is not None else None
        with part.open("r+b" if there else "wb") as file:
            file.seek(there)
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                there += len(chunk)
                if progress:
                    progress(there, total)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
    return total is None or there == total


def public(benchmarks: Sequence[str] | None = None) -> list[Remote]:
    """The public TSV files of benchmarks, by any of their names; None for all of them.

    >>> public(["cvbench2d"])[0].name
    'CV-Bench-2D.tsv'
    """
    found = suites.BENCHMARKS.values() if benchmarks is None else [suites.BENCHMARKS[suites.canonical(name)] for name in benchmarks]
    return [Remote(f"{benchmark.name}.tsv", benchmark.url, benchmark.md5) for benchmark in found]
