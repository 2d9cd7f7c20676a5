"""What holds for every operator, each law once.

A law is a function of an operator's name and a device; it raises ``AssertionError`` where the operator breaks it.  ``test_laws.py``
runs all of them over all operators, and each of them over an operator that breaks it.
"""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

import degrade
from degrade import functional
from degrade.draws import Stream
from degrade.operators.transmission.block_exchange import block_size
from degrade.record import to_plain
from tests import images as pictures

Law = Callable[[str, torch.device], None]
SEED = 11
SEVERITIES = tuple(degrade.SEVERITIES)
INTENSITIES = (0.0, 0.01, 0.1, 0.23, 0.45, 0.5, 0.62, 0.9, 0.93, 1.0)
SIZES = ((1, 1), (1, 2), (2, 1), (1, 64), (64, 1), (7, 13), (33, 37), (49, 200))
DTYPES = (torch.uint8, torch.float32, torch.float64, torch.float16, torch.bfloat16)
# watermark_damage draws rectangles of at least 50 x 20 pixels, and should leave some pixels around them
_LAW_SIZE = {"watermark_damage": (60, 110)}
_DEFAULT_SIZE = (25, 42)

# Mean and greatest difference in levels between the smooth formula and the published pixels, where roundings are few and gentle; others
# round hue, coefficients or positions, which moves single pixels farther, but not the mean.
_FLOAT_DISTANCE = {
    "hsv_saturation": (4.0, 40.0),
    "jpeg_compression": (4.0, 255.0),
    "mean_shift": (6.0, 255.0),
    "watermark_damage": (1.0, 12.0),
}
_DEFAULT_DISTANCE = (1.0, 1.5)


def size_for(name: str) -> tuple[int, int]:
    return _LAW_SIZE.get(name, _DEFAULT_SIZE)


def batch_for(name: str, device: torch.device, count: int = 3) -> Tensor:
    return pictures.batch(count, *size_for(name)).to(device)


def records_for(name: str, images: Tensor, severity: Any) -> list[dict[str, Any]]:
    """Drawn records; those of watermark_damage with small rectangles, since the drawn ones would cover all of a small image."""
    _, records = _apply_recorded(images, name, severity)
    if name == "watermark_damage":
        return [{**r, "params": {"rectangles": [[2, 2, 5, 4], [5, 3, 6, 5]]}} for r in records]
    return records


def as_floats(images: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """uint8 images in another dtype, floats on the 8-bit grid of [0, 1]."""
    return images if dtype == torch.uint8 else (images.double() / 255).to(dtype)


def assert_same(got: Tensor, wanted: Tensor, what: str) -> None:
    """Equal shapes, dtypes, devices and bits."""
    for attribute in ("shape", "dtype", "device"):
        if getattr(got, attribute) != getattr(wanted, attribute):
            raise AssertionError(f"{what}: {attribute} {getattr(got, attribute)}, want {getattr(wanted, attribute)}")
    if not torch.equal(got, wanted):
        distance = (got.double() - wanted.double()).abs()
        raise AssertionError(f"{what}: {int((distance > 0).sum())} of {got.numel()} values differ, by up to {distance.max():g}")


def assert_near(got: Tensor, wanted: Tensor, tolerance: float, what: str) -> None:
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise AssertionError(f"{what}: {got.dtype} {tuple(got.shape)}, want {wanted.dtype} {tuple(wanted.shape)}")
    if got.numel() and not (distance := (got.double() - wanted.double()).abs().max()) <= tolerance:
        raise AssertionError(f"{what}: differs by {distance:g}, more than {tolerance:g}")


def _require(condition: object, what: str) -> None:
    if not condition:
        raise AssertionError(what)


def _apply(images: Tensor, name: str, severity: Any = "mid", **options: Any) -> Tensor:
    return degrade.apply(images, name, severity, **{"seed": SEED, **options})


def _apply_recorded(images: Tensor, name: str, severity: Any = "mid", **options: Any) -> tuple[Tensor, list[dict[str, Any]]]:
    return degrade.apply(images, name, severity, return_records=True, **{"seed": SEED, **options})


def _draws(name: str) -> bool:
    """Whether the operator draws something at mid severity."""
    _, (record,) = _apply_recorded(torch.zeros(3, *size_for(name), dtype=torch.uint8), name)
    return any(value not in (None, [], {}) for value in record["params"].values())


# -- what comes out ---------------------------------------------------------------------------------------------------------------


def keeps_shape_dtype_and_device(name: str, device: torch.device) -> None:
    images = batch_for(name, device, 2)
    for dtype in DTYPES:
        given = as_floats(images, dtype)
        for shaped in (given, given[0], given[:, :1], given[0, :1]):
            for quantize in (False, True):
                out = _apply(shaped, name, quantize=quantize)
                got, wanted = (out.shape, out.dtype, out.device), (shaped.shape, shaped.dtype, shaped.device)
                _require(got == wanted, f"{dtype} {tuple(shaped.shape)}: got {got}")


def takes_an_empty_batch(name: str, device: torch.device) -> None:
    for dtype in DTYPES:
        for channels in (1, 3):
            empty = torch.empty(0, channels, 20, 30, dtype=dtype, device=device)
            for quantize in (False, True):
                out, records = _apply_recorded(empty, name, quantize=quantize)
                _require(out.shape == empty.shape and out.dtype == dtype and records == [], f"{dtype}: got {out.dtype} {tuple(out.shape)}")
                assert_same(degrade.replay(empty, records, quantize=quantize), empty, "replay")


def is_finite_and_in_range(name: str, device: torch.device) -> None:
    images = batch_for(name, device)
    images[..., :3, :3], images[..., -3:, -3:] = 0, 255
    slightly_outside = as_floats(images) * (1 + 1e-3) - 5e-4
    for intensity in INTENSITIES:
        for given in (as_floats(images), slightly_outside, as_floats(images, torch.float16)):
            out = _apply(given, name, intensity)
            _require(out.isfinite().all(), f"intensity {intensity}: not finite")
            _require(out.min() >= 0 and out.max() <= 1, f"intensity {intensity}: in [{out.min():g}, {out.max():g}]")


def leaves_the_input_alone(name: str, device: torch.device) -> None:
    for dtype in (torch.uint8, torch.float32, torch.float64):
        given = as_floats(batch_for(name, device), dtype)
        before = given.clone()
        for severity in (0.0, "high"):
            for quantize in (False, True)[: 1 + dtype.is_floating_point]:
                out, records = _apply_recorded(given, name, severity, quantize=quantize)
                assert_same(given, before, "the input")
                out.fill_(0)
                assert_same(given, before, "the input, after writing to the output")
                degrade.replay(given, records, quantize=quantize).fill_(0)
                assert_same(given, before, "the input, after replay")


# -- what decides it --------------------------------------------------------------------------------------------------------------


def batch_equals_singles(name: str, device: torch.device) -> None:
    """Bit for bit for bytes; within rounding for floats; with other intensities, keys and operators in the batch."""
    images = batch_for(name, device, 4)
    keys = ["a", "b", "c", "d"]
    other = "scan_lines" if name != "scan_lines" else "dark_illumination"
    for severities in (["high", "low", "mid", 0.0], ["high"] * 4, [0.3, 1.0, 0.93, 0.01]):
        for operators in ([name] * 4, [name, other, name, other]):
            out = degrade.apply(images, operators, severities, seed=SEED, keys=keys)
            floats = degrade.apply(as_floats(images), operators, severities, seed=SEED, keys=keys)
            for n in range(4):
                alone = degrade.apply(images[n], operators[n], severities[n], seed=SEED, keys=[keys[n]])
                assert_same(out[n], alone, f"image {n} of {operators} at {severities}")
                alone = degrade.apply(as_floats(images[n]), operators[n], severities[n], seed=SEED, keys=[keys[n]])
                assert_near(floats[n], alone, 1e-5, f"floats, image {n} of {operators} at {severities}")


def keys_decide_and_order_does_not(name: str, device: torch.device) -> None:
    images = batch_for(name, device)
    keys = ["one", "two", "three"]
    out, records = _apply_recorded(images, name, keys=keys)
    again = _apply(images, name, keys=keys)
    assert_same(again, out, "a second call")
    order = [2, 0, 1]
    turned, turned_records = _apply_recorded(images[order], name, keys=[keys[n] for n in order])
    assert_same(turned, out[order], "another order")
    _require(turned_records == [records[n] for n in order], "another order: other records")
    if _draws(name):
        seen = [r["params"] for r in records]
        seen.append(_apply_recorded(images[:1], name, keys=["one"], seed=SEED + 1)[1][0]["params"])
        for n, params in enumerate(seen):
            _require(params not in seen[:n], f"two keys or seeds drew the same: {params}")


def lower_draws_begin_higher(name: str, device: torch.device) -> None:
    """low's marks are the first of mid's, mid's of high's; where a range grows with the intensity, one uniform u explains both."""
    operator, size = functional.OPERATORS[name], (200, 300)
    for key in "abc":
        drawn = [(i, to_plain(operator.draw(size, i, Stream(SEED, key, name)))) for i in degrade.SEVERITIES.values()]
        for (low, params), (high, more) in itertools.pairwise(drawn):
            for field, value in params.items():
                ranges = [_growing_ranges(name, field, i, size) for i in (low, high)]
                _require_beginning(field, value, more[field], ranges)


def _require_beginning(field: str, value: Any, longer: Any, ranges: list[dict[int, tuple[int, int]]]) -> None:
    if not isinstance(value, list):
        _require(value is None or value == longer, f"{field}: {value} and {longer}")
        return
    _require(len(value) <= len(longer), f"{field}: {len(value)} marks, then {len(longer)}")
    for mark, same in zip(value, longer, strict=False):
        for column, (a, b) in enumerate(zip(mark, same, strict=True)):
            if column in ranges[0]:
                (first, m), (_, n) = ranges[0][column], ranges[1][column]
                overlap = max((a - first) / m, (b - first) / n) < min((a - first + 1) / m, (b - first + 1) / n)
                _require(overlap, f"{field}: no u gives {a} of {m} values and {b} of {n}")
            else:
                _require(a == b, f"{field}: {mark} and {same}")


def _growing_ranges(name: str, field: str, intensity: float, size: tuple[int, int]) -> dict[int, tuple[int, int]]:
    """Column -> (smallest value, number of values), for the numbers whose range the intensity sets."""
    if (name, field) == ("block_exchange", "swaps"):
        block = block_size(size, intensity)
        rows, columns = size[0] // block, size[1] // block
        return {0: (0, rows), 1: (0, columns), 2: (0, rows), 3: (0, columns)}
    if (name, field) == ("graffiti", "strokes"):
        return {4: (1, max(1, int(5 * intensity)))}
    return {}


def replay_equals_apply(name: str, device: torch.device) -> None:
    images = batch_for(name, device)
    for severity in (*SEVERITIES, 0.0, 0.37, 1.0):
        for given, quantize in ((images, False), (as_floats(images), False), (as_floats(images), True)):
            out, records = _apply_recorded(given, name, severity, keys=["x", "y", "z"], quantize=quantize)
            order = [1, 2, 0]
            replayed = degrade.replay(given[order], [records[n] for n in order], quantize=quantize)
            if given.dtype == torch.uint8:
                assert_same(replayed, out[order], f"severity {severity}")
            else:
                assert_near(replayed, out[order], 1e-5, f"floats, severity {severity}")
            assert_same(degrade.replay(given, records, quantize=quantize), out, f"severity {severity}")
    first, records = _apply_recorded(images, name, "low", keys=["x", "y", "z"])
    twice, more = _apply_recorded(first, name, "mid", keys=["x", "y", "z"])
    chains = [[records[0], more[0]], None, [records[2]]]
    chained = degrade.replay(images, chains)
    for n, wanted in enumerate((twice[0], images[1], first[2])):
        assert_same(chained[n], wanted, f"chain {n}")


def records_survive_json(name: str, device: torch.device) -> None:
    images = batch_for(name, device)
    for severity in (0.0, *SEVERITIES, 1.0):
        out, records = _apply_recorded(images, name, severity)
        text = json.dumps(records, allow_nan=False)
        _require(json.loads(text) == records, f"severity {severity}: {records} became {json.loads(text)}")
        _require(all(set(r) == {"operator", "intensity", "params"} for r in records), f"fields: {records[0]}")
        assert_same(degrade.replay(images, json.loads(text)), out, f"severity {severity}")


def survives_pickling(name: str, device: torch.device) -> None:
    operator = functional.OPERATORS[name]
    for copied in (pickle.loads(pickle.dumps(operator)), copy.deepcopy(operator)):
        _require(type(copied) is type(operator) and copied.name == name, f"got {copied!r}")
        params = copied.draw((40, 60), 0.45, Stream(SEED, "k", name))
        _require(params == operator.draw((40, 60), 0.45, Stream(SEED, "k", name)), "the copy draws differently")
        _require(pickle.loads(pickle.dumps(params)) == params, "parameters change in pickling")
    _, records = _apply_recorded(batch_for(name, device), name)
    _require(pickle.loads(pickle.dumps(records)) == records == copy.deepcopy(records), "records change in pickling")


def strides_do_not_matter(name: str, device: torch.device) -> None:
    for dtype in (torch.uint8, torch.float32):
        plain = as_floats(batch_for(name, device, 2), dtype)
        batch, channels, height, width = plain.shape
        wide = torch.zeros(2 * batch, channels, height + 3, 2 * width, dtype=dtype, device=device)
        sliced = wide[::2, :, 1 : height + 1, 1::2]
        sliced.copy_(plain)
        turned = torch.flip(plain, (-1,)).transpose(2, 3).contiguous().transpose(2, 3)
        variants = {
            "channels_last": (plain.contiguous(memory_format=torch.channels_last), plain),
            "a slice": (sliced, plain),
            "transposed": (turned, torch.flip(plain, (-1,))),
            "expanded": (plain[:1, :1].expand(2, 3, -1, -1), plain[:1, :1].repeat(2, 3, 1, 1)),
        }
        for what, (given, contiguous) in variants.items():
            for quantize in (False, True)[: 1 + dtype.is_floating_point]:
                got, wanted = (_apply(x, name, "high", quantize=quantize) for x in (given, contiguous))
                if dtype == torch.uint8 or quantize:
                    assert_same(got, wanted, f"{what}, {dtype}")
                else:
                    assert_near(got, wanted, 1e-5, f"{what}, {dtype}")


def sizes_from_one_pixel_up(name: str, device: torch.device) -> None:
    for height, width in SIZES:
        images = pictures.batch(2, height, width).to(device)
        for severity in (0.0, "low", "high", 1.0):
            out, records = _apply_recorded(images, name, severity)
            _require(out.shape == images.shape, f"{height} x {width} at {severity}: shape {tuple(out.shape)}")
            assert_same(degrade.replay(images, records), out, f"{height} x {width} at {severity}")
            floats = _apply(as_floats(images), name, severity)
            _require(floats.isfinite().all(), f"{height} x {width} at {severity}: not finite")


def threads_do_not_matter(name: str, device: torch.device) -> None:
    images = batch_for(name, device, 4)
    for severity in SEVERITIES:
        results = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append((_apply(images, name, severity), _apply(as_floats(images), name, severity)))
        assert_same(results[1][0], results[0][0], f"2 threads, {severity}")
        assert_near(results[1][1], results[0][1], 1e-5, f"2 threads, floats, {severity}")


def autocast_does_not_matter(name: str, device: torch.device) -> None:
    images = batch_for(name, device, 2)
    for dtype in (torch.uint8, torch.float32, torch.float16):
        given = as_floats(images, dtype)
        plain = _apply(given, name, "high")
        with torch.autocast(device.type, dtype=torch.bfloat16):
            assert_same(_apply(given, name, "high"), plain, f"{dtype} under autocast")


# -- how dtypes and severities relate ---------------------------------------------------------------------------------------------


def floats_are_near_bytes(name: str, device: torch.device) -> None:
    images = batch_for(name, device)
    mean, most = _FLOAT_DISTANCE.get(name, _DEFAULT_DISTANCE)
    for severity in SEVERITIES:
        exact = _apply(images, name, severity).double()
        for dtype in (torch.float32, torch.float64):
            distance = (_apply(as_floats(images, dtype), name, severity).double() * 255 - exact).abs()
            _require(
                distance.mean() <= mean and distance.max() <= most,
                f"{severity}, {dtype}: {distance.mean():.2f} levels in the mean, {distance.max():.2f} at most, want {mean}, {most}",
            )


def quantize_gives_the_bytes(name: str, device: torch.device) -> None:
    images = batch_for(name, device)
    for severity in (0.0, *SEVERITIES, 1.0):
        exact = _apply(images, name, severity)
        for dtype in (torch.float32, torch.float64):
            for wanted_gradient in (False, True):
                given = as_floats(images, dtype).requires_grad_(wanted_gradient)
                out = _apply(given, name, severity, quantize=True).detach()
                assert_same(out, (exact.to(dtype) / 255), f"{severity}, {dtype}")


def half_precision_is_float_inside(name: str, device: torch.device) -> None:
    images = batch_for(name, device, 2)
    for dtype in (torch.float16, torch.bfloat16):
        given = as_floats(images, dtype)
        for severity in SEVERITIES:
            wanted = _apply(given.float(), name, severity).to(dtype)
            assert_same(_apply(given, name, severity), wanted, f"{dtype}, {severity}")


def grey_is_the_luma_of_three_equal_channels(name: str, device: torch.device) -> None:
    images = batch_for(name, device, 2)[:, :1]
    for severity in SEVERITIES:
        for given in (images, as_floats(images, torch.float64)):
            if name == "gaussian_noise":  # one channel of noise, not three
                continue
            expanded = _apply(given.repeat(1, 3, 1, 1), name, severity).double()
            luma = (expanded * torch.tensor([0.299, 0.587, 0.114], dtype=torch.float64, device=device)[:, None, None]).sum(1, keepdim=True)
            tolerance = 0.5 + 1e-2 if given.dtype == torch.uint8 else 1e-6
            assert_near(_apply(given, name, severity).double(), luma, tolerance, f"{given.dtype}, {severity}")


def severities_have_one_meaning(name: str, device: torch.device) -> None:
    """A name, its number, and a tensor of any floating dtype that rounds to it are one degradation."""
    images = batch_for(name, device)
    for severity, number in degrade.SEVERITIES.items():
        wanted, records = _apply_recorded(images, name, severity)
        ways = {
            "number": number,
            "list": [severity, number, np.float32(number)],
            **{str(d): torch.full((3,), number, dtype=d, device=device) for d in (torch.float16, torch.float32, torch.float64)},
            "scalar tensor": torch.tensor(number, device=device),
        }
        for way, given in ways.items():
            out, same = _apply_recorded(images, name, given)
            _require(same == records, f"{severity} as {way}: other records")
            assert_same(out, wanted, f"{severity} as {way}")


# -- global random generators -----------------------------------------------------------------------------------------------------


@contextmanager
def global_generators_unchanged(device: torch.device) -> Iterator[None]:
    """Raise where torch's, NumPy's or Python's global generator changes."""

    def states() -> list[bytes]:
        found = [torch.get_rng_state().numpy().tobytes(), pickle.dumps(np.random.get_state()), pickle.dumps(random.getstate())]  # noqa: NPY002  it is about that state
        return [*found, torch.cuda.get_rng_state(device).numpy().tobytes()] if device.type == "cuda" else found

    before = states()
    yield
    for what, old, new in zip(("torch", "numpy", "random", "cuda"), before, states(), strict=False):
        _require(old == new, f"the global generator of {what} changed")


def a_seed_leaves_global_generators_alone(name: str, device: torch.device) -> None:
    """None is changed, and none is read: other states give the same result."""
    images = batch_for(name, device)
    results = []
    for state in (1, 2):
        torch.manual_seed(state)
        np.random.seed(state)  # noqa: NPY002  what must not be read
        random.seed(state)
        with global_generators_unchanged(device):
            out, records = _apply_recorded(images, name)
            results += [out, degrade.replay(images, records)]
    for other in results[1:]:
        assert_same(other, results[0], "another state of the global generators")


def without_a_seed_torch_decides(name: str, device: torch.device) -> None:
    images = batch_for(name, device)
    torch.manual_seed(3)
    first, records = _apply_recorded(images, name, seed=None)
    _, later = _apply_recorded(images, name, seed=None)
    torch.manual_seed(3)
    again, same = _apply_recorded(images, name, seed=None)
    _require(same == records, "torch.manual_seed gives other draws")
    assert_same(again, first, "after torch.manual_seed")
    if _draws(name):
        _require(later != records, "two calls drew the same")


# -- gradients --------------------------------------------------------------------------------------------------------------------


def gradients_reach_the_images(name: str, device: torch.device) -> None:
    for dtype in (torch.float32, torch.float64, torch.float16):
        for severity in SEVERITIES:
            given = (as_floats(batch_for(name, device, 2)) * 0.5 + 0.25).to(dtype).requires_grad_()
            for quantize in (False, True):
                (gradient,) = torch.autograd.grad(_apply(given, name, severity, quantize=quantize).float().square().sum(), given)
                _require(gradient.dtype == dtype and gradient.shape == given.shape, f"gradient of {gradient.dtype}")
                _require(gradient.isfinite().all(), f"{severity}, {dtype}: gradient not finite")
                _require(gradient.abs().flatten(1).amax(1).min() > 0, f"{severity}, {dtype}: no gradient")


LAWS: tuple[Law, ...] = (
    keeps_shape_dtype_and_device,
    takes_an_empty_batch,
    is_finite_and_in_range,
    leaves_the_input_alone,
    batch_equals_singles,
    keys_decide_and_order_does_not,
    lower_draws_begin_higher,
    replay_equals_apply,
    records_survive_json,
    survives_pickling,
    strides_do_not_matter,
    sizes_from_one_pixel_up,
    threads_do_not_matter,
    autocast_does_not_matter,
    floats_are_near_bytes,
    quantize_gives_the_bytes,
    half_precision_is_float_inside,
    grey_is_the_luma_of_three_equal_channels,
    severities_have_one_meaning,
    a_seed_leaves_global_generators_alone,
    without_a_seed_torch_decides,
    gradients_reach_the_images,
)
