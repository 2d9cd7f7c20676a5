"""Canvases laid over bytes on CUDA; what is computed is stated in ``degrade/kernels/marks.py``."""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import part_of_line, round_to_even, truncated

_PIXELS = 1024  # of a plane that one program works on
_COLUMNS = 512


@triton.jit(do_not_specialize=("channels",))
def _cover(images, canvas, out, size, channels, BLOCK: tl.constexpr):
    plane, pixel, inside = part_of_line(size, BLOCK)
    image = plane // channels
    here = plane * size + pixel
    layer = canvas + (plane + image) * size + pixel  # canvases have a plane more than images
    covered = tl.load(canvas + ((image + 1) * (channels + 1) - 1) * size + pixel, mask=inside, other=0) > 0
    level = tl.where(covered, tl.load(layer, mask=covered, other=0), tl.load(images + here, mask=inside & (covered == 0), other=0))
    tl.store(out + here, level, mask=inside)


def cover(images: Tensor, canvas: Tensor) -> Tensor:
    """As ``cover_reference``."""
    images, canvas = images.contiguous(), canvas.contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    batch, channels, height, width = images.shape
    with torch.cuda.device_of(images):
        _cover[(batch * channels * triton.cdiv(height * width, _PIXELS),)](
            images, canvas, out, height * width, channels, BLOCK=_PIXELS, num_warps=4, enable_fp_fusion=False
        )
    return out


@triton.jit
def _mirrored(n, length):
    """n in -1..length as an index into a line."""
    n = tl.abs(n)
    return tl.maximum(tl.minimum(n, 2 * (length - 1) - n), 0)


@triton.jit
def _blurred(marks, row, column, inside, before, centre, after, height, width):
    """A row of the marks of one image, blurred along itself; times 65536."""
    marks += _mirrored(row, height) * width
    left = tl.load(marks + _mirrored(column - 1, width), mask=inside, other=0).to(tl.int64)
    middle = tl.load(marks + column, mask=inside, other=0).to(tl.int64)
    right = tl.load(marks + _mirrored(column + 1, width), mask=inside, other=0).to(tl.int64)
    return before * left + centre * middle + after * right


@triton.jit(do_not_specialize=("channels", "height", "width"))
def _add_glow(images, marks, kernel, weight, colour, out, channels, height, width, BLOCK: tl.constexpr):
    """Each program works on one row of all channels.  Sums are whole numbers and exact; the glow is rounded once, to float32."""
    line, column, inside = part_of_line(width, BLOCK)
    image, row = line // height, line % height
    size = height.to(tl.int64) * width
    before = round_to_even(tl.load(kernel + 3 * image) * 65536.0).to(tl.int64)
    after = round_to_even(tl.load(kernel + 3 * image + 2) * 65536.0).to(tl.int64)
    centre = 65536 - before - after
    marks += image * size
    glow = before * _blurred(marks, row - 1, column, inside, before, centre, after, height, width)
    glow += centre * _blurred(marks, row, column, inside, before, centre, after, height, width)
    glow += after * _blurred(marks, row + 1, column, inside, before, centre, after, height, width)
    added = tl.load(weight + image) * (glow.to(tl.float32) * 2.3283064365386963e-10)  # 2^-32
    here = image * channels * size + row * width + column
    for channel in range(channels):
        level = tl.load(images + here, mask=inside, other=0).to(tl.float32)
        tl.store(out + here, truncated(level + added * tl.load(colour + image * channels + channel).to(tl.float32)), mask=inside)
        here += size


def add_glow(images: Tensor, marks: Tensor, kernel: Tensor, weight: Tensor, colour: Tensor) -> Tensor:
    """As ``add_glow_reference``."""
    images, marks, kernel = images.contiguous(), marks.contiguous(), kernel.double().contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    batch, channels, height, width = images.shape
    weight, colour = weight.float().expand(batch, 1, 1, 1).contiguous(), colour.expand(batch, channels).contiguous()
    with torch.cuda.device_of(images):
        _add_glow[(batch * height * triton.cdiv(width, _COLUMNS),)](
            images, marks, kernel, weight, colour, out, channels, height, width, BLOCK=_COLUMNS, num_warps=4, enable_fp_fusion=False
        )
    return out
