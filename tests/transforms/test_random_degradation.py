"""What ``RandomDegradation`` draws, records and refuses."""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys
from collections import Counter

import pytest
import torch
from torch import nn

import degrade
from degrade.mixture import MIXTURES, TRAINING_SEVERITIES
from tests import laws
from tests.fake_accelerator import Accelerator

QUICK = {"dark_illumination": 1, "scan_lines": 1, "gaussian_noise": 1, "block_exchange": 1, "graffiti": 1, "lens_blur": 1}
MANY = 3000


def names(count: int) -> list[str]:
    return [f"image {n}" for n in range(count)]


def draws(aug: degrade.RandomDegradation, count: int = MANY, epoch: int = 0) -> list:
    """Records of many images so small that only the draws cost time."""
    return aug(torch.zeros(count, 1, 2, 2, dtype=torch.uint8), keys=names(count), epoch=epoch, return_records=True)[1]


def assert_shares(found: Counter, weights: dict) -> None:
    """Counts within four standard deviations of what the weights say."""
    count, total = sum(found.values()), sum(weights.values())
    assert set(found) <= set(weights)
    for name, weight in weights.items():
        share = weight / total
        assert abs(found[name] - count * share) <= 4 * math.sqrt(count * share * (1 - share)), (name, found[name], count * share)


# -- what is drawn ----------------------------------------------------------------------------------------------------------------


def test_evaluation_looks_at_nothing() -> None:
    """Normalised floats are no images in [0, 1], and pass through a module that does nothing."""
    normalised = torch.full((2, 3, 8, 8), -2.0)
    module = degrade.RandomDegradation(p=1).eval()
    assert module(normalised) is normalised
    out, records = module(normalised, return_records=True)
    assert records == [None, None]
    assert torch.equal(out, normalised)


@pytest.mark.parametrize("p", [0, 0.25, 1])
def test_p_is_the_share_of_degraded_images(p):
    found = Counter(record is not None for record in draws(degrade.RandomDegradation({"scan_lines": 1}, p=p)))
    assert_shares(found, {True: p, False: 1 - p})


def test_weights_and_severities_are_shares():
    weights, severities = {"dark_illumination": 1, "scan_lines": 3, "sharpness_change": 0}, {"low": 2, 0.7: 8, "high": 0}
    records = draws(degrade.RandomDegradation(weights, p=1, severities=severities))
    assert_shares(Counter(r["operator"] for r in records), weights)
    assert_shares(Counter(r["intensity"] for r in records), {0.23: 2, 0.7: 8, 0.9: 0})
    # independent of each other
    assert_shares(Counter(r["intensity"] for r in records if r["operator"] == "dark_illumination"), {0.23: 2, 0.7: 8})


@pytest.mark.parametrize("name", MIXTURES)
def test_named_mixtures_have_the_weights_of_the_benchmark(name):
    aug = degrade.RandomDegradation(name, p=1)
    images = torch.zeros(400, 3, 2, 2, dtype=torch.uint8)
    records = aug(images, keys=names(400), return_records=True)[1]
    assert_shares(Counter(r["operator"] for r in records), dict(MIXTURES[name]))
    assert_shares(Counter(r["intensity"] for r in records), {degrade.SEVERITIES[s]: w for s, w in TRAINING_SEVERITIES.items()})


def test_the_order_of_weights_decides_nothing():
    backwards = dict(reversed(QUICK.items()))
    assert draws(degrade.RandomDegradation(QUICK), 50) == draws(degrade.RandomDegradation(backwards), 50)


def test_a_range_of_intensities():
    found = [r["intensity"] for r in draws(degrade.RandomDegradation({"scan_lines": 1}, p=1, intensity=(0.2, 0.6)))]
    assert all(0.2 <= i < 0.6 for i in found)
    assert_shares(Counter(int((i - 0.2) / 0.1) for i in found), dict.fromkeys(range(4), 1))


def test_one_severity():
    assert {r["intensity"] for r in draws(degrade.RandomDegradation(QUICK, p=1, severities="mid"), 20)} == {0.45}


def test_chains_of_different_operators():
    records = draws(degrade.RandomDegradation({"dark_illumination": 1, "scan_lines": 1, "block_exchange": 1}, p=1, chain=(1, 3)))
    assert_shares(Counter(map(len, records)), {1: 1, 2: 1, 3: 1})
    assert all(len({r["operator"] for r in chain}) == len(chain) for chain in records)
    first = Counter(chain[0]["operator"] for chain in records)
    assert_shares(first, dict.fromkeys(first, 1))
    steps = [[r["intensity"] for r in chain[:2]] for chain in records if len(chain) > 1]
    assert any(a != b for a, b in steps), "every step of a chain has the same intensity"


# -- records and replay -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", [1, 3, (1, 4)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_replay_equals_the_output(chain, dtype):
    images = laws.as_floats(laws.batch_for("", torch.device("cpu"), 8), dtype)
    aug = degrade.RandomDegradation(QUICK, p=0.7, chain=chain)
    out, records = aug(images, keys=names(8), return_records=True)
    assert None in records
    assert {type(r) for r in records if r is not None} == {dict if chain == 1 else list}
    laws.assert_same(degrade.replay(images, json.loads(json.dumps(records))), out, "replay")
    for n, record in enumerate(records):
        if record is None:
            laws.assert_same(out[n], images[n], f"untouched image {n}")
    assert not torch.equal(out, images)


def test_all_operators_in_one_batch():
    """Mixed groups give what each operator gives alone; the batch is long enough for every one to come up."""
    images = torch.randint(256, (40, 3, 24, 32), dtype=torch.uint8)
    out, records = degrade.RandomDegradation(dict.fromkeys(degrade.OPERATORS, 1), p=0.9)(images, keys=names(40), return_records=True)
    assert len({r["operator"] for r in records if r}) > len(degrade.OPERATORS) // 2
    for n, record in enumerate(records):
        laws.assert_same(out[n], degrade.replay(images[n], record), str(record and record["operator"]))


def test_a_single_image():
    image = laws.batch_for("", torch.device("cpu"), 1)[0]
    aug = degrade.RandomDegradation(QUICK, p=1, chain=2)
    out, records = aug(image, keys="a", return_records=True)
    laws.assert_same(out, aug(image[None], keys=["a"])[0], "alone")
    laws.assert_same(degrade.replay(image, records), out, "replay")


def test_an_empty_batch():
    out, records = degrade.RandomDegradation(p=1)(torch.empty(0, 3, 8, 8), return_records=True)
    assert out.shape == (0, 3, 8, 8)
    assert records == []


def test_quantize():
    images = laws.as_floats(laws.batch_for("", torch.device("cpu"), 4)).requires_grad_()
    smooth, rounded = (degrade.RandomDegradation(QUICK, p=1, quantize=q)(images, keys=names(4)) for q in (False, True))
    assert not torch.equal(smooth, rounded)
    assert torch.equal((rounded * 255).round() / 255, rounded)
    assert torch.autograd.grad(rounded.sum(), images)[0].abs().sum() > 0


def test_no_host_sync_on_a_device():
    images = laws.as_floats(laws.batch_for("", torch.device("cpu"), 6))
    aug = degrade.RandomDegradation({"dark_illumination": 1, "scan_lines": 1, "gaussian_noise": 1, "lens_blur": 1}, p=0.7, chain=(1, 2))
    with Accelerator(allowed_downloads=0) as accelerator:
        out = accelerator.fetch(aug(accelerator.put(images), keys=names(6)))
    torch.testing.assert_close(out, aug(images, keys=names(6)))


# -- randomness -------------------------------------------------------------------------------------------------------------------


def test_keys_epoch_and_seed_decide_alone():
    images = laws.batch_for("", torch.device("cpu"), 6)
    aug = degrade.RandomDegradation(QUICK, p=0.7, chain=(1, 2), seed=5)
    with laws.global_generators_unchanged(torch.device("cpu")):
        out, records = aug(images, keys=names(6), epoch=2, return_records=True)
    backwards = list(range(5, -1, -1))
    laws.assert_same(aug(images[backwards], keys=names(6)[::-1], epoch=2)[backwards], out, "another order")
    for n, key in enumerate(names(6)):
        laws.assert_same(aug(images[n], keys=key, epoch=2), out[n], "one image")
    others = [(aug, names(6), 3), (aug, names(7)[1:], 2), (degrade.RandomDegradation(QUICK, p=0.7, chain=(1, 2), seed=6), names(6), 2)]
    for other, keys, epoch in others:
        assert other(images, keys=keys, epoch=epoch, return_records=True)[1] != records
    assert aug(images, keys=names(6), return_records=True)[1] == aug(images, keys=names(6), epoch=0, return_records=True)[1]


def test_epochs_are_independent():
    aug = degrade.RandomDegradation({"dark_illumination": 1, "scan_lines": 1}, p=0.5)
    pairs = Counter((a is None, b is None) for a, b in zip(draws(aug, epoch=1), draws(aug, epoch=2), strict=True))
    assert_shares(pairs, {(a, b): 1 for a in (True, False) for b in (True, False)})

    aug = degrade.RandomDegradation({"gaussian_noise": 1, "block_exchange": 1}, p=1, severities={0.2: 1, 0.6: 1})
    first, second = draws(aug, epoch=1), draws(aug, epoch=2)
    for what in ("operator", "intensity"):
        pairs = Counter((a[what], b[what]) for a, b in zip(first, second, strict=True))
        values = sorted({a for a, _ in pairs})
        assert_shares(pairs, {(a, b): 1 for a in values for b in values})
    both = [(a["params"], b["params"]) for a, b in zip(first, second, strict=True) if a["operator"] == b["operator"] == "gaussian_noise"]
    assert all(a != b for a, b in both)


def test_without_keys_torch_decides():
    images = laws.batch_for("", torch.device("cpu"), 6)
    aug = degrade.RandomDegradation(QUICK, p=0.7)
    torch.manual_seed(1)
    first, second = aug(images, return_records=True), aug(images, return_records=True)
    torch.manual_seed(1)
    again = aug(images, return_records=True)
    assert first[1] == again[1] != second[1]
    laws.assert_same(again[0], first[0], "after torch.manual_seed")


# -- state ------------------------------------------------------------------------------------------------------------------------


def test_copies_are_the_same():
    images = laws.batch_for("", torch.device("cpu"), 4)
    model = nn.Sequential(degrade.RandomDegradation({"scan_lines": 2, "graffiti": 1}, p=0.8, chain=(1, 2), intensity=(0, 1), seed=3))
    loaded = nn.Sequential(degrade.RandomDegradation({"scan_lines": 2, "graffiti": 1}, p=0.8, chain=(1, 2), intensity=(0, 1), seed=3))
    loaded.load_state_dict(model.state_dict())
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), loaded):
        laws.assert_same(copied[0](images, keys=names(4)), model[0](images, keys=names(4)), "copy")
        assert repr(copied) == repr(model)


def test_state_dict_is_that_of_the_network():
    network = nn.Linear(2, 2)
    model = nn.Sequential(degrade.RandomDegradation(), network)
    assert set(model.state_dict()) == {"1.weight", "1.bias"}
    assert len(list(model.parameters())) == 2


def test_repr_tells_the_settings():
    aug = degrade.RandomDegradation({"graffiti": 1}, p=0.25, severities={"low": 1, 0.7: 3}, chain=1, quantize=True, seed=9)
    assert repr(aug) == (
        "RandomDegradation(mixture={'graffiti': 1}, p=0.25, severities={'low': 1.0, 0.7: 3.0}, chain=(1, 1), quantize=True, seed=9)"
    )
    assert "intensity=(0.1, 0.5)" in repr(degrade.RandomDegradation(intensity=(0.1, 0.5)))
    assert "mixture='mmd'" in repr(degrade.RandomDegradation("mmd"))


def test_off_after_eval():
    images = laws.batch_for("", torch.device("cpu"), 4)
    aug = degrade.RandomDegradation(QUICK, p=1).eval()
    out, records = aug(images, return_records=True)
    assert records == [None] * 4
    laws.assert_same(out, images, "after eval()")
    assert out.data_ptr() != images.data_ptr()
    assert None not in aug.train()(images, return_records=True)[1]


def test_import_does_not_need_torchvision():
    program = "import sys, degrade; assert 'torchvision' not in sys.modules; degrade.RandomDegradation; assert 'torchvision' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    with pytest.raises(AttributeError, match="no attribute 'RandomDegradations'"):
        degrade.RandomDegradations  # noqa: B018  the access alone raises


# -- what is refused --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mixture": "trainng"}, ValueError, r"mixture: got 'trainng'.*did you mean 'training'"),
        ({"mixture": {"lens_blurr": 1}}, ValueError, r"mixture: got 'lens_blurr'.*did you mean 'lens_blur'"),
        ({"mixture": {"lens_blur": -1}}, ValueError, r"mixture\['lens_blur'\]: got -1"),
        ({"mixture": {"lens_blur": float("nan")}}, ValueError, r"mixture\['lens_blur'\]: got nan"),
        ({"mixture": {"lens_blur": 0}}, ValueError, "mixture: .*at least one weight above 0"),
        ({"mixture": {}}, ValueError, "mixture: .*at least one weight above 0"),
        ({"mixture": ["lens_blur"]}, TypeError, "mixture: got list"),
        ({"p": 1.5}, ValueError, r"p: got 1.5, want a number in \[0, 1\]"),
        ({"p": float("nan")}, ValueError, "p: got nan"),
        ({"p": "half"}, TypeError, "p: got str"),
        ({"severities": {"hihg": 1}}, ValueError, "severities: got 'hihg'.*did you mean 'high'"),
        ({"severities": {"high": "much"}}, ValueError, r"severities\['high'\]: got 'much'"),
        ({"severities": {}}, ValueError, "severities: .*at least one weight above 0"),
        ({"severities": 1.2}, ValueError, "severities: got 1.2"),
        ({"severities": "low", "intensity": (0, 1)}, ValueError, "want one of the two"),
        ({"intensity": (0.5, 0.1)}, ValueError, r"intensity: got \(0.5, 0.1\), want the lower number first"),
        ({"intensity": (0, 2)}, ValueError, r"intensity\[1\]: got 2"),
        ({"intensity": 0.5}, TypeError, "intensity: got 0.5, want a pair"),
        ({"chain": 0}, ValueError, "chain: got 0, want 1 to"),
        ({"chain": (1, 99)}, ValueError, "chain: got"),
        ({"mixture": {"lens_blur": 1, "graffiti": 0}, "chain": 2}, ValueError, "chain: got 2, want 1 to 1, the operators"),
        ({"chain": 1.5}, TypeError, "chain: got 1.5, want a pair"),
        ({"seed": None}, TypeError, "seed: got NoneType, want an integer"),
    ],
)
def test_wrong_settings(arguments, error, message):
    with pytest.raises(error, match=message):
        degrade.RandomDegradation(**arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epoch": 1}, ValueError, "epoch: got 1 without keys"),
        ({"keys": ["a", "b"], "epoch": "1"}, TypeError, "epoch: got str"),
        ({"keys": ["a"]}, ValueError, "keys: got 1, want one for each of the 2 images"),
        ({"keys": [1, 2]}, TypeError, r"keys\[0\]: got int"),
    ],
)
def test_wrong_calls(arguments, error, message):
    with pytest.raises(error, match=message):
        degrade.RandomDegradation(QUICK)(torch.zeros(2, 3, 8, 8), **arguments)


def test_floats_out_of_range():
    with pytest.raises(ValueError, match=r"want \[0, 1\]"):
        degrade.RandomDegradation(QUICK)(torch.full((1, 3, 8, 8), 255.0))
    degrade.RandomDegradation(QUICK, check=False)(torch.full((1, 3, 8, 8), 255.0))
