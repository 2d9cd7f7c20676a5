"""Writes the sample that is packaged as ``degrade/data/sample_files``: photographs that scikit-image ships, questions of our own.

Usage: ``python tools/make_sample.py`` (needs scikit-image, from which only photographs in the public domain or under CC0 are taken; their
licences and sources stand in ``LICENSES.md`` beside the files, which is written by hand).
"""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Sequence
from pathlib import Path

import skimage.data
from PIL import Image, ImageOps

FOLDER = Path(__file__).resolve().parent.parent / "degrade" / "data" / "sample_files"
LONG_SIDE = 448  # pixels
QUALITY = 92


def photograph(name: str, *, mirrored: bool = False) -> str:
    """A photograph of scikit-image, made smaller, as base64 of a JPEG."""
    image = Image.fromarray(getattr(skimage.data, name)())
    image.thumbnail((LONG_SIDE, LONG_SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    (ImageOps.mirror(image) if mirrored else image).save(buffer, "JPEG", quality=QUALITY)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def rotations(
    index: int, question: str, hint: str, options: Sequence[str], answer: int, category: str, l2: str, image: str
) -> list[list[str]]:
    """One MMBench group: every rotation of the options is a row, all but the first refer to the first row's image."""
    rows = []
    for turn in range(len(options)):
        turned = [*options[turn:], *options[:turn]]
        letter = "ABCD"[(answer - turn) % len(options)]
        cells = [*turned, "", "", ""][:4]
        picture = image if turn == 0 else str(index)
        rows.append([str(index + turn * 1_000_000), question, hint, *cells, letter, category, picture, "sample", l2, "NA", "dev"])
    return rows


def counting(index: int, question: str, options: Sequence[str], answer: str, category: str, image: str) -> list[str]:
    """One CV-Bench row, with the prompt that the benchmark spells out."""
    prompt = f"{question} Select from the following choices." + "".join(f"\n{x} {o}" for x, o in zip("ABCDEF", options, strict=False))
    return [str(index), image, question, prompt, *[*options, "", "", "", "", ""][:6], answer, category, "sample", "2D"]


NOSE = "Is the cat's nose in the left or in the right half of the picture?"
PERSONS = "Written with three digits, how many persons are in the image?"


def benchmarks() -> dict[str, list[list[str]]]:
    """Header and rows of each file. The text holds what real files hold: `None` and `NA` as answers, leading zeros, quotes, newlines."""
    coffee, rocket, astronaut, camera = (photograph(name) for name in ("coffee", "rocket", "astronaut", "camera"))
    return {
        "MMBench_DEV_EN_V11": [
            ["index", "question", "hint", "A", "B", "C", "D", "answer", "category", "image", "source", "l2-category", "comment", "split"],
            *rotations(
                241,
                "Which animal can be seen in this photograph?",
                "",
                ["A cat", "A dog", "None", "A horse"],
                2,
                "object_localization",
                "finegrained_perception (instance-level)",
                coffee,
            ),
            *rotations(
                252,
                "How does the rocket stand on its pad?",
                'The photographer called this picture "Before lift-off".',
                ["Upright", "Lying on its side"],
                0,
                "image_scene",
                "coarse_perception",
                rocket,
            ),
        ],
        "MMVet": [
            ["index", "image", "question", "answer", "category"],
            ["0", astronaut, "What colour is the suit that the woman is wearing?", "orange", "rec"],
            ["1", camera, "Look at the man.\nWhat does his camera stand on?", "a tripod<OR>tripod", "rec,spat"],
        ],
        "MMVP": [
            ["index", "image", "question", "A", "B", "answer"],
            ["1", photograph("chelsea"), NOSE, "Left", "Right", "B"],
            ["2", photograph("chelsea", mirrored=True), NOSE, "Left", "Right", "A"],
        ],
        "CV-Bench-2D": [
            ["index", "image", "question", "prompt", "A", "B", "C", "D", "E", "F", "answer", "category", "source", "split"],
            counting(0, "How many cups are in the image?", ["0", "3", "1", "2"], "C", "Count", coffee),
            counting(1, PERSONS, ["007", "001", "003", "000"], "B", "Count", camera),
        ],
        "MMStar": [
            ["index", "question", "image", "A", "B", "C", "D", "answer", "category", "l2_category"],
            [
                "0",
                "What are most of the bright spots in this picture?",
                photograph("hubble_deep_field"),
                "Street lamps",
                "Galaxies",
                "Snowflakes",
                "Fireflies",
                "B",
                "science & technology",
                "natural science",
            ],
            [
                "1",
                "In this picture of the back of an eye, near which edge is the bright disc where the vessels meet?",
                photograph("retina"),
                "Left",
                "Right",
                "Top",
                "Bottom",
                "A",
                "instance reasoning",
                "single-instance reasoning",
            ],
        ],
        "RealWorldQA": [
            ["index", "image", "question", "A", "B", "C", "answer"],
            ["0", rocket, "What colour is the sky behind the rocket?", "Green", "Blue", "NA", "B"],
            ["1", coffee, "What is the saucer standing on?", "A wooden table", "A white tablecloth", "A newspaper", "A"],
        ],
    }


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, rows in benchmarks().items():
        with (FOLDER / f"{name}.tsv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t", lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
