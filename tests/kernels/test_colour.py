"""HSV against OpenCV's 8-bit conversions, and the smooth desaturation."""

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.kernels import colour

FUSED = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")  # elsewhere OpenCV rounds some products once more
LEVELS = torch.arange(256)


def as_opencv(planes: Tensor) -> np.ndarray:
    """(3, H, W) as an OpenCV image."""
    return planes.to(torch.uint8).permute(1, 2, 0).contiguous().numpy()


@pytest.mark.parametrize("blue", [LEVELS[:4], LEVELS[60::61], LEVELS[252:]])
def test_forward_equals_opencv(blue):
    images = torch.stack(torch.meshgrid(blue, LEVELS, LEVELS, indexing="ij")).flip(0).flatten(1, 2)
    for planes in (images, images.roll(1, 0), images.roll(2, 0)):
        hsv = torch.cat(colour.rgb_to_hsv(planes[None].to(torch.uint8)))
        assert np.array_equal(as_opencv(hsv), cv2.cvtColor(as_opencv(planes), cv2.COLOR_RGB2HSV))


@pytest.mark.parametrize("first_hue", range(0, 180, 30))
def test_back_equals_opencv(first_hue):
    """Every hue, saturation and value; a width of 256 is all whole groups of 32, where OpenCV truncates."""
    hues = torch.arange(first_hue, first_hue + 30)
    hsv = torch.stack(torch.meshgrid(hues, LEVELS, LEVELS, indexing="ij")).flatten(1, 2)
    off = as_opencv(colour.hsv_to_rgb(*hsv[:, None].float())[0]) != cv2.cvtColor(as_opencv(hsv), cv2.COLOR_HSV2RGB)
    assert off.mean() <= (0 if FUSED else 1e-4)


def test_back_is_within_a_level_where_opencv_rounds():
    hsv = torch.stack([torch.randint(0, top, (400, 31), generator=torch.Generator().manual_seed(1)) for top in (180, 256, 256)])
    difference = cv2.cvtColor(as_opencv(hsv), cv2.COLOR_HSV2RGB).astype(int) - as_opencv(colour.hsv_to_rgb(*hsv[:, None].float())[0])
    assert set(np.unique(difference)) == {0, 1}


def test_desaturate_keeps_value_and_hue():
    images = torch.rand(2, 3, 5, 7, dtype=torch.float64) * 255
    keep = torch.tensor([0.25, 1.0], dtype=torch.float64)[:, None, None, None]
    faded = colour.scale_saturation(images, keep)
    torch.testing.assert_close(faded.amax(1), images.amax(1))
    torch.testing.assert_close(faded.amax(1, keepdim=True) - faded, keep * (images.amax(1, keepdim=True) - images))
    torch.testing.assert_close(faded[1], images[1])


def test_gradient_of_ties_is_shared():
    images = torch.tensor([100.0, 100.0, 40.0], dtype=torch.float64)[None, :, None, None].requires_grad_()
    colour.scale_saturation(images, torch.zeros(1, 1, 1, 1, dtype=torch.float64)).sum().backward()
    assert images.grad is not None
    assert images.grad.flatten().tolist() == [1.5, 1.5, 0.0]


def test_gradcheck():
    images = (torch.rand(2, 3, 3, 4, dtype=torch.float64) * 255).requires_grad_()
    keep = torch.rand(2, 1, 1, 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(colour.scale_saturation, (images, keep))
