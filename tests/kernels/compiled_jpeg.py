"""The bodies of jpeg, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels.cuda import jpeg

for batch, height, width in ((2, 1, 7), (1, 16, 32), (2, 1024, 1)):  # a 1 is a constant unless the compiler is told
    tables = torch.ones(batch, 2, 8, 8, dtype=torch.int32)
    for dtype in (torch.uint8, torch.float32, torch.float64):
        images = torch.zeros(batch, 3, height, width, dtype=dtype)
        jpeg.roundtrip(images, tables)
        if dtype != torch.uint8:
            jpeg.roundtrip_backward(images, images, tables, [True, False])

kernels = [kernel for kernel, _ in compiled.values()]
of_each = [kernels.count(k) for k in (jpeg._to_chroma, jpeg._to_rgb, jpeg._through_luma, jpeg._through_chroma)]
assert of_each == [3, 3, 2, 2], kernels  # one for each dtype, no more for sizes
check_exact()
