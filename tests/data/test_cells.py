"""Image cells: base64 and its accidents, references, lists."""

import base64
import json

import pytest

from degrade.data import cells
from degrade.data.errors import RowError

DATA = bytes(range(256)) + b"x"  # 257 bytes: base64 with padding
TEXT = base64.b64encode(DATA).decode()


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.rstrip("="),
        "data:image/png;base64," + TEXT,
        base64.encodebytes(DATA).decode(),
        base64.encodebytes(DATA).decode().replace("\n", "\r\n"),
        f"  {TEXT}\n",
        base64.urlsafe_b64encode(DATA).decode(),
    ],
)
def test_accidents_of_base64(text: str) -> None:
    assert isinstance(cells.parse(text), cells.Payload)
    assert cells.from_base64(text) == DATA


@pytest.mark.parametrize("text", [TEXT[:-4] + "!!!!", TEXT[:101], "data:image/png," + TEXT, "é" * 80, TEXT[:50] + "=" + TEXT[50:]])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(RowError, match=r"base64"):
        cells.from_base64(text)


def test_references_and_empty_cells() -> None:
    assert cells.parse("1000003") == cells.Reference("1000003")
    assert cells.parse("x" * 64) == cells.Reference("x" * 64)
    assert cells.parse("x" * 65) == cells.Payload(("x" * 65,), "single")
    assert cells.parse("") == cells.parse(" \n") == cells.parse("[]") == cells.Empty()


@pytest.mark.parametrize(("write", "style"), [(json.dumps, "json"), (repr, "python")])
def test_lists_keep_their_style(write, style) -> None:
    found = cells.parse(write([TEXT, TEXT]))
    assert found == cells.Payload((TEXT, TEXT), style)
    assert cells.write([DATA, DATA], style) == write([TEXT, TEXT])


@pytest.mark.parametrize("text", ["[1, 2]", "[" + TEXT + "]", '["a", 3]'])
def test_lists_that_cannot_be_read(text: str) -> None:
    with pytest.raises(RowError, match="list"):
        cells.parse(text)
