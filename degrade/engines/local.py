"""Threads of this process: decoding, degrading and encoding release Python's lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

ITEMS_A_WORKER = 2
"""How far reading runs ahead of the slowest worker: bounds memory."""


def ordered(work: Callable[[Item], Result], items: Iterable[Item], workers: int | None = None) -> Generator[Result]:
    """``map(work, items)`` on several threads: results in the order of the items, a bounded number of them in flight.

    Args:
        work: what to do; an exception in it ends the iteration with it.
        items: read in the calling thread, only as far as needed.
        workers: threads; None for one a core, 0 to work in the calling thread.
    """
    if workers is None:
        workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # images are the unit of parallel work; threads inside operators would only compete
    try:
        if workers == 0:
            yield from map(work, items)
            return
        pool = ThreadPoolExecutor(workers, thread_name_prefix="degrade", initializer=torch.set_num_threads, initargs=(1,))
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                if len(pending) >= workers * ITEMS_A_WORKER:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    finally:
        torch.set_num_threads(before)
