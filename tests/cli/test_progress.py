"""Progress on a terminal and in a log."""

import io

from degrade.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(stream: io.StringIO, steps: list[tuple[float, int]], total: int | None) -> str:
    times = iter([seconds for seconds, _ in steps])
    with Progress("rows", stream, lambda: next(times)) as progress:
        for _, done in steps:
            progress(done, total)
    return stream.getvalue()


def test_a_log_gets_plain_lines_now_and_then_and_the_last() -> None:
    text = run(io.StringIO(), [(0, 0), (1, 10), (10, 100), (20, 200), (21, 210), (50, 1000)], 1000)
    assert text.splitlines() == [
        "200 of 1,000 rows (20%), 10.0 a second, 1 min 20 s left",
        "1,000 of 1,000 rows (100%), 20.0 a second",
    ]


def test_a_terminal_gets_one_line_that_is_overwritten() -> None:
    text = run(Terminal(), [(0, 0), (0.1, 1), (1, 10), (2, 20)], 20)
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert text.split("\r")[-1].strip() == "20 of 20 rows (100%), 10.0 a second"
    assert len(text.split("\r")) == 4


def test_rows_of_an_earlier_run_are_no_speed() -> None:
    text = run(io.StringIO(), [(0, 900), (20, 920)], 1000)
    assert text == "920 of 1,000 rows (92%), 1.0 a second, 1 min 20 s left\n"


def test_unknown_total() -> None:
    assert run(io.StringIO(), [(0, 0), (20, 40)], None) == "40 rows, 2.0 a second\n"
