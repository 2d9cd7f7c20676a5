"""Mean-shift filtering on a two-level pyramid, equal to OpenCV 4's ``pyrMeanShiftFiltering`` with ``maxLevel=1``.

Every pixel of the half-resolution image climbs to the mean of its neighbourhood in position and colour (D. Comaniciu and
P. Meer, "Mean shift: a robust approach toward feature space analysis", 2002).  The result is brought up to full resolution;
where it has edges, the pixels of the full-resolution image climb anew.

The climbing is the custom operator ``degrade::mean_shift_climb``: :func:`mean_shift_climb_reference` in plain torch, with a
body in C on the CPU and one in Triton on CUDA.  Pyramid, edges and the choice between the levels have bodies on CUDA.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from degrade.kernels import native
from degrade.kernels.dispatch import Kernel

MAX_RADIUS = 40
_STEPS = 5
_MIN_EDGE = 16  # squared colour difference below which OpenCV sees no edge
_ROWS = 8  # that one call of the C body filters


def mean_shift(images: Tensor, radius: Tensor, max_radius: int = MAX_RADIUS) -> Tensor:
    """Mean-shift filter with the same radius in pixels and in colour levels.

    Args:
        images: (B, 3, H, W) levels 0..255, any order of the channels.  uint8: colours are kept in 8 bits between the steps, as
            OpenCV does.  float32 or float64: they are not rounded, so the result is smooth wherever the choice of averaged pixels does
            not jump.  Positions are whole pixels in both.
        radius: (B,) int32 on the device of the images, 0..``max_radius``.
        max_radius: a bound of ``radius`` known on the host, at most 40.  It changes no pixel; a tight one spares the bodies
            without a host copy of ``radius`` work.

    Returns:
        Images of the same shape and dtype.  The gradient takes the pixels that each result averages as fixed.

    Raises:
        TypeError, ValueError: for images or radii of another dtype, shape or range (values of ``radius`` are checked on the CPU only).
    """
    _check(images, radius, max_radius)
    half = _pyramid_down(images)
    coarse = mean_shift_climb(half, None, radius, 1, max_radius)
    edges = _edges(coarse.detach(), radius, *images.shape[-2:])
    return _merge(mean_shift_climb(images, edges, radius, 0, max_radius), coarse, edges)


def _check(images: Tensor, radius: Tensor, max_radius: int) -> None:
    if images.dtype not in (torch.uint8, torch.float32, torch.float64):
        raise TypeError(f"mean_shift: images must be uint8, float32 or float64, got {images.dtype}")
    if images.dim() != 4 or images.shape[1] != 3:
        raise ValueError(f"mean_shift: images must be (B, 3, H, W), got {tuple(images.shape)}")
    if radius.dtype != torch.int32 or radius.shape != images.shape[:1]:
        raise ValueError(
            f"mean_shift: radius must be int32 of shape ({images.shape[0]},), got {radius.dtype} of shape {tuple(radius.shape)}"
        )
    if not 0 <= max_radius <= MAX_RADIUS:
        raise ValueError(f"mean_shift: max_radius must lie in 0..{MAX_RADIUS}, got {max_radius}")


# -- the pyramid ----------------------------------------------------------------------------------------------------------


def _levels(images: Tensor) -> Tensor:
    """Floating; the sums of whole levels are exact in float32."""
    return images if images.is_floating_point() else images.to(torch.float32)


def _store(values: Tensor, dtype: torch.dtype) -> Tensor:
    """For bytes rounded half up, as the pyramid's integer arithmetic does."""
    return (values + 0.5).floor().to(dtype) if dtype == torch.uint8 else values


def _halve(images: Tensor, dim: int) -> Tensor:
    """Every second of the sums with weights 1 4 6 4 1, from the first; mirrored without repeating the edge pixel."""
    size = images.shape[dim]
    half = (size + 1) // 2
    period = max(2 * (size - 1), 1)
    index = torch.arange(-2, 2 * half + 1, device=images.device) % period
    padded = images.index_select(dim, torch.minimum(index, period - index).clamp(max=size - 1))
    every_second = (slice(None, None, 2),) + (slice(None),) * (-1 - dim)
    a, b, c, d, e = (padded.narrow(dim, k, 2 * half - 1)[(..., *every_second)] for k in range(5))
    return a + e + 4 * (b + d) + 6 * c


def _double(images: Tensor, dim: int, size: int) -> Tensor:
    """``size`` sums with weights 1 4 6 4 1 of interleaved zeros; mirrored at the start, the last pixel repeated at the end."""
    half = images.shape[dim]
    index = torch.arange(-1, half + 1, device=images.device).abs().clamp(max=half - 1)
    padded = images.index_select(dim, index)
    before, here, after = (padded.narrow(dim, k, half) for k in range(3))
    return torch.stack((before + 6 * here + after, 4 * (here + after)), dim).flatten(dim - 1, dim).narrow(dim, 0, size)


def pyramid_down_reference(images: Tensor) -> Tensor:
    return _store(_halve(_halve(_levels(images), -2), -1) / 256, images.dtype)


_pyramid_down = Kernel(
    "pyramid_down",
    pyramid_down_reference,
    "Tensor images",
    like=lambda images: images.new_empty((*images.shape[:2], *((size + 1) // 2 for size in images.shape[2:]))),
)


@_pyramid_down.on_cuda
def _pyramid_down_cuda(images: Tensor) -> Tensor:
    from degrade.kernels.cuda import mean_shift as body  # not every platform has Triton

    return body.pyramid_down(images)


@_pyramid_down.gradient_on_cuda("images")
def _pyramid_down_gradient_cuda(gradient: Tensor, images: Tensor, wanted: list[bool]) -> list[Tensor]:
    from degrade.kernels.cuda import mean_shift as body

    return [body.pyramid_down_backward(gradient, images)]


def edges_reference(coarse: Tensor, radius: Tensor, height: int, width: int) -> Tensor:
    """(B, height, width) bool: which full-resolution pixels lie at an edge of the filtered half-resolution images ``coarse``."""
    rows, columns = (max(size - 2, 0) for size in coarse.shape[-2:])  # that have neighbours on both sides
    least = radius.square().clamp(min=_MIN_EDGE)[:, None, None]
    coarse = _levels(coarse)
    inner = coarse[:, :, 1:-1, 1:-1]
    found = torch.zeros_like(inner[:, 0], dtype=torch.bool)
    for dy, dx in itertools.product(range(3), range(3)):
        found = found | ((inner - coarse[:, :, dy : rows + dy, dx : columns + dx]).square().sum(1) >= least)
    edges = coarse.new_zeros(coarse.shape[0], 1, height, width)
    # OpenCV puts pixel (a, b) at (2 a + 1, 2 b - 1).
    edges[:, 0, 3 : 2 * rows + 3 : 2, 1 : 2 * columns + 1 : 2] = found
    return torch.nn.functional.max_pool2d(edges, 3, stride=1, padding=1)[:, 0] > 0


_edges = Kernel(
    "mean_shift_edges",
    edges_reference,
    "Tensor coarse, Tensor radius, int height, int width",
    like=lambda coarse, radius, height, width: coarse.new_empty((len(coarse), height, width), dtype=torch.bool),
)


@_edges.on_cuda
def _edges_cuda(coarse: Tensor, radius: Tensor, height: int, width: int) -> Tensor:
    from degrade.kernels.cuda import mean_shift as body

    return body.edges(coarse, radius, height, width)


def merge_reference(fine: Tensor, coarse: Tensor, edges: Tensor) -> Tensor:
    """``fine`` at the edges, elsewhere ``coarse`` brought up to full resolution."""
    up = _double(_double(_levels(coarse), -1, fine.shape[-1]), -2, fine.shape[-2]) / 64
    return torch.where(edges[:, None], fine, _store(up, fine.dtype))


_merge = Kernel("mean_shift_merge", merge_reference, "Tensor fine, Tensor coarse, Tensor edges")


@_merge.on_cuda
def _merge_cuda(fine: Tensor, coarse: Tensor, edges: Tensor) -> Tensor:
    from degrade.kernels.cuda import mean_shift as body

    return body.merge(fine, coarse, edges)


@_merge.gradient_on_cuda("fine", "coarse")
def _merge_gradient_cuda(gradient: Tensor, fine: Tensor, coarse: Tensor, edges: Tensor, wanted: list[bool]) -> list[Tensor]:
    from degrade.kernels.cuda import mean_shift as body

    found: list[Tensor] = body.merge_backward(gradient, coarse, edges, wanted)
    return found


# -- the climb ------------------------------------------------------------------------------------------------------------


class _Climb(NamedTuple):
    """Where the climbs of all N pixels of (B, 3, N) images ended, and the window that the final colour averages."""

    colour: Tensor  # (B, 3, N)
    row: Tensor  # (B, N) int64: centre of the window
    column: Tensor  # (B, N) int64
    centre: Tensor  # (B, 3, N): the colour that its members are near to
    members: Tensor  # (B, N): how many it holds


def _window(radius: Tensor, level: int) -> tuple[Tensor, Tensor]:
    """Spatial radius and the square of the colour radius, (B, 1) float64."""
    exact = radius.to(torch.float64)[:, None]
    return (exact / 2**level).clamp(min=1), exact.square()


def _reach(max_radius: int, level: int, size: int) -> range:
    """From the first to the last that a window can hold of ``size`` rows or columns, relative to its centre."""
    farthest = min(max(-(-max_radius // 2**level), 1), size - 1)
    return range(-farthest, farthest + 1)


def _window_row(
    images: Tensor, row: Tensor, column: Tensor, centre: Tensor, dy: int, dx: range, spatial: Tensor, limit: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Row ``dy`` and the K columns ``dx`` of all windows: flat indices (B, N, K), colours (B, 3, N, K), who is a member (B, N, K)."""
    batch, channels, height, width = images.shape
    y = row + dy
    x = column[..., None] + torch.arange(dx.start, dx.stop, device=images.device)
    in_rows = (y >= (row - spatial).round().clamp(min=0)) & (y <= (row + spatial).round().clamp(max=height - 1))
    first, last = (column - spatial).round().clamp(min=0)[..., None], (column + spatial).round().clamp(max=width - 1)[..., None]
    inside = in_rows[..., None] & (x >= first) & (x <= last)
    index = y.clamp(0, height - 1)[..., None] * width + x.clamp(0, width - 1)
    flat = index.reshape(batch, 1, -1).expand(-1, channels, -1)
    colours = images.flatten(2).gather(2, flat).reshape(batch, channels, *index.shape[1:])
    members = inside & ((colours - centre[..., None]).square().sum(1) <= limit[..., None])
    return index, colours, members


def _climb(images: Tensor, radius: Tensor, level: int, max_radius: int) -> _Climb:
    """All climbs in float64; whole levels and positions keep every sum and square exact."""
    batch, _, height, width = images.shape
    rounded = images.dtype == torch.uint8
    images = images.to(torch.float64)
    spatial, limit = _window(radius, level)
    position = torch.arange(height * width, device=images.device).expand(batch, -1)
    row, column, colour = position // width, position % width, images.flatten(2)
    last = _Climb(colour, row, column, colour, torch.ones_like(row))
    moving = torch.ones_like(row, dtype=torch.bool)
    for _ in range(_STEPS):
        count, rows, columns = (torch.zeros_like(row, dtype=torch.float64) for _ in range(3))
        colours = torch.zeros_like(colour)
        for dy in _reach(max_radius, level, height):
            dx = _reach(max_radius, level, width)
            index, values, members = _window_row(images, row, column, colour, dy, dx, spatial, limit)
            here = members.sum(2)
            count = count + here
            rows = rows + here * (row + dy)
            columns = columns + (members * (index % width)).sum(2)
            colours = colours + (members[:, None] * values).sum(3)
        moving = moving & (count > 0)
        scale = 1 / count.clamp(min=1)
        new_row, new_column = (rows * scale).round().to(torch.int64), (columns * scale).round().to(torch.int64)
        new_colour = colours * scale[:, None]
        if rounded:
            new_colour = new_colour.round()
        step = _Climb(new_colour, row, column, colour, count.to(torch.int64))
        last = _Climb(*(torch.where(moving[:, None] if a.dim() == 3 else moving, a, b) for a, b in zip(step, last, strict=True)))
        distance = (new_row - row).abs() + (new_column - column).abs()
        stopped = (distance == 0) | (distance + (new_colour - colour).square().sum(1) <= 1)
        moving = moving & ~stopped
        row, column = torch.where(moving, new_row, row), torch.where(moving, new_column, column)
        colour = torch.where(moving[:, None], new_colour, colour)
    return last


def mean_shift_climb_reference(images: Tensor, wanted: Tensor | None, radius: Tensor, level: int, max_radius: int) -> Tensor:
    """Mean-shift filter one level of the pyramid, on any device and without a host copy: all climbs in step.

    Args:
        images: (B, 3, H, W) levels 0..255; of bytes, colours are rounded to whole levels after each of the at most five steps.
        wanted: (B, H, W) bool, the pixels to filter; None for all.
        radius: (B,) int32 in 0..``max_radius``: colour radius in levels, and 2**``level`` times the spatial one (of at least 1).
        level: 0 for the full resolution, 1 for half.
        max_radius: at most 40.

    Returns:
        As ``images``; 0 where a pixel is not wanted.
    """
    colour = _climb(images, radius, level, max_radius).colour.reshape(images.shape)
    return (colour if wanted is None else torch.where(wanted[:, None], colour, 0)).to(images.dtype)


def mean_shift_climb_backward_reference(
    gradient: Tensor, images: Tensor, wanted: Tensor | None, radius: Tensor, level: int, max_radius: int
) -> Tensor:
    """The gradient with respect to floating ``images``: each pixel's, shared out evenly among the members of its last window."""
    spatial, limit = _window(radius, level)
    last = _climb(images, radius, level, max_radius)
    gradient = gradient.to(torch.float64)
    shares = (gradient if wanted is None else torch.where(wanted[:, None], gradient, 0)).flatten(2) / last.members[:, None]
    levels = images.to(torch.float64)
    result = torch.zeros_like(levels).flatten(2)
    height, width = images.shape[-2:]
    for dy in _reach(max_radius, level, height):
        dx = _reach(max_radius, level, width)
        index, _, members = _window_row(levels, last.row, last.column, last.centre, dy, dx, spatial, limit)
        shared = (members[:, None] * shares[..., None]).flatten(2)
        result = result.scatter_add(2, index.flatten(1)[:, None].expand_as(shared), shared)
    return result.reshape(images.shape).to(images.dtype)


mean_shift_climb = torch.library.custom_op("degrade::mean_shift_climb", mean_shift_climb_reference, mutates_args=())
mean_shift_climb_backward = torch.library.custom_op(
    "degrade::mean_shift_climb_backward", mean_shift_climb_backward_reference, mutates_args=()
)


@mean_shift_climb.register_fake
def _(images: Tensor, wanted: Tensor | None, radius: Tensor, level: int, max_radius: int) -> Tensor:
    return images.new_empty(images.shape)


@mean_shift_climb_backward.register_fake
def _(gradient: Tensor, images: Tensor, wanted: Tensor | None, radius: Tensor, level: int, max_radius: int) -> Tensor:
    return images.new_empty(images.shape)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])
    ctx.settings = inputs[3:]


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    # The climbs are done anew: that costs less than to keep their windows for every call that may want a gradient.
    return mean_shift_climb_backward(gradient, *ctx.saved_tensors, *ctx.settings), None, None, None, None


mean_shift_climb.register_autograd(_backward, setup_context=_setup_context)


# -- on the CPU -----------------------------------------------------------------------------------------------------------


def _mask(images: Tensor, wanted: Tensor | None) -> Tensor:
    return torch.ones(images[:, 0].shape, dtype=torch.bool, device="cpu") if wanted is None else wanted.contiguous()


def _climb_natively(
    images: Tensor, wanted: Tensor, radius: Tensor, level: int, keep_windows: bool
) -> tuple[Tensor, Tensor, list[tuple[float, float]]]:
    """Results (B, 3, H, W) float64; last windows (B, 6, H, W) float64, or none of them; spatial radius and limit of each image."""
    if not all(0 <= r <= MAX_RADIUS for r in radius.tolist()):
        raise ValueError(f"mean_shift: every radius must lie in 0..{MAX_RADIUS}, got {radius.tolist()}")
    batch, _, height, width = images.shape
    rounded = images.dtype == torch.uint8
    # The C body reads up to 32 values past the planes.
    planes = torch.zeros(images.numel() + 32, dtype=torch.int16 if rounded else torch.float64, device="cpu")
    planes[: images.numel()].view(images.shape).copy_(images)
    result = torch.zeros(images.shape, dtype=torch.float64, device="cpu")
    windows = torch.zeros((batch if keep_windows else 0, 6, height, width), dtype=torch.float64, device="cpu")
    sizes = [(spatial.item(), limit.item()) for spatial, limit in zip(*_window(radius, level), strict=True)]
    native_climb = native.function(
        "degrade_mean_shift_climb", *[native.POINTER] * 3, *[native.INT] * 4, *[native.DOUBLE] * 2, *[native.POINTER] * 2
    )
    blocks = -(-height // _ROWS)

    def work(index: int) -> None:
        image, block = divmod(index, blocks)
        start = planes.data_ptr() + image * 3 * height * width * planes.element_size()
        native_climb(
            start if rounded else None,
            None if rounded else start,
            wanted[image].data_ptr(),
            height,
            width,
            block * _ROWS,
            min((block + 1) * _ROWS, height),
            *sizes[image],
            result[image].data_ptr(),
            windows[image].data_ptr() if keep_windows else None,
        )

    native.parallel(batch * blocks, work)
    return result, windows, sizes


@mean_shift_climb.register_kernel("cpu")
def _(images: Tensor, wanted: Tensor | None, radius: Tensor, level: int, max_radius: int) -> Tensor:
    return _climb_natively(images, _mask(images, wanted), radius, level, keep_windows=False)[0].to(images.dtype)


@mean_shift_climb_backward.register_kernel("cpu")
def _(gradient: Tensor, images: Tensor, wanted: Tensor | None, radius: Tensor, level: int, max_radius: int) -> Tensor:
    mask = _mask(images, wanted)
    _, windows, sizes = _climb_natively(images, mask, radius, level, keep_windows=True)
    levels, gradient = images.to(torch.float64).contiguous(), gradient.to(torch.float64).contiguous()
    result = torch.zeros_like(levels)
    native_backward = native.function(
        "degrade_mean_shift_climb_backward", *[native.POINTER] * 2, *[native.INT] * 2, *[native.DOUBLE] * 2, *[native.POINTER] * 3
    )

    def work(image: int) -> None:
        native_backward(
            levels[image].data_ptr(),
            mask[image].data_ptr(),
            *images.shape[-2:],
            *sizes[image],
            windows[image].data_ptr(),
            gradient[image].data_ptr(),
            result[image].data_ptr(),
        )

    native.parallel(images.shape[0], work)
    return result.to(images.dtype)


# -- on CUDA --------------------------------------------------------------------------------------------------------------


@mean_shift_climb.register_kernel("cuda")
def _(images: Tensor, wanted: Tensor | None, radius: Tensor, level: int, max_radius: int) -> Tensor:
    from degrade.kernels.cuda import mean_shift as body

    return body.climb(images, wanted, radius, level)


@mean_shift_climb_backward.register_kernel("cuda")
def _(gradient: Tensor, images: Tensor, wanted: Tensor | None, radius: Tensor, level: int, max_radius: int) -> Tensor:
    from degrade.kernels.cuda import mean_shift as body

    return body.climb_backward(gradient, images, wanted, radius, level)
