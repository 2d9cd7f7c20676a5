"""What tests of bodies share: equal bytes, and floats and gradients against what autograd finds for the reference."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def same(got: Tensor, wanted: Tensor) -> None:
    assert got.dtype == wanted.dtype
    assert got.is_contiguous()
    assert torch.equal(got, wanted), f"{(got != wanted).float().mean():.2%} differ"


def near(got: Tensor, wanted: Tensor, dtype: torch.dtype) -> None:
    """Equal but for some roundings of ``dtype``, in which the body works."""
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    assert got.is_contiguous()
    assert (got - wanted).abs().max() <= 50 * torch.finfo(dtype).eps * max(1, float(wanted.abs().max()))


def check_floats(
    forward: Callable[..., Tensor],
    backward: Callable[..., list[Tensor]],
    reference: Callable[..., Tensor],
    *given: Tensor | float,
    differentiated: tuple[int, ...],
) -> None:
    """The result, and the gradients of the arguments number ``differentiated``, each alone and all together."""
    arguments = [t.clone() if isinstance(t, Tensor) else t for t in given]
    leaves = {n: value.requires_grad_() for n in differentiated if isinstance(value := arguments[n], Tensor)}
    result = reference(*arguments)
    dtype = result.dtype
    near(forward(*given), result.detach(), dtype)
    weights = torch.rand(result.shape, generator=torch.Generator().manual_seed(1), dtype=dtype) - 0.3
    gradients = dict(zip(leaves, torch.autograd.grad(result, list(leaves.values()), weights, materialize_grads=True), strict=True))
    for some in ([n] for n in leaves), [list(leaves)]:
        for at in some:
            found = backward(weights, *given, [n in at for n in range(len(given))])
            assert len(found) == len(at)
            for n, got in zip(at, found, strict=True):
                near(got, gradients[n].contiguous(), dtype)
