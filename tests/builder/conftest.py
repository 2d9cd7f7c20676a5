"""Small benchmarks to build, and quick ways of building them."""

import base64
import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from degrade.config import BuildConfig
from degrade.data import text

QUICK = {"dark_illumination": 1, "scan_lines": 1, "block_exchange": 2, "gaussian_noise": 1}
"""A mixture of operators that take no time."""


def picture(seed: int, size: tuple[int, int] = (40, 24)) -> str:
    """A PNG as base64."""
    rng = np.random.default_rng(seed)
    image = Image.fromarray(rng.integers(0, 256, (3, 5, 3), np.uint8)).resize(size, Image.Resampling.BICUBIC)
    file = io.BytesIO()
    image.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def write_tsv(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(text.line, (header, *rows))))
    return path


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """A TSV with every kind of image cell that can be used, and text that reads badly."""
    list_cell = str([picture(11), picture(12)])
    rows = [
        ("7", picture(1), "None", "two\nlines", "A"),
        ("1000007", "7", "NA", 'say "hi"', "007"),
        ("8", "9", "null", "tab\there", "2.50"),
        ("9", "data:image/png;base64," + picture(2, (33, 37)), "", "bare\rreturn", "nan"),
        ("10", "8", "123456789012345678", "dos\r\nlines", ""),
        ("11", list_cell, "x", " spaced ", "B"),
        ("12", "", "no image", "", "C"),
        ("13", picture(3, (1, 1)).rstrip("="), "x", "中文", "D"),
    ]
    return write_tsv(tmp_path / "sources" / "MMStar.tsv", ("index", "image", "hint", "question", "answer"), rows)


@pytest.fixture
def configure(tmp_path: Path) -> Callable[..., BuildConfig]:
    """A quick configuration; further settings by name."""

    def make(source: Path, output: str = "out", **more: object) -> BuildConfig:
        settings = {"mixture": dict(QUICK), "operators": ["lens_blur", "block_exchange"], "workers": 0, **more}
        return BuildConfig(source=str(source), output=str(tmp_path / output), **settings)

    return make


def digests(folder: Path) -> dict[str, str]:
    """The sha256 of every file that must not differ from run to run."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir()) if p.name != "build.json"}
