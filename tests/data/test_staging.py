"""Staged files survive being killed; a folder belongs to one build."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from degrade.data import staging


def test_a_folder_made_for_nothing_is_removed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "a" / "b" / "c", tmp_path / "there"):
        with pytest.raises(KeyError), staging.locked(folder):
            raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ["there"], "which was there before"
    with staging.locked(tmp_path / "a" / "b"):
        (tmp_path / "a" / "file").write_bytes(b"")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "no space left in out. What is done is kept: make room, and"),
        (errno.EDQUOT, "no space left in out. What is done is kept: make room, and"),
        (errno.EFBIG, "a file in out may not grow further. What is done is kept: raise the limit of a file's size (ulimit -f), and"),
        (errno.EIO, f"the work in out has ended: {os.strerror(errno.EIO)}. What is done is kept: mend that, and"),
    ],
)
def test_errors_that_name_no_file_name_the_folder(number: int, message: str) -> None:
    with pytest.raises(staging.FolderError) as caught, staging.resumable(Path("out")):
        raise OSError(number, os.strerror(number))
    assert str(caught.value) == f"{message} the same command goes on"
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(OSError, match="source") as other, staging.resumable(Path("out")):
        raise OSError(errno.EIO, "x", "source")
    assert not isinstance(other.value, ValueError)


def test_growing_files_go_back_to_what_was_synced(tmp_path: Path) -> None:
    files = staging.Growing(tmp_path, ["a", "b"])
    assert files.state is None
    files.append("a", b"one")
    files.append("b", b"1")
    files.sync({"rows": 1})
    files.append("a", b"two")
    files.close()
    (tmp_path / "stray").write_bytes(b"x")
    again = staging.Growing(tmp_path, ["a", "b"])
    assert again.state == {"rows": 1}
    again.append("a", b"TWO")
    again.close()
    assert (tmp_path / "a").read_bytes() == b"oneTWO"
    assert not (tmp_path / "stray").exists()


@pytest.mark.parametrize("end", [KeyboardInterrupt, RuntimeError])
def test_growing_files_go_back_to_what_was_marked_before_an_error(tmp_path: Path, end: type[BaseException]) -> None:
    told: list[str] = []

    def work() -> None:
        with staging.Growing(tmp_path, ["a"], lambda: told.append("before")) as files:
            files.append("a", b"one")
            files.mark({"rows": 1})
            files.append("a", b"half")
            raise end

    with pytest.raises(end):
        work()
    assert told == ["before"]
    with staging.Growing(tmp_path, ["a"]) as again:
        assert again.state == {"rows": 1}
    assert (tmp_path / "a").read_bytes() == b"one"


@pytest.mark.parametrize("harm", ["missing", "short", "more names"])
def test_files_that_are_not_as_synced_start_anew(tmp_path: Path, harm: str) -> None:
    files = staging.Growing(tmp_path, ["a"])
    files.append("a", b"one")
    files.sync({"rows": 1})
    files.close()
    if harm == "missing":
        (tmp_path / "a").unlink()
    elif harm == "short":
        os.truncate(tmp_path / "a", 2)
    again = staging.Growing(tmp_path, ["a", "b"] if harm == "more names" else ["a"])
    assert again.state is None
    again.close()
    assert (tmp_path / "a").read_bytes() == b""


def test_a_folder_is_locked_against_another_process_and_free_after_it(tmp_path: Path) -> None:
    code = f"from pathlib import Path\nfrom degrade.data import staging\nwith staging.locked(Path({str(tmp_path)!r})): print('in')"
    with staging.locked(tmp_path):
        there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert there.returncode != 0
    assert "another build is at work" in there.stderr
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "in\n"


def test_an_output_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(staging.FolderError, match="file"), staging.locked(tmp_path / "file"):
        pass


def test_a_name_stands_for_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staging.write(tmp_path / "a", b"old")

    def fails(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="No space"):
        staging.write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
