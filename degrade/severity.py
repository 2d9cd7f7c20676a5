"""Severities and intensities: low, mid and high, and every number in [0, 1] between."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import Tensor

SEVERITIES: Mapping[str, float] = MappingProxyType({"low": 0.23, "mid": 0.45, "high": 0.9})


def intensity_of(severity: object, argument: str = "severity") -> float:
    """The intensity in [0, 1] of one severity: a name of ``SEVERITIES`` or a number.

    >>> intensity_of("high"), intensity_of(0.5)
    (0.9, 0.5)
    """
    if isinstance(severity, str):
        if severity not in SEVERITIES:
            near = difflib.get_close_matches(severity, SEVERITIES, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{argument}: got {severity!r}, want one of {', '.join(SEVERITIES)} or a number in [0, 1]{hint}")
        return SEVERITIES[severity]
    if isinstance(severity, bool) or not isinstance(severity, numbers.Real):
        raise TypeError(f"{argument}: got {type(severity).__name__}, want one of {', '.join(SEVERITIES)}, a number in [0, 1] or a tensor")
    value = float(str(severity))  # the shortest decimal also of a NumPy float32
    if not 0 <= value <= 1:
        raise ValueError(f"{argument}: got {severity}, want a number in [0, 1]")
    return value


def shortest_decimal(value: float, dtype: torch.dtype) -> float:
    """The shortest decimal that names ``value`` in the floating ``dtype``.

    Counts and sizes are computed from it, so that float32 0.9 and "high" are one degradation.

    >>> shortest_decimal(torch.tensor(0.9).item(), torch.float32)
    0.9
    """
    if dtype == torch.float64:
        return value
    for digits in range(1, 18):
        candidate = float(f"{value:.{digits}g}")
        if torch.tensor(candidate, dtype=dtype, device="cpu").item() == value:
            return candidate
    return value


def intensities_of(severities: Tensor, argument: str = "severity") -> list[float]:
    """The intensities of a (B,) floating tensor; on a device this copies B numbers to the host."""
    if not severities.is_floating_point():
        raise TypeError(f"{argument}: got a tensor of {severities.dtype}, want a floating-point tensor")
    values = severities.detach().reshape(-1).double().cpu().tolist()
    return [intensity_of(shortest_decimal(v, severities.dtype), f"{argument}[{n}]") for n, v in enumerate(values)]
