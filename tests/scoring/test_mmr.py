"""MMR: the question file, answers in three formats, RA and MR, and all of it under degradation."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from degrade.scoring import ScoringError, report, score_mmr
from degrade.scoring.mmr import Questions, Rates, load_answers, load_questions, per_cent, score_answers, split_options

HERE = Path(__file__).parent
LEADERBOARD = json.loads((HERE / "mmr_leaderboard.json").read_text())
EXCERPT = HERE / "mmr_excerpt.json"

MISPRINTS = {("Mini-Gemini-HD-34B", "ra", "context/activity"): 79.17}  # printed 19.17
TRUNCATED = {
    ("LLaVA-1.6-34B", "ra", "attribute/position"),
    ("LLaVA-1.6-34B", "ra", "context/abstract"),
    ("LLaVA-1.6-34B", "ra", "context/concrete"),
    ("LLaVA-1.6-34B", "mr", "context/abstract"),
}


@dataclass
class Settings:
    questions: str
    answers: str
    output: str
    profile: str = "robust"
    build: str | None = None
    seed: int = 0
    resamples: int = 200
    accept_nonstandard: bool = False


def entry(pair: str, kind: str, truth: str, question: str = "What?\nA. red\nB. green\nC. blue\nD. grey") -> dict[str, str]:
    return {"id": pair, "image": f"{pair}.jpg", "question": question, "ground_truth": truth, "question_type": kind}


def write(path: Path, entries: object) -> Path:
    path.write_text(json.dumps(entries))
    return path


@pytest.fixture
def four(tmp_path: Path) -> Questions:
    """Four pairs in two categories, in either order of kinds."""
    entries = []
    for number, order in enumerate((("POS", "NEG"), ("NEG", "POS"), ("POS", "NEG"), ("NEG", "POS"))):
        pair = f"{'context/expert' if number > 1 else 'attribute/number'}/{number:02d}"
        entries += [entry(pair, kind, "B" if kind == "POS" else "C") for kind in order]
    return load_questions(write(tmp_path / "questions.json", entries))


def answers(questions: Questions, outcomes: list[tuple[bool, bool]]) -> list[str]:
    """Letters that make each pair (positive right, negative right)."""
    said = [""] * len(questions.questions)
    for pair, outcome in zip(questions.pairs, outcomes, strict=True):
        for position, right in zip(pair, outcome, strict=True):
            truth = questions.questions[position].letter
            said[position] = truth if right else "ABCD"["ABCD".index(truth) - 1]
    return said


# --------------------------------------------------------------------------------------------------------- published figures


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Questions:
    """A question file with the sizes of MMR's categories."""
    entries = [
        entry(f"{category}/{i:02d}", kind, "ABCD"[(i + (kind == "NEG")) % 4])
        for category, n in LEADERBOARD["pairs"].items()
        for i in range(n)
        for kind in ("POS", "NEG")
    ]
    return load_questions(write(tmp_path_factory.mktemp("mmr") / "questions.json", entries))


@pytest.mark.parametrize("model", LEADERBOARD["models"])
def test_published_leaderboard(whole: Questions, model: str) -> None:
    published = LEADERBOARD["models"][model]
    outcomes = []
    for i, n in enumerate(LEADERBOARD["pairs"].values()):
        rr, rw = published["rr"][i], published["rw"][i] if published["rw"] else 0
        outcomes += [(True, True)] * rr + [(True, False)] * rw + [(False, True)] * (n - rr - rw)
    found: Any = score_answers(whole, answers(whole, outcomes))
    for rate in ("ra", "mr"):
        if published[rate] is None:
            continue
        average, *cells = published[rate]
        assert found["overall"][rate] == average
        for category, printed in zip(LEADERBOARD["pairs"], cells, strict=True):
            value = found["categories"][category][rate]
            wanted = MISPRINTS.get((model, rate, category), printed)
            assert value == pytest.approx(wanted, abs=0.0101 if (model, rate, category) in TRUNCATED else 1e-9)


def test_the_leaderboard_is_whole() -> None:
    assert sum(LEADERBOARD["pairs"].values()) == 300
    assert len(LEADERBOARD["models"]) == 19
    assert sum(model["mr"] is not None for model in LEADERBOARD["models"].values()) == 17


# --------------------------------------------------------------------------------------------------------- the question file


def test_the_oddities_of_the_real_file() -> None:
    questions = load_questions(EXCERPT)
    assert len(questions.pairs) == 6
    assert [q.kind for q in questions.questions].count("POS") == 7
    odd = "\n".join(questions.oddities)
    assert "attribute/number/04: its two questions are both POS; the first counts as the positive one" in odd
    assert "character/character/39:POS: options B and C are the same: '066757278135'" in odd
    assert "attribute/existence/24:NEG: the options stand in the order D, B, C, A" in odd
    assert "context/concrete/20:POS: the options stand on one line" in odd
    assert "context/expert/34:POS: the options stand in the order B, A, C, D" in odd
    by_key = {q.key: q for q in questions.questions}
    assert by_key["context/concrete/20:POS"].options == {
        "A": "Hamlet",
        "B": "The Merchant of Venice",
        "C": "Journey to the West.",
        "D": "This person is not a writer.",
    }
    assert by_key["character/character/01:POS"].options["C"] == "'E SWEETWATER' is in the green sign."  # "C.'E", without a space
    assert by_key["character/character/01:POS"].stem == "Is there 'E SWEETWATER' in the green sign?"
    assert "attribute/number/04:POS:2" in by_key
    assert len(by_key) == 12


def test_two_positives_count_as_one_pair() -> None:
    questions = load_questions(EXCERPT)
    assert score_answers(questions, [q.letter for q in questions.questions])["overall"] == {
        "n": 6,
        "rr": 6,
        "rw": 0,
        "ra": 100.0,
        "mr": 0.0,
    }


def test_pairs_that_are_none(tmp_path: Path) -> None:
    entries = [entry("a/b/1", "POS", "A"), entry("a/b/2", "NEG", "A"), entry("a/b/2", "POS", "E"), entry("a/b/3", "NEG", "A", "No options")]
    questions = load_questions(write(tmp_path / "q.json", entries))
    assert questions.pairs == ((2, 1),)
    assert list(questions.oddities) == [
        "a/b/1:POS: it has no neighbour of the same id, and counts in no pair",
        "a/b/3:NEG: it has no neighbour of the same id, and counts in no pair",
        "a/b/2:POS: the right answer 'E' is none of the options",
        "a/b/3:NEG: its options cannot be told apart",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": 1}, "is a list of questions"),
        ([], "is a list of questions"),
        ([entry("a/b/1", "pos", "A")], r"entry 0 \(a/b/1\): question_type 'pos'"),
        ([entry("a/b/1", "POS", "A"), {"id": "x"}], "entry 1: no text in image, question, ground_truth, question_type"),
    ],
)
def test_what_is_no_question_file(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(ScoringError, match=message):
        load_questions(write(tmp_path / "q.json", content))


def test_options_with_letters_in_their_text() -> None:
    _, options, odd = split_options("Which?\nA. vitamin B. or so\nB: two\nC) three\nD.four.")
    assert (options, odd) == ({"A": "vitamin B. or so", "B": "two", "C": "three", "D": "four."}, "")


# --------------------------------------------------------------------------------------------------------- rates


def test_rates_by_level_and_category(four: Questions) -> None:
    found: Any = score_answers(four, answers(four, [(True, True), (True, False), (False, True), (False, False)]))
    assert found["overall"] == {"n": 4, "rr": 1, "rw": 1, "ra": 25.0, "mr": 50.0}
    assert found["levels"]["context"] == {"n": 2, "rr": 0, "rw": 0, "ra": 0.0, "mr": None}
    assert found["categories"]["attribute/number"]["ra"] == 50.0
    assert (found["questions"]["POS"]["right"], found["questions"]["NEG"]["right"]) == (2, 2)
    assert found["other_profile"] is None


def test_undefined_is_shown_as_such(four: Questions, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", [[q.pair, {"text": ""}, q.kind] for q in four.questions])
    found = score_mmr(Settings(str(four.path), str(path), str(tmp_path / "out")))
    assert (found["overall"]["mr"], found["unparsed"]) == (None, 8)
    assert json.loads((tmp_path / "out" / "mmr.json").read_text()) == found
    assert any(line.split() == ["overall", "4", "0", "0", "0.00", "-"] for line in report.mmr_table(found).splitlines())


def test_rounding_is_half_up() -> None:
    assert per_cent(1, 32) == 3.13
    assert per_cent(2, 3) == 66.67
    assert Rates(0, 0, 0).record() == {"n": 0, "rr": 0, "rw": 0, "ra": None, "mr": None}


def test_both_profiles_are_reported_where_they_differ(four: Questions) -> None:
    said = [f"({letter})" for letter in answers(four, [(True, True)] * 4)]
    robust: Any = score_answers(four, said)
    assert (robust["overall"]["ra"], robust["unparsed"]) == (100.0, 0)
    assert robust["other_profile"] == {
        "profile": "official",
        "overall": {"n": 4, "rr": 0, "rw": 0, "ra": 0.0, "mr": None},
        "unparsed": 8,
    }
    assert score_answers(four, said, "official")["other_profile"]["profile"] == "robust"


# --------------------------------------------------------------------------------------------------------- answers


def lines(questions: Questions, said: list[str]) -> list[dict[str, str]]:
    return [
        {"question_id": q.pair, "text": text, "groundtruth": q.letter, "question_type": q.kind}
        for q, text in zip(questions.questions, said, strict=True)
    ]


def write_lines(path: Path, records: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_three_formats_say_the_same(four: Questions, tmp_path: Path) -> None:
    said = ["B", "C, because\u2028of that", "A", "D", "B", "A", "C", ""]
    listed = [[q.pair, {"text": text}, q.kind, "more"] for q, text in zip(four.questions, said, strict=True)]
    assert load_answers(write_lines(tmp_path / "one.jsonl", lines(four, said)), four) == tuple(said)
    assert load_answers(write(tmp_path / "two.json", listed), four) == tuple(said)
    for name, key in (("three.csv", "key"), ("four.csv", "index")):
        with (tmp_path / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([key, "text"])
            writer.writerows(reversed([[q.key if key == "key" else i, said[i]] for i, q in enumerate(four.questions)]))
        assert load_answers(tmp_path / name, four) == tuple(said)
    keyed = [{"key": q.key, "text": text} for q, text in zip(four.questions, said, strict=True)]
    assert load_answers(write_lines(tmp_path / "five.jsonl", keyed[::-1]), four) == tuple(said)


Records = list[dict[str, str]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r[:-1], "missing: context/expert/03 POS"),
        (lambda r: [*r, r[0]], "too many: attribute/number/00 POS"),
        (
            lambda r: [r[1], r[0], *r[2:]],
            "not in file order: answer 1 is to attribute/number/00 NEG, the question there is attribute/number/00 POS",
        ),
        (lambda r: [r[0] | {"question_id": "x"}, *r[1:]], "missing: attribute/number/00 POS; too many: x POS"),
        (lambda r: [r[0] | {"question_type": "neg"}, *r[1:]], "missing: attribute/number/00 POS; too many: attribute/number/00 NEG"),
        (lambda r: [r[0] | {"groundtruth": "D"}, *r[1:]], r"groundtruth differs .*answer 1 \(attribute/number/00:POS\): 'D', not 'B'"),
        (lambda r: [{"question_id": "x"}, *r[1:]], "line 1: text and question_type are wanted"),
        (lambda r: [r[0], r[1] | {"text": None}, *r[2:]], r"a\.jsonl: line 2: text is null, and a text is wanted"),
    ],
)
def test_faulty_answers_are_named(four: Questions, tmp_path: Path, change: Callable[[Records], Records], message: str) -> None:
    with pytest.raises(ScoringError, match=message):
        load_answers(write_lines(tmp_path / "a.jsonl", change(lines(four, ["A"] * 8))), four)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r[1:], "missing: attribute/number/00:POS"),
        (lambda r: [*r, r[0]], "doubled: attribute/number/00:POS"),
        (lambda r: [*r, {"key": "x", "text": "A"}], "not among the questions: x"),
        (lambda r: [r[0] | {"text": None}, *r[1:]], r"a\.jsonl: line 1: text is null, and a text is wanted"),
        (lambda r: [{"name": "x"}], "a column key or index, and one of text"),
        (lambda r: [], "it has nothing"),
    ],
)
def test_faulty_keys_are_named(four: Questions, tmp_path: Path, change: Callable[[Records], Records], message: str) -> None:
    records = [{"key": q.key, "text": "A"} for q in four.questions]
    with pytest.raises(ScoringError, match=message):
        load_answers(write_lines(tmp_path / "a.jsonl", change(records)), four)


def test_a_list_with_an_item_that_is_none(four: Questions, tmp_path: Path) -> None:
    with pytest.raises(ScoringError, match="item 2: "):
        load_answers(write(tmp_path / "a.json", [["x", {"text": "A"}, "POS"], ["x", "A", "POS"]]), four)
    with pytest.raises(ScoringError, match=r"a\.json: item 1: text is null"):
        load_answers(write(tmp_path / "a.json", [["x", {"text": None}, "POS"]]), four)
    with pytest.raises(ScoringError, match=r"a\.json: item 1: prediction is null"):
        load_answers(write(tmp_path / "a.json", [{"index": 0, "prediction": None}]), four)


# --------------------------------------------------------------------------------------------------------- under degradation


@pytest.fixture
def degraded(folder: Any, four: Questions) -> Any:
    """Answers that lens_blur (pairs 0 and 1) misleads and graffiti (2 and 3) does not."""
    operators = {str(i): "lens_blur" if i < 4 else "graffiti" for i in range(8)}
    folder.manifest("MMR_CLEAN", dict.fromkeys(operators))
    folder.manifest("MMR_LOW_LEVEL_HIGH", operators)
    folder.manifest("MMR_motion_blur", dict.fromkeys(operators, "motion_blur"))
    outcomes = {
        "MMR_CLEAN": [(True, True)] * 4,
        "MMR_LOW_LEVEL_HIGH": [(True, False), (True, False), (True, True), (True, True)],
        "MMR_motion_blur": [(False, False)] * 4,
    }
    for stem, outcome in outcomes.items():
        write_lines(folder.results / f"m_{stem}.jsonl", lines(four, answers(four, outcome)))
    return folder


def test_under_degradation(degraded: Any, four: Questions) -> None:
    settings = Settings(str(four.path), str(degraded.results), str(degraded.root / "out"), build=str(degraded.build))
    found = score_mmr(settings)
    assert found["overall"]["ra"] == 100.0
    assert found["clean"] == {"side": "control", "file": "m_MMR_CLEAN.jsonl"}
    (high,) = found["by_severity"]
    assert (high["severity"], high["ra"], high["ra_drop"], high["mr"], high["mr_rise"]) == ("high", 50.0, 50.0, 50.0, 50.0)
    by_operator = {r["operator"]: r for r in found["by_operator"]}
    assert (by_operator["lens_blur"]["ra_drop"], by_operator["lens_blur"]["mr"]) == (100.0, 100.0)
    assert (by_operator["graffiti"]["ra_drop"], by_operator["graffiti"]["n"]) == (0.0, 2)
    assert (by_operator["motion_blur"]["ra"], by_operator["motion_blur"]["mr"], by_operator["motion_blur"]["mr_rise"]) == (0.0, None, None)
    assert found["files"]["MMR_LOW_LEVEL_HIGH"]["overall"]["rw"] == 2
    assert "lens_blur" in report.mmr_table(found)
    assert (degraded.root / "out" / "by_operator.csv").is_file()


def test_severities_rise(degraded: Any, four: Questions) -> None:
    for severity in ("LOW", "MID", "I0300"):
        degraded.manifest(f"MMR_LOW_LEVEL_{severity}", dict.fromkeys(map(str, range(8)), "graffiti"))
        shutil.copy(degraded.results / "m_MMR_CLEAN.jsonl", degraded.results / f"m_MMR_LOW_LEVEL_{severity}.jsonl")
    shutil.copy(degraded.results / "m_MMR_CLEAN.jsonl", degraded.results / "m_MMR.jsonl")
    found = score_mmr(Settings(str(four.path), str(degraded.results), str(degraded.root / "out"), build=str(degraded.build)))
    assert list(found["files"]) == ["MMR", "MMR_CLEAN", *(f"MMR_LOW_LEVEL_{s}" for s in ("LOW", "I0300", "MID", "HIGH")), "MMR_motion_blur"]
    assert [r["severity"] for r in found["by_severity"]] == ["low", "0.3", "mid", "high"]


def test_a_pair_whose_questions_got_two_operators_counts_for_none(degraded: Any, four: Questions) -> None:
    degraded.manifest("MMR_LOW_LEVEL_HIGH", {str(i): "graffiti" if i == 1 else "lens_blur" for i in range(8)})
    settings = Settings(str(four.path), str(degraded.results), str(degraded.root / "out"), build=str(degraded.build))
    mixed = [r for r in score_mmr(settings)["by_operator"] if r["source"] == "mixed"]
    assert [(r["operator"], r["n"]) for r in mixed] == [("lens_blur", 3)]


def test_clean_answers_to_the_official_images(degraded: Any, four: Questions) -> None:
    (degraded.results / "m_MMR_CLEAN.jsonl").rename(degraded.results / "m_MMR.jsonl")
    settings = Settings(str(four.path), str(degraded.results), str(degraded.root / "out"), build=str(degraded.build))
    assert score_mmr(settings)["clean"] == {"side": "official", "file": "m_MMR.jsonl"}
    (degraded.results / "m_MMR.jsonl").unlink()
    with pytest.raises(ScoringError, match="no answers to clean images, MMR_CLEAN or MMR"):
        score_mmr(settings)


def test_other_questions_than_the_builds(degraded: Any, four: Questions) -> None:
    degraded.manifest("MMR_LOW_LEVEL_HIGH", dict.fromkeys("012345", "graffiti"))
    settings = Settings(str(four.path), str(degraded.results), str(degraded.root / "out"), build=str(degraded.build))
    with pytest.raises(ScoringError, match=r"the manifest of MMR_LOW_LEVEL_HIGH lacks the rows of .*: index 6, 7"):
        score_mmr(settings)


def test_answers_of_two_models(degraded: Any, four: Questions) -> None:
    write_lines(degraded.results / "other_MMR.jsonl", lines(four, ["A"] * 8))
    settings = Settings(str(four.path), str(degraded.results), str(degraded.root / "out"), build=str(degraded.build))
    with pytest.raises(ScoringError, match="answers of several models, m, other"):
        score_mmr(settings)


# --------------------------------------------------------------------------------------------------------- the data set


@pytest.fixture
def images(tmp_path: Path, four: Questions) -> Path:
    from PIL import Image

    for number, (first, _) in enumerate(four.pairs):
        path = tmp_path / "images" / four.questions[first].image
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 4), (10 * number, 0, 0)).save(path, format="PNG")
    return tmp_path / "images"


def test_dataset(four: Questions, images: Path, tmp_path: Path) -> None:
    from degrade.scoring.mmr_dataset import MMRDataset

    data = MMRDataset(four.path, images)
    assert len(data) == 8
    sample = data[3]
    assert (tuple(sample["image"].shape), int(sample["image"][0, 0, 0])) == ((3, 4, 6), 10)
    assert (sample["kind"], sample["letter"], sample["pair"], sample["key"], sample["index"]) == (
        ("POS", "B", "attribute/number/01", "attribute/number/01:POS", 3)
    )  # fmt: skip
    assert sample["options"]["C"] == "blue"
    assert sample["prompt"] == sample["question"] + "\nAnswer with the option's letter from the given choices directly."
    assert data[-1]["index"] == 7
    with pytest.raises(IndexError):
        data[8]
    plain = MMRDataset(four, images, prompt="plain", transform=lambda image: int(image[0, 0, 0]))
    assert [plain[i]["image"] for i in range(8)] == [0, 0, 10, 10, 20, 20, 30, 30]
    assert plain[0]["prompt"] == plain[0]["question"]

    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        for path in images.rglob("*.jpg"):
            archive.write(path, Path("MMR-images") / path.relative_to(images))
    zipped = MMRDataset(four, tmp_path / "images.zip")
    assert all((zipped[i]["image"] == data[i]["image"]).all() for i in range(8))


def test_dataset_from_a_builds_file(four: Questions, images: Path, tmp_path: Path) -> None:
    import base64

    from degrade.scoring.mmr_dataset import MMRDataset

    rows = ["index\timage\tquestion"]
    for i, question in enumerate(four.questions):
        cell = base64.b64encode((images / question.image).read_bytes()).decode() if i % 2 == 0 else str(i - 1)
        rows.append(f"{i}\t{cell}\tq")
    path = tmp_path / "MMR_LOW_LEVEL_HIGH.tsv"
    path.write_text("\n".join(rows) + "\n")
    data = MMRDataset(four, path)
    assert [int(data[i]["image"][0, 0, 0]) for i in range(8)] == [0, 0, 10, 10, 20, 20, 30, 30]
    path.write_text("\n".join(rows[:-1]) + "\n")
    with pytest.raises(ScoringError, match="lacks 1 of the images: index 7"):
        MMRDataset(four, path)


def test_dataset_errors(four: Questions, images: Path, tmp_path: Path) -> None:
    from degrade.scoring.mmr_dataset import MMRDataset

    with pytest.raises(ValueError, match="prompt 'shout'"):
        MMRDataset(four, images, prompt="shout")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        MMRDataset(four, tmp_path / "nowhere")
    next(images.rglob("02.jpg")).unlink()
    with pytest.raises(ScoringError, match=r"lacks 2 of the images: context/expert/02\.jpg"):
        MMRDataset(four, images)
