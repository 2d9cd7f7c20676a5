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


def files(stem: str) -> pytest.MarkDecorator:
    found = sorted(path.relative_to(ROOT) for path in Path(__file__).parent.glob(f"{stem}_*.py"))
    assert found
    return pytest.mark.parametrize("path", found, ids=lambda path: path.stem)


@files("interpreted")
def test_bodies_equal_the_references(path: Path):
    assert " passed" in run("-m", "pytest", "-p", "no:cacheprovider", str(path), TRITON_INTERPRET="1")


@files("compiled")
def test_bodies_compile_to_exact_code(path: Path, tmp_path: Path):
    """What the interpreter cannot see: what the launches ask of the compiler, how the device rounds, what waits for what."""
    run(str(path), TRITON_INTERPRET="0", TRITON_CACHE_DIR=str(tmp_path))


def test_the_operators_have_bodies_for_cuda():
    modules = "colour, filter, inpaint, jpeg, marks, mean_shift, noise, quantize, warp"
    out = run("-c", f"from degrade.kernels import {modules}; import sys; print('triton' in sys.modules)")
    assert out.strip() == "False"  # Triton waits for the first CUDA tensor
    from degrade.kernels import inpaint, mean_shift

    for operator in (mean_shift.mean_shift_climb, mean_shift.mean_shift_climb_backward, inpaint._inpaint, inpaint._inpaint_backward):
        assert "cuda" in operator._backend_fns  # test_dispatch.py looks at the other kernels
