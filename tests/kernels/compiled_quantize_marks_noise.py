"""The bodies of quantize, marks and noise, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels import noise as places
from degrade.kernels.cuda import marks, noise, quantize

# A 1 is a constant for the compiler unless it is told otherwise
for batch, channels, height, width in ((1, 1, 1, 1), (1, 1, 1, 7), (2, 3, 16, 32)):
    images, mask = torch.zeros(batch, channels, height, width, dtype=torch.uint8), torch.zeros(batch, 1, height, width, dtype=torch.uint8)
    weight, factors = torch.zeros(batch, 1, 1, 1), torch.zeros(batch, height, dtype=torch.float64)
    quantize.blend(images, weight, images, weight)
    quantize.blend(images, weight, mask, weight)
    quantize.scale_rows(images, factors)
    quantize.scale_rows(images, factors[:, :1])
    marks.cover(images, torch.cat([images, mask], 1))
    marks.add_glow(images, mask, torch.zeros(batch, 3, dtype=torch.float64), weight, torch.zeros(batch, channels, dtype=torch.int64))
    noise.add_noise(images, places.keys([0] * batch), places.quantiles(), weight)

kernels = [kernel for kernel, _ in compiled.values()]
assert [kernels.count(k) for k in (marks._add_glow, noise._add_noise)] == [1, 1], kernels  # no more for sizes
for kernel in (quantize._blend, quantize._scale_rows, marks._cover):
    codes = [code for k, code in compiled.values() if k is kernel]
    assert len(codes) == 3, kernels  # a size of 1, multiples of 16, all others
    assert sum("st.global.b8" not in code for code in codes) == 1, f"{kernel}: bytes one by one"
check_exact()
