"""The verbs from end to end, as a person calls them."""

import base64
import csv
import errno
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from degrade import cli
from degrade.data import download, manifest, staging

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
    for name in ("row.png", "row"):
        assert cli.main(["replay", f"manifest=out/{stem}.manifest.jsonl", "index=007", f"output={name}"]) == cli.WRONG
        assert "which are jpeg, so its name must end in .jpg or .jpeg" in capsys.readouterr().err
        assert not (tmp_path / name).exists()
    assert cli.main(["replay", f"manifest=out/{source.stem}_CLEAN.manifest.jsonl", "index=8"]) == cli.DONE
    assert len(list((tmp_path / "outputs").glob("*_CLEAN_8.jpg"))) == 1


def test_replays_of_a_list_keep_apart(source: Path, tmp_path: Path) -> None:
    source.write_text(f"index\timage\n5\t['{picture(10)}', '{picture(20)}']\n", encoding="utf-8")
    assert cli.main(["build", f"source={source}", "output=out", "codec=png", *QUICK]) == cli.DONE
    for part in (0, 1):
        assert cli.main(["replay", f"manifest=out/{source.stem}_CLEAN.manifest.jsonl", "index=5", f"part={part}"]) == cli.DONE
    found = sorted((tmp_path / "outputs").iterdir())
    assert [path.name[-14:] for path in found] == ["_CLEAN_5.0.png", "_CLEAN_5.1.png"]
    assert [Image.open(path).getpixel((0, 0)) for path in found] == [(10, 200, 90), (20, 200, 90)]


def test_preview_says_what_it_will_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (24, 16)).save("a.png")
    command = ["preview", "image=a.png", "operators=[lens_blur,scan_lines]", "severities=[low,mid,high]"]
    assert cli.main([*command, "output=sheet.jpg"]) == cli.WRONG
    out, err = capsys.readouterr()
    assert "output=sheet.jpg: a contact sheet is a PNG file, so its name must end in .png" in err
    assert out == ""
    assert cli.main([*command, "output=sheet.png"]) == cli.DONE
    assert capsys.readouterr().out.splitlines() == ["6 images of 24 x 16 pixels to make, shown smaller on the sheet", "wrote sheet.png"]
    assert files(tmp_path) == {"a.png", "sheet.png"}


def test_failed_rows_are_listed_with_exit_code_1(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with source.open("a", encoding="utf-8") as file:
        broken = base64.b64encode(b"no picture, but long enough not to be taken for a reference").decode()
        file.write(f"bad\t{broken}\tx\n")
    assert cli.main(["build", f"source={source}", "output=out", *QUICK]) == cli.FAILED
    out, err = capsys.readouterr()
    assert "1 row could not be degraded" in err
    assert f"{source}, row 2, index 'bad'" in err
    assert "VLMEvalKit" not in out
    assert "no files were written" in out
    assert cli.main(["verify", "build=out"]) == cli.FAILED
    out, err = capsys.readouterr()
    assert "is not complete: 1 of 3 rows could not be degraded" in err
    assert "all as they were built" not in out
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
    assert cli.main(["score", "results=m_MMStar.tsv", "output=s", "resamples=100"]) == cli.DONE
    assert "50.00" in capsys.readouterr().out
    assert cli.main(["score", "results=m_MMStar.tsv", "output=s", "resamples=100", "json=true"]) == cli.DONE
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


def test_verify_says_what_is_wrong(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", f"source={source}", "output=out", *QUICK]) == cli.DONE
    assert cli.main(["verify", "build=out", "sample=1"]) == cli.DONE
    assert "2 files, 4 rows, 4 images, 2 of them made again: all as they were built" in capsys.readouterr().out
    path = tmp_path / "out" / f"{source.stem}_CLEAN.tsv"
    path.write_bytes(path.read_bytes().replace(b"None", b""))
    assert cli.main(["verify", "build=out", "sample=0"]) == cli.FAILED
    err = capsys.readouterr().err
    assert "column question: '' where the source has 'None'" in err
    assert f"{path.name}: its sha256 is" in err
    assert cli.main(["verify", "build=nowhere"]) == cli.WRONG


def test_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my set" / "a").mkdir(parents=True)
    for n in range(3):
        Image.new("RGB", (24, 16), (n, 200, 90)).save(tmp_path / "my set" / "a" / f"{n}.png")
    command = ["images", "source=my set", "output=out", "mixture={dark_illumination: 1}"]
    assert cli.main(command) == cli.DONE
    out = capsys.readouterr().out
    assert "3 images to write in out\n" in out
    assert "3 images and the records" in out
    assert files(tmp_path / "out") == {"a/0.png", "a/1.png", "a/2.png", "manifest.jsonl"}
    (tmp_path / "my set" / "b.png").write_bytes(b"no image")
    assert cli.main(command) == cli.FAILED
    out, err = capsys.readouterr()
    assert "1 image to write in out (3 more are there already)" in out
    assert "my set, b.png: the 8 bytes are no image" in err
    assert cli.main([*command, "seed=1"]) == cli.WRONG
    assert cli.main(["images", "source=my set", "output=my set/out"]) == cli.WRONG


def test_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The fetching itself is tested against a server that misbehaves, in tests/data."""
    monkeypatch.chdir(tmp_path)
    asked: list[list[str]] = []

    def fetch(wanted: Sequence[download.Remote], folder: Path, progress: download.Progress) -> list[Path]:
        asked.append([file.name for file in wanted])
        folder.mkdir()
        (folder / "x.tsv").write_bytes(b"12345")
        progress(5, 5)
        return [folder / "x.tsv"]

    monkeypatch.setattr(download, "download", fetch)
    assert cli.main(["download", "benchmarks=[cvbench2d,MM-Vet]", "output=data"]) == cli.DONE
    assert asked == [["CV-Bench-2D.tsv", "MMVet.tsv"]]
    assert "data/x.tsv, 5 B, checked" in capsys.readouterr().out
    assert len(download.public()) == 7


def test_mmr_built_and_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    questions = []
    for n in range(4):
        for kind in ("POS", "NEG"):
            text = f"{kind} {n}?\nA. yes\nB. no\nC. maybe\nD. never"
            questions.append(
                {"id": f"scene/count/{n}", "image": f"scene/{n}.png", "question": text, "ground_truth": "A", "question_type": kind}
            )
        (tmp_path / "pictures" / "scene").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (24, 16), (n, 200, 90)).save(tmp_path / "pictures" / "scene" / f"{n}.png")
    (tmp_path / "q.json").write_text(json.dumps(questions), encoding="utf-8")
    mixture = "mixture={dark_illumination: 1, scan_lines: 1}"
    command = ["build", "source=mmr", "questions=q.json", "images=pictures", "variants=[mixed,clean]", "severities=[high]", mixture]
    assert cli.main([*command, "output=out"]) == cli.DONE
    assert cli.main(["build", "source=mmr", "questions=q.json", "output=elsewhere"]) == cli.WRONG
    with (tmp_path / "out" / "MMR_LOW_LEVEL_HIGH.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [row["index"] for row in rows] == [str(n) for n in range(8)]
    (tmp_path / "answers").mkdir()
    for stem, wrong in (("MMR_CLEAN", set()), ("MMR_LOW_LEVEL_HIGH", {"1", "2"})):  # the negative of pair 0, the positive of pair 1
        answers = [{"index": row["index"], "prediction": "B" if row["index"] in wrong else "A"} for row in rows]
        (tmp_path / "answers" / f"m_{stem}.jsonl").write_text("\n".join(map(json.dumps, answers)), encoding="utf-8")
    capsys.readouterr()
    scored = ["mmr", "questions=q.json", "answers=answers", "build=out", "output=r", "resamples=100", "json=true"]
    assert cli.main(scored) == cli.DONE
    printed = json.loads(capsys.readouterr().out)
    (high,) = printed["by_severity"]
    assert (printed["overall"]["ra"], high["severity"], high["ra"], high["rr"], high["rw"]) == (100.0, "high", 50.0, 2, 1)
    operators = {line["operator"]: line["n"] for line in printed["by_operator"]}
    by_index = {line["index"]: line for line in manifest.lines(tmp_path / "out" / f"MMR_LOW_LEVEL_HIGH{manifest.SUFFIX}")}
    drawn = [by_index[str(2 * n)]["record"]["operator"] for n in range(4)]
    assert operators == {name: drawn.count(name) for name in set(drawn)}


@pytest.mark.parametrize("writer", ["parquet", "webdataset"])
def test_score_with_a_build_of_another_format(writer: str, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "MMStar.tsv").write_text(
        "index\timage\tquestion\tA\tB\tanswer\tcategory\tl2_category\n"
        + "".join(f"{n}\t{picture(n)}\tx?\tyes\tno\tA\tc\td\n" for n in range(4)),
        encoding="utf-8",
    )
    assert cli.main(["build", "source=MMStar.tsv", "output=out", f"writer={writer}", *QUICK]) == cli.DONE
    header = "index\tquestion\tA\tB\tanswer\tcategory\tl2_category\tprediction\n"
    for stem, said in (("MMStar_CLEAN", "AAAA"), ("MMStar_LOW_LEVEL_HIGH", "ABBA")):
        rows = "".join(f"{n}\tx?\tyes\tno\tA\tc\td\t{letter}\n" for n, letter in enumerate(said))
        (tmp_path / f"m_{stem}.tsv").write_text(header + rows, encoding="utf-8")
    (tmp_path / "results").mkdir()
    for path in tmp_path.glob("m_*.tsv"):
        path.rename(tmp_path / "results" / path.name)
    capsys.readouterr()
    assert cli.main(["score", "results=results", "build=out", "output=s", "resamples=100", "json=true"]) == cli.DONE
    printed = json.loads(capsys.readouterr().out)
    (drop,) = printed["drops"]
    assert (drop["benchmark"], drop["severity"], drop["clean"], drop["degraded"], drop["drop"]) == ("MMStar", "high", 1.0, 0.5, 0.5)
    assert [line["operator"] for line in printed["by_operator"]] == ["dark_illumination"]


def test_a_folder_that_cannot_be_written_and_a_full_disk(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["build", f"source={source}", "output=out", *QUICK]
    with monkeypatch.context() as patched:
        patched.setattr(staging.os, "access", lambda path, mode: False)
        assert cli.main(command) == cli.WRONG
        assert "output: out cannot be used: it is not writable" in capsys.readouterr().err

    def full(self: staging.Growing, name: str, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(staging.Growing, "append", full)
        assert cli.main(command) == cli.FAILED
        assert "no space left in out. What is done is kept: make room" in capsys.readouterr().err
    assert not [name for name in files(tmp_path / "out") if not name.startswith(staging.FOLDER)]
    assert cli.main(command) == cli.DONE


def test_ctrl_c_and_two_builds_at_once(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source.write_text("index\timage\n" + "".join(f"{n}\t{picture(n % 256)}\n" for n in range(1500)), encoding="utf-8")
    command = ["build", f"source={source}", "output=out", *QUICK]
    root = Path(cli.__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(
        [sys.executable, "-m", "degrade.cli", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while "files to write" not in process.stdout.readline():
            assert process.poll() is None, process.stderr.read()
        while not any(path.is_file() for path in (tmp_path / "out" / staging.FOLDER).glob("**/*")):  # it holds the lock by then
            assert process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGSTOP)  # else it may be done before the other one looks
        assert cli.main(command) == cli.FAILED
        assert "another build is at work in out" in capsys.readouterr().err
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == cli.INTERRUPTED
        assert process.stderr.read() == "degrade: interrupted; the same command goes on where this one stopped\n"
    assert not [name for name in files(tmp_path / "out") if not name.startswith(staging.FOLDER)]
    assert cli.main(command) == cli.DONE
    assert cli.main(["verify", "build=out", "sample=1"]) == cli.DONE
