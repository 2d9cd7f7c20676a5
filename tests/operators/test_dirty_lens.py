"""Dirty lens against OpenCV."""

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.draws import Stream
from degrade.operators.capture.dirty_lens import DirtyLens, Params

DIRT = DirtyLens()
INTENSITIES = [0.0, 0.1, 0.23, 0.45, 0.9, 1.0]


def drawn(size: tuple[int, int], intensity: float, key: str = "a") -> Params:
    return DIRT.draw(size, intensity, Stream(0, key, DIRT.name))


def run(images: Tensor, intensities: list[float], params: list[Params]) -> Tensor:
    plan = DIRT.plan((images.shape[2], images.shape[3]), intensities, params)
    return DIRT.apply(images, plan, torch.tensor(intensities, dtype=torch.float64))


def published(image: Tensor, intensity: float, params: Params) -> Tensor:
    dirt = np.zeros((*image.shape[1:], 3), np.float32)
    for x, y, a, b, angle in params.smears:
        cv2.ellipse(dirt, (x, y), (a, b), angle, 0, 360, (50, 50, 50), -1)
    for x, y, radius, level in params.specks:
        cv2.circle(dirt, (x, y), radius, (level,) * 3, -1)
    for x, y, outer, inner in params.blobs:
        cv2.circle(dirt, (x, y), outer, (80, 80, 80), -1)
        cv2.circle(dirt, (x, y), inner, (120, 120, 120), -1)
    dirt = cv2.GaussianBlur(dirt, (241, 241), 30).clip(0, 255).astype(np.uint8)
    blended = cv2.addWeighted(image.permute(1, 2, 0).contiguous().numpy(), 1 - 0.7 * intensity, dirt, 0.8 * intensity, 0)
    return torch.from_numpy(blended).permute(2, 0, 1)


def random_images(count: int, height: int, width: int) -> Tensor:
    return torch.randint(0, 256, (count, 3, height, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("size", [(200, 310), (130, 40), (3, 5), (1, 1)])
def test_equals_opencv(size):
    images, params = random_images(len(INTENSITIES), *size), [drawn(size, i, str(n)) for n, i in enumerate(INTENSITIES)]
    for image, i, p, got in zip(images, INTENSITIES, params, run(images, INTENSITIES, params), strict=True):
        difference = got.int() - published(image, i, p).int()
        assert difference.abs().max() <= 1, i
        # float32 sums of a flat patch may fall just short of its level, which trunc makes one less
        assert (difference != 0).float().mean() <= (0.05 if min(size) > 9 else 1), i


def test_marks_before_the_blur():
    params = Params(((5, 5, 300, 300, 0),), ((2, 3, 1, 77),), ((9, 9, 2, 1), (9, 8, 1, 0)))
    dirt = DIRT.plan((12, 12), [0.9], [params])["dirt"][0, 0]
    expected = torch.full((12, 12), 50, dtype=torch.uint8)
    expected[3, 1:4] = expected[2:5, 2] = 77
    rows, columns = torch.meshgrid(torch.arange(12), torch.arange(12), indexing="ij")
    for y, radius, level in [(9, 2, 80), (9, 1, 120), (8, 1, 80), (8, 0, 120)]:  # the second blob over the whole first one
        expected[(rows - y) ** 2 + (columns - 9) ** 2 <= radius**2] = level
    assert torch.equal(dirt, expected)


def test_a_flat_layer_gives_flat_dirt():
    image = torch.full((1, 3, 30, 20), 100, dtype=torch.uint8)
    out = run(image, [0.9], [Params(((0, 0, 900, 900, 0),), (), ())])
    assert (out == round(100 * (1 - 0.7 * 0.9) + 50 * 0.8 * 0.9)).all()


def test_draws_follow_the_formulas():
    size = (100, 200)
    counts = [
        [len(marks) for marks in (p.smears, p.specks, p.blobs)] for p in (drawn(size, i) for i in (0.0, 0.1, 0.23, 0.45, 0.5, 0.9, 1.0))
    ]
    assert counts == [[0, 0, 0], [0, 30, 0], [2, 69, 0], [4, 135, 0], [5, 150, 0], [9, 270, 4], [10, 300, 5]]
    many = [drawn(size, 1.0, str(n)) for n in range(400)]
    for field, low, high in [
        ("smears", [0, 0, 150, 100, 0], [200, 100, 300, 200, 180]),
        ("specks", [0, 0, 4, 50], [200, 100, 20, 100]),
        ("blobs", [0, 0, 20, 10], [200, 100, 50, 30]),
    ]:
        marks = np.array([m for p in many for m in getattr(p, field)])
        assert (marks.min(0).tolist(), marks.max(0).tolist()) == (low, high), field
    low, high = drawn(size, 0.23), drawn(size, 0.9)
    assert (low.smears, low.specks) == (high.smears[:2], high.specks[:69])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floats_follow_bytes(dtype):
    size = (40, 50)
    images, params = random_images(len(INTENSITIES), *size), [drawn(size, i) for i in INTENSITIES]
    smooth, exact = run(images.to(dtype), INTENSITIES, params), run(images, INTENSITIES, params)
    assert smooth.dtype == dtype
    difference = smooth - exact  # the blend rounds by half a level, and the dirt loses up to one, times 0.8 i
    assert difference.min() > -0.55
    assert difference.max() < 1.35


def test_gradients():
    images = random_images(2, 6, 7).double().clamp(20, 120).requires_grad_()
    intensities = torch.tensor([0.3, 0.9], dtype=torch.float64, requires_grad=True)
    plan = DIRT.plan((6, 7), intensities.tolist(), [drawn((6, 7), i) for i in (0.3, 0.9)])
    assert torch.autograd.gradcheck(lambda x, i: DIRT.apply(x, plan, i), (images, intensities), atol=1e-4)


def test_check():
    DIRT.check((9, 9), 0.9, drawn((9, 9), 0.9))
    with pytest.raises(ValueError, match=r"specks\[0\]\[3\]: got 256, want 0\.\.255"):
        DIRT.check((9, 9), 0.9, Params((), ((0, 0, 1, 256),), ()))
    with pytest.raises(ValueError, match=r"smears\[0\]\[2\]: got -1"):
        DIRT.check((9, 9), 0.9, Params(((0, 0, -1, 3, 0),), (), ()))
    with pytest.raises(ValueError, match=r"blobs\[0\]\[3\]: got -1"):
        DIRT.check((9, 9), 0.9, Params((), (), ((0, 0, 1, -1),)))
