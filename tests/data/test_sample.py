"""The sample inside the package: layouts, references, pictures, answers, licences."""

import base64
import csv
import io

import pytest
from PIL import Image

from degrade.data.sample import sample_folder, sample_image

LAYOUTS = {
    "MMBench_DEV_EN_V11": "index question hint A B C D answer category image source l2-category comment split",
    "MMVet": "index image question answer category",
    "MMVP": "index image question A B answer",
    "CV-Bench-2D": "index image question prompt A B C D E F answer category source split",
    "MMStar": "index question image A B C D answer category l2_category",
    "RealWorldQA": "index image question A B C answer",
}
REFERENCE = 64  # characters, at most


def rows(name: str) -> list[dict[str, str]]:
    csv.field_size_limit(10**7)
    with (sample_folder() / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_of_the_benchmark(name: str) -> None:
    table = rows(name)
    assert list(table[0]) == LAYOUTS[name].split()
    indexes = [row["index"] for row in table]
    assert len(set(indexes)) == len(indexes)
    for row in table:
        assert None not in row
        assert None not in row.values()
        if name != "MMVet":
            assert row[row["answer"]], "the right option is there"
            assert all(row[letter] != row[row["answer"]] for letter in "ABCDEF" if letter in row and letter != row["answer"])


@pytest.mark.parametrize("name", LAYOUTS)
def test_images_are_small_jpegs_or_references_to_one(name: str) -> None:
    table = {row["index"]: row for row in rows(name)}
    for row in table.values():
        cell = row["image"]
        if len(cell) <= REFERENCE:
            cell = table[cell]["image"]
            assert len(cell) > REFERENCE, "a reference points straight at a payload"
        with Image.open(io.BytesIO(base64.b64decode(cell, validate=True))) as image:
            image.load()
            assert image.format == "JPEG"
            assert max(image.size) == 448


def test_mmbench_groups_are_rotations() -> None:
    table = rows("MMBench_DEV_EN_V11")
    groups: dict[int, list[dict[str, str]]] = {}
    for row in table:
        groups.setdefault(int(row["index"]) % 1_000_000, []).append(row)
    assert {len(group) for group in groups.values()} == {4, 2}
    for index, group in groups.items():
        assert [row["image"] for row in group[1:]] == [str(index)] * (len(group) - 1)
        assert len({row[row["answer"]] for row in group}) == 1
        assert len({row["answer"] for row in group}) == len(group)


def test_mmvp_pairs_have_opposite_answers_on_mirrored_pictures() -> None:
    first, second = rows("MMVP")
    assert {first["answer"], second["answer"]} == {"A", "B"}
    assert first["image"] != second["image"]


def test_the_text_holds_what_real_files_hold() -> None:
    cells = [cell for name in LAYOUTS for row in rows(name) for column, cell in row.items() if column != "image"]
    assert {"None", "NA", "007", ""} <= set(cells)
    assert any("\n" in cell for cell in cells)
    assert any('"' in cell for cell in cells)


def test_small_and_licensed() -> None:
    files = list(sample_folder().iterdir())
    assert sum(file.stat().st_size for file in files) < 1_500_000
    licences = (sample_folder() / "LICENSES.md").read_text(encoding="utf-8")
    for photograph in ("astronaut", "camera", "chelsea", "coffee", "hubble_deep_field", "retina", "rocket"):
        line = next(line for line in licences.splitlines() if line.startswith(f"| `{photograph}`"))
        assert "CC0" in line or "public domain" in line
        assert "http" in line or "scikit-image" in line


def test_sample_image_leaves_the_csv_limit_alone() -> None:
    before = csv.field_size_limit()
    with Image.open(io.BytesIO(sample_image())) as image:
        assert image.size == (448, 299)
    assert csv.field_size_limit() == before
