"""``degrade images``: the same names out, resumable, the draws of ``RandomDegradation``."""

import errno
import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import degrade
from degrade.build import degrade_images, verify
from degrade.builder import training_records
from degrade.config import ConfigError, ImagesConfig
from degrade.data import images, staging
from degrade.data.errors import SourceError
from degrade.data.staging import FolderError
from degrade.engines import local

from .test_resume import Killed, kill_after, killed_at_random

QUICK = {"scan_lines": 1, "block_exchange": 2, "dark_illumination": 1}
NAMES = ["a.jpg", "b/2.png", "b/c/3.webp", "d.gif", "e.JPEG", "f.bmp"]


def encoded(seed: int, kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (24 + seed % 2, 40, 3), np.uint8)).save(file, kind)
    return file.getvalue()


KINDS = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".webp": "WEBP", ".gif": "GIF", ".bmp": "BMP"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for n, name in enumerate(NAMES):
        path = tmp_path / "train" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(n, KINDS[path.suffix.lower()]))
    (tmp_path / "train" / "notes.txt").write_text("not an image")
    return tmp_path / "train"


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two shards with the same keys, members in several orders, and a sample of two images."""
    for shard in range(2):
        (tmp_path / "shards").mkdir(exist_ok=True)
        with tarfile.open(tmp_path / "shards" / f"train-{shard:06d}.tar", "w") as archive:
            for n in range(5):
                members = {"json": b'{"n": 1}', "jpg": encoded(n + shard, "JPEG"), "txt": b"a photograph"}
                if n == 3:
                    members["second.png"] = encoded(9, "PNG")
                for suffix, data in members.items():
                    info = tarfile.TarInfo(f"{n:04d}.{suffix}")
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
    return tmp_path / "shards"


def configure(source: Path, output: str = "out", **more: Any) -> ImagesConfig:
    return ImagesConfig(source=str(source), output=str(source.parent / output), **{"mixture": dict(QUICK), "workers": 0, **more})


def tree(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[Any]:
    """The first argument of each call of a function from now on."""
    calls: list[Any] = []
    function = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args, **more: (calls.append(args[0]), function(*args, **more))[1])
    return calls


def test_the_same_names_and_the_draws_of_the_training_loop(folder: Path) -> None:
    report = degrade_images(configure(folder, codec="png", seed=3))
    assert (report.made, report.there, report.failed) == (6, 0, [])
    assert set(tree(report.output)) == {*NAMES, "manifest.jsonl"}
    head, *records = lines(report.output / "manifest.jsonl")
    assert head["configuration"]["seed"] == 3
    assert [line["name"] for line in records] == NAMES
    augment = degrade.RandomDegradation(QUICK, p=1, seed=3)
    for line in records:
        image = images.decode((folder / line["name"]).read_bytes())
        made = images.decode((report.output / line["name"]).read_bytes())
        out, (record,) = augment(image[None], keys=[line["name"]], return_records=True)
        assert line["record"] == json.loads(json.dumps(record))
        assert torch.equal(made, out[0])
        assert torch.equal(made, degrade.replay(image, line["record"]))
        assert line["sha256"] == hashlib.sha256((report.output / line["name"]).read_bytes()).hexdigest()
    assert len({json.dumps(line["record"]) for line in records}) == len(records)


def test_codecs_follow_the_names(folder: Path) -> None:
    output = degrade_images(configure(folder)).output
    kinds = {name: Image.open(output / name).format for name in NAMES}
    assert kinds == {"a.jpg": "JPEG", "b/2.png": "PNG", "b/c/3.webp": "WEBP", "d.gif": "PNG", "e.JPEG": "JPEG", "f.bmp": "PNG"}


@pytest.mark.parametrize("more", [{"workers": 2}, {"workers": 3, "batch": 1}, {"batch": 32}])
def test_workers_and_batches_move_no_byte(folder: Path, shards: Path, more: dict[str, int]) -> None:
    for source in (folder, shards):
        one, two = degrade_images(configure(source, "one")), degrade_images(configure(source, "two", **more))
        assert tree(one.output) == tree(two.output)
        degrade_images(configure(source, "one", overwrite=True, seed=1))
        assert tree(one.output).keys() == tree(two.output).keys()
        assert all(digest != tree(two.output)[name] for name, digest in tree(one.output).items())
        degrade_images(configure(source, "one", overwrite=True))
        (source.parent / "one").rename(source.parent / f"was-{source.name}")
        (source.parent / "two").rename(source.parent / f"too-{source.name}")


def test_shards_keep_their_members(shards: Path) -> None:
    report = degrade_images(configure(shards))
    assert report.made == 12
    assert set(tree(report.output)) == {f"train-{n:06d}{suffix}" for n in range(2) for suffix in (".tar", ".manifest.jsonl")}
    for path in sorted(shards.iterdir()):
        with tarfile.open(path) as old, tarfile.open(report.output / path.name) as new:
            assert new.getnames() == old.getnames()
            records = {line["name"]: line for line in lines(report.output / f"{path.stem}.manifest.jsonl")[1:]}
            for member in old.getnames():
                before, after = old.extractfile(member).read(), new.extractfile(member).read()
                if member in records:
                    assert records[member]["key"] == f"{path.stem}/{member}"
                    assert records[member]["sha256"] == hashlib.sha256(after).hexdigest()
                    assert before != after
                else:
                    assert before == after
    assert report.output.joinpath("train-000000.tar").stat().st_size % 512 == 0


@pytest.mark.parametrize("every", [0.0, 1e9])
@pytest.mark.parametrize("what", ["folder", "shards"])
def test_killed_at_many_moments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, what: str, every: float) -> None:
    source: Path = request.getfixturevalue(what)
    monkeypatch.setattr(staging, "SYNC_SECONDS", every)
    expected = tree(degrade_images(configure(source, "whole")).output)
    output, kills = Path(configure(source).output), 0
    for steps in range(1, 200, 2 if every else 1):
        with monkeypatch.context() as patched:
            kill_after(patched, steps % 40 + 1 if every == 0 else steps)
            try:
                degrade_images(configure(source, workers=steps % 2))
                break
            except Killed:
                kills += 1
        for name, digest in tree(output).items():
            assert name.startswith(staging.FOLDER) or digest == expected[name], name
    assert kills >= 5
    assert tree(output) == expected


@pytest.mark.parametrize("what", ["folder", "shards"])
def test_kill_9_at_random_moments(request: pytest.FixtureRequest, what: str, tmp_path: Path) -> None:
    source: Path = request.getfixturevalue(what)
    for n in range(6, 30) if what == "folder" else ():
        (source / f"{n}.png").write_bytes(encoded(n, "PNG"))
    for n in range(2, 6) if what == "shards" else ():
        shutil.copyfile(source / "train-000000.tar", source / f"train-{n:06d}.tar")
    whole = degrade_images(configure(source, "whole"))
    config = configure(source, workers=2)
    kills, decoded = killed_at_random("degrade_images", config, tmp_path / "decoded")
    assert tree(Path(config.output)) == tree(whole.output)
    # A kill repeats the samples (of two images at most) that are being written, that are ready, and that are being made.
    assert whole.made <= decoded <= whole.made + kills * 2 * (1 + 2 * local.ITEMS_A_WORKER)


@pytest.mark.parametrize("end", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize(("what", "done", "rest"), [("folder", 4, 2), ("shards", 3, 9)])
def test_ctrl_c_and_errors_lose_nothing(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, what: str, done: int, rest: int, end: type[BaseException]
) -> None:
    source: Path = request.getfixturevalue(what)
    monkeypatch.setattr(staging, "SYNC_SECONDS", 1e9)

    def stop(made: int, total: int | None) -> None:
        if made == done:
            raise end

    with pytest.raises(end):
        degrade_images(configure(source), stop)
    count = counted(monkeypatch, images, "decode")
    assert tree(degrade_images(configure(source)).output) == tree(degrade_images(configure(source, "whole")).output)
    assert len(count) == rest + (6 if what == "folder" else 12)


@pytest.mark.parametrize("what", ["folder", "shards"])
def test_ctrl_c_at_many_moments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    source: Path = request.getfixturevalue(what)
    monkeypatch.setattr(staging, "SYNC_SECONDS", 1e9)
    expected = tree(degrade_images(configure(source, "whole")).output)
    stopped = 0
    for steps in range(1, 80, 3):
        with monkeypatch.context() as patched:
            kill_after(patched, steps, ctrl_c=True)
            try:
                degrade_images(configure(source, f"out{steps}"))
            except KeyboardInterrupt:
                stopped += 1
        assert tree(degrade_images(configure(source, f"out{steps}")).output) == expected, steps
    assert stopped > 10


def test_finished_images_are_left_alone_and_new_ones_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(degrade_images(configure(folder)).output)
    count = counted(monkeypatch, images, "decode")
    assert (lambda report: (report.made, report.there))(degrade_images(configure(folder))) == (0, 6)
    assert count == []
    (folder / "aa.png").write_bytes(encoded(8, "PNG"))
    told: list[Any] = []
    report = degrade_images(configure(folder), lambda *args: told.append(args), lambda *args: told.append(args))
    assert (report.made, report.there, len(count)) == (1, 6, 1)
    assert told == [(1, 6), (7, 7)]
    after = tree(report.output)
    assert {name for name in after if before.get(name) != after[name]} == {"aa.png", "manifest.jsonl"}
    assert len(lines(report.output / "manifest.jsonl")) == 8


@pytest.mark.parametrize(("what", "gone"), [("folder", ["a.jpg", "b/c/3.webp"]), ("shards", ["train-000001.tar"])])
def test_what_is_gone_is_made_again(request: pytest.FixtureRequest, what: str, gone: list[str]) -> None:
    source: Path = request.getfixturevalue(what)
    first = degrade_images(configure(source))
    before = tree(first.output)
    for name in gone:
        (first.output / name).unlink()
    report = degrade_images(configure(source))
    made = 6 if what == "shards" else len(gone)
    assert (report.made, report.there) == (made, first.made - made)
    assert report.notes == [f"made again, because they were missing: {', '.join(gone)}"]
    assert tree(report.output) == before
    assert degrade_images(configure(source)).notes == []


@pytest.mark.parametrize(("what", "gone"), [("folder", "a.jpg"), ("shards", "train-000000.tar")])
def test_what_is_gone_after_a_kill_is_made_again(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, what: str, gone: str
) -> None:
    """Also where the journal says that it is there."""
    source: Path = request.getfixturevalue(what)
    monkeypatch.setattr(staging, "SYNC_SECONDS", 0.0)
    expected = tree(degrade_images(configure(source, "whole")).output)
    found = 0
    for steps in range(1, 300, 2):
        output = f"out{steps}"
        with monkeypatch.context() as patched:
            kill_after(patched, steps)
            try:
                degrade_images(configure(source, output))
                break
            except Killed:
                pass
        path = source.parent / output / gone
        if path.exists():
            path.unlink()
            found += 1
            assert tree(degrade_images(configure(source, output)).output) == expected, steps
    assert found >= 3


def flipped(path: Path) -> None:
    """Change a byte of a file's middle, which its size does not tell."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def shortened(path: Path) -> None:
    """Cut a file off, which its time of change does not tell."""
    before = path.stat()
    os.truncate(path, before.st_size - 1)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [flipped, shortened])
@pytest.mark.parametrize(("what", "name"), [("folder", "b/2.png"), ("shards", "train-000000.tar")])
def test_an_output_that_has_changed_is_made_again(
    request: pytest.FixtureRequest, what: str, name: str, change: Callable[[Path], None]
) -> None:
    source: Path = request.getfixturevalue(what)
    output = degrade_images(configure(source)).output
    before = tree(output)
    change(output / name)
    report = degrade_images(configure(source))
    assert report.made == (1 if what == "folder" else 6)
    assert report.notes == [f"made again, because they, their records or their sources had changed: {name}"]
    assert tree(output) == before


@pytest.mark.parametrize("larger", [False, True])
@pytest.mark.parametrize(("what", "name"), [("folder", "f.bmp"), ("shards", "train-000000.tar")])
def test_a_source_that_has_changed_is_read_again(request: pytest.FixtureRequest, what: str, name: str, larger: bool) -> None:
    """Also where only a text beside the images has."""
    source: Path = request.getfixturevalue(what)
    output = degrade_images(configure(source)).output
    path = source / name
    if what == "shards":
        old = path.read_bytes()
        path.write_bytes(old.replace(b"a photograph", b"a PHOTOGRAPH", 1) + bytes(10240 if larger else 0))
    else:
        Image.fromarray(np.zeros((26 if larger else 25, 40, 3), np.uint8)).save(path)
    report = degrade_images(configure(source))
    assert report.notes == [f"made again, because they, their records or their sources had changed: {name}"]
    assert tree(output) == tree(degrade_images(configure(source, "fresh")).output)
    assert degrade_images(configure(source)).notes == []


@pytest.mark.parametrize(("what", "files"), [("folder", 6), ("shards", 2)])
def test_only_files_whose_times_differ_are_hashed_and_only_once(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, what: str, files: int
) -> None:
    source: Path = request.getfixturevalue(what)
    output = degrade_images(configure(source)).output
    hashed = counted(monkeypatch, training_records, "sha256")
    shutil.copytree(output, source.parent / "copy", copy_function=shutil.copyfile)
    for name, count in (("out", 0), ("copy", 2 * files), ("copy", 0)):
        hashed.clear()
        report = degrade_images(configure(source, name))
        assert (report.made, report.there > 0, len(hashed)) == (0, True, count)
    assert tree(source.parent / "copy") == tree(output)


def test_a_source_that_turns_bad_takes_its_output_along(folder: Path) -> None:
    good = (folder / "a.jpg").read_bytes()
    first = degrade_images(configure(folder))
    before = tree(first.output)
    (folder / "a.jpg").write_bytes(good[:200])
    assert len(degrade_images(configure(folder)).failed) == 1
    assert not (first.output / "a.jpg").exists()
    (folder / "a.jpg").write_bytes(good)
    assert degrade_images(configure(folder)).failed == []
    assert tree(first.output) == before


def test_a_shard_that_changes_between_two_runs_or_in_one_is_not_mixed(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = sorted(shards.iterdir())

    def swap(done: int, total: int | None) -> None:
        if done == 2:
            first.write_bytes(second.read_bytes())

    with pytest.raises(SourceError, match=r"train-000000\.tar has changed while it was being read"):
        degrade_images(configure(shards), swap)
    assert not (shards.parent / "out" / first.name).exists()
    assert tree(degrade_images(configure(shards)).output) == tree(degrade_images(configure(shards, "fresh")).output)

    def stop(done: int, total: int | None) -> None:
        if done == 2:
            raise Killed

    monkeypatch.setattr(staging, "SYNC_SECONDS", 0.0)
    with pytest.raises(Killed):
        degrade_images(configure(shards, "between"), stop)
    first.write_bytes(first.read_bytes().replace(b"a photograph", b"a PHOTOGRAPH"))
    assert tree(degrade_images(configure(shards, "between")).output) == tree(degrade_images(configure(shards, "fresh")).output)


def test_images_whose_source_is_gone(folder: Path, shards: Path) -> None:
    (folder / "bad.jpg").write_bytes(b"no image")
    output = degrade_images(configure(folder)).output
    before = tree(output)
    (folder / "a.jpg").unlink()
    (folder / "bad.jpg").unlink()
    for _ in range(2):
        report = degrade_images(configure(folder))
        assert (report.made, report.there, report.failed) == (0, 5, [])
        assert report.notes == [f"left in {output}, though their sources are gone: a.jpg"]
        assert {name: digest for name, digest in tree(output).items() if name != "manifest.jsonl"} == {
            name: digest for name, digest in before.items() if name != "manifest.jsonl"
        }
    assert [line["name"] for line in lines(output / "manifest.jsonl")[1:]] == NAMES
    (output / "a.jpg").unlink()
    assert degrade_images(configure(folder)).notes == []
    assert [line["name"] for line in lines(output / "manifest.jsonl")[1:]] == NAMES[1:]

    output = degrade_images(configure(shards, "tar")).output
    before = tree(output)
    (shards / "train-000001.tar").unlink()
    report = degrade_images(configure(shards, "tar"))
    assert (report.made, report.there, report.notes) == (0, 6, [f"left in {output}, though their sources are gone: train-000001.tar"])
    assert tree(output) == before


@pytest.mark.parametrize(("damage", "line"), [("cut off", 7), ("not JSON", 3), ("not a record", 3)])
def test_damaged_records_are_named_and_a_new_start_helps(folder: Path, damage: str, line: int) -> None:
    output = degrade_images(configure(folder)).output
    before = tree(output)
    records = output / training_records.RECORDS
    raw = records.read_bytes().splitlines(keepends=True)
    raw[line - 1] = {"cut off": raw[line - 1][:50], "not JSON": b"\x00\xff\n", "not a record": b'{"name": 3}\n'}[damage]
    records.write_bytes(b"".join(raw))
    with pytest.raises(FolderError, match=rf"manifest\.jsonl, line {line}: .*overwrite=true"):
        degrade_images(configure(folder))
    assert verify(output).problems == [f"manifest.jsonl, line {line}: cut off, or not a line of `degrade images`"]
    lost, kept = (NAMES[at] for at in (line - 2, 0))
    (folder / lost).rename(folder.parent / "elsewhere")
    report = degrade_images(configure(folder, overwrite=True))
    assert report.notes == [f"damaged lines of {records}: 1; images that only they named are left, unless the source has them"]
    assert tree(output)[lost] == before[lost], "nothing says any more that it was ours"
    assert tree(output)[kept] == before[kept]
    assert verify(output).ok


def test_a_damaged_journal_and_a_new_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "SYNC_SECONDS", 0.0)

    def stop(done: int, total: int | None) -> None:
        raise Killed

    with pytest.raises(Killed):
        degrade_images(configure(folder), stop)
    journal = folder.parent / "out" / staging.FOLDER / "images" / staging.JOURNAL
    journal.write_bytes(journal.read_bytes()[:20])
    with pytest.raises(FolderError, match=r"journal\.json is damaged.*overwrite=true"):
        degrade_images(configure(folder))
    assert (folder.parent / "out" / "a.jpg").exists()
    (folder / "a.jpg").unlink()
    assert "a.jpg" not in tree(degrade_images(configure(folder, overwrite=True)).output), "the staged records say that it was ours"


def test_a_new_start_removes_nothing_outside(folder: Path) -> None:
    output = degrade_images(configure(folder)).output
    (folder.parent / "precious").write_text("mine")
    records = output / training_records.RECORDS
    head, first = records.read_text().splitlines()[:2]
    for name in ("../precious", str(folder.parent / "precious")):
        records.write_text(head + "\n" + json.dumps(json.loads(first) | {"name": name}) + "\n")
        degrade_images(configure(folder, overwrite=True))
        assert (folder.parent / "precious").read_text() == "mine"


@pytest.mark.parametrize("damage", ["a line short", "cut off", "not JSON"])
def test_a_shard_with_damaged_records_is_made_again(shards: Path, damage: str) -> None:
    output = degrade_images(configure(shards)).output
    before = tree(output)
    records = output / "train-000001.manifest.jsonl"
    raw = records.read_bytes()
    *rest, last = raw.splitlines(keepends=True)
    damaged = {"a line short": b"".join(rest), "cut off": raw[:-30], "not JSON": b"".join([*rest[:-1], b"\n", last])}
    records.write_bytes(damaged[damage])
    assert any("train-000001.manifest.jsonl" in text for text in verify(output).problems)
    report = degrade_images(configure(shards))
    assert (report.made, report.there) == (6, 6)
    assert report.notes == ["made again, because they, their records or their sources had changed: train-000001.tar"]
    assert tree(output) == before


def test_verify_misses_the_records_of_a_shard(shards: Path) -> None:
    output = degrade_images(configure(shards)).output
    (output / "train-000001.manifest.jsonl").unlink()
    assert verify(output).problems == ["train-000001.tar has no records (train-000001.manifest.jsonl)"]


@pytest.mark.parametrize(("what", "name", "files"), [("folder", "e.JPEG", 6), ("shards", "train-000001.tar", 2)])
def test_verify(request: pytest.FixtureRequest, what: str, name: str, files: int) -> None:
    source: Path = request.getfixturevalue(what)
    output = degrade_images(configure(source)).output
    told: list[tuple[int, int]] = []
    report = verify(output, source=source, progress=lambda *args: told.append(args))
    assert (report.ok, report.images, told[-1]) == (True, 6 if what == "folder" else 12, (2 * files, 2 * files))
    shortened(output / name)
    (problem,) = verify(output).problems
    assert problem.startswith(f"{output / name}: its sha256 is ")
    flipped(source / name)
    assert [text.split(": ")[0] for text in verify(output, source=source).problems] == [str(output / name), str(source / name)]
    (output / name).unlink()
    assert verify(output).problems == [f"{output / name} is missing"]
    with pytest.raises(SourceError, match="there is no"):
        verify(output, source=source / "nowhere")


def test_verify_names_images_that_could_not_be_degraded(folder: Path) -> None:
    (folder / "bad.jpg").write_bytes(b"no image")
    (problem,) = verify(degrade_images(configure(folder)).output).problems
    assert problem.startswith("bad.jpg could not be degraded: ")


def test_a_file_that_may_not_grow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: staging.Growing, name: str, data: bytes) -> None:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

    with monkeypatch.context() as patched:
        patched.setattr(staging.Growing, "append", full)
        with pytest.raises(FolderError, match=r"a file in .*out may not grow further\. What is done is kept"):
            degrade_images(configure(folder))
    assert degrade_images(configure(folder)).made == 6


def test_bad_images_are_listed_and_never_clean(folder: Path, shards: Path) -> None:
    (folder / "bad.jpg").write_bytes((folder / "a.jpg").read_bytes()[:200])
    report = degrade_images(configure(folder))
    assert report.made == 6
    assert [line for line in report.failed if line.startswith(f"{folder}, bad.jpg: ")] == report.failed != []
    assert not (report.output / "bad.jpg").exists()
    assert degrade_images(configure(folder)).failed == report.failed, "tried again, and listed again"
    (folder / "bad.jpg").write_bytes((folder / "a.jpg").read_bytes())
    again = degrade_images(configure(folder))
    assert (again.made, again.failed) == (1, [])
    assert [line["status"] for line in lines(report.output / "manifest.jsonl")[1:]] == ["ok"] * 7

    path = shards / "train-000001.tar"
    data = path.read_bytes()
    png = encoded(9, "PNG")
    path.write_bytes(data.replace(png, png[:60] + bytes(len(png) - 60)))
    report = degrade_images(configure(shards, "tar"))
    assert report.made == 10
    assert [text.split(": ")[0] for text in report.failed] == [f"{path}, 0003.jpg", f"{path}, 0003.second.png"]
    with tarfile.open(report.output / path.name) as archive:
        assert not [name for name in archive.getnames() if name.startswith("0003")]
    assert degrade_images(configure(shards, "tar")).failed == report.failed
    problems = [problem.split(": ")[0] for problem in verify(report.output).problems]
    assert problems == [f"{path.name}, {name} could not be degraded" for name in ("0003.jpg", "0003.second.png")]


def test_what_is_refused(folder: Path, tmp_path: Path) -> None:
    for output in (".", "train", "train/inside"):
        if output != ".":
            with pytest.raises(ConfigError, match="lies in the source"):
                degrade_images(configure(folder, output))
    with pytest.raises(SourceError, match="there is no"):
        degrade_images(configure(tmp_path / "nowhere"))
    with pytest.raises(SourceError, match="neither a folder nor"):
        degrade_images(configure(folder / "a.jpg", "../out2"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="neither images nor"):
        degrade_images(configure(tmp_path / "empty"))
    with pytest.raises(ConfigError, match="device: got 'nonsense'"):
        degrade_images(configure(folder, device="nonsense"))
    assert not Path(configure(folder).output).exists()
    degrade_images(configure(folder))
    with pytest.raises(FolderError, match=r"seed \(there: 0, now: 1\)"):
        degrade_images(configure(folder, seed=1))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "d.gif").write_text("mine")
    with pytest.raises(FolderError, match="is there without a record"):
        degrade_images(configure(folder, "foreign"))
    assert (tmp_path / "foreign" / "d.gif").read_text() == "mine"
    (tmp_path / "foreign" / training_records.RECORDS).write_text('{"mine": 1}\n')
    with pytest.raises(FolderError, match="not from `degrade images`"):
        degrade_images(configure(folder, "foreign", overwrite=True))


def test_neighbours_of_one_size_are_degraded_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    forward = degrade.RandomDegradation.forward

    def counting(self: degrade.RandomDegradation, batch: torch.Tensor, **more: Any) -> Any:
        sizes.append(len(batch))
        return forward(self, batch, **more)

    monkeypatch.setattr(degrade.RandomDegradation, "forward", counting)
    degrade_images(configure(folder, batch=4))
    assert sorted(sizes) == [1, 1, 2, 2]
