"""The bodies of warp, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels.cuda import warp

for batch, channels, height, width in ((2, 1, 1, 7), (1, 3, 16, 32), (2, 16, 1024, 1)):  # a 1 is a constant unless the compiler is told
    line, one = torch.zeros(batch, height, dtype=torch.float64), torch.ones(batch, dtype=torch.int64)
    blocks = one, one[:, None].expand(-1, 2), torch.zeros(batch, width, dtype=torch.int64)
    for dtype in (torch.uint8, torch.float32, torch.float64):
        images = torch.zeros(batch, channels, height, width, dtype=dtype)
        warp.move_rows(images, line, line)
        warp.move_blocks(images, *blocks)
        if dtype.is_floating_point:
            for wanted in ([True, False, False], [False, True, True], [True, True, True]):
                warp.move_rows_backward(images, images, line, line, wanted)
            warp.move_blocks_backward(images, *blocks)

kernels = [kernel for kernel, _ in compiled.values()]
bodies = {warp._move_rows: 3, warp._move_rows_backward: 2 * 3, warp._move_blocks: 3 + 2}
assert {k: kernels.count(k) for k in bodies} == bodies, kernels  # for each dtype and what is wanted, no more for sizes
check_exact()
