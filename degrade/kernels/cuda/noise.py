"""Noise added to bytes on CUDA; what is computed is stated in ``degrade/kernels/noise.py``."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import part_of_line, truncated

_PAIRS = 512  # of values that one program works on


@triton.jit
def _hash(x):
    """Of uint32."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _add(image, out, noise, inside):
    level = tl.load(image, mask=inside, other=0).to(tl.float32)
    tl.store(out, truncated(level + noise), mask=inside)


@triton.jit(do_not_specialize=("count",))
def _add_noise(images, keys, quantiles, deviation, out, count, BLOCK: tl.constexpr):
    """A hash makes the noise of two values: n, and n plus half of the ``count`` of an image."""
    half = (count + 1) // 2
    image, n, inside = part_of_line(half, BLOCK)
    key, other_key = tl.load(keys + 2 * image).to(tl.uint32), tl.load(keys + 2 * image + 1).to(tl.uint32)
    bits = _hash(_hash((n.to(tl.uint32) * 0x9E3779B1) ^ key) + other_key)
    scale = tl.load(deviation + image)
    here = image * count + n
    _add(images + here, out + here, scale * tl.load(quantiles + (bits >> 16)), inside)
    _add(images + here + half, out + here + half, scale * tl.load(quantiles + (bits & 0xFFFF)), n < count - half)


def add_noise(images: Tensor, keys: Tensor, quantiles: Tensor, deviation: Tensor) -> Tensor:
    """As ``add_noise_reference``."""
    images = images.contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    batch, count = len(images), images.shape[1:].numel()
    deviation = deviation.float().expand(batch, 1, 1, 1).contiguous()
    with torch.cuda.device_of(images):
        _add_noise[(batch * triton.cdiv((count + 1) // 2, _PAIRS),)](
            images, keys.expand(batch, 2).contiguous(), quantiles.contiguous(), deviation, out, count,
            BLOCK=_PAIRS, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip
    return out
