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


# What the interpreter cannot see: how the device rounds, and whether a step waits for the one before.
COMPILE = """
import re
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from degrade.kernels.cuda import inpaint, mean_shift

TYPES = dict(
    pixels="*i64", count="*i64", radius="*i32", gradient="*fp32", order="*i32", distance="*fp32", neighbours="*fp32", schedule="*i32",
    **dict.fromkeys(("height", "width", "level", "steps", "channels"), "i32"),
)

def ptx(kernel, constants, warps, **types):
    signature = {name: "constexpr" if name in constants else {**TYPES, **types}[name] for name in kernel.arg_names}
    # A number that is specialised becomes a Python constant where it is 1, and the code below it may not compile.
    assert all(p.do_not_specialize for p in kernel.params if signature[p.name] == "i32"), kernel
    options = dict(num_warps=warps, num_stages=1, enable_fp_fusion=False)
    return triton.compile(ASTSource(kernel, signature, constants), target=GPUTarget("cuda", 80, 32), options=options).asm["ptx"]

for rounded, planes in ((True, "*fp32"), (False, "*fp64")):
    constants = dict(ROUNDED=rounded, LANES=32)
    for kernel, result in ((mean_shift._forward, "*fp32"), (mean_shift._share_out, "*fp64")):
        code = ptx(kernel, constants, 1, planes=planes, result=result)
        assert not re.search(r"fma\\.\\w+\\.f", code), "fused"
        assert "div.rn.f64" in code and not re.search(r"div\\.(full|approx)", code)
for images, real in (("*u8", tl.float32), ("*fp32", tl.float32), ("*fp64", tl.float64)):
    code = ptx(inpaint._forward, dict(REAL=real, NEIGHBOURS=28, LANES=128), 4, images=images)
    assert not re.search(r"fma\\.\\w+\\.f", code), "fused"
    assert not re.search(r"div\\.(full|approx)|sqrt\\.approx", code) and "sqrt.rn.f64" in code
    after_store = code[code.rindex("st.global"):]
    assert "bar.sync" in after_store, "no barrier between the steps"
"""


def test_bodies_compile_to_exact_code(tmp_path):
    run("-c", COMPILE, TRITON_INTERPRET="0", TRITON_CACHE_DIR=str(tmp_path))
