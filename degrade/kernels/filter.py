"""Linear filters with a kernel per image, and the border mirrored without repeating the edge pixel.

For bytes weights are multiples of 1/65536 that sum to 1.  Levels are whole multiples of a fraction, so all sums are exact in float64,
whatever their order: batching, threads and devices cannot change a pixel.  For floats sums are equal to rounding of their dtype.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from degrade.kernels import native, quantize
from degrade.kernels.dispatch import Kernel

Weights = npt.NDArray[np.float64]
UNIT = 65536  # of a fixed-point weight of 1
_STEPS = 256  # of a level between the two passes of a blur: 16 bits are quicker to add up than the 24 of exact sums
_ROWS = 64  # that one call of a compiled body works on
_OUTPUTS = 64  # that a compiled body sums at once; it reads as many values past the end
_SMALLEST_SIGMA = 1e-3  # pixels; its kernel is a single 1, as for sigma 0, and the formula stays finite


def gaussian_weights(size: int, sigma: float) -> Weights:
    """The (size,) kernel exp(-(j - (size-1)/2)^2 / (2 sigma^2)), normalised to sum 1; sigma 0 is no blur."""
    distance = np.arange(size) - (size - 1) / 2
    weights: Weights = np.exp(-(distance**2) / (2 * max(sigma, _SMALLEST_SIGMA) ** 2))
    weights /= weights.sum()
    return weights


def stack_about_centre(kernels: Sequence[Weights]) -> Tensor:
    """Odd 1-D kernels as rows of (B, K) float64, zero-padded to the longest about their centres."""
    longest = max(len(k) for k in kernels)
    result = np.zeros((len(kernels), longest))
    for padded, kernel in zip(result, kernels, strict=True):
        start = (longest - len(kernel)) // 2
        padded[start : start + len(kernel)] = kernel
    return torch.from_numpy(result)


def gaussian_with_gradient(kernel: Tensor, sigma: Tensor) -> Tensor:
    """``kernel`` (B, K), made by ``gaussian_weights``, with the gradient of its formula in ``sigma`` (B,).

    The values stay those of the host, since exp is not equal on all devices.  Where the kernel is zero it has no gradient.
    """
    if not sigma.requires_grad:
        return kernel
    distance = torch.arange(kernel.shape[1], dtype=kernel.dtype, device=kernel.device) - (kernel.shape[1] - 1) / 2
    spread = sigma.to(kernel.dtype).clamp(min=_SMALLEST_SIGMA)[:, None]
    weights = torch.exp(-(distance**2) / (2 * spread**2)) * (kernel > 0)
    weights = weights / weights.sum(1, keepdim=True)
    return kernel + (weights - weights.detach())


def fixed_point(kernel: Tensor) -> Tensor:
    """``kernel`` (B, K), K odd, rounded to multiples of 1/65536 that sum to 1; the centre takes the remainder."""
    rounded = (kernel * UNIT).round()
    centre = torch.arange(kernel.shape[1], device=kernel.device) == kernel.shape[1] // 2
    return (rounded + (UNIT - rounded.sum(1, keepdim=True)) * centre) / UNIT


def mirrored(length: int, before: int, after: int, device: torch.device) -> Tensor:
    """Indices into a line of ``length`` pixels that continue it by ``before`` and ``after`` mirrored pixels."""
    if length == 1:
        return torch.zeros(before + 1 + after, dtype=torch.long, device=device)
    period = 2 * (length - 1)
    folded = torch.arange(-before, length + after, device=device).abs() % period
    return torch.minimum(folded, period - folded)


def correlate_lines(lines: Tensor, kernels: Tensor) -> Tensor:
    """Correlate (B, N, W) lines with a (B, K) kernel per image, K odd; same shape.

    A banded matrix product: each tile of outputs is its input window times a small Toeplitz matrix.  On two cores this beats
    a depthwise convolution and the Fourier transform for wide kernels.
    """
    width, size = lines.shape[-1], kernels.shape[1]
    tile = min(width, 128)  # measured best for 101 and 241 taps
    tiles = -(-width // tile)
    window = tile + size - 1
    overhang = tiles * tile - width
    index = mirrored(width, size // 2, size // 2 + overhang, lines.device)
    windows = lines.index_select(-1, index).unfold(-1, window, tile)  # (B, N, tiles, window)
    offset = torch.arange(window, device=lines.device)[:, None] - torch.arange(tile, device=lines.device)
    inside = (offset >= 0) & (offset < size)
    band = kernels[:, offset.clamp(0, size - 1)] * inside  # (B, window, tile)
    result = windows.flatten(1, 2) @ band
    return result.reshape(len(lines), lines.shape[1], tiles * tile)[..., :width]


def _along_columns(images: Tensor, kernel: Tensor) -> Tensor:
    turned = images.transpose(-1, -2)
    return correlate_lines(turned.flatten(1, 2), kernel).reshape(turned.shape).transpose(-1, -2)


def _along_lines(images: Tensor, kernel: Tensor) -> Tensor:
    return correlate_lines(images.flatten(1, 2), kernel).reshape(images.shape)


def separable(images: Tensor, kernel: Tensor) -> Tensor:
    """(B, C, H, W) floating images correlated along both axes with (B, K) kernels of their dtype."""
    return _along_columns(_along_lines(images, kernel), kernel)


def gaussian_blur_reference(images: Tensor, kernel: Tensor, factor: Tensor | None) -> Tensor:
    if images.dtype == torch.uint8:
        weights = fixed_point(kernel)
        lines = (_along_lines(images.double(), weights) * _STEPS + 0.5).floor() / _STEPS
        blurred = _along_columns(lines, weights)
    else:
        blurred = separable(images, kernel.to(images.dtype))
    scaled = blurred if factor is None else blurred * factor.to(blurred.dtype)[:, None, None, None]
    return quantize.trunc(scaled, torch.uint8) if images.dtype == torch.uint8 else _clipped_means(scaled)


def _clipped_means(means: Tensor) -> Tensor:
    """``means`` of levels, which leave [0, 255] only by rounding: their gradient knows nothing of a clip."""
    return quantize.straight_through(means, means.detach().clamp(0, 255))


_gaussian_blur = Kernel("gaussian_blur", gaussian_blur_reference, "Tensor images, Tensor kernel, Tensor? factor")


@_gaussian_blur.on_cpu
def _gaussian_blur_cpu(images: Tensor, kernel: Tensor, factor: Tensor | None) -> Tensor:
    channels, height, width = images.shape[1:]
    weights = (fixed_point(kernel) * UNIT).int()
    factors = [1.0] * len(images) if factor is None else factor.tolist()
    # Kernels are padded to the longest, and their tails may round to nothing: what is 0 at both ends is left out.
    centre = kernel.shape[1] // 2
    reaches = ((weights != 0) * (torch.arange(kernel.shape[1], device="cpu") - centre).abs()).amax(1).tolist() if len(images) else []
    planes = images.contiguous().flatten(0, 1)
    stored = torch.empty(planes.numel() + _OUTPUTS, dtype=torch.int16, device="cpu")  # unsigned in C
    out = torch.empty(planes.shape, dtype=torch.uint8, device="cpu")
    lines = native.function("degrade_gaussian_lines", *[native.POINTER] * 4, *[native.INT] * 4)
    columns = native.function("degrade_gaussian_columns", *[native.POINTER] * 4, native.DOUBLE, *[native.INT] * 5)
    step = native.share(height, _ROWS)
    blocks = -(-height // step)

    def part(n: int) -> tuple[int, int, int, int, int]:
        """Plane, its image, the size of that one's kernel, first row and the row after the last."""
        plane, block = divmod(n, blocks)
        b = plane // channels
        return plane, b, 2 * reaches[b] + 1, block * step, min(height, (block + 1) * step)

    def start_of(plane: int) -> int:
        return stored[plane * height * width :].data_ptr()

    def horizontal(n: int) -> None:
        plane, b, size, first, last = part(n)
        line = torch.empty(width + size + 2 * _OUTPUTS, dtype=torch.int16, device="cpu")
        taps = weights[b, centre - reaches[b] :].data_ptr()
        lines(planes[plane].data_ptr(), taps, start_of(plane), line.data_ptr(), width, size, first, last)

    def vertical(n: int) -> None:
        plane, b, size, first, last = part(n)
        strip = torch.empty((_ROWS + size + 4) * _OUTPUTS, dtype=torch.int32, device="cpu")  # unsigned in C
        taps = weights[b, centre - reaches[b] :].data_ptr()
        columns(start_of(plane), taps, out[plane].data_ptr(), strip.data_ptr(), factors[b], height, width, size, first, last)

    native.parallel(len(planes) * blocks, horizontal)
    native.parallel(len(planes) * blocks, vertical)
    return out.view(images.shape)


@_gaussian_blur.on_cuda
def _gaussian_blur_cuda(images: Tensor, kernel: Tensor, factor: Tensor | None) -> Tensor:
    from degrade.kernels.cuda import filter as body  # not every platform has Triton

    return body.gaussian_blur(images, kernel, factor)


@_gaussian_blur.gradient_on_cuda("images", "kernel", "factor")
def _gaussian_blur_gradient_cuda(
    gradient: Tensor, images: Tensor, kernel: Tensor, factor: Tensor | None, wanted: list[bool]
) -> list[Tensor]:
    from degrade.kernels.cuda import filter as body

    found: list[Tensor] = body.gaussian_blur_backward(gradient, images, kernel, factor, wanted)
    return found


def gaussian_blur(images: Tensor, kernel: Tensor, factor: Tensor | None = None) -> Tensor:
    """trunc(factor blurred), stored in the dtype of ``images``.

    Bytes are blurred with fixed-point weights, and levels between the two passes are multiples of 1/256.  Floats are clipped, but not their
    gradient: with a factor of at most 1 nothing but rounding leaves the range.

    Args:
        images: (B, C, H, W) levels.
        kernel: (B, K) float64 weights that sum to 1, K odd; along both axes.  For gradients symmetric, as all kernels of
            ``gaussian_weights`` are.
        factor: (B,) floating, at least 0; None is 1.
    """
    return _gaussian_blur(images, kernel, factor)


def blur_bytes_reference(images: Tensor, kernel: Tensor, dtype: torch.dtype) -> Tensor:
    return gaussian_blur_reference(images.to(dtype), kernel, None)


_blur_bytes = Kernel(
    "blur_bytes",
    blur_bytes_reference,
    "Tensor images, Tensor kernel, ScalarType dtype",
    like=lambda images, kernel, dtype: torch.empty(images.shape, dtype=dtype, device=images.device),
)


@_blur_bytes.on_cuda
def _blur_bytes_cuda(images: Tensor, kernel: Tensor, dtype: torch.dtype) -> Tensor:
    from degrade.kernels.cuda import filter as body

    return body.gaussian_blur(images, kernel, None, dtype)


def blur_bytes(images: Tensor, kernel: Tensor, dtype: torch.dtype) -> Tensor:
    """``gaussian_blur`` of (B, C, H, W) uint8 ``images`` in ``dtype``, uint8 or floating, without a pass that only converts them."""
    return gaussian_blur(images, kernel) if dtype == torch.uint8 else _blur_bytes(images, kernel, dtype)


def to_fixed_point(kernels: Weights) -> npt.NDArray[np.int32]:
    """Kernels (..., K, K) of weights >= 0 that sum to 1, in units of 1/65536; the largest weight of each takes the remainder."""
    rounded = np.rint(kernels * UNIT).astype(np.int32)
    flat = rounded.reshape(-1, rounded.shape[-2] * rounded.shape[-1])
    flat[np.arange(len(flat)), flat.argmax(1)] += UNIT - flat.sum(1, dtype=np.int32)
    return rounded


def mirror_around(images: Tensor, before: int, after: int) -> Tensor:
    """(B, C, H, W) images continued on all sides by mirrored pixels: ``before`` above and left, ``after`` below and right."""
    rows = mirrored(images.shape[-2], before, after, images.device)
    columns = mirrored(images.shape[-1], before, after, images.device)
    return images.index_select(-2, rows).index_select(-1, columns)


def _correlated(images: Tensor, kernels: Tensor) -> Tensor:
    """(B, C, H, W) floating images with (B, K, K) kernels of their dtype, anchor K // 2."""
    batch, channels = images.shape[:2]
    size = kernels.shape[-1]
    padded = mirror_around(images, size // 2, size - 1 - size // 2).flatten(0, 1)[None]
    weights = kernels.repeat_interleave(channels, dim=0)[:, None]
    return torch.nn.functional.conv2d(padded, weights, groups=batch * channels).reshape(images.shape)


def correlate_reference(images: Tensor, kernels: Tensor) -> Tensor:
    if not len(images):
        return images.clone()
    if images.dtype == torch.uint8:
        return _correlated(images.double(), kernels.double() / UNIT).round().to(torch.uint8)
    return _clipped_means(_correlated(images, kernels.to(images.dtype) / UNIT))


_correlate = Kernel("correlate", correlate_reference, "Tensor images, Tensor kernels")


@_correlate.on_cpu
def _correlate_cpu(images: Tensor, kernels: Tensor) -> Tensor:
    channels, height, width = images.shape[1:]
    size = kernels.shape[-1]
    images, kernels = images.contiguous(), kernels.contiguous()
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
    body = native.function("degrade_correlate", *[native.POINTER] * 7, *[native.INT] * 3)

    def plane(n: int) -> None:
        b, c = divmod(n, channels)
        padded = torch.empty((height + size - 1) * (width + size - 1) + _OUTPUTS, dtype=torch.uint8, device="cpu")
        offsets = torch.empty(size * size, dtype=torch.int64, device="cpu")
        weights = torch.empty(size * size, dtype=torch.int32, device="cpu")
        windows = torch.empty(size * size * _OUTPUTS, dtype=torch.uint8, device="cpu")
        scratch = padded.data_ptr(), offsets.data_ptr(), weights.data_ptr(), windows.data_ptr()
        body(images[b, c].data_ptr(), kernels[b].data_ptr(), out[b, c].data_ptr(), *scratch, height, width, size)

    native.parallel(len(images) * channels, plane)
    return out


@_correlate.on_cuda
def _correlate_cuda(images: Tensor, kernels: Tensor) -> Tensor:
    from degrade.kernels.cuda import filter as body

    return body.correlate(images, kernels)


@_correlate.gradient_on_cuda("images")
def _correlate_gradient_cuda(gradient: Tensor, images: Tensor, kernels: Tensor, wanted: list[bool]) -> list[Tensor]:
    from degrade.kernels.cuda import filter as body

    return [body.correlate_backward(gradient, kernels)]


def correlate(images: Tensor, kernels: Tensor) -> Tensor:
    """Correlate (B, C, H, W) levels with (B, K, K) int32 weights >= 0 in units of 1/65536 that sum to 1; anchor K // 2.

    Bytes come back rounded to nearest, ties to even.  Floats are not rounded.  Their gradient is linear: a weighted mean of levels is only
    clipped where the rounding of its sum has taken it past 255.
    """
    return _correlate(images, kernels)


def _sharpened(images: Tensor) -> Tensor:
    """Five times each pixel of floating images, less its four neighbours."""
    around = mirror_around(images, 1, 1)
    return 5 * images - (around[..., :-2, 1:-1] + around[..., 2:, 1:-1] + around[..., 1:-1, :-2] + around[..., 1:-1, 2:])


def sharpen_reference(images: Tensor, gain: Tensor, kept: float, mixed: float) -> Tensor:
    levels = images.float() if images.dtype == torch.uint8 else images
    sharp = quantize.round(quantize.per_image(gain, images) * _sharpened(levels), images.dtype)
    return quantize.round(levels * kept + sharp.to(levels.dtype) * mixed, images.dtype)


_sharpen = Kernel("sharpen", sharpen_reference, "Tensor images, Tensor gain, float kept, float mixed")


@_sharpen.on_cpu
def _sharpen_cpu(images: Tensor, gain: Tensor, kept: float, mixed: float) -> Tensor:
    channels, height, width = images.shape[1:]
    images = images.contiguous()
    gains = gain.flatten().tolist()
    out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
    body = native.function("degrade_sharpen", *[native.POINTER] * 3, *[native.DOUBLE] * 3, *[native.INT] * 2)

    def plane(n: int) -> None:
        b, c = divmod(n, channels)
        edges = torch.empty(width, dtype=torch.int16, device="cpu")
        body(images[b, c].data_ptr(), out[b, c].data_ptr(), edges.data_ptr(), gains[b], kept, mixed, height, width)

    native.parallel(len(images) * channels, plane)
    return out


@_sharpen.on_cuda
def _sharpen_cuda(images: Tensor, gain: Tensor, kept: float, mixed: float) -> Tensor:
    from degrade.kernels.cuda import filter as body

    return body.sharpen(images, gain, kept, mixed)


@_sharpen.gradient_on_cuda("images", "gain")
def _sharpen_gradient_cuda(gradient: Tensor, images: Tensor, gain: Tensor, kept: float, mixed: float, wanted: list[bool]) -> list[Tensor]:
    from degrade.kernels.cuda import filter as body

    found: list[Tensor] = body.sharpen_backward(gradient, images, gain, kept, mixed, wanted)
    return found


def sharpen(images: Tensor, gain: Tensor, kept: float, mixed: float) -> Tensor:
    """``quantize.blend`` of the (B, C, H, W) ``images`` with round(gain (5 image - its four neighbours)).

    In one pass, where images have a body: with two, memory is what takes the time.

    Args:
        images: levels.
        gain: (B,) float64.
        kept, mixed: weights of the image and of the sharpened one.
    """
    return _sharpen(images, gain, kept, mixed)
