"""``torch.compile`` takes every operator in one piece, and other draws do not compile anew."""

from __future__ import annotations

import pytest
import torch
import torch._dynamo.testing
from torch import Tensor

import degrade
from degrade.draws import Stream
from degrade.operator import Operator, Plan
from tests import broken, images, laws

# Operators that compile anew for other draws of the same size and intensities, with the reason
RECOMPILES: dict[str, str] = {}

_SIZE = (24, 60)
INTENSITIES = [0.9, 0.45]


def plan_for(operator: Operator, keys: str) -> Plan:
    params = [operator.draw(_SIZE, i, Stream(0, key, operator.name)) for i, key in zip(INTENSITIES, keys, strict=True)]
    return operator.plan(_SIZE, INTENSITIES, params)


def run_compiled(operator: Operator, given: Tensor, draws: tuple[str, ...]) -> int:
    """Compare compiled with eager, forward and backward, for each pair of keys; the number of graphs that were compiled."""
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(operator.apply, fullgraph=True, backend=counter)
    for keys in draws:
        plan, outcomes = plan_for(operator, keys), []
        for apply in (operator.apply, compiled):
            image = given.clone().requires_grad_(given.is_floating_point())
            intensity = torch.tensor(INTENSITIES, dtype=torch.float64).requires_grad_(given.is_floating_point())
            out = apply(image, plan, intensity)
            if out.requires_grad:
                (out * torch.linspace(0.5, 1.5, out.numel(), dtype=out.dtype).view(out.shape)).sum().backward()
            outcomes.append((out.detach(), image.grad, intensity.grad))
        (eager, gradient, slope), (got, got_gradient, got_slope) = outcomes
        if not given.is_floating_point():
            laws.assert_same(got, eager, f"keys {keys}")
            continue
        laws.assert_near(got, eager, 1e-3, f"keys {keys}")
        laws.assert_near(got_gradient, gradient, 1e-5 * float(gradient.abs().max()), f"gradient, keys {keys}")
        if slope is None:
            assert got_slope is None or not got_slope.any()
        else:
            laws.assert_near(got_slope, slope, 1e-4 * float(slope.abs().max()), f"gradient in the intensity, keys {keys}")
    return int(counter.frame_count)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("name", degrade.OPERATORS)
def test_other_draws_do_not_compile_anew(name, dtype):
    given = laws.as_floats(images.batch(2, *_SIZE), dtype)
    given = given * 255 if dtype.is_floating_point else given
    with torch._dynamo.config.patch(error_on_recompile=name not in RECOMPILES):
        graphs = run_compiled(degrade.OPERATORS[name], given, ("ab", "cd", "ef"))
    assert (graphs > 1) == (name in RECOMPILES)


@pytest.mark.parametrize("name", degrade.OPERATORS)
def test_apply_and_replay_run_as_they_are(name):
    """What they draw and plan on the host is not for the compiler."""
    torch._dynamo.reset()
    given = images.batch(2, *_SIZE)
    out, records = degrade.apply(given, name, "low", seed=0, return_records=True)
    for work in (lambda x: degrade.apply(x, name, "low", seed=0), lambda x: degrade.replay(x, records)):
        laws.assert_same(torch.compile(work, backend="eager")(given), out, name)


def test_the_test_sees_a_recompilation():
    with torch._dynamo.config.patch(error_on_recompile=True), pytest.raises(torch._dynamo.exc.RecompileError):
        run_compiled(broken.BranchesOnPlan(), images.batch(2, *_SIZE), ("ab", "cd"))


def test_the_test_sees_a_graph_break():
    with pytest.raises((torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError)):
        run_compiled(broken.LooksAtTheValues(), images.batch(2, *_SIZE), ("ab",))
