"""The sample inside the package: about a dozen rows in the column layouts of the six benchmarks, so that a first build needs no data.

The files are made by ``tools/make_sample.py``; the photographs' licences stand beside them in ``LICENSES.md``.
"""

from __future__ import annotations

import base64
import csv
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent / "sample_files"
_CELL_LIMIT = 2**31 - 1  # characters; the csv module's own limit is smaller than an image


def sample_folder() -> Path:
    """The folder that ``source=sample`` means: one TSV for each benchmark.

    >>> sorted(file.stem for file in sample_folder().glob("*.tsv"))
    ['CV-Bench-2D', 'MMBench_DEV_EN_V11', 'MMStar', 'MMVP', 'MMVet', 'RealWorldQA']
    """
    return _FOLDER


def sample_image() -> bytes:
    """One photograph of the sample, as an encoded JPEG: the one that ``degrade preview`` shows."""
    limit = csv.field_size_limit(_CELL_LIMIT)
    try:
        with (_FOLDER / "MMBench_DEV_EN_V11.tsv").open(encoding="utf-8", newline="") as file:
            return base64.b64decode(next(csv.DictReader(file, delimiter="\t"))["image"])
    finally:
        csv.field_size_limit(limit)
