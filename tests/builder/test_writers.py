"""Parquet and webdataset shards hold what the TSV shards hold."""

import ast
import base64
import importlib.metadata
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from degrade import cli
from degrade.build import build, verify
from degrade.builder import settings
from degrade.config import BuildConfig
from degrade.data import staging
from degrade.data.writers import parquet, webdataset

from .conftest import digests
from .test_build import STEMS, table
from .test_resume import Killed, kill_after

Configure = Callable[..., BuildConfig]


def expected(folder: Path, stem: str) -> list[tuple[dict[str, str], list[bytes]]]:
    """Text and images of every row of a TSV shard, references followed."""
    rows = table(folder / f"{stem}.tsv")
    cells = {row["index"]: row["image"] for row in rows}
    found = []
    for row in rows:
        cell = cells.get(row["image"], row["image"])
        parts = ast.literal_eval(cell) if cell.startswith("[") else [cell] if cell else []
        found.append(({name: text for name, text in row.items() if name != "image"}, [base64.b64decode(part) for part in parts]))
    return found


def test_parquet(benchmark: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(parquet, "GROUP_ROWS", 3)
    plain = build(configure(benchmark, "plain"))
    report = build(configure(benchmark, writer="parquet"))
    assert [path.name for path in report.files] == [f"MMStar_{stem}.parquet" for stem in STEMS]
    for path in report.files:
        file = pq.ParquetFile(path)
        assert file.num_row_groups == 3
        features = json.loads(file.schema_arrow.metadata[b"huggingface"])["info"]["features"]
        assert features["image"] == {"feature": {"_type": "Image"}, "_type": "Sequence"}
        rows = file.read().to_pylist()
        got = [({k: v for k, v in row.items() if k != "image"}, [image["bytes"] for image in row["image"]]) for row in rows]
        assert got == expected(plain.output, path.stem)
        assert Image.open(io.BytesIO(rows[0]["image"][0]["bytes"])).size == (40, 24)


def test_parquet_without_lists(tmp_path: Path, configure: Configure) -> None:

    from .conftest import picture, write_tsv

    source = write_tsv(tmp_path / "s" / "t.tsv", ("index", "image"), [("1", picture(1)), ("2", "1"), ("3", "")])
    (path, *_) = build(configure(source, writer="parquet", variants=["clean"])).files
    file = pq.ParquetFile(path)
    assert json.loads(file.schema_arrow.metadata[b"huggingface"])["info"]["features"]["image"] == {"_type": "Image"}
    one, two, three = file.read().to_pylist()
    assert one["image"]["bytes"] == two["image"]["bytes"]
    assert (one["image"]["path"], three["image"]) == ("00000000.jpg", None)


def test_webdataset(benchmark: Path, configure: Configure) -> None:
    plain = build(configure(benchmark, "plain"))
    report = build(configure(benchmark, writer="webdataset", shard_rows=3))
    assert [path.name for path in report.files] == [f"MMStar_{stem}-{n:06d}.tar" for stem in STEMS for n in range(3)]
    for stem in STEMS:
        found: dict[str, dict[str, bytes]] = {}
        for path in sorted(report.output.glob(f"MMStar_{stem}-*.tar")):
            with tarfile.open(path) as archive:
                for member in archive:
                    key, _, suffix = member.name.partition(".")
                    assert (member.mtime, member.uid) == (0, 0)
                    found.setdefault(key, {})[suffix] = archive.extractfile(member).read()
        got = [(json.loads(row.pop("json")), [data for _, data in sorted(row.items())]) for _, row in sorted(found.items())]
        assert got == expected(plain.output, f"MMStar_{stem}")


@pytest.mark.parametrize("writer", ["parquet", "webdataset"])
def test_same_bytes_after_interruptions(benchmark: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch, writer: str) -> None:
    monkeypatch.setattr(staging, "SYNC_SECONDS", 0.0)
    whole = digests(build(configure(benchmark, "whole", writer=writer, shard_rows=3)).output)
    for steps in (30, 60, 62, 65, 70, 75):
        with monkeypatch.context() as patched:
            kill_after(patched, steps)
            try:
                build(configure(benchmark, writer=writer, shard_rows=3))
            except Killed:
                continue
    assert digests(build(configure(benchmark, writer=writer, shard_rows=3)).output) == whole


SCRIPT = """
import json, os, random, signal, sys, time
from degrade.build import build
from degrade.config import BuildConfig
from degrade.data.writers import parquet, webdataset

def slow(function):
    def wrapped(*args):
        time.sleep(0.05 if kills < 8 else 0)
        return function(*args)
    return wrapped

webdataset._add, parquet._cell = slow(webdataset._add), slow(parquet._cell)  # most kills shall come amid a conversion
rng, found = random.Random(2), []
for settings in json.loads(sys.argv[1]):
    config, kills = BuildConfig(**settings), 0
    while True:
        process = os.fork()  # of a process that has started no threads
        if process == 0:
            build(config)
            os._exit(0)
        if kills < 8:
            time.sleep(rng.uniform(0.05, 0.4))
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        if not os.WIFSIGNALED(status):
            break
        kills += 1
    found.append([kills, os.waitstatus_to_exitcode(status)])
print(json.dumps(found))
"""


def test_kill_9_amid_conversions(benchmark: Path, configure: Configure) -> None:
    common = {"shard_rows": 3, "variants": ["mixed", "clean"]}
    whole = [digests(build(configure(benchmark, f"whole-{w}", writer=w, **common)).output) for w in ("parquet", "webdataset")]
    configs = [configure(benchmark, writer, writer=writer, **common) for writer in ("parquet", "webdataset")]
    command = [sys.executable, "-c", SCRIPT, json.dumps([asdict(config) for config in configs])]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout)
    assert all(kills > 1 and code == 0 for kills, code in found), found
    assert [digests(Path(config.output)) for config in configs] == whole


@pytest.mark.parametrize(("writer", "module", "name", "calls"), [("parquet", parquet, "_cell", 12), ("webdataset", webdataset, "_add", 25)])
def test_killed_inside_a_conversion(
    benchmark: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch, writer: str, module: object, name: str, calls: int
) -> None:
    whole = digests(build(configure(benchmark, "whole", writer=writer, shard_rows=3)).output)
    original, left = getattr(module, name), [calls]

    def dies(*args: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return original(*args)

    with monkeypatch.context() as patched:
        patched.setattr(module, name, dies)
        with pytest.raises(Killed):
            build(configure(benchmark, writer=writer, shard_rows=3))
    assert digests(build(configure(benchmark, writer=writer, shard_rows=3)).output) == whole


@pytest.mark.parametrize("writer", ["tsv", "parquet", "webdataset"])
def test_vlmevalkit_is_advised_for_what_it_reads(
    benchmark: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], writer: str
) -> None:
    monkeypatch.setenv("LMUData", str(benchmark.parent))
    (benchmark.parent / "images" / "MMStar_CLEAN").mkdir(parents=True)
    assert build(configure(benchmark, variants=["clean"])).vlmevalkit
    config = configure(benchmark, writer=writer, variants=["clean"], overwrite=True)
    assert cli._build(config) == cli.DONE
    said = "".join(capsys.readouterr())
    output = Path(config.output)
    assert (output / "vlmevalkit.json").exists() is ("VLMEvalKit" in said) is ("MMStar_CLEAN" in said) is (writer == "tsv")
    assert verify(output).problems == []


def test_versions_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = settings.libraries()
    monkeypatch.delattr(importlib.metadata.Distribution, "from_name")
    settings.libraries().clear()
    assert settings.libraries() == first
    assert first["numpy"] == np.__version__
