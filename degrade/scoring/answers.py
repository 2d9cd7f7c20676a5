"""From what a model said to the letter it meant: exact rules, no judge, no network.

MMD-Bench's answers (:func:`letter`) follow the rules that VLMEvalKit applies before it asks a judge, in the two profiles that are in use.
MMR's answers (:func:`mmr_letter`) have its own published rule, and a robust one.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Literal

Profile = Literal["clear", "upstream"]
MmrProfile = Literal["robust", "official"]

PROFILES: tuple[Profile, ...] = ("clear", "upstream")
MMR_PROFILES: tuple[MmrProfile, ...] = ("robust", "official")

API_FAILURE = "Failed to obtain answer via API"
REFUSALS = (
    "Sorry, I can't help with images of people yet.",
    "I can't process this file.",
    "I'm sorry, but without the image provided",
    "Cannot determine the answer",
)
_PUNCTUATION = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
_LAST_TOKENS = 4  # `upstream` believes a lone letter only where it stands this near to the end
_UPSTREAM_STATEMENT = re.compile(r"(?i:answer is)\s*\**\s*([A-D])(?![A-Za-z])")  # "correct answer is" holds "answer is"


def options_of(row: Mapping[str, str]) -> dict[str, str]:
    """The options of a question: its cells A to Z that are not empty.

    >>> options_of({"question": "?", "A": "yes", "B": "no", "C": ""})
    {'A': 'yes', 'B': 'no'}
    """
    return {name: row[name] for name in string.ascii_uppercase if row.get(name, "") != ""}


def letter(prediction: str, options: Mapping[str, str], profile: Profile = "clear") -> str | None:
    """The option that a prediction names, or None where exact rules find none.

    Args:
        prediction: what the model said.
        options: letter -> text of the question's options, see :func:`options_of`.
        profile: ``clear`` takes the only option letter that stands alone wherever it stands; ``upstream`` is VLMEvalKit's rule, which takes
            it only near the end, then looks for "answer is X", and does not look for an option's text in long answers.

    Raises:
        ValueError: for a profile that does not exist.

    >>> letter("(B) because of the light", {"A": "yes", "B": "no"})
    'B'
    >>> letter("(B) because of the evening light", {"A": "yes", "B": "no"}, "upstream") is None
    True
    """
    if profile not in PROFILES:
        raise ValueError(f"profile {profile!r}: it must be one of {', '.join(PROFILES)}")
    if API_FAILURE not in prediction:
        if any(refusal in prediction for refusal in REFUSALS):
            return None
        tokens = prediction.translate(_PUNCTUATION).split()
        alone = [name for name in options if name in tokens]
        if len(alone) == 1 and (profile == "clear" or tokens.index(alone[0]) >= len(tokens) - _LAST_TOKENS):
            return alone[0]
        if profile == "upstream":
            for stated in _UPSTREAM_STATEMENT.findall(prediction):
                if stated in options:
                    return str(stated)
    return _by_text(prediction, options, limited=profile == "upstream")


def _by_text(prediction: str, options: Mapping[str, str], limited: bool) -> str | None:
    """The only option whose text occurs in the prediction, in any case."""
    if limited and len(prediction) > 2 * sum(len(text) for text in options.values()):
        return None
    lowered = prediction.lower()
    found = [name for name, text in options.items() if text.lower() in lowered]
    return found[0] if len(found) == 1 else None


def mmr_letter(text: str, profile: MmrProfile = "robust", options: Mapping[str, str] | None = None) -> str | None:
    """The letter, A to D, that an answer to an MMR question names, or None.

    Args:
        text: what the model said.
        profile: ``official`` is the published scorer's rule: the text up to the first full stop, commas as spaces, split at single spaces,
            then the first of A, B, C, D (in this order) that stands alone. ``robust`` reads "(B)" and "**B**" too, does not take the
            article "A" for an answer, and returns None where the answer names several letters.
        options: letter -> text; lets ``robust`` know an answer that is an option's text without its letter.

    Raises:
        ValueError: for a profile that does not exist.

    >>> mmr_letter("A dog is there, so B", "official"), mmr_letter("A dog is there, so B")
    ('A', 'B')
    >>> mmr_letter("**B**", "official"), mmr_letter("**B**"), mmr_letter("A or B")
    (None, 'B', None)
    """
    if profile not in MMR_PROFILES:
        raise ValueError(f"profile {profile!r}: it must be one of {', '.join(MMR_PROFILES)}")
    if profile == "official":
        words = text.split(".")[0].replace(",", " ").split(" ")
        return next((name for name in "ABCD" if name in words), None)
    return _robust_letter(text, options or {})


_BARE = re.compile(r"\W*(?:(?:option|choice|answer)\W+)?([A-D])\W*", re.IGNORECASE)
_LEADING = re.compile(r"\W*(?:(?:option|choice)\s+)?([A-D])[\W_]*?(?:[.):\]}*]|\s[-\u2013\u2014]\s|\n)", re.IGNORECASE)
_STATED = re.compile(
    r"(?:answer|choice|option)(?:\s+(?:here|to (?:this|the) question))?(?:\s+(?:is|would be|should be|must be)|\s*:)"
    r"\s*:?[\s*_\"'`(\[{]*(?:(?:option|choice)\s+)?[*_\"'`(\[{]*([A-D])(?![\w'\u2019])",
    re.IGNORECASE,
)
# A letter that stands alone: not part of a word, of an abbreviation (U.S.A., D.C.) or of a name such as C++ or D-shaped.
# Nor is it one that the answer rules out ("not A", "A is wrong").
_ALONE = re.compile(
    r"(?<![\w'\u2019&-])(?<!\w\.)(?<![Nn]ot )([A-D])(?![\w#&]|['\u2019]\w|-\w|\+\+|\.\w\.|\W?\s+is (?:wrong|incorrect|false|not))"
)
_MARKED_LINE = re.compile(r"^\W*([A-D])[.):]", re.MULTILINE)
_MARKED = re.compile(r"(?<![\w'\u2019&-])(?<!\w\.)([A-D])[.):]")
# The article: "A dog is there", but not "A is right", "A or B".
_NOUN = re.compile(r"\s+(?!(?:is|was|or|and|nor|but|because|since|as|so|with|seems|matches|describes|would|should)\b)[a-z]")


def _robust_letter(text: str, options: Mapping[str, str]) -> str | None:
    if bare := _BARE.fullmatch(text):
        return bare[1].upper()
    letters = {found[1].upper() for found in _STATED.finditer(text) if not _is_article(text, found)}
    leading = _LEADING.match(text)
    repeats_options = len(set(_MARKED_LINE.findall(text))) > 1 or (not letters and len(set(_MARKED.findall(text))) > 1)
    if leading and repeats_options and not letters:
        return None
    if leading and not repeats_options and not _is_article(text, leading):
        letters.add(leading[1].upper())
    letters = letters or {found[1] for found in _ALONE.finditer(text) if not _is_article(text, found)}
    if letters:
        return letters.pop() if len(letters) == 1 else None
    return _by_text(text, {name: option.strip(" .") for name, option in options.items() if option.strip(" .")}, limited=False)


def _is_article(text: str, found: re.Match[str]) -> bool:
    return found[1] in "Aa" and _NOUN.match(text, found.end(1)) is not None
