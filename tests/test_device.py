"""Every operator on a device that is not the CPU: a pretend one here, a CUDA device where there is one."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

import degrade
from degrade.draws import Stream
from degrade.kernels.dispatch import Kernel
from degrade.operator import Operator
from tests import broken, images, laws
from tests.fake_accelerator import DEVICE, Accelerator, DeviceMix, HostSync, PretendTensor, kernel_modules
from tests.test_laws import use

OPERATORS = pytest.mark.parametrize("name", degrade.OPERATORS)
SEVERITIES = pytest.mark.parametrize("severity", degrade.SEVERITIES)
# The torch references of these are slow
_SIZE = {"mean_shift": (8, 11), "watermark_damage": (8, 9)}
_DEFAULT_SIZE = (17, 23)
_FLOAT_TOLERANCE = 2e-6  # of a result in [0, 1]: sums in another order


def batch(name: str, count: int = 2) -> Tensor:
    return images.batch(count, *_SIZE.get(name, _DEFAULT_SIZE))


@OPERATORS
@SEVERITIES
def test_bytes_equal_the_cpus(name, severity):
    given = batch(name)
    records = laws.records_for(name, given, severity)
    with Accelerator() as accelerator:
        replayed = degrade.replay(accelerator.put(given), records)
        assert replayed.device == DEVICE
        laws.assert_same(accelerator.fetch(replayed), degrade.replay(given, records), "replay")
        assert accelerator.uploads == 1  # the plan, in one piece
        out = degrade.apply(accelerator.put(given), name, severity, seed=1)
        laws.assert_same(accelerator.fetch(out), degrade.apply(given, name, severity, seed=1), "apply")
        assert accelerator.uploads == 2


@OPERATORS
@SEVERITIES
def test_floats_and_gradients_equal_the_cpus(name, severity):
    given = laws.as_floats(batch(name)).requires_grad_()
    weights = laws.as_floats(images.batch(2, *given.shape[-2:], seed=5)) - 0.3
    records = laws.records_for(name, given, severity)
    for quantize in (False, True):
        wanted = degrade.replay(given, records, quantize=quantize)
        (gradient,) = torch.autograd.grad((wanted * weights).sum(), given)
        with Accelerator() as accelerator:
            there = accelerator.put(given)
            out = degrade.replay(there, records, quantize=quantize)
            (out * accelerator.put(weights)).sum().backward()
            assert accelerator.uploads == 1
            got = accelerator.fetch(out)
            laws.assert_near(got, wanted.detach(), 0 if quantize else _FLOAT_TOLERANCE, f"quantize={quantize}")
            scale = gradient.abs().max().item()
            laws.assert_near(accelerator.fetch(there.grad), gradient, 10 * _FLOAT_TOLERANCE * scale, f"gradient, quantize={quantize}")


@OPERATORS
def test_other_dtypes_and_grey_equal_the_cpus(name):
    given = batch(name)[:, :1]
    for dtype in (torch.uint8, torch.float16, torch.float64):
        plain = laws.as_floats(given, dtype)
        wanted = degrade.apply(plain, name, "mid", seed=1)
        with Accelerator() as accelerator:
            got = accelerator.fetch(degrade.apply(accelerator.put(plain), name, "mid", seed=1))
        laws.assert_near(got, wanted, {torch.uint8: 0, torch.float16: 1e-3, torch.float64: 1e-9}[dtype], str(dtype))


def test_severity_tensor_costs_one_copy_to_the_host():
    given = laws.as_floats(images.batch(3, 9, 13))
    severities = torch.tensor([0.2, 0.4, 0.9], requires_grad=True)
    wanted = degrade.apply(given, "lens_blur", severities, seed=0)
    (gradient,) = torch.autograd.grad(wanted.square().sum(), severities)
    with Accelerator(allowed_downloads=1) as accelerator:
        there = accelerator.put(severities)
        out = degrade.apply(accelerator.put(given), "lens_blur", there, seed=0)
        out.square().sum().backward()
        laws.assert_near(accelerator.fetch(out), wanted.detach(), _FLOAT_TOLERANCE, "result")
        laws.assert_near(accelerator.fetch(there.grad), gradient, 1e-4 * gradient.abs().max().item(), "gradient")
        assert accelerator.downloads == 1


def test_copies_of_a_mixed_batch():
    """One for each operator's plan, and one for the places of the images."""
    given = images.batch(5, 9, 13)
    operators = ["lens_blur", "scan_lines", "lens_blur", "gaussian_noise", "scan_lines"]
    wanted, records = degrade.apply(given, operators, "high", seed=0, return_records=True)
    with Accelerator() as accelerator:
        out = degrade.apply(accelerator.put(given), operators, "high", seed=0)
        laws.assert_same(accelerator.fetch(out), wanted, "apply")
        assert accelerator.uploads == len(set(operators)) + 1
        chains = [None, records[1], [records[2], records[3]], records[3], []]
        laws.assert_same(accelerator.fetch(degrade.replay(accelerator.put(given), chains)), degrade.replay(given, chains), "replay")


def test_check_of_floats_on_a_device_only_when_asked():
    outside = torch.full((1, 3, 4, 5), 1.5)
    with Accelerator(allowed_downloads=2) as accelerator:
        out = degrade.apply(accelerator.put(outside), "scan_lines", "low", seed=0)
        assert accelerator.fetch(out).max() <= 1
        with pytest.raises(HostSync):  # minimum and maximum are looked at
            degrade.apply(accelerator.put(outside), "scan_lines", "low", seed=0, check=True)


@OPERATORS
@SEVERITIES
def test_apply_makes_nothing_without_a_device(name, severity):
    """On the meta device nothing has values; a factory call that forgets its device makes a CPU tensor, and they do not mix."""
    operator: Operator = degrade.OPERATORS[name]
    intensity = degrade.SEVERITIES[severity]
    for dtype in (torch.uint8, torch.float32):
        given = laws.as_floats(batch(name), dtype)
        size = tuple(given.shape[-2:])
        params = [operator.draw(size, intensity, Stream(0, key, name)) for key in "ab"]
        plan = {k: v.to("meta") for k, v in operator.plan(size, [intensity] * 2, params).items()}
        out = operator.apply(given.to("meta"), plan, torch.empty(2, dtype=torch.float64, device="meta"))
        assert (out.shape, out.dtype, out.device.type) == (given.shape, dtype, "meta")


@OPERATORS
def test_default_device_does_not_matter(name):
    """Everything that is made says where: under another default device the result is the same."""
    given = batch(name)
    wanted, records = degrade.apply(given, name, "mid", seed=1, return_records=True)
    floats = degrade.apply(given / 255, name, "mid", seed=1)
    with torch.device("meta"):
        laws.assert_same(degrade.apply(given, name, "mid", seed=1), wanted, "bytes")
        laws.assert_same(degrade.replay(given, records), wanted, "replay")
        assert degrade.apply(given / 255, name, "mid", seed=1).device == floats.device


# -- the accelerator itself: it sees what it should ---------------------------------------------------------------------------------

SYNCS = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool(x.sum() > 0),
    "if": lambda x: 1 if (x > 0).any() else 0,
    "cpu": lambda x: x.cpu(),
    "to": lambda x: x.to("cpu", non_blocking=True),
    "copy to the host": lambda x: torch.ones(4).copy_(x),
    "mask": lambda x: x[x > 0],
    "assignment by mask": lambda x: x.__setitem__(x > 0, x),
    "nonzero": lambda x: x.nonzero(),
    "where of one argument": lambda x: torch.where(x > 0),
    "unique": lambda x: x.unique(),
    "slice by tensor": lambda x: x[: x.sum().long()],
    "repeats": lambda x: torch.repeat_interleave(x.long()),
    "equal": lambda x: torch.equal(x, x),
}
MIXES = {
    "factory without device": lambda x: x + torch.arange(4),
    "CPU index": lambda x: torch.gather(x, 0, torch.zeros(2, dtype=torch.long)),
    "CPU tensor": lambda x: torch.where(x > 0, x, torch.zeros(4)),
    "CPU generator": lambda x: torch.randn(3, device=x.device, generator=torch.Generator()),
}
HARMLESS = {
    "factory": lambda x: x + torch.arange(4, device=x.device),
    "scalar": lambda x: torch.where(x > 0, x, 0.0) + torch.tensor(1.0),
    "gather": lambda x: torch.gather(x, 0, torch.zeros(2, dtype=torch.long, device=x.device)),
    "assignment of a number by mask": lambda x: x.__setitem__(x > 0, 0.0),
    "index": lambda x: x[1:][torch.zeros(2, dtype=torch.long, device=x.device)],
}


@pytest.mark.parametrize("what", SYNCS)
def test_accelerator_refuses_a_sync(what):
    with Accelerator() as accelerator, pytest.raises(HostSync):
        SYNCS[what](accelerator.put(torch.arange(4.0)))


@pytest.mark.parametrize("what", MIXES)
def test_accelerator_refuses_a_mix(what):
    with Accelerator() as accelerator, pytest.raises(DeviceMix):
        MIXES[what](accelerator.put(torch.arange(4.0)))


@pytest.mark.parametrize("what", HARMLESS)
def test_accelerator_lets_pass(what):
    with Accelerator() as accelerator:
        HARMLESS[what](accelerator.put(torch.arange(4.0)))


def test_accelerator_counts_copies():
    with Accelerator(allowed_downloads=1) as accelerator:
        there = torch.arange(4.0).to(DEVICE)
        assert isinstance(torch.tensor([1.0, 2.0], device=DEVICE), PretendTensor)
        assert accelerator.uploads == 2
        assert there.cpu().tolist() == [0, 1, 2, 3]
        assert accelerator.downloads == 1


@pytest.mark.parametrize(
    ("operator", "error"), [(broken.LooksAtTheValues, HostSync), (broken.PicksByMask, HostSync), (broken.ForgetsTheDevice, DeviceMix)]
)
def test_accelerator_refuses_a_broken_operator(operator, error, monkeypatch):
    use(monkeypatch, operator())
    given = images.batch(2, 5, 6)
    degrade.apply(given, operator.name, "mid", seed=0)
    with Accelerator() as accelerator, pytest.raises(error):
        degrade.apply(accelerator.put(given), operator.name, "mid", seed=0)


def test_custom_operators_ran_their_references():
    """Otherwise a body for the CPU would have been compared with itself."""
    with Accelerator() as accelerator:
        for name in degrade.OPERATORS:
            for given in (batch(name), laws.as_floats(batch(name)).requires_grad_()):
                out = degrade.replay(accelerator.put(given), laws.records_for(name, batch(name), "high"))
                if out.requires_grad:
                    out.sum().backward()
        degrade.apply(accelerator.put(images.batch(3, 8, 9)[:, :1]), ["scan_lines", "graffiti", "scan_lines"], "mid", seed=0)
    registered = {n.removeprefix("degrade::") for n in torch._C._dispatch_get_all_op_names() if n.startswith("degrade::")}
    kernels = {value.name for module in kernel_modules() for value in vars(module).values() if isinstance(value, Kernel)}
    assert "blend" in kernels
    assert accelerator.references == registered - {f"{name}_backward" for name in kernels}  # which only CUDA has


# -- fake CUDA tensors, in a process of their own: they and the accelerator do not mix ----------------------------------------------


def test_operators_accept_fake_cuda_tensors():
    """The fake implementations of the custom operators and torch's own shape rules, for the device type that matters.

    Forward only: autograd wants a real CUDA device.  test_compile.py takes the fake implementations of the backward.
    """
    program = """
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
import degrade
from degrade.draws import Stream
for name, operator in degrade.OPERATORS.items():
    for dtype in (torch.uint8, torch.float32):
        params = [operator.draw((20, 30), 0.9, Stream(0, key, name)) for key in "ab"]
        plan = operator.plan((20, 30), [0.9, 0.9], params)
        with FakeTensorMode() as mode:
            there = {k: mode.from_tensor(v).to("cuda") for k, v in plan.items()}
            images = torch.empty(2, 3, 20, 30, dtype=dtype, device="cuda")
            out = operator.apply(images, there, torch.empty(2, dtype=torch.float64, device="cuda"))
            assert (out.shape, out.dtype, out.device.type) == (images.shape, dtype, "cuda"), (name, out)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


# -- CUDA ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.cuda
@OPERATORS
@SEVERITIES
def test_cuda_equals_the_cpu(name, severity):
    given = images.batch(4, 96, 130)
    wanted, records = degrade.apply(given, name, severity, seed=1, return_records=True)
    laws.assert_same(degrade.apply(given.cuda(), name, severity, seed=1).cpu(), wanted, "apply")
    laws.assert_same(degrade.replay(given.cuda(), records).cpu(), wanted, "replay")
    floats = laws.as_floats(given).requires_grad_()
    there = floats.detach().cuda().requires_grad_()
    out, far = degrade.apply(floats, name, severity, seed=1), degrade.apply(there, name, severity, seed=1)
    if name not in ("jpeg_compression", "mean_shift"):  # they round or choose: where sums differ in the last bit, so may a choice
        laws.assert_near(far.detach().cpu(), out.detach(), 1e-5, "floats")
    out.square().sum().backward()
    far.square().sum().backward()
    assert there.grad.isfinite().all()
    assert torch.nn.functional.cosine_similarity(there.grad.cpu().flatten(), floats.grad.flatten(), 0) > 0.999


@pytest.mark.cuda
@OPERATORS
def test_cuda_does_not_sync(name):
    given = images.batch(2, 64, 80).cuda()
    degrade.apply(given, name, "mid", seed=0)  # compiles and allocates
    torch.cuda.set_sync_debug_mode("error")
    try:
        degrade.apply(given, name, "mid", seed=0)
    finally:
        torch.cuda.set_sync_debug_mode("default")
