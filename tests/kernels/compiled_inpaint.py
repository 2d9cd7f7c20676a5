"""The bodies of inpaint, compiled."""

import re

import torch
from compiling import check_exact, compiled

from degrade.kernels.cuda import inpaint

for height, width in ((1, 7), (16, 32)):  # a 1 is a constant for the compiler unless it is told otherwise
    order, distance = torch.zeros(2, height, width, dtype=torch.int32), torch.zeros(2, height, width)
    schedule = torch.full((2, 16, 128), -1, dtype=torch.int32)
    for dtype in (torch.uint8, torch.float32, torch.float64):
        for channels in (1, 3):
            images = torch.zeros(2, channels, height, width, dtype=dtype)
            inpaint.fill(images, order, distance, schedule)
            if dtype.is_floating_point:
                inpaint.fill_backward(images, images, images, order, distance, schedule)

kernels = [kernel for kernel, _ in compiled.values()]
assert [kernels.count(k) for k in (inpaint._forward, inpaint._backward)] == [3, 2], kernels  # no more for sizes
check_exact()
for kernel, code in compiled.values():
    assert "div.rn.f64" in code
    assert "sqrt.rn.f64" in code
    last_store = code.rindex("st.global")
    if kernel is inpaint._forward:
        assert "bar.sync" in code[last_store:], "no barrier between the steps"
    else:
        assert code.count("st.global") == 1, "flow is changed by more than atomic operations"
        assert "bar.sync" in code[last_store : code.index("ld.global", last_store)], "colours are read too early"
        last_addition = [found.start() for found in re.finditer(r"(atom|red)\.global\S*\.add", code)][-1]
        assert "bar.sync" in code[last_addition:], "no barrier between the steps"

compiled.clear()
for width in (7, 4096):
    for dtype in (torch.uint8, torch.float32, torch.float64):
        images = torch.zeros(2, 3, 5, width, dtype=dtype)
        inpaint.darken(images, torch.ones(2, 1, 5, width, dtype=torch.bool), 0.8)
check_exact()
assert len(compiled) == 6, compiled  # whether the size is a multiple of 16
assert sum("0d3FE999999999999A" in code for _, code in compiled.values()) == 4, "0.8 is not as in float64"
