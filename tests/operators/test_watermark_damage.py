"""Watermark damage against OpenCV."""

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.draws import Stream
from degrade.operators.postprocessing.watermark_damage import Params, WatermarkDamage, union
from tests import images

DAMAGE = WatermarkDamage()
INTENSITIES = [0.0, 0.23, 0.45, 0.5, 0.51, 0.9, 1.0]


def drawn(size: tuple[int, int], intensity: float, key: str = "a") -> Params:
    return DAMAGE.draw(size, intensity, Stream(0, key, DAMAGE.name))


def run(batch: Tensor, intensities: list[float], params: list[Params]) -> Tensor:
    plan = DAMAGE.plan((batch.shape[2], batch.shape[3]), intensities, params)
    return DAMAGE.apply(batch, plan, torch.tensor(intensities, dtype=torch.float64))


def published(image: Tensor, intensity: float, params: Params) -> Tensor:
    pixels = images.pixels(image)
    mask = np.zeros(pixels.shape[:2], np.uint8)
    for x1, y1, x2, y2 in params.rectangles:
        cv2.rectangle(mask, (x1, y1), (x2, y2), 255, -1)
    if mask.all():  # the published pipeline returns such an image clean; ours fills from its outermost pixels
        mask[[0, -1]] = mask[:, [0, -1]] = 0
    filled = cv2.inpaint(pixels, mask, 3, cv2.INPAINT_TELEA)
    out = cv2.addWeighted(pixels, 1 - intensity, filled, intensity, 0)
    if intensity > 0.5:
        at = cv2.Canny(mask, 50, 150) > 0
        out[at] = (out[at] * 0.8).astype(np.uint8)
    return images.tensor(out)


@pytest.mark.parametrize("size", [(150, 290), (40, 170), (60, 60), (30, 20)])
def test_equals_opencv(size):
    batch, params = images.batch(len(INTENSITIES), *size), [drawn(size, i, str(n)) for n, i in enumerate(INTENSITIES)]
    for image, i, p, got in zip(batch, INTENSITIES, params, run(batch, INTENSITIES, params), strict=True):
        difference = (got.int() - published(image, i, p).int()).abs()
        assert difference.max() <= 1, i
        # OpenCV blends in whole float32 vectors with fused multiply-add: now and then the other side of a tie
        assert (difference > 0).float().mean() <= 0.01, i


def test_rectangles_that_leave_the_image():
    params = Params(((-9, -9, -1, 20), (-5, -4, 3, 2), (25, 17, 300, 300), (4, 30, 9, 40)))
    image = images.batch(1, 24, 31)
    assert (run(image, [0.9], [params])[0].int() - published(image[0], 0.9, params).int()).abs().max() <= 1
    assert union((24, 31), params.rectangles).sum() == 4 * 3 + 6 * 7


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (40, 1), (2, 3)])
def test_tiny_images(size):
    batch = images.batch(2, *size)
    params = [drawn(size, 0.9), Params(((0, 0, 0, 0),))]
    assert params[0] == Params(())  # no pixel has others on all sides
    assert torch.equal(run(batch, [0.9, 0.9], params)[0], batch[0])


def test_draws_follow_the_formulas():
    size = (100, 200)
    assert [len(drawn(size, i).rectangles) for i in (0.0, 0.06, 0.23, 0.45, 0.9, 1.0)] == [1, 1, 4, 7, 14, 16]
    many = np.array([r for n in range(150) for r in drawn(size, 1.0, str(n)).rectangles])
    spans = many[:, 2:] - many[:, :2]
    assert many.min(0)[:2].tolist() == [0, 0]
    assert many.max(0)[:2].tolist() == [150, 50]
    assert (spans.min(0).tolist(), spans.max(0).tolist()) == ([50, 20], [200, 80])
    small = drawn((10, 50), 1.0).rectangles
    assert {r[:2] for r in small} == {(0, 0)}
    assert drawn(size, 1.0).rectangles[:4] == drawn(size, 0.23).rectangles


def test_a_batch_equals_its_images():
    size = (45, 120)
    batch, params = images.batch(len(INTENSITIES), *size), [drawn(size, i, str(n)) for n, i in enumerate(INTENSITIES)]
    for dtype in (torch.uint8, torch.float32):
        together = run(batch.to(dtype), INTENSITIES, params)
        for n, i in enumerate(INTENSITIES):
            assert torch.equal(together[n : n + 1], run(batch[n : n + 1].to(dtype), [i], params[n : n + 1]))


def test_gradients():
    size = (9, 11)
    params = [Params(((2, 2, 5, 4), (4, 4, 8, 6))), Params(((0, 0, 4, 3),))]
    plan = DAMAGE.plan(size, [0.4, 0.8], params)
    noise = [images.tensor(images.noise(*size, seed)) for seed in range(2)]  # away from the kink of the bounded term
    levels = torch.stack(noise).double().mul(0.8).add(20).requires_grad_()
    intensity = torch.tensor([0.4, 0.8], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, i: DAMAGE.apply(x, plan, i), (levels, intensity))


def test_wrong_records():
    with pytest.raises(ValueError, match=r"rectangles: got \[5, 5, 4, 9\], want x1 <= x2"):
        DAMAGE.check((20, 20), 0.5, Params(((5, 5, 4, 9),)))
    DAMAGE.check((20, 20), 0.5, Params(((-5, -5, 400, 900),)))
