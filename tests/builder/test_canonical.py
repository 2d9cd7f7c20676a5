"""The canonical instance: the sample built with seed 0, to the byte."""

import hashlib
from pathlib import Path

import imagecodecs
import pytest
from PIL import features

from degrade.build import build
from degrade.builder.folder import sha256
from degrade.config import BuildConfig
from degrade.data import manifest

DIGESTS = Path(__file__).resolve().parents[2] / "docs" / "sample.sha256"  # `sha256sum --check` reads it, too
RECORDS = "1c620ba5159861c481c27585e55a0c49e69b2ff118bcb688a724259fd4e8d061"
"""Of the lines of all manifests, without their headers, in which library versions stand."""

LIBJPEG_TURBO = "3."
"""Releases of libjpeg-turbo that write these bytes: 3.1.0 to 3.2.0 were tried, as Pillow (which decodes) and imagecodecs (which encodes)
bring them along. The sample is JPEG in and out, so no other codec takes part."""


def test_the_sample_with_seed_0(tmp_path: Path) -> None:
    for library, release in (("Pillow", features.version("libjpeg_turbo")), ("imagecodecs", imagecodecs.jpeg8_version().split()[-1])):
        if not str(release).startswith(LIBJPEG_TURBO):
            pytest.skip(f"{library} has libjpeg-turbo {release}; the digests are of {LIBJPEG_TURBO}x")
    report = build(BuildConfig(output=str(tmp_path), device="cpu"))
    expected = {name: digest for digest, name in map(str.split, DIGESTS.read_text().splitlines())}
    found = {path.name: sha256(path) for path in report.files}
    assert len(found) == 6 * (3 + 16 + 1)
    changed = sorted(name for name in expected | found if expected.get(name) != found.get(name))
    assert not changed, f"If pixels were meant to move: say so in CHANGELOG.md, and run `sha256sum *.tsv > {DIGESTS.name}` in a new build"
    lines = hashlib.sha256()
    for path in sorted(tmp_path.glob("*" + manifest.SUFFIX)):
        for line in manifest.lines(path):
            lines.update(manifest.dump(line))
    assert lines.hexdigest() == RECORDS
