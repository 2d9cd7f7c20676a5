"""Result files in, scores and drops out."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from degrade.scoring import ScoringError, report, score
from degrade.scoring.results import split_name
from degrade.scoring.tables import read_table
from degrade.suites import OPERATOR_CATEGORIES

Rows = list[dict[str, object]]
Make = Callable[..., Rows]
Report = dict[str, Any]


@pytest.fixture
def mmstar(folder: Any, questions: Make) -> Any:
    """Four rows, two operators: lens_blur spoils both of its rows at high, graffiti one of its, and cures none."""
    ops = {"0": "lens_blur", "1": "lens_blur", "2": "graffiti", "3": "graffiti"}
    folder.manifest("MMStar_CLEAN", dict.fromkeys(ops))
    folder.manifest("MMStar_LOW_LEVEL_LOW", ops)
    folder.manifest("MMStar_LOW_LEVEL_HIGH", ops)
    folder.result("MMStar_CLEAN", questions([True, True, True, False], category="x"))
    folder.result("MMStar_LOW_LEVEL_HIGH", questions([False, False, False, False], category="x"))
    folder.result("MMStar_LOW_LEVEL_LOW", questions([True, True, False, True], category="x"))
    return folder


@pytest.fixture(autouse=True)
def _no_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take a second: they are drawn for their own test only."""
    if request.function is not test_pictures:
        monkeypatch.setattr("degrade.scoring.plots.write_plots", lambda *_: [])


def only(records: list[Report], **wanted: object) -> Report:
    found = [record for record in records if all(record[name] == value for name, value in wanted.items())]
    assert len(found) == 1, found
    return found[0]


# ------------------------------------------------------------------------------------------------------------- drops


def test_drops(mmstar: Any) -> None:
    out = score(mmstar.config())
    high = only(out["drops"], severity="high")
    assert (high["model"], high["benchmark"], high["clean"], high["degraded"], high["drop"]) == ("m", "MMStar", 0.75, 0.0, 0.75)
    assert (high["clean_side"], high["clean_file"], high["kept"]) == ("control", "m_MMStar_CLEAN", 0.0)
    low = only(out["drops"], severity="low")
    assert (low["drop"], low["right_to_wrong"], low["wrong_to_right"]) == (0.0, 0.25, 0.25)
    assert [d["severity"] for d in out["drops"]] == ["low", "high"]
    assert only(out["by_operator"], severity="high", operator="lens_blur")["drop"] == 1.0
    assert only(out["by_operator"], severity="high", operator="graffiti")["drop"] == 0.5
    assert only(out["by_category"], severity="high", category="postprocessing")["n"] == 2
    assert only(out["by_capability"], severity="high", capability="x")["drop"] == 0.75
    assert only(out["averages"], severity="high")["drop"] == 0.75


def test_clean_comes_first_and_severities_rise(mmstar: Any, questions: Make) -> None:
    for severity in ("MID", "I0300", "I1000"):
        mmstar.manifest(f"MMStar_LOW_LEVEL_{severity}", dict.fromkeys("0123", "graffiti"))
        mmstar.result(f"MMStar_LOW_LEVEL_{severity}", questions([True] * 4, category="x"))
    for stem, operator in (("MMStar_graffiti", "graffiti"), ("MMStar_lens_blur", "lens_blur"), ("MMStar_graffiti_LOW", "graffiti")):
        mmstar.manifest(stem, dict.fromkeys("0123", operator))
        mmstar.result(stem, questions([True] * 4, category="x"))
    mmstar.result("MMStar", questions([True] * 4, category="x"))
    rising = ["low", "0.3", "mid", "high", "1"]
    out = score(mmstar.config())
    variants = ["official", "clean", *rising, "graffiti/low", "lens_blur/high", "graffiti/high"]
    assert [f["variant"] for f in out["files"].values()] == variants
    assert [d["severity"] for d in out["drops"]] == rising
    assert [a["severity"] for a in out["averages"]] == rising
    printed = report.mmd_table(out)
    heads = [line for line in printed.splitlines() if line.startswith("Drop by operator at")]
    assert [(line.split()[4].rstrip(","), "mixed" in line) for line in heads] == [
        *((s, True) for s in rising),
        ("low", False),
        ("high", False),
    ]
    assert [f["variant"] for f in score(mmstar.config(build=None))["files"].values()] == variants


def test_severities_rise_across_benchmarks(folder: Any, questions: Make) -> None:
    for benchmark, severity in (("MMStar", "HIGH"), ("RealWorldQA", "LOW")):
        for stem in (f"{benchmark}_CLEAN", f"{benchmark}_LOW_LEVEL_{severity}"):
            folder.manifest(stem, dict.fromkeys("01", "graffiti"))
            folder.result(stem, questions([True, False], category="x", l2_category="y"))
    printed = report.mmd_table(score(folder.config())).splitlines()
    assert [line.split()[4] for line in printed if line.startswith("Drop by operator at")] == ["low,", "high,"]
    (columns,) = [line.split() for line in printed if line.startswith("capability")]
    assert columns == ["capability", "n", "clean", "low", "high"]


def test_score_json_is_what_is_returned_and_csv_holds_the_drops(mmstar: Any) -> None:
    out = score(mmstar.config())
    assert json.loads((mmstar.root / "out" / "score.json").read_text()) == out
    with (mmstar.root / "out" / "drops.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["severity"], line["drop"]) for line in lines] == [("low", "0.0"), ("high", "0.75")]
    assert float(lines[1]["ci95_low"]) <= 0.75 <= float(lines[1]["ci95_high"])
    with (mmstar.root / "out" / "by_operator.csv").open(newline="") as file:
        assert {line["operator"] for line in csv.DictReader(file)} == {"lens_blur", "graffiti"}


def test_the_same_twice(mmstar: Any) -> None:
    assert score(mmstar.config()) == score(mmstar.config())


def test_without_control_answers_the_official_file_is_the_clean_side(mmstar: Any, questions: Make) -> None:
    mmstar.result("MMStar", questions([True, True, True, True], category="x"))
    assert only(score(mmstar.config())["drops"], severity="high")["clean"] == 0.75
    (mmstar.results / "m" / "m_MMStar_CLEAN.tsv").unlink()
    high = only(score(mmstar.config())["drops"], severity="high")
    assert (high["clean"], high["clean_side"], high["clean_file"]) == (1.0, "official", "m_MMStar")


def test_without_clean_answers_a_note_and_no_drop(mmstar: Any) -> None:
    (mmstar.results / "m" / "m_MMStar_CLEAN.tsv").unlink()
    out = score(mmstar.config())
    assert out["drops"] == []
    assert any("no clean answers to MMStar" in note for note in out["notes"])


def test_without_a_build_plain_scores(mmstar: Any) -> None:
    out = score(mmstar.config(build=None))
    assert out["files"]["m_MMStar_LOW_LEVEL_HIGH"]["variant"] == "high"
    assert out["files"]["m_MMStar_CLEAN"]["score"] == 0.75
    assert (out["drops"], out["build"]) == ([], None)


def test_rows_may_be_shuffled(mmstar: Any, questions: Make) -> None:
    before = score(mmstar.config())["drops"]
    mmstar.result("MMStar_LOW_LEVEL_HIGH", questions([False, False, False, False], category="x")[::-1])
    mmstar.result("MMStar_LOW_LEVEL_LOW", questions([True, True, False, True], category="x")[::-1])
    assert score(mmstar.config())["drops"] == before


def test_tags_and_other_variants_are_not_taken_for_the_official_file(mmstar: Any, questions: Make) -> None:
    (mmstar.results / "m" / "m_MMStar_CLEAN.tsv").unlink()
    mmstar.result("MMStar_LOW_LEVEL_HIGH-v2", questions([True, True, True, True], category="x"))
    mmstar.result("MMStar_lens_blur", questions([True, True, True, True], category="x"))
    judged = [row | {"hit": 1} for row in questions([True, True, True, True], category="x")]
    mmstar.result("MMStar_lens_blur_openai_result", judged)
    out = score(mmstar.config(judged=True))
    assert out["drops"] == []
    assert set(out["files"]) == {"m_MMStar_LOW_LEVEL_HIGH", "m_MMStar_LOW_LEVEL_LOW"}
    assert sum("no data set of this build" in note for note in out["notes"]) == 3


def test_a_model_whose_name_begins_with_another(mmstar: Any, questions: Make) -> None:
    for stem, right in (("MMStar_CLEAN", True), ("MMStar_LOW_LEVEL_HIGH", True)):
        mmstar.result(stem, questions([right] * 4, category="x"), folder="m_MMStar", model="m_MMStar")
    out = score(mmstar.config())
    assert only(out["drops"], severity="high", model="m")["drop"] == 0.75
    assert only(out["drops"], severity="high", model="m_MMStar")["drop"] == 0.0


def test_per_operator_files(mmstar: Any, questions: Make) -> None:
    for operator, right in (("lens_blur", [False] * 4), ("motion_blur", [True, True, True, False])):
        mmstar.manifest(f"MMStar_{operator}", dict.fromkeys("0123", operator))
        mmstar.result(f"MMStar_{operator}", questions(right, category="x"))
    out = score(mmstar.config())
    assert only(out["by_operator"], source="operator", operator="lens_blur")["drop"] == 0.75
    both = only(out["by_category"], source="operator", category="capture")
    assert (both["n"], both["drop"], both["operators"]) == (4, 0.375, ["lens_blur", "motion_blur"])
    assert {r["source"] for r in out["by_operator"]} == {"mixed", "operator"}


def test_one_row(folder: Any, questions: Make) -> None:
    folder.manifest("MMStar_CLEAN", {"0": None})
    folder.manifest("MMStar_LOW_LEVEL_HIGH", {"0": "graffiti"})
    folder.result("MMStar_CLEAN", questions([True]))
    folder.result("MMStar_LOW_LEVEL_HIGH", questions([False]))
    drop = only(score(folder.config())["drops"], severity="high")
    assert (drop["drop"], drop["ci95"], drop["n"]) == (1.0, None, 1)


def test_nothing_right(mmstar: Any, questions: Make) -> None:
    mmstar.result("MMStar_CLEAN", questions([False] * 4, category="x"))
    out = score(mmstar.config())
    high = only(out["drops"], severity="high")
    assert (high["clean"], high["kept"], high["kept_ci95"]) == (0.0, None, None)
    assert "-" in report.mmd_table(out)


def test_no_rows_at_all(folder: Any) -> None:
    folder.result("MMStar", [])
    folder.result("MMBench_DEV_EN_V11", [])
    folder.result("MMVP", [])
    out = score(folder.config(build=None))
    assert [f["score"] for f in out["files"].values()] == [None, None, None]
    assert report.mmd_table(out)


def test_r_bench_dis_is_scored_as_it_is(mmstar: Any, questions: Make) -> None:
    mmstar.result("R-Bench-Dis", questions([True, True, True, False, False]))
    out = score(mmstar.config())
    assert out["files"]["m_R-Bench-Dis"]["score"] == 0.6
    assert {d["benchmark"] for d in out["drops"]} == {"MMStar"}
    assert only(out["averages"], severity="high")["with_r_bench_dis"] == pytest.approx(0.3)


def test_a_benchmark_of_ones_own(folder: Any, questions: Make) -> None:
    folder.manifest("my set_LOW_LEVEL_HIGH", {"0": "graffiti", "1": "graffiti"})
    folder.result("my set", questions([True, True]))
    folder.result("my set_LOW_LEVEL_HIGH", questions([True, False]))
    assert only(score(folder.config())["drops"], benchmark="my set")["drop"] == 0.5


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:3], r"m_MMStar_LOW_LEVEL_HIGH.tsv: its rows .3. are not those of .* .4.: missing 1: index 3"),
        (lambda rows: [*rows, rows[0] | {"index": 9}], r"too many 1: index 9"),
        (lambda rows: [*rows, rows[1]], r"index 1 stands in row 2 and again in row 5"),
        (lambda rows: [rows[0] | {"index": ""}, *rows[1:]], r"row 1 has no index"),
        (lambda rows: [row | {"index": 100 + i} for i, row in enumerate(rows)], r"missing 4.*no row is the same, is this another build"),
        (lambda rows: [rows[0] | {"question": "other"}, *rows[1:]], r"do not ask the same questions: index 0: question 'other', not 'q0'"),
        (lambda rows: [rows[0], rows[1] | {"answer": "A"}, *rows[2:]], r"index 1: answer 'A', not 'B'"),
        (
            lambda rows: [{k: v for k, v in row.items() if k != "prediction"} for row in rows],
            r"no result file: it needs columns index and pred",
        ),
    ],
)
def test_faulty_rows_are_named(mmstar: Any, questions: Make, change: Callable[[Rows], Rows], message: str) -> None:
    mmstar.result("MMStar_LOW_LEVEL_HIGH", change(questions([True] * 4, category="x")))
    with pytest.raises(ScoringError, match=message):
        score(mmstar.config())


def test_every_faulty_file_is_named(mmstar: Any, questions: Make) -> None:
    mmstar.result("MMStar_LOW_LEVEL_HIGH", questions([True] * 3, category="x"))
    mmstar.result("MMStar_LOW_LEVEL_LOW", questions([True] * 5, category="x"))
    with pytest.raises(ScoringError, match=r"(?s)_LEVEL_LOW.*too many 1.*_LEVEL_HIGH.*missing 1"):
        score(mmstar.config())


def test_a_file_that_is_no_workbook(mmstar: Any) -> None:
    (mmstar.results / "m" / "m_MMStar_LOW_LEVEL_HIGH.tsv").unlink()
    (mmstar.results / "m" / "m_MMStar_LOW_LEVEL_HIGH.xlsx").write_text("an error page")
    with pytest.raises(ScoringError, match=r"m_MMStar_LOW_LEVEL_HIGH.xlsx: no result file: this is no xlsx workbook"):
        score(mmstar.config())


def test_different_answers_to_the_same(mmstar: Any, questions: Make) -> None:
    mmstar.result("MMStar_LOW_LEVEL_HIGH", questions([True] * 4, category="x"), suffix=".xlsx")
    with pytest.raises(ScoringError, match=r"different answers to MMStar_LOW_LEVEL_HIGH in .*\.tsv and .*\.xlsx"):
        score(mmstar.config())


def test_runs_below_the_models_folder_are_older(mmstar: Any, questions: Make) -> None:
    mmstar.result("MMStar_LOW_LEVEL_HIGH", questions([True] * 4, category="x"), folder="m/T20250101")
    shutil.copy(mmstar.results / "m" / "m_MMStar_CLEAN.tsv", mmstar.results / "m" / "T20250101" / "m_MMStar_CLEAN.tsv")
    out = score(mmstar.config())
    assert only(out["drops"], severity="high")["drop"] == 0.75
    assert [note for note in out["notes"] if "newest run" in note and "T20250101" in note]


def test_nothing_to_score(folder: Any, questions: Make) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        score(folder.config(results="nowhere", build=None))
    with pytest.raises(ScoringError, match="holds no result file"):
        score(folder.config(build=None))
    with pytest.raises(ScoringError, match="holds no finished build"):
        score(folder.config())
    path = folder.result("Unheard", questions([True]))
    with pytest.raises(ScoringError, match=r"m_Unheard.tsv: the name is not that of"):
        score(folder.config(build=None, results=str(path)))


def test_a_build_that_is_not_standard_needs_a_word(mmstar: Any) -> None:
    ops = {"0": "lens_blur", "1": None, "2": "graffiti", "3": "graffiti"}
    mmstar.manifest("MMStar_LOW_LEVEL_HIGH", ops, statuses={"1": "kept"})
    with pytest.raises(
        ScoringError, match=r"is not standard: rows could not be degraded .1.: MMStar_LOW_LEVEL_HIGH kept row 1.*accept_nonstandard=true"
    ):
        score(mmstar.config())
    out = score(mmstar.config(accept_nonstandard=True))
    assert only(out["drops"], severity="high")["n"] == 3
    assert out["build"]["standard"] is False
    assert "This build is not standard" in report.mmd_table(out)


def test_skipped_rows_count_on_neither_side(folder: Any, questions: Make) -> None:
    folder.manifest("MMStar_LOW_LEVEL_HIGH", {"0": "graffiti", "1": None}, statuses={"1": "skipped"})
    folder.result("MMStar", questions([True, True]))
    folder.result("MMStar_LOW_LEVEL_HIGH", questions([False]))
    drop = only(score(folder.config(accept_nonstandard=True))["drops"], severity="high")
    assert (drop["n"], drop["drop"]) == (1, 1.0)


# ------------------------------------------------------------------------------------------------------------- rules


def test_circular_mmbench(folder: Any, questions: Make) -> None:
    rows = [
        *questions([True, True], start=1, category="c", **{"l2-category": "l"}),
        *questions([True, False], start=1_000_001, category="", **{"l2-category": ""}),
        *questions([True], start=2_000_001),
    ]
    folder.manifest("MMBench_DEV_EN_V11_CLEAN", {"1": None, "2": None}, references={"1000001": "1", "1000002": "2", "2000001": "1"})
    ops = {"1": "graffiti", "2": "lens_blur"}
    folder.manifest("MMBench_DEV_EN_V11_LOW_LEVEL_HIGH", ops, references={"1000001": "1", "1000002": "2", "2000001": "1"})
    folder.result("MMBench_DEV_EN_V11_CLEAN", rows)
    folder.result("MMBench_DEV_EN_V11_LOW_LEVEL_HIGH", [*rows[:-1], rows[-1] | {"prediction": "A"}])
    out = score(folder.config())
    clean = out["files"]["m_MMBench_DEV_EN_V11_CLEAN"]
    assert (clean["score"], clean["row_score"], clean["n"], clean["groups"]) == (0.5, 0.8, 5, 2)
    assert clean["capabilities"]["l2-category"] == {"l": {"score": 0.5, "n": 2}}
    drop = only(out["drops"], severity="high")
    assert (drop["drop"], drop["n"]) == (0.5, 2)
    assert drop["figures"]["row_score"]["drop"] == pytest.approx(0.2)
    assert only(out["by_operator"], operator="graffiti")["drop"] == 1.0


def test_g_index_names_groups(folder: Any, questions: Make) -> None:
    rows = [row | {"g_index": 7} for row in questions([True, False])] + [row | {"g_index": 9} for row in questions([True], start=5)]
    folder.result("MMBench_DEV_EN_V11", rows)
    assert score(folder.config(build=None))["files"]["m_MMBench_DEV_EN_V11"]["score"] == 0.5


def test_judged_groups_without_rotations(folder: Any, questions: Make) -> None:
    folder.manifest("MMBench_DEV_EN_V11_LOW_LEVEL_HIGH", {"1": "graffiti", "2": "graffiti"}, references={"1000001": "1"})
    folder.manifest("MMBench_DEV_EN_V11_CLEAN", {"1": None, "2": None}, references={"1000001": "1"})
    for stem, hits in (("MMBench_DEV_EN_V11_CLEAN", (1, 1)), ("MMBench_DEV_EN_V11_LOW_LEVEL_HIGH", (0, 1))):
        rows = questions([True, True], start=1) + questions([True], start=1_000_001)
        folder.result(stem, rows)
        judged = [row | {"hit": hit} for row, hit in zip(rows, hits, strict=False)]
        folder.result(f"{stem}_openai_result", judged)
    out = score(folder.config(judged=True))
    assert only(out["drops"], severity="high")["drop"] == 0.5
    assert "row_score" not in out["files"]["m_MMBench_DEV_EN_V11_CLEAN_openai_result"]


def test_mmvp_pairs_are_sorted_neighbours(folder: Any, questions: Make) -> None:
    rows = questions([True, True, True, False, False, False], start=1)
    folder.result("MMVP", [rows[i] for i in (3, 0, 5, 1, 2, 4)])
    found = score(folder.config(build=None))["files"]["m_MMVP"]
    assert (found["score"], found["pair_score"], found["pairs"]) == (0.5, pytest.approx(1 / 3), 3)


def test_mmvp_with_a_row_lost_has_no_pair_score(folder: Any, questions: Make) -> None:
    folder.result("MMVP", questions([True] * 4)[1:3])
    assert score(folder.config(build=None))["files"]["m_MMVP"]["pair_score"] == 1.0  # 1 and 2 are neighbours
    folder.result("MMVP", [questions([True] * 4)[i] for i in (0, 2)])
    out = score(folder.config(build=None))
    assert "pair_score" not in out["files"]["m_MMVP"]
    assert any("index 0 has no neighbour" in note for note in out["notes"])


def test_cv_bench_mean_over_sources(folder: Any, questions: Make) -> None:
    rows = questions([True, True, True], source="ADE20K") + questions([False], start=3, source="COCO")
    for stem in ("CV-Bench-2D", "CV-Bench-2D_LOW_LEVEL_HIGH"):
        folder.result(stem, rows)
    folder.manifest("CV-Bench-2D_LOW_LEVEL_HIGH", dict.fromkeys("0123", "graffiti"))
    out = score(folder.config())
    found = out["files"]["m_CV-Bench-2D"]
    assert (found["score"], found["source_mean"]) == (0.75, 0.5)
    assert only(out["averages"], severity="high")["clean"] == 0.5


def test_mm_vet_needs_its_judge(folder: Any) -> None:
    rows: Rows = [
        {"index": 1, "question": "q", "answer": "7", "category": "ocr,math", "prediction": "7"},
        {"index": 2, "question": "r", "answer": "8", "category": "ocr", "prediction": "9"},
    ]
    folder.result("MMVet", rows)
    out = score(folder.config(build=None))
    assert out["files"]["m_MMVet"]["score"] is None
    assert any("MMVet needs a judge" in note for note in out["notes"])
    folder.result("MMVet_gpt-4-turbo", [row | {"score": value} for row, value in zip(rows, (0.5, 0.1), strict=True)])
    found = score(folder.config(build=None))["files"]["m_MMVet_gpt-4-turbo"]
    assert (found["score"], found["judge"], found["scored_by"]) == (0.3, "gpt-4-turbo", "judged")
    assert found["capabilities"]["category"] == {"math": {"score": 0.5, "n": 1}, "ocr": {"score": 0.3, "n": 2}}


def test_judged_or_matched(folder: Any, questions: Make) -> None:
    rows = questions([True, False, False])
    folder.result("MMStar", rows)
    folder.result("MMStar_openai_result", [row | {"hit": hit} for row, hit in zip(rows, (1, 1, 0), strict=True)], suffix=".xlsx")
    plain = score(folder.config(build=None))
    assert set(plain["files"]) == {"m_MMStar"}
    assert plain["files"]["m_MMStar"]["scored_by"] == "exact matching (clear)"
    assert any("MMStar_openai_result" in note and "left aside" in note for note in plain["notes"])
    judged = score(folder.config(build=None, judged=True))
    assert any("m_MMStar." in note and "what a judge made of it" in note for note in judged["notes"])
    assert judged["files"]["m_MMStar_openai_result"]["score"] == pytest.approx(2 / 3)
    assert judged["files"]["m_MMStar_openai_result"]["unparsed"] is None
    folder.result("MMStar_gpt4_result", [row | {"hit": 1} for row in rows])
    with pytest.raises(ScoringError, match="was judged by gpt4, openai"):
        score(folder.config(build=None, judged=True))


def test_a_drop_between_judged_and_matched_is_refused(mmstar: Any, questions: Make) -> None:
    rows = questions([True] * 4, category="x")
    mmstar.result("MMStar_CLEAN_openai_result", [row | {"hit": 1} for row in rows])
    with pytest.raises(ScoringError, match=r"judged by openai, .* is matched exactly: a drop between them would be one between judges"):
        score(mmstar.config(judged=True))


@pytest.mark.parametrize("value", ["yes", "2", ""])
def test_a_judges_column_that_is_no_number(folder: Any, questions: Make, value: str) -> None:
    folder.result("MMStar_openai_result", [row | {"hit": value} for row in questions([True])])
    with pytest.raises(ScoringError, match=f"column hit must hold numbers from 0 to 1: index 0: '{value}'"):
        score(folder.config(build=None, judged=True))


def test_unparsed_answers_are_wrong_and_counted(folder: Any, questions: Make) -> None:
    rows = questions([True, True, True])
    rows[1]["prediction"], rows[2]["prediction"] = "I cannot see", ""
    folder.result("MMStar", rows)
    found = score(folder.config(build=None))["files"]["m_MMStar"]
    assert (found["score"], found["unparsed"]) == (pytest.approx(1 / 3), 2)


# ------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("suffix", [".xlsx", ".tsv", ".json"])
def test_text_stays_text_in_every_format(folder: Any, suffix: str) -> None:
    rows: Rows = [
        {"index": 1, "A": "None", "B": "NA", "C": "007", "prediction": "the code is 007", "answer": "C"},
        {"index": 2, "A": "7", "B": "2.50", "C": "", "prediction": "NA", "answer": "B"},
        {"index": 3, "A": "x\ty", "B": 'say "no"', "C": "a\nb", "prediction": "=B", "answer": "C"},
    ]
    table = read_table(folder.result("MMStar", rows, suffix=suffix))
    assert [row["index"] for row in table.rows] == ["1", "2", "3"]
    assert [[row[name] for name in ("A", "B", "C", "prediction")] for row in table.rows] == [
        ["None", "NA", "007", "the code is 007"],
        ["7", "2.50", "", "NA"],
        ["x\ty", 'say "no"', "a\nb", "=B"],
    ]


def test_numbers_and_gaps_in_a_workbook(folder: Any) -> None:
    path = folder.result("MMStar", [{"index": 1.0, "A": 3, "B": None, "prediction": 0.5}], suffix=".xlsx")
    assert read_table(path).rows == ({"index": "1", "A": "3", "B": "", "prediction": "0.5"},)


def test_whole_numbers_have_no_point(tmp_path: Path) -> None:
    path = tmp_path / "m_MMStar.json"
    path.write_text('[{"index": 1.0, "A": 2.5, "B": NaN, "prediction": true}]')
    assert read_table(path).rows == ({"index": "1", "A": "2.5", "B": "", "prediction": "True"},)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("vila_8b_MMStar.xlsx", ("vila_8b", "MMStar", "MMStar")),
        ("vila_8b/vila_8b_MMStar_graffiti.xlsx", ("vila_8b", "MMStar", "MMStar_graffiti")),
        ("MMVet/MMVet_MMStar.xlsx", ("MMVet", "MMStar", "MMStar")),
        ("MMVet_MMStar.xlsx", ("MMVet", "MMStar", "MMStar")),
        ("m/T1/m_my_MMStar_MMVP.xlsx", ("m", "my_MMStar", "my_MMStar_MMVP")),
        ("m_my_MMStar.xlsx", ("m", "my_MMStar", "my_MMStar")),
        ("m_MMBench_DEV_EN_V11_CLEAN.xlsx", ("m", "MMBench_DEV_EN_V11", "MMBench_DEV_EN_V11_CLEAN")),
        ("m_MMStars.xlsx", None),
        ("MMStar.xlsx", None),
    ],
)
def test_names(path: str, found: object) -> None:
    assert split_name(Path(path), ["MMStar", "MMVet", "MMVP", "my_MMStar", "MMBench_DEV_EN_V11", "MMBench"]) == found


def test_a_table_of_columns_in_json(tmp_path: Path) -> None:
    path = tmp_path / "m_MMStar.json"
    path.write_text('{"index": {"0": 1, "1": 2}, "prediction": {"0": "A", "1": null}}')
    assert [row["prediction"] for row in read_table(path).rows] == ["A", ""]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "", "it is empty"),
        ("a.tsv", 'index\tprediction\n1\t"never closed', "cannot be read"),
        ("a.tsv", "index\tprediction\n1\tA\tB\n", "row 1 has 3 cells"),
        ("a.tsv", "index\tindex\n", "column 'index' stands there twice"),
        ("a.json", "{", "this is no JSON"),
        ("a.json", '{"accuracy": 0.5}', "a list of records is wanted, this is a dict with 'accuracy'"),
        ("a.jsonl", '{"index": 1}\n[]\n', "line 2: a record"),
        ("a.pkl", "", "ends in"),
    ],
)
def test_what_is_no_table(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ScoringError, match=message):
        read_table(path)


def test_pictures(mmstar: Any) -> None:
    from PIL import Image

    score(mmstar.config())
    pictures = sorted((mmstar.root / "out").glob("*.png"))
    assert [path.name for path in pictures] == ["heatmap_m_high.png", "heatmap_m_low.png", "severity_m.png"]
    for path in pictures:
        with Image.open(path) as image:
            assert len(image.convert("RGB").getcolors(1 << 24) or []) > 50  # not an empty canvas


def test_the_table_names_the_clean_side_and_how_answers_were_read(mmstar: Any) -> None:
    text = report.mmd_table(score(mmstar.config()))
    drop = next(line for line in text.splitlines() if line.startswith("m MMStar") and " high " in line).split()
    assert drop[2:6] == ["high", "75.00", "0.00", "75.00"]
    assert drop[-2:] == ["control", "m_MMStar_CLEAN"]
    assert "exact matching (clear)" in text
    assert "lens_blur" in text


def test_categories_are_those_of_the_operators() -> None:
    from degrade.operators import OPERATORS

    assert [(name, operator.category) for name, operator in OPERATORS.items()] == list(OPERATOR_CATEGORIES.items())
