"""Inpainting on CUDA; what it computes is stated in ``degrade/kernels/inpaint.py``.

One program fills one channel of one image, in a single launch.  Its lanes take the pixels of a step, which do not read one another; a
barrier between the steps shows what was stored to all lanes.  Every sum runs over the neighbours in raster order by single operations, so
the result equals that of the other bodies in every bit; multiplications and additions must not be fused.  The gradient takes the steps in
reverse, and hands what has flowed to a pixel on to the pixels that it reads.
"""
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import functools
import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from degrade.kernels.cuda.arithmetic import divide, part_of_line, truncated

_FAR = tl.constexpr(1e6)  # distance outside of the image
_NUMBERS = ("steps", "height", "width", "channels")  # one compilation for all of their values
_PIXELS = 1024  # of a plane that one program darkens


@triton.jit
def _slope(order, distance, rank, own, step, before_inside, after_inside):
    """Gradient of the distance along one axis from the neighbours known at the time of the pixel that the pointers point to."""
    has_before, has_after = (
        tl.load(order - step, mask=before_inside, other=0) < rank,
        tl.load(order + step, mask=after_inside, other=0) < rank,
    )
    before, after = tl.load(distance - step, mask=before_inside, other=_FAR), tl.load(distance + step, mask=after_inside, other=_FAR)
    one_sided = tl.where(has_after, after - own, tl.where(has_before, own - before, 0.0))
    return tl.where(has_before & has_after, (after - before) * 0.5, one_sided)


@triton.jit
def _pixels(order, distance, pixel, height, width):
    """What the filling of the pixels depends on besides colours; nothing outside the image is unknown, there 0 stands for the order."""
    active = pixel >= 0
    y, x = pixel // width, pixel % width
    order += pixel
    distance += pixel
    rank = tl.load(order, mask=active, other=0)
    own = tl.load(distance, mask=active, other=0.0)
    slope_x = _slope(order, distance, rank, own, 1, active & (x > 0), active & (x < width - 1))
    slope_y = _slope(order, distance, rank, own, width, active & (y > 0), active & (y < height - 1))
    return y, x, rank, own, slope_x, slope_y


@triton.jit
def _neighbour(k, pixels, order, distance, neighbours, height, width, REAL: tl.constexpr, NEIGHBOURS: tl.constexpr):
    """Neighbour ``k`` of ``pixels``: whether it takes part, with which weight, and the place of its colour; for each axis the places
    between which its gradient is taken, the end first, the weight of the difference, and the filled pixel minus the neighbour.
    """
    y, x, rank, own, slope_x, slope_y = pixels
    rx, ry, cube = tl.load(neighbours + k), tl.load(neighbours + NEIGHBOURS + k), tl.load(neighbours + 2 * NEIGHBOURS + k)
    ny, nx = y - ry.to(tl.int32), x - rx.to(tl.int32)
    place = ny * width + nx
    order += place
    part = (ny >= 0) & (ny < height) & (nx >= 0) & (nx < width)
    part = part & (tl.load(order, mask=part, other=0) < rank)  # a lane without a pixel has rank 0
    apart = tl.abs(tl.load(distance + place, mask=part, other=0.0) - own)
    nearness = (1.0 / (1.0 + apart.to(tl.float64))).to(tl.float32)  # in float64, as in OpenCV
    along = tl.abs(rx * slope_x + ry * slope_y)
    weight = tl.where(part, cube * nearness * tl.where(along > 0.01, along, 1e-6), 0.0).to(REAL)
    right = (tl.load(order + 1, mask=part & (nx < width - 1), other=0) < rank).to(tl.int32)
    left = (tl.load(order - 1, mask=part & (nx > 0), other=0) < rank).to(tl.int32)
    below = (tl.load(order + width, mask=part & (ny < height - 1), other=0) < rank).to(tl.int32)
    above = (tl.load(order - width, mask=part & (ny > 0), other=0) < rank).to(tl.int32)
    # A gradient along the first row (column) is taken on the second.
    row, column = tl.where(ny == 0, tl.minimum(height - 1, 1), ny), tl.where(nx == 0, tl.minimum(width - 1, 1), nx)
    to_right, to_left = row * width + tl.minimum(nx + right, width - 1), row * width + tl.maximum(nx - left, 0)
    to_below, to_above = tl.minimum(ny + below, height - 1) * width + column, tl.maximum(ny - above, 0) * width + column
    across = to_right, to_left, weight * (1 + right * left).to(REAL), rx
    down = to_below, to_above, weight * (1 + below * above).to(REAL), ry
    return part, weight, place, across, down


@triton.jit
def _colour(image, place, part, REAL: tl.constexpr):
    return tl.load(image + place, mask=part, other=0.0).to(REAL)


@triton.jit
def _difference(image, axis, part, REAL: tl.constexpr):
    end, start, steep, apart = axis
    return steep * (_colour(image, end, part, REAL) - _colour(image, start, part, REAL)) * apart


@triton.jit
def _value(image, pixels, order, distance, neighbours, height, width, REAL: tl.constexpr, NEIGHBOURS: tl.constexpr):
    """What ``pixels`` are filled with, before clipping and rounding; and sum(w), 1 in place of 0, Jx, Jy, and the length of (Jx, Jy)."""
    total = tl.zeros(pixels[0].shape, REAL)
    mean, jx, jy = total, total, total
    for k in tl.range(0, NEIGHBOURS, loop_unroll_factor=4):  # so many have their loads under way at once
        part, weight, place, across, down = _neighbour(k, pixels, order, distance, neighbours, height, width, REAL, NEIGHBOURS)
        total += weight
        mean += weight * _colour(image, place, part, REAL)
        jx += _difference(image, across, part, REAL)
        jy += _difference(image, down, part, REAL)
    total = tl.where(total > 0, total, 1.0)
    square = jx * jx + jy * jy
    length = tl.sqrt(tl.where(square > 0, square, 1.0).to(tl.float64)).to(REAL)  # a float64 root, rounded, is that of float32
    return divide(mean, total) - divide(jx + jy, length) + 0.5, total, jx, jy, length


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
    order += number * size
    distance += number * size
    schedule += number * steps * LANES + tl.arange(0, LANES)
    pixel = tl.load(schedule)
    step = 0
    while tl.max(pixel, 0) >= 0:  # a step without pixels is past the last
        step += 1
        following = tl.load(schedule + step * LANES, mask=step < steps, other=-1)
        pixels = _pixels(order, distance, pixel, height, width)
        value, _, _, _, _ = _value(image, pixels, order, distance, neighbours, height, width, REAL, NEIGHBOURS)
        value = tl.where(value < 0, 0.0, tl.where(value > 255, 255.0, value))  # a nan stays
        if images.dtype.element_ty == tl.uint8:
            value = (value + 8388608.0) - 8388608.0  # ties to even: from 2^23 on, float32 has no bits for a fraction
        tl.store(image + pixel, value.to(images.dtype.element_ty), mask=pixel >= 0)
        tl.debug_barrier()
        pixel = following


@triton.jit
def _hand_back(flow, axis, share, part):
    end, start, steep, apart = axis
    share *= steep * apart
    tl.atomic_add(flow + end, share, mask=part, sem="relaxed")
    tl.atomic_add(flow + start, -share, mask=part, sem="relaxed")


@triton.jit(do_not_specialize=_NUMBERS)
def _backward(
    flow, images, colours, order, distance, neighbours, schedule, steps, height, width, channels,
    REAL: tl.constexpr, NEIGHBOURS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """In place: ``flow`` is at first the gradient with respect to the filled ``colours``, which become ``images`` again.

    Flow is changed and also read by atomic additions alone: these work in the cache that all processors share, where a load might find an
    old value in that of its own.  The barrier puts those of one step before those of the next.
    """
    plane = tl.program_id(0).to(tl.int64)
    number = plane // channels
    size = height.to(tl.int64) * width
    flow += plane * size
    image = images + plane * size
    colour = colours + plane * size
    order += number * size
    distance += number * size
    schedule += number * steps * LANES
    lane = tl.arange(0, LANES)
    step = 0
    for first in range(0, steps, LANES):  # count the steps that have pixels, which stand before the others
        at = first + lane
        step += tl.sum((tl.load(schedule + at * LANES, mask=at < steps, other=-1) >= 0).to(tl.int32), 0)
    while step > 0:
        step -= 1
        pixel = tl.load(schedule + step * LANES + lane)
        active = pixel >= 0
        tl.store(colour + pixel, tl.load(image + pixel, mask=active), mask=active)  # as it stood before this step
        tl.debug_barrier()
        pixels = _pixels(order, distance, pixel, height, width)
        value, total, jx, jy, length = _value(colour, pixels, order, distance, neighbours, height, width, REAL, NEIGHBOURS)
        out = tl.atomic_add(flow + pixel, tl.zeros_like(value), mask=active, sem="relaxed")
        tl.atomic_add(flow + pixel, -out, mask=active, sem="relaxed")  # what was filled takes no part in the result
        out = tl.where((value < 0) | (value > 255), 0.0, out)
        # The derivatives of -(x + y) / sqrt(x^2 + y^2) are y (x - y) / (x^2 + y^2)^1.5 and x (y - x) / (x^2 + y^2)^1.5.
        square = jx * jx + jy * jy
        sloping = square > total * total
        turn = tl.where(sloping, divide((jx - jy) * out, tl.where(sloping, square * length, 1.0)), 0.0)
        to_mean = divide(out, total)
        for k in range(NEIGHBOURS):
            part, weight, place, across, down = _neighbour(k, pixels, order, distance, neighbours, height, width, REAL, NEIGHBOURS)
            tl.atomic_add(flow + place, to_mean * weight, mask=part, sem="relaxed")
            _hand_back(flow, across, jy * turn, part)
            _hand_back(flow, down, -jx * turn, part)
        tl.debug_barrier()


@functools.cache
def _neighbours(device: torch.device) -> Tensor:
    """(3, 28) float32: rx, ry, the filled pixel minus its neighbour, and 1 / |r|^3, in raster order of the neighbours."""
    apart = [(-dx, -dy) for dy in range(-3, 4) for dx in range(-3, 4) if 0 < dx * dx + dy * dy <= 9]
    cubes = [1 / ((rx * rx + ry * ry) * math.sqrt(rx * rx + ry * ry)) for rx, ry in apart]
    return torch.tensor([*zip(*apart, strict=True), cubes], dtype=torch.float32, device=device)


def _launch(kernel, planes: list[Tensor], order: Tensor, distance: Tensor, schedule: Tensor) -> None:
    """A program for each of the planes of contiguous images."""
    first = planes[0]
    if first.numel() == 0:
        return
    batch, channels, height, width = first.shape
    neighbours = _neighbours(first.device)
    with torch.cuda.device_of(first):
        kernel[(batch * channels,)](
            *planes, order.contiguous(), distance.contiguous(), neighbours, schedule.contiguous(),
            schedule.shape[1], height, width, channels,
            REAL=tl.float64 if first.dtype == torch.float64 else tl.float32, NEIGHBOURS=neighbours.shape[1], LANES=schedule.shape[2],
            num_warps=4, num_stages=1, enable_fp_fusion=False,
        )  # fmt: skip


def fill(images: Tensor, order: Tensor, distance: Tensor, schedule: Tensor) -> Tensor:
    """As ``inpaint_reference``."""
    result = images.clone(memory_format=torch.contiguous_format)
    _launch(_forward, [result], order, distance, schedule)
    return result


def fill_backward(gradient: Tensor, images: Tensor, filled: Tensor, order: Tensor, distance: Tensor, schedule: Tensor) -> Tensor:
    """As ``inpaint_backward_reference``, to rounding: the order of the additions is not fixed."""
    flow, colours = (t.clone(memory_format=torch.contiguous_format) for t in (gradient, filled))
    _launch(_backward, [flow, images.contiguous(), colours], order, distance, schedule)
    return flow


@triton.jit(do_not_specialize=("channels",))
def _darken(images, places, out, size, channels, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    plane, pixel, inside = part_of_line(size, BLOCK)
    here = plane * size + pixel
    level = tl.load(images + here, mask=inside, other=0)
    chosen = tl.load(places + plane // channels * size + pixel, mask=inside, other=0)
    scaled = truncated(level.to(tl.float64) * FACTOR) if level.dtype == tl.uint8 else level * FACTOR
    tl.store(out + here, tl.where(chosen, scaled, level), mask=inside)


def darken(images: Tensor, places: Tensor, factor: float) -> Tensor:
    """As ``darken_reference``."""
    images, places = images.contiguous(), places.contiguous()
    out = torch.empty_like(images)
    if out.numel() == 0:
        return out
    batch, channels, height, width = images.shape
    with torch.cuda.device_of(images):
        _darken[(batch * channels * triton.cdiv(height * width, _PIXELS),)](
            images, places, out, height * width, channels, FACTOR=factor, BLOCK=_PIXELS, num_warps=4, enable_fp_fusion=False
        )
    return out
