"""Encoded bytes to tensors and back."""

import io

import cv2
import imagecodecs
import numpy as np
import pytest
import tifffile
import torch
from PIL import Image

from degrade.data import images
from degrade.data.errors import RowError

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (5, 7, 3), np.uint8)
SMOOTH = np.stack(np.meshgrid(np.arange(48), np.arange(32), indexing="ij") * 2, -1)[..., :3].astype(np.uint8) * 3


def file(image: Image.Image, kind: str, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def pixels(data: bytes, **options) -> np.ndarray:
    out = images.decode(data, **options)
    assert out.dtype == torch.uint8
    assert out.is_contiguous()
    return out.permute(1, 2, 0).numpy()


def png(samples: np.ndarray) -> bytes:
    return imagecodecs.png_encode(samples)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "GIF", "WEBP"])
def test_lossless_formats(kind: str) -> None:
    image = Image.fromarray(PIXELS)
    if kind == "GIF":
        image = image.quantize(64)
    expected = np.asarray(image.convert("RGB"))
    np.testing.assert_array_equal(pixels(file(image, kind, **({"lossless": True} if kind == "WEBP" else {}))), expected)


def test_grey_palette_and_one_bit() -> None:
    grey = Image.fromarray(PIXELS[..., 0])
    np.testing.assert_array_equal(pixels(file(grey, "PNG")), np.repeat(PIXELS[..., :1], 3, 2))
    palette = Image.fromarray(PIXELS).quantize(16)
    np.testing.assert_array_equal(pixels(file(palette, "PNG")), np.asarray(palette.convert("RGB")))
    bit = grey.convert("1")
    np.testing.assert_array_equal(pixels(file(bit, "PNG")), np.asarray(bit.convert("RGB")))


@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_as_pillow_reads_it(progressive: bool) -> None:
    data = file(Image.fromarray(SMOOTH), "JPEG", progressive=progressive)
    np.testing.assert_array_equal(pixels(data), np.asarray(Image.open(io.BytesIO(data))))
    cmyk = file(Image.fromarray(SMOOTH).convert("CMYK"), "JPEG", quality=100)
    assert np.abs(pixels(cmyk).astype(int) - SMOOTH).mean() < 6


@pytest.mark.parametrize("turn", range(1, 9))
def test_orientation_as_pillow_turns_it(turn: int) -> None:
    from PIL import ImageOps

    exif = Image.Exif()
    exif[images.ORIENTATION_TAG] = turn
    for kind in ("PNG", "WEBP", "TIFF"):
        data = file(Image.fromarray(PIXELS), kind, exif=exif, **({"lossless": True} if kind == "WEBP" else {}))
        upright = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
        np.testing.assert_array_equal(pixels(data), np.asarray(upright))
        np.testing.assert_array_equal(pixels(data, orientation=False), PIXELS)


def test_orientation_that_does_not_exist_is_upright() -> None:
    exif = Image.Exif()
    exif[images.ORIENTATION_TAG] = 9
    np.testing.assert_array_equal(pixels(file(Image.fromarray(PIXELS), "PNG", exif=exif)), PIXELS)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_16_bits_are_rounded(channels: int) -> None:
    wide = RNG.integers(0, 65536, (6, 5, channels), np.uint16)
    wide[0, :, 0] = [0, 128, 129, 65535, 65406]
    expected = np.rint(wide / 257).astype(np.uint8)
    rgb = np.repeat(expected[..., :1], 3, 2) if channels < 3 else expected[..., :3]
    np.testing.assert_array_equal(pixels(png(wide.squeeze())), rgb)


def test_16_bit_tiff() -> None:
    wide = RNG.integers(0, 65536, (6, 5, 3), np.uint16)
    levels = np.rint(wide / 257).astype(np.uint8)
    data = imagecodecs.tiff_encode(wide)
    np.testing.assert_array_equal(pixels(data), levels)
    rotated = io.BytesIO()
    tifffile.imwrite(rotated, wide, photometric="rgb", extratags=[(images.ORIENTATION_TAG, "H", 1, 6, True)])
    np.testing.assert_array_equal(pixels(rotated.getvalue()), np.rot90(levels, -1))
    np.testing.assert_array_equal(pixels(rotated.getvalue(), orientation=False), levels)


def test_alpha_is_dropped_or_put_on_a_colour() -> None:
    rgba = RNG.integers(0, 256, (5, 7, 4), np.uint8)
    data = file(Image.fromarray(rgba), "PNG")
    np.testing.assert_array_equal(pixels(data), rgba[..., :3])
    a = rgba[..., 3:].astype(float)
    over = np.rint((rgba[..., :3] * a + np.array([255, 0, 128]) * (255 - a)) / 255).astype(np.uint8)
    np.testing.assert_array_equal(pixels(data, alpha="#ff0080"), over)
    key = file(Image.fromarray(PIXELS), "PNG", transparency=tuple(int(v) for v in PIXELS[0, 0]))
    np.testing.assert_array_equal(pixels(key), PIXELS)
    np.testing.assert_array_equal(pixels(key, alpha="white")[0, 0], [255, 255, 255])
    with pytest.raises(ValueError, match="'wite'"):
        images.decode(data, alpha="wite")


def test_first_frame_of_an_animation() -> None:
    frames = [Image.fromarray(RNG.integers(0, 256, (5, 7, 3), np.uint8)).quantize(32) for _ in range(3)]
    data = file(frames[0], "GIF", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(pixels(data), np.asarray(frames[0].convert("RGB")))


def test_broken_files_are_row_errors() -> None:
    for kind in ("PNG", "JPEG", "TIFF", "BMP", "WEBP"):
        data = file(Image.fromarray(np.tile(SMOOTH, (4, 4, 1))), kind)
        for cut in (10, len(data) // 2, len(data) * 9 // 10):
            with pytest.raises(RowError, match=r"does not decode|no image of a kind that is read"):
                images.decode(data[:cut])
    wide = png(RNG.integers(0, 65536, (60, 50, 3), np.uint16))
    for broken in (b"", b"no image", wide[: len(wide) // 2]):
        with pytest.raises(RowError):
            images.decode(broken)


def test_large_images_are_refused_before_they_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = file(Image.fromarray(PIXELS), "PNG")
    monkeypatch.setattr(images, "_levels", lambda *_: pytest.fail("decoded"))
    with pytest.raises(RowError, match="7 x 5 = 35 pixels; max_pixels is 34"):
        images.decode(data, max_pixels=34)
    bomb = b"GIF89a" + b"\xff\xff\xff\xff" + b"\0\0\0," + bytes(4) + b"\xff\xff\xff\xff\0\x02\0;"
    with pytest.raises(RowError, match="does not decode"):
        images.decode(bomb)


def test_32_bit_images_have_no_meaning() -> None:
    with pytest.raises(RowError, match="32 bits"):
        images.decode(file(Image.fromarray(np.ones((4, 4), np.float32)), "TIFF"))


def test_encode() -> None:
    image = torch.from_numpy(SMOOTH).permute(2, 0, 1)
    for codec in ("png", "webp"):
        assert torch.equal(images.decode(images.encode(image, codec)), image)
    data = images.encode(image, "jpeg", 95)
    assert data == images.encode(image.clone(), "jpeg", 95)
    jpeg = Image.open(io.BytesIO(data))
    assert jpeg.layer[0][1:3] == (2, 2), "4:2:0"
    assert images.encode(image, "jpeg", 50) != data
    with pytest.raises(RowError, match="20000 x 1"):
        images.encode(torch.zeros(3, 1, 20000, dtype=torch.uint8), "webp")
    with pytest.raises(ValueError, match="'jpg'"):
        images.encode(image, "jpg")


def test_jpeg_is_what_opencv_writes() -> None:
    image = np.tile(PIXELS, (9, 11, 1))
    theirs = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes()
    ours = images.encode(torch.from_numpy(image).permute(2, 0, 1), "jpeg", 95)
    assert torch.equal(images.decode(ours), images.decode(theirs))


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (4, 1), (3, 2)])
@pytest.mark.parametrize("codec", sorted(images.CODECS))
def test_encoding_does_not_depend_on_the_layout_in_memory(size: tuple[int, int], codec: str) -> None:
    image = torch.arange(3 * size[0] * size[1], dtype=torch.uint8).reshape(3, *size)
    pixels = image.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    odd = torch.zeros(6, *size, dtype=torch.uint8)[::2].copy_(image)
    assert images.encode(image, codec) == images.encode(pixels, codec) == images.encode(odd, codec)
