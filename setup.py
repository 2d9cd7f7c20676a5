"""Builds the compiled kernels: a plain C library, loaded through ctypes by ``degrade/kernels/native.py``.

Everything else about the package stands in pyproject.toml.  Where no C compiler is found, the one in the PyPI package
``ziglang`` is asked for and used.
"""

import os
import platform
import shlex
import shutil
import sys
import sysconfig
from glob import glob

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext


def has_compiler() -> bool:
    """Whether the C compiler that setuptools would call is there."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    return shutil.which(command[0]) is not None


# The results are specified to the bit: no fused multiply-add, no reordered sums. That nobody reads the floating-point exception flags
# changes no result, and lets loops with comparisons become vector instructions.
FLAGS = ["-std=gnu11", "-O3", "-ffp-contract=off", "-fno-fast-math", "-fno-trapping-math", "-Wall", "-Wextra"]
if platform.machine().lower() in ("x86_64", "amd64"):
    FLAGS.append("-mprefer-vector-width=512")  # for the clones that have such vectors; compilers stay at 256 bits by themselves


class BuildLibrary(build_ext):
    def build_extensions(self) -> None:
        if not has_compiler():
            zig = [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline"]
            self.compiler.set_executables(compiler_so=[*zig, "-fPIC"], linker_so=[*zig, "-shared"])
        super().build_extensions()


setup(
    packages=[*find_packages(include=["degrade*"]), "degrade.conf"],
    package_dir={"degrade.conf": "conf"},  # an installed package brings its choices along
    setup_requires=[] if has_compiler() else ["ziglang"],
    cmdclass={"build_ext": BuildLibrary},
    ext_modules=[
        Extension(
            "degrade.kernels._native",
            sources=sorted(glob("degrade/kernels/native/*.c")),
            depends=sorted(glob("degrade/kernels/native/*.h")),
            extra_compile_args=FLAGS,
            libraries=["m"],
        )
    ],
)
