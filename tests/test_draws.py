"""The random stream: keyed, prefix-stable, and independent of every global generator."""

import numpy as np
import pytest

from degrade.draws import Stream, randint, uniform


def test_fewer_marks_are_the_first_of_more() -> None:
    stream = Stream(0, "a", "graffiti")
    assert np.array_equal(stream.uniforms("strokes", 2, 8), stream.uniforms("strokes", 9, 8)[:2])


def test_fields_do_not_share_a_cursor() -> None:
    stream = Stream(0, "a", "graffiti")
    before = stream.uniform("angle")
    stream.uniforms("strokes", 100, 8)
    assert stream.uniform("angle") == before


@pytest.mark.parametrize("other", [(1, "a", "graffiti"), (0, "b", "graffiti"), (0, "a", "lens_flare"), (-1, "a", "graffiti")])
def test_seed_key_and_operator_decide(other: tuple[int, str, str]) -> None:
    assert Stream(0, "a", "graffiti").uniform("f") == Stream(0, "a", "graffiti").uniform("f")
    assert Stream(0, "a", "graffiti").uniform("f") != Stream(*other).uniform("f")


def test_parts_of_the_name_cannot_run_together() -> None:
    assert Stream(1, "1\nx", "o").uniform("f") != Stream(1, "1", "o\nx").uniform("f")
    assert Stream(0, "\udcff", "o").uniform("f") != Stream(0, "?", "o").uniform("f")  # a file name that is not UTF-8


def test_pinned() -> None:
    """Draws are part of every published build: these numbers may never change."""
    stream = Stream(0, "MMStar/0", "motion_blur")
    assert stream.uniform("angle") == 0.1957693984894151
    assert stream.integer("seed", 53) == 6129181328614975


def test_uniforms_are_uniform() -> None:
    u = np.concatenate([Stream(0, str(n), "o").uniforms("f", 50, 3) for n in range(200)])
    assert u.min() >= 0
    assert u.max() < 1
    assert np.abs(u.mean(0) - 0.5).max() < 5 * (1 / 12) ** 0.5 / len(u) ** 0.5
    assert np.abs(np.corrcoef(u.T) - np.eye(3)).max() < 5 / len(u) ** 0.5


def test_randint_reaches_both_ends() -> None:
    u = np.linspace(0, 1, 1001)[:-1]
    assert {randint(v, 3, 5) for v in u} == {3, 4, 5}
    assert randint(np.nextafter(1, 0), 0, 0) == 0
    assert uniform(0.25, 0, 360) == 90
