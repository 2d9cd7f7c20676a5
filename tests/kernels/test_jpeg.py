"""The JPEG round trip against libjpeg-turbo in three libraries, and its smooth counterpart."""

import io

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from degrade.kernels import jpeg, quantize
from tests import images

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33)
QUALITIES = (5, 14, 49, 50, 57, 78, 95, 100)
BODIES = {"operator": jpeg._roundtrip.operator, "reference": jpeg.roundtrip_reference}


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def photograph(height: int, width: int) -> Tensor:
    return images.tensor(images.photograph(height, width))[None]


def plan(*qualities: int) -> tuple[Tensor]:
    return (jpeg.quantisation_tables(qualities),)


def pillow(image: Tensor, quality: int) -> Tensor:
    file = io.BytesIO()
    Image.fromarray(image.permute(1, 2, 0).numpy()).save(file, "JPEG", quality=quality, subsampling="4:2:0")
    return torch.from_numpy(np.array(Image.open(file))).permute(2, 0, 1)


def opencv(image: Tensor, quality: int) -> Tensor:
    encoded = cv2.imencode(".jpg", image.permute(1, 2, 0).numpy()[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return torch.from_numpy(cv2.imdecode(encoded, cv2.IMREAD_COLOR)[..., ::-1].copy()).permute(2, 0, 1)


def psnr(a: Tensor, b: Tensor) -> float:
    return (10 * torch.log10(255**2 / (a.double() - b.double()).square().mean())).item()


@pytest.fixture
def unrounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roundings replaced by what their gradients belong to."""
    monkeypatch.setattr(quantize, "straight_through", lambda smooth, exact: smooth)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("height", SIZES)
def test_equals_libraries_at_every_size(body, height):
    for width in SIZES:
        batch = noise(len(QUALITIES), 3, height, width, seed=width)
        batch[::2] = (batch[::2] > 127) * 255  # extreme coefficients
        result = body(batch, *plan(*QUALITIES))
        for image, quality, got in zip(batch, QUALITIES, result, strict=True):
            assert torch.equal(got, pillow(image, quality)), (width, quality)
            assert torch.equal(got, opencv(image, quality)), (width, quality)


@pytest.mark.parametrize("quality", [1, 2, 5, 20, 49, 75, 99, 100])
def test_reference_equals_operator_on_extremes(quality):
    stripes = ((torch.arange(200) // torch.tensor([[1], [3]])) % 2 * 255).to(torch.uint8)[:, None, None].expand(2, 3, 136, 200)
    batch = torch.cat([noise(2, 3, 136, 200), (noise(2, 3, 136, 200) > 127).to(torch.uint8) * 255, stripes, photograph(136, 200)])
    arguments = plan(*[quality] * len(batch))
    assert torch.equal(jpeg.roundtrip(batch, *arguments), jpeg.roundtrip_reference(batch, *arguments))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_batch_equals_singles(dtype):
    batch = noise(4, 3, 37, 50).to(dtype)
    qualities = (78, 5, 14, 57)
    together = jpeg.roundtrip(batch, *plan(*qualities))
    alone = [jpeg.roundtrip(image[None], *plan(quality)) for image, quality in zip(batch, qualities, strict=True)]
    assert together.dtype == dtype
    torch.testing.assert_close(together, torch.cat(alone), rtol=0, atol=0 if dtype == torch.uint8 else 1e-3)


def test_threads_change_nothing():
    batch, arguments = noise(5, 3, 24, 24), plan(5, 20, 40, 60, 80)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = jpeg.roundtrip(batch, *arguments)
        torch.set_num_threads(3)
        three = jpeg.roundtrip(batch, *arguments)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one, three)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_strides_and_input_untouched(body):
    batch = noise(2, 20, 23, 3).permute(0, 3, 1, 2)
    before = batch.clone()
    assert torch.equal(body(batch, *plan(30, 60)), body(before, *plan(30, 60)))
    assert torch.equal(batch, before)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_empty_batch(dtype):
    assert jpeg.roundtrip(torch.empty(0, 3, 9, 9, dtype=dtype), *plan()).shape == (0, 3, 9, 9)


def test_longer_than_libjpeg_takes():
    """A constant grey has only a DC coefficient, so the first blocks of a shorter image tell the long one's values."""
    image = noise(1, 3, 1, 64)
    long = torch.cat([image, image[..., -1:].expand(-1, -1, -1, 65_536 - 64)], -1)
    assert torch.equal(jpeg.roundtrip(long, *plan(50))[..., :64], jpeg.roundtrip(long[..., :640], *plan(50))[..., :64])


def test_tables_are_libjpegs():
    tables = jpeg.quantisation_tables(range(1, 101))
    for quality, ours in zip(range(1, 101), tables, strict=True):
        file = io.BytesIO()
        Image.new("RGB", (8, 8)).save(file, "JPEG", quality=quality)
        theirs = Image.open(file).quantization
        assert ours.flatten(1).tolist() == [theirs[0], theirs[1]], quality


@pytest.mark.parametrize("quality", [0, 101])
def test_quality_out_of_range(quality):
    with pytest.raises(ValueError, match=f"got {quality}.*1..100"):
        jpeg.quantisation_tables([50, quality])


@pytest.mark.parametrize(("quality", "least"), [(78, 43), (57, 43), (14, 42)])
@pytest.mark.parametrize("size", [(128, 160), (131, 77)])
def test_floats_are_near_libjpeg(quality, least, size):
    batch = photograph(*size)
    smooth, exact = jpeg.roundtrip(batch.float(), *plan(quality)), jpeg.roundtrip(batch, *plan(quality))
    assert psnr(smooth, exact) > least
    assert psnr(batch, exact) < least  # the round trip itself does more than that


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (9, 4), (17, 33)])
def test_without_roundings_greys_stay(unrounded, size):
    """The DCT and its inverse cancel, on extended edges too, and neutral chroma stays neutral."""
    batch = (40 + 150 * torch.rand(2, 1, *size, dtype=torch.float64)).expand(-1, 3, -1, -1)
    torch.testing.assert_close(jpeg.roundtrip(batch, *plan(14, 78)), batch, rtol=0, atol=0.05)


@pytest.mark.parametrize("size", [(5, 6), (3, 2), (1, 1)])
def test_gradcheck(unrounded, size):
    batch = 60 + 120 * torch.rand(1, 3, *size, dtype=torch.float64)
    (tables,) = plan(14)
    assert torch.autograd.gradcheck(lambda x: jpeg.roundtrip(x, tables), batch.requires_grad_())


def test_gradient_passes_the_roundings(monkeypatch):
    batch = (photograph(21, 34).double() / 2 + 64).requires_grad_()  # far from the clips
    weights = torch.rand(batch.shape, dtype=torch.float64)
    (rounded,) = torch.autograd.grad((jpeg.roundtrip(batch, *plan(57)) * weights).sum(), batch)
    monkeypatch.setattr(quantize, "straight_through", lambda smooth, exact: smooth)
    (smooth,) = torch.autograd.grad((jpeg.roundtrip(batch, *plan(57)) * weights).sum(), batch)
    torch.testing.assert_close(rounded, smooth)
    assert smooth.abs().min() > 0


def test_library_contract():
    torch.library.opcheck(jpeg._roundtrip.operator, (noise(2, 3, 11, 10), *plan(14, 78)))
    batch, arguments = noise(2, 3, 11, 10), plan(14, 78)
    for kind in (batch, batch.float()):
        compiled = torch.compile(jpeg.roundtrip, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(kind, *arguments), jpeg.roundtrip(kind, *arguments))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_reference_stays_on_its_device(dtype):
    """A default device of meta shows factory calls without ``device``."""
    arguments = noise(2, 3, 19, 18).to(dtype), *plan(14, 78)
    with torch.device("meta"):
        assert jpeg.roundtrip_reference(*arguments).device.type == "cpu"
