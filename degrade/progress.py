"""Progress of a long run: one line that moves on a terminal, now and then a plain line in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

TERMINAL_SECONDS = 0.2
LOG_SECONDS = 15.0
LEAST_SECONDS = 0.5  # a rate over less says nothing


class Progress:
    """Shows how much is done, the rate, and the time left; ``with Progress("rows") as progress: progress(done, total)``.

    Args:
        unit: what is counted.
        stream: where to write, standard error by default so that standard output stays clean.
        clock: seconds, for tests.
    """

    def __init__(self, unit: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.unit, self.stream, self.clock = unit, stream or sys.stderr, clock
        self.terminal = self.stream.isatty()
        self.started: float | None = None
        self.first = 0  # what was done before this run: an earlier run's work counts as done, not as speed
        self.shown_at = 0.0
        self.shown = ""

    def __call__(self, done: int, total: int | None = None) -> None:
        """Note that `done` of `total` are done, and show it if it is time to."""
        now = self.clock()
        if self.started is None:
            self.started, self.first = now, done
            self.shown_at = now if not self.terminal else now - TERMINAL_SECONDS
        finished = total is not None and done >= total
        if now - self.shown_at >= (TERMINAL_SECONDS if self.terminal else LOG_SECONDS) or finished:
            self.shown_at = now
            self._show(self.line(done, total, now - self.started))

    def line(self, done: int, total: int | None, seconds: float) -> str:
        """The text of one report."""
        rate = (done - self.first) / seconds if seconds >= LEAST_SECONDS else 0.0
        parts = [f"{done:,} {self.unit}" if total is None else f"{done:,} of {total:,} {self.unit} ({done / max(total, 1):.0%})"]
        if rate > 0:
            parts.append(f"{rate:,.1f} a second")
            if total is not None and done < total:
                parts.append(f"{duration((total - done) / rate)} left")
        return ", ".join(parts)

    def _show(self, text: str) -> None:
        if text == self.shown:
            return
        self.stream.write(f"\r{text:<{len(self.shown)}}" if self.terminal else f"{text}\n")
        self.stream.flush()
        self.shown = text

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self.terminal and self.shown:
            self.stream.write("\n")
            self.stream.flush()


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> duration(4.2), duration(95), duration(7330)
    ('4 s', '1 min 35 s', '2 h 02 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
