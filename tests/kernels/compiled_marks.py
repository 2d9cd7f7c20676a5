"""The bodies of marks, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels.cuda import marks

# A 1 is a constant for the compiler unless it is told otherwise
for batch, channels, height, width in ((1, 1, 1, 1), (1, 1, 1, 7), (2, 3, 16, 32)):
    canvas, palette = torch.zeros(batch, 1, height, width, dtype=torch.uint8), torch.zeros(batch, 1, channels, dtype=torch.uint8)
    kernel, colour = torch.zeros(batch, 3, dtype=torch.float64), torch.zeros(batch, channels, dtype=torch.int64)
    for dtype in (torch.uint8, torch.float32, torch.float64):
        images, weight = torch.zeros(batch, channels, height, width, dtype=dtype), torch.zeros(batch, 1, 1, 1)
        marks.cover(images, canvas, palette)
        marks.add_glow(images, canvas, kernel, weight, colour)
        if dtype.is_floating_point:
            marks.cover_backward(images, images, canvas, palette, [True, False, False])
            for number in (False, True):
                marks.add_glow_backward(images, images, canvas, kernel, weight, colour, [not number, False, number, number, False])

kernels = [kernel for kernel, _ in compiled.values()]
bodies = {marks._cover: 3 * 3, marks._add_glow: 3, marks._add_glow_backward: 2 * 2}
assert {kernel: kernels.count(kernel) for kernel in bodies} == bodies, kernels  # only _cover for a size of 1, multiples of 16, all others
one_by_one = [code for kernel, code in compiled.values() if kernel is marks._cover and "st.global.b8" in code]
assert len(one_by_one) == 2, "bytes one by one"
check_exact()
