from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from degrade.kernels.mean_shift import (
    MAX_RADIUS,
    _edges,
    _merge,
    _pyramid_down,
    mean_shift,
    mean_shift_climb,
    mean_shift_climb_backward,
    mean_shift_climb_backward_reference,
    mean_shift_climb_reference,
)


def radii(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def scene(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Flat patches, a gradient and mild noise: pixels climb several steps, and some edges are found."""
    rng = np.random.default_rng(seed)
    patches = cv2.resize(rng.integers(30, 226, (3, 4, 3), dtype=np.uint8), (width, height), interpolation=cv2.INTER_NEAREST)
    ramp = np.linspace(-25, 25, width)[None, :, None]
    return np.clip(patches + ramp + rng.normal(0, 5, (height, width, 3)), 0, 255).astype(np.uint8)


def batch(*images: np.ndarray) -> Tensor:
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous()


def opencv(image: np.ndarray, radius: int) -> Tensor:
    return batch(cv2.pyrMeanShiftFiltering(image, sp=radius, sr=radius, maxLevel=1))


@pytest.mark.parametrize("make", [noise, scene])
@pytest.mark.parametrize("size", [(1, 1), (1, 64), (2, 2), (3, 1), (5, 4), (7, 13), (33, 37), (49, 200), (120, 96)])
@pytest.mark.parametrize("radius", [0, 1, 2, 3, 4, 9, 18, 36, 40])
def test_equals_opencv(make, size, radius):
    image = make(*size)
    assert torch.equal(mean_shift(batch(image), radii(radius)), opencv(image, radius))


@pytest.mark.parametrize("radius", [1, 9, 18, 36])
def test_equals_opencv_at_extreme_levels(radius):
    image = (noise(40, 40, seed=3) > 127).astype(np.uint8) * 255
    image[10:30, 10:30] = scene(20, 20)
    assert torch.equal(mean_shift(batch(image), radii(radius)), opencv(image, radius))


def test_the_scene_needs_both_levels_and_several_steps():
    image = scene(33, 37)
    result = mean_shift(batch(image), radii(9))
    level = batch(cv2.pyrUp(cv2.pyrDown(image), dstsize=(37, 33)))
    assert (result != batch(image)).float().mean() > 0.5
    assert (result != level).float().mean() > 0.5


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize(("size", "radius"), [((23, 27), 9), ((13, 12), 36), ((7, 13), 3), ((1, 5), 1), ((6, 6), 0)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float64])
def test_the_c_body_equals_the_reference(level, size, radius, dtype):
    torch.set_num_threads(1)  # small tensors: more threads only wait for each other
    images = batch(scene(*size), noise(*size)).to(dtype)
    if dtype == torch.float64:
        images = (images + torch.rand(images.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)) * 0.99
    wanted = torch.rand(2, *size, generator=torch.Generator().manual_seed(2)) < 0.7
    for mask in (wanted, None):
        arguments = (images, mask, radii(radius, max(radius - 1, 0)), level, radius)
        result, reference = mean_shift_climb(*arguments), mean_shift_climb_reference(*arguments)
        assert result.dtype == reference.dtype == dtype
        assert torch.equal(result, reference) if dtype == torch.uint8 else torch.allclose(result, reference, rtol=0, atol=1e-9)
        if mask is not None:
            assert (result.movedim(1, -1)[~mask] == 0).all()
        if dtype == torch.float64:
            gradient = torch.randn(images.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
            back = mean_shift_climb_backward(gradient, *arguments)
            assert torch.allclose(back, mean_shift_climb_backward_reference(gradient, *arguments), rtol=0, atol=1e-9)
            assert back.abs().max() > 0


def test_the_bound_on_the_radius_changes_nothing():
    images = batch(scene(12, 15))
    loose = mean_shift_climb_reference(images, None, radii(5), 0, MAX_RADIUS)
    assert torch.equal(loose, mean_shift_climb_reference(images, None, radii(5), 0, 5))


def test_a_batch_equals_its_images():
    images = batch(scene(33, 37), noise(33, 37), scene(33, 37, seed=1))
    together = mean_shift(images, radii(36, 0, 9))
    alone = [mean_shift(images[k : k + 1], radii(r)) for k, r in enumerate((36, 0, 9))]
    assert torch.equal(together, torch.cat(alone))


def test_neither_threads_nor_strides_nor_channel_order_change_anything():
    images = batch(scene(65, 50), noise(65, 50))
    torch.set_num_threads(1)
    single = mean_shift(images, radii(9, 18))
    torch.set_num_threads(2)
    double = mean_shift(images, radii(9, 18))
    strided = mean_shift(images.to(memory_format=torch.channels_last), radii(9, 18))
    swapped = mean_shift(images.flip(1), radii(9, 18)).flip(1)
    assert torch.equal(single, double)
    assert torch.equal(single, strided)
    assert torch.equal(single, swapped)


def test_an_empty_batch():
    assert mean_shift(torch.zeros(0, 3, 8, 8, dtype=torch.uint8), radii()).shape == (0, 3, 8, 8)


@pytest.mark.parametrize("radius", [9, 18])
def test_gradient_of_smooth_images(radius):
    generator = torch.Generator().manual_seed(radius)
    flat = torch.tensor([60.0, 90.0, 200.0], dtype=torch.float64)[:, None, None].repeat(1, 7, 9)
    flat[:, :, 5:] += 25
    images = (flat + 4 * torch.randn(1, 3, 7, 9, generator=generator, dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: mean_shift(x, radii(radius)), images)


def test_gradient_shares_out_the_whole():
    """The weights of an average sum to 1, so the gradient of the sum over all pixels sums to their number."""
    images = batch(scene(21, 18)).double().requires_grad_()
    mean_shift(images, radii(9)).sum().backward()
    assert images.grad.sum().item() == pytest.approx(3 * 21 * 18)
    assert images.grad.std() > 0.1


def test_custom_operators_keep_their_contract():
    images = batch(scene(6, 7)).float()
    edges = torch.ones(1, 6, 7, dtype=torch.bool)
    for wanted in (edges, None):
        arguments = (wanted, radii(4), 0, 4)
        torch.library.opcheck(mean_shift_climb, (images.clone().requires_grad_(), *arguments))
        torch.library.opcheck(mean_shift_climb_backward, (torch.rand(images.shape), images, *arguments))
    half = images[:, :, :3, :4].contiguous()
    torch.library.opcheck(_pyramid_down.operator, (images.clone().requires_grad_(),))
    torch.library.opcheck(_edges.operator, (half, radii(4), 6, 7))
    torch.library.opcheck(_merge.operator, (images.clone().requires_grad_(), half.clone().requires_grad_(), edges))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_compiles_in_one_graph(dtype):
    images = batch(scene(33, 37)).to(dtype)
    compiled = torch.compile(mean_shift, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(images, radii(9)), mean_shift(images, radii(9)))


def test_compiled_gradient():
    images = batch(scene(12, 15)).double()
    compiled = torch.compile(mean_shift, fullgraph=True, backend="aot_eager")
    grads = []
    for function in (mean_shift, compiled):
        leaf = images.clone().requires_grad_()
        function(leaf, radii(9), False).square().sum().backward()
        grads.append(leaf.grad)
    assert torch.allclose(*grads)


def test_runs_without_data():
    with FakeTensorMode():
        images = torch.empty(2, 3, 9, 8, dtype=torch.uint8)
        result = mean_shift(images, torch.empty(2, dtype=torch.int32))
    assert (result.shape, result.dtype) == (images.shape, images.dtype)


@pytest.mark.parametrize(
    ("images", "radius", "error", "words"),
    [
        (torch.zeros(1, 1, 4, 4, dtype=torch.uint8), radii(9), ValueError, r"\(1, 1, 4, 4\)"),
        (torch.zeros(1, 3, 4, 4, dtype=torch.int32), radii(9), TypeError, "int32"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), radii(9), ValueError, r"shape \(2,\)"),
        (torch.zeros(1, 3, 4, 4, dtype=torch.uint8), torch.tensor([9]), ValueError, "int64"),
        (torch.zeros(1, 3, 4, 4, dtype=torch.uint8), radii(41), ValueError, r"0\.\.40, got \[41\]"),
        (torch.zeros(1, 3, 4, 4, dtype=torch.uint8), radii(-1), ValueError, r"0\.\.40, got \[-1\]"),
    ],
)
def test_refuses(images, radius, error, words):
    with pytest.raises(error, match=words):
        mean_shift(images, radius)
