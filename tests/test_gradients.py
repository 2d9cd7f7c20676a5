"""Gradients: numerically checked where the formula is smooth, and as documented where it is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError

import degrade
from degrade.kernels import quantize
from tests import laws

OPERATORS = pytest.mark.parametrize("name", degrade.OPERATORS)
SIZE = (7, 9)
# Sharpening saturates nearly everywhere but at the smallest intensities
_INTENSITY = {"sharpness_change": 0.0013}
CONTINUOUS = (
    "lens_blur",
    "lens_flare",
    "dirty_lens",
    "hsv_saturation",
    "dark_illumination",
    "atmospheric_turbulence",
    "gaussian_noise",
    "color_diffusion",
    "sharpness_change",
    "watermark_damage",
)


@pytest.fixture
def unrounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roundings replaced by what their gradients belong to."""
    monkeypatch.setattr(quantize, "straight_through", lambda smooth, exact: smooth)


def floats(count: int = 1, size: tuple[int, int] = SIZE) -> Tensor:
    """float64 in 0.35..0.65, without ties, away from clips."""
    generator = torch.Generator().manual_seed(1)
    return torch.rand(count, 3, *size, dtype=torch.float64, generator=generator) * 0.3 + 0.35


def record_for(name: str, intensity: float, size: tuple[int, int] = SIZE) -> dict[str, Any]:
    (record,) = laws.records_for(name, torch.zeros(1, 3, *size), intensity)
    return record


@OPERATORS
@pytest.mark.parametrize("intensity", [0.2345, 0.6789])
@pytest.mark.usefixtures("unrounded")
def test_gradient_in_the_image(name, intensity):
    record = record_for(name, _INTENSITY.get(name, intensity))
    given = floats().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: degrade.replay(x, [record]), given, eps=1e-6, atol=1e-6, rtol=1e-5, fast_mode=True)


def test_the_check_sees_a_rounding():
    """With its coefficients rounded, JPEG is flat nearly everywhere, and its gradient is not."""
    record = record_for("jpeg_compression", 0.2345)
    with pytest.raises(GradcheckError):
        torch.autograd.gradcheck(lambda x: degrade.replay(x, [record]), floats().requires_grad_(), eps=1e-6, atol=1e-6, fast_mode=True)


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n in degrade.OPERATORS])
@pytest.mark.parametrize("intensity", [0.2345, 0.6789])
@pytest.mark.usefixtures("unrounded")
def test_gradient_in_the_intensity(name, intensity):
    """Counts and sizes do not change within the step of the check; images share the batch."""
    size = (30, 70) if name == "watermark_damage" else (12, 16)
    given = floats(2, size) * 0.5 + 0.1
    first = _INTENSITY.get(name, intensity)
    severity = torch.tensor([first, first * 1.03], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda s: degrade.apply(given, name, s, seed=0), severity, eps=1e-7, atol=1e-5, rtol=1e-4, fast_mode=True
    )


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n in degrade.OPERATORS])
def test_gradient_reaches_a_severity_of_any_dtype(name):
    size = (30, 70) if name == "watermark_damage" else (12, 16)
    for dtype in (torch.float32, torch.float64):
        for quantized in (False, True):
            severity = torch.tensor([0.3, 0.62], dtype=dtype, requires_grad=True)
            given = floats(2, size)
            out = degrade.apply(given, name, severity, seed=0, quantize=quantized)
            plain = degrade.apply(given, name, [0.3, 0.62], seed=0, quantize=quantized)
            laws.assert_near(out.detach(), plain, 1e-12, "a gradient does not move the values")
            (gradient,) = torch.autograd.grad(out.square().sum(), severity)
            assert gradient.dtype == dtype
            assert gradient.isfinite().all()
            assert gradient.abs().min() > 0 or name == "sharpness_change"  # saturated


@OPERATORS
@pytest.mark.parametrize("severity", degrade.SEVERITIES)
def test_quantize_keeps_the_gradient(name, severity):
    """On inputs on the 8-bit grid, where the rounding of the input does nothing."""
    given = laws.as_floats(laws.batch_for(name, torch.device("cpu"), 2), torch.float64)
    weights = floats(2, tuple(given.shape[-2:]))
    gradients = []
    for quantized in (False, True):
        leaf = given.clone().requires_grad_()
        out = degrade.apply(leaf, name, severity, seed=0, quantize=quantized)
        (gradient,) = torch.autograd.grad((out * weights).sum(), leaf)
        gradients.append(gradient)
    laws.assert_near(gradients[1], gradients[0], 1e-9, "quantize")


def test_no_gradient_under_graffiti():
    black, white = torch.zeros(1, 3, 120, 200), torch.ones(1, 3, 120, 200)
    for severity in ("mid", "high"):
        dark, light = (degrade.apply(x, "graffiti", severity, seed=4) for x in (black, white))
        covered = (dark == light).all(1, keepdim=True)
        assert 0 < covered.sum() < covered.numel()
        leaf = (black + 0.5).requires_grad_()
        (gradient,) = torch.autograd.grad(degrade.apply(leaf, "graffiti", severity, seed=4).sum(), leaf)
        assert torch.equal(gradient, (~covered).float().expand_as(gradient))


def test_no_gradient_through_spots_of_color_diffusion():
    """Under a spot only the part that is not blurred counts."""
    leaf = torch.full((1, 3, 40, 40), 0.5, dtype=torch.float64, requires_grad=True)
    record = {"operator": "color_diffusion", "intensity": 0.95, "params": {"spots": [[20, 20, 60, 100]]}}
    (gradient,) = torch.autograd.grad(degrade.replay(leaf, [record]).sum(), leaf)
    torch.testing.assert_close(gradient, torch.full_like(gradient, 1 - 0.9 * 0.95))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_gradient_at_the_ends_of_the_range_is_that_of_the_inside(value):
    leaf = torch.full((1, 3, 4, 4), value, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(degrade.apply(leaf, "dark_illumination", 0.5, seed=0).sum(), leaf)
    torch.testing.assert_close(gradient, torch.full_like(gradient, 0.75))


@pytest.mark.parametrize("value", [-0.0005, 1.0005])
def test_no_gradient_outside_the_range(value):
    leaf = torch.full((1, 3, 4, 4), value, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(degrade.apply(leaf, "dark_illumination", 0.5, seed=0).sum(), leaf)
    assert not gradient.any()


def test_no_gradient_where_noise_is_clipped():
    leaf = torch.full((1, 3, 60, 60), 0.5, dtype=torch.float64, requires_grad=True)
    out = degrade.apply(leaf, "gaussian_noise", 1.0, seed=0)
    (gradient,) = torch.autograd.grad(out.sum(), leaf)
    clipped = (out == 0) | (out == 1)
    assert 0.02 < clipped.double().mean() < 0.2  # beyond 1.7 deviations of 75 levels
    torch.testing.assert_close(gradient, (~clipped).double())


def test_gradient_where_sharpening_saturates():
    leaf = floats(1, (20, 20)).requires_grad_()
    out = degrade.apply(leaf, "sharpness_change", "high", seed=0)
    saturated = torch.isclose(out, 0.7 * leaf) | torch.isclose(out, 0.7 * leaf + 0.3)
    assert saturated.double().mean() > 0.95
    (gradient,) = torch.autograd.grad((out * saturated).sum(), leaf)
    torch.testing.assert_close(gradient[saturated], torch.full_like(gradient[saturated], 0.7))


def test_straight_through_gradient_is_that_of_the_smooth_function():
    """What the patch above stands for: values of one, gradient of the other, also to the second order."""
    leaf = floats().requires_grad_()
    value = quantize.straight_through(leaf.sin(), torch.zeros_like(leaf))
    assert not value.any()
    (gradient,) = torch.autograd.grad(value.sum(), leaf, create_graph=True)
    torch.testing.assert_close(gradient, leaf.cos())
    (second,) = torch.autograd.grad(gradient.sum(), leaf)
    torch.testing.assert_close(second, -leaf.sin())
