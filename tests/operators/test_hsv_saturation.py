"""Saturation loss against the published pipeline's steps in OpenCV."""

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.operator import NoParams
from degrade.operators.capture.hsv_saturation import HsvSaturation

FUSED = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")  # elsewhere OpenCV rounds some products once more
INTENSITIES = [0.0, 0.1, 0.23, 0.45, 0.9, 1.0]


def run(images: Tensor, intensities: list[float]) -> Tensor:
    operator = HsvSaturation()
    plan = operator.plan((images.shape[2], images.shape[3]), intensities, [NoParams()] * len(intensities))
    return operator.apply(images, plan, torch.tensor(intensities, dtype=torch.float64))


def published(image: Tensor, intensity: float) -> Tensor:
    hsv = cv2.cvtColor(image.permute(1, 2, 0).contiguous().numpy(), cv2.COLOR_RGB2HSV)
    hsv[..., 1] = (hsv[..., 1].astype(np.float32) * np.float32(1 - intensity)).astype(np.uint8)
    return torch.from_numpy(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)).permute(2, 0, 1)


@pytest.fixture
def images() -> Tensor:
    return torch.randint(0, 256, (len(INTENSITIES), 3, 40, 77), dtype=torch.uint8, generator=torch.Generator().manual_seed(3))


def test_equals_opencv(images):
    for image, intensity, got in zip(images, INTENSITIES, run(images, INTENSITIES), strict=True):
        difference = published(image, intensity).int() - got.int()
        assert (difference[..., :64] != 0).float().mean() <= (0 if FUSED else 1e-3)
        assert difference.abs().max() <= 1  # OpenCV rounds in the last 77 % 32 columns


def test_saturation_is_scaled_in_float32():
    """30 * 0.1 is 3 in float32 and 2.99... in float64; levels of 255 and 225 have the saturation 30."""
    image = torch.tensor([255, 225, 225], dtype=torch.uint8)[None, :, None, None]
    assert run(image, [0.9]).flatten().tolist() == [255, 252, 252]
    assert int(30 * (1 - 0.9)) == 2


def test_greys_stay_and_full_intensity_leaves_the_value(images):
    grey = images[:, :1].expand(-1, 3, -1, -1)
    assert torch.equal(run(grey, INTENSITIES), grey)
    white = run(images[:1], [1.0])
    assert torch.equal(white, images[:1].amax(1, keepdim=True).expand(-1, 3, -1, -1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floats_follow_bytes(images, dtype):
    """They differ by the hue's two degrees at most, and by the fractions dropped of saturation and colour."""
    smooth, exact = run(images.to(dtype), INTENSITIES), run(images, INTENSITIES)
    assert smooth.dtype == dtype
    assert (smooth - exact).abs().max() < 7
    assert (smooth - exact).abs().mean() < 1.5
    torch.testing.assert_close(smooth[0], images[0].to(dtype))


def test_gradcheck():
    operator = HsvSaturation()
    images = (torch.rand(2, 3, 3, 4, dtype=torch.float64) * 255).requires_grad_()
    intensity = torch.tensor([0.3, 0.9], dtype=torch.float64, requires_grad=True)
    plan = operator.plan((3, 4), [0.3, 0.9], [NoParams()] * 2)
    assert torch.autograd.gradcheck(lambda x, i: operator.apply(x, plan, i), (images, intensity))


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (1, 33)])
def test_any_size(size):
    images = torch.tensor([200, 100, 50], dtype=torch.uint8)[None, :, None, None].expand(1, 3, *size)
    assert torch.equal(run(images, [0.5]), torch.tensor([200, 150, 125], dtype=torch.uint8)[None, :, None, None].expand(1, 3, *size))
