"""Lens flare against OpenCV."""

import math

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.draws import Stream
from degrade.operators.capture.lens_flare import LensFlare, Params

FLARE = LensFlare()
INTENSITIES = [0.0, 0.05, 0.23, 0.45, 0.9, 1.0]


def drawn(size: tuple[int, int], intensity: float, key: str = "a") -> Params:
    return FLARE.draw(size, intensity, Stream(0, key, FLARE.name))


def run(images: Tensor, intensities: Tensor, params: list[Params]) -> Tensor:
    return FLARE.apply(images, FLARE.plan((images.shape[2], images.shape[3]), intensities.tolist(), params), intensities)


def published(image: Tensor, intensity: float, params: Params) -> Tensor:
    flare = np.zeros((*image.shape[1:], 3))
    for (x, y, radius), (x1, y1, x2, y2) in zip(params.glows, params.streaks, strict=True):
        cv2.circle(flare, (x, y), radius, (235, 255, 255), -1)
        # one fractional bit, which is 0: without it OpenCV 4.8 and later cut thick lines in another way than 4.7
        cv2.line(flare, (2 * x1, 2 * y1), (2 * x2, 2 * y2), (235, 255, 255), 2, shift=1)
    if intensity > 0:
        flare = cv2.GaussianBlur(flare, (3, 3), 20 * intensity)
    added = image.permute(1, 2, 0).numpy() + 0.9 * intensity * flare
    return torch.from_numpy(added.clip(0, 255).astype(np.uint8)).permute(2, 0, 1)


def random_images(count: int, height: int, width: int) -> Tensor:
    return torch.randint(0, 200, (count, 3, height, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("size", [(120, 170), (64, 64), (7, 3), (1, 9), (1, 1)])
def test_equals_opencv(size):
    images, intensities = random_images(len(INTENSITIES), *size), torch.tensor(INTENSITIES, dtype=torch.float64)
    params = [drawn(size, i, str(n)) for n, i in enumerate(INTENSITIES)]
    for image, i, p, got in zip(images, INTENSITIES, params, run(images, intensities, params), strict=True):
        difference = got.int() - published(image, i, p).int()
        assert difference.abs().max() <= 1
        assert (difference != 0).float().mean() <= 0.001  # OpenCV's weights are not rounded to 1/65536


def test_a_streak_alone():
    image = torch.full((1, 3, 20, 20), 10, dtype=torch.uint8)
    out = run(image, torch.tensor([1.0], dtype=torch.float64), [Params((), ((0, 10, 30, 10),))])
    assert out[0, :, 10, 10].tolist() == [10 + int(0.9 * 235), 10 + int(0.9 * 255), 10 + int(0.9 * 255)]
    assert (out[0, :, :8] == 10).all()


def test_draws_follow_the_formulas():
    size = (100, 200)
    assert [len(drawn(size, i).glows) for i in INTENSITIES] == [3, 4, 9, 16, 30, 33]
    many = [drawn(size, 0.9, str(n)) for n in range(100)]
    glows, streaks = np.array([g for p in many for g in p.glows]), np.array([s for p in many for s in p.streaks])
    assert (glows.min(0).tolist(), glows.max(0).tolist()) == ([0, 0, 10], [200, 100, 50])
    assert np.array_equal(glows[:, :2], streaks[:, :2])
    lengths = np.hypot(*(streaks[:, 2:] - streaks[:, :2]).T)
    assert lengths.min() > 30 - math.sqrt(2)
    assert 149 < lengths.max() < 150 + math.sqrt(2)
    turns = np.arctan2(*(streaks[:, 2:] - streaks[:, :2]).T)
    assert np.histogram(turns, 8, (-math.pi, math.pi))[0].min() > 300
    assert drawn(size, 0.23).glows == drawn(size, 0.9).glows[:9]
    assert drawn(size, 0.23).streaks == drawn(size, 0.9).streaks[:9]


def test_ends_drop_the_fraction_towards_zero():
    streaks = [s for n in range(60) for s in drawn((1, 1), 1.0, str(n)).streaks]
    ends = np.array(streaks)[:, 2:]
    assert ((ends == 0).sum(0) > 1.4 * (ends == 1).sum(0)).all()  # -1 < v < 1 all become 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floats_follow_bytes(dtype):
    size, intensities = (50, 60), torch.tensor(INTENSITIES, dtype=torch.float64)
    images, params = random_images(len(INTENSITIES), *size), [drawn(size, i) for i in INTENSITIES]
    smooth, exact = run(images.to(dtype), intensities, params), run(images, intensities, params)
    assert smooth.dtype == dtype
    difference = smooth - exact
    assert difference.min() > -0.02
    assert difference.max() < 1.02


def test_gradients():
    size = (12, 14)
    params = [Params(((6, 5, 3),), ((6, 5, 30, 9),)), Params(((2, 2, 1),), ())]
    images = random_images(2, *size).double().clamp(1, 90).requires_grad_()  # with at most 0.9 * 0.6 * 255 it does not saturate
    # a wide blur is nearly flat in sigma, so 0.02 is where the width matters
    intensities = torch.tensor([0.6, 0.02], dtype=torch.float64, requires_grad=True)
    plan = FLARE.plan(size, intensities.tolist(), params)

    def formula(images: Tensor, intensities: Tensor) -> Tensor:
        kernels = torch.exp(-(torch.tensor([1.0, 0.0, 1.0]).double()) / (2 * (20 * intensities[:, None]) ** 2))
        kernels = kernels / kernels.sum(1, keepdim=True)
        mirrored = torch.nn.functional.pad(plan["flare"].double(), (1, 1, 1, 1), mode="reflect")
        taps = kernels[:, :, None] * kernels[:, None, :]
        flare = torch.nn.functional.conv2d(mirrored.transpose(0, 1), taps[:, None], groups=2).transpose(0, 1)
        return images + 0.9 * intensities[:, None, None, None] * flare * torch.tensor([235.0, 255, 255]).double()[:, None, None]

    weights = torch.rand(images.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    out, expected = FLARE.apply(images, plan, intensities), formula(images, intensities)
    torch.testing.assert_close(out, expected)
    got = torch.autograd.grad((out * weights).sum(), (images, intensities))
    torch.testing.assert_close(got, torch.autograd.grad((expected * weights).sum(), (images, intensities)))
    assert got[1].ne(0).all()


def test_check():
    FLARE.check((9, 9), 0.5, drawn((9, 9), 0.5))
    with pytest.raises(ValueError, match=r"glows\[0\]\[2\]: got -1"):
        FLARE.check((9, 9), 0.5, Params(((0, 0, -1),), ()))
    with pytest.raises(ValueError, match=r"streaks\[0\]\[3\]: got"):
        FLARE.check((9, 9), 0.5, Params((), ((0, 0, 0, 2**40),)))
