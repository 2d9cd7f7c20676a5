"""The compiled library of the CPU bodies, and the threads that share out its work.

The library holds plain C functions on raw pointers.  They are called through ctypes, which releases the interpreter lock
for the time of a call, so :func:`parallel` can run several at once.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import functools
import importlib.util
import itertools
import os
from collections.abc import Callable

import torch

POINTER = ctypes.c_void_p
INT = ctypes.c_int64
DOUBLE = ctypes.c_double


@functools.cache
def library() -> ctypes.CDLL:
    """The compiled library.

    Raises:
        ImportError: if it was never built, or was built for another machine.
    """
    found = importlib.util.find_spec("degrade.kernels._native")
    if found is None or found.origin is None:
        raise ImportError(
            "degrade's compiled kernels (degrade/kernels/_native*.so) are missing. "
            "Install the package (pip install .), or in a checkout run: python setup.py build_ext --inplace"
        )
    try:
        return ctypes.CDLL(found.origin)
    except OSError as error:
        raise ImportError(
            f"degrade's compiled kernels cannot be loaded from {found.origin}: {error}. Build them anew on this machine: "
            "pip install --force-reinstall --no-deps . or, in a checkout, python setup.py build_ext --inplace --force"
        ) from error


@functools.cache
def function(name: str, *argument_types: type) -> Callable[..., None]:
    """The C function ``name``, which returns nothing, with its argument types (``POINTER``, ``INT`` for int64_t, ``DOUBLE``).

    A tensor is passed as ``tensor.data_ptr()``; it must be contiguous and must be kept alive by the caller.

    Raises:
        ImportError: if the library is missing, or older than the Python code and without this function.
    """
    try:
        found = getattr(library(), name)
    except AttributeError as error:
        raise ImportError(
            f"degrade's compiled kernels have no function {name!r}: they are older than the Python code. Build them anew: "
            "pip install --force-reinstall --no-deps . or, in a checkout, python setup.py build_ext --inplace --force"
        ) from error
    found.argtypes = argument_types
    found.restype = None
    result: Callable[..., None] = found
    return result


@functools.cache
def _pool() -> concurrent.futures.ThreadPoolExecutor:
    """Starts no thread before there is work; more threads than processors would never help."""
    return concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="degrade")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork: the child makes its own pool.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def share(length: int, usual: int) -> int:
    """How much of ``length`` one call of a compiled body should do: ``usual``, so that threads find enough to share, or all if there is
    one thread.  Every call lets go of the interpreter lock, and where others want it, getting it back takes longer than a short call.
    """
    return max(1, length if torch.get_num_threads() == 1 else min(length, usual))


def parallel(count: int, work: Callable[[int], None]) -> None:
    """Call ``work(0)`` ... ``work(count - 1)``, each once, in any order, on ``torch.get_num_threads()`` threads.

    The calling thread is one of them and takes indices like the others, so this may be nested and never waits for a free
    thread.  An exception of ``work`` ends the taking of further indices and is raised here.
    """
    indices = itertools.count()
    failed = False

    def take() -> None:
        nonlocal failed
        try:
            while not failed and (index := next(indices)) < count:
                work(index)
        except BaseException:
            failed = True
            raise

    helpers = [_pool().submit(take) for _ in range(min(count, torch.get_num_threads()) - 1)]
    try:
        take()
    finally:
        # A helper that has not begun by now is not needed any more; one that has begun still works on its last index.
        begun = [helper for helper in helpers if not helper.cancel()]
        concurrent.futures.wait(begun)
    for helper in begun:
        helper.result()
