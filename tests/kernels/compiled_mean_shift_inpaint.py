"""The bodies of mean_shift and inpaint, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels.cuda import inpaint, mean_shift

for height, width in ((1, 7), (16, 32)):  # a 1 is a constant for the compiler unless it is told otherwise
    images, wanted = torch.zeros(2, 3, height, width), torch.ones(2, height, width, dtype=torch.bool)
    radius = torch.zeros(2, dtype=torch.int32)
    for rounded in (True, False):
        for level in (0, 1):
            mean_shift.climb(images, wanted, radius, level, rounded)
            mean_shift.climb_backward(images, images, wanted, radius, level, rounded)
    order, distance = torch.zeros(2, height, width, dtype=torch.int32), torch.zeros(2, height, width)
    for dtype in (torch.uint8, torch.float32, torch.float64):
        for channels in (1, 3):
            schedule = torch.full((2, 16, 128), -1, dtype=torch.int32)
            inpaint.fill(torch.zeros(2, channels, height, width, dtype=dtype), order, distance, schedule)

kernels = [kernel for kernel, _ in compiled.values()]
assert [kernels.count(k) for k in (mean_shift._forward, mean_shift._share_out, inpaint._forward)] == [2, 2, 3], kernels  # no more for sizes
check_exact()
for kernel, code in compiled.values():
    assert "div.rn.f64" in code
    if kernel is inpaint._forward:
        assert "sqrt.rn.f64" in code
        assert "bar.sync" in code[code.rindex("st.global") :], "no barrier between the steps"
