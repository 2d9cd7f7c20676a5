"""``verify`` finds what is wrong with a build, and nothing where nothing is."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from degrade.build import build, verify
from degrade.builder.folder import sha256
from degrade.config import BuildConfig
from degrade.data import manifest, text
from degrade.data.errors import SourceError
from degrade.data.staging import FolderError

Configure = Callable[..., BuildConfig]


@pytest.fixture(params=["tsv", "parquet", "webdataset"])
def built(request: pytest.FixtureRequest, benchmark: Path, configure: Configure) -> Path:
    return build(configure(benchmark, writer=request.param, variants=["mixed", "clean"], shard_rows=3)).output


@pytest.fixture
def plain(benchmark: Path, configure: Configure) -> Path:
    return build(configure(benchmark, variants=["mixed", "clean"], severities=["low"])).output


def forge(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file and the hash of it in build.json, so that only its content tells."""
    data = path.read_bytes()
    changed = change(data)
    assert changed != data
    path.write_bytes(changed)
    report = json.loads((path.parent / "build.json").read_text())
    for entry in report["benchmarks"]["MMStar"]["files"].values():
        if path.name in entry["files"]:
            entry["files"][path.name]["sha256"] = sha256(path)
    (path.parent / "build.json").write_text(json.dumps(report))


def test_nothing_is_wrong(built: Path) -> None:
    report = verify(built)
    assert report.problems == []
    assert (report.shards, report.rows, report.images, report.replayed) == (4, 32, 20, 20)
    assert verify(built, sample=2).replayed == 8


def test_a_flipped_byte(built: Path) -> None:
    for path in sorted(built.iterdir()):
        if path.name in ("build.json", "vlmevalkit.json"):
            continue
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        whole = path.read_bytes()
        path.write_bytes(data)
        problems = verify(built, sample=0).problems
        assert any(path.name in problem and "sha256" in problem for problem in problems), path.name
        path.write_bytes(whole)
    assert verify(built, sample=0).ok


def rows(data: bytes) -> list[list[bytes]]:
    import io

    return [cells for _, cells in text.records(io.BytesIO(data), "")]


def joined(found: list[list[bytes]]) -> bytes:
    return b"".join(text.line([cell.decode() for cell in cells]) for cells in found)


def test_a_lost_row_and_a_row_out_of_order(plain: Path) -> None:
    path = plain / "MMStar_CLEAN.tsv"
    whole = path.read_bytes()
    forge(path, lambda data: joined(rows(data)[:3] + rows(data)[4:]))
    assert verify(plain).problems == ["MMStar_CLEAN: row 2, index '8': index '9' stands in its place"]
    path.write_bytes(whole)
    forge(path, lambda data: joined(rows(data)[:-1]))
    assert verify(plain).problems == ["MMStar_CLEAN: row 7, index '13': the shard ends before it"]
    path.write_bytes(whole)
    forge(path, lambda data: joined(rows(data) + rows(data)[-1:]))
    assert verify(plain).problems == ["MMStar_CLEAN: there is more in it than in the source"]


def test_a_changed_cell(plain: Path) -> None:
    forge(plain / "MMStar_CLEAN.tsv", lambda data: data.replace(b"2.50", b"2.5"))
    assert verify(plain).problems == ["MMStar_CLEAN: row 2, index '8', column answer: '2.5' where the source has '2.50'"]


def test_of_a_long_cell_a_piece_is_shown(tmp_path: Path, configure: Configure) -> None:
    from .conftest import picture, write_tsv

    question = "".join(f"{n:07d} " for n in range(50_000))
    source = write_tsv(tmp_path / "s" / "MMStar.tsv", ("index", "image", "question"), [("1", picture(1), question)])
    output = build(configure(source, variants=["clean"])).output
    path = output / "MMStar_CLEAN.tsv"
    whole = path.read_bytes()
    forge(path, lambda data: data.replace(b"0040000 ", b"004x000 "))
    (problem,) = verify(output).problems
    shown = question[320_003 - 40 : 320_003 + 40]
    there = f"...{shown.replace('0040000', '004x000')!r}... where the source has ...{shown!r}..."
    assert problem == f"MMStar_CLEAN: row 0, index '1', column question: from character 320003 on (the first is 0), {there}"
    path.write_bytes(whole)
    forge(path, lambda data: data.replace(question.encode(), b""))
    (problem,) = verify(output).problems
    assert f"from character 0 on (the first is 0), '' where the source has {question[:40]!r}..." in problem


def test_another_image_and_another_reference(plain: Path) -> None:
    def swap(data: bytes) -> bytes:
        found = rows(data)
        found[1][1], found[8][1] = found[8][1], found[1][1]
        found[2][1] = b"13"
        return joined(found)

    forge(plain / "MMStar_LOW_LEVEL_LOW.tsv", swap)
    problems = verify(plain).problems
    assert [problem.split(": ", 1)[1] for problem in problems] == [
        "row 0, index '7': the image is not the one in the manifest",
        "row 7, index '13': the image is not the one in the manifest",
        "row 1: it does not share the image of row 0",
    ]


def test_an_image_that_does_not_replay(plain: Path) -> None:
    path = plain / ("MMStar_LOW_LEVEL_LOW" + manifest.SUFFIX)
    forge(path, lambda data: data.replace(b'"intensity":0.23,"params"', b'"intensity":0.9,"params"', 1))
    (problem,) = verify(plain).problems
    assert "index '7' of MMStar_LOW_LEVEL_LOW" in problem


def test_a_missing_file_and_another_source(plain: Path, benchmark: Path) -> None:
    (plain / "MMStar_CLEAN.tsv").unlink()
    assert verify(plain).problems == ["MMStar_CLEAN.tsv is missing"]
    benchmark.write_bytes(benchmark.read_bytes().replace(b"2.50", b"2.49"))
    missing, changed = verify(plain).problems
    assert missing == "MMStar_CLEAN.tsv is missing"
    assert f"{benchmark} is not the source that MMStar was made from: its sha256 is " in changed
    (plain / "MMStar_LOW_LEVEL_LOW.tsv").write_bytes(b"x")
    assert [problem.split(":")[0] for problem in verify(plain).problems[1:]] == ["MMStar_LOW_LEVEL_LOW.tsv", changed.split(":")[0]]
    with pytest.raises(SourceError, match=r"build\.json"):
        verify(benchmark.parent)


def test_skipped_and_kept_rows(tmp_path: Path, configure: Configure) -> None:
    from .conftest import write_tsv
    from .test_row_errors import ROWS

    source = write_tsv(tmp_path / "s" / "bad.tsv", ("index", "image", "question"), ROWS)
    for choice in ("skip", "keep"):
        for writer in ("tsv", "parquet", "webdataset"):
            output = build(configure(source, f"{choice}-{writer}", on_error=choice, writer=writer, variants=["clean"])).output
            assert verify(output).problems == []


@pytest.mark.parametrize("writer", ["tsv", "parquet", "webdataset"])
def test_cells_that_are_empty_in_the_source(tmp_path: Path, configure: Configure, writer: str) -> None:
    from .conftest import picture, write_tsv

    cells = ["", "[]", " ", " [] ", picture(1)]
    source = write_tsv(tmp_path / "s" / "gaps.tsv", ("index", "image"), [(str(n), cell) for n, cell in enumerate(cells)])
    report = build(configure(source, writer=writer, variants=["clean"]))
    assert [bad.row for bad in report.empty] == [0, 1, 2, 3]
    assert verify(report.output).problems == []


def test_an_image_where_the_source_has_none(plain: Path) -> None:
    def fill(data: bytes) -> bytes:
        found = rows(data)
        found[7][1] = found[1][1]
        return joined(found)

    forge(plain / "MMStar_CLEAN.tsv", fill)
    assert verify(plain).problems == ["MMStar_CLEAN: row 6, index '12': an image where the source has none"]


def test_files_that_the_report_does_not_name(plain: Path) -> None:
    (plain / "notes.txt").write_text("anything")
    assert verify(plain).ok
    for name in ("more.tsv", f"more{manifest.SUFFIX}"):
        (plain / name).write_bytes(b"")
    problems = verify(plain).problems
    assert [problem.split(",")[0] for problem in problems] == [f"more{manifest.SUFFIX} is there", "more.tsv is there"]


@pytest.mark.parametrize("writer", ["tsv", "parquet"])
def test_the_configuration_for_vlmevalkit(benchmark: Path, configure: Configure, writer: str) -> None:
    output = build(configure(benchmark, writer=writer, variants=["clean"])).output
    path = output / "vlmevalkit.json"
    if writer != "tsv":  # which VLMEvalKit does not read
        assert verify(output).ok
        return
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | {"model": {"mine": {"class": "Mine"}}}))
    assert verify(output).ok, "models are the user's"
    for data, problem in (
        ({}, "vlmevalkit.json does not name MMStar_CLEAN"),
        ({"MMStar_CLEAN": {"class": "ImageMCQDataset", "dataset": "MMStar"}}, "vlmevalkit.json does not name MMStar_CLEAN"),
        (whole["data"] | {"other": {"dataset": "other"}}, "vlmevalkit.json names other, which build.json does not"),
    ):
        path.write_text(json.dumps({"model": {}, "data": data}))
        assert verify(output).problems == [problem]
    for content in ("{}", "[]", '{"data": {"a": 1}}'):
        path.write_text(content)
        (problem,) = verify(output).problems
        assert problem.startswith("vlmevalkit.json is no configuration of VLMEvalKit, which has data: {")
    path.write_text("{")
    (problem,) = verify(output).problems
    assert "vlmevalkit.json is damaged" in problem
    path.unlink()
    assert verify(output).problems == ["vlmevalkit.json is missing: the build's command, given again, writes it"]


def test_a_report_that_is_missing_or_damaged(plain: Path, benchmark: Path, configure: Configure) -> None:
    path = plain / "build.json"
    whole = json.loads(path.read_text())
    lacking = json.loads(path.read_text())
    del lacking["benchmarks"]["MMStar"]["files"]["MMStar_CLEAN"]["fingerprint"]
    for content, problem in (
        ("{", "build.json is damaged: "),
        ("[]", "build.json is damaged: "),
        (json.dumps(whole | {"format": "x"}), "build.json is damaged: its format is 'x'"),
        (json.dumps({k: v for k, v in whole.items() if k != "benchmarks"}), "build.json is damaged: it lacks 'benchmarks'"),
        (json.dumps(lacking), "build.json is damaged: it lacks 'fingerprint'"),
    ):
        path.write_text(content)
        (found,) = verify(plain).problems
        assert problem in found
        with pytest.raises(FolderError, match=r"build\.json is damaged"):
            build(configure(benchmark, variants=["mixed", "clean"], severities=["low"]))
    path.unlink()
    (found,) = verify(plain).problems
    assert "build.json is not there: give the build's command again, which makes the files anew" in found
    assert build(configure(benchmark, variants=["mixed", "clean"], severities=["low"])).rows > 0, "they are"
    assert verify(plain).ok
