"""What an operator is: three functions (draw, plan, apply), a name and a category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from degrade.draws import Stream

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Size = tuple[int, int]  # height, width in pixels
Plan = dict[str, Tensor]


@dataclass(frozen=True)
class NoParams:
    """The parameters of an operator that draws nothing."""


P = TypeVar("P", bound="DataclassInstance")


class Operator(Generic[P]):
    """One degradation.  Subclasses hold its constants and its formula; an instance has no state.

    Attributes:
        name: the name in ``degrade.OPERATORS`` and in records.
        category: capture, transmission, environment or postprocessing.
        params: the frozen dataclass of its drawn parameters, plain numbers and tuples under the field names of a record.
        coloured: whether channels mix or differ, so that a grey image has to be expanded to three channels.
    """

    name: ClassVar[str]
    category: ClassVar[str]
    params: type[P]
    coloured: ClassVar[bool] = False

    def draw(self, size: Size, intensity: float, stream: Stream) -> P:
        """The random parameters of one image of ``size`` (height, width) pixels at ``intensity`` in [0, 1]."""
        if fields(self.params):
            raise NotImplementedError(f"{type(self).__name__} has parameters but does not draw them")
        return self.params()

    def check(self, size: Size, intensity: float, params: P) -> None:
        """Raise ``ValueError`` where ``params`` (of a record) do not fit an image of this size at this intensity."""

    def weights(self, intensity: Tensor) -> Plan:
        """The numbers of each image that are a formula of the (B,) float64 ``intensity`` alone, (B,) float64 each, under their names in
        the plan.
        """
        return {}

    def plan(self, size: Size, intensities: Sequence[float], params: Sequence[P]) -> Plan:
        """Tensors on the CPU that ``apply`` needs for B images of one size; their shapes depend on size and intensities alone."""
        return self.planned_weights(intensities)

    def planned_weights(self, intensities: Sequence[float]) -> Plan:
        """``weights`` on the CPU: a device would launch an operation for each step of a formula."""
        return self.weights(torch.tensor(intensities, dtype=torch.float64, device="cpu"))

    def with_gradient(self, plan: Plan, intensity: Tensor) -> Plan:
        """``plan`` with ``weights`` that carry the gradient of ``intensity``, if it wants one; their values are the same."""
        return {**plan, **self.weights(intensity)} if intensity.requires_grad else plan

    def apply(self, images: Tensor, plan: Plan, intensity: Tensor) -> Tensor:
        """The degraded levels, a new tensor of the shape, dtype and device of ``images``.

        Args:
            images: (B, C, H, W) levels in [0, 255].  uint8: the published pixels.  float32 or float64: the same formula without
                the 8-bit roundings, differentiable.
            plan: what ``plan`` returned, on the device of ``images``.
            intensity: (B,) float64 on the device of ``images``; carries gradient if the caller asked for it.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<operator {self.name} ({self.category})>"
