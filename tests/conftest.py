"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import torch


def pytest_configure() -> None:
    """A shell's background jobs ignore Ctrl-C, and so would the processes that tests start in order to interrupt them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device; torch finds none here")
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def _thread_count_kept() -> Iterator[None]:
    """A test that sets the number of threads leaves the next one alone."""
    before = torch.get_num_threads()
    yield
    if torch.get_num_threads() != before:
        torch.set_num_threads(before)
