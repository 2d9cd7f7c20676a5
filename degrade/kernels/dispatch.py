"""One meaning, a body per device: a reference in plain torch, a compiled body for bytes on the CPU, Triton bodies on CUDA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Body = Callable[..., Tensor]


def fused(images: Tensor) -> bool:
    """Whether a body of its own does the work in one go: for bytes, and for floats on CUDA.

    Elsewhere floats go through plain torch, whose gradient need not work out the formula anew.
    """
    return not images.is_floating_point() or images.is_cuda


class Kernel:
    """The custom operator ``degrade::<name>`` with the schema "(<arguments>) -> Tensor".

    Its result is contiguous, with the shape and dtype of the first argument unless ``like`` makes another.  Bodies are registered by
    ``on_cpu`` (called for bytes alone), ``on_cuda`` and ``gradient_on_cuda``; where there is none, the reference does the work.

    Args:
        reference: states the meaning, in plain torch; the gradient of floats is the one that autograd finds for it.
        arguments: with their types, as in the schema of a custom operator.
        like: makes an empty tensor like the result from the arguments.
    """

    def __init__(self, name: str, reference: Body, arguments: str, like: Body | None = None) -> None:
        self.name = name
        self.reference = reference
        self.arguments = arguments
        self.operator = torch.library.custom_op(f"degrade::{name}", self._contiguous, mutates_args=(), schema=f"({arguments}) -> Tensor")
        self.operator.register_fake(like or _like_first)
        self.operator.register_autograd(self._backward, setup_context=_remember)
        self._gradients: Callable[..., list[Tensor]] | None = None
        self._differentiated: frozenset[int] = frozenset()

    def __call__(self, first: Tensor, *others: Any) -> Tensor:
        result: Tensor = self.operator(first, *others) if fused(first) else self.reference(first, *others)
        return result

    def _contiguous(self, *values: Any) -> Tensor:
        return self.reference(*values).contiguous()

    def on_cpu(self, body: Body) -> Body:
        """Register ``body`` for bytes on the CPU."""
        self.operator.register_kernel("cpu", lambda *values: (body if values[0].dtype == torch.uint8 else self._contiguous)(*values))
        return body

    def on_cuda(self, body: Body) -> Body:
        """Register ``body`` for bytes and floats on CUDA."""
        self.operator.register_kernel("cuda", body)
        return body

    def gradient_on_cuda(self, *names: str) -> Callable[[Callable[..., list[Tensor]]], Callable[..., list[Tensor]]]:
        """Register a body that finds the gradients of the arguments ``names`` of floats on CUDA.

        It is called with the gradient of the result, contiguous, with the arguments, and with a list that tells for each argument whether
        its gradient is wanted.  It returns the wanted ones in their order, new tensors with the shape and dtype of their arguments.  For
        any other argument, and for a gradient of the gradient, the reference is worked out anew.
        """
        found = [argument.split()[-1] for argument in self.arguments.split(",")]
        self._differentiated = frozenset(found.index(name) for name in names)

        def register(body: Callable[..., list[Tensor]]) -> Callable[..., list[Tensor]]:
            schema = f"(Tensor gradient, {self.arguments}, bool[] wanted) -> Tensor[]"
            operator = torch.library.custom_op(f"degrade::{self.name}_backward", body, mutates_args=(), schema=schema, device_types="cuda")
            operator.register_fake(lambda gradient, *given: [_like_first(t) for t, wanted in zip(given, given[-1], strict=False) if wanted])
            self._gradients = operator
            return body

        return register

    def _backward(self, ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        tensors = iter(ctx.saved_tensors)
        given = [next(tensors) if is_tensor else value for is_tensor, value in ctx.given]
        wanted: list[bool] = list(ctx.needs_input_grad)
        at = [n for n, want in enumerate(wanted) if want]
        if fused(gradient) and self._gradients is not None and self._differentiated.issuperset(at) and not torch.is_grad_enabled():
            found: Sequence[Tensor] = self._gradients(gradient.contiguous(), *given, wanted)
        else:
            found = self._by_reference(gradient, given, at)
        results = dict(zip(at, found, strict=True))
        return tuple(results.get(n) for n in range(len(given)))

    def _by_reference(self, gradient: Tensor, given: list[Any], at: list[int]) -> tuple[Tensor, ...]:
        twice = torch.is_grad_enabled()
        for n in at:  # views, so that the gradient of an argument stops there where another one was made of it
            given[n] = given[n].view_as(given[n]) if twice else given[n].detach().requires_grad_()
        with torch.enable_grad():
            result = self.reference(*given)
        inputs = [given[n] for n in at]
        return torch.autograd.grad(result, inputs, gradient, create_graph=twice, allow_unused=True, materialize_grads=True)


def _like_first(first: Tensor, *others: object) -> Tensor:
    return torch.empty(first.shape, dtype=first.dtype, device=first.device)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*(value for value in inputs if isinstance(value, Tensor)))
    ctx.given = [(True, None) if isinstance(value, Tensor) else (False, value) for value in inputs]
