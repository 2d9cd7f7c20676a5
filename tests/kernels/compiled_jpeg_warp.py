"""The bodies of jpeg and warp, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels.cuda import jpeg, warp

for batch, channels, height, width in ((2, 1, 1, 7), (1, 3, 16, 32), (2, 16, 1024, 1)):  # a 1 is a constant unless the compiler is told
    images = torch.zeros(batch, channels, height, width, dtype=torch.uint8)
    jpeg.roundtrip(images[:, :1].expand(-1, 3, -1, -1), torch.ones(batch, 2, 8, 8, dtype=torch.int32))
    line, one = torch.zeros(batch, height, dtype=torch.float64), torch.ones(batch, dtype=torch.int64)
    warp.move_rows(images, line, line)
    warp.move_blocks(images, one, one[:, None].expand(-1, 2), torch.zeros(batch, width, dtype=torch.int64))

kernels = [kernel for kernel, _ in compiled.values()]
assert len(kernels) == 4, kernels  # no more for sizes
assert set(kernels) == {jpeg._to_chroma, jpeg._to_rgb, warp._move_rows, warp._move_blocks}
check_exact()
