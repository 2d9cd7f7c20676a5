"""The bodies of mean_shift and inpaint, compiled."""

import re

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
            images = torch.zeros(2, channels, height, width, dtype=dtype)
            inpaint.fill(images, order, distance, schedule)
            if dtype.is_floating_point:
                inpaint.fill_backward(images, images, images, order, distance, schedule)

kernels = [kernel for kernel, _ in compiled.values()]
for kernel, count in (mean_shift._forward, 2), (mean_shift._share_out, 2), (inpaint._forward, 3), (inpaint._backward, 2):
    assert kernels.count(kernel) == count, kernels  # no more for sizes
check_exact()
for kernel, code in compiled.values():
    assert "div.rn.f64" in code
    if kernel is inpaint._forward:
        assert "sqrt.rn.f64" in code
        assert "bar.sync" in code[code.rindex("st.global") :], "no barrier between the steps"
    if kernel is inpaint._backward:
        assert code.count("st.global") == 1, "flow is changed by more than atomic operations"
        atomic = [found.start() for found in re.finditer(r"(atom|red)\.global\S*\.add", code)]
        assert "bar.sync" in code[code.rindex("st.global") : code.index("ld.global", code.rindex("st.global"))], (
            "colours are read too early"
        )
        assert "bar.sync" in code[atomic[-1] :], "no barrier between the steps"

compiled.clear()
for width in (7, 4096):
    for dtype in (torch.uint8, torch.float32, torch.float64):
        images = torch.zeros(2, 3, 5, width, dtype=dtype)
        inpaint.darken(images, torch.ones(2, 1, 5, width, dtype=torch.bool), 0.8)
check_exact()
assert len(compiled) == 6, compiled  # whether the size is a multiple of 16
assert sum("0d3FE999999999999A" in code for _, code in compiled.values()) == 4, "0.8 is not as in float64"
