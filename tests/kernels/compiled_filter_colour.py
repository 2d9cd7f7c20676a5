"""The bodies of filters and colours, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels.cuda import colour, filter

for height, width in ((1, 7), (16, 32)):  # a 1 is a constant for the compiler unless it is told otherwise
    for channels in (1, 3):
        images, setting = torch.zeros(2, channels, height, width, dtype=torch.uint8), torch.ones(2, 1, 1, 1)
        for size in (9, 16):
            filter.gaussian_blur(images, torch.zeros(2, size, dtype=torch.float64), setting.flatten().double())
            filter.correlate(images, torch.zeros(2, size, size, dtype=torch.int32))
        filter.sharpen(images, setting, 0.7, 0.3)
        filter.sharpen(images, setting, 1.0, 0.0)
    colour.scale_saturation(torch.zeros(2, 3, height, width, dtype=torch.uint8), setting)

kernels = [kernel for kernel, _ in compiled.values()]
bodies = {
    filter._fixed_point: 1,
    filter._blur_lines: 1,
    filter._blur_columns: 1,
    filter._list_taps: 1,
    filter._correlate: 1,
    filter._sharpen: 1,
    colour._scale_saturation: 1,
}
assert {k: kernels.count(k) for k in bodies} == bodies  # no more for sizes
check_exact()
assert "div.rn.f32" in dict(compiled.values())[colour._scale_saturation]
