"""The whole way on the small sample inside the package: degrade, ask a model, score. Run: ``python examples/whole_way.py OUTPUT``.

The model is a stand-in, so that this needs no download: it has learnt the answers to the clean images by heart, knows an image by its fine
structure, and says so when it does not recognise one. Put any callable from an image and a question to a text in its place.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, normalize

from degrade.build import build
from degrade.config import BuildConfig, ScoreConfig
from degrade.data.images import decode
from degrade.data.sources.tsv import TsvSource
from degrade.scoring import report, score
from degrade.scoring.answers import options_of

Row = Mapping[str, str]
Model = Callable[[Tensor, Row], str]
NAME = "by-heart"


class ByHeart:
    """Knows what it has seen.

    Args:
        sure: how alike (at most 1) an image must be to one that was learnt.
    """

    def __init__(self, sure: float = 0.8) -> None:
        self.sure = sure
        self.known: list[tuple[str, Tensor, str]] = []

    def learn(self, image: Tensor, row: Row) -> None:
        self.known.append((row["question"], self.look(image), options_of(row).get(row["answer"], row["answer"])))

    def look(self, image: Tensor) -> Tensor:
        """Fine structure: what a small blur takes away."""
        small = adaptive_avg_pool2d(image.double().mean(dim=0, keepdim=True), 96)
        fine = (small - avg_pool2d(small, 5, stride=1, padding=2)).flatten()
        return normalize(fine, dim=0)

    def __call__(self, image: Tensor, row: Row) -> str:
        seen = self.look(image)
        alike = [(float(seen @ look), answer) for question, look, answer in self.known if question == row["question"]]
        surest, answer = max(alike)
        return answer if surest >= self.sure else "I do not recognise this picture."


def rows_of(path: Path) -> list[tuple[Row, Tensor]]:
    """The questions of a TSV file of VLMEvalKit with their images."""
    source = TsvSource(path, path.stem)
    entries = source.scan().entries
    rows = list(source.rows())
    return [
        (dict(zip(source.columns, row.cells, strict=True)), decode(source.images(rows[entry.payload]).parts[0]))
        for row, entry in zip(rows, entries, strict=True)
    ]


def ask(model: Model, path: Path, results: Path) -> None:
    """Ask a model all questions of a file, and leave its answers where and as VLMEvalKit would."""
    answered = [{**row, "prediction": model(image, row)} for row, image in rows_of(path)]
    target = results / NAME / f"{NAME}_{path.stem}.tsv"
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [name for name in answered[0] if name != "image"], delimiter="\t", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(answered)


def main(output: Path) -> dict[str, Any]:
    """Build, ask and score below `output`; returns the report."""
    shards, results = output / "build", output / "results"
    config = BuildConfig(source="sample", output=str(shards), variants=["mixed", "clean"], severities=["low", "high"])
    build(config)
    model = ByHeart()
    for path in sorted(shards.glob("*_CLEAN.tsv")):
        for row, image in rows_of(path):
            model.learn(image, row)
    with torch.inference_mode():
        for path in sorted(shards.glob("*.tsv")):
            ask(model, path, results)
    return score(ScoreConfig(results=str(results), build=str(shards), output=str(output / "score")))


if __name__ == "__main__":
    print(report.mmd_table(main(Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/whole-way"))))
