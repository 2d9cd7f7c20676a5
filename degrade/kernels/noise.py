"""Normal noise as a function of a key and a place: equal bits on every device, in every batch and layout.

An integer hash of the place picks two 16-bit indices into a table of 65,536 normal quantiles, so the field is made by integer operations
and table look-ups alone.  The hash is the 32-bit finaliser found by C. Wellons ("Prospecting for Hash Functions", lowbias32), twice.
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from degrade.kernels import native, quantize
from degrade.kernels.dispatch import Kernel

_GOLDEN = 0x9E3779B1 - 2**32  # odd, near 2^32 / golden ratio: spreads neighbouring places; as a signed number
_FIRST, _SECOND = 0x7FEB352D, 0x846CA68B - 2**32
_MASK64 = 2**64 - 1
_PAIRS = 32768  # of values that one call of the compiled body works on


@functools.cache
def quantiles() -> Tensor:
    """The (65536,) float32 normal quantiles at (n + 1/2) / 65536; shipped as data, for the function that makes them differs by version."""
    with importlib.resources.files("degrade.kernels").joinpath("normal_quantiles.npy").open("rb") as file:
        upper = np.load(file)
    return torch.from_numpy(np.concatenate([-upper[::-1], upper]))


def _mix(value: int) -> int:
    """A bijection of 64-bit integers (the finaliser of SplitMix64) that makes neighbouring seeds unlike."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK64
    return value ^ (value >> 31)


def keys(seeds: Sequence[int]) -> Tensor:
    """The (B, 2) int32 keys of noise fields from seeds in [0, 2**64)."""
    mixed = np.array([_mix(seed) for seed in seeds], dtype="<u8")
    return torch.from_numpy(mixed.view("<i4").reshape(-1, 2).astype(np.int32))


def _hash(x: Tensor) -> Tensor:
    """int32 to int32; right shifts are made logical by masks, and products wrap."""
    x = (x ^ ((x >> 16) & 0xFFFF)) * _FIRST
    x = (x ^ ((x >> 15) & 0x1FFFF)) * _SECOND
    return x ^ ((x >> 16) & 0xFFFF)


def normal(keys: Tensor, quantiles: Tensor, count: int) -> Tensor:
    """Standard normal noise, (B, count) float32, for (B, 2) int32 ``keys`` and the table of ``quantiles``."""
    place = torch.arange((count + 1) // 2, dtype=torch.int32, device=keys.device)
    bits = _hash(_hash((place * _GOLDEN) ^ keys[:, :1]) + keys[:, 1:])
    index = torch.cat([(bits >> 16) & 0xFFFF, bits & 0xFFFF], 1)[:, :count]
    return quantiles[index]


def add_noise_reference(images: Tensor, keys: Tensor, quantiles: Tensor, deviation: Tensor) -> Tensor:
    field = normal(keys, quantiles, images.shape[1:].numel()).view(images.shape)
    levels = images if images.is_floating_point() else images.float()
    return quantize.trunc(levels + quantize.per_image(deviation, images) * field.to(levels.dtype), images.dtype)


_add_noise = Kernel("add_noise", add_noise_reference, "Tensor images, Tensor keys, Tensor quantiles, Tensor deviation")


@_add_noise.on_cpu
def _add_noise_cpu(images: Tensor, keys: Tensor, quantiles: Tensor, deviation: Tensor) -> Tensor:
    images, quantiles, count = images.contiguous(), quantiles.contiguous(), images.shape[1:].numel()
    pairs, names, deviations = (count + 1) // 2, keys.tolist(), deviation.flatten().tolist()
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
    body = native.function("degrade_add_noise", *[native.POINTER] * 3, native.DOUBLE, *[native.INT] * 5)
    step = native.share(pairs, _PAIRS)
    blocks = -(-pairs // step)

    def part(n: int) -> None:
        b, block = divmod(n, blocks)
        first = block * step
        last = min(pairs, first + step)
        body(images[b].data_ptr(), quantiles.data_ptr(), out[b].data_ptr(), deviations[b], *names[b], count, first, last)

    native.parallel(len(images) * blocks, part)
    return out


@_add_noise.on_cuda
def _add_noise_cuda(images: Tensor, keys: Tensor, quantiles: Tensor, deviation: Tensor) -> Tensor:
    from degrade.kernels.cuda import noise as body  # not every platform has Triton

    return body.add_noise(images, keys, quantiles, deviation)


@_add_noise.gradient_on_cuda("images", "deviation")
def _add_noise_gradient_cuda(
    gradient: Tensor, images: Tensor, keys: Tensor, quantiles: Tensor, deviation: Tensor, wanted: list[bool]
) -> list[Tensor]:
    from degrade.kernels.cuda import noise as body

    found: list[Tensor] = body.add_noise_backward(gradient, images, keys, quantiles, deviation, wanted)
    return found


def add_noise(images: Tensor, keys: Tensor, quantiles: Tensor, deviation: Tensor) -> Tensor:
    """trunc(images + deviation noise), stored in the dtype of ``images``; noise as of ``normal``.

    Args:
        images: (B, C, H, W) levels.
        keys: (B, 2) int32, one field of noise for each image.
        quantiles: the table of ``quantiles``.
        deviation: (B,) float64 levels.
    """
    return _add_noise(images, keys, quantiles, deviation)
