"""Makes a VLMEvalKit TSV of any size from the text rows of another: for trying a build's speed and memory.

Usage: ``python tools/make_source.py ROWS.tsv OUTPUT.tsv [--side 128] [--bytes 200e6]``

ROWS.tsv has an ``index`` column, and any others. Every row gets an image of its own, a cut from a photograph of the packaged sample of at
most `side` pixels a side; rotations (index + 1,000,000 and so on) refer to the first row's, as in MMBench. With ``--bytes`` the rows come
again and again, under new indices, until the file is so large.
"""

from __future__ import annotations

import argparse
import base64
import csv
import io
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from degrade.data import text
from degrade.data.sample import sample_folder
from degrade.data.sources.tsv import TsvSource

ROTATION = 1_000_000
"""What MMBench adds to the index of a question for each rotation of its options."""


def photographs() -> list[Image.Image]:
    """The photographs of the sample."""
    found = []
    for path in sorted(sample_folder().glob("*.tsv")):
        source = TsvSource(path, path.stem)
        entries = source.scan().entries
        found += [Image.open(io.BytesIO(source.images(row).parts[0])) for row in source.rows() if entries[row.number].kind == "payload"]
    return found


def cut(pictures: list[Image.Image], side: int, rng: random.Random) -> str:
    """A part of a photograph as base64 of a JPEG."""
    picture = rng.choice(pictures)
    width, height = (rng.randint(side // 2, side) for _ in range(2))
    left, top = rng.randint(0, max(0, picture.width - width)), rng.randint(0, max(0, picture.height - height))
    buffer = io.BytesIO()
    picture.crop((left, top, left + width, top + height)).save(buffer, "JPEG", quality=92)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a TSV file, as text."""
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("rows", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--side", type=int, default=128, help="pixels a side of an image, at most")
    parser.add_argument("--bytes", type=float, default=0, help="repeat the rows until the file is so large")
    options = parser.parse_args()
    pictures, rng, written, turn = photographs(), random.Random(0), 0, 0
    with options.output.open("wb") as file:
        while turn == 0 or written < options.bytes:
            held: set[str] = set()
            for row in rows(options.rows):
                if turn == 0 and written == 0:
                    written += file.write(text.line([name for name in row if name != "image"] + ["image"]))
                index = row["index"]
                first = str(int(index) % ROTATION) if index.isdigit() else index
                name = index if turn == 0 else f"{index}-{turn}"
                if first in held and first != index:
                    image = first if turn == 0 else f"{first}-{turn}"
                else:
                    image = cut(pictures, options.side, rng)
                held.add(index)
                cells = [name if column == "index" else cell or "" for column, cell in row.items() if column != "image"]
                written += file.write(text.line([*cells, image]))
                if options.bytes and written >= options.bytes:
                    break
            turn += 1


if __name__ == "__main__":
    main()
