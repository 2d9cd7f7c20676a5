"""Everything as it goes on CUDA, on the CPU: import this in a process with TRITON_INTERPRET=1."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from torch import Tensor
from torch.library import CustomOpDef
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves
from triton.runtime.interpreter import InterpretedFunction

import degrade
from degrade import functional
from degrade.kernels import dispatch
from degrade.kernels.dispatch import Kernel
from tests.fake_accelerator import kernel_modules

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when it was imported

_NO_LAUNCH = {
    "_unsafe_view", "alias", "as_strided", "detach", "empty", "empty_like", "empty_strided", "expand", "lift_fresh", "new_empty", "permute",
    "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
}  # fmt: skip
"""Operations of torch that make views, or memory that nothing is written to."""


def use_the_bodies_for_cuda() -> None:
    """Bytes and floats go through the Triton bodies from here on."""
    for module in kernel_modules():
        for value in vars(module).values():
            operator = value.operator if isinstance(value, Kernel) else value
            if isinstance(operator, CustomOpDef) and "cuda" in operator._backend_fns:
                operator.register_kernel("cpu", operator._backend_fns["cuda"])
            if isinstance(value, Kernel) and isinstance(value._gradients, CustomOpDef):
                value._gradients.register_kernel("cpu", value._gradients._backend_fns["cuda"])
    dispatch.fused = lambda images: True


class Launches(TorchDispatchMode):
    """What is launched while this is active.

    Attributes:
        counts: Triton kernels by their names, and operations of torch that launch one.  What the host plans is not among them.
        passes: those operations of torch that read or write as many values as ``pixels``.
    """

    def __init__(self, pixels: int) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.passes: Counter[str] = Counter()
        self._pixels = pixels

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        result = function(*args, **(kwargs or {}))
        if function.namespace != "degrade" and name not in _NO_LAUNCH:
            self.counts[name] += 1
            if any(isinstance(leaf, Tensor) and leaf.numel() >= self._pixels for leaf in tree_leaves((args, result))):
                self.passes[name] += 1
        return result


@contextmanager
def launches(images: Tensor) -> Iterator[Launches]:
    """Counts what is launched inside; passes are over as many values as one channel of ``images`` has."""
    run = InterpretedFunction.run

    def counting(self: Any, *args: Any, **kwargs: Any) -> Any:
        found.counts[f"triton {self.fn.__name__}"] += 1
        with _disable_current_modes():
            return run(self, *args, **kwargs)

    def on_the_host(plan: Any) -> Any:
        def planned(*args: Any) -> Any:
            with _disable_current_modes():
                return plan(*args)

        return planned

    with pytest.MonkeyPatch.context() as patch, Launches(images[:, 0].numel()) as found:
        patch.setattr(InterpretedFunction, "run", counting)
        for operator in degrade.OPERATORS.values():
            patch.setattr(operator, "plan", on_the_host(operator.plan))
        for function in ("_upload", "intensities_of"):
            patch.setattr(functional, function, on_the_host(getattr(functional, function)))
        yield found
