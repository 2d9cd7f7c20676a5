"""MMR: a JSON file of questions, and its images in a folder or a zip file."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from degrade.data.errors import RowError, SourceError
from degrade.data.rows import Encoded, Kind, Row, Scan, resolve

_FIELDS = ("id", "image", "question", "ground_truth", "question_type")


class MmrSource:
    """MMR's questions as rows; a row's index is its place in the question file, from 0, and questions about one image share it.

    Args:
        questions: the question file, a JSON list.
        images: the folder that the questions' image paths are in, or a zip file of it.
    """

    kind = "mmr"
    benchmark = "MMR"
    columns: tuple[str, ...] = ("index", "image", "question", "answer", "category", "question_type", "id")

    def __init__(self, questions: Path, images: Path) -> None:
        self.path, self._place = questions, images
        try:
            self._questions: list[dict[str, Any]] = json.loads(questions.read_bytes())
        except ValueError as error:
            raise SourceError(f"{questions} is not JSON: {error}") from error
        if not isinstance(self._questions, list) or not all(isinstance(q, dict) for q in self._questions):
            raise SourceError(f"{questions}: a list of questions is wanted")
        for number, question in enumerate(self._questions):
            if missing := [name for name in _FIELDS if not isinstance(question.get(name), str)]:
                raise SourceError(f"{questions}: question {number} (the first is 0) has no text under {', '.join(missing)}")
        self._archive = zipfile.ZipFile(images) if images.is_file() and zipfile.is_zipfile(images) else None
        if self._archive is None and not images.is_dir():
            raise SourceError(f"images: {images} is neither a folder nor a zip file")
        self._members = self._archive.namelist() if self._archive else []

    def scan(self) -> Scan:
        first: dict[str, str] = {}
        indices, found = [], list[tuple[Kind, str]]()
        for number, question in enumerate(self._questions):
            indices.append(str(number))
            target = first.setdefault(question["image"], str(number))
            found.append(("payload", "") if target == str(number) else ("reference", target))
        digest = hashlib.sha256(self.path.read_bytes())
        size = 0
        for name in sorted(first):
            try:
                data = self._read(name)
            except RowError:  # reported when its row comes
                continue
            digest.update(f"{name}\0{len(data)}\0".encode() + data)
            size += len(data)
        return Scan(resolve(indices, found), digest.hexdigest(), size, text_bytes=self.path.stat().st_size)

    def rows(self, start: int = 0) -> Iterator[Row]:
        for number, question in enumerate(self._questions[start:], start=start):
            category = question["id"].rpartition("/")[0]
            texts = (question["question"], question["ground_truth"], category, question["question_type"], question["id"])
            yield Row(number, str(number), (str(number), "", *texts))

    def images(self, row: Row) -> Encoded:
        return Encoded((self._read(self._questions[row.number]["image"]),), "single")

    def _read(self, name: str) -> bytes:
        if self._archive:
            # a zip file may hold the folder itself
            found = [member for member in self._members if member == name or member.endswith("/" + name)]
            if not found:
                raise RowError(f"{self._place} holds no {name}")
            return self._archive.read(min(found, key=len))
        path = (self._place / name).resolve()
        if not path.is_relative_to(self._place.resolve()):
            raise RowError(f"the image path {name!r} leads out of {self._place}")
        if not path.is_file():
            raise RowError(f"{path} is not there")
        return path.read_bytes()
