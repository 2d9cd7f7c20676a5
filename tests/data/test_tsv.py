"""The TSV reader: what a first pass finds, and what a second brings."""

import base64
import hashlib
import os
from pathlib import Path

import pandas
import pytest

from degrade.data import text
from degrade.data.errors import RowError, SourceError
from degrade.data.sources import open_sources
from degrade.data.sources.tsv import TsvSource

IMAGE = base64.b64encode(os.urandom(90)).decode()


def source(folder: Path, *rows: tuple[str, ...], header: tuple[str, ...] = ("index", "image", "question"), bom: bool = False) -> TsvSource:
    path = folder / "t.tsv"
    path.write_bytes(text.BOM * bom + b"".join(map(text.line, (header, *rows))))
    return TsvSource(path, "t")


def test_references_forward_backward_and_in_chains(tmp_path: Path) -> None:
    table = source(tmp_path, ("1", "3", ""), ("2", "1", ""), ("3", IMAGE, ""), ("4", "3", ""), ("5", "", ""))
    scan = table.scan()
    assert [(e.index, e.kind, e.payload) for e in scan.entries] == [
        ("1", "reference", 2),
        ("2", "reference", 2),
        ("3", "payload", 2),
        ("4", "reference", 2),
        ("5", "empty", -1),
    ]


def test_rows_that_cannot_be_used(tmp_path: Path) -> None:
    rows = [
        ("1", "2", ""),
        ("2", "1", ""),
        ("3", "9", ""),
        ("4", IMAGE, ""),
        ("4", IMAGE, ""),
        ("5", "", ""),
        ("6", "5", ""),
        ("7", "7", ""),
    ]
    entries = source(tmp_path, *rows, ("8", IMAGE), ("9x", "8", ""), ("", IMAGE, "")).scan().entries
    reasons = [e.reason for e in entries]
    assert [e.kind for e in entries] == ["broken"] * 3 + ["payload", "broken", "empty"] + ["broken"] * 5
    assert "circle" in reasons[0]
    assert "circle" in reasons[1]
    assert "'9', which is not in the file" in reasons[2]
    assert "come before, in row 3" in reasons[4]
    assert "'5', which has no image" in reasons[6]
    assert "circle" in reasons[7]
    assert "2 cells where the header has 3" in reasons[8]
    assert "'8', which cannot be used: the row has 2 cells" in reasons[9]
    assert "index cell is empty" in reasons[10]


def test_rows_from_anywhere(tmp_path: Path) -> None:
    table = source(tmp_path, *[(str(n), IMAGE, f"two\nlines {n}") for n in range(20)], bom=True)
    scan = table.scan()
    assert table.columns == ("index", "image", "question")
    assert scan.sha256 == hashlib.sha256(table.path.read_bytes()).hexdigest()
    for start in (0, 7, 19, 20):
        assert [(row.number, row.index, row.cells[2]) for row in table.rows(start)] == [
            (n, str(n), f"two\nlines {n}") for n in range(start, 20)
        ]
    assert table.images(next(table.rows(3))).parts == (base64.b64decode(IMAGE),)


def test_columns_in_any_order_and_crlf(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(f'answer\timage\t"index"\r\nB\t"{IMAGE}"\tx\r\n'.encode())
    table = TsvSource(path, "t")
    table.scan()
    (row,) = table.rows()
    assert (row.index, row.cells) == ("x", ("B", IMAGE, "x"))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"has question, answer"):
        source(tmp_path, header=("question", "answer"))
    with pytest.raises(SourceError, match="twice"):
        source(tmp_path, header=("index", "image", "image"))
    (tmp_path / "e.tsv").write_bytes(b"")
    with pytest.raises(SourceError, match="has none"):
        TsvSource(tmp_path / "e.tsv", "e")
    (tmp_path / "b.tsv").write_bytes(b"\xff\xfe\0i\tx\n")
    with pytest.raises(SourceError, match="UTF-8"):
        TsvSource(tmp_path / "b.tsv", "b")


def test_a_row_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(b"index\timage\tq\n1\t" + IMAGE.encode() + b"\t\xff\xfe\n")
    (entry,) = TsvSource(path, "t").scan().entries
    assert entry.kind == "broken"
    assert "UTF-8" in entry.reason


def test_image_path(tmp_path: Path) -> None:
    inside, outside = tmp_path / "set", tmp_path / "other"
    for folder in (inside / "pictures", outside):
        folder.mkdir(parents=True)
        (folder / "a.png").write_bytes(folder.name.encode())
    (inside / "link.png").symlink_to(outside / "a.png")
    path = inside / "t.tsv"
    rows = [("1", "pictures/a.png"), ("2", "../other/a.png"), ("3", "pictures/b.png"), ("4", "link.png"), ("5", str(outside / "a.png"))]
    rows += [("6", "['pictures/a.png', 'pictures/a.png']"), ("7", ""), ("8", "pictures/a.png\0"), ("9", "a" * 5000)]
    path.write_bytes(b"".join(map(text.line, [("index", "image_path"), *rows])))
    table = TsvSource(path, "t")
    assert table.columns == ("index", "image_path", "image")
    assert [e.kind for e in table.scan().entries] == ["payload"] * 6 + ["empty"] + ["payload"] * 2
    found = list(table.rows())
    assert table.images(found[0]).parts == (b"pictures",)
    assert table.images(found[5]).parts == (b"pictures", b"pictures")
    for row in (found[1], found[3], found[4]):
        with pytest.raises(RowError, match="leads out of"):
            table.images(row)
    for number, words in ((2, "no file in"), (7, "no file name"), (8, "cannot be read")):
        with pytest.raises(RowError, match=words) as caught:
            table.images(found[number])
        assert str(tmp_path) not in str(caught.value)  # reasons stand in manifests
    allowed = TsvSource(path, "t", [outside])
    assert [allowed.images(row).parts for row in (found[1], found[3], found[4])] == [(b"other",)] * 3


def test_an_image_wins_over_a_path_and_a_path_fills_an_empty_cell(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"file")
    table = source(tmp_path, ("1", IMAGE, "a.png"), ("2", "", "a.png"), ("3", "2", "a.png"), header=("index", "image", "image_path"))
    assert [(e.kind, e.payload) for e in table.scan().entries] == [("payload", 0), ("payload", 1), ("reference", 1)]
    one, two, _ = table.rows()
    assert table.images(one).parts == (base64.b64decode(IMAGE),)
    assert table.images(two).parts == (b"file",)


def test_a_file_that_changes_in_between_is_noticed(tmp_path: Path) -> None:
    table = source(tmp_path, ("1", IMAGE, "a"), ("2", IMAGE, "b"))
    table.scan()
    source(tmp_path, ("1", IMAGE, "longer"), ("2", IMAGE, "b"))
    with pytest.raises(SourceError, match="changed"):
        list(table.rows())


def test_folders_names_and_mistakes(tmp_path: Path) -> None:
    for name in ("mmstar", "My set (1), new"):
        source(tmp_path, ("1", IMAGE, "a")).path.rename(tmp_path / f"{name}.tsv")
    source(tmp_path, ("1", IMAGE, "a")).path.rename(tmp_path / "R-Bench-Dis.tsv")  # degraded already
    assert [table.benchmark for table in open_sources(str(tmp_path))] == ["MMStar", "My set (1), new"]
    (tmp_path / "mmstar.tsv").rename(tmp_path / "MMStar.tsv")
    assert open_sources("mm-star", data_dir=tmp_path)[0].path == tmp_path / "MMStar.tsv"
    with pytest.raises(SourceError, match="degrade download"):
        open_sources("MMVet", data_dir=tmp_path)
    with pytest.raises(SourceError, match="only scored"):
        open_sources("R-Bench-Dis")
    with pytest.raises(SourceError, match="no such file"):
        open_sources(str(tmp_path / "nothing.tsv"))
    (tmp_path / "MM_Star.tsv").write_bytes((tmp_path / "MMStar.tsv").read_bytes())
    with pytest.raises(SourceError, match="both MMStar"):
        open_sources(str(tmp_path))


def test_a_file_whose_lines_end_with_cr(tmp_path: Path) -> None:
    path = tmp_path / "mac.tsv"
    path.write_bytes(f"index\timage\tquestion\r1\t{IMAGE}\ta\r".encode())
    with pytest.raises(SourceError, match=r"mac\.tsv: a bare carriage return .*header line.* `tr "):
        TsvSource(path, "mac")


@pytest.mark.parametrize(
    ("cell", "bad"),
    [("two\rrows", True), ('"two\rparts"', False), ('"quoted" and\rnot', True), ('"dos\r\nlines"', False)],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_row_of_which_pandas_would_make_two(tmp_path: Path, cell: str, bad: bool, end: str) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(f"index\timage\tquestion{end}1\t{IMAGE}\ta{end}2\t{IMAGE}\t{cell}{end}".encode())
    one, two = TsvSource(path, "t").scan().entries
    assert (one.kind, two.kind) == ("payload", "broken" if bad else "payload")
    assert bad == ("bare carriage return" in two.reason)
    assert (len(pandas.read_csv(path, sep="\t")) > 2) == bad


def test_an_empty_list_of_paths_is_no_image(tmp_path: Path) -> None:
    table = source(tmp_path, ("1", "", "[]"), ("2", "", " "), header=("index", "image", "image_path"))
    assert [entry.kind for entry in table.scan().entries] == ["empty", "empty"]


def test_a_folder_of_images_with_a_table_that_is_no_benchmark(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"image")
    (tmp_path / "labels.tsv").write_text("name\tlabel\na.png\tcat\n")
    with pytest.raises(
        SourceError, match=r"columns index and image.* holds images too, .* because of labels\.tsv: .* put that file elsewhere"
    ):
        open_sources(str(tmp_path))
    (tmp_path / "a.png").unlink()
    with pytest.raises(SourceError, match=r"this one has name, label$"):
        open_sources(str(tmp_path))
