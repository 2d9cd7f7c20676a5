"""Encoded image bytes to uint8 RGB tensors and back.

Decoding is Pillow's, but for 16-bit files, which Pillow reduces by dropping the low byte: they go through imagecodecs and become
round(v / 257). Colour profiles and gamma are ignored, as OpenCV ignores them.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import imagecodecs
import numpy as np
import PIL
import torch
from numpy.typing import NDArray
from PIL import Image, ImageColor, UnidentifiedImageError, features
from PIL.TiffImagePlugin import TiffImageFile
from torch import Tensor

from degrade.data.errors import RowError

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "DIB", "TIFF", "AVIF")
"""Pillow's names of what is decoded."""

MAX_PIXELS = 178_956_970
"""Pillow refuses larger images as decompression bombs."""

CODECS = {"jpeg": "jpg", "png": "png", "webp": "webp"}
"""The codecs for output, with their file suffixes. jpeg is 4:2:0, as OpenCV's and the published files; png and webp are lossless."""

ORIENTATION_TAG = 0x0112
_16_BIT_PNG = b"\x10"
_BITS_PER_SAMPLE = 258

# What Pillow and the libraries below it raise on broken files.
_BROKEN: tuple[type[Exception], ...] = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError)
_BROKEN = (*_BROKEN, struct.error, zlib.error, RuntimeError, Image.DecompressionBombError)


def decode(data: bytes, *, orientation: bool = True, alpha: str = "drop", max_pixels: int = MAX_PIXELS) -> Tensor:
    """The first frame of an encoded image.

    Args:
        data: JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF bytes.
        orientation: turn the image upright as its EXIF (or XMP) orientation says.
        alpha: ``"drop"`` ignores transparency; a colour (``"white"``, ``"#808080"``) is put behind it.
        max_pixels: an image of more pixels is refused before it is decoded.

    Returns:
        uint8 RGB, (3, H, W), contiguous, on the CPU.

    Raises:
        RowError: if the bytes are no image, truncated, broken, of a kind that has no 8-bit meaning, or too large.
    """
    background = None if alpha == "drop" else colour(alpha)
    if not data:
        raise RowError("the image is empty: 0 bytes")
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if (pixels := image.width * image.height) > max_pixels:
                raise RowError(f"the image has {image.width} x {image.height} = {pixels} pixels; max_pixels is {max_pixels}")
            levels, turn = _levels(image, data, background)
    except RowError:
        raise
    except UnidentifiedImageError as error:  # whose own words hold an address in memory
        raise RowError(f"the {len(data)} bytes are no image of a kind that is read: {', '.join(FORMATS)}") from error
    except _BROKEN as error:
        raise RowError(f"the image ({len(data)} bytes) does not decode: {type(error).__name__}: {_one_line(error)}") from error
    return torch.from_numpy(np.array(_turned(levels, turn if orientation else 1).transpose(2, 0, 1), order="C"))


def colour(name: str) -> tuple[int, int, int]:
    """The RGB levels of a colour name or ``#rrggbb``.

    >>> colour("#808080")
    (128, 128, 128)
    """
    try:
        return ImageColor.getrgb(name)[:3]
    except ValueError as error:
        raise ValueError(f"alpha: got {name!r}, want 'drop' or a colour such as 'white' or '#808080'") from error


def encode(image: Tensor, codec: str = "jpeg", quality: int = 95) -> bytes:
    """An encoded image; the same bytes for the same pixels and the versions of :func:`codec_versions`.

    Args:
        image: uint8 RGB, (3, H, W), on the CPU; quicker where the channels of a pixel lie side by side (``channels_last``).
        codec: a key of ``CODECS``.
        quality: 1..100, of jpeg only.

    Raises:
        RowError: if the codec cannot hold an image of this size (WebP: 16,383 pixels a side, JPEG: 65,535).
    """
    if codec not in CODECS:
        raise ValueError(f"codec: got {codec!r}, want one of {', '.join(CODECS)}")
    pixels = image.permute(1, 2, 0).numpy()
    if pixels.strides != (3 * image.shape[2], 3, 1):  # not by the flags, which overlook the strides of a single row or column
        pixels = np.stack(tuple(image.numpy()), axis=-1)  # quicker than to copy the transposed array
    try:
        if codec == "jpeg":  # the bytes that Pillow would write, which holds Python's lock meanwhile
            return bytes(imagecodecs.jpeg8_encode(pixels, level=quality, subsampling="420"))
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, codec.upper(), **({"lossless": True} if codec == "webp" else {}))
        return file.getvalue()
    except (OSError, ValueError, imagecodecs.Jpeg8Error) as error:
        height, width = pixels.shape[:2]
        raise RowError(f"an image of {width} x {height} cannot be encoded as {codec}: {_one_line(error)}") from error


def size(data: bytes) -> tuple[int, int]:
    """Width and height as stored, from the header alone.

    Raises:
        RowError: if the bytes are no image.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            return image.size
    except _BROKEN as error:
        raise RowError(f"no image: {_one_line(error)}") from error


def codec_versions() -> dict[str, str]:
    """The versions of what decodes and encodes: they decide bytes."""
    versions = {"pillow": PIL.__version__, "imagecodecs": imagecodecs.__version__}
    for name in ("libjpeg_turbo", "zlib", "zlib_ng", "webp", "avif", "libtiff"):
        versions[name] = features.version(name) or "none"
    return versions


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings of Pillow about odd metadata and large images inside: neither is a fault of the pixels, and ``max_pixels`` decides.

    Not for threads to call one by one: Python's warning filters are the whole process's.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def _levels(image: Image.Image, data: bytes, background: tuple[int, int, int] | None) -> tuple[NDArray[np.uint8], int]:
    """Levels (H, W, 3) as stored, and the orientation (1..8)."""
    if image.format == "PNG" and data[24:25] == _16_BIT_PNG:
        return _from_16_bit(imagecodecs.png_decode(data), background), _orientation(image)
    if isinstance(image, TiffImageFile):
        return _levels_of_tiff(image, data, background)
    return _levels_of_8_bit(image, background), _orientation(image)


def _levels_of_tiff(image: TiffImageFile, data: bytes, background: tuple[int, int, int] | None) -> tuple[NDArray[np.uint8], int]:
    turn = _orientation(image)
    if set(image.tag_v2.get(_BITS_PER_SAMPLE, ())) == {16} and image.mode != "F":
        image.load()  # so that a truncated file is an error here: libtiff fills the gap
        if image.mode == "CMYK":
            raise RowError("16-bit CMYK TIFF is not supported; convert it to RGB")
        return _from_16_bit(imagecodecs.tiff_decode(data), background), turn
    # Pillow turns a TIFF upright while loading it
    return _turned(_levels_of_8_bit(image, background), {6: 8, 8: 6}.get(turn, turn)), turn


def _levels_of_8_bit(image: Image.Image, background: tuple[int, int, int] | None) -> NDArray[np.uint8]:
    if image.mode in ("I", "F"):
        raise RowError(f"a {image.format} image of mode {image.mode} (32 bits a sample) has no 8-bit meaning; convert it to 8 or 16 bits")
    if background is not None and image.has_transparency_data:
        return _composite(np.asarray(image.convert("RGBA")), background)
    return np.asarray(image.convert("RGB"))


def _from_16_bit(samples: NDArray[Any], background: tuple[int, int, int] | None) -> NDArray[np.uint8]:
    if samples.dtype.kind != "u" or samples.dtype.itemsize != 2 or samples.ndim not in (2, 3):
        raise RowError(f"16-bit samples expected, got {samples.dtype} of shape {samples.shape}")
    wide = samples.astype(np.uint32)
    # round(v / 257): 257 is odd, so there are no ties
    levels = ((wide + 128) // 257).astype(np.uint8)
    if levels.ndim == 2:
        levels = levels[:, :, None]
    channels = levels.shape[2]
    if channels not in (1, 2, 3, 4):
        raise RowError(f"16-bit samples in {channels} channels; 1 to 4 are supported")
    rgb = np.repeat(levels[:, :, :1], 3, axis=2) if channels < 3 else levels[:, :, :3]
    if background is not None and channels in (2, 4):
        return _composite(np.concatenate([rgb, levels[:, :, -1:]], axis=2), background)
    return rgb


def _composite(rgba: NDArray[np.uint8], background: tuple[int, int, int]) -> NDArray[np.uint8]:
    wide = rgba.astype(np.uint16)
    over, opacity = wide[:, :, :3], wide[:, :, 3:]
    # at most 255 * 255 + 127, which 16 bits hold
    return ((over * opacity + np.array(background, np.uint16) * (255 - opacity) + 127) // 255).astype(np.uint8)


def _orientation(image: Image.Image) -> int:
    """1..8; 1 where there is none, or none that can be read."""
    try:
        turn = image.getexif().get(ORIENTATION_TAG, 1)
    except (SyntaxError, struct.error, ValueError, TypeError, KeyError, OSError):  # broken EXIF is common and says nothing of the pixels
        return 1
    return turn if turn in range(1, 9) else 1


def _turned(levels: NDArray[np.uint8], turn: int) -> NDArray[np.uint8]:
    """Upright, where `turn` is the orientation."""
    if turn >= 5:
        levels = levels.transpose(1, 0, 2)  # 5: mirrored along the main diagonal
    if turn in (2, 3, 6, 7):
        levels = levels[:, ::-1]
    if turn in (3, 4, 7, 8):
        levels = levels[::-1]
    return levels


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
