"""Graffiti against OpenCV's lines and text."""

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from degrade.draws import Stream
from degrade.operators.postprocessing.graffiti import WORDS, Graffiti, Params, Text

GRAFFITI = Graffiti()
HIGH = 0.9


def drawn(size: tuple[int, int], intensity: float, key: str = "a") -> Params:
    return GRAFFITI.draw(size, intensity, Stream(0, key, GRAFFITI.name))


def run(images: Tensor, params: list[Params], intensity: float = HIGH) -> Tensor:
    plan = GRAFFITI.plan((images.shape[2], images.shape[3]), [intensity] * len(params), params)
    return GRAFFITI.apply(images, plan, torch.full((len(params),), intensity, dtype=torch.float64))


def published(image: Tensor, params: Params) -> Tensor:
    canvas = image.permute(1, 2, 0).contiguous().numpy().copy()
    for x1, y1, x2, y2, thickness, *colour in params.strokes:
        # one fractional bit, which is 0: without it OpenCV 4.8 and later cut thick lines in another way than 4.7
        cv2.line(canvas, (2 * x1, 2 * y1), (2 * x2, 2 * y2), colour, thickness, shift=1)
    if text := params.text:
        cv2.putText(canvas, text.string, (text.x, text.y), cv2.FONT_HERSHEY_SIMPLEX, text.scale, (255, 0, 0), text.thickness)
    return torch.from_numpy(canvas).permute(2, 0, 1)


def random_images(count: int, height: int, width: int) -> Tensor:
    return torch.randint(0, 256, (count, 3, height, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("intensity", [0.23, 0.45, 0.7, HIGH, 1.0])
def test_equals_opencv(intensity):
    images = random_images(12, 200, 330)
    params = [drawn((200, 330), intensity, str(n)) for n in range(12)]
    for image, p, got in zip(images, params, run(images, params, intensity), strict=True):
        assert torch.equal(got, published(image, p)), p


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (40, 1), (2, 3)])
def test_tiny_images(size):
    images = random_images(1, *size)
    params = drawn(size, 1.0)
    assert params.text is None
    assert torch.equal(run(images, [params])[0], published(images[0], params))


def test_draws_follow_the_formulas():
    size = (150, 300)
    assert [len(drawn(size, i).strokes) for i in (0.0, 0.05, 0.23, 0.45, HIGH, 1.0)] == [0, 0, 2, 4, 9, 10]
    many = [drawn(size, HIGH, str(n)) for n in range(300)]
    strokes = np.array([s for p in many for s in p.strokes])
    assert strokes.min(0).tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
    assert strokes.max(0).tolist() == [299, 149, 299, 149, 4, 255, 255, 255]
    texts = [p.text for p in many]
    assert all(t.scale == 4.5 and t.thickness == 4 and 106 <= t.y <= 140 for t in texts)
    fake = [t.x for t in texts if t.string == "FAKE"]
    assert set(fake) == {0, 1}  # 346 pixels wide: no room
    alone = [t.x for t in texts if t.string == "X"]
    assert 0 <= min(alone) < 20
    assert 170 < max(alone) <= 300 - 94 - 10
    counts = [sum(t.string == word for t in texts) for word in WORDS]
    numbers = {int(t.string) for t in texts if t.string not in WORDS}
    assert numbers <= set(range(1, 101))
    assert len(numbers) > 25
    assert all(25 < c < 80 for c in [*counts, len(texts) - sum(counts)])


def test_text_needs_intensity_and_room():
    assert drawn((400, 400), 0.55).text is None
    text = drawn((400, 400), 0.56).text
    assert (text.scale, text.thickness) == (pytest.approx(2.8), 2)
    assert drawn((116, 400), HIGH).text is None  # the text is 96 high: 116 - 10 <= 96 + 10
    assert drawn((117, 400), HIGH).text.y in (106, 107)


def test_marks_of_a_lower_severity_are_the_first_of_a_higher_one():
    low, high = drawn((300, 300), 0.23).strokes, drawn((300, 300), HIGH).strokes
    for a, b in zip(low, high[:2], strict=True):
        assert a[:4] + a[5:] == b[:4] + b[5:]
    assert drawn((300, 300), 0.6).text.string == drawn((300, 300), HIGH).text.string


def test_gradient_is_that_of_the_uncovered_pixels():
    images = random_images(2, 60, 90).double().requires_grad_()
    params = [drawn((60, 90), HIGH, key) for key in "ab"]
    out = run(images, params)
    out.sum().backward()
    covered = (run(torch.zeros(2, 3, 60, 90), params) == run(torch.ones(2, 3, 60, 90), params)).all(1, keepdim=True)
    assert torch.equal(images.grad, (~covered).expand_as(images).double())
    assert covered.any()


def test_more_marks_than_levels():
    stroke = (3, 4, 3, 4, 1)
    params = Params(tuple((*stroke, n // 256, n % 256, 7) for n in range(600)), None)
    out = run(random_images(1, 9, 9), [params])
    assert out[0, :, 4, 3].tolist() == [599 // 256, 599 % 256, 7]


@pytest.mark.parametrize("count", [253, 254, 255, 509])
def test_more_marks_than_a_byte_can_number(count):
    size, rng = (90, 120), np.random.default_rng(count)
    strokes = rng.integers([0, 0, 0, 0, 1, 0, 0, 0], [120, 90, 120, 90, 5, 256, 256, 256], (count, 8))
    many = Params(tuple(map(tuple, strokes.tolist())), Text("X", 20, 80, 2.0, 3))
    params = [drawn(size, HIGH), many, Params(many.strokes[:3], many.text)]
    images = random_images(3, *size)
    for image, p, got in zip(images, params, run(images, params), strict=True):
        assert torch.equal(got, published(image, p))


def test_a_plan_has_the_same_shapes_for_all_draws():
    plans = [GRAFFITI.plan((40, 50), [i], [drawn((40, 50), i, key)]) for i in (0.3, 0.9) for key in "ab"]
    shapes = [{name: tuple(t.shape) for name, t in plan.items()} for plan in plans]
    assert shapes[0] == shapes[1] == {"canvas": (1, 1, 40, 50), "palette": (1, 1, 4, 3)}
    assert shapes[2] == shapes[3] == {"canvas": (1, 1, 40, 50), "palette": (1, 1, 10, 3)}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (Params(((0, 0, 1, 1, 0, 9, 9, 9),), None), r"strokes\[0\]\[4\]: got 0, want 1\.\."),
        (Params(((0, 0, 1, 1, 1, 9, 9, 256),), None), r"strokes\[0\]\[7\]: got 256, want 0\.\.255"),
        (Params((), Text("FAKE!", 0, 0, 1.0, 1)), "got '!' in 'FAKE!'"),
        (Params((), Text("X", 0, 0, float("nan"), 1)), "got nan"),
        (Params((), Text("X", 0, 0, 1.0, 0)), r"text\['thickness'\]: got 0"),
    ],
)
def test_check(params, message):
    with pytest.raises(ValueError, match=message):
        GRAFFITI.check((10, 10), HIGH, params)
    GRAFFITI.check((10, 10), HIGH, drawn((200, 200), HIGH))
