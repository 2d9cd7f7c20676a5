"""Telea inpainting against OpenCV, and its bodies and gradients against one another."""

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.kernels import inpaint
from tests import images

SIZE = (33, 41)


def rectangles(size, seed, count=4):
    """Unions that often touch or leave the image."""
    rng = np.random.default_rng(seed)
    mask = np.zeros(size, bool)
    for _ in range(count):
        y, x = rng.integers(-6, size)
        height, width = rng.integers(1, 18, 2)
        mask[max(y, 0) : max(y + height, 0), max(x, 0) : max(x + width, 0)] = True
    return mask


def only(*at):
    mask = np.zeros(SIZE, bool)
    for place in at:
        mask[place] = True
    return mask


MASKS = {
    "nothing": only(),
    "a pixel": only((16, 20)),
    "pixels at the border": only((0, 7), (9, 0), (0, 0), (1, 20), (20, 1), (32, 5), (7, 40), (32, 40)),
    "row": only(np.s_[12, 3:30]),
    "column": only(np.s_[4:30, 9]),
    "whole row": only(np.s_[12]),
    "first row": only(np.s_[0]),
    "first column": only(np.s_[:, 0]),
    "last row and column": only(np.s_[-1], np.s_[:, -1]),
    "top left": only(np.s_[:9, :12]),
    "bottom right": only(np.s_[-9:, -12:]),
    "near the top left": only(np.s_[3:8, 4:10]),
    "near the bottom right": only(np.s_[22:30, 30:38]),
    "all but a pixel": ~only((15, 22)),
    "all but the middle": ~only(np.s_[10:20, 12:25]),
    "everything": ~only(),
    "dust": np.random.default_rng(0).random(SIZE) < 0.15,
    "mostly hole": np.random.default_rng(1).random(SIZE) < 0.8,
} | {f"rectangles {seed}": rectangles(SIZE, seed) for seed in range(12)}


def opencv(image: Tensor, mask) -> Tensor:
    filled = cv2.inpaint(images.pixels(image), mask.astype(np.uint8), 3, cv2.INPAINT_TELEA)
    return images.tensor(filled)


def fill(batch: Tensor, masks, function=inpaint.inpaint) -> Tensor:
    return function(batch, *inpaint.march(np.stack(masks)))


def random_levels(*shape, dtype=torch.float64, seed=0) -> Tensor:
    return torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).mul(200).add(25).to(dtype)


@pytest.mark.parametrize("kind", images.KINDS)
@pytest.mark.parametrize("name", MASKS)
def test_equals_opencv(name, kind):
    image = images.tensor(images.KINDS[kind](*SIZE))
    assert torch.equal(fill(image[None], [MASKS[name]])[0], opencv(image, MASKS[name]))


@pytest.mark.parametrize("size", [(2, 2), (2, 30), (30, 2), (3, 50), (7, 7), (90, 140)])
def test_equals_opencv_at_other_sizes(size):
    for seed in range(6):
        image, mask = images.tensor(images.scene(*size, seed)), rectangles(size, seed)
        assert torch.equal(fill(image[None], [mask])[0], opencv(image, mask)), seed


def test_equals_opencv_near_ties():
    """Many small holes in noise: some of their values lie within a unit in the last place of a half."""
    rng = np.random.default_rng(3)
    mask = np.zeros((512, 512), bool)
    for y in range(10, 500, 16):
        for x in range(10, 500, 16):
            height, width = rng.integers(1, 6, 2)
            mask[y : y + height, x : x + width] = True
    for seed in range(6):
        image = images.tensor(images.noise(512, 512, seed))
        assert torch.equal(fill(image[None], [mask])[0], opencv(image, mask)), seed


@pytest.mark.parametrize("size", [(1, 1), (1, 2), (1, 40), (40, 1)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_single_rows_and_columns(size, dtype):
    """OpenCV reads outside of such images.  Here known pixels stay, and a hole comes near to them whatever it held before."""
    torch.set_num_threads(1)
    mask = np.zeros(size, bool)
    mask.flat[5:9] = True
    mask.flat[-1] = True
    image = torch.full((1, 3, *size), 100).to(dtype)
    hole = torch.from_numpy(mask)
    image[..., hole] = 7
    out = fill(image, [mask])
    assert torch.equal(out, fill(image, [mask], inpaint.inpaint_reference))
    assert (out[..., ~hole] == 100).all()
    assert mask.all() or (out[..., hole].double() - 100).abs().max() <= 3  # 0.5 less the bounded term, for each of four pixels


@pytest.mark.parametrize("channels", [0, 1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_channels_do_not_mix(channels, dtype):
    batch, masks = random_levels(2, channels, 20, 23, dtype=dtype), [rectangles((20, 23), n) for n in (3, 4)]
    together = fill(batch, masks)
    for k in range(channels):
        assert torch.equal(together[:, k : k + 1], fill(batch[:, k : k + 1], masks))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_a_batch_equals_its_images(dtype):
    names = ["nothing", "dust", "everything", "rectangles 1", "top left", "row"]
    batch, masks = images.batch(len(names), *SIZE).to(dtype), [MASKS[name] for name in names]
    strided = batch.repeat_interleave(2, dim=3).to(memory_format=torch.channels_last)[..., ::2]
    before = batch.clone()
    together = fill(strided, masks)
    assert torch.equal(batch, before)
    assert together.is_contiguous()
    assert together.dtype == dtype
    for n, mask in enumerate(masks):
        assert torch.equal(together[n : n + 1], fill(batch[n : n + 1], [mask]))
    torch.set_num_threads(1)
    assert torch.equal(together, fill(batch, masks))


@pytest.mark.parametrize("function", [inpaint.inpaint, inpaint.inpaint_reference])
def test_empty_batch(function):
    plan = inpaint.march(np.zeros((0, 4, 5), bool))
    assert function(torch.zeros(0, 3, 4, 5), *plan).shape == (0, 3, 4, 5)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_the_reference_equals_the_c_body(dtype):
    torch.set_num_threads(1)  # many small operations
    names = ["pixels at the border", "dust", "mostly hole", "top left", "bottom right", *(f"rectangles {n}" for n in range(5))]
    masks = [MASKS[name][-26:, :24] if "right" in name else MASKS[name][:26, :24] for name in names]
    batch = random_levels(len(masks), 3, 26, 24, dtype=dtype)
    expected, got = fill(batch, masks), fill(batch, masks, inpaint.inpaint_reference)
    if dtype == torch.float64:  # a float64 root may be a bit off
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)
    else:
        assert torch.equal(got, expected)


def test_the_schedule_holds_each_filled_pixel_once():
    masks = np.stack([MASKS[name] for name in ("everything", "mostly hole", "rectangles 2")])
    plan = inpaint.march(masks)
    for order, schedule in zip(plan.order, plan.schedule, strict=True):
        filled = torch.nonzero((order.flatten() > 0) & (order.flatten() < 2**31 - 1)).flatten()
        assert torch.equal(schedule[schedule >= 0].sort().values.long(), filled)
    assert inpaint.march(masks[:1]).schedule.shape[1:] == plan.schedule.shape[1:]


def test_a_level_wider_than_a_step_is_split():
    mask = np.zeros((60, 80), bool)
    mask[2::5, 2::5] = True  # 192 pixels that do not read one another
    torch.set_num_threads(1)
    image = images.tensor(images.noise(60, 80))[None]
    plan = inpaint.march(mask[None])
    assert [int((step >= 0).sum()) for step in plan.schedule[0, :3]] == [128, 64, 0]
    assert torch.equal(inpaint.inpaint_reference(image, *plan), inpaint.inpaint(image, *plan))


def test_more_steps_than_usual(monkeypatch):
    image, mask = images.tensor(images.noise(16, 18))[None], MASKS["mostly hole"][:16, :18]
    assert inpaint.march(mask[None]).schedule.shape == (1, 6 * (16 + 18), 128)
    monkeypatch.setattr(inpaint, "_USUAL_STEPS", 20)
    plan = inpaint.march(mask[None])
    steps = plan.schedule.shape[1]
    assert steps > 20
    assert steps % 20 == 0
    assert (plan.schedule[0, :, 0] >= 0).sum() > steps - 20
    assert torch.equal(inpaint.inpaint_reference(image, *plan), inpaint.inpaint(image, *plan))


def test_floats_are_the_bytes_before_rounding():
    mask = np.zeros(SIZE, bool)
    mask[::8, ::8] = True  # no filled pixel reads another
    batch = images.batch(3, *SIZE)
    for dtype in (torch.float32, torch.float64):
        smooth = fill(batch.to(dtype), [mask] * 3)
        assert (smooth != smooth.round()).any()
        assert torch.equal(smooth.round().to(torch.uint8), fill(batch, [mask] * 3))
        assert smooth.min() >= 0
        assert smooth.max() <= 255


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (2, 2), (5, 6), (7, 6)])
def test_gradcheck(size):
    for seed in range(2):
        masks = np.random.default_rng(seed).random((2, *size)) < 0.5
        batch = random_levels(2, 3 - seed, *size, seed=seed).requires_grad_()
        plan = inpaint.march(masks)
        assert torch.autograd.gradcheck(lambda b, plan=plan: inpaint.inpaint(b, *plan), (batch,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_three_gradients_agree(dtype, monkeypatch):
    torch.set_num_threads(1)
    monkeypatch.setattr(inpaint, "_BLOCK", 3 * 128 * 10)  # ten steps
    size = (16, 18)
    plan = inpaint.march(np.stack([rectangles(size, 0, 2), rectangles(size, 5, 3), MASKS["dust"][:16, :18]]))
    batch = random_levels(3, 3, *size, dtype=dtype).requires_grad_()
    weight = random_levels(3, 3, *size, dtype=dtype, seed=1) / 100
    filled = inpaint.inpaint(batch, *plan)
    (expected,) = torch.autograd.grad(inpaint.inpaint_reference(batch, *plan), batch, weight)
    (got,) = torch.autograd.grad(filled, batch, weight)
    by_hand = inpaint.inpaint_backward_reference(weight, batch.detach(), filled.detach(), *plan)
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-9}
    torch.testing.assert_close(got, expected, **tolerance)
    torch.testing.assert_close(by_hand, expected, **tolerance)
    assert expected.abs().max() > 2


def test_gradient_of_a_clipped_or_flat_pixel():
    mask = MASKS["a pixel"]
    for level, total in ((255.0, 0.0), (100.0, 1.0)):  # 255 + 0.5 is clipped; in flat surroundings the bounded term gives nothing
        image = torch.full((1, 1, *SIZE), level, requires_grad=True)
        fill(image, [mask])[0, 0, 16, 20].backward()
        assert image.grad.sum().item() == pytest.approx(total)
        assert image.grad[0, 0, 16, 20] == 0
        assert image.grad.isfinite().all()


@pytest.mark.parametrize("contrast", [0.02, 100.0])
def test_the_bounded_term_is_held_fixed_near_its_kink(contrast):
    """Then the gradient is that of the weighted mean, which reads pixels up to 3 away, and not their gradients."""
    torch.set_num_threads(1)
    mask = np.zeros((9, 11), bool)
    mask[4, 5] = True
    start = torch.rand(1, 1, 9, 11, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * contrast + 50
    gradients = []
    for function in (inpaint.inpaint, inpaint.inpaint_reference):
        image = start.clone().requires_grad_()
        fill(image, [mask], function)[0, 0, 4, 5].backward()
        gradients.append(image.grad)
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-12)
    assert gradients[0].sum().item() == pytest.approx(1)
    assert (gradients[0][0, 0, 0, 5] != 0) == (contrast > 1)  # 4 pixels away


def test_gradients_do_not_grow_from_ring_to_ring():
    image = images.tensor(images.photograph(120, 160)).float()[None].requires_grad_()
    mask = np.zeros((120, 160), bool)
    mask[20:100, 20:140] = True
    fill(image, [mask]).sum().backward()
    assert 10 < image.grad.abs().max() < 1e4  # with every slope of the bounded term: 7e5
    assert image.grad.sum() / image.numel() == pytest.approx(1, rel=0.2)


def test_operator_is_well_behaved():
    torch.set_num_threads(1)
    plan = inpaint.march(np.stack([rectangles((8, 9), n, 2) for n in (1, 2)]))
    for dtype in (torch.uint8, torch.float32, torch.float64):
        batch = random_levels(2, 3, 8, 9, dtype=dtype).requires_grad_(dtype.is_floating_point)
        torch.library.opcheck(inpaint._inpaint, (batch, *plan))


def test_compiles_once_for_other_holes():
    compiled = torch.compile(inpaint.inpaint, fullgraph=True, backend="aot_eager")
    batch = random_levels(2, 3, *SIZE, dtype=torch.float32).requires_grad_()
    with torch._dynamo.config.patch(error_on_recompile=True):
        for names in (("dust", "nothing"), ("rectangles 3", "everything")):
            plan = inpaint.march(np.stack([MASKS[name] for name in names]))
            out, expected = compiled(batch, *plan), inpaint.inpaint(batch, *plan)
            assert torch.equal(out, expected)
            assert torch.equal(torch.autograd.grad(out.sum(), batch)[0], torch.autograd.grad(expected.sum(), batch)[0])


@pytest.mark.parametrize("name", MASKS)
def test_edge_equals_canny(name):
    expected = cv2.Canny(MASKS[name].astype(np.uint8) * 255, 50, 150) > 0
    assert np.array_equal(inpaint.edge(MASKS[name][None])[0], expected)


@pytest.mark.parametrize("seed", range(4))
def test_edge_of_masks_of_any_size_equals_canny(seed):
    rng = np.random.default_rng(seed)
    for n in range(40):
        size = tuple(rng.integers(1, 50, 2).tolist())
        masks = np.stack([rectangles(size, n), rectangles(size, n, 9), rng.random(size) < 0.1 * n / 4])
        masks[2] |= masks[0]
        expected = [cv2.Canny(mask.astype(np.uint8) * 255, 50, 150) > 0 for mask in masks]
        assert np.array_equal(inpaint.edge(masks), expected)
        assert np.array_equal(inpaint.edge(masks[:, ::2, ::-1]), inpaint.edge(masks[:, ::2, ::-1].copy()))


def test_edge_of_no_mask():
    assert inpaint.edge(np.zeros((0, 4, 5), bool)).shape == (0, 4, 5)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_darken(dtype):
    """Of every level, in images that are not contiguous, the bytes 0.29 * 100 and 0.57 * 100 are a level off in float32."""
    levels = torch.arange(256).view(1, 1, 16, 16).repeat(2, 3, 1, 1).to(dtype).transpose(2, 3)
    places = torch.from_numpy(np.random.default_rng(0).random((2, 1, 16, 16)) < 0.5)
    places[1] = ~places[0]
    for factor in (0.0, 0.01, 0.29, 0.57, 0.8, 1.0):
        got = inpaint.darken(levels, places, factor)
        expected = levels.double() * factor
        expected = expected.trunc() if dtype == torch.uint8 else expected
        torch.testing.assert_close(got, torch.where(places, expected.to(dtype), levels))
        torch.library.opcheck(inpaint._darken.operator, (levels, places, factor))
    assert inpaint.darken(levels[:0], places[:0], 0.5).shape == (0, 3, 16, 16)


def test_wrong_input():
    with pytest.raises(ValueError, match="masks: got uint8"):
        inpaint.march(np.zeros((1, 3, 4), np.uint8))
    with pytest.raises(ValueError, match="masks: got bool of shape"):
        inpaint.march(np.zeros((3, 4), bool))
    plan = inpaint.march(np.zeros((1, 3, 4), bool))
    with pytest.raises(TypeError, match=r"images: got torch\.float16"):
        inpaint.inpaint(torch.zeros(1, 3, 3, 4, dtype=torch.float16), *plan)
    with pytest.raises(ValueError, match="images: got shape"):
        inpaint.inpaint(torch.zeros(3, 3, 4), *plan)
    with pytest.raises(ValueError, match="order: got"):
        inpaint.inpaint(torch.zeros(1, 3, 4, 3), *plan)
    with pytest.raises(ValueError, match="distance: got"):
        inpaint.inpaint(torch.zeros(1, 3, 3, 4), plan.order, plan.order, plan.schedule)
