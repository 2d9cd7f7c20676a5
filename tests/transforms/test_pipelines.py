"""``RandomDegradation`` inside the libraries that people train with."""

from __future__ import annotations

import kornia.augmentation as K
import numpy as np
import PIL.Image
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torchvision import tv_tensors
from torchvision.transforms import v2

import degrade
from tests import images as pictures
from tests import laws

QUICK = {"dark_illumination": 1, "scan_lines": 1, "gaussian_noise": 1, "graffiti": 1, "lens_blur": 1}
SIZE = 24, 36


@pytest.fixture
def aug() -> degrade.RandomDegradation:
    return degrade.RandomDegradation(QUICK, p=0.9)


def image(dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    return laws.as_floats(pictures.tensor(pictures.scene(*SIZE)), dtype)


def batch(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return laws.as_floats(pictures.batch(5, *SIZE), dtype)


def network() -> nn.Module:
    torch.manual_seed(7)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))


def seeded(function, *arguments, **options):
    torch.manual_seed(3)
    return function(*arguments, **options)


# -- torchvision ------------------------------------------------------------------------------------------------------------------


def test_compose_passes_boxes_masks_and_labels_through(aug):
    sample = {
        "image": tv_tensors.Image(image()),
        "boxes": tv_tensors.BoundingBoxes([[1, 2, 10, 12]], format="XYXY", canvas_size=SIZE),
        "mask": tv_tensors.Mask(torch.randint(2, SIZE)),
        "label": torch.tensor(3),
        "name": "scene",
        "array": np.arange(3),
    }
    flipped = v2.RandomHorizontalFlip(1)(sample)
    pipeline = v2.Compose([v2.RandomHorizontalFlip(1), aug, v2.ToDtype(torch.float32, scale=True)])
    out = seeded(pipeline, sample)
    assert type(out["image"]) is tv_tensors.Image
    wanted = seeded(lambda: (torch.rand(1), aug(flipped["image"].as_subclass(torch.Tensor)))[1])  # the flip draws first
    assert not torch.equal(wanted, flipped["image"])
    assert torch.equal(out["image"], v2.functional.to_dtype(wanted, torch.float32, scale=True))
    assert type(out["boxes"]) is tv_tensors.BoundingBoxes
    assert type(out["mask"]) is tv_tensors.Mask
    for name in ("boxes", "mask", "label"):
        assert torch.equal(out[name], flipped[name]), name
    assert out["name"] == "scene"
    assert out["array"] is sample["array"]


def test_boxes_alone_stay_the_same_objects(aug):
    sample = (tv_tensors.Image(image()), {"boxes": tv_tensors.BoundingBoxes([[1, 2, 3, 4]], format="XYXY", canvas_size=SIZE)})
    out = aug(*sample)
    assert out[1]["boxes"] is sample[1]["boxes"]


def test_a_plain_tensor_is_the_image_where_there_is_no_other(aug):
    label = torch.randint(9, (5,))
    images, same = seeded(aug, (batch(), label))
    assert same is label
    assert torch.equal(images, seeded(aug, batch()))


def test_a_plain_tensor_is_no_image_beside_one(aug):
    for kind in (tv_tensors.Image(image()), PIL.Image.fromarray(pictures.scene(*SIZE))):
        features = torch.rand(3, 5, 5)
        assert aug(features, kind)[0] is features


def test_images_of_one_sample_get_the_same_draws(aug):
    for _ in range(5):
        left, right = aug(tv_tensors.Image(image()), tv_tensors.Image(image()))
        assert torch.equal(left, right)
    with pytest.raises(ValueError, match="return_records: got 2 images"):
        aug(tv_tensors.Image(image()), tv_tensors.Image(image()), return_records=True)


def test_records_come_beside_the_sample(aug):
    sample = {"image": tv_tensors.Image(image()), "label": 1}
    out, records = aug(sample, keys="a", return_records=True)
    assert out["label"] == 1
    assert torch.equal(out["image"], degrade.replay(image(), records))


def test_other_v2_transforms_can_hold_it(aug):
    for holder in (v2.RandomApply([aug], p=1), v2.RandomChoice([aug]), v2.RandomOrder([aug])):
        out = holder(tv_tensors.Image(image()))
        assert type(out) is tv_tensors.Image
        assert out.shape == (3, *SIZE)


@pytest.mark.parametrize("sample", [(), ("text", 3), ({"boxes": [1, 2]},), (np.zeros((4, 4, 3), np.uint8), 1)], ids=str)
def test_a_sample_without_an_image(aug, sample):
    with pytest.raises(TypeError, match="or PIL image among them, or one array alone"):
        aug(*sample)


# -- PIL and NumPy ----------------------------------------------------------------------------------------------------------------


def test_pil_images(aug):
    shown = PIL.Image.fromarray(pictures.scene(*SIZE))
    for given in (shown, shown.convert("L")):
        out = aug(given, keys="a")
        assert isinstance(out, PIL.Image.Image)
        assert out.mode == given.mode
        wanted = aug(v2.functional.pil_to_tensor(given), keys="a")
        assert torch.equal(v2.functional.pil_to_tensor(out), wanted)
    with pytest.raises(ValueError, match=r"mode RGBA, want RGB or L; use image.convert\('RGB'\)"):
        aug(shown.convert("RGBA"))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_arrays(aug, dtype):
    shown = pictures.scene(*SIZE)
    whole = shown if dtype == np.uint8 else (shown / 255).astype(dtype)
    for given in (whole, whole[..., :1], whole[..., 0], whole[::-1, ::-1]):
        before = given.copy()
        out = aug(given, keys="a")
        assert isinstance(out, np.ndarray)
        assert (out.dtype, out.shape) == (given.dtype, given.shape)
        assert np.array_equal(given, before)
        rows = given[..., None] if given.ndim == 2 else given
        wanted = aug(torch.from_numpy(rows.transpose(2, 0, 1).copy()), keys="a")
        assert np.array_equal(out.reshape(rows.shape), wanted.permute(1, 2, 0).numpy())
    whole.setflags(write=False)
    aug(whole)


def test_wrong_arrays(aug):
    with pytest.raises(ValueError, match=r"got an array of shape \(2, 4, 4, 3\), want"):
        aug(np.zeros((2, 4, 4, 3), np.uint8))
    with pytest.raises(TypeError, match="int64"):
        aug(np.zeros((4, 4, 3), np.int64))


# -- kornia -----------------------------------------------------------------------------------------------------------------------


def test_in_a_kornia_sequential(aug):
    pipeline = K.AugmentationSequential(K.RandomHorizontalFlip(p=1), aug, data_keys=["input", "mask"])
    mask = torch.rand(5, 1, *SIZE)
    out, flipped = pipeline(batch(), mask)
    assert torch.equal(flipped, mask.flip(-1))
    assert not torch.equal(out, batch().flip(-1))

    untouched = K.AugmentationSequential(K.RandomHorizontalFlip(p=1), degrade.RandomDegradation(p=0), data_keys=["input", "mask"])
    assert torch.equal(untouched(batch(), mask)[0], batch().flip(-1))


def test_beside_kornia(aug):
    model = nn.Sequential(aug, K.RandomVerticalFlip(p=1))
    assert torch.equal(seeded(model, batch()), seeded(aug, batch()).flip(-2))


# -- torch ------------------------------------------------------------------------------------------------------------------------


def test_gradients_flow_through_a_sequential(aug):
    images = batch().requires_grad_()
    model = nn.Sequential(aug, network())
    model(images).sum().backward()
    assert images.grad is not None
    assert all(g.abs().sum() > 0 for g in images.grad)


def test_compiled(aug):
    """The network compiles; the draws on the host are a graph break."""
    torch.compiler.reset()
    model = nn.Sequential(aug, network())
    compiled = torch.compile(model, backend="aot_eager")
    for _ in range(2):
        eager, other = seeded(model, batch()), seeded(compiled, batch())
        torch.testing.assert_close(other, eager)
    first, second = compiled(batch()), compiled(batch())
    assert not torch.equal(first, second), "the draws are frozen into the graph"
    assert type(torch.compile(aug, backend="aot_eager")(tv_tensors.Image(image()))) is tv_tensors.Image


def test_a_graph_break_is_explained(aug):
    torch.compiler.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="degrade draws on the host"):
        torch.compile(nn.Sequential(aug, network()), backend="aot_eager", fullgraph=True)(batch())


def test_autocast_does_not_matter(aug):
    wanted = seeded(aug, batch())
    with torch.autocast("cpu", torch.bfloat16):
        laws.assert_same(seeded(aug, batch()), wanted, "under autocast")
        assert nn.Sequential(aug, network())(batch()).dtype == torch.bfloat16


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_draws_the_same_again(aug, reentrant):
    model = nn.Sequential(aug, network())

    def gradient(run):
        images = batch().requires_grad_()
        model.zero_grad()
        seeded(run, images).square().sum().backward()
        return [images.grad, *(p.grad.clone() for p in model.parameters())]

    wanted = gradient(model)
    again = gradient(lambda images: checkpoint(model, images, use_reentrant=reentrant))
    for got, want in zip(again, wanted, strict=True):
        torch.testing.assert_close(got, want)
    if reentrant:  # without the generator's state the second pass draws anew, and this test would see it
        other = gradient(lambda images: checkpoint(model, images, use_reentrant=True, preserve_rng_state=False))
        assert not torch.allclose(other[0], wanted[0])


def test_half_precision(aug):
    for dtype in (torch.float16, torch.bfloat16):
        assert aug(batch(dtype)).dtype == dtype


@pytest.mark.cuda
def test_on_cuda():
    aug = degrade.RandomDegradation("training", p=0.9, chain=(1, 2))
    images = pictures.batch(32, 64, 96).cuda()
    keys = [str(n) for n in range(32)]
    aug(images, keys=keys)  # compiles kernels
    torch.cuda.set_sync_debug_mode("error")
    try:
        out = aug(images, keys=keys)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(out.cpu(), aug(images.cpu(), keys=keys))
