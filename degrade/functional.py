"""``apply`` draws and degrades; ``replay`` does again what records say.

Both check, group the images by operator, plan on the host, upload once for each group, run the operator on tensors, and put the
results back in their places.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import torch
from torch import Tensor

from degrade import record as records_
from degrade.draws import Stream
from degrade.kernels import levels
from degrade.kernels import quantize as quantize_
from degrade.operator import Operator, Plan
from degrade.operators import OPERATORS
from degrade.record import Record, did_you_mean
from degrade.severity import intensities_of, intensity_of

RANGE_TOLERANCE = 0.001  # floats may leave [0, 1] by this much, and are clipped
Severity = str | float | Sequence[str | float] | Tensor
T = TypeVar("T")
Job = tuple[Operator[Any], float, Any]  # operator, intensity, params: one degradation of one image


@overload
def apply(
    images: Tensor,
    operator: str | Sequence[str],
    severity: Severity,
    *,
    seed: int | None = ...,
    keys: str | Sequence[str] | None = ...,
    quantize: bool = ...,
    check: bool | None = ...,
    return_records: Literal[False] = ...,
) -> Tensor: ...
@overload
def apply(
    images: Tensor,
    operator: str | Sequence[str],
    severity: Severity,
    *,
    seed: int | None = ...,
    keys: str | Sequence[str] | None = ...,
    quantize: bool = ...,
    check: bool | None = ...,
    return_records: Literal[True],
) -> tuple[Tensor, list[Record]]: ...
@torch.compiler.disable(reason="degrade draws and plans on the host; compile what follows")  # type: ignore[no-untyped-call, untyped-decorator]  # no stub
def apply(
    images: Tensor,
    operator: str | Sequence[str],
    severity: Severity,
    *,
    seed: int | None = None,
    keys: str | Sequence[str] | None = None,
    quantize: bool = False,
    check: bool | None = None,
    return_records: bool = False,
) -> Tensor | tuple[Tensor, list[Record]]:
    """Degrade images with one operator for all, or one for each.

    Args:
        images: (B, C, H, W) or (C, H, W), C = 3 (RGB) or 1 (grey), uint8 in 0..255 or floating point in [0, 1]; any device, any
            strides.  Never changed.
        operator: a name of ``degrade.OPERATORS``, or B names.
        severity: a name of ``degrade.SEVERITIES``, a number in [0, 1], B of either, or a floating-point tensor of shape (B,) or ().
            Gradients flow to a tensor where the formula is continuous in it; a tensor on a device costs one copy to the host.
        seed: with ``keys`` it decides all draws.  None takes one from torch's global generator; with a number no global generator is
            read or changed.
        keys: B strings that identify the images; default "0", "1", ...
        quantize: for floats: the values of the 8-bit result (divided by 255), with the gradient of the smooth formula.
        check: whether floats are checked against [0, 1]; None checks on the CPU only, since looking costs a device a sync.
        return_records: also return B records, from which ``replay`` makes the same result.

    Returns:
        The degraded images, a new tensor with the shape, dtype and device of ``images``; with records, a pair.

    Raises:
        ValueError, TypeError: name the argument, what came and what is wanted.

    >>> import torch, degrade
    >>> images = torch.full((2, 3, 8, 8), 200, dtype=torch.uint8)
    >>> degrade.apply(images, "dark_illumination", "high", seed=0)[0, 0, 0, 0].item()
    37
    >>> out, records = degrade.apply(images, "motion_blur", [0.2, "mid"], seed=0, keys=["a", "b"], return_records=True)
    >>> torch.equal(out, degrade.replay(images, records))
    True
    """
    batch = as_batch(images, check)
    count, size = len(batch), (batch.shape[-2], batch.shape[-1])
    operators = _each(operator, (str,), count, "operator", _operator)
    intensities, gradient = _intensities(severity, count)
    default_keys = [str(n) for n in range(count)]
    names = default_keys if keys is None else each_key(keys, count)
    if seed is None:
        seed = int(torch.randint(2**63 - 1, (), dtype=torch.int64, device="cpu").item())
    elif not isinstance(seed, numbers.Integral) or isinstance(seed, bool):
        raise TypeError(f"seed: got {type(seed).__name__}, want an integer or None")
    seed = int(seed)
    jobs = [(op, i, op.draw(size, i, Stream(seed, key, op.name))) for op, i, key in zip(operators, intensities, names, strict=True)]
    result = _run(batch, jobs, gradient, quantize).reshape(images.shape)
    if not return_records:
        return result
    return result, [records_.make(op.name, i, params) for op, i, params in jobs]


@torch.compiler.disable(reason="degrade draws and plans on the host; compile what follows")  # type: ignore[no-untyped-call, untyped-decorator]  # no stub
def replay(
    images: Tensor,
    records: Record | Sequence[Record | Sequence[Record] | None] | None,
    *,
    quantize: bool = False,
    check: bool | None = None,
) -> Tensor:
    """Do again what ``records`` say, drawing nothing.

    Args:
        images: as for ``apply``.
        records: B records, each a dict, None for an untouched image, or a list of dicts that are applied one after the other.  For a
            single (C, H, W) image a record alone will do.
        quantize, check: as for ``apply``; the same ``quantize`` makes the same values.

    Returns:
        The degraded images, a new tensor with the shape, dtype and device of ``images``.

    Raises:
        ValueError, TypeError: name the record and the field, what came and what is wanted.
    """
    batch = as_batch(images, check)
    count, size = len(batch), (batch.shape[-2], batch.shape[-1])
    if images.ndim == 3 and (records is None or isinstance(records, Mapping)):
        records = [records]
    if isinstance(records, Mapping | str) or not isinstance(records, Sequence):
        raise TypeError(f"records: got {type(records).__name__}, want a list of {count} records")
    if images.ndim == 3 and len(records) != 1:  # a chain for a single image
        records = [[r for r in records if r is not None]]  # type: ignore[misc]  # each part is checked below
    if len(records) != count:
        raise ValueError(f"records: got {len(records)}, want one for each of the {count} images")
    chains: list[list[Job]] = []
    for n, entry in enumerate(records):
        chain = [] if entry is None else [entry] if isinstance(entry, Mapping) else entry
        if not isinstance(chain, Sequence) or isinstance(chain, str):
            raise ValueError(f"records[{n}]: got {entry!r}, want a record, a list of records or None")
        chains.append(
            [_job(part, size, f"records[{n}]" if isinstance(entry, Mapping) else f"records[{n}][{m}]") for m, part in enumerate(chain)]
        )
    return run(batch, chains, quantize=quantize).reshape(images.shape)


def run(images: Tensor, chains: Sequence[Sequence[Job]], *, quantize: bool) -> Tensor:
    """Each image of a checked (B, C, H, W) batch through its chain of jobs; an empty chain leaves it as it is."""
    longest = max(map(len, chains), default=0)
    result = images if longest else images.clone(memory_format=torch.contiguous_format)
    for step in range(longest):
        result = _run(result, [chain[step] if step < len(chain) else None for chain in chains], None, quantize)
    return result


def _run(images: Tensor, jobs: Sequence[Job | None], gradient: Tensor | None, quantize: bool) -> Tensor:
    """Each image through its job, grouped by operator; ``gradient`` is the caller's severity tensor if it wants gradients."""
    groups: dict[str, list[int]] = {}
    for n, job in enumerate(jobs):
        if job:
            groups.setdefault(job[0].name, []).append(n)
    order = [n for at in groups.values() for n in at]
    if not order:
        return images.clone()
    # Sorted by group once, and back once: copying single groups in and out would move the whole batch for each of them.
    there = back = None
    if order != list(range(len(images))):
        places = torch.full((len(images),), -1, device="cpu")
        places[order] = torch.arange(len(order), device="cpu")
        index = _upload({"there": torch.tensor(order, device="cpu"), "back": places}, images.device)
        there, back = index["there"], index["back"]
    if images.dtype == torch.uint8 or (quantize and gradient is None and not _wants_gradient(images)):
        dtype = torch.uint8
    else:
        dtype = torch.float64 if images.dtype == torch.float64 else torch.float32
    with torch.autocast(images.device.type, enabled=False):
        given = images if there is None and images.dtype == torch.uint8 else levels.to_levels(images, there, back, quantize, dtype)
        chosen = gradient if gradient is None or there is None else gradient.index_select(0, there)
        sizes = [len(at) for at in groups.values()]
        gradients = [None] * len(sizes) if chosen is None else _split(chosen, sizes)
        done = [
            _group(part, [job for n in at if (job := jobs[n])], part_gradient, quantize)
            for part, at, part_gradient in zip(_split(given, sizes), groups.values(), gradients, strict=True)
        ]
        result = done[0] if len(done) == 1 else torch.cat(done)
        if there is None and images.dtype == torch.uint8:
            return result
        return levels.from_levels(images.detach() if len(order) == len(images) else images, result, there, back)


def _group(images: Tensor, jobs: Sequence[Job], gradient: Tensor | None, quantize: bool) -> Tensor:
    """The levels of a batch through one operator.  ``quantize``: floats are whole levels, and come out as bytes would."""
    operator, size = jobs[0][0], (images.shape[-2], images.shape[-1])
    intensities = [i for _, i, _ in jobs]
    plan = operator.plan(size, intensities, [params for _, _, params in jobs])
    uploaded = _upload({**plan, "": torch.tensor(intensities, dtype=torch.float64, device="cpu")}, images.device)
    intensity = uploaded.pop("")
    if gradient is not None:  # the host's values, so that the pixels are those of the plan, with the caller's gradient
        intensity = quantize_.straight_through(gradient.double(), intensity)
    result = _apply(operator, images, uploaded, intensity)
    if not quantize or images.dtype == torch.uint8:
        return result
    exact = _apply(operator, images.detach().to(torch.uint8), uploaded, intensity.detach())
    return quantize_.straight_through(result, exact)


def _split(batch: Tensor, sizes: list[int]) -> Sequence[Tensor]:
    """The parts of a batch; one part is the batch itself, with no copy in its gradient."""
    return [batch] if len(sizes) == 1 else torch.split(batch, sizes)


def _wants_gradient(tensor: Tensor) -> bool:
    return torch.is_grad_enabled() and tensor.requires_grad


def _apply(operator: Operator[Any], images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
    if images.shape[1] == 1 and operator.coloured:
        return levels.luma(operator.apply(images.expand(-1, 3, -1, -1), plan, intensity))
    return operator.apply(images, plan, intensity)


def _upload(plan: Plan, device: torch.device) -> Plan:
    """The tensors of a plan on ``device``, in one copy."""
    if device.type == "cpu":
        return plan
    alignment = 16  # bytes; a view of a dtype must start at a multiple of its size
    ends = list(itertools.accumulate(-(-t.nbytes // alignment) * alignment for t in plan.values()))
    host = torch.empty(ends[-1], dtype=torch.uint8, device="cpu", pin_memory=device.type == "cuda")
    places = {name: slice(start, start + t.nbytes) for start, (name, t) in zip([0, *ends], plan.items(), strict=False)}
    for name, t in plan.items():
        host[places[name]].view(t.dtype).view(t.shape).copy_(t)
    on_device = host.to(device, non_blocking=True)
    return {name: on_device[places[name]].view(t.dtype).view(t.shape) for name, t in plan.items()}


def as_batch(images: Tensor, check: bool | None) -> Tensor:
    """``images`` as (B, C, H, W), checked."""
    if not isinstance(images, Tensor):
        raise TypeError(f"images: got {type(images).__name__}, want a torch.Tensor of shape (B, 3, H, W) or (3, H, W)")
    if images.ndim not in (3, 4) or images.shape[-3] not in (1, 3) or 0 in images.shape[-2:]:
        raise ValueError(f"images: got shape {tuple(images.shape)}, want (B, C, H, W) or (C, H, W) with C = 3 or 1 and H, W >= 1")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise TypeError(f"images: got {images.dtype}, want uint8 in 0..255 or a floating-point dtype in [0, 1]")
    if images.is_floating_point() and images.numel() and (check or (check is None and images.device.type == "cpu")):
        low, high = (value.item() for value in images.detach().aminmax())
        if not (low >= -RANGE_TOLERANCE and high <= 1 + RANGE_TOLERANCE):  # also catches nan
            raise ValueError(f"images: got floats in [{low:g}, {high:g}], want [0, 1]; divide 8-bit levels by 255, or pass them as uint8")
    return images if images.ndim == 4 else images[None]


def _each(value: Any, single: tuple[type, ...], count: int, argument: str, parse: Callable[[Any, str], T]) -> list[T]:
    """``count`` parsed values, from one value for all images or one for each."""
    if isinstance(value, single):
        return [parse(value, argument)] * count
    if isinstance(value, str) or not isinstance(value, Sequence):
        one = f"one {argument}, or " if single else ""
        raise TypeError(f"{argument}: got {type(value).__name__}, want {one}a list of {count}, one for each image")
    if len(value) != count:
        raise ValueError(f"{argument}: got {len(value)}, want one for each of the {count} images")
    return [parse(v, f"{argument}[{n}]") for n, v in enumerate(value)]


def each_key(keys: object, count: int) -> list[str]:
    """``count`` keys of images; a string will do for one image."""
    return _each(keys, (str,) if count == 1 else (), count, "keys", _key)


def _operator(name: object, where: str) -> Operator[Any]:
    if not isinstance(name, str):
        raise TypeError(f"{where}: got {type(name).__name__}, want a name of degrade.OPERATORS")
    if name not in OPERATORS:
        raise ValueError(f"{where}: got {name!r}, want one of {', '.join(OPERATORS)}{did_you_mean(name, OPERATORS)}")
    return OPERATORS[name]


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{where}: got {type(key).__name__}, want a string that identifies the image")
    return key


def _job(record: object, size: tuple[int, int], where: str) -> Job:
    name, intensity, plain = records_.parts(record, where)
    operator = _operator(name, f"{where}['operator']")
    params = records_.from_plain(operator.params, plain, f"{where}['params']")
    try:
        operator.check(size, intensity, params)
    except ValueError as error:
        raise ValueError(f"{where}['params']: {error}") from error
    return operator, intensity, params


def _intensities(severity: Severity, count: int) -> tuple[list[float], Tensor | None]:
    """The intensities on the host, and the tensor that gradients flow to."""
    if isinstance(severity, Tensor):
        if severity.ndim > 1 or (severity.ndim == 1 and len(severity) != count):
            raise ValueError(f"severity: got a tensor of shape {tuple(severity.shape)}, want ({count},) or ()")
        values = severity.expand(count)
        return intensities_of(values), values if _wants_gradient(values) else None
    return _each(severity, (str, numbers.Real), count, "severity", intensity_of), None
