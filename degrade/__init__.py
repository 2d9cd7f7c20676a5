"""Degraded images for vision-language models: the sixteen corruptions of MMD-Bench as batched, differentiable torch operations."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from degrade.functional import apply, replay
    from degrade.operators import OPERATORS
    from degrade.severity import SEVERITIES
    from degrade.transforms import RandomDegradation

__all__ = ["OPERATORS", "SEVERITIES", "RandomDegradation", "apply", "replay"]
__version__ = "0.1.0"

_PLACES = {
    "OPERATORS": "operators",
    "SEVERITIES": "severity",
    "RandomDegradation": "transforms",
    "apply": "functional",
    "replay": "functional",
}


def __getattr__(name: str) -> Any:
    """What ``__all__`` names, on first use: torch takes a second to load, which a command line's help and Ctrl-C need not wait for."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
