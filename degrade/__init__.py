"""Degraded images for vision-language models: the sixteen corruptions of MMD-Bench as batched, differentiable torch operations."""

from degrade.functional import apply, replay
from degrade.operators import OPERATORS
from degrade.severity import SEVERITIES

__all__ = ["OPERATORS", "SEVERITIES", "apply", "replay"]
__version__ = "0.1.0"
