"""Operators that break a law, to show that the laws can fail."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from degrade.draws import Stream
from degrade.operator import NoParams, Operator, Plan, Size


def levels(images: Tensor) -> Tensor:
    """``images`` as floating-point levels."""
    return images if images.is_floating_point() else images.float()


@dataclass(frozen=True)
class Marks:
    """marks: levels to add."""

    marks: tuple[tuple[int], ...]


class Harmless(Operator[Any]):
    """255 - image: breaks nothing, and what the others are made from."""

    name = "harmless"
    category = "capture"
    params = NoParams

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return 255 - images


class Marked(Harmless):
    """Adds drawn levels; breaks nothing."""

    params = Marks

    def draw(self, size: Size, intensity: float, stream: Stream) -> Marks:
        return Marks(tuple((int(u * 12),) for (u,) in stream.uniforms("marks", 1 + int(8 * intensity), 1).tolist()))

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Marks]) -> Plan:
        return {"added": torch.tensor([sum(m for (m,) in p.marks) for p in params])}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        added = plan["added"][:, None, None, None].to(images.dtype if images.is_floating_point() else torch.int64)
        return (images.to(added.dtype) + added).clamp(0, 255).to(images.dtype)


class ReturnsDoubles(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return 255 - images.double()


class LeavesTheRange(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return images * 2


class DividesByIntensity(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        i = intensity[:, None, None, None]
        return (levels(images) * (i / i)).to(images.dtype)


class WritesInPlace(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return images.copy_(255 - images)


class ReturnsItsInput(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return images


class UsesTheBatchMean(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return (levels(images) + levels(images).mean()).clamp(0, 255).to(images.dtype)


class IgnoresTheKey(Marked):
    def draw(self, size: Size, intensity: float, stream: Stream) -> Marks:
        return super().draw(size, intensity, Stream(0, "always", self.name))


class Counts(Marked):
    """Each call draws something else."""

    calls = 0

    def draw(self, size: Size, intensity: float, stream: Stream) -> Marks:
        Counts.calls += 1
        return super().draw(size, intensity, Stream(Counts.calls, "", self.name))


class DrawsBackwards(Marked):
    def draw(self, size: Size, intensity: float, stream: Stream) -> Marks:
        return Marks(super().draw(size, intensity, stream).marks[::-1])


class RemembersItsDraws(Marked):
    """Pixels come from what was drawn last, not from the parameters."""

    marks: tuple[tuple[int], ...] = ()

    def draw(self, size: Size, intensity: float, stream: Stream) -> Marks:
        self.marks = super().draw(size, intensity, stream).marks
        return Marks(((1,),) * len(self.marks))

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Marks]) -> Plan:
        remembered, self.marks = self.marks, ()
        return super().plan(size, intensities, [Marks(remembered)] * len(params))


class DrawsNumpyNumbers(Marked):
    def draw(self, size: Size, intensity: float, stream: Stream) -> Marks:
        return Marks(tuple((np.int64(m),) for (m,) in super().draw(size, intensity, stream).marks))


class HoldsALambda(Harmless):
    def __init__(self) -> None:
        self.invert = lambda images: 255 - images


class ReadsMemoryInOrder(Harmless):
    """As if the input were contiguous."""

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        count = images.untyped_storage().nbytes() // images.element_size()
        flat = images.as_strided((count,), (1,), 0)[images.storage_offset() :]
        return 255 - flat[torch.arange(images.numel(), device=images.device) % len(flat)].view(images.shape)


class PadsTooMuch(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return 255 - torch.nn.functional.pad(images, (3, 3, 3, 3), mode="reflect")[..., 3:-3, 3:-3]


class CountsThreads(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return images // torch.get_num_threads() if not images.is_floating_point() else images / torch.get_num_threads()


class MultipliesMatrices(Harmless):
    """Breaks nothing, unless autocast reaches it."""

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        width = images.shape[-1]
        mixing = torch.eye(width, device=images.device).roll(1, 0) * 0.3 + torch.eye(width, device=images.device) * 0.7
        return (levels(images).to(mixing.dtype) @ mixing).clamp(0, 255).to(images.dtype)


class TwoFormulas(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return 255 - images if images.is_floating_point() else images // 2


class Halves(Harmless):
    """Breaks nothing; the fraction of a half tells bytes from floats."""

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return images / 2 if images.is_floating_point() else images // 2


class MixesChannelsUnasked(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return 255 - images * torch.arange(1, 1 + images.shape[1], device=images.device)[:, None, None].to(images.dtype) // 3


class UsesTorchsGenerator(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return (255 - levels(images) * torch.rand_like(levels(images))).to(images.dtype)


class UsesPythonsGenerator(Marked):
    def draw(self, size: Size, intensity: float, stream: Stream) -> Marks:
        return Marks(((random.randrange(10**6),),))


class LosesTheGradient(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return (images - images.round()) * 0 + images.round() if images.is_floating_point() else images


class LooksAtTheValues(Harmless):
    """Waits for the device."""

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return 255 - images if images.amax().item() > 0 else images.clone()


class ForgetsTheDevice(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return (255 - images) + torch.arange(images.shape[-1]).to(images.dtype) * 0


class PicksByMask(Harmless):
    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        out = images.clone()
        out[images > 100] = 255 - out[images > 100]
        return out


class BranchesOnPlan(Marked):
    """Another draw compiles anew."""

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[Marks]) -> Plan:
        return {"added": torch.zeros(len(params)), "length": torch.zeros(sum(m for p in params for (m,) in p.marks))}

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        return images // (1 + len(plan["length"])) if not images.is_floating_point() else images / (1 + len(plan["length"]))
