"""The random numbers of one image: a function of (seed, key, operator), drawn on the CPU.

The generator is counter-based (Philox, raw bits), so draws do not depend on batch, order, workers, device or library
version.  Each number is a function of one uniform at (field, mark, component).  The marks of a field are generated in order,
so a smaller number of marks is the beginning of a larger one.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import numpy.typing as npt

Uniforms = npt.NDArray[np.float64]
_WORDS_PER_BLOCK = 4  # Philox4x64 makes four 64-bit words from each counter


class Stream:
    """The random stream of one image for one operator.

    >>> stream = Stream(seed=0, key="a", operator="motion_blur")
    >>> bool(stream.uniform("angle") == Stream(0, "a", "motion_blur").uniform("angle"))
    True
    """

    def __init__(self, seed: int, key: str, operator: str) -> None:
        self._name = f"{seed}\n{operator}\n{len(key)}\n{key}"

    def _raw(self, field: str, words: int) -> npt.NDArray[np.uint64]:
        digest = hashlib.blake2b(f"{field}\n{self._name}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        key = np.frombuffer(digest, dtype="<u8").astype(np.uint64)
        return np.random.Philox(key=key, counter=0).random_raw(words)

    def uniforms(self, field: str, marks: int, components: int) -> Uniforms:
        """Uniform numbers in [0, 1), shape (marks, components)."""
        width = -(-components // _WORDS_PER_BLOCK) * _WORDS_PER_BLOCK
        raw = self._raw(field, marks * width).reshape(marks, width)[:, :components]
        return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def integers(self, field: str, marks: int, *ranges: tuple[int, int]) -> tuple[Any, ...]:
        """For each mark a tuple of integers, one in each of the ``ranges``, as ``randint`` makes them of its uniform numbers.

        >>> Stream(0, "a", "graffiti").integers("strokes", 2, (0, 9), (5, 5))
        ((1, 5), (5, 5))
        """
        low, high = np.array(ranges).T
        picked = low + np.floor(self.uniforms(field, marks, len(ranges)) * (high - low + 1)).astype(np.int64)
        return tuple(map(tuple, picked.tolist()))

    def uniform(self, field: str) -> float:
        """One uniform number in [0, 1)."""
        return float(self.uniforms(field, 1, 1)[0, 0])

    def integer(self, field: str, bits: int) -> int:
        """One integer in [0, 2**bits), bits at most 64."""
        return int(self._raw(field, 1)[0]) >> (64 - bits)


def randint(u: float, low: int, high: int) -> int:
    """The integer in low..high, both included, that the uniform ``u`` in [0, 1) picks."""
    return low + math.floor(u * (high - low + 1))


def uniform(u: float, low: float, high: float) -> float:
    """The number in [low, high) that the uniform ``u`` in [0, 1) picks."""
    return low + u * (high - low)
