"""Inpainting on CUDA; what it computes is stated in ``degrade/kernels/inpaint.py``.

One program fills one channel of one image, in a single launch.  Its lanes take the pixels of a step, which do not read one another; a
barrier between the steps shows what was stored to all lanes.  Every sum runs over the neighbours in raster order by single operations, so
the result equals that of the other bodies in every bit; multiplications and additions must not be fused.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import functools
import math

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

_MARGIN = tl.constexpr(4)  # around the padded order and distance: a neighbour's own neighbour is at most so far away
_FAR = 1e6  # distance outside of the image
_NUMBERS = ("steps", "height", "width", "channels")  # one compilation for all of their values


@triton.jit
def _divide(x, y):
    """As IEEE 754 says; Triton's own division of float32 may be a bit off."""
    return tl.div_rn(x, y) if x.dtype == tl.float32 else x / y


@triton.jit
def _slope(order, distance, rank, own, step, active):
    """Gradient of the distance along one axis from the neighbours known at the time of the pixel that the pointers point to."""
    has_before, has_after = tl.load(order - step, mask=active, other=0) < rank, tl.load(order + step, mask=active, other=0) < rank
    before, after = tl.load(distance - step, mask=active, other=0.0), tl.load(distance + step, mask=active, other=0.0)
    one_sided = tl.where(has_after, after - own, tl.where(has_before, own - before, 0.0))
    return tl.where(has_before & has_after, (after - before) * 0.5, one_sided)


@triton.jit
def _colour(image, y, x, width, active, REAL: tl.constexpr):
    return tl.load(image + y * width + x, mask=active, other=0.0).to(REAL)


@triton.jit
def _value(image, order, distance, neighbours, y, x, height, width, active, REAL: tl.constexpr, NEIGHBOURS: tl.constexpr):
    """What the pixels (y, x) are filled with, before clipping and rounding.  ``order`` and ``distance`` are padded."""
    stride = width + 2 * _MARGIN
    here = (y + _MARGIN) * stride + x + _MARGIN
    order += here
    distance += here
    rank = tl.load(order, mask=active, other=0)
    own = tl.load(distance, mask=active, other=0.0)
    slope_x, slope_y = _slope(order, distance, rank, own, 1, active), _slope(order, distance, rank, own, stride, active)
    total = tl.zeros(y.shape, REAL)
    mean, jx, jy = total, total, total
    for k in tl.range(0, NEIGHBOURS, loop_unroll_factor=4):  # so many have their loads under way at once
        rx, ry, cube = tl.load(neighbours + k), tl.load(neighbours + NEIGHBOURS + k), tl.load(neighbours + 2 * NEIGHBOURS + k)
        dx, dy = -rx.to(tl.int32), -ry.to(tl.int32)
        ny, nx = y + dy, x + dx
        near = order + dy * stride + dx
        part = active & (ny >= 0) & (ny < height) & (nx >= 0) & (nx < width)
        part = part & (tl.load(near, mask=part, other=0) < rank)
        apart = tl.abs(tl.load(distance + dy * stride + dx, mask=part, other=0.0) - own)
        nearness = (1.0 / (1.0 + apart.to(tl.float64))).to(tl.float32)  # in float64, as in OpenCV
        along = tl.abs(rx * slope_x + ry * slope_y)
        weight = tl.where(part, cube * nearness * tl.where(along > 0.01, along, 1e-6), 0.0).to(REAL)
        right = (tl.load(near + 1, mask=part, other=0) < rank).to(tl.int32)
        left = (tl.load(near - 1, mask=part, other=0) < rank).to(tl.int32)
        below = (tl.load(near + stride, mask=part, other=0) < rank).to(tl.int32)
        above = (tl.load(near - stride, mask=part, other=0) < rank).to(tl.int32)
        # A gradient along the first row (column) is taken on the second.
        row, column = tl.where(ny == 0, tl.minimum(height - 1, 1), ny), tl.where(nx == 0, tl.minimum(width - 1, 1), nx)
        to_right = _colour(image, row, tl.minimum(nx + right, width - 1), width, part, REAL)
        to_left = _colour(image, row, tl.maximum(nx - left, 0), width, part, REAL)
        to_below = _colour(image, tl.minimum(ny + below, height - 1), column, width, part, REAL)
        to_above = _colour(image, tl.maximum(ny - above, 0), column, width, part, REAL)
        total += weight
        mean += weight * _colour(image, ny, nx, width, part, REAL)
        jx += weight * (1 + right * left).to(REAL) * (to_right - to_left) * rx
        jy += weight * (1 + below * above).to(REAL) * (to_below - to_above) * ry
    square = jx * jx + jy * jy
    length = tl.sqrt(tl.where(square > 0, square, 1.0).to(tl.float64)).to(REAL)  # a float64 root, rounded, is that of float32
    return _divide(mean, tl.where(total > 0, total, 1.0)) - _divide(jx + jy, length) + 0.5


@triton.jit(do_not_specialize=_NUMBERS)
def _forward(
    images, order, distance, neighbours, schedule, steps, height, width, channels,
    REAL: tl.constexpr, NEIGHBOURS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """In place.  uint8 ``images`` are rounded, float ones are not."""
    plane = tl.program_id(0).to(tl.int64)
    number = plane // channels
    size = height.to(tl.int64) * width
    image = images + plane * size
    padded = (height + 2 * _MARGIN).to(tl.int64) * (width + 2 * _MARGIN)
    order += number * padded
    distance += number * padded
    schedule += number * steps * LANES + tl.arange(0, LANES)
    pixel = tl.load(schedule)
    step = 0
    while tl.max(pixel, 0) >= 0:  # a step without pixels is past the last
        step += 1
        following = tl.load(schedule + step * LANES, mask=step < steps, other=-1)
        active = pixel >= 0
        y, x = pixel // width, pixel % width
        value = _value(image, order, distance, neighbours, y, x, height, width, active, REAL, NEIGHBOURS)
        value = tl.where(value < 0, 0.0, tl.where(value > 255, 255.0, value))  # a nan stays
        if images.dtype.element_ty == tl.uint8:
            value = (value + 8388608.0) - 8388608.0  # ties to even: from 2^23 on, float32 has no bits for a fraction
        tl.store(image + pixel, value.to(images.dtype.element_ty), mask=active)
        tl.debug_barrier()
        pixel = following


@functools.cache
def _neighbours(device: torch.device) -> Tensor:
    """(3, 28) float32: rx, ry, the filled pixel minus its neighbour, and 1 / |r|^3, in raster order of the neighbours."""
    apart = [(-dx, -dy) for dy in range(-3, 4) for dx in range(-3, 4) if 0 < dx * dx + dy * dy <= 9]
    cubes = [1 / ((rx * rx + ry * ry) * math.sqrt(rx * rx + ry * ry)) for rx, ry in apart]
    return torch.tensor([*zip(*apart, strict=True), cubes], dtype=torch.float32, device=device)


def fill(images: Tensor, order: Tensor, distance: Tensor, schedule: Tensor) -> Tensor:
    """As ``inpaint_reference``."""
    result = images.clone(memory_format=torch.contiguous_format)
    if result.numel() == 0:
        return result
    batch, channels, height, width = images.shape
    padded = [pad(order, (_MARGIN.value,) * 4), pad(distance, (_MARGIN.value,) * 4, value=_FAR)]
    neighbours = _neighbours(images.device)
    with torch.cuda.device_of(images):
        _forward[(batch * channels,)](
            result, *padded, neighbours, schedule.contiguous(), schedule.shape[1], height, width, channels,
            REAL=tl.float64 if images.dtype == torch.float64 else tl.float32, NEIGHBOURS=neighbours.shape[1], LANES=schedule.shape[2],
            num_warps=4, num_stages=1, enable_fp_fusion=False,
        )  # fmt: skip
    return result
