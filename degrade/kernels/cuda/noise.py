"""Noise added to images on CUDA; what is computed is stated in ``degrade/kernels/noise.py``."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import number, part_of_line, stored_truncated, summed, through_clip

_PAIRS = 512  # of values that one program works on


@triton.jit
def _hash(x):
    """Of uint32."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _noise(keys, quantiles, deviation, count, dtype: tl.constexpr, BLOCK: tl.constexpr):
    """The deviation, and two values of noise from each hash, one for n and one half of the ``count`` of an image later.

    Each value comes with where it belongs and whether that exists.
    """
    half = (count + 1) // 2
    image, n, inside = part_of_line(half, BLOCK)
    key, other_key = tl.load(keys + 2 * image).to(tl.uint32), tl.load(keys + 2 * image + 1).to(tl.uint32)
    bits = _hash(_hash((n.to(tl.uint32) * 0x9E3779B1) ^ key) + other_key)
    scale = number(deviation, image, dtype)
    noise, later_noise = tl.load(quantiles + (bits >> 16)).to(scale.dtype), tl.load(quantiles + (bits & 0xFFFF)).to(scale.dtype)
    here = image * count + n
    return scale, noise, here, inside, later_noise, here + half, n < count - half


@triton.jit
def _add(images, out, noise, here, inside):
    level = tl.load(images + here, mask=inside, other=0).to(noise.dtype)
    tl.store(out + here, stored_truncated(level + noise, out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=("count",))
def _add_noise(images, keys, quantiles, deviation, out, count, BLOCK: tl.constexpr):
    scale, noise, here, inside, later_noise, later, later_inside = _noise(keys, quantiles, deviation, count, images.dtype.element_ty, BLOCK)
    _add(images, out, scale * noise, here, inside)
    _add(images, out, scale * later_noise, later, later_inside)


@triton.jit
def _passed(gradient, images, to_images, noise, here, inside, IMAGES: tl.constexpr):
    level = tl.load(images + here, mask=inside, other=0)
    passed = through_clip(tl.load(gradient + here, mask=inside, other=0), level + noise)
    if IMAGES:
        tl.store(to_images + here, passed, mask=inside)
    return passed


@triton.jit(do_not_specialize=("count",))
def _add_noise_backward(
    gradient, images, keys, quantiles, deviation, to_images, parts, count,
    IMAGES: tl.constexpr, DEVIATION: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """``parts`` gets a number from each program, what it adds to the gradient of its image's deviation."""
    scale, noise, here, inside, later_noise, later, later_inside = _noise(keys, quantiles, deviation, count, images.dtype.element_ty, BLOCK)
    passed = _passed(gradient, images, to_images, scale * noise, here, inside, IMAGES)
    later_passed = _passed(gradient, images, to_images, scale * later_noise, later, later_inside, IMAGES)
    if DEVIATION:
        tl.store(parts + tl.program_id(0), tl.sum(passed * noise + later_passed * later_noise, 0))


def _prepared(images: Tensor, keys: Tensor, quantiles: Tensor, deviation: Tensor) -> tuple[list[Tensor], int, int]:
    """The contiguous arguments, how many values an image has, and how many programs work on it."""
    count = images.shape[1:].numel()
    given = [images.contiguous(), keys.contiguous(), quantiles.contiguous(), deviation.contiguous()]
    return given, count, triton.cdiv((count + 1) // 2, _PAIRS)


def add_noise(images: Tensor, keys: Tensor, quantiles: Tensor, deviation: Tensor) -> Tensor:
    """As ``add_noise_reference``."""
    given, count, programs = _prepared(images, keys, quantiles, deviation)
    out = torch.empty_like(given[0])
    if out.numel() == 0:
        return out
    with torch.cuda.device_of(images):
        _add_noise[(len(images) * programs,)](*given, out, count, BLOCK=_PAIRS, num_warps=4, enable_fp_fusion=False)
    return out


def add_noise_backward(
    gradient: Tensor, images: Tensor, keys: Tensor, quantiles: Tensor, deviation: Tensor, wanted: list[bool]
) -> list[Tensor]:
    """The wanted gradients of ``add_noise_reference`` for floats."""
    given, count, programs = _prepared(images, keys, quantiles, deviation)
    want_images, _, _, want_deviation = wanted
    to_images = torch.empty_like(given[0]) if want_images else gradient
    parts = torch.empty(len(images), programs, dtype=images.dtype, device=images.device)
    if parts.numel():
        with torch.cuda.device_of(images):
            _add_noise_backward[(parts.numel(),)](
                gradient, *given, to_images, parts, count,
                IMAGES=want_images, DEVIATION=want_deviation, BLOCK=_PAIRS, num_warps=4, enable_fp_fusion=False,
            )  # fmt: skip
    found = [to_images] if want_images else []
    if want_deviation:
        found.append(summed(parts, deviation))
    return found
