"""The verbs from end to end, as a person calls them."""

import base64
import io
import json
from pathlib import Path

import pytest
from PIL import Image

from degrade import cli
from degrade.data import manifest

QUICK = ["variants=[mixed,clean]", "severities=[high]", "mixture={dark_illumination: 1}"]


def picture(level: int) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (24, 16), (level, 200, 90)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my set (1), new.tsv"
    path.write_text(f"index\timage\tquestion\n007\t{picture(10)}\tNone\n8\t{picture(20)}\twhat?\n", encoding="utf-8")
    return path


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_build_then_replay(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", f"source={source}", "output=out", *QUICK]) == cli.DONE
    out = capsys.readouterr().out
    assert "2 rows, 2 images" in out, "what will be written is said"
    assert "2 files" in out
    assert "vlmevalkit.json" in out
    stem = f"{source.stem}_LOW_LEVEL_HIGH"
    assert files(tmp_path / "out") == {
        f"{stem}.tsv",
        f"{stem}.manifest.jsonl",
        f"{source.stem}_CLEAN.tsv",
        f"{source.stem}_CLEAN.manifest.jsonl",
        "build.json",
        "vlmevalkit.json",
    }
    assert cli.main(["replay", f"manifest=out/{stem}.manifest.jsonl", "index=007", "output=again/a b.jpg"]) == cli.DONE
    assert "dark_illumination at intensity 0.9" in capsys.readouterr().out
    cell = (tmp_path / "out" / f"{stem}.tsv").read_text("utf-8").splitlines()[1].split("\t")[1]
    assert (tmp_path / "again" / "a b.jpg").read_bytes() == base64.b64decode(cell)
    assert cli.main(["replay", f"manifest=out/{source.stem}_CLEAN.manifest.jsonl", "index=8"]) == cli.DONE
    assert len(list((tmp_path / "outputs").glob("*_CLEAN_8.jpg"))) == 1


def test_failed_rows_are_listed_with_exit_code_1(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with source.open("a", encoding="utf-8") as file:
        broken = base64.b64encode(b"no picture, but long enough not to be taken for a reference").decode()
        file.write(f"bad\t{broken}\tx\n")
    assert cli.main(["build", f"source={source}", "output=out", *QUICK]) == cli.FAILED
    err = capsys.readouterr().err
    assert "1 rows could not be degraded" in err
    assert "index 'bad'" in err
    assert not list((tmp_path / "out").glob("*.tsv"))
    assert cli.main(["build", f"source={source}", "output=skipped", "on_error=skip", *QUICK]) == cli.FAILED
    assert len(list((tmp_path / "skipped").glob("*.tsv"))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["source=nowhere.tsv"], "nowhere.tsv"),
        (["source=MMStra"], "did you mean 'MMStar'?"),
        (["alpha=whit"], "whit"),
        (["tag=a/b"], "tag"),
    ],
)
def test_wrong_settings_that_the_build_finds(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["build", *arguments]) == cli.WRONG
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1


def test_other_settings_in_the_same_folder_are_refused(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", f"source={source}", "output=out", *QUICK]) == cli.DONE
    assert cli.main(["build", f"source={source}", "output=out", "seed=1", *QUICK]) == cli.WRONG
    assert "seed (there: 0, now: 1)" in capsys.readouterr().err


def test_an_output_that_cannot_be_made_is_a_failure(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", f"source={source}", f"output={source}/inside", *QUICK]) == cli.FAILED
    assert "Not a directory" in capsys.readouterr().err


def test_dry_run_writes_nothing(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", f"source={source}", "output=out", "dry_run=true", *QUICK]) == cli.DONE
    assert "2 files to write" in capsys.readouterr().out
    assert files(tmp_path) == {source.name}


def test_a_sweep_builds_into_folders_of_its_own(source: Path, tmp_path: Path) -> None:
    settings = ["variants=[mixed]", "mixture={gaussian_noise: 1}", "severities=[low],[0.5]", "seed=0,1"]
    assert cli.main(["build", "-m", f'source="{source}"', "output=out", *settings]) == cli.DONE
    found = {path.parent.name: json.loads(path.read_text("utf-8"))["configuration"] for path in tmp_path.glob("out/*/build.json")}
    assert {name: (c["severities"], c["seed"]) for name, c in found.items()} == {
        "severities=low,seed=0": (["low"], 0),
        "severities=low,seed=1": (["low"], 1),
        "severities=0.5,seed=0": ([0.5], 0),
        "severities=0.5,seed=1": ([0.5], 1),
    }
    records = [next(manifest.lines(path))["record"] for path in tmp_path.glob(f"out/severities=0.5,*/*{manifest.SUFFIX}")]
    assert len(records) == 2
    assert records[0] != records[1], "the seeds draw differently"


def test_score_prints_a_table_or_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    header = "index\tquestion\tA\tB\tanswer\tcategory\tl2_category\tprediction\n"
    (tmp_path / "m_MMStar.tsv").write_text(header + "0\tx?\tyes\tno\tA\tc\td\tA\n1\tx?\tyes\tno\tA\tc\td\tB\n", encoding="utf-8")
    assert cli.main(["score", "results=m_MMStar.tsv", "output=s", "resamples=10"]) == cli.DONE
    assert "50.00" in capsys.readouterr().out
    assert cli.main(["score", "results=m_MMStar.tsv", "output=s", "resamples=10", "json=true"]) == cli.DONE
    printed = json.loads(capsys.readouterr().out)
    assert printed["files"]["m_MMStar"]["score"] == 0.5
    assert printed == json.loads((tmp_path / "s" / "score.json").read_text("utf-8"))
    assert cli.main(["score", "results=nowhere"]) == cli.WRONG
    assert "nowhere" in capsys.readouterr().err


def test_mmr_prints_a_table_or_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    question = {
        "id": "character/character/01",
        "image": "1.jpg",
        "question": "Who?\nA. 1\nB. 2\nC. 3\nD. 4",
        "ground_truth": "A",
    }
    (tmp_path / "q.json").write_text(json.dumps([question | {"question_type": kind} for kind in ("POS", "NEG")]), encoding="utf-8")
    answers = [["character/character/01", {"text": letter}, kind] for letter, kind in (("A", "POS"), ("B", "NEG"))]
    (tmp_path / "a.json").write_text(json.dumps(answers), encoding="utf-8")
    assert cli.main(["mmr", "questions=q.json", "answers=a.json", "output=r"]) == cli.DONE
    assert "100.00" in capsys.readouterr().out
    assert cli.main(["mmr", "questions=q.json", "answers=a.json", "output=r", "json=true"]) == cli.DONE
    assert json.loads(capsys.readouterr().out)["overall"] == {"n": 1, "rr": 0, "rw": 1, "ra": 0.0, "mr": 100.0}
