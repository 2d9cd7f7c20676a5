"""The recipes of docs/training.md run as they stand."""

from __future__ import annotations

import multiprocessing
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def test_recipes():
    if multiprocessing.get_start_method(allow_none=False) != "fork":
        pytest.skip("classes that are not in a file cannot be sent to spawned workers")
    blocks = list(re.finditer(r"^```python.*?\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    assert len(blocks) > 10
    namespace: dict[str, object] = {}
    for block in blocks:
        line = block.string.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), namespace)
