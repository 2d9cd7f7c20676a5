"""Rules that read a letter from an answer."""

from __future__ import annotations

import pytest

from degrade.scoring.answers import letter, mmr_letter, options_of

FOUR = {"A": "red", "B": "green", "C": "blue", "D": "grey"}


@pytest.mark.parametrize(
    ("said", "clear", "upstream"),
    [
        ("B", "B", "B"),
        ("(B)", "B", "B"),
        ("b", None, None),
        ("[C]: it is so", "C", "C"),
        ("B is what I see in this picture", "B", None),  # more than four tokens behind
        ("in this picture the right one is B", "B", "B"),
        ("A or B", None, None),
        ("**B**", "B", "B"),
        ("B-", None, None),
        ("E", None, None),  # no such option
        ("Failed to obtain answer via API. B", None, None),
        ("Failed to obtain answer via API green", "B", None),
        ("I'm sorry, but without the image provided, green", None, None),
        ("Cannot determine the answer B", None, None),
        ("i'm sorry, but without the image provided, B", "B", "B"),  # case counts
        ("Sorry, I can't help with images of people yet. B", None, None),
        ("I can't process this file. B", None, None),
        ("It is Green.", "B", "B"),
        ("green or blue", None, None),
        ("green, as one sees on the roofs of all the many houses here", "B", None),  # longer than twice all options
        ("The Correct Answer is **C because of A and of all the rest here", None, "C"),
        ("The correct answer is ** C, not the other one of A that is seen here", None, "C"),
        ("The answer is Cat, and D", "D", "D"),
        ("", None, None),
        ("=B", None, None),
        ("D\n\n", "D", "D"),
    ],
)
def test_letter(said: str, clear: str | None, upstream: str | None) -> None:
    assert letter(said, FOUR, "clear") == clear
    assert letter(said, FOUR, "upstream") == upstream


def test_upstream_counts_four_tokens_from_the_end() -> None:
    assert letter("B, one two three", FOUR, "upstream") == "B"
    assert letter("B, one two three four", FOUR, "upstream") is None


def test_an_option_repeated_counts_once() -> None:
    assert letter("B, yes B", FOUR) == "B"


def test_the_first_occurrence_decides_upstream() -> None:
    assert letter("B is the one that I choose B", FOUR, "upstream") is None


def test_options_are_the_cells_that_are_not_empty_up_to_z() -> None:
    assert options_of({"index": "1", "A": "0", "B": "", "F": "None", "Z": "x", "AB": "y"}) == {"A": "0", "F": "None", "Z": "x"}


def test_an_answer_without_options_is_no_answer() -> None:
    assert letter("Uphill", {}) is None


@pytest.mark.parametrize(
    ("said", "official", "robust"),
    [
        ("A dog is there, so B", "A", "B"),
        ("(B)", None, "B"),
        ("**B**", None, "B"),
        ("B", "B", "B"),
        ("b", None, "B"),
        ("B. A cat", "B", "B"),
        ("A or B", "A", None),
        ("B, not A", "A", "B"),
        ("C,D", "C", None),
        ("The answer is B because A is wrong", "A", "B"),
        ("Option A is wrong. The answer is (B)", "A", "B"),
        ("B. x. Therefore the answer is C.", "B", None),
        ("A. red\nB. green\nC. blue\nD. grey", "A", None),
        ("A. red\nB. green\nC. blue\nD. grey\nAnswer: C", "A", "C"),
        ("A. B. C. D.", "A", None),
        ("The answer is a dog", None, None),
        ("A cat", "A", None),
        ("A is right", "A", "A"),
        ("A", "A", "A"),
        ("A.", "A", "A"),
        ("Answer:\nD", None, "D"),
        ("vitamin C++", None, None),
        ("The U.S.A. flag", None, None),
        ("It is grey", None, "D"),
        ("red and grey", None, None),
        ("", None, None),
    ],
)
def test_mmr_letter(said: str, official: str | None, robust: str | None) -> None:
    assert mmr_letter(said, "official", FOUR) == official
    assert mmr_letter(said, "robust", FOUR) == robust


def test_unknown_profiles_are_refused() -> None:
    with pytest.raises(ValueError, match="profile 'lax'"):
        letter("A", FOUR, "lax")
    with pytest.raises(ValueError, match="profile 'clear'"):
        mmr_letter("A", "clear")
