"""What the references share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.floating[Any]]


def trunc(values: npt.NDArray[Any]) -> Pixels:
    return np.clip(values, 0, 255).astype(np.uint8)
