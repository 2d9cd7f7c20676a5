"""The bodies of levels, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels.cuda import levels

for height, width in ((1, 1), (1, 7), (16, 32)):  # a 1 is a constant for the compiler unless it is told otherwise
    there, back = torch.tensor([1]), torch.tensor([-1, 0])
    for dtype in (torch.uint8, torch.bfloat16, torch.float32):
        images = torch.zeros(2, 3, height, width, dtype=dtype)
        for some, place in ((there, back), (None, None)):
            given = levels.to_levels(images, some, True, torch.uint8)
            levels.from_levels(images, given, place)
            if dtype.is_floating_point:
                given = levels.to_levels(images, some, False, torch.float32)
                levels.to_levels_backward(given, images, place)
                levels.from_levels(images, given, place)
                levels.from_levels_backward(images, given, some, place, [place is not None, True, False, False])
        if dtype != torch.bfloat16:
            levels.luma(images)
    levels.luma_backward(torch.zeros(2, 1, height, width))

kernels = [kernel for kernel, _ in compiled.values()]
assert kernels.count(levels._luma) == 2 * 3, kernels  # for each dtype a size of 1, multiples of 16, all others
bytes_one_by_one = [code for kernel, code in compiled.values() if kernel is levels._luma and "st.global.b8" in code]
assert len(bytes_one_by_one) == 2, "bytes one by one"
check_exact()
