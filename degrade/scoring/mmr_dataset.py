"""MMR as a torch Dataset: for those who ask a model themselves."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from torch import Tensor
from torch.utils.data import Dataset

from degrade.data.images import decode
from degrade.data.sources.tsv import TsvSource
from degrade.scoring.benchmarks import listed
from degrade.scoring.mmr import PROMPTS, Questions, load_questions
from degrade.scoring.tables import ScoringError


class MMRDataset(Dataset[dict[str, Any]]):
    """MMR's questions with their images.

    A sample is a dict: `image` (uint8 RGB, (3, H, W), or what `transform` makes of it), `question` (with its options, as the file holds
    it), `prompt` (what to ask), `options` (letter -> text), `letter` (the right one), `kind` ("POS" or "NEG"), `pair` (the pair's id),
    `key` (unique: the `key` column of answers) and `index` (its position, the `index` column of answers).

    Args:
        questions: the question file, or what :func:`degrade.scoring.mmr.load_questions` made of it.
        images: MMR's folder of images, a zip file of it, or a TSV file of a build of MMR, for degraded images.
        prompt: a name of :data:`degrade.scoring.mmr.PROMPTS`.
        transform: applied to the image.

    Raises:
        ScoringError: names the images that are missing, or what is wrong with the question file.
        FileNotFoundError: where there is no such file or folder.
        ValueError: for a prompt that does not exist.
    """

    def __init__(
        self,
        questions: Questions | Path | str,
        images: Path | str,
        prompt: str = "letter",
        transform: Callable[[Tensor], Any] | None = None,
    ) -> None:
        if prompt not in PROMPTS:
            raise ValueError(f"prompt {prompt!r}: it must be one of {', '.join(PROMPTS)}")
        self.questions = questions if isinstance(questions, Questions) else load_questions(questions)
        self.prompt, self.transform = prompt, transform
        self._read = _reader(Path(images), self.questions)

    def __len__(self) -> int:
        return len(self.questions.questions)

    def __getitem__(self, index: int) -> dict[str, Any]:
        question = self.questions.questions[index]
        image = decode(self._read(range(len(self))[index]))
        return {
            "image": image if self.transform is None else self.transform(image),
            "question": question.text,
            "prompt": question.prompt(self.prompt),
            "options": dict(question.options),
            "letter": question.letter,
            "kind": question.kind,
            "pair": question.pair,
            "key": question.key,
            "index": range(len(self))[index],
        }


def _reader(images: Path, questions: Questions) -> Callable[[int], bytes]:
    """A function from a question's position to the bytes of its image."""
    if images.is_dir():
        return _files(images, questions)
    if not images.is_file():
        raise FileNotFoundError(f"images: there is no file or folder {str(images)!r}")
    return _rows(images, questions) if images.suffix.lower() == ".tsv" else _members(images, questions)


def _files(folder: Path, questions: Questions) -> Callable[[int], bytes]:
    paths = [folder / question.image for question in questions.questions]
    _all_there(folder, [question.image for question, path in zip(questions.questions, paths, strict=True) if not path.is_file()])
    return lambda position: paths[position].read_bytes()


def _members(path: Path, questions: Questions) -> Callable[[int], bytes]:
    if not zipfile.is_zipfile(path):
        raise ScoringError(f"images: {path} is no folder, zip or TSV file")
    with zipfile.ZipFile(path) as archive:
        # A zip made of a folder has the folder's name before every path.
        names = {PurePosixPath(*PurePosixPath(name).parts[-3:]).as_posix(): name for name in archive.namelist()}
    _all_there(path, [question.image for question in questions.questions if question.image not in names])

    def read(position: int) -> bytes:
        with zipfile.ZipFile(path) as archive:  # opened anew: workers of a DataLoader must not share a file's position
            return archive.read(names[questions.questions[position].image])

    return read


def _rows(path: Path, questions: Questions) -> Callable[[int], bytes]:
    source = TsvSource(path, path.stem)
    entries = source.scan().entries
    payloads = {entry.index: entry.payload for entry in entries}
    names = questions.names(payloads)
    _all_there(path, [f"index {name}" for name in names if payloads.get(name, -1) < 0])
    return lambda position: source.images(source.row(payloads[names[position]])).parts[0]


def _all_there(where: Path, missing: list[str]) -> None:
    if missing:
        raise ScoringError(f"images: {where} lacks {len(missing)} of the images: {listed(dict.fromkeys(missing))}")
