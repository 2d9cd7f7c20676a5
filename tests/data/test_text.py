"""Rows and cells of tab-separated text, held against the csv module and pandas' habits."""

import csv
import io
import random

import pytest

from degrade.data import text
from degrade.data.errors import SourceError

NASTY = ["", "None", "NA", "null", "007", "2.50", "123456789012345678", 'say "hi"', '"', '""', "tab\there", "two\nlines", "dos\r\nlines"]
NASTY += ["bare\rreturn", "\r", " spaced ", "ünïcode 中文 😀", "'single'", "\\n", "#", "a,b;c", "\u2028line", "\ufeffbom", "trailing\\"]


def read(data: bytes) -> list[list[str]]:
    return [[cell.decode() for cell in cells] for _, cells in text.records(io.BytesIO(data), "test")]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_is_read_again_by_us_and_by_csv(seed: int) -> None:
    rng = random.Random(seed)
    rows = [["".join(rng.sample(NASTY, rng.randint(1, 2))) for _ in range(4)] for _ in range(30)]
    data = b"".join(map(text.line, rows))
    assert read(data) == rows
    assert list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter="\t")) == rows


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_what_csv_writes_is_read(end: str, quoting: int) -> None:
    # csv leaves a bare CR unquoted where the line ends with LF: it is text all the same
    rows = [[cell, "x", cell] for cell in NASTY if not (cell.endswith("\r") and quoting == csv.QUOTE_MINIMAL)]
    file = io.StringIO(newline="")
    csv.writer(file, delimiter="\t", lineterminator=end, quoting=quoting).writerows(rows)
    assert read(file.getvalue().encode()) == rows


def test_quotes_inside_an_unquoted_cell_are_text() -> None:
    assert read(b'5" disk\t"a"b"c\tx"\n') == [['5" disk', 'ab"c', 'x"']]


def test_empty_lines_are_skipped_and_offsets_lead_to_rows() -> None:
    data = b'a\tb\n\r\n"x\ny"\tz\n\nlast\tline'
    found = list(text.records(io.BytesIO(data), "test"))
    assert [cells for _, cells in found] == [[b"a", b"b"], [b"x\ny", b"z"], [b"last", b"line"]]
    for offset, cells in found:
        file = io.BytesIO(data)
        file.seek(offset)
        assert next(text.records(file, "test")) == (offset, cells)


def test_an_open_quotation_is_an_error_that_says_where() -> None:
    with pytest.raises(SourceError, match=r"test: a quotation .* byte 4 is never closed"):
        list(text.records(io.BytesIO(b'a\tb\n"never\tclosed\n'), "test"))


def test_a_cell_of_many_lines_takes_linear_time() -> None:
    cell = "\n".join(["x" * 76] * 60_000)
    assert read(text.line([cell, "y"])) == [[cell, "y"]]
