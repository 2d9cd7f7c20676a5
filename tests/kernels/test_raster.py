"""Marks against OpenCV, pixel for pixel.

OpenCV 4.8 and later cut thick lines that leave the image before drawing them, but not those given with fractional bits; the
published images were made before that.  So the oracle for strokes is ``cv2.line`` with one fractional bit, which is 0.
"""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from degrade.kernels import hershey, raster

INK = 9
WORDS = ["X", "FAKE", "COPY", "VOID", "COPYRIGHT", *map(str, range(1, 101))]


def ours(marks: raster.Marks, size: tuple[int, int]) -> np.ndarray:
    return raster.paint([(marks, [len(marks.rows)])], size, 1)[0, 0]


def random_sizes(rng: np.random.Generator, count: int) -> list[tuple[int, int]]:
    """Some tiny, most up to 160 pixels, some of them a single pixel."""
    limit = np.where(rng.random(count) < 0.25, 5, 160)
    return [(1, 1), *(tuple(rng.integers(1, side, 2).tolist()) for side in limit)]


def test_circles() -> None:
    rng = np.random.default_rng(0)
    for size in random_sizes(rng, 400):
        x, y, radius = (int(v) for v in rng.integers([-60, -60, 0], [220, 220, 70]))
        expected = np.zeros(size, np.uint8)
        cv2.circle(expected, (x, y), radius, INK, -1)
        np.testing.assert_array_equal(ours(raster.circles([[x, y, radius]], INK), size), expected, f"{size} {x, y, radius}")


@pytest.mark.parametrize("thickness", [1, 2, 3, 4, 5])
def test_strokes(thickness: int) -> None:
    rng = np.random.default_rng(thickness)
    for n, size in enumerate(random_sizes(rng, 400)):
        ends = rng.integers(-100, 260, 4)
        if n % 5 == 0:  # level or upright
            axis = n // 5 % 2
            ends[2 + axis] = ends[axis]
        if n % 17 == 0:  # a point
            ends[2:] = ends[:2]
        expected = np.zeros(size, np.uint8)
        cv2.line(expected, (ends[:2] * 2).tolist(), (ends[2:] * 2).tolist(), INK, thickness, shift=1)
        np.testing.assert_array_equal(ours(raster.strokes([ends], thickness, INK), size), expected, f"{size} {ends}")


@pytest.mark.parametrize("thickness", [1, 2, 3, 4, 5])
def test_strokes_inside_the_image_as_opencv_draws_them_by_default(thickness: int) -> None:
    rng = np.random.default_rng(thickness)
    for _ in range(200):
        size = tuple(rng.integers(9, 160, 2).tolist())
        ends = rng.integers(4, [size[1] - 4, size[0] - 4] * 2)
        expected = np.zeros(size, np.uint8)
        cv2.line(expected, ends[:2].tolist(), ends[2:].tolist(), INK, thickness)
        np.testing.assert_array_equal(ours(raster.strokes([ends], thickness, INK), size), expected, f"{size} {ends}")


def test_fine_strokes() -> None:
    rng = np.random.default_rng(0)
    for size in random_sizes(rng, 400):
        ends, thickness = rng.integers(-60 * 65536, 220 * 65536, 4), int(rng.integers(1, 6))
        expected = np.zeros(size, np.uint8)
        if thickness == 1:  # from pixel to pixel
            pixels = (ends + 32768) >> 16
            cv2.line(expected, pixels[:2].tolist(), pixels[2:].tolist(), INK)
        else:
            cv2.line(expected, ends[:2].tolist(), ends[2:].tolist(), INK, thickness, shift=16)
        np.testing.assert_array_equal(ours(raster.fine_strokes(ends[None], thickness, INK), size), expected, f"{size} {ends} {thickness}")


@pytest.mark.parametrize("thickness", [1, 2, 3, 4, 5])
def test_text(thickness: int) -> None:
    rng = np.random.default_rng(thickness)
    for word in WORDS:
        scale = float(rng.uniform(0.5, 5))
        (width, height), _ = cv2.getTextSize(word, cv2.FONT_HERSHEY_SIMPLEX, scale, thickness)
        assert hershey.text_size(word, scale, thickness) == (height, width), f"{word} {scale}"
        size = (height + 20, width + 10)
        x, y = int(rng.integers(-30, 30)), int(rng.integers(height // 2, height + 25))
        expected = np.zeros(size, np.uint8)
        cv2.putText(expected, word, (x, y), cv2.FONT_HERSHEY_SIMPLEX, scale, INK, thickness)
        ends = hershey.segments(word, x, y, scale)
        actual = ours(raster.fine_strokes(ends, thickness, INK), size)
        np.testing.assert_array_equal(actual, expected, f"{word} {scale} {x, y}")


@pytest.mark.parametrize("scale", [0.5, 2.75, 4.5, 5.0])
def test_every_glyph_whole(scale: float) -> None:
    for glyph in sorted(hershey.CHARACTERS):
        expected = np.zeros((150, 130), np.uint8)
        cv2.putText(expected, glyph, (10, 125), cv2.FONT_HERSHEY_SIMPLEX, scale, INK, 2)
        ends = hershey.segments(glyph, 10, 125, scale)
        np.testing.assert_array_equal(ours(raster.fine_strokes(ends, 2, INK), (150, 130)), expected, glyph)


def test_text_size_rounds_ties_to_even() -> None:
    for scale in np.arange(1, 41) / 8:
        for word in WORDS[:10]:
            (width, height), _ = cv2.getTextSize(word, cv2.FONT_HERSHEY_SIMPLEX, scale, 3)
            assert hershey.text_size(word, scale, 3) == (height, width), f"{word} {scale}"


def test_ellipses_are_right_but_for_the_outline() -> None:
    rng = np.random.default_rng(0)
    size, wrong, outline = (300, 320), 0, 0
    for _ in range(60):
        x, y, a, b, angle = (int(v) for v in rng.integers([-60, -60, 150, 100, 0], [380, 360, 301, 201, 181]))
        expected = np.zeros(size, np.uint8)
        cv2.ellipse(expected, (x, y), (a, b), angle, 0, 360, INK, -1)
        differs = ours(raster.ellipses([[x, y, a, b, angle]], INK), size) != expected
        edge = cv2.morphologyEx(expected, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0
        assert not (differs & ~edge).any(), f"{x, y, a, b, angle}"
        wrong, outline = wrong + differs.sum(), outline + edge.sum()
    assert wrong < 0.06 * outline


def test_an_ellipse_without_extent_is_its_centre() -> None:
    np.testing.assert_array_equal(ours(raster.ellipses([[1, 1, 0, 0, 30]], INK), (3, 3)), np.diag([0, INK, 0]))


def test_later_marks_cover_earlier_ones() -> None:
    rng = np.random.default_rng(0)
    for size in random_sizes(rng, 20):
        circles = rng.integers([-10, -10, 0], [size[1] + 10, size[0] + 10, 30], (12, 3))
        ends, thickness = rng.integers(-20, 180, (12, 4)), rng.integers(1, 4, 12)
        expected = np.zeros(size, np.uint8)
        for n, (x, y, radius) in enumerate(circles.tolist()):
            cv2.circle(expected, (x, y), radius, n + 1, -1)
        for n, (x1, y1, x2, y2) in enumerate((ends * 2).tolist()):
            cv2.line(expected, (x1, y1), (x2, y2), n + 101, int(thickness[n]), shift=1)
        layers = [
            (raster.circles(circles, np.arange(1, 13)), [0, 12, 0]),
            (raster.strokes(ends, thickness, np.arange(101, 113)), [0, 12, 0]),
        ]
        np.testing.assert_array_equal(raster.paint(layers, size, 3)[:, 0], np.stack([0 * expected, expected, 0 * expected]))


def test_each_canvas_has_its_own_marks() -> None:
    rng = np.random.default_rng(0)
    counts, size = [2, 0, 3, 1], (30, 40)
    kinds = [
        raster.circles(rng.integers(0, 30, (6, 3)), np.arange(1, 7)),
        raster.ellipses(rng.integers(0, 30, (6, 5)), np.arange(11, 17)),
        raster.strokes(rng.integers(0, 30, (6, 4)), [1, 2, 3, 1, 4, 2], np.arange(21, 27)),
    ]
    canvases = raster.paint([(marks, counts) for marks in kinds], size, 4)
    start = 0
    for canvas, count in zip(canvases, counts, strict=True):
        own = [(raster.Marks(marks.painter, marks.rows[start : start + count]), [count]) for marks in kinds]
        np.testing.assert_array_equal(canvas, raster.paint(own, size, 1)[0])
        assert canvas.any() == (count > 0)
        start += count


def test_numbers_of_several_groups() -> None:
    assert raster.numbers([((1, 2), (3, 4)), (), ((5, 2**30),)], 2).tolist() == [[1, 2], [3, 4], [5, 2**30]]
    assert raster.numbers([(), ()], 3).shape == (0, 3)


def test_nothing_to_draw() -> None:
    for marks in (raster.circles([], 1), raster.ellipses([], 1), raster.strokes([], 1, 1)):
        assert not raster.paint([(marks, [0])], (4, 5), 1).any()
    assert raster.paint([], (4, 5), 2).tolist() == np.zeros((2, 1, 4, 5)).tolist()


def test_marks_far_outside_take_no_time_and_no_memory() -> None:
    far, size = raster.POSITION[1], (5, 6)
    everywhere = np.full(size, INK)
    np.testing.assert_array_equal(ours(raster.circles([[0, 0, far]], INK), size), everywhere)
    np.testing.assert_array_equal(ours(raster.strokes([[-far, 3, far, 3]], 9, INK), size), everywhere)
    level = np.zeros(size, int)
    level[3] = INK
    np.testing.assert_array_equal(ours(raster.strokes([[-far, 3, far, 3]], 1, INK), size), level)
    assert not ours(raster.strokes([[-far, -far, far, -far]] * 2, [1, 4], INK), size).any()


def test_check_marks_names_the_number() -> None:
    raster.check_marks("specks", [(0, 0), (5, 255)], [raster.POSITION, raster.LEVEL])
    with pytest.raises(ValueError, match=r"specks\[1\]\[1\]: got 256, want 0\.\.255"):
        raster.check_marks("specks", [(0, 0), (5, 256)], [raster.POSITION, raster.LEVEL])
