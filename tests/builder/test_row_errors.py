"""Bad rows: never a clean image in a degraded file."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from degrade import cli
from degrade.build import build, verify
from degrade.config import BuildConfig
from degrade.data import manifest, writers
from degrade.data.errors import SourceError
from degrade.data.writers import reading

from .conftest import digests, picture, write_tsv
from .test_build import table

Configure = Callable[..., BuildConfig]

BROKEN = base64.b64encode(base64.b64decode(picture(5))[:100]).decode()
ROWS = [
    ("1", "4", "shares a picture further down that does not decode"),
    ("2", picture(1), "good"),
    ("3", "99", "refers to nothing"),
    ("4", BROKEN, "does not decode"),
    ("5", "4", "shares one that does not decode"),
    ("6", str([picture(2), BROKEN]), "a list of which one does not decode"),
    ("7", picture(3), "good"),
    ("2", picture(4), "an index that has come before"),
    ("8", "not base64! " * 9, "no image"),
    ("9", base64.b64encode(b"neither JPEG nor PNG, but long enough not to be a reference").decode(), "no image"),
]
BAD = [0, 2, 3, 4, 5, 7, 8, 9]


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return write_tsv(tmp_path / "sources" / "bad.tsv", ("index", "image", "question"), ROWS)


@pytest.mark.parametrize("workers", [0, 3])
def test_a_build_fails_and_names_all_bad_rows(bad: Path, configure: Configure, workers: int) -> None:
    write_tsv(bad.parent / "good.tsv", ("index", "image"), [("1", picture(1))])
    report = build(configure(bad.parent, workers=workers))
    assert not report.ok
    assert [row.row for row in report.failed] == BAD
    assert [row.index for row in report.failed] == [ROWS[n][0] for n in BAD]
    reasons = [row.reason for row in report.failed]
    assert "index '4', which cannot be used: the image (100 bytes) does not decode" in reasons[0]
    assert "refers to index '99'" in reasons[1]
    assert "image 2 of 2: " in reasons[4]
    assert "come before" in reasons[5]
    assert "not base64" in reasons[6]
    assert "no image of a kind that is read" in reasons[7]
    assert not [reason for reason in reasons if " at 0x" in reason], "two builds have the same bytes"
    assert str(report.failed[0]).startswith(f"{bad}, row 0, index '1': ")
    assert report.unpublished == ["bad"]
    names = {path.name.split("_")[0] for path in report.output.iterdir()}
    assert names == {"good", "build.json", "vlmevalkit.json"}
    whole = json.loads((report.output / "build.json").read_text())
    assert whole["complete"] is False
    said = whole["benchmarks"]["bad"]
    assert [entry["row"] for entry in said["failed"]] == BAD
    assert (said["files"], said["complete"], whole["benchmarks"]["good"]["complete"]) == ({}, False, True)
    (problem,) = verify(report.output, sample=0).problems
    assert problem.startswith("bad is not complete: 8 of 10 rows could not be degraded")


def test_a_failed_build_fails_again_and_may_be_made_with_other_settings(bad: Path, configure: Configure) -> None:
    assert build(configure(bad)).failed == build(configure(bad)).failed
    skipped = build(configure(bad, on_error="skip"))
    assert skipped.files
    assert json.loads((skipped.output / "build.json").read_text())["complete"] is True


@pytest.mark.parametrize("workers", [0, 3])
def test_skip_drops_the_rows_from_every_file(bad: Path, configure: Configure, workers: int) -> None:
    report = build(configure(bad, on_error="skip", workers=workers))
    assert [row.row for row in report.failed] == BAD
    for path in report.files:
        assert [row["index"] for row in table(path)] == ["2", "7"]
        lines = list(manifest.lines(path.with_name(path.stem + manifest.SUFFIX)))
        assert [line["row"] for line in lines] == list(range(len(ROWS)))
        assert [line["row"] for line in lines if line["status"] == "skipped"] == BAD
        assert all(line["reason"] for line in lines if line["status"] == "skipped")
    said = json.loads((report.output / "build.json").read_text())
    assert said["standard"] is False
    again = build(configure(bad, on_error="skip"))
    assert [(row.row, row.reason) for row in again.failed] == [(row.row, row.reason) for row in report.failed]


def test_keep_leaves_the_cells_and_flags_them(bad: Path, configure: Configure) -> None:
    report = build(configure(bad, on_error="keep"))
    for path in report.files:
        rows = table(path)
        assert [row["question"] for row in rows] == [row[2] for row in ROWS]
        for number, (row, source) in enumerate(zip(rows, ROWS, strict=True)):
            assert (row["image"] == source[1]) == (number in BAD)
        lines = list(manifest.lines(path.with_name(path.stem + manifest.SUFFIX)))
        assert [line["row"] for line in lines if line["status"] == "kept"] == BAD
    one = digests(report.output)
    assert one == digests(build(configure(bad, "again", on_error="keep", workers=3)).output)


def test_keep_leaves_a_chain_of_references_as_it_was(tmp_path: Path, configure: Configure) -> None:
    """Also where its end turns out bad after its first rows have been written."""
    rows = [("1", "2"), ("2", "3"), ("3", BROKEN), ("4", picture(4)), ("5", "3")]
    report = build(configure(write_tsv(tmp_path / "t.tsv", ("index", "image"), rows), on_error="keep", variants=["clean"]))
    assert [row["image"] for row in table(report.files[0])][:3] == ["2", "3", BROKEN]
    assert verify(report.output).problems == []


@pytest.mark.parametrize("writer", ["tsv", "parquet"])
def test_keep_tells_rows_of_one_index_apart(tmp_path: Path, configure: Configure, writer: str) -> None:
    """The first refers to an image further down that turns out bad; the second has an image of its own."""
    rows = [("a", "z"), ("b", picture(1)), ("a", picture(2)), ("c", "a"), ("z", BROKEN)]
    source = write_tsv(tmp_path / "t.tsv", ("index", "image"), rows)
    report = build(configure(source, on_error="keep", variants=["clean"], writer=writer))
    kept = list(reading.rows(report.files))
    assert kept[2].images == (base64.b64decode(picture(2)),)
    if writer == "tsv":
        assert [kept[n].cell for n in (0, 2, 4)] == ["z", picture(2), BROKEN]
    assert verify(report.output).problems == []


@pytest.mark.parametrize("kind", ["folder", "image_path", "mmr"])
@pytest.mark.parametrize("writer", ["tsv", "parquet", "webdataset"])
def test_keep_gives_the_bytes_of_image_files(tmp_path: Path, configure: Configure, kind: str, writer: str) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    contents = {"a": base64.b64decode(picture(1)), "b": base64.b64decode(BROKEN), "c": b"short", "d": b""}
    for name, data in contents.items():
        (folder / f"{name}.png").write_bytes(data)
    more: dict[str, object] = {"on_error": "keep", "writer": writer, "variants": ["mixed"], "severities": ["low"]}
    source = folder
    if kind == "image_path":
        source = write_tsv(tmp_path / "t.tsv", ("index", "image_path"), [(n, f"pictures/{n}.png") for n in (*contents, "gone")])
    elif kind == "mmr":
        asked = [(name, kind) for name in contents for kind in ("POS", "NEG")]
        fields = [{"id": f"a/{n}", "image": f"{n}.png", "question": "q", "ground_truth": "A", "question_type": k} for n, k in asked]
        (tmp_path / "q.json").write_text(json.dumps(fields))
        source, more = Path("mmr"), {**more, "questions": str(tmp_path / "q.json"), "images": str(folder)}
    report = build(configure(source, **more))
    assert verify(report.output).problems == []
    rows = list(reading.rows(report.files))
    bad = rows[2:] if kind == "mmr" else rows[1:]
    each = 2 if kind == "mmr" else 1
    assert [row.images for row in bad[: 3 * each]] == [(data,) if data else () for data in [*contents.values()][1:] for _ in range(each)]
    if writer == "tsv":
        assert bad[0].cell == BROKEN
        forged = report.files[0].read_bytes().replace(BROKEN.encode(), b"")
        report.files[0].write_bytes(forged)
        assert any("the image cell was to be kept and is another" in problem for problem in verify(report.output).problems)


def test_rows_of_another_benchmark_are_counted(tmp_path: Path, configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    cell = {"bytes": base64.b64decode(picture(1)), "path": "1.png"}
    rest = {"task": "Count", "image": cell, "question": "q", "choices": ["3", "2"], "answer": "(B)"}
    source = tmp_path / "cv.parquet"
    kinds = ["2D", "3D", "2D", "3D", "3D"]
    pq.write_table(pa.Table.from_pylist([{"idx": n, "type": kind, **rest} for n, kind in enumerate(kinds)]), source)
    config = configure(source, variants=["clean"])
    assert cli._build(config) == cli.DONE
    assert "CV-Bench-2D: 3 rows of the source left out, of another benchmark\n" in capsys.readouterr().err
    report = build(config)
    assert report.left_out == {"CV-Bench-2D": 3}
    said = json.loads((report.output / "build.json").read_text())["benchmarks"]["CV-Bench-2D"]
    assert (said["rows"], said["left_out"]) == (2, 3)
    pq.write_table(pa.Table.from_pylist([{"idx": 0, "type": "3D", **rest}]), source)
    with pytest.raises(SourceError, match="no rows of CV-Bench-2D: all 1 are of another benchmark"):
        build(config)
    good = write_tsv(tmp_path / "good.tsv", ("index", "image"), [("1", picture(1))])
    assert cli._build(configure(good, "good", variants=["clean"])) == cli.DONE
    assert "left out" not in capsys.readouterr().err


def test_no_degraded_file_holds_a_clean_image(bad: Path, configure: Configure) -> None:
    sources = {base64.b64encode(base64.b64decode(picture(n))).decode() for n in range(6)}
    # operators that always change these images
    always = {"mixture": {"dark_illumination": 1}, "operators": ["lens_blur"]}
    for path in build(configure(bad, on_error="skip", codec="png", **always)).files:
        if "CLEAN" not in path.name:
            assert not sources & {row["image"] for row in table(path)}


@pytest.mark.parametrize("writer", ["parquet", "webdataset"])
@pytest.mark.parametrize("on_error", ["skip", "keep"])
def test_bad_rows_in_other_formats(bad: Path, configure: Configure, writer: str, on_error: str) -> None:
    """Rows, kept images and flags are those of the TSV shards; a kept cell that is no image has none in these formats."""
    plain = build(configure(bad, "plain", on_error=on_error))
    report = build(configure(bad, on_error=on_error, writer=writer, shard_rows=3))
    assert report.failed == plain.failed
    assert verify(report.output).problems == []
    for path in plain.files:
        shards = list(reading.rows(writers.shards(report.output, path.stem, writer)))
        of_tsv = list(reading.rows([path]))
        assert [row.texts for row in shards] == [row.texts for row in of_tsv]
        lines = [list(manifest.lines(output / (path.stem + manifest.SUFFIX))) for output in (plain.output, report.output)]
        assert lines[0] == lines[1]
        for number, (row, other) in enumerate(zip(shards, of_tsv, strict=True)):
            if on_error == "keep" and ROWS[number][1] == "4":  # a reference, to a kept cell
                assert row.images == (base64.b64decode(BROKEN),)
            else:
                assert row.images == other.images
    again = build(configure(bad, "again", on_error=on_error, writer=writer, shard_rows=3, workers=3))
    assert digests(again.output) == digests(report.output)


def test_rows_without_options_are_reported(tmp_path: Path, configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    questions = ["Which?\nOptions: A: red, B: blue", *("Is it red or blue?" for _ in range(6))]
    cell = {"bytes": base64.b64decode(picture(1)), "path": "1.png"}
    rest = {"answer": "A", "category": "c", "l2_category": "l", "meta_info": "m"}
    source = tmp_path / "mmstar.parquet"
    pq.write_table(pa.Table.from_pylist([{"index": n, "question": q, "image": cell, **rest} for n, q in enumerate(questions)]), source)
    config = configure(source, variants=["clean"])
    assert cli._build(config) == cli.DONE, "a warning, no failure"
    err = capsys.readouterr().err
    assert "MMStar: 6 rows without options" in err
    assert "index '1', '2', '3', '4', '5', ..." in err
    report = build(config)  # is complete, and still says so
    assert report.without_options == {"MMStar": [str(n) for n in range(1, 7)]}
    said = json.loads((report.output / "build.json").read_text())["benchmarks"]["MMStar"]
    assert said["without_options"] == report.without_options["MMStar"]
    assert table(report.files[0])[1]["question"] == "Is it red or blue?"
    good = write_tsv(tmp_path / "good.tsv", ("index", "image"), [("1", picture(1))])
    assert cli._build(configure(good, "good", variants=["clean"])) == cli.DONE
    assert "options" not in capsys.readouterr().err
