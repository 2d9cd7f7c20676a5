"""Killed at any moment, a build leaves nothing half-written and goes on to the same bytes."""

import errno
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from degrade.build import build, estimate, verify
from degrade.config import BuildConfig, ImagesConfig
from degrade.data import images, staging
from degrade.data.staging import FolderError
from degrade.engines import local

from .conftest import digests, picture, write_tsv

Configure = Callable[..., BuildConfig]


class Killed(BaseException):
    """What no code catches."""


@pytest.fixture
def many(tmp_path: Path) -> Path:
    rows = [(str(n), str(n - 1) if n % 4 == 1 else picture(n, (16 + n, 20)), f"question\n{n}") for n in range(24)]
    return write_tsv(tmp_path / "sources" / "many.tsv", ("index", "image", "question"), rows)


def kill_after(monkeypatch: pytest.MonkeyPatch, steps: int, *, ctrl_c: bool = False) -> None:
    """Raise at the `steps`-th step from now on that touches a file.

    A kill raises at all further ones too, and loses what was not synced; Ctrl-C does neither.
    """
    left = [steps]
    synced: dict[int, int] = {}

    def step() -> None:
        left[0] -= 1
        if left[0] == 0 and ctrl_c:
            raise KeyboardInterrupt
        if left[0] <= 0 and not ctrl_c:
            raise Killed

    append, fsync, replace, close = staging.Growing.append, os.fsync, os.replace, staging.Growing.close

    def killing_append(self: staging.Growing, name: str, data: bytes) -> None:
        step()
        append(self, name, data)

    def killing_fsync(handle: int) -> None:
        step()
        fsync(handle)
        synced[os.fstat(handle).st_ino] = os.fstat(handle).st_size

    def killing_replace(*args: object) -> None:
        step()
        replace(*args)
        step()

    def losing_close(self: staging.Growing) -> None:
        close(self)
        for name in self.names if left[0] <= 0 and not ctrl_c else ():
            path, size = self.folder / name, (self.folder / name).stat().st_size
            kept = max(synced.get(path.stat().st_ino, 0), staging.journal(self.folder).lengths.get(name, 0))  # of this run, of earlier ones
            os.truncate(path, random.Random(steps).randint(min(kept, size), size))

    monkeypatch.setattr(staging.Growing, "append", killing_append)
    monkeypatch.setattr(staging.Growing, "close", losing_close)
    monkeypatch.setattr(os, "fsync", killing_fsync)
    monkeypatch.setattr(os, "replace", killing_replace)


def visible(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if path.is_file()) if folder.exists() else iter(())


@pytest.mark.parametrize("every", [0.0, 1e9])
def test_killed_at_many_moments(many: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch, every: float) -> None:
    monkeypatch.setattr(staging, "SYNC_SECONDS", every)
    quick = {"variants": ["mixed", "clean"], "severities": ["low"]}
    expected = digests(build(configure(many, "whole", **quick)).output)
    output = Path(configure(many).output)
    rng = random.Random(0)
    kills = 0
    for _ in range(400):
        with monkeypatch.context() as patched:
            kill_after(patched, rng.randint(1, 60))
            try:
                build(configure(many, workers=rng.choice([0, 2]), **quick))
                break
            except Killed:
                kills += 1
        for path in visible(output):
            assert path.suffix == ".part" or path.name == "build.json" or digests(output)[path.name] == expected[path.name], path.name
        if every > 1 and kills == 20:
            build(configure(many, **quick))
            break
    assert kills >= 10
    assert digests(output) == expected
    assert not (output / staging.FOLDER).exists()


@pytest.mark.parametrize(("every", "end"), [(0.0, Killed), (1e9, KeyboardInterrupt), (1e9, RuntimeError)])
def test_what_was_synced_is_not_decoded_again(
    many: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch, every: float, end: type[BaseException]
) -> None:
    """Every few seconds, and where Ctrl-C or an error ends the work."""
    monkeypatch.setattr(staging, "SYNC_SECONDS", every)
    decode, count = images.decode, [0]

    def counting(data: bytes, **options: object) -> object:
        count[0] += 1
        return decode(data, **options)

    monkeypatch.setattr(images, "decode", counting)

    def stop(done: int, total: int) -> None:
        if done == 15:
            raise end

    with pytest.raises(end):
        build(configure(many), progress=stop)
    build(configure(many))
    assert count[0] == 18, "of 24 rows 6 share an image"


def test_ctrl_c_at_many_moments(many: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "SYNC_SECONDS", 1e9)
    quick = {"variants": ["mixed", "clean"], "severities": ["low"]}
    expected = digests(build(configure(many, "whole", **quick)).output)
    stopped = 0
    for steps in range(1, 300, 7):
        with monkeypatch.context() as patched:
            kill_after(patched, steps, ctrl_c=True)
            try:
                build(configure(many, f"out{steps}", **quick))
            except KeyboardInterrupt:
                stopped += 1
        assert digests(build(configure(many, f"out{steps}", **quick)).output) == expected, steps
    assert stopped > 10


def test_further_variants_after_an_interruption(many: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "SYNC_SECONDS", 0.0)

    def stop(done: int, total: int) -> None:
        if done == 9:
            raise Killed

    with pytest.raises(Killed):
        build(configure(many, variants=["clean", "mixed"]), progress=stop)
    assert digests(build(configure(many, variants=["per_operator", "clean"])).output) == digests(
        build(configure(many, "whole", variants=["clean", "per_operator"])).output
    )


def test_an_interrupted_build_refuses_other_settings(many: Path, configure: Configure) -> None:
    def stop(done: int, total: int) -> None:
        if done == 9:
            raise Killed

    with pytest.raises(Killed):
        build(configure(many), progress=stop)
    with pytest.raises(FolderError, match="seed"):
        build(configure(many, seed=1))
    assert build(configure(many, seed=1, overwrite=True)).ok


@pytest.mark.parametrize(("number", "message"), [(errno.ENOSPC, "no space left in .*out"), (errno.EFBIG, "a file in .*out may not grow")])
def test_disk_full(many: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch, number: int, message: str) -> None:
    expected = digests(build(configure(many, "whole")).output)
    append = staging.Growing.append
    left = [100]

    def full(self: staging.Growing, name: str, data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(number, os.strerror(number))
        append(self, name, data)

    with monkeypatch.context() as patched:
        patched.setattr(staging.Growing, "append", full)
        with pytest.raises(FolderError, match=message):
            build(configure(many))
    assert not list(visible(Path(configure(many).output)))
    assert digests(build(configure(many)).output) == expected


SCRIPT = """
import json, os, random, signal, sys, time
from degrade import build, config
from degrade.data import images, staging

run, kind, settings, log = sys.argv[1:]
staging.SYNC_SECONDS = 0.0
decode, rng, kills = images.decode, random.Random(1), 0

def logged(data, **options):
    with open(log, "ab") as file:
        file.write(b".")
    return decode(data, **options)

images.decode = logged
while True:
    process = os.fork()  # of a process that has started no threads
    if process == 0:
        getattr(build, run)(getattr(config, kind)(**json.loads(settings)), progress=lambda done, total: time.sleep(0.02))
        os._exit(0)
    if kills < 12:
        time.sleep(rng.uniform(0.02, 0.3))
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    if not os.WIFSIGNALED(status):
        break
    kills += 1
print(kills, os.waitstatus_to_exitcode(status))
"""


def killed_at_random(run: str, config: BuildConfig | ImagesConfig, log: Path) -> tuple[int, int]:
    """Let processes work until one is not killed; returns how many were, and how many images all of them have decoded."""
    command = [sys.executable, "-c", SCRIPT, run, type(config).__name__, json.dumps(asdict(config)), str(log)]
    kills, code = map(int, subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.split())
    assert (kills > 1, code) == (True, 0)
    return kills, log.stat().st_size


def test_kill_9_at_random_moments(many: Path, configure: Configure, tmp_path: Path) -> None:
    expected = digests(build(configure(many, "whole")).output)
    config = configure(many, workers=2)
    kills, decoded = killed_at_random("build", config, tmp_path / "decoded")
    assert digests(Path(config.output)) == expected
    # Of 24 rows 6 share an image. A kill repeats the row that is being written, and those that are ready or being made.
    assert 18 <= decoded <= 18 + kills * (1 + 2 * local.ITEMS_A_WORKER)


def test_it_is_time_to_sync_well_before_half_a_minute_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(staging.time, "monotonic", lambda: now[0])
    growing = staging.Growing(tmp_path, ["a"])
    assert not growing.due()
    now[0] = 20.0
    assert growing.due()
    growing.sync(None)
    assert not growing.due()
    growing.close()


@pytest.mark.parametrize("report", ["kept", "lost"])
@pytest.mark.parametrize("writer", ["tsv", "webdataset"])
@pytest.mark.parametrize("damage", ["shard gone", "shard empty", "manifest gone"])
def test_a_file_that_is_lost_or_cut_short_is_made_anew(many: Path, configure: Configure, writer: str, damage: str, report: str) -> None:
    config = configure(many, writer=writer, shard_rows=10, variants=["mixed", "clean"], severities=["low"])
    output = build(config).output
    expected = digests(output)
    shard, lines = output / ("many_CLEAN-000001.tar" if writer == "webdataset" else "many_CLEAN.tsv"), output / "many_CLEAN.manifest.jsonl"
    if damage == "shard empty":
        shard.write_bytes(b"")
    else:
        (shard if damage == "shard gone" else lines).unlink()
    if report == "lost":
        (output / "build.json").unlink()
    if damage == "manifest gone" and report == "lost":  # nothing says that the shard is ours
        with pytest.raises(FolderError, match="without a manifest"):
            build(config)
        return
    asked = estimate(config)
    assert (len(asked.files), len(asked.done)) == ((1, 1) if report == "kept" else (2, 0))
    assert build(config).ok
    assert digests(output) == expected
    assert verify(output).ok
    assert estimate(config).files == []


def test_files_of_an_interrupted_build_count_before_build_json_is_there(
    many: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tsv(many.parent / "other.tsv", ("index", "image"), [("1", picture(1))])

    def stop(done: int, total: int) -> None:
        if done == 25:  # of 24 rows and 1
            raise Killed

    with pytest.raises(Killed):
        build(configure(many.parent), progress=stop)
    assert not (Path(configure(many).output) / "build.json").exists()
    assert {name.partition("_")[0] for name in estimate(configure(many.parent)).done} == {"many"}
    assert build(configure(many.parent)).images == 0, "the interruption has kept that of the other source too"


def test_a_build_report_that_was_lost_is_written_again(many: Path, configure: Configure) -> None:
    output = build(configure(many, variants=["clean"])).output
    (output / "build.json").unlink()
    other = write_tsv(many.parent / "other.tsv", ("index", "image"), [("1", picture(1))])
    build(configure(other, variants=["clean"]))
    assert verify(output, source=many.parent).problems == []
