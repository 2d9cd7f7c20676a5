"""The bodies of filters, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels.cuda import filter

FORWARD = [filter._pad_weights, filter._blur_lines, filter._blur_columns, filter._list_taps, filter._correlate, filter._sharpen]
BACKWARD = [
    filter._blur_lines,
    filter._blur_columns,
    filter._blur_columns,
    filter._sum_taps,
    filter._correlate_backward,
    filter._sharpen_backward,
]


def run(dtype: torch.dtype) -> None:
    """Forward, and backward for floats, in many sizes; a 1 is a constant for the compiler unless it is told otherwise."""
    setting = torch.ones(2, 1, 1, 1, dtype=torch.float64 if dtype == torch.float64 else torch.float32)
    for height, width in ((1, 7), (16, 32)):
        for channels in (1, 3):
            images = torch.zeros(2, channels, height, width, dtype=dtype)
            for size in (9, 16):
                blur = images, torch.zeros(2, size, dtype=torch.float64), setting.flatten()
                kernels = torch.zeros(2, size, size, dtype=torch.int32)
                filter.gaussian_blur(*blur)
                filter.correlate(images, kernels)
                if dtype.is_floating_point:
                    filter.gaussian_blur_backward(images, *blur, [True, True, True])
                    filter.correlate_backward(images, kernels)
            for weights in ((0.7, 0.3), (1.0, 0.0)):
                filter.sharpen(images, setting, *weights)
                if dtype.is_floating_point:
                    filter.sharpen_backward(images, images, setting, *weights, [True, True, False, False])


for dtype in (torch.uint8, torch.float32, torch.float64):
    compiled.clear()
    run(dtype)
    kernels = [kernel for kernel, _ in compiled.values()]
    bodies = FORWARD + (BACKWARD if dtype.is_floating_point else [])
    assert sorted(map(id, kernels)) == sorted(map(id, bodies)), kernels  # no more for sizes
    codes = dict(compiled.values())
    if dtype == torch.uint8:
        check_exact()
        continue
    kind = "f32" if dtype == torch.float32 else "f64"
    for kernel in (filter._blur_lines, filter._blur_columns, filter._correlate, filter._correlate_backward):
        assert f"fma.rn.{kind}" in codes[kernel], f"{kernel}: not fused"
        assert kind == "f64" or "f64" not in codes[kernel], f"{kernel}: slower than it need be"
