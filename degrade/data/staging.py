"""Names that appear only when what they name is complete, and work that survives being killed.

A build owns its output folder with a lock, writes into ``.staging`` inside it, and renames what is complete. Files that grow row by row are
synced together every few seconds, and their lengths then written into a journal: after a crash they are cut back to these lengths.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

SYNC_SECONDS = 5.0
"""At most so much work, and that of the images in flight, is repeated after a crash."""

FOLDER = ".staging"
JOURNAL = "journal.json"


class FolderError(ValueError):
    """An output folder that cannot be used; the message says why and what to do."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make `folder` and hold it alone; the lock goes with the process, however it ends.

    Raises:
        FolderError: if another process holds it, or it cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError("it is not writable")
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise FolderError(f"output folder {folder}: {error.strerror or error}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FolderError(f"another build is at work in {folder}: wait for it, or choose another output folder") from error
        yield
    finally:
        os.close(handle)


def write(path: Path, data: bytes) -> None:
    """Write a small file so that its name stands for all of it or nothing."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    sync_folder(path.parent)


def write_json(path: Path, value: Any) -> None:
    """:func:`write` for JSON."""
    write(path, json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8") + b"\n")


def read_json(path: Path) -> Any:
    """The value of a JSON file.

    Raises:
        FolderError: if it is not JSON.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise FolderError(f"{path} is damaged: {error}. Start anew with overwrite=true") from error


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True)
class Journal:
    """How far the files of a folder had come when they were last synced, and what was told then."""

    lengths: dict[str, int]
    state: Any


def journal(folder: Path) -> Journal:
    """The journal of a folder of growing files; empty where there is none."""
    path = folder / JOURNAL
    if not path.exists():
        return Journal({}, None)
    entry = read_json(path)
    return Journal(entry["lengths"], entry["state"])


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


class Growing:
    """Files that grow together, with a journal of how far they have come.

    Args:
        folder: where they and ``journal.json`` are.
        names: the files' names. Files of an earlier run under other names are removed.

    Attributes:
        state: what :meth:`sync` was last told, or None if nothing has been synced for these very names.
    """

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.names = folder, list(names)
        known = journal(folder)
        whole = all(name in known.lengths and _size(folder / name) >= known.lengths[name] for name in self.names)
        self.state: Any = known.state if whole else None
        if self.state is None:
            (folder / JOURNAL).unlink(missing_ok=True)  # or it would speak of files that begin anew
        self._files: dict[str, BinaryIO] = {}
        for name in self.names:
            file = (folder / name).open("ab")
            file.truncate(known.lengths[name] if self.state is not None else 0)
            file.seek(0, os.SEEK_END)
            self._files[name] = file
        for path in folder.iterdir():
            if path.name not in self._files and path.name != JOURNAL:
                path.unlink()
        self._synced = time.monotonic()

    def append(self, name: str, data: bytes) -> None:
        """Add to a file."""
        self._files[name].write(data)

    def due(self) -> bool:
        """Whether it is time to sync."""
        return time.monotonic() - self._synced >= SYNC_SECONDS

    def sync(self, state: Any) -> None:
        """Make what has been written last, together with `state` (JSON), which says what it is."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        write_json(self.folder / JOURNAL, {"lengths": {name: file.tell() for name, file in self._files.items()}, "state": state})
        self._synced = time.monotonic()

    def close(self) -> None:
        """Close the files as they are."""
        for file in self._files.values():
            file.close()


def remove(folder: Path) -> None:
    """Remove a folder of staged files, if it is there."""
    if folder.exists():
        shutil.rmtree(folder)
