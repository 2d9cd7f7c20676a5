"""Result tables: xlsx, TSV, CSV, JSON and JSON lines, all as rows of text.

Cells stay what they say: "None", "NA" and "007" are text, a missing cell is "", and a number is written as a person would ("7", "0.5").
"""

from __future__ import annotations

import csv
import json
import math
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from degrade.data.errors import SourceError


class ScoringError(SourceError):
    """Something that keeps a score from being right; the message has a line for every fault, each with its file and row."""


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        path: where it came from.
        columns: the names of the columns, in order.
        rows: one mapping from column to text a row, in order; every row has every column.
    """

    path: Path
    columns: tuple[str, ...]
    rows: tuple[dict[str, str], ...]


SUFFIXES = (".xlsx", ".tsv", ".json")
"""The formats that VLMEvalKit writes results in."""


def read_table(path: Path) -> Table:
    """Read a table by its suffix: .xlsx, .tsv, .csv, .json (a list of records, or columns) or .jsonl.

    Raises:
        ScoringError: where the file cannot be read as that, with what is wrong in it and where.
        FileNotFoundError: where there is no such file.
    """
    readers = {".xlsx": _xlsx, ".tsv": _separated, ".csv": _separated, ".json": _json, ".jsonl": _jsonl}
    if path.suffix.lower() not in readers:
        raise ScoringError(f"{path}: a result file ends in {', '.join(readers)}, not in {path.suffix!r}")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    lines = readers[path.suffix.lower()](path)
    header = next(lines, None)
    if header is None:
        raise ScoringError(f"{path}: no result file: it is empty, without even a header")
    columns = tuple(text(name) for name in header)
    while columns and columns[-1] == "":
        columns = columns[:-1]
    named = [name for name in columns if name]
    if doubled := sorted({name for name in named if named.count(name) > 1}):
        raise ScoringError(f"{path}: column {doubled[0]!r} stands there twice")
    rows = []
    for number, line in enumerate(lines, start=1):
        cells = [text(cell) for cell in line]
        if any(cells[len(columns) :]):
            raise ScoringError(f"{path}: row {number} has {len(cells)} cells, the header names {len(columns)} columns")
        if any(cells):
            rows.append({name: cells[i] if i < len(cells) else "" for i, name in enumerate(columns) if name})
    return Table(path, tuple(named), tuple(rows))


def text(cell: object) -> str:
    """A cell as text: nothing and NaN are "", a whole number has no decimal point.

    >>> text(None), text(3.0), text(0.5), text("007"), text("NA")
    ('', '3', '0.5', '007', 'NA')
    """
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell if isinstance(cell, str) else json.dumps(cell) if isinstance(cell, (list, dict)) else str(cell)


def _xlsx(path: Path) -> Iterator[Iterable[object]]:
    import openpyxl  # slow to load, and needed for this format only
    from openpyxl.utils.escape import unescape
    from openpyxl.utils.exceptions import InvalidFileException

    # Not data_only: a prediction that begins with "=" was stored as a formula, and its text is what the model said.
    try:
        book = openpyxl.load_workbook(path, read_only=True)
        for line in book.worksheets[0].iter_rows(values_only=True):
            yield [unescape(cell) if isinstance(cell, str) else cell for cell in line]
        book.close()
    except (zipfile.BadZipFile, InvalidFileException, KeyError, SyntaxError) as error:  # ParseError of its XML is a SyntaxError
        raise ScoringError(f"{path}: no result file: this is no xlsx workbook ({error})") from error


def _separated(path: Path) -> Iterator[Iterable[object]]:
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
        try:
            yield from lines
        except (csv.Error, UnicodeDecodeError) as error:
            raise ScoringError(f"{path}: no result file: line {lines.line_num} cannot be read ({error})") from error


def _json(path: Path) -> Iterator[Iterable[object]]:
    content = load_json(path)
    if isinstance(content, dict) and content and all(isinstance(column, (list, dict)) for column in content.values()):
        cells = {name: list(column.values() if isinstance(column, dict) else column) for name, column in content.items()}
        if len({len(column) for column in cells.values()}) > 1:
            raise ScoringError(f"{path}: no result file: its columns differ in length: { ({k: len(v) for k, v in cells.items()}) }")
        content = [dict(zip(cells, line, strict=True)) for line in zip(*cells.values(), strict=True)]
    if not isinstance(content, list) or not all(isinstance(record, dict) for record in content):
        raise ScoringError(f"{path}: no result file: a list of records is wanted, this is {_shape(content)}")
    yield from _records(content)


def _jsonl(path: Path) -> Iterator[Iterable[object]]:
    lines = list(load_json_lines(path))
    for number, record in lines:
        if not isinstance(record, dict):
            raise ScoringError(f"{path}: line {number}: a record {{...}} is wanted, this is {_shape(record)}")
    yield from _records([record for _, record in lines])


def _records(records: Sequence[Mapping[str, object]]) -> Iterator[Iterable[object]]:
    columns = list(dict.fromkeys(name for record in records for name in record))
    yield columns
    for record in records:
        yield [record.get(name) for name in columns]


def load_json(path: Path) -> Any:
    """The content of a JSON file; a ScoringError names the place where it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ScoringError(f"{path}: this is no JSON ({error})") from error


def load_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a JSON lines file with the numbers of their lines, from 1; blank lines are skipped."""
    for number, line in enumerate(path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (json.JSONDecodeError, UnicodeDecodeError) as error:
                raise ScoringError(f"{path}: line {number} is no JSON ({error})") from error


def _shape(content: object) -> str:
    return f"a {type(content).__name__}" + (f" with {', '.join(map(repr, list(content)[:5]))}" if isinstance(content, dict) else "")
