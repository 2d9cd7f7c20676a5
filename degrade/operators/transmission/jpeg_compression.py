"""JPEG compression: encoded at a low quality and decoded again (operators.md, transmission)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from degrade.kernels import jpeg
from degrade.operator import NoParams, Operator, Plan, Size

BEST, LOSS, WORST = 100, 95, 5  # JPEG quality max(5, int(100 - 95 i))


def quality(intensity: float) -> int:
    return max(WORST, int(BEST - LOSS * intensity))


class JpegCompression(Operator[NoParams]):
    """A baseline JPEG round trip with chroma at half resolution (4:2:0); draws nothing.

    The rounding of the DCT coefficients is the degradation and stays for floats, with straight-through gradients.
    Gradient: of the codec without any rounding, in the image; none in the intensity, which only sets the integer quality.
    """

    name = "jpeg_compression"
    category = "transmission"
    params = NoParams
    coloured = True

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[NoParams]) -> Plan:
        return {"tables": jpeg.quantisation_tables([quality(i) for i in intensities])}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return jpeg.roundtrip(images, plan["tables"])
