"""MMR: leading questions. Does a model understand an image, and can a misleading question talk it out of that?

Every pair asks a positive question (POS) and a negative, misleading one (NEG) about one image. The question file is not perfect: it is read
as it stands, and :attr:`Questions.oddities` says what is odd about it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from degrade.scoring.answers import MmrProfile, mmr_letter
from degrade.scoring.benchmarks import listed
from degrade.scoring.tables import ScoringError, Table, load_json, load_json_lines, read_table, text

Kind = Literal["POS", "NEG"]

PROMPTS: dict[str, str] = {
    "letter": "{question}\nAnswer with the option's letter from the given choices directly.",
    "plain": "{question}",
}
"""What a model is asked: the question with its options, and whether it is told to answer with a letter alone."""

_FIELDS = ("id", "image", "question", "ground_truth", "question_type")
_LINE_OPTION = re.compile(r"^[ \t]*([A-D])[ \t]*[.:)][ \t]*(.*?)[ \t]*$", re.MULTILINE)
_INLINE_OPTIONS = re.compile(r"\s" + r"\s+".join(rf"{name}[.:)]?\s+(.+?)" for name in "ABCD") + r"\s*$", re.DOTALL)


@dataclass(frozen=True)
class Question:
    """One question of MMR.

    Attributes:
        key: unique: the pair's id and the kind ("character/character/01:POS"; a second one of a kind ends in ":2").
        pair: the pair's id: level / category / number.
        image: the image's path below the folder of images.
        text: the question as the file holds it, with its options.
        stem: the question without its options.
        options: letter -> text, in the file's order; empty where they cannot be told apart.
        letter: the right option.
        kind: POS or NEG, as the file says.
    """

    key: str
    pair: str
    image: str
    text: str
    stem: str
    options: Mapping[str, str]
    letter: str
    kind: Kind

    @property
    def category(self) -> str:
        """Level and category: "attribute/number"."""
        return self.pair.rpartition("/")[0]

    def prompt(self, style: str = "letter") -> str:
        """What a model is asked, see :data:`PROMPTS`."""
        return PROMPTS[style].format(question=self.text.strip())


@dataclass(frozen=True)
class Questions:
    """The question file.

    Attributes:
        path: the file.
        questions: all of them, in file order.
        pairs: positions of the positive and the negative question of each pair.
        oddities: what is unlike the rest, in words.
    """

    path: Path
    questions: tuple[Question, ...]
    pairs: tuple[tuple[int, int], ...]
    oddities: tuple[str, ...]

    def names(self, indices: Collection[str]) -> list[str]:
        """The index of each question in a table: its key where the table uses keys, else its position from 0."""
        keys = [question.key for question in self.questions]
        return keys if any(key in indices for key in keys) else [str(position) for position in range(len(keys))]


def load_questions(path: Path | str) -> Questions:
    """Read MMR's question file: a JSON list of ``{id, image, question, ground_truth, question_type}``.

    Neighbours with one id are a pair, in either order. In a pair of two positives the first is taken as the positive one and the second as
    the misleading one, which keeps the published number of pairs.

    Raises:
        ScoringError: names every entry that lacks a field or has a type other than POS and NEG.
        FileNotFoundError: where there is no such file.
    """
    path = Path(path)
    content = load_json(path)
    if not isinstance(content, list) or not content:
        raise ScoringError(f"{path}: MMR's question file is a list of questions, this is {type(content).__name__} {str(content)[:40]!r}")
    faults, odd = [], []
    questions: list[Question] = []
    seen: Counter[tuple[str, str]] = Counter()
    for position, entry in enumerate(content):
        lacking = [name for name in _FIELDS if not isinstance(entry, dict) or not isinstance(entry.get(name), str)]
        if lacking:
            faults.append(f"entry {position}: no text in {', '.join(lacking)}")
        elif entry["question_type"] not in ("POS", "NEG"):
            faults.append(f"entry {position} ({entry['id']}): question_type {entry['question_type']!r} is neither POS nor NEG")
        else:
            pair, kind = entry["id"], entry["question_type"]
            seen[pair, kind] += 1
            key = f"{pair}:{kind}" + (f":{seen[pair, kind]}" if seen[pair, kind] > 1 else "")
            stem, options, oddity = split_options(entry["question"])
            if oddity:
                odd.append(f"{key}: {oddity}")
            if options and entry["ground_truth"] not in options:
                odd.append(f"{key}: the right answer {entry['ground_truth']!r} is none of the options")
            questions.append(Question(key, pair, entry["image"], entry["question"], stem, options, entry["ground_truth"], kind))
    if faults:
        raise ScoringError(f"{path}: {listed(faults, '; ')}")
    pairs, odd_pairs = _pairs(questions)
    return Questions(path, tuple(questions), tuple(pairs), tuple(odd_pairs + odd))


def split_options(question: str) -> tuple[str, dict[str, str], str]:
    """The question without its options, the options, and what is odd about them ("" for nothing).

    >>> split_options("Is it red?\\nA.Yes\\nB. No\\nC. Blue\\nD. Grey")
    ('Is it red?', {'A': 'Yes', 'B': 'No', 'C': 'Blue', 'D': 'Grey'}, '')
    """
    lines = list(_LINE_OPTION.finditer(question))
    odd = ""
    if sorted(line[1] for line in lines) == list("ABCD"):
        options = {line[1]: line[2] for line in lines}
        stem = question[: lines[0].start()].strip()
        if list(options) != list("ABCD"):
            odd = f"the options stand in the order {', '.join(options)}"
    elif inline := _INLINE_OPTIONS.search(question):
        options = dict(zip("ABCD", (group.strip() for group in inline.groups()), strict=True))
        stem, odd = question[: inline.start()].strip(), "the options stand on one line"
    else:
        return question.strip(), {}, "its options cannot be told apart"
    for first, second in ((a, b) for a in options for b in options if a < b):
        if options[first] == options[second]:
            odd = "; ".join(filter(None, [odd, f"options {first} and {second} are the same: {options[first]!r}"]))
    return stem, options, odd


def _pairs(questions: Sequence[Question]) -> tuple[list[tuple[int, int]], list[str]]:
    pairs, odd, position = [], [], 0
    while position < len(questions):
        one, two = questions[position], questions[position + 1] if position + 1 < len(questions) else None
        if two is None or two.pair != one.pair:
            odd.append(f"{one.key}: it has no neighbour of the same id, and counts in no pair")
            position += 1
            continue
        if one.kind == two.kind:
            role = "positive" if one.kind == "POS" else "misleading"
            odd.append(f"{one.pair}: its two questions are both {one.kind}; the first counts as the {role} one")
        if one.image != two.image:
            odd.append(f"{one.pair}: its two questions name different images, {one.image} and {two.image}")
        pairs.append((position, position + 1) if one.kind == "POS" else (position + 1, position))
        position += 2
    doubled = [pair for pair, n in Counter(questions[positive].pair for positive, _ in pairs).items() if n > 1]
    odd.extend(f"{pair}: several pairs have this id" for pair in doubled)
    return pairs, odd


# ------------------------------------------------------------------------------------------------------------------- answers


def load_answers(path: Path | str, questions: Questions) -> tuple[str, ...]:
    """A model's answers, one text for each question, in the order of the question file.

    Three formats are known:

    1. JSON lines of ``{question_id, text, groundtruth, question_type, ...}`` in the order of the question file;
    2. a JSON list of ``[id, {"text": ...}, question_type, ...]`` in that order;
    3. a table (CSV, TSV, xlsx, JSON, JSON lines) in any order, with a column `key` (:attr:`Question.key`) or `index` (the question's
       position, from 0, as in the files of a build), and a column `text`, `answer_text` or `prediction`.

    Raises:
        ScoringError: names the answers that are missing, doubled, too many, out of order, or of another id, type or right answer.
    """
    path = Path(path)
    if path.suffix.lower() == ".json":
        content = load_json(path)
        if isinstance(content, list) and all(isinstance(item, list) for item in content):
            return _by_position(path, [_listed_answer(path, number, item) for number, item in enumerate(content, start=1)], questions)
        for number, record in enumerate(content if isinstance(content, list) else [], start=1):
            _check_said(f"{path}: item {number}", record)
    elif path.suffix.lower() == ".jsonl":
        lines = list(load_json_lines(path))
        if lines and all(isinstance(r, dict) and "question_id" in r and not {"key", "index"} & r.keys() for _, r in lines):
            return _by_position(path, [_record_answer(path, number, record) for number, record in lines], questions)
        for number, record in lines:
            _check_said(f"{path}: line {number}", record)
    return _by_key(read_table(path), questions)


@dataclass(frozen=True)
class _Answer:
    id: str
    kind: str
    text: str
    truth: str | None = None


_SAID = ("text", "answer_text", "prediction")
"""Columns that hold what a model said, the first that is there."""


def _check_said(where: str, record: object) -> None:
    """Refuse a null where a text is wanted: whether the model said nothing or was not asked, no one can tell."""
    name = next((name for name in _SAID if isinstance(record, dict) and name in record), None)
    if name and isinstance(record, dict) and record[name] is None:
        raise ScoringError(f'{where}: {name} is null, and a text is wanted. Ask again, or write "" where the model said nothing')


def _listed_answer(path: Path, number: int, item: Sequence[object]) -> _Answer:
    if len(item) > 1:
        _check_said(f"{path}: item {number}", item[1])
    if len(item) < 3 or not isinstance(item[1], dict) or not isinstance(item[1].get("text"), str):
        raise ScoringError(f'{path}: item {number}: [id, {{"text": ...}}, question_type, ...] is wanted, this is {str(item)[:80]}')
    return _Answer(text(item[0]), text(item[2]).upper(), item[1]["text"])


def _record_answer(path: Path, number: int, record: Mapping[str, object]) -> _Answer:
    _check_said(f"{path}: line {number}", record)
    if not isinstance(record.get("text"), str) or "question_type" not in record:
        raise ScoringError(f"{path}: line {number}: text and question_type are wanted, this has {', '.join(record)}")
    truth = text(record["groundtruth"]) if record.get("groundtruth") is not None else None
    return _Answer(text(record["question_id"]), text(record["question_type"]).upper(), str(record["text"]), truth)


def _by_position(path: Path, answers: Sequence[_Answer], questions: Questions) -> tuple[str, ...]:
    wanted = [(question.pair, str(question.kind)) for question in questions.questions]
    got = [(answer.id, answer.kind) for answer in answers]
    if wanted != got:
        faults = []
        for what, rest in (("missing", Counter(wanted) - Counter(got)), ("too many", Counter(got) - Counter(wanted))):
            if rest:
                faults.append(f"{what}: {listed(f'{pair} {kind}' for pair, kind in rest.elements())}")
        if not faults:
            place = next(i for i, (w, g) in enumerate(zip(wanted, got, strict=True)) if w != g)
            given, asked = " ".join(got[place]), " ".join(wanted[place])
            faults.append(f"not in file order: answer {place + 1} is to {given}, the question there is {asked}")
        raise ScoringError(f"{path}: its answers are not those to {questions.path}; {'; '.join(faults)}")
    other = [
        f"answer {i + 1} ({q.key}): {a.truth!r}, not {q.letter!r}"
        for i, (a, q) in enumerate(zip(answers, questions.questions, strict=True))
        if a.truth not in (None, q.letter)
    ]
    if other:
        raise ScoringError(f"{path}: its groundtruth differs from {questions.path}: {listed(other)}")
    return tuple(answer.text for answer in answers)


def _by_key(table: Table, questions: Questions) -> tuple[str, ...]:
    key = next((name for name in ("key", "index") if name in table.columns), None)
    said = next((name for name in _SAID if name in table.columns), None)
    if key is None or said is None:
        raise ScoringError(
            f"{table.path}: no answers to MMR: a column key or index, and one of text, answer_text and prediction are wanted "
            f"(or question_id, text and question_type in JSON lines); it has {', '.join(table.columns) or 'nothing'}"
        )
    given = Counter(row[key] for row in table.rows)
    wanted = questions.names(given) if key == "index" else [question.key for question in questions.questions]
    faults = [
        f"{what}: {listed(names)}"
        for what, names in (
            ("missing", [name for name in wanted if name not in given]),
            ("doubled", [name for name, n in given.items() if n > 1]),
            ("not among the questions", [name for name in given if name not in set(wanted)]),
        )
        if names
    ]
    if faults:
        raise ScoringError(f"{table.path}: its {key} column does not fit {questions.path}; {'; '.join(faults)}")
    texts = {row[key]: row[said] for row in table.rows}
    return tuple(texts[name] for name in wanted)


# -------------------------------------------------------------------------------------------------------------------- scores


@dataclass(frozen=True)
class Rates:
    """Counts of pairs, and the two rates they give.

    Attributes:
        n: pairs.
        rr: pairs with both questions right.
        rw: pairs with the positive question right and the negative one wrong.
    """

    n: int
    rr: int
    rw: int

    @property
    def ra(self) -> float | None:
        """Robust accuracy, rr / n, in per cent with two places; None without pairs."""
        return per_cent(self.rr, self.n)

    @property
    def mr(self) -> float | None:
        """Misleading rate, rw / (rr + rw), in per cent with two places; None where no positive question was right."""
        return per_cent(self.rw, self.rr + self.rw)

    def record(self) -> dict[str, int | float | None]:
        """For JSON."""
        return {"n": self.n, "rr": self.rr, "rw": self.rw, "ra": self.ra, "mr": self.mr}


def per_cent(part: int, whole: int) -> float | None:
    """A share in per cent, rounded to two places with halves up; None of nothing.

    >>> per_cent(1, 32), per_cent(0, 0)
    (3.13, None)
    """
    if whole == 0:
        return None
    return int(Fraction(part * 10_000, whole) + Fraction(1, 2)) / 100


def right(questions: Questions, answers: Sequence[str], profile: MmrProfile = "robust") -> tuple[list[bool], list[str]]:
    """Which questions are answered right, and the keys of those without a readable answer."""
    letters = [mmr_letter(answer, profile, question.options) for question, answer in zip(questions.questions, answers, strict=True)]
    unparsed = [question.key for question, said in zip(questions.questions, letters, strict=True) if said is None]
    return [said == question.letter for question, said in zip(questions.questions, letters, strict=True)], unparsed


def rates(questions: Questions, hits: Sequence[bool], pairs: Iterable[tuple[int, int]] | None = None) -> Rates:
    """Count pairs: of all, or of some."""
    chosen = [(hits[positive], hits[negative]) for positive, negative in (questions.pairs if pairs is None else pairs)]
    return Rates(len(chosen), sum(p and n for p, n in chosen), sum(p and not n for p, n in chosen))


def score_answers(questions: Questions, answers: Sequence[str], profile: MmrProfile = "robust") -> dict[str, object]:
    """The report of one set of answers: overall, by level and by category, with unparsed answers and the file's oddities.

    Where the two profiles read some answer differently, `other_profile` holds what the other one makes of them.

    Args:
        questions: see :func:`load_questions`.
        answers: one text for each question, see :func:`load_answers`.
        profile: see :func:`degrade.scoring.answers.mmr_letter`.
    """
    hits, unparsed = right(questions, answers, profile)
    other: MmrProfile = "official" if profile == "robust" else "robust"
    other_hits, other_unparsed = right(questions, answers, other)
    levels: dict[str, list[tuple[int, int]]] = {}
    categories: dict[str, list[tuple[int, int]]] = {}
    for pair in questions.pairs:
        category = questions.questions[pair[0]].category
        levels.setdefault(category.partition("/")[0], []).append(pair)
        categories.setdefault(category, []).append(pair)
    report: dict[str, object] = {
        "profile": profile,
        "overall": rates(questions, hits).record(),
        "levels": {name: rates(questions, hits, pairs).record() for name, pairs in levels.items()},
        "categories": {name: rates(questions, hits, pairs).record() for name, pairs in categories.items()},
        "questions": {kind: _share(questions, hits, kind) for kind in ("POS", "NEG")},
        "unparsed": len(unparsed),
        "unparsed_keys": unparsed,
        "oddities": list(questions.oddities),
        "other_profile": None,
    }
    if (hits, unparsed) != (other_hits, other_unparsed):
        report["other_profile"] = {"profile": other, "overall": rates(questions, other_hits).record(), "unparsed": len(other_unparsed)}
    return report


def _share(questions: Questions, hits: Sequence[bool], kind: str) -> dict[str, int | float | None]:
    chosen = [hit for hit, question in zip(hits, questions.questions, strict=True) if question.kind == kind]
    return {"n": len(chosen), "right": sum(chosen), "accuracy": per_cent(sum(chosen), len(chosen))}
