"""The table of the sixteen operators, in the order of operators.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from degrade.operator import Operator
from degrade.operators.capture.dirty_lens import DirtyLens
from degrade.operators.capture.hsv_saturation import HsvSaturation
from degrade.operators.capture.lens_blur import LensBlur
from degrade.operators.capture.lens_flare import LensFlare
from degrade.operators.capture.motion_blur import MotionBlur
from degrade.operators.environment.atmospheric_turbulence import AtmosphericTurbulence
from degrade.operators.environment.color_diffusion import ColorDiffusion
from degrade.operators.environment.dark_illumination import DarkIllumination
from degrade.operators.environment.gaussian_noise import GaussianNoise
from degrade.operators.postprocessing.graffiti import Graffiti
from degrade.operators.postprocessing.sharpness_change import SharpnessChange
from degrade.operators.postprocessing.watermark_damage import WatermarkDamage
from degrade.operators.transmission.block_exchange import BlockExchange
from degrade.operators.transmission.jpeg_compression import JpegCompression
from degrade.operators.transmission.mean_shift import MeanShift
from degrade.operators.transmission.scan_lines import ScanLines

_TABLE: tuple[Operator[Any], ...] = (
    LensBlur(),
    LensFlare(),
    MotionBlur(),
    DirtyLens(),
    HsvSaturation(),
    JpegCompression(),
    BlockExchange(),
    MeanShift(),
    ScanLines(),
    DarkIllumination(),
    AtmosphericTurbulence(),
    GaussianNoise(),
    ColorDiffusion(),
    SharpnessChange(),
    Graffiti(),
    WatermarkDamage(),
)
OPERATORS: Mapping[str, Operator[Any]] = MappingProxyType({operator.name: operator for operator in _TABLE})
