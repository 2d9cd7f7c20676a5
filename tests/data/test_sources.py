"""Parquet in the hubs' layouts, folders, webdataset shards and MMR."""

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from degrade.data.errors import RowError, SourceError
from degrade.data.sources import layouts, open_sources


def image(seed: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (6, 5, 3), np.uint8)).save(file, "PNG")
    return file.getvalue()


def write(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path, **options)
    return path


def read(path: Path) -> tuple[str, list[dict[str, str]], list[tuple[bytes, ...]]]:
    """Benchmark, text cells and images of a source."""
    (table,) = open_sources(str(path))
    entries = table.scan().entries
    rows = list(table.rows())
    texts = [{n: c for n, c in zip(table.columns, row.cells, strict=True) if n != "image"} for row in rows]
    images = [table.images(row).parts if entry.kind == "payload" else () for row, entry in zip(rows, entries, strict=True)]
    return table.benchmark, texts, images


ONE = {"bytes": image(1), "path": "a.png"}
LAYOUTS = [
    (
        [{"index": "7", "question": "q", "hint": None, "answer": "A", "A": "1", "B": "x", "C": None, "D": "None", "category": "c",
          "image": image(1), "source": "s", "L2-category": "l", "comment": None, "split": "dev"}],
        "MMBench_DEV_EN_V11",
        [{"index": "7", "question": "q", "hint": "", "answer": "A", "A": "1", "B": "x", "C": "", "D": "None", "category": "c",
          "source": "s", "l2-category": "l", "comment": "", "split": "dev"}],
    ),
    (
        [{"question_id": "v1_0", "question": "q", "image": ONE, "answer": "a", "capability": "ocr,math"}],
        "MMVet",
        [{"index": "v1_0", "question": "q", "answer": "a", "category": "ocr,math"}],
    ),
    (
        [{"question_id": "v1_0", "question": "q", "image": ONE, "answer": "a", "capability": ["ocr", "math"]},
         {"question_id": "v1_1", "question": "q", "image": ONE, "answer": "a", "capability": []}],
        "MMVet",
        [{"index": "v1_0", "question": "q", "answer": "a", "category": "ocr,math"},
         {"index": "v1_1", "question": "q", "answer": "a", "category": ""}],
    ),
    (
        [{"Index": 1, "Question": "q", "Options": "(a) Open (b) Closed (mostly)", "Correct Answer": "(a)", "image": ONE},
         {"Index": 2, "Question": "q", "Options": "(a) Open", "Correct Answer": "(b)", "image": ONE}],
        "MMVP",
        [{"index": "1", "question": "q", "A": "Open", "B": "Closed (mostly)", "answer": "A"},
         {"index": "2", "question": "q\n(a) Open", "A": "", "B": "", "answer": "B"}],
    ),
    (
        [{"idx": 0, "type": "2D", "task": "Count", "image": ONE, "question": "q", "choices": ["3", "2"], "answer": "(B)", "prompt": "p",
          "source": "ADE20K"},
         {"idx": 1, "type": "3D", "task": "Depth", "image": ONE, "question": "q", "choices": ["3", "2"], "answer": "(B)", "prompt": "p",
          "source": "Omni3D"}],
        "CV-Bench-2D",
        [{"index": "0", "question": "q", "prompt": "p", "A": "3", "B": "2", "C": "", "D": "", "E": "", "F": "", "answer": "B",
          "category": "Count", "source": "ADE20K", "split": "2D"}],
    ),
    (
        [{"index": 0, "question": "Which?\nOptions: A: It is, or so., B: 2, C: C: D, D: ", "image": image(1), "answer": "A",
          "category": "c", "l2_category": "l", "meta_info": {"source": "x"}},
         {"index": 1, "question": "Which?\nOptions: B: Two, C: One, D: None", "image": image(1), "answer": "A", "category": "c",
          "l2_category": "l", "meta_info": {"source": "x"}},
         {"index": 2, "question": "Which one?", "image": image(1), "answer": "A", "category": "c", "l2_category": "l",
          "meta_info": {"source": "x"}}],
        "MMStar",
        [{"index": "0", "question": "Which?", "A": "It is, or so.", "B": "2", "C": "C: D", "D": "", "answer": "A", "category": "c",
          "l2_category": "l"},
         {"index": "1", "question": "Which?", "A": "", "B": "Two", "C": "One", "D": "None", "answer": "A", "category": "c",
          "l2_category": "l"},
         {"index": "2", "question": "Which one?", "A": "", "B": "", "C": "", "D": "", "answer": "A", "category": "c", "l2_category": "l"}],
    ),
    (
        [{"image": ONE, "question": "Where?\n\nA. Left\nB. Right\nPlease answer directly with only the letter.", "answer": "B"},
         {"image": ONE, "question": "How many? Please answer with a number.", "answer": "4"}],
        "RealWorldQA",
        [{"index": "0", "question": "Where?", "A": "Left", "B": "Right", "C": "", "D": "", "answer": "B",
          "instruction": "Please answer directly with only the letter."},
         {"index": "1", "question": "How many? Please answer with a number.", "A": "", "B": "", "C": "", "D": "", "answer": "4",
          "instruction": ""}],
    ),
    (
        [{"index": "007", "image": image(1), "question": "q", "extra": 2.0}, {"index": "8", "image": None, "question": "q", "extra": 2.5}],
        "my table",
        [{"index": "007", "question": "q", "extra": "2"}, {"index": "8", "question": "q", "extra": "2.5"}],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "benchmark", "texts"), LAYOUTS, ids=[name for _, name, _ in LAYOUTS])
def test_hub_layouts(tmp_path: Path, rows: list[dict[str, Any]], benchmark: str, texts: list[dict[str, str]]) -> None:
    found = read(write(tmp_path / "my table.parquet", rows))
    assert found[:2] == (benchmark, texts)
    assert found[2][0] == (image(1),)
    if benchmark == "MMVP":  # sometimes in lower case
        lower = [{name.lower(): value for name, value in row.items()} for row in rows]
        assert read(write(tmp_path / "lower.parquet", lower))[:2] == found[:2]


def test_a_table_that_is_none_of_them(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="a, b are none of the known layouts"):
        open_sources(str(write(tmp_path / "t.parquet", [{"a": 1, "b": 2}])))
    (tmp_path / "t.parquet").write_bytes(b"no parquet")
    with pytest.raises(SourceError, match="no parquet file"):
        open_sources(str(tmp_path / "t.parquet"))


def test_shards_of_a_table_and_rows_from_anywhere(tmp_path: Path) -> None:
    for n in range(3):
        rows = [{"index": str(10 * n + k), "image": {"bytes": image(10 * n + k), "path": None}} for k in range(10)]
        write(tmp_path / f"mmstar-{n:05d}-of-00003.parquet", rows, row_group_size=4)
    (table,) = open_sources(str(tmp_path))
    assert table.benchmark == "MMStar"
    assert [entry.index for entry in table.scan().entries] == [str(n) for n in range(30)]
    before = table.scan().sha256
    write(tmp_path / "mmstar-00002-of-00003.parquet", rows, row_group_size=5)
    assert table.scan().sha256 != before, "every file counts"
    for start in (0, 13, 29):
        row = next(table.rows(start))
        assert (row.number, row.index, table.images(row).parts) == (start, str(start), (image(start),))


def test_images_beside_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(image(1))
    rows = [{"index": str(n), "image": {"bytes": None, "path": path}} for n, path in enumerate(["a.png", "../t.parquet", "b.png", None])]
    (table,) = open_sources(str(write(tmp_path / "t.parquet", rows)))
    entries = table.scan().entries
    assert [entry.kind for entry in entries] == ["payload", "broken", "broken", "empty"]
    assert "'b.png' is no file in" in entries[2].reason
    assert table.images(next(table.rows())).parts == (image(1),)
    assert [row.cells[1] for row in table.rows(1)] == ["", "", ""]


def test_a_folder_of_images(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/1.JPG", "a.webp", "notes.txt"):
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_bytes(name.encode())
    (tmp_path / "empty").mkdir()
    benchmark, texts, images = read(tmp_path / "set")
    assert benchmark == "set"
    assert [row["index"] for row in texts] == ["a.webp", "b/1.JPG", "b/2.png"]
    assert images == [(b"a.webp",), (b"b/1.JPG",), (b"b/2.png",)]
    with pytest.raises(SourceError, match="neither images"):
        open_sources(str(tmp_path / "empty"))


def test_webdataset(tmp_path: Path) -> None:
    members = [
        ("x/1.png", image(1)),
        ("x/1.json", json.dumps({"index": "007", "n": 3, "text": "ü"}).encode()),
        ("x/2.0.png", image(2)),
        ("x/2.1.png", image(3)),
        ("x/2.txt", b"caption"),
        ("x/3.txt", b"no image"),
    ]
    for n in range(2):
        with tarfile.open(tmp_path / f"set-{n:06d}.tar", "w") as archive:
            for name, data in members[:2] if n == 0 else members[2:]:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    benchmark, texts, images = read(tmp_path)
    assert benchmark == "set"
    assert texts == [
        {"index": "007", "n": "3", "text": "ü", "txt": ""},
        {"index": "x/2", "n": "", "text": "", "txt": "caption"},
        {"index": "x/3", "n": "", "text": "", "txt": "no image"},
    ]
    assert images == [(image(1),), (image(2), image(3)), ()]
    (tmp_path / "set-000000.tar").write_bytes(b"no tar")
    with pytest.raises(SourceError, match="set-000000"):
        read(tmp_path)


@pytest.mark.parametrize("zipped", [False, True])
def test_mmr(tmp_path: Path, zipped: bool) -> None:
    questions = [
        {"id": f"character/x/{pair:02d}", "image": f"character/x/{pair:02d}.jpg", "question": f"{kind}?\nA. 1", "ground_truth": "A",
         "question_type": kind}
        for pair in range(2) for kind in ("NEG", "POS")
    ]  # fmt: skip
    (tmp_path / "q.json").write_text(json.dumps(questions))
    place = tmp_path / ("images.zip" if zipped else "images")
    if zipped:
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr("MMR/character/x/00.jpg", image(1))
    else:
        (place / "character" / "x").mkdir(parents=True)
        (place / "character" / "x" / "00.jpg").write_bytes(image(1))
    (table,) = open_sources("mmr", questions=tmp_path / "q.json", images=place)
    assert [(e.index, e.kind, e.payload) for e in table.scan().entries] == [
        ("0", "payload", 0),
        ("1", "reference", 0),
        ("2", "payload", 2),
        ("3", "reference", 2),
    ]
    rows = list(table.rows())
    assert rows[1].cells == ("1", "", "POS?\nA. 1", "A", "character/x", "POS", "character/x/00")
    assert table.images(rows[0]).parts == (image(1),)
    with pytest.raises(RowError, match=r"01\.jpg"):
        table.images(rows[2])
    with pytest.raises(SourceError, match="questions is not given"):
        open_sources("mmr", images=place)


@pytest.mark.parametrize("question", ["Options: A: x", "Choices:\n(A) x", "no options", "A. one line only B. of two", ""])
def test_text_that_does_not_split_stays(question: str) -> None:
    assert layouts.inline_options(question) == (question, [])
    assert layouts.line_options(question) == (question, [], "")


@pytest.mark.parametrize(
    "options",
    [
        "Options: A: f(b), B: (B) {0}, C: 7",
        "Options:\nA. f(b)\nB. (B) {0}\nC. 7",
        "Options: A) f(b), B) (B) {0}, C) 7",
        "Choices:\n(A) f(b)\n(B) (B) {0}\n(C) 7",
        "Choices: (A) f(b) (B) (B) {0} (C) 7",
        "\nA. f(b)\nB. (B) {0}\nC. 7",
        "A) f(b)\nB) (B) {0}\nC) 7\n",
        "(A) f(b)\n(B) (B) {0}\n(C) 7",
    ],
)
def test_forms_of_options_inside_a_question(options: str) -> None:
    for head in ("Which?", "Hint: the letter, e.g., A, B, C.\nQuestion: Which? Options: two"):
        assert layouts.inline_options(f"{head}\n{options}") == (head, ["f(b)", "(B) {0}", "7"])


def test_options_that_text_follows_stay_in_mmstars_question() -> None:
    question = "See these.\nA. red\nB. blue\nWhich is it?"
    assert layouts.inline_options(question) == (question, [])
    assert layouts.line_options(question) == ("See these.", ["red", "blue"], "Which is it?")


MMSTAR = {"image": ONE, "category": "c", "l2_category": "l", "meta_info": "x"}
LACKING: list[tuple[list[dict[str, Any]], list[str]]] = [
    ([{"index": n, "question": q, "answer": "A", **MMSTAR} for n, q in enumerate(
        ["Options: A: x, B: y", "Options: B: y, C: z", "Is it red or blue?", "1\nOptions: A: 1, B: 2, C: 3, D: 4, E: 5", ""])],
     ["2", "3", "4"]),
    ([{"index": n, "question": "q", "options": o, "correct answer": "(a)", "image": ONE} for n, o in enumerate(
        ["(a) x (b) y", "a) x b) y", "x or y", "(a) x (b) y (c) z", None])],
     ["2", "3", "4"]),
    ([{"idx": n, "task": "Count", "image": ONE, "question": "q", "choices": c, "answer": "(A)"} for n, c in enumerate(
        [["1", "2"], [], None])],
     ["1", "2"]),
    ([{"image": ONE, "question": q, "answer": a} for q, a in [
        ("q\nA. x\nB. y", "A"), ("q\n(A) x\n(B) y", "A"), ("q\nA. x B. y", "A"), ("How many?", "4"), ("Uphill?", "Uphill"), ("q", "(b)")]],
     ["2", "5"]),
    ([{"index": n, "question": "q", "answer": "A", "A": "", "B": "", "image": ONE} for n in range(2)], []),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "indices"), LACKING, ids=["MMStar", "MMVP", "CV-Bench", "RealWorldQA", "own columns"])
def test_rows_whose_options_are_not_found_are_named(tmp_path: Path, rows: list[dict[str, Any]], indices: list[str]) -> None:
    (table,) = open_sources(str(write(tmp_path / "t.parquet", rows)))
    scan = table.scan()
    assert scan.without_options == indices
    assert len(scan.entries) == len(rows)
