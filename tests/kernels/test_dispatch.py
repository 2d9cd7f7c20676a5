"""The gradient of floats through kernels with bodies of their own, as on CUDA, without CUDA: the references stand in for the bodies."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import degrade
from degrade.kernels import dispatch
from degrade.kernels.dispatch import Kernel
from tests import images, laws
from tests.fake_accelerator import kernel_modules

INTENSITIES = [0.95, 0.4]
KERNELS = {value for module in kernel_modules() for value in vars(module).values() if isinstance(value, Kernel)}
NAMES = [name for name in degrade.OPERATORS if name not in ("mean_shift", "watermark_damage")]  # whose operators have their own rules


def outcome(name: str, channels: int = 3, twice: bool = False) -> list[Tensor]:
    """The result, and the gradients (of the gradient) in image and intensity."""
    given = laws.as_floats(images.batch(2, 20, 28), torch.float64)[:, :channels].requires_grad_()
    intensity = torch.tensor(INTENSITIES, dtype=torch.float64, requires_grad=True)
    out = degrade.apply(given, name, intensity, seed=0)
    weights = torch.linspace(0.5, 1.5, out.numel(), dtype=out.dtype).view(out.shape)
    gradients = torch.autograd.grad((out * weights).sum(), [given, intensity], create_graph=twice, materialize_grads=True)
    if twice:
        slope = sum(g.square().sum() for g in gradients) + 0 * (given.sum() + intensity.sum())
        gradients += torch.autograd.grad(slope, [given, intensity], materialize_grads=True)
    return [out.detach(), *(g.detach() for g in gradients)]


def check(got: list[Tensor], wanted: list[Tensor], name: str) -> None:
    for one, other in zip(got, wanted, strict=True):
        laws.assert_near(one, other, 1e-9 * max(1, float(other.abs().max())), name)


@pytest.fixture
def called(monkeypatch) -> set[str]:
    """Floats go through the custom operators; the names of those whose gradient is by a body."""
    names: set[str] = set()

    def stand_in(kernel: Kernel) -> Any:
        def gradients(gradient: Tensor, *given: Any) -> tuple[Tensor, ...]:
            names.add(kernel.name)
            *arguments, wanted = given
            assert len(wanted) == len(arguments)
            return kernel._by_reference(gradient, arguments, [n for n, want in enumerate(wanted) if want])

        return gradients

    for kernel in KERNELS:
        monkeypatch.setattr(kernel, "_gradients", stand_in(kernel))
    monkeypatch.setattr(dispatch, "fused", lambda images: True)
    return names


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_bodies_are_told_what_is_wanted(name, channels, monkeypatch, request):
    wanted = outcome(name, channels)
    called = request.getfixturevalue("called")
    check(outcome(name, channels), wanted, name)
    assert called > {"to_levels", "from_levels"}, "no kernel of the operator's own"
    assert ("luma" in called) == (channels == 1 and degrade.OPERATORS[name].coloured)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_gradients(name, request):
    """By the references: the bodies' gradients have none."""
    wanted = outcome(name, twice=True)
    request.getfixturevalue("called")
    check(outcome(name, twice=True), wanted, name)


def test_each_kernel_has_its_bodies():
    for kernel in KERNELS:
        assert "cuda" in kernel.operator._backend_fns, kernel.name
        assert kernel._gradients is not None or kernel.name in ("blur_bytes", "mean_shift_edges"), kernel.name  # no gradient
