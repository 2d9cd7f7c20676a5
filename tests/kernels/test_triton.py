"""The bodies for CUDA without a CUDA device: run by Triton's interpreter, and compiled by its compiler.

A process has either the interpreter or the compiler, so both have processes of their own.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton, which torch brings where it has CUDA")


def run(*command: str, **environment: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_bodies_equal_the_references():
    out = run("-m", "pytest", "-p", "no:cacheprovider", "tests/kernels/interpreted.py", TRITON_INTERPRET="1")
    assert " passed" in out


def test_the_operators_have_bodies_for_cuda():
    out = run("-c", "from degrade.kernels import inpaint, mean_shift; import sys; print('triton' in sys.modules)")
    assert out.strip() == "False"  # Triton waits for the first CUDA tensor
    from degrade.kernels import inpaint, mean_shift

    for operator in (mean_shift.mean_shift_climb, mean_shift.mean_shift_climb_backward, inpaint._inpaint):
        assert "cuda" in operator._backend_fns


# What the interpreter cannot see: what the launches ask of the compiler, how the device rounds, whether a step waits for the one before.
COMPILE = r"""
import re
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction
from degrade.kernels.cuda import inpaint, mean_shift

class Driver:
    "As much of a driver as compiling takes."
    def get_current_target(self): return GPUTarget("cuda", 80, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device): return 0

compiled = {}

def compile_only(self, *args, warmup, **options):
    code = launch(self, *args, warmup=True, **options)
    compiled[code.hash] = self, code.asm["ptx"]
    return code

triton.runtime.driver.set_active(Driver())
launch, JITFunction.run = JITFunction.run, compile_only
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
for kernel, code in compiled.values():
    assert not re.search(r"fma\.\w+\.f", code), "fused"
    assert "div.rn.f64" in code and not re.search(r"div\.(full|approx)|sqrt\.approx", code)
    if kernel is inpaint._forward:
        assert "sqrt.rn.f64" in code
        assert "bar.sync" in code[code.rindex("st.global"):], "no barrier between the steps"
"""


def test_bodies_compile_to_exact_code(tmp_path):
    run("-c", COMPILE, TRITON_INTERPRET="0", TRITON_CACHE_DIR=str(tmp_path))
