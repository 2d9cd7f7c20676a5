from __future__ import annotations

import os
import threading

import pytest
import torch

from degrade.kernels import native


@pytest.fixture(autouse=True)
def _two_threads():
    torch.set_num_threads(2)  # restored by conftest.py


@pytest.mark.parametrize("count", [0, 1, 2, 101])
def test_parallel_calls_every_index_once(count):
    calls: list[int] = []
    native.parallel(count, calls.append)
    assert sorted(calls) == list(range(count))


def test_parallel_works_at_the_same_time():
    both = threading.Barrier(2, timeout=30)
    native.parallel(2, lambda index: both.wait() and None)


def test_parallel_on_one_thread_stays_in_the_caller():
    torch.set_num_threads(1)
    threads: set[int] = set()
    native.parallel(9, lambda index: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}


def test_parallel_may_be_nested():
    calls: list[tuple[int, int]] = []
    native.parallel(7, lambda i: native.parallel(5, lambda j: calls.append((i, j))))
    assert sorted(calls) == [(i, j) for i in range(7) for j in range(5)]


@pytest.mark.parametrize("bad", [0, 3, 9])
def test_parallel_raises_what_the_work_raised_and_stops(bad):
    calls: list[int] = []

    def work(index: int) -> None:
        calls.append(index)
        if index == bad:
            raise KeyError(bad)

    with pytest.raises(KeyError, match=str(bad)):
        native.parallel(10_000, work)
    assert len(calls) < 10_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_parallel_works_after_a_fork():
    native.parallel(4, lambda index: None)  # the parent has threads, which the child does not
    child = os.fork()
    if child == 0:
        calls: list[int] = []
        both = threading.Barrier(2, timeout=30)
        try:
            native.parallel(2, lambda index: calls.append(index) or (both.wait() and None))
        finally:
            os._exit(0 if sorted(calls) == [0, 1] and not both.broken else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_missing_function_says_what_to_do():
    with pytest.raises(ImportError, match=r"no function 'absent'.*setup\.py build_ext"):
        native.function("absent")


def test_a_missing_library_says_what_to_do(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    native.library.cache_clear()
    try:
        with pytest.raises(ImportError, match=r"are missing.*pip install"):
            native.library()
    finally:
        native.library.cache_clear()


def test_a_broken_library_says_what_to_do(monkeypatch, tmp_path):
    (tmp_path / "_native.so").write_bytes(b"not a library")
    spec = type("Spec", (), {"origin": str(tmp_path / "_native.so")})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    native.library.cache_clear()
    try:
        with pytest.raises(ImportError, match=r"cannot be loaded from .*_native\.so"):
            native.library()
    finally:
        native.library.cache_clear()
