"""``degrade images``: the same names out, resumable, the draws of ``RandomDegradation``."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import degrade
from degrade.build import degrade_images
from degrade.builder import training
from degrade.config import ConfigError, ImagesConfig
from degrade.data import images, staging
from degrade.data.errors import SourceError
from degrade.data.staging import FolderError

from .test_resume import Killed, kill_after

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
                before, after = old.extractfile(member).read(), new.extractfile(member).read()  # type: ignore[union-attr]
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


def test_finished_images_are_left_alone_and_new_ones_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(degrade_images(configure(folder)).output)
    count = []
    decode = images.decode
    monkeypatch.setattr(images, "decode", lambda *args, **kwargs: (count.append(1), decode(*args, **kwargs))[1])
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
    assert tree(report.output) == before


@pytest.mark.parametrize(("what", "gone"), [("folder", "a.jpg"), ("shards", "train-000000.tar")])
def test_what_is_gone_after_a_kill_is_made_again(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, what: str, gone: str
) -> None:
    """Also where the journal says that it is there."""
    source: Path = request.getfixturevalue(what)
    monkeypatch.setattr(staging, "SYNC_SECONDS", 0.0)
    expected = tree(degrade_images(configure(source, "whole")).output)
    found = 0
    for steps in range(1, 300):
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
    degrade_images(configure(folder))
    with pytest.raises(FolderError, match=r"seed \(there: 0, now: 1\)"):
        degrade_images(configure(folder, seed=1))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "d.gif").write_text("mine")
    with pytest.raises(FolderError, match="is there without a record"):
        degrade_images(configure(folder, "foreign"))
    assert (tmp_path / "foreign" / "d.gif").read_text() == "mine"
    (tmp_path / "foreign" / training.RECORDS).write_text('{"mine": 1}\n')
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
