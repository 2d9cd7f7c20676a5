"""Names that appear only when what they name is complete, and work that survives being killed.

A build owns its output folder with a lock, writes into ``.staging`` inside it, and renames what is complete. Files that grow row by row are
synced together, every few seconds and where an error or Ctrl-C ends the work, and their lengths then written into a journal. Before they
grow on, they are cut back to these lengths.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

SYNC_SECONDS = 5.0
"""At most so much work, and that of the images in flight, is repeated after a crash."""

FOLDER = ".staging"
JOURNAL = "journal.json"


_FULL = {
    errno.ENOSPC: ("no space left in {}", "make room"),
    errno.EDQUOT: ("no space left in {}", "make room"),
    errno.EFBIG: ("a file in {} may not grow further", "raise the limit of a file's size (ulimit -f)"),
}


class FolderError(ValueError):
    """An output folder that cannot be used; the message says why and what to do."""


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Work on a folder's files, of which what is done is kept where the system refuses to go on.

    Raises:
        FolderError: where the folder is full, and in place of errors that name no file; the system's error is behind it.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            what, remedy = _FULL[error.errno]
        elif error.errno is not None and error.filename is None:
            what, remedy = f"the work in {{}} has ended: {error.strerror}", "mend that"
        else:
            raise
        raise FolderError(f"{what.format(folder)}. What is done is kept: {remedy}, and the same command goes on") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make `folder` and hold it alone; the lock goes with the process, however it ends. A folder made for nothing is removed.

    Raises:
        FolderError: if another process holds it, or it cannot be made or written.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    make_folder(folder)
    try:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "it is not writable")
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise FolderError(f"output: {folder} cannot be used: {error.strerror}. Choose another folder") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FolderError(f"another build is at work in {folder}: wait for it, or choose another output folder") from error
        yield
    finally:
        with suppress(OSError):  # there is something in it
            for path in made:
                path.rmdir()
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder for output, with the folders above it.

    Raises:
        FolderError: if it cannot be made; the system's error is behind it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderError(f"output: the folder {folder} cannot be made: {error.strerror}. Choose another") from error


def write_output(path: Path, data: bytes) -> None:
    """:func:`write` for a file that the user has named, in a folder that may not be there yet.

    Raises:
        FolderError: if it cannot be written; the system's error is behind it.
    """
    make_folder(path.parent)
    try:
        write(path, data)
    except OSError as error:
        raise FolderError(f"output: {path} cannot be written: {error.strerror}") from error


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
    """Files that grow together, with a journal of how far they have come: ``with Growing(folder, names) as growing: ...``.

    Where the block ends with an error or Ctrl-C, what was marked last is synced.

    Args:
        folder: where they and ``journal.json`` are.
        names: the files' names. Files of an earlier run under other names are removed.
        before: makes what else the state speaks of last; called before each entry in the journal.

    Attributes:
        state: what the journal has of these very names, or None if it has nothing.
    """

    def __init__(self, folder: Path, names: Iterable[str], before: Callable[[], None] = lambda: None) -> None:
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
        self._before = before
        self._marked: Journal | None = None
        self._synced = time.monotonic()

    def __enter__(self) -> Growing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            if kind is not None:
                self._keep()
        finally:
            self.close()

    def append(self, name: str, data: bytes) -> None:
        """Add to a file."""
        self._files[name].write(data)

    def due(self) -> bool:
        """Whether it is time to sync."""
        return time.monotonic() - self._synced >= SYNC_SECONDS

    def mark(self, state: Any) -> None:
        """Note that the files are whole as they stand, and `state` (JSON), which says what they hold; sync if it is time to."""
        self._marked = Journal({name: file.tell() for name, file in self._files.items()}, state)
        if self.due():
            self._keep()

    def sync(self, state: Any) -> None:
        """Make what has been written last, together with `state` (JSON), which says what it is."""
        self._marked = Journal({name: file.tell() for name, file in self._files.items()}, state)
        self._keep()

    def _keep(self) -> None:
        """Make what was marked last."""
        if self._marked is None:
            return
        self._before()
        self.flush()
        for file in self._files.values():
            os.fsync(file.fileno())
        write_json(self.folder / JOURNAL, {"lengths": self._marked.lengths, "state": self._marked.state})
        self._synced = time.monotonic()

    def flush(self) -> None:
        """Let readers of the files see what has been added."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Close the files as they are."""
        for file in self._files.values():
            file.close()


def remove(folder: Path) -> None:
    """Remove a folder of staged files, if it is there."""
    if folder.exists():
        shutil.rmtree(folder)
