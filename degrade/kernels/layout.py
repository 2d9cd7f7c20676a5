"""How pixels lie in memory."""

from __future__ import annotations

import torch
from torch import Tensor

from degrade.kernels import native


def channels_last(image: Tensor) -> Tensor:
    """A (C, H, W) image with the channels of a pixel side by side in memory, as encoders want them; a copy if they are not yet."""
    if image.device.type != "cpu" or image.dtype != torch.uint8 or len(image) != 3 or not image.is_contiguous():
        return image[None].contiguous(memory_format=torch.channels_last)[0]
    out = torch.empty((*image.shape[1:], 3), dtype=torch.uint8, device="cpu")
    native.function("degrade_interleave", *[native.POINTER] * 2, native.INT)(image.data_ptr(), out.data_ptr(), image[0].numel())
    return out.permute(2, 0, 1)
