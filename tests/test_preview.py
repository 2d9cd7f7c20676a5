"""The contact sheet."""

from pathlib import Path

import pytest
import torch
from PIL import Image

import degrade
from degrade.config import ConfigError, PreviewConfig
from degrade.data.errors import SourceError
from degrade.preview import contact_sheet, preview

QUICK = ["lens_blur", "block_exchange", "dark_illumination"]


@pytest.fixture(scope="module")
def image() -> torch.Tensor:
    return torch.randint(0, 256, (3, 64, 96), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def holds(sheet: torch.Tensor, part: torch.Tensor) -> bool:
    """Whether `part` stands somewhere in `sheet`, but for its lower left corner, where the severity is written."""
    height, width = part.shape[1] - 20, part.shape[2]
    windows = sheet.unfold(1, height, 1).unfold(2, width, 1)
    corner = (windows[..., 0, :8] == part[:, None, None, 0, :8]).all(-1).all(0)
    return any(torch.equal(windows[:, y, x], part[:, :height]) for y, x in corner.nonzero().tolist())


def test_every_thumbnail_is_what_apply_gives(image: torch.Tensor) -> None:
    severities = ["low", 0.7]
    sheet = contact_sheet(image, QUICK, severities, seed=3, width=96)
    assert sheet.dtype == torch.uint8
    assert sheet.shape[0] == 3
    assert holds(sheet, image), "the clean image is shown"
    for name in QUICK:
        for severity in severities:
            assert holds(sheet, degrade.apply(image, name, severity, seed=3, keys=["preview"])), (name, severity)
    assert not holds(sheet, degrade.apply(image, "block_exchange", "low", seed=4, keys=["preview"]))


def test_names_are_written_in_legible_size(image: torch.Tensor) -> None:
    one, other = (contact_sheet(image, [name], ["high"], width=96) for name in ("lens_blur", "motion_blur"))
    assert one.shape == other.shape
    label = slice(60, 300)
    assert not torch.equal(one[:, label, :120], other[:, label, :120])


def test_the_image_is_not_changed_and_seed_decides(image: torch.Tensor) -> None:
    before = image.clone()
    first, again, other = (contact_sheet(image, ["block_exchange"], ["high"], seed=seed, width=96) for seed in (0, 0, 1))
    assert torch.equal(image, before)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("bad", [torch.zeros(3, 8, 8), torch.zeros(1, 8, 8, dtype=torch.uint8), torch.zeros(8, 8, dtype=torch.uint8)])
def test_wrong_image_is_named(bad: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="image: got"):
        contact_sheet(bad, QUICK)


def test_preview_writes_a_png_and_nothing_else(tmp_path: Path) -> None:
    output = tmp_path / "new folder" / "sheet, (1).png"
    assert preview(PreviewConfig(output=str(output), operators=QUICK, severities=["high"])) == output
    with Image.open(output) as sheet:
        assert sheet.format == "PNG"
        assert sheet.width > 300
    assert list(output.parent.iterdir()) == [output]


def test_preview_of_a_file_turned_upright(tmp_path: Path) -> None:
    photo = Image.new("RGB", (60, 20), "red")
    exif = Image.Exif()
    exif[0x0112] = 6
    photo.save(tmp_path / "a.jpg", exif=exif)
    preview(PreviewConfig(image=str(tmp_path / "a.jpg"), output=str(tmp_path / "o.png"), operators=["lens_blur"], severities=[0], width=48))
    with Image.open(tmp_path / "o.png") as sheet:
        assert sheet.height > 2 * 3 * 48, "upright thumbnails are three times as tall as wide"


def test_preview_errors(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"image=.*no\.jpg: No such file"):
        preview(PreviewConfig(image=str(tmp_path / "no.jpg"), output=str(tmp_path / "o.png")))
    with pytest.raises(ConfigError, match="lens_blur"):
        preview(PreviewConfig(operators=["lens-blur"]))
    (tmp_path / "text.jpg").write_text("no picture")
    with pytest.raises(ValueError, match="no image of a kind that is read"):
        preview(PreviewConfig(image=str(tmp_path / "text.jpg"), output=str(tmp_path / "o.png")))
    assert not (tmp_path / "o.png").exists()
