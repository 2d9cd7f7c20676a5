"""Triton's compiler without a device: once this is imported, launches compile and run nothing; test_triton.py runs the scripts that do."""

from __future__ import annotations

import re
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction


class Driver:
    """As much of a driver as compiling takes."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 80, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


compiled: dict[str, tuple[Any, str]] = {}
"""By hash, each kernel that was compiled and its PTX code."""


def _compile_only(self: Any, *args: Any, warmup: bool, **options: Any) -> Any:
    code = _launch(self, *args, warmup=True, **options)
    compiled[code.hash] = self, code.asm["ptx"]
    return code


def check_exact() -> None:
    """No multiplication and addition is fused, and divisions and roots are rounded as IEEE 754 says."""
    assert compiled
    for kernel, code in compiled.values():
        assert not re.search(r"fma\.\w+\.f", code), f"{kernel}: fused"
        assert not re.search(r"div\.(full|approx)|sqrt\.approx", code), kernel


triton.runtime.driver.set_active(Driver())
_launch, JITFunction.run = JITFunction.run, _compile_only
