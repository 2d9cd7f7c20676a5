"""The column layouts of the six benchmarks on dataset hubs, and how each becomes VLMEvalKit's.

A layout is recognised by its column names, without regard to case. Text that does not split as expected stays as it is, and its row is
reported: no character of a question is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from degrade.data.errors import SourceError

Cells = dict[str, str]


@dataclass(frozen=True)
class Layout:
    """One benchmark as a hub has it.

    Attributes:
        benchmark: its official name, "" where the file's name is to be taken.
        columns: VLMEvalKit's columns without the image.
        convert: a row's cells, by the hub's column names in lower case and with the row's number, to VLMEvalKit's; None leaves the row out.
        chooses: whether a converted row asks for a choice among options that `convert` had to find.
    """

    benchmark: str
    columns: tuple[str, ...]
    convert: Callable[[Mapping[str, Any], int], Cells | None]
    chooses: Callable[[Cells], bool] = lambda row: False

    def lacks_options(self, row: Cells) -> bool:
        """Whether a converted row has none of the options that it should have."""
        return self.chooses(row) and not any(row.get(name) for name in ascii_uppercase)


def recognise(names: list[str]) -> Layout | None:
    """The layout of a table with these columns, or None."""
    low = {name.lower() for name in names}
    for wanted, make in _LAYOUTS:
        if wanted <= low:
            return make(names)
    return None


def text_of(value: Any) -> str:
    """A cell as text: whole numbers without a decimal point, nothing as nothing.

    >>> text_of(7), text_of(None), text_of(2.5), text_of("007")
    ('7', '', '2.5', '007')
    """
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def letter(answer: Any) -> str:
    """The bare letter of an answer.

    >>> letter("(a)"), letter(" B."), letter("Uphill")
    ('A', 'B', 'Uphill')
    """
    found = re.fullmatch(r"\s*\(?([A-Za-z])[).]?\s*", text_of(answer))
    return found[1].upper() if found else text_of(answer)


def inline_options(question: str) -> tuple[str, list[str]]:
    """Question and options of MMStar, whose options stand at the question's end; no options where there are none.

    >>> inline_options("What is it?\\nOptions: A: A cat, B: A dog, C: red, green, D: none")
    ('What is it?', ['A cat', 'A dog', 'red, green', 'none'])
    >>> inline_options("How many?\\nChoices:\\n(A) 3\\n(B) 5"), inline_options("How many?\\nA. 3\\nB. 5")
    (('How many?', ['3', '5']), ('How many?', ['3', '5']))
    """
    for heading in list(re.finditer(r"(?:Options|Choices):", question))[-1:]:
        head, tail = question[: heading.start()].rstrip(), question[heading.end() :]
        for first, later in _INLINE:
            if options := _between(tail, first, later, ascii_uppercase):
                return head, options
            if options := _between(tail, first, later, ascii_uppercase[1:]):  # in two rows of MMStar the first option has been lost
                return head, ["", *options]
    head, options, rest = line_options(question)
    return (question, []) if rest else (head, options)


_INLINE = ((r"\s*{}\s*[:.)]", r"[,\n]\s*{}\s*[:.)]"), (r"\s*\({}\)", r"[,\s]\s*\({}\)"))
"""What stands before the first and before later options behind a heading."""
_MARK = r"\s*(?:{0}[.)]|\({0}\))\s*"
"""What stands before an option in a line of its own."""


def line_options(question: str) -> tuple[str, list[str], str]:
    """Question, options and what follows them, of RealWorldQA, whose options stand in lines of their own.

    >>> line_options("Which?\\n\\nA. Left\\nB. Right\\nPlease answer directly with only the letter.")
    ('Which?', ['Left', 'Right'], 'Please answer directly with only the letter.')
    """
    lines = question.split("\n")
    starts = [n for n, line in enumerate(lines) if re.match(_MARK.format("A"), line)]
    for start in starts:
        options: list[str] = []
        for line in lines[start:]:
            found = re.match(_MARK.format(ascii_uppercase[len(options)]) + r"(.*?)\s*$", line)
            if not found:
                break
            options.append(found[1])
        if len(options) >= 2:
            return "\n".join(lines[:start]).strip(), options, "\n".join(lines[start + len(options) :]).strip()
    return question, [], ""


def bracketed_options(text: str) -> list[str]:
    """MMVP's options.

    >>> bracketed_options("(a) Open (b) Closed"), bracketed_options("a) Open b) Closed")
    (['Open', 'Closed'], ['Open', 'Closed'])
    """
    whole = _between(text, r"\s*\(\s*(?i:{})\s*\)", r",?\s*\(\s*(?i:{})\s*\)", ascii_uppercase)
    return whole or _between(text, r"\s*(?i:{})\)", r",?\s(?i:{})\)", ascii_uppercase)


def _between(text: str, first: str, later: str, names: str) -> list[str]:
    """The texts behind the marks of the names, as far as these come one after the other; at least two, or none.

    Args:
        first, later: patterns of the first mark, at the beginning of the text, and of later ones; ``{}`` stands for the name.
    """
    found = re.match(first.format(names[0]), text)
    parts: list[str] = []
    for name in names[1:]:
        if not found:
            break
        text = text[found.end() :]
        found = re.search(later.format(name), text)
        parts.append((text[: found.start()] if found else text).strip())
    return parts if len(parts) > 1 else []


def _options(options: list[str], count: int) -> Cells:
    return {ascii_uppercase[n]: options[n] if n < len(options) else "" for n in range(count)}


def _renamed(names: list[str], benchmark: str, renames: Mapping[str, str]) -> Layout:
    """A layout in which columns only change their names."""
    kept = {name: renames.get(name.lower(), name) for name in names if name.lower() != "image"}

    def convert(row: Mapping[str, Any], number: int) -> Cells:
        return {new: text_of(row[old.lower()]) for old, new in kept.items()}

    return Layout(benchmark, tuple(kept.values()), convert)


def _mm_vet(names: list[str]) -> Layout:
    layout = _renamed(names, "MMVet", {"question_id": "index", "capability": "category"})

    def convert(row: Mapping[str, Any], number: int) -> Cells | None:
        found = row["capability"]
        return layout.convert({**row, "capability": ",".join(map(text_of, found))} if isinstance(found, list) else row, number)

    return replace(layout, convert=convert)


def _mmvp(names: list[str]) -> Layout:
    def convert(row: Mapping[str, Any], number: int) -> Cells:
        question, options = text_of(row["question"]), bracketed_options(text_of(row["options"]))
        if len(options) != 2:
            question, options = f"{question}\n{text_of(row['options'])}", []
        return {"index": text_of(row["index"]), "question": question, **_options(options, 2), "answer": letter(row["correct answer"])}

    return Layout("MMVP", ("index", "question", "A", "B", "answer"), convert, lambda row: True)


def _cv_bench(names: list[str]) -> Layout:
    low = {name.lower() for name in names}

    def convert(row: Mapping[str, Any], number: int) -> Cells | None:
        if text_of(row.get("type", "2D")) != "2D":  # the 3D half is no part of CV-Bench-2D
            return None
        found = {"index": text_of(row["idx"]), "question": text_of(row["question"]), "prompt": text_of(row.get("prompt"))}
        choices = [text_of(choice) for choice in row["choices"] or ()]
        if len(choices) > 6:
            raise SourceError(f"index {found['index']} has {len(choices)} choices; CV-Bench-2D has at most 6")
        found |= _options(choices, 6)
        found |= {"answer": letter(row["answer"]), "category": text_of(row["task"]), "source": text_of(row.get("source")), "split": "2D"}
        return {name: found[name] for name in columns}

    columns = ("index", "question", "prompt", *"ABCDEF", "answer", "category", "source", "split")
    columns = tuple(name for name in columns if name not in ("prompt", "source") or name in low)
    return Layout("CV-Bench-2D", columns, convert, lambda row: True)


def _mmstar(names: list[str]) -> Layout:
    def convert(row: Mapping[str, Any], number: int) -> Cells:
        question, options = inline_options(text_of(row["question"]))
        if len(options) > 4:
            question, options = text_of(row["question"]), []
        found = {"index": text_of(row["index"]), "question": question, **_options(options, 4)}
        return {**found, "answer": letter(row["answer"]), "category": text_of(row["category"]), "l2_category": text_of(row["l2_category"])}

    return Layout("MMStar", ("index", "question", *"ABCD", "answer", "category", "l2_category"), convert, lambda row: True)


def _real_world_qa(names: list[str]) -> Layout:
    def convert(row: Mapping[str, Any], number: int) -> Cells:
        question, options, instruction = line_options(text_of(row["question"]))
        if not options or len(options) > 4:
            question, options, instruction = text_of(row["question"]), [], ""
        return {
            "index": str(number),
            "question": question,
            **_options(options, 4),
            "answer": letter(row["answer"]),
            "instruction": instruction,
        }

    # other questions want a word or a number
    return Layout(
        "RealWorldQA", ("index", "question", *"ABCD", "answer", "instruction"), convert, lambda row: row["answer"] in tuple(ascii_uppercase)
    )


_LAYOUTS: tuple[tuple[set[str], Callable[[list[str]], Layout]], ...] = (
    ({"question_id", "capability", "question", "image"}, _mm_vet),
    ({"index", "question", "options", "correct answer", "image"}, _mmvp),
    ({"idx", "task", "choices", "answer", "image"}, _cv_bench),
    ({"index", "question", "meta_info", "l2_category", "image"}, _mmstar),
    ({"index", "hint", "l2-category", "image"}, lambda names: _renamed(names, "MMBench_DEV_EN_V11", {"l2-category": "l2-category"})),
    # VLMEvalKit's own layout, as parquet
    ({"index", "image"}, lambda names: _renamed(names, "", {"index": "index"})),
    ({"image", "question", "answer"}, _real_world_qa),
)
