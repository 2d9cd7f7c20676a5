"""Telea's fast-marching inpainting with radius 3, equal to OpenCV 4's ``cv2.inpaint(..., 3, cv2.INPAINT_TELEA)``.

Source: A. Telea, "An image inpainting technique based on the fast marching method", 2004, in OpenCV's variant.  Order and distances
depend on the hole alone, so :func:`march` computes them on the host.  A filled pixel is a weighted mean of the pixels around it that
are known by then, less a term bounded by sqrt(2) levels that follows their gradients:

    sum(w I) / sum(w) - (Jx + Jy) / sqrt(Jx^2 + Jy^2) + 0.5,    Jx = sum(w gx rx)

The filling is the custom operator ``degrade::inpaint``: :func:`inpaint_reference` in plain torch, with a body in C on the CPU and one
in Triton on CUDA.  All sum over the neighbours in raster order by single float32 operations, so they agree in every bit.

A quirk of OpenCV that this keeps: a gradient along the first row (column) is taken on the second.  Images of one row or column have
no second one and take it on the first; there OpenCV reads outside the image.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from degrade.kernels import native, quantize
from degrade.kernels.dispatch import Kernel

_REACHES = (0, 2, 2, 3, 2, 2, 0)  # columns to each side of the neighbours within distance 3, for rows -3..3
_PAD = 4  # pixels around padded maps: a neighbour's own neighbour is at most so far away
_FAR = 1e6  # distance of the frame
_NEVER = torch.iinfo(torch.int32).max  # order of a pixel that is not filled
_LANES = 128  # most pixels of one step
_USUAL_STEPS, _STEPS_PER_PIXEL = 1024, 6  # unions of large rectangles seldom need more, the latter for each pixel of height + width
_BLOCK = 2**16  # pixels whose terms the reference holds at once
_MOST_PIXELS = 2**31


class March(NamedTuple):
    """How the holes of B masks are filled; what :func:`inpaint` needs besides the images."""

    order: Tensor  # (B, H, W) int32: 0 where known, 1, 2, ... in the order of filling, the largest int32 where never filled
    distance: Tensor  # (B, H, W) float32: signed distance to the border of the hole in pixels, 1e6 far outside
    schedule: Tensor  # (B, steps, 128) int32: pixels y * W + x that each step fills, or -1; those of one step do not read one another


def march(masks: npt.NDArray[np.bool_]) -> March:
    """Plan the filling of the holes of ``masks`` (B, H, W), True in the hole.

    The number of steps is rounded up far enough that it hardly ever depends on the masks, only on H and W.

    Raises:
        ValueError: for another shape or dtype, or an image of 2**31 pixels.
        MemoryError: if the march finds no room.
    """
    if masks.ndim != 3 or masks.dtype != np.bool_:
        raise ValueError(f"masks: got {masks.dtype} of shape {masks.shape}, want bool of shape (B, H, W)")
    batch, height, width = masks.shape
    if (height + 2 * _PAD) * (width + 2 * _PAD) >= _MOST_PIXELS:
        raise ValueError(f"masks: got {height} x {width} pixels, want fewer than 2**31 with a margin of {_PAD}")
    masks = np.ascontiguousarray(masks)
    order = np.empty(masks.shape, np.int32)
    distance = np.empty(masks.shape, np.float32)
    pixels, slots = np.empty((2, batch, height * width), np.int32)
    counts = np.empty((batch, 2), np.int64)  # pixels and steps
    c_march = native.function("degrade_inpaint_march", native.POINTER, *[native.INT] * 3, *[native.POINTER] * 5)

    def work(n: int) -> None:
        results = (a[n].ctypes.data for a in (order, distance, pixels, slots, counts))
        c_march(masks[n].ctypes.data, height, width, _LANES, *results)

    native.parallel(batch, work)
    if (counts < 0).any():
        raise MemoryError(f"no memory to plan the inpainting of {height} x {width} pixels")
    unit = min(_USUAL_STEPS, _STEPS_PER_PIXEL * (height + width))
    steps = -(-max(1, counts[:, 1].max(initial=0)) // unit) * unit
    schedule = np.empty((batch, steps, _LANES), np.int32)
    c_schedule = native.function("degrade_inpaint_schedule", *[native.POINTER] * 2, native.INT, native.POINTER, native.INT)

    def put(n: int) -> None:
        c_schedule(pixels[n].ctypes.data, slots[n].ctypes.data, counts[n, 0], schedule[n].ctypes.data, schedule[n].size)

    native.parallel(batch, put)
    return March(*map(torch.from_numpy, (order, distance, schedule)))


def edge(masks: npt.NDArray[np.bool_]) -> Tensor:
    """(B, H, W) bool: the edge of the holes of ``masks`` (B, H, W), one pixel wide; equal to OpenCV's Canny with every gradient counted."""
    masks = np.ascontiguousarray(masks)
    edges = np.empty_like(masks)
    c_edge = native.function("degrade_inpaint_edge", native.POINTER, *[native.INT] * 2, native.POINTER)
    native.parallel(len(masks), lambda n: c_edge(masks[n].ctypes.data, *masks.shape[1:], edges[n].ctypes.data))
    return torch.from_numpy(edges)


def inpaint(images: Tensor, order: Tensor, distance: Tensor, schedule: Tensor) -> Tensor:
    """Fill the holes of ``images``.

    Args:
        images: (B, C, H, W) levels in [0, 255].  uint8: equal to OpenCV, each filled pixel rounded before others use it.
            float32 or float64: filled pixels are clipped but not rounded.
        order, distance, schedule: what :func:`march` made, on the device of the images.

    Returns:
        A new tensor of the same shape and dtype.  Its gradient is exact but near the kink of the bounded term: where Jx^2 + Jy^2 is at most
        sum(w)^2, the image hardly changes (by a fraction of a level from pixel to pixel), and that term is held fixed.  Its true slope has
        no bound there, and the slopes multiply from ring to ring: in photographs they would reach 1e18.

    Raises:
        TypeError, ValueError: for images of another dtype, or shapes that do not fit.
    """
    if images.dtype not in (torch.uint8, torch.float32, torch.float64):
        raise TypeError(f"images: got {images.dtype}, want uint8, float32 or float64 levels")
    if images.dim() != 4:
        raise ValueError(f"images: got shape {tuple(images.shape)}, want (B, C, H, W)")
    shape = images.shape[:1] + images.shape[2:]
    for name, plan, dtype in (("order", order, torch.int32), ("distance", distance, torch.float32)):
        if plan.shape != shape or plan.dtype != dtype:
            raise ValueError(f"{name}: got {plan.dtype} of shape {tuple(plan.shape)}, want {dtype} of shape {tuple(shape)}")
    result: Tensor = _inpaint(images, order, distance, schedule)
    return result


def darken(images: Tensor, places: Tensor, factor: float) -> Tensor:
    """(B, C, H, W) levels; where ``places`` (B, 1, H, W) bool say so trunc(factor images), with ``factor`` in [0, 1].

    Bytes are multiplied in float64: in float32 some products are a level off.
    """
    return _darken(images, places, factor)


# -- in plain torch -------------------------------------------------------------------------------------------------------


class _Maps(NamedTuple):
    """The plan padded by _PAD pixels, (B, H + 8, W + 8) flattened to N, and the neighbourhood as K offsets in it."""

    rank: Tensor  # (N,) int32: the order; 0, as a known pixel has, outside the image
    inside: Tensor  # (N,) bool: in the image
    distance: Tensor  # (N,) float32
    slope_x: Tensor  # (N,) float32: gradient of the distance when this pixel is filled
    slope_y: Tensor
    place: Tensor  # (N,) int64: where the colour stands; outside the image that of the nearest pixel in it
    row: Tensor  # (N,) int64: the pixel itself, or in the first row the one below
    column: Tensor  # (N,) int64: the pixel itself, or in the first column the one to the right
    stride: int
    offset: Tensor  # (K,) int64
    rx: Tensor  # (K,) float32: the filled pixel minus its neighbour
    ry: Tensor
    cube: Tensor  # (K,) float32: 1 / |r|^3


class _Terms(NamedTuple):
    """What the sums for M pixels run over: K neighbours, with weight 0 where one does not take part."""

    weight: Tensor  # (M, K, 1)
    total: Tensor  # (M, 1): sum of the weights, 1 in place of 0
    places: Tensor  # (5, M, K) int64: of the colour; of the two ends, right and below; of the two starts, left and above, of its gradient
    steep: Tensor  # (2, M, K, 1): the weight times 1 or 2, by which the differences between these count


def _slope(rank: Tensor, distance: Tensor, step: int) -> Tensor:
    """Gradient of the distance along one axis from the neighbours known at the time of each pixel."""
    before, after = (distance.roll(s) for s in (step, -step))
    has_before, has_after = (rank.roll(s) < rank for s in (step, -step))
    one_sided = torch.where(has_after, after - distance, torch.where(has_before, distance - before, 0))
    return torch.where(has_before & has_after, (after - before) * 0.5, one_sided)


def _maps(order: Tensor, distance: Tensor) -> _Maps:
    batch, height, width = order.shape
    device, stride = order.device, width + 2 * _PAD
    y, x = (torch.arange(-_PAD, size + _PAD, device=device) for size in (height, width))
    y, x = y[:, None], x[None]
    pixel = torch.arange(batch * (height + 2 * _PAD) * stride, device=device).view(batch, height + 2 * _PAD, stride)
    image = torch.arange(batch, device=device)[:, None, None] * (height * width)
    rank = pad(order, (_PAD,) * 4).flatten()
    far = pad(distance, (_PAD,) * 4, value=_FAR).flatten()
    rows = torch.arange(-3, 4, device=device)
    dx = torch.cat([torch.arange(-reach, reach + 1, device=device) for reach in _REACHES])
    dy = torch.cat([rows[k].expand(2 * reach + 1) for k, reach in enumerate(_REACHES)])
    square = (dx * dx + dy * dy).clamp(min=1).to(torch.float64)  # the centre, never known, takes part with weight 0
    return _Maps(
        rank=rank,
        inside=((y >= 0) & (y < height) & (x >= 0) & (x < width)).expand(batch, -1, -1).flatten(),
        distance=far,
        slope_x=_slope(rank, far, 1),
        slope_y=_slope(rank, far, stride),
        place=(image + y.clamp(0, height - 1) * width + x.clamp(0, width - 1)).flatten(),
        row=(pixel + stride * ((y == 0) & (height > 1))).flatten(),
        column=(pixel + ((x == 0) & (width > 1)).to(torch.int64)).flatten(),
        stride=stride,
        offset=dy * stride + dx,
        rx=-dx.to(torch.float32),
        ry=-dy.to(torch.float32),
        cube=(1 / (square * square.sqrt())).to(torch.float32),
    )


def _in_order(parts: Tensor, dim: int) -> Tensor:
    """The sum over ``dim``, one by one: a reduction has an order of its own."""
    return functools.reduce(torch.add, parts.unbind(dim))


def _terms(maps: _Maps, pixel: Tensor, dtype: torch.dtype) -> _Terms:
    """The neighbours of (S, M) padded pixels that are known when these are filled; all with a leading dimension S."""
    pixel = pixel[..., None]
    near = pixel + maps.offset
    rank = maps.rank[pixel]
    along = (maps.rx * maps.slope_x[pixel] + maps.ry * maps.slope_y[pixel]).abs()
    apart = (maps.distance[near] - maps.distance[pixel]).abs()
    nearness = (1 / (1 + apart.to(torch.float64))).to(torch.float32)  # in float64, as in OpenCV
    weight = maps.cube * nearness * torch.where(along > 0.01, along, 1e-6)
    weight = torch.where((maps.rank[near] < rank) & maps.inside[near], weight, 0).to(dtype)
    total = _in_order(weight, 2)
    right, left, below, above = ((maps.rank[near + step] < rank).to(torch.int64) for step in (1, -1, maps.stride, -maps.stride))
    row, column = maps.row[near], maps.column[near]
    read = (near, row + right, column + below * maps.stride, row - left, column - above * maps.stride)
    return _Terms(
        weight=weight[..., None],
        total=torch.where(total > 0, total, 1)[..., None],
        places=maps.place[torch.stack(read, dim=1)],
        steep=(weight[:, None] * torch.stack((1 + right * left, 1 + below * above), dim=1))[..., None],
    )


def _value(terms: _Terms, apart: Tensor, colours: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(M, C) values before clipping and rounding, from the (places, C) colours; and Jx, Jy.  ``apart``: (2, 1, K, 1) rx, ry."""
    read = colours[terms.places]
    gradients = terms.steep * (read[1:3] - read[3:5]) * apart
    mean, x, y = _in_order(torch.cat(((terms.weight * read[0])[None], gradients)), 2).unbind()
    square = x * x + y * y
    # A float32 root may be a bit off, MKL's is; a float64 one, rounded, is not.
    length = torch.where(square > 0, square, 1).to(torch.float64).sqrt().to(square.dtype)
    bounded = (x + y) / length
    if bounded.requires_grad:
        bounded = torch.where(square > terms.total.square(), bounded, bounded.detach())
    return mean / terms.total - bounded + 0.5, x, y


def _steps(
    schedule: Tensor, maps: _Maps, width: int, places: int, dtype: torch.dtype, backwards: bool = False
) -> Iterator[tuple[Tensor, _Terms]]:
    """For each step the places of all images' pixels, (M,), and their terms; place ``places`` where there is no pixel."""
    batch = schedule.shape[0]
    image = torch.arange(batch, device=schedule.device)[:, None, None]
    cell = schedule.to(torch.int64).clamp(min=0)
    pixel = image * (maps.rank.shape[0] // max(batch, 1)) + (cell // width + _PAD) * maps.stride + cell % width + _PAD
    place = torch.where(schedule < 0, places, image * (places // max(batch, 1)) + cell)
    order = -1 if backwards else 1
    size = max(1, _BLOCK // max(batch * schedule.shape[2], 1))
    blocks = [torch.split(p.movedim(1, 0).flatten(1), size) for p in (pixel, place)]
    for block_pixel, block_place in list(zip(*blocks, strict=True))[::order]:
        terms = [t.unbind() for t in _terms(maps, block_pixel, dtype)]
        yield from [(p, _Terms(*t)) for p, *t in zip(block_place.unbind(), *terms, strict=True)][::order]


def _as_places(images: Tensor) -> Tensor:
    """(B, C, H, W) images as (B H W + 1, C) colours; the last place belongs to no pixel."""
    return pad(images.permute(0, 2, 3, 1).reshape(-1, images.shape[1]), (0, 0, 0, 1))


def _as_images(colours: Tensor, shape: torch.Size) -> Tensor:
    batch, channels, height, width = shape
    return colours[:-1].reshape(batch, height, width, channels).permute(0, 3, 1, 2).contiguous()


def inpaint_reference(images: Tensor, order: Tensor, distance: Tensor, schedule: Tensor) -> Tensor:
    """As :func:`inpaint`, on any device and without a host copy: step by step, all pixels of a step at once."""
    maps = _maps(order, distance)
    colours = _as_places(images if images.is_floating_point() else images.to(torch.float32))
    apart = torch.stack((maps.rx, maps.ry)).to(colours.dtype)[:, None, :, None]
    for place, terms in _steps(schedule, maps, images.shape[3], colours.shape[0] - 1, colours.dtype):
        clipped = _value(terms, apart, colours)[0].clamp(0, 255)
        colours.index_put_((place,), clipped if images.is_floating_point() else clipped.round())
    return _as_images(colours, images.shape).to(images.dtype)


def inpaint_backward_reference(
    gradient: Tensor, images: Tensor, filled: Tensor, order: Tensor, distance: Tensor, schedule: Tensor
) -> Tensor:
    """The gradient with respect to floating ``images``, of which ``inpaint`` made ``filled``: the steps in reverse."""
    maps = _maps(order, distance)
    before, colours, flow = _as_places(images), _as_places(filled), _as_places(gradient)
    apart = torch.stack((maps.rx, maps.ry)).to(flow.dtype)[:, None, :, None]
    nowhere = colours.shape[0] - 1
    for place, terms in _steps(schedule, maps, images.shape[3], nowhere, flow.dtype, backwards=True):
        colours.index_put_((place,), before[place])  # as it stood before this step
        value, x, y = _value(terms, apart, colours)
        out = torch.where((value < 0) | (value > 255) | (place == nowhere)[:, None], 0, flow[place])
        flow.index_put_((place,), torch.zeros_like(out))
        square = x * x + y * y
        sloping = square > terms.total.square()
        # The derivatives of -(x + y) / sqrt(x^2 + y^2) are y (x - y) / (x^2 + y^2)^1.5 and x (y - x) / (x^2 + y^2)^1.5.
        turn = torch.where(sloping, (x - y) * out / torch.where(sloping, square * square.sqrt(), 1), 0)
        to_mean = ((out / terms.total)[:, None] * terms.weight)[None]
        to_ends = torch.stack((y * turn, -x * turn))[:, :, None] * (terms.steep * apart)
        flow.index_put_((terms.places,), torch.cat((to_mean, to_ends, -to_ends)), accumulate=True)
    return _as_images(flow, images.shape)


def darken_reference(images: Tensor, places: Tensor, factor: float) -> Tensor:
    scaled = images * factor if images.is_floating_point() else quantize.trunc(images.double() * factor, torch.uint8)
    return torch.where(places, scaled, images)


_darken = Kernel("darken", darken_reference, "Tensor images, Tensor places, float factor")
_inpaint = torch.library.custom_op("degrade::inpaint", inpaint_reference, mutates_args=())
_inpaint_backward = torch.library.custom_op("degrade::inpaint_backward", inpaint_backward_reference, mutates_args=())


@_inpaint.register_fake
def _(images: Tensor, order: Tensor, distance: Tensor, schedule: Tensor) -> Tensor:
    return images.new_empty(images.shape)


@_inpaint_backward.register_fake
def _(gradient: Tensor, images: Tensor, filled: Tensor, order: Tensor, distance: Tensor, schedule: Tensor) -> Tensor:
    return images.new_empty(images.shape)


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    images, *plan = inputs
    ctx.save_for_backward(images, output, *plan)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    return _inpaint_backward(gradient, *ctx.saved_tensors), None, None, None


_inpaint.register_autograd(_backward, setup_context=_setup_context)


# -- on the CPU -----------------------------------------------------------------------------------------------------------


def _each_image(function: Callable[..., None], tensors: list[Tensor | None], order: Tensor, distance: Tensor) -> None:
    """Call a C function for each image: pointers into (B, C, H, W) tensors, sizes, the plan, and where its status goes."""
    batch, height, width = order.shape
    channels = next(t.shape[1] for t in tensors if t is not None)
    order, distance = order.contiguous(), distance.contiguous()
    status = torch.zeros(batch, dtype=torch.int64, device="cpu")

    def work(n: int) -> None:
        pointers = [None if t is None else t[n].data_ptr() for t in tensors]
        function(*pointers, channels, height, width, order[n].data_ptr(), distance[n].data_ptr(), status[n].data_ptr())

    native.parallel(batch, work)
    if (status != 0).any():
        raise MemoryError(f"no memory to inpaint images of {height} x {width} pixels")


def _suffix(dtype: torch.dtype) -> str:
    return "f64" if dtype == torch.float64 else "f32"


@_inpaint.register_kernel("cpu")
def _(images: Tensor, order: Tensor, distance: Tensor, schedule: Tensor) -> Tensor:
    result = images.clone(memory_format=torch.contiguous_format)
    function = native.function(f"degrade_inpaint_{_suffix(images.dtype)}", *[native.POINTER] * 2, *[native.INT] * 3, *[native.POINTER] * 3)
    _each_image(function, [result, None] if images.is_floating_point() else [None, result], order, distance)
    return result


@_inpaint_backward.register_kernel("cpu")
def _(gradient: Tensor, images: Tensor, filled: Tensor, order: Tensor, distance: Tensor, schedule: Tensor) -> Tensor:
    result = gradient.clone(memory_format=torch.contiguous_format)
    function = native.function(
        f"degrade_inpaint_adjoint_{_suffix(images.dtype)}", *[native.POINTER] * 3, *[native.INT] * 3, *[native.POINTER] * 3
    )
    _each_image(function, [images.contiguous(), filled.contiguous(), result], order, distance)
    return result


@_darken.on_cpu
def _darken_cpu(images: Tensor, places: Tensor, factor: float) -> Tensor:
    images, places = images.contiguous(), places.contiguous()
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
    channels, size = images.shape[1], places[:1].numel()
    body = native.function("degrade_darken", *[native.POINTER] * 3, native.DOUBLE, native.INT)

    def plane(n: int) -> None:
        b, c = divmod(n, channels)
        body(images[b, c].data_ptr(), places[b].data_ptr(), out[b, c].data_ptr(), factor, size)

    native.parallel(len(images) * channels, plane)
    return out


# -- on CUDA --------------------------------------------------------------------------------------------------------------


@_inpaint.register_kernel("cuda")
def _(images: Tensor, order: Tensor, distance: Tensor, schedule: Tensor) -> Tensor:
    from degrade.kernels.cuda import inpaint as body  # not every platform has Triton

    return body.fill(images, order, distance, schedule)


@_inpaint_backward.register_kernel("cuda")
def _(gradient: Tensor, images: Tensor, filled: Tensor, order: Tensor, distance: Tensor, schedule: Tensor) -> Tensor:
    from degrade.kernels.cuda import inpaint as body

    return body.fill_backward(gradient, images, filled, order, distance, schedule)


@_darken.on_cuda
def _darken_cuda(images: Tensor, places: Tensor, factor: float) -> Tensor:
    from degrade.kernels.cuda import inpaint as body

    return body.darken(images, places, factor)


@_darken.gradient_on_cuda("images")
def _darken_gradient_cuda(gradient: Tensor, images: Tensor, places: Tensor, factor: float, wanted: list[bool]) -> list[Tensor]:
    from degrade.kernels.cuda import inpaint as body

    return [body.darken(gradient, places, factor)]  # floats are scaled and not rounded, and so are their gradients
