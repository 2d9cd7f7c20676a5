"""The bodies of quantize and noise, compiled."""

import torch
from compiling import check_exact, compiled

from degrade.kernels import noise as places
from degrade.kernels.cuda import noise, quantize

FLOATS = torch.float32, torch.float64

# A 1 is a constant for the compiler unless it is told otherwise
for batch, channels, height, width in ((1, 1, 1, 1), (1, 1, 1, 7), (2, 3, 16, 32), (3, 3, 3, 5)):
    keys, quantiles = places.keys([0] * batch), places.quantiles()
    factors = torch.zeros(batch, height, dtype=torch.float64)
    for dtype in (torch.uint8, *FLOATS):
        images, mask = (torch.zeros(batch, c, height, width, dtype=dtype) for c in (channels, 1))
        weight = torch.zeros(batch, 1, 1, 1, dtype=dtype if dtype.is_floating_point else torch.float32)
        quantize.blend(images, weight, images, weight)
        quantize.blend(images, weight, mask, weight)
        quantize.scale_rows(images, factors)
        quantize.scale_rows(images, factors[:, :1])
        noise.add_noise(images, keys, quantiles, weight)
        if dtype.is_floating_point:
            for own, other in ((True, False), (False, True), (True, True)):
                quantize.blend_backward(images, images, weight, mask, weight, [own, other, own, other])
                quantize.scale_rows_backward(images, images, factors, [own, other])
                noise.add_noise_backward(images, images, keys, quantiles, weight, [own, False, False, other])

kernels = [kernel for kernel, _ in compiled.values()]
assert kernels.count(noise._add_noise) == 1 + len(FLOATS), kernels  # no more for sizes
assert kernels.count(noise._add_noise_backward) == 3 * len(FLOATS), kernels
sizes = 3  # of 1, multiples of 16, all others
for kernel, backward in ((quantize._blend, quantize._blend_backward), (quantize._scale_rows, quantize._scale_rows_backward)):
    codes = [code for k, code in compiled.values() if k is kernel]
    assert len(codes) == sizes * (1 + len(FLOATS)), kernels
    assert sum("st.global.b8" in code for code in codes) == sizes - 1, f"{kernel}: bytes one by one"
    assert kernels.count(backward) == sizes * 3 * len(FLOATS), kernels
check_exact()
