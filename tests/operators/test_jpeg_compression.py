"""JPEG compression against Pillow at the quality that the intensity names."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from degrade.operator import NoParams
from degrade.operators.transmission.jpeg_compression import JpegCompression, quality

INTENSITIES = [0.0, 0.23, 0.45, 0.9, 1.0]


def run(images: Tensor, intensities: list[float]) -> Tensor:
    operator = JpegCompression()
    plan = operator.plan((images.shape[2], images.shape[3]), intensities, [NoParams()] * len(intensities))
    return operator.apply(images, plan, torch.tensor(intensities, dtype=torch.float64))


def test_quality():
    assert [quality(i) for i in INTENSITIES] == [100, 78, 57, 14, 5]


@pytest.mark.parametrize("size", [(1, 1), (30, 45)])
def test_equals_libjpeg_turbo(size):
    images = torch.randint(0, 256, (len(INTENSITIES), 3, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(5))
    for image, level, got in zip(images, (100, 78, 57, 14, 5), run(images, INTENSITIES), strict=True):
        file = io.BytesIO()
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(file, "JPEG", quality=level, subsampling="4:2:0")
        assert torch.equal(got, torch.from_numpy(np.array(Image.open(file))).permute(2, 0, 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floats_follow_bytes(dtype):
    ramp = torch.linspace(30, 220, 60)
    grain = 8 * torch.randn(40, 60, generator=torch.Generator().manual_seed(6))
    images = (torch.stack([ramp, 0.7 * ramp.flip(0), 0.4 * ramp + 60])[None, :, None] + grain).round().expand(len(INTENSITIES), -1, -1, -1)
    smooth, exact = run(images.to(dtype), INTENSITIES), run(images.to(torch.uint8), INTENSITIES)
    assert smooth.dtype == dtype
    near, lost = (smooth - exact).abs().mean((1, 2, 3)), (smooth - images).abs().mean((1, 2, 3))
    assert near.max() < 2
    assert lost[-1] > 5  # the coefficients are rounded


def test_gradient_goes_to_the_image_and_not_to_the_intensity():
    operator = JpegCompression()
    images = torch.full((1, 3, 8, 8), 100.0, requires_grad=True)
    intensity = torch.tensor([0.9], dtype=torch.float64, requires_grad=True)
    result = operator.apply(images, operator.plan((8, 8), [0.9], [NoParams()]), intensity)
    image_gradient, intensity_gradient = torch.autograd.grad(result.sum(), (images, intensity), allow_unused=True)
    torch.testing.assert_close(image_gradient.sum(), torch.tensor(192.0), rtol=1e-3, atol=0)
    assert intensity_gradient is None
