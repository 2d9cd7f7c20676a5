"""Small builds and result files, made up: what a build's folder and VLMEvalKit's results look like to the scorers."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from degrade.config import ScoreConfig
from degrade.data import manifest
from degrade.suites import OPERATOR_CATEGORIES, parse_stem

Row = dict[str, object]


class Folder:
    """A build's folder and a results folder, filled by hand."""

    def __init__(self, root: Path) -> None:
        self.root, self.build, self.results = root, root / "build", root / "results"
        self.build.mkdir()
        self.results.mkdir()

    def manifest(
        self,
        stem: str,
        rows: Mapping[str, str | None],
        *,
        references: Mapping[str, str] | None = None,
        statuses: Mapping[str, str] | None = None,
    ) -> None:
        """A manifest: index -> operator; references index -> index; other statuses by index."""
        references, statuses = references or {}, statuses or {}
        numbers = {index: number for number, index in enumerate([*rows, *references])}
        parsed = parse_stem(stem, OPERATOR_CATEGORIES)
        assert parsed is not None
        header: Row = {"format": manifest.FORMAT, "stem": stem, "benchmark": parsed[0], "variant": dataclasses.asdict(parsed[1])}
        lines: list[Row] = [header | {"configuration": {}, "source": {}, "libraries": {}, "fingerprint": ""}]
        for index, operator in rows.items():
            record = None if operator is None else {"operator": operator, "intensity": 0.9, "params": {}}
            line: Row = {"row": numbers[index], "index": index, "status": statuses.get(index, "ok"), "record": record, "reason": "broken"}
            lines.append(line | {"key": f"{parsed[0]}/{index}", "source_sha256": "", "sha256": "", "size": [1, 1]})
        for index, target in references.items():
            lines.append({"row": numbers[index], "index": index, "status": "reference", "payload": numbers[target]})
        (self.build / f"{stem}{manifest.SUFFIX}").write_bytes(b"".join(manifest.dump(line) for line in lines))

    def result(self, stem: str, rows: Sequence[Row], *, folder: str = "m", suffix: str = ".tsv", model: str = "m") -> Path:
        """A result file of a model."""
        path = self.results / folder / f"{model}_{stem}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = list(dict.fromkeys(name for row in rows for name in row)) or ["index", "prediction", "answer"]
        if suffix == ".xlsx":
            import openpyxl

            book = openpyxl.Workbook()
            assert book.active is not None
            for line in [columns, *([row.get(name) for name in columns] for row in rows)]:
                book.active.append(line)
            book.save(path)
        elif suffix == ".json":
            path.write_text(json.dumps(rows))
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_ALL)
                writer.writerows([columns, *([row.get(name, "") for name in columns] for row in rows)])
        return path

    def config(self, **settings: object) -> ScoreConfig:
        """Settings to score this folder by."""
        defaults: Row = {"results": str(self.results), "build": str(self.build), "output": str(self.root / "out"), "resamples": 200}
        return ScoreConfig(**(defaults | settings))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Empty folders for a build and for results."""
    return Folder(tmp_path)


@pytest.fixture
def questions() -> Callable[..., list[Row]]:
    """Rows of two options, right answer B, answered right where `right` says so."""

    def make(right: Sequence[bool], start: int = 0, **more: object) -> list[Row]:
        return [
            {"index": start + i, "question": f"q{start + i}", "A": "cat", "B": "dog", "answer": "B", "prediction": "B" if hit else "A"}
            | more
            for i, hit in enumerate(right)
        ]

    return make
