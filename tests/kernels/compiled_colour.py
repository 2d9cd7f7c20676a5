"""The bodies of colour, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels.cuda import colour

for height, width in ((1, 1), (1, 7), (16, 32)):  # a 1 is a constant for the compiler unless it is told otherwise
    keep = torch.ones(2, 1, 1, 1)
    colour.scale_saturation(torch.zeros(2, 3, height, width, dtype=torch.uint8), keep)
    for dtype in (torch.float32, torch.float64):
        images = torch.zeros(2, 3, height, width, dtype=dtype)
        colour.scale_saturation(images, keep)
        for wanted in ([True, False], [False, True], [True, True]):
            colour.scale_saturation_backward(images, images, keep, wanted)

kernels = [kernel for kernel, _ in compiled.values()]
bodies = {colour._scale_saturation: 1, colour._fade: 2, colour._fade_backward: 2 * 3}
assert {k: kernels.count(k) for k in bodies} == bodies, kernels  # for each dtype and what is wanted, no more for sizes
check_exact()
assert "div.rn.f32" in dict(compiled.values())[colour._scale_saturation]
