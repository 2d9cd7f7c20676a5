"""Every operator against every law, and every law against an operator that breaks it."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import types
from typing import Any

import pytest
import torch
from torch import Tensor

import degrade
from degrade import functional
from tests import broken, laws

CPU = torch.device("cpu")
LAWS = pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
OPERATORS = pytest.mark.parametrize("name", degrade.OPERATORS)


@LAWS
@OPERATORS
def test_law(name, law):
    law(name, CPU)


@pytest.mark.cuda
@LAWS
@OPERATORS
def test_law_on_cuda(name, law):
    law(name, torch.device("cuda", 0))


def test_importing_leaves_global_generators_alone():
    program = """
import pickle, random, numpy, torch
from tests import laws
with laws.global_generators_unchanged(torch.device("cpu")):
    import importlib, pkgutil, sys
    for name in [n for n in sys.modules if n.split(".")[0] == "degrade"]:
        del sys.modules[name]
    import degrade
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


BROKEN = (
    (laws.keeps_shape_dtype_and_device, broken.ReturnsDoubles, AssertionError),
    (laws.is_finite_and_in_range, broken.LeavesTheRange, AssertionError),
    (laws.is_finite_and_in_range, broken.DividesByIntensity, AssertionError),
    (laws.leaves_the_input_alone, broken.WritesInPlace, AssertionError),
    (laws.leaves_the_input_alone, broken.ReturnsItsInput, AssertionError),
    (laws.batch_equals_singles, broken.UsesTheBatchMean, AssertionError),
    (laws.keys_decide_and_order_does_not, broken.IgnoresTheKey, AssertionError),
    (laws.keys_decide_and_order_does_not, broken.Counts, AssertionError),
    (laws.lower_draws_begin_higher, broken.DrawsBackwards, AssertionError),
    (laws.replay_equals_apply, broken.RemembersItsDraws, AssertionError),
    (laws.records_survive_json, broken.DrawsNumpyNumbers, TypeError),
    (laws.survives_pickling, broken.HoldsALambda, (AttributeError, pickle.PicklingError)),
    (laws.strides_do_not_matter, broken.ReadsMemoryInOrder, AssertionError),
    (laws.sizes_from_one_pixel_up, broken.PadsTooMuch, RuntimeError),
    (laws.threads_do_not_matter, broken.CountsThreads, AssertionError),
    (laws.floats_are_near_bytes, broken.TwoFormulas, AssertionError),
    (laws.grey_is_the_luma_of_three_equal_channels, broken.MixesChannelsUnasked, AssertionError),
    (laws.a_seed_leaves_global_generators_alone, broken.UsesTorchsGenerator, AssertionError),
    (laws.a_seed_leaves_global_generators_alone, broken.UsesPythonsGenerator, AssertionError),
    (laws.without_a_seed_torch_decides, broken.IgnoresTheKey, AssertionError),
    (laws.without_a_seed_torch_decides, broken.UsesPythonsGenerator, AssertionError),
    (laws.gradients_reach_the_images, broken.LosesTheGradient, AssertionError),
)


def in_half_precision(images: Tensor, jobs: Any, gradient: Any, quantize: bool) -> Tensor:
    return (images * 0.3 + 0.1) * 0.7


# laws about what functional.py does around an operator: law, operator, what is broken there and how
BROKEN_AROUND = (
    (laws.takes_an_empty_batch, broken.Harmless, "_run", lambda images, *rest: images.amax() - images),
    (laws.autocast_does_not_matter, broken.MultipliesMatrices, "torch.autocast", contextlib.nullcontext),
    (laws.quantize_gives_the_bytes, broken.Halves, "quantize_.straight_through", lambda smooth, exact: smooth),
    (laws.half_precision_is_float_inside, broken.Halves, "_run", in_half_precision),
    (laws.severities_have_one_meaning, broken.Marked, "intensities_of", lambda values: values.double().tolist()),
)


def use(monkeypatch: pytest.MonkeyPatch, operator: Any) -> None:
    """Put ``operator`` into the table that ``degrade.apply`` reads."""
    monkeypatch.setattr(functional, "OPERATORS", {**degrade.OPERATORS, operator.name: operator})


@pytest.mark.parametrize(("law", "operator", "error"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_law_fails_on_a_broken_operator(law, operator, error, monkeypatch):
    use(monkeypatch, operator())
    with pytest.raises(error):
        law(operator.name, CPU)


@pytest.mark.parametrize(("law", "operator", "place", "instead"), BROKEN_AROUND, ids=lambda value: getattr(value, "__name__", ""))
def test_law_fails_where_functional_is_broken(law, operator, place, instead, monkeypatch):
    use(monkeypatch, operator())
    law(operator.name, CPU)
    if place == "torch.autocast":  # the law itself needs torch's
        monkeypatch.setattr(functional, "torch", types.SimpleNamespace(**{**vars(torch), "autocast": lambda *_, **__: instead()}))
    else:
        monkeypatch.setattr(f"degrade.functional.{place}", instead)
    with pytest.raises((AssertionError, IndexError, RuntimeError)):
        law(operator.name, CPU)


def test_every_law_is_seen_to_fail():
    assert {case[0] for case in BROKEN + BROKEN_AROUND} == set(laws.LAWS)


@LAWS
@pytest.mark.parametrize("operator", [broken.Harmless, broken.Marked, broken.Halves])
def test_law_holds_where_nothing_is_broken(law, operator, monkeypatch):
    use(monkeypatch, operator())
    law(operator.name, CPU)
