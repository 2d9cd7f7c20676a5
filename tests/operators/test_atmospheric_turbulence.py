"""Turbulence against OpenCV's remap."""

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.kernels import quantize
from degrade.operator import NoParams
from degrade.operators.environment.atmospheric_turbulence import AtmosphericTurbulence
from tests import images

INTENSITIES = [0.0, 0.23, 0.45, 0.9, 1.0]
OPERATOR = AtmosphericTurbulence()


def run(batch: Tensor, intensities: list[float]) -> Tensor:
    plan = OPERATOR.plan((batch.shape[2], batch.shape[3]), intensities, [NoParams()] * len(intensities))
    return OPERATOR.apply(batch, plan, torch.tensor(intensities, dtype=torch.float64))


def published(image: Tensor, intensity: float) -> Tensor:
    height, width = image.shape[1:]
    y, x = np.mgrid[:height, :width].astype(np.float64)
    d = 40 * intensity * np.sin(y / 30 + 5 * intensity)
    map_x = np.clip(x + d, 0, width - 1).astype(np.float32)
    map_y = np.clip(y + 0.7 * d, 0, height - 1).astype(np.float32)
    return images.tensor(cv2.remap(images.pixels(image), map_x, map_y, cv2.INTER_LINEAR))


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (3, 1), (2, 2), (40, 33), (150, 97)])
def test_equals_opencv(size):
    batch = images.batch(len(INTENSITIES), *size)
    for image, intensity, got in zip(batch, INTENSITIES, run(batch, INTENSITIES), strict=True):
        assert torch.equal(got, published(image, intensity))


def test_wave_is_of_this_size():
    """A vertical edge follows the sine, to the half pixel of its two columns."""
    step = (torch.arange(200) >= 100).to(torch.uint8)[None, None, None] * 200
    edge = (run(step.expand(1, 3, 120, 200), [0.5])[0, 0] < 100).sum(1)
    y = np.arange(120)
    assert np.abs(edge.numpy() - (100 - 40 * 0.5 * np.sin(y / 30 + 2.5))).max() <= 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floats_are_the_bytes_before_rounding(dtype):
    batch = images.batch(len(INTENSITIES), 60, 45)
    smooth, exact = run(batch.to(dtype), INTENSITIES), run(batch, INTENSITIES)
    assert smooth.dtype == dtype
    assert torch.equal((smooth + 0.5).floor(), exact.to(dtype))
    assert not torch.equal(smooth, exact.to(dtype))


def test_gradient_of_the_image_is_the_transpose():
    batch = images.batch(1, 20, 21).double().requires_grad_()
    weights = torch.rand(batch.shape, dtype=torch.float64)
    result = run(batch, [0.9])
    (gradient,) = torch.autograd.grad((result * weights).sum(), batch)
    torch.testing.assert_close((gradient * batch).sum(), (result * weights).sum())
    torch.testing.assert_close(gradient.sum(), weights.sum())


def test_gradcheck(monkeypatch):
    monkeypatch.setattr(quantize, "straight_through", lambda smooth, exact: smooth)
    batch = (images.batch(2, 6, 9).double() / 255).requires_grad_()
    intensity = torch.tensor([0.037, 0.061], dtype=torch.float64, requires_grad=True)
    plan = OPERATOR.plan((6, 9), [0.037, 0.061], [NoParams()] * 2)
    assert torch.autograd.gradcheck(lambda x, i: OPERATOR.apply(x, plan, i), (batch, intensity))


def test_gradient_of_the_intensity_on_the_grid():
    """A plane 2 x + 3 y has the slope 2 d' + 3 * 0.7 d' where no position is clipped, and none where both are."""
    y, x = torch.meshgrid(torch.arange(60.0), torch.arange(70.0), indexing="ij")
    plane = (2 * x + 3 * y).double()[None, None]
    intensity = torch.tensor([0.2], dtype=torch.float64, requires_grad=True)
    result = OPERATOR.apply(plane, OPERATOR.plan((60, 70), [0.2], [NoParams()]), intensity)
    assert torch.equal(result, run(plane, [0.2]))
    (inside,) = torch.autograd.grad(result[0, 0, 20, 30], intensity, retain_graph=True)
    angle = torch.tensor(20 / 30 + 5 * 0.2, dtype=torch.float64)
    change = 40 * torch.sin(angle) + 40 * 0.2 * 5 * torch.cos(angle)
    torch.testing.assert_close(inside[0], (2 + 3 * 0.7) * change)
    (corner,) = torch.autograd.grad(result[0, 0, -1, -1], intensity)
    assert corner[0] == 0
