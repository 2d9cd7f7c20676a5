"""MMD-Bench from benchmarks: source -> decode -> degrade -> encode -> write, and any image of it again.

With ``preview.py`` the only place that knows both pixels and files.
"""

from degrade.builder.again import Replayed, ReplayError, remake, replay
from degrade.builder.checks import VerifyReport, verify
from degrade.builder.folder import build, estimate
from degrade.builder.report import BadRow, BuildReport, Estimate
from degrade.builder.settings import variants
from degrade.builder.training import ImagesReport, degrade_images

__all__ = [
    "BadRow",
    "BuildReport",
    "Estimate",
    "ImagesReport",
    "ReplayError",
    "Replayed",
    "VerifyReport",
    "build",
    "degrade_images",
    "estimate",
    "remake",
    "replay",
    "variants",
    "verify",
]
