"""Tab-separated text as bytes: rows in and cells out.

The csv module is not used because it hides where a row begins, and because Python 3.11's writes a bare carriage return without quotes,
which readers then take for the end of a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from degrade.data.errors import SourceError

BOM = b"\xef\xbb\xbf"
LONGEST_ROW = 1 << 30
"""A row of more bytes is taken for a quotation that is never closed."""


class Lines(Protocol):
    """What is needed of a binary file."""

    def tell(self) -> int: ...

    def readline(self) -> bytes: ...


def records(file: Lines, name: str, bare: set[int] | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """The rows of a TSV file from where it stands: byte offset and cells, quotes resolved.

    Args:
        file: where the rows are.
        name: of the file, for errors.
        bare: gets the offsets of rows with a CR outside of quotes, before they are given out: pandas' reader sees several rows in each.

    Quotes are read as by the csv module and pandas: a cell that begins with ``"`` is quoted, and a doubled ``"`` in it is one; elsewhere a
    quote is text. Lines end with LF or CRLF; a bare CR is text. Empty lines are skipped.

    Raises:
        SourceError: if a quotation is never closed.
    """
    offset = file.tell()
    while line := file.readline():
        if b'"' in line:
            cells, length, has_bare = _quoted(bytearray(line), file, name, offset)
        else:
            ended = _ended(line)
            cells, length, has_bare = ended.split(b"\t"), len(line), b"\r" in ended
        if has_bare and bare is not None:
            bare.add(offset)
        if cells != [b""]:
            yield offset, cells
        offset += length


def _quoted(buffer: bytearray, file: Lines, name: str, offset: int) -> tuple[list[bytes], int, bool]:
    """Cells, length in bytes, and whether a CR stands outside of quotes."""
    cells: list[bytes] = []
    at = 0
    bare = False
    while True:
        value = b""
        if buffer[at : at + 1] == b'"':
            close = at + 1
            while True:
                close = buffer.find(b'"', close)
                if close < 0:
                    close = len(buffer)
                    more = file.readline()
                    if not more or len(buffer) > LONGEST_ROW:
                        raise SourceError(
                            f"{name}: a quotation that begins in the row at byte {offset} is never closed; the file may be cut short"
                        )
                    buffer += more
                elif buffer[close + 1 : close + 2] == b'"':
                    close += 2
                else:
                    break
            value = bytes(buffer[at + 1 : close]).replace(b'""', b'"')
            at = close + 1
        tab = buffer.find(b"\t", at)
        plain = bytes(buffer[at:tab]) if tab >= 0 else _ended(bytes(buffer[at:]))
        bare |= b"\r" in plain
        cells.append(value + plain)
        if tab < 0:
            return cells, len(buffer), bare
        at = tab + 1


def _ended(line: bytes) -> bytes:
    if not line.endswith(b"\n"):
        return line
    return line[:-2] if line.endswith(b"\r\n") else line[:-1]


def line(cells: Sequence[str]) -> bytes:
    """One row as bytes, with quotes where a reader needs them.

    >>> line(["1", "two words", 'a "b" c'])
    b'1\\ttwo words\\t"a ""b"" c"\\n'
    """
    return "\t".join(map(quote, cells)).encode("utf-8") + b"\n"


def quote(cell: str) -> str:
    """A cell as it stands in a row."""
    if '"' in cell:
        return '"' + cell.replace('"', '""') + '"'
    return f'"{cell}"' if "\t" in cell or "\n" in cell or "\r" in cell else cell
