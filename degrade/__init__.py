"""Degraded images for vision-language models: the sixteen corruptions of MMD-Bench as batched, differentiable torch operations."""

from typing import TYPE_CHECKING, Any

from degrade.functional import apply, replay
from degrade.operators import OPERATORS
from degrade.severity import SEVERITIES

if TYPE_CHECKING:
    from degrade.transforms import RandomDegradation

__all__ = ["OPERATORS", "SEVERITIES", "RandomDegradation", "apply", "replay"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "RandomDegradation":  # on first use: it alone needs torchvision, whose import takes as long as torch's
        from degrade.transforms import RandomDegradation

        return RandomDegradation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
