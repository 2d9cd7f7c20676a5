"""Gaussian noise: independent normal noise in every pixel and channel (operators.md, environment)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from degrade.draws import Stream
from degrade.kernels import noise
from degrade.operator import Operator, Plan, Size

DEVIATION = 75.0  # levels, times the intensity
SEED_BITS = 53  # what JSON readers keep exactly


@dataclass(frozen=True)
class Params:
    """seed: names the noise field, 0 <= seed < 2**53."""

    seed: int


class GaussianNoise(Operator[Params]):
    """trunc(image + noise of deviation 75 i levels); draws the seed of the noise field.

    Gradient: 1 in the image, 75 times the field in the intensity, 0 where the sum is clipped.
    """

    name = "gaussian_noise"
    category = "environment"
    params = Params

    def draw(self, size: Size, intensity: float, stream: Stream) -> Params:
        return Params(stream.integer("seed", SEED_BITS))

    def check(self, size: Size, intensity: float, params: Params) -> None:
        if not 0 <= params.seed < 2**SEED_BITS:
            raise ValueError(f"seed: got {params.seed}, want 0 <= seed < 2**{SEED_BITS}")

    def weights(self, intensity: Tensor) -> Plan:
        return {"deviation": DEVIATION * intensity}

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Params]) -> Plan:
        keys = noise.keys([p.seed for p in params])
        return {"key": keys, "quantiles": noise.quantiles(), **self.planned_weights(intensities)}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        plan = self.with_gradient(plan, intensity)
        return noise.add_noise(images, plan["key"], plan["quantiles"], plan["deviation"])
