"""The bodies of mean shift, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels.cuda import mean_shift

for height, width in ((1, 7), (16, 32)):  # a 1 is a constant for the compiler unless it is told otherwise
    radius, wanted = torch.zeros(2, dtype=torch.int32), torch.ones(2, height, width, dtype=torch.bool)
    for dtype in (torch.uint8, torch.float32, torch.float64):
        images = torch.zeros(2, 3, height, width, dtype=dtype)
        half = mean_shift.pyramid_down(images)
        mean_shift.edges(half, radius, height, width)
        mean_shift.merge(images, half, wanted)
        for level, where in (0, wanted), (1, None):
            mean_shift.climb(images, where, radius, level)
            if dtype.is_floating_point:
                mean_shift.climb_backward(images, images, where, radius, level)
        if dtype.is_floating_point:
            mean_shift.pyramid_down_backward(half, images)
            mean_shift.merge_backward(images, half, wanted, [True, True, False])

kernels = [kernel for kernel, _ in compiled.values()]
for kernel in mean_shift._pyramid_down, mean_shift._edges, mean_shift._merge:
    assert kernels.count(kernel) == 3, kernels  # no more for sizes
for kernel in mean_shift._pyramid_down_backward, mean_shift._merge_backward:
    assert kernels.count(kernel) == 2, kernels
assert kernels.count(mean_shift._forward) == 2 * 3, kernels  # with a list and without one
assert kernels.count(mean_shift._share_out) == 2 * 2, kernels
check_exact()
for kernel, code in compiled.values():
    if kernel in (mean_shift._forward, mean_shift._share_out):
        assert "div.rn.f64" in code
