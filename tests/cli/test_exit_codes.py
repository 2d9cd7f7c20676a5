"""Exit codes: 2 with one clear message where the request has to change, 1 where doing it failed, 130 after Ctrl-C.

Each wrong request stands here once, with the words of its message that matter. Output that the system refuses to make is asked for below
``/proc``, where nothing can be made, whoever asks.
"""

import base64
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from degrade import cli
from degrade.data import download, images, manifest

QUICK = ("variants=[mixed,clean]", "severities=[high]", "mixture={dark_illumination: 1}")
BUILD = ("build", "source=MMStar.tsv", *QUICK)
CLEAN = f"manifest=out/MMStar_CLEAN{manifest.SUFFIX}"
GAPS = f"manifest=gaps/gaps_CLEAN{manifest.SUFFIX}"
MMR = ("mmr", "questions=q.json")
JUNK = bytes(range(256)) * 4
PROC = pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")


def picture(level: int) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (24, 16), (level, 200, 90)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good and bad files of every kind, and two small builds."""
    root = tmp_path_factory.mktemp("files")
    header = "index\timage\tquestion\tA\tB\tanswer\tcategory\tl2_category"
    rows = [f"{n}\t{picture(n)}\tx?\tyes\tno\tA\tc\td" for n in range(2)]
    (root / "MMStar.tsv").write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    (root / "gaps.tsv").write_text(f"index\timage\n0\t{picture(0)}\n1\t\n2\t['{picture(1)}', '{picture(2)}']\n", encoding="utf-8")
    shutil.copy(root / "MMStar.tsv", root / "m_MMStar.tsv")  # the source where answers are wanted
    answered = "".join(f"{n}\tx?\tyes\tno\tA\tA\n" for n in (1, 2))
    (root / "m_MMVP.tsv").write_text(f"index\tquestion\tA\tB\tanswer\tprediction\n{answered}", encoding="utf-8")
    for name in ("text.txt", "broken.tsv", "broken.parquet", "broken.tar", "broken.zip", "m_MMStar.xlsx"):
        (root / name).write_bytes(JUNK)
    for suffix in ("jsonl", "json", "csv", "xlsx"):
        (root / f"a.{suffix}").write_bytes(JUNK)
    for name in ("empty", "pictures", "folder.png", "folder.jpg"):
        (root / name).mkdir()
    Image.new("RGB", (24, 16)).save(root / "pictures" / "a.png")
    question = {"id": "scene/count/1", "image": "a.png", "question": "Who?\nA. 1\nB. 2\nC. 3\nD. 4", "ground_truth": "A"}
    (root / "q.json").write_text(json.dumps([question | {"question_type": kind} for kind in ("POS", "NEG")]), encoding="utf-8")
    listed = [["scene/count/1", {"text": "A"}, kind] for kind in ("POS", "NEG")]
    (root / "good.json").write_text(json.dumps(listed), encoding="utf-8")
    (root / "null.json").write_text(json.dumps([listed[0], ["scene/count/1", {"text": None}, "NEG"]]), encoding="utf-8")
    said = [{"question_id": "scene/count/1", "question_type": kind, "text": text} for kind, text in (("POS", "A"), ("NEG", None))]
    (root / "null.jsonl").write_text("\n\n".join(map(json.dumps, said)), encoding="utf-8")
    (root / "null_by_index.jsonl").write_text('{"index": 0, "prediction": "A"}\n{"index": 1, "prediction": null}\n', encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(root)
        assert cli.main([*BUILD, "output=out"]) == cli.DONE
        assert cli.main(["build", "source=gaps.tsv", "output=gaps", *QUICK]) == cli.DONE
    return root


@pytest.fixture
def here(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the prepared files as working directory."""
    root = shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(root)
    return root


OUTPUT_FOLDERS = {
    "build": BUILD,
    "images": ("images", "source=pictures"),
    "score": ("score", "results=m_MMVP.tsv"),
    "mmr": (*MMR, "answers=good.json"),
    "download": ("download", "benchmarks=[MMVP]"),
}
OUTPUT_FILES = {
    "preview": (("preview", "operators=[scan_lines]", "severities=[low]"), "png"),
    "replay": (("replay", CLEAN, "index=0"), "jpg"),
}

WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    # output
    **{f"{verb}: output is a file": ((*words, "output=text.txt"), "output=text.txt: this is a file, and a folder is wanted")
       for verb, words in OUTPUT_FOLDERS.items()},
    **{f"{verb}: output in a file": ((*words, "output=text.txt/in"), "output=text.txt/in: text.txt is a file, and nothing can be in it")
       for verb, words in OUTPUT_FOLDERS.items()},
    **{f"{verb}: output cannot be made": ((*words, "output=/proc/foo"), "output: the folder /proc/foo cannot be made: ")
       for verb, words in OUTPUT_FOLDERS.items()},
    **{f"{verb}: output is a folder": ((*words, f"output=folder.{end}"), f"output=folder.{end}: this is a folder, and a file is wanted")
       for verb, (words, end) in OUTPUT_FILES.items()},
    **{f"{verb}: output in a file": ((*words, f"output=text.txt/x.{end}"), "text.txt is a file, and nothing can be in it")
       for verb, (words, end) in OUTPUT_FILES.items()},
    **{f"{verb}: output cannot be made": ((*words, f"output=/proc/foo/x.{end}"), "output: the folder /proc/foo cannot be made: ")
       for verb, (words, end) in OUTPUT_FILES.items()},
    **{f"{verb}: output cannot be written": ((*words, f"output=/proc/x.{end}"), f"output: /proc/x.{end} cannot be written: ")
       for verb, (words, end) in OUTPUT_FILES.items()},
    "a name too long": ((*BUILD, f"output={'x' * 300}"), "File name too long"),
    "the source as output": (("images", "source=pictures", "output=pictures/in"), "output: pictures/in lies in the source"),
    "a sweep of nothing but wrong runs": (("build", "-m", *BUILD[1:], "output=/proc/a,/proc/b"), "the folder /proc/b cannot be made"),
    # sources
    "build: nothing there": (("build", "source=nowhere.tsv"), "source 'nowhere.tsv': no such file or folder"),
    "build: no benchmark": (("build", "source=MMStra"), "did you mean 'MMStar'?"),
    "build: not downloaded": (("build", "source=MMVP"), "`degrade download benchmarks=[MMVP] output=data` fetches it"),
    "build: another kind": (("build", "source=q.json"), "q.json cannot be read: it must be a folder, or a file with suffix"),
    "build: an empty folder": (("build", "source=empty"), "empty holds neither images nor files"),
    "build: no TSV": (("build", "source=broken.tsv"), "broken.tsv"),
    "build: no parquet": (("build", "source=broken.parquet"), "broken.parquet is no parquet file"),
    "build: no tar": (("build", "source=broken.tar"), "broken.tar cannot be read as a tar file"),
    "build: MMR without questions": (("build", "source=mmr"), "questions is not given"),
    "build: questions in a folder": (("build", "source=mmr", "questions=empty", "images=pictures"), "questions=empty: this is a folder"),
    "build: no questions": (("build", "source=mmr", "questions=a.json", "images=pictures"), "a.json is not JSON"),
    "build: no images of MMR": (("build", "source=mmr", "questions=q.json", "images=broken.zip"), "broken.zip is neither a folder"),
    "build: questions without MMR": ((*BUILD, "questions=q.json"), "questions: only source=mmr has them, and source is 'MMStar.tsv'"),
    "build: images without MMR": ((*BUILD, "images=pictures"), "images: only source=mmr has them"),
    "build: roots that are not there": ((*BUILD, "image_roots=[pictures,nowhere]"), "image_roots: there is no folder nowhere"),
    "build: a root that is a file": ((*BUILD, "image_roots=text.txt"), "image_roots=text.txt: this is a file, and a folder is wanted"),
    "images: nothing there": (("images", "source=nowhere"), "there is no nowhere"),
    "images: a file": (("images", "source=text.txt"), "text.txt is neither a folder nor a .tar file"),
    "images: an empty folder": (("images", "source=empty"), "empty holds neither images nor webdataset shards"),
    "preview: nothing there": (("preview", "image=nowhere.png"), "image=nowhere.png: No such file or directory; a JPEG, PNG"),
    "preview: a folder": (("preview", "image=pictures"), "image=pictures: Is a directory; a JPEG, PNG or other image file is wanted"),
    "preview: no image": (("preview", "image=text.txt"), "image=text.txt: the 1024 bytes are no image"),
    # settings
    **{f"tag {tag}": ((*BUILD, f"tag={tag}"), f"tag: got '{tag}', want letters, digits and dots only, and not dots alone")
       for tag in ("..", ".", "a/b", "../x", "a b")},
    "nothing to build": (("build", "source=MMStar.tsv", "variants=[]"), "nothing to write"),
    "nothing to show": (("preview", "operators=[]"), "nothing to show"),
    "nothing to fetch": (("download", "benchmarks=[]"), "nothing to fetch"),
    "a mixture of null": (("build", "source=MMStar.tsv", "mixture=null"), "unknown mixture 'None'"),
    "a device": ((*BUILD, "device=abacus"), "device: got 'abacus'"),
    "a severity too fine": (("build", "source=MMStar.tsv", "severities=[0.12345]"), "at most three decimals"),
    "other settings": ((*BUILD, "output=out", "seed=1"), "out holds a build made with other settings: seed (there: 0, now: 1). Choose"),
    "too few resamples": (("score", "results=m_MMVP.tsv", "resamples=1"), "resamples=1: it must be at least 100"),
    "no resamples": ((*MMR, "answers=good.json", "resamples=0"), "resamples=0: it must be at least 100"),
    # replay and verify
    "replay: an index": (("replay", CLEAN, "index=7"), "has no row of this index. Its first ones are 0, 1"),
    "replay: a part": (("replay", CLEAN, "index=0", "part=1"), "part=1: the cell of index 0"),
    "replay: a part of several": (("replay", GAPS, "index=2", "part=2"), "holds 2 images, part=0 to part=1"),
    "replay: a row without image": (("replay", GAPS, "index=1"), "the build made no image for this row"),
    "replay: no manifest": (("replay", "manifest=nowhere", "index=0"), "nowhere cannot be read: No such file or directory; a file"),
    "replay: a folder": (("replay", "manifest=out", "index=0"), "manifest=out: this is a folder, and a file is wanted"),
    "replay: another file": (("replay", "manifest=q.json", "index=0"), "q.json is no manifest of a build"),
    "replay: junk": (("replay", "manifest=text.txt", "index=0"), "text.txt is no manifest of a build"),
    "verify: nothing there": (("verify", "build=nowhere"), "nowhere holds no build"),
    "verify: a file": (("verify", "build=text.txt"), "build=text.txt: this is a file, and a folder is wanted"),
    "verify: no build": (("verify", "build=pictures"), "pictures holds no build"),
    "verify: no source": (("verify", "build=out", "source=nowhere"), "source 'nowhere': no such file or folder"),
    # scores
    "score: nothing there": (("score", "results=nowhere"), "results: there is no file or folder 'nowhere'"),
    "score: an empty folder": (("score", "results=empty"), "results: empty holds no result file"),
    "score: a source": (("score", "results=MMStar.tsv"), "MMStar.tsv: the name is not that of a model's answers to a benchmark"),
    "score: no predictions": (("score", "results=m_MMStar.tsv"), "m_MMStar.tsv: no result file: it needs columns index and prediction"),
    "score: no workbook": (("score", "results=m_MMStar.xlsx"), "m_MMStar.xlsx: no result file: this is no xlsx workbook"),
    "score: no build": (("score", "results=m_MMVP.tsv", "build=pictures"), "build: pictures holds no finished build"),
    "score: a build that is a file": (("score", "results=m_MMVP.tsv", "build=text.txt"), "build=text.txt: this is a file"),
    "mmr: no questions": (("mmr", "questions=nowhere", "answers=good.json"), "questions: there is no file 'nowhere'"),
    "mmr: other questions": (("mmr", "questions=a.json", "answers=good.json"), "a.json: this is no JSON"),
    "mmr: nothing there": ((*MMR, "answers=nowhere"), "answers: there is no file or folder 'nowhere'"),
    "mmr: a folder": ((*MMR, "answers=empty"), "answers: empty is a folder; give one file"),
    "mmr: no JSON lines": ((*MMR, "answers=a.jsonl"), "a.jsonl: line 1 is no JSON"),
    "mmr: no JSON": ((*MMR, "answers=a.json"), "a.json: this is no JSON"),
    "mmr: no CSV": ((*MMR, "answers=a.csv"), "a.csv: no result file"),
    "mmr: no workbook": ((*MMR, "answers=a.xlsx"), "a.xlsx: no result file: this is no xlsx workbook"),
    "mmr: another kind": ((*MMR, "answers=text.txt"), "text.txt: a result file ends in"),
    "mmr: the questions as answers": ((*MMR, "answers=q.json"), "q.json: no answers to MMR"),
    "mmr: no text": ((*MMR, "answers=null.jsonl"), "null.jsonl: line 3: text is null, and a text is wanted"),
    "mmr: no text in a list": ((*MMR, "answers=null.json"), "null.json: item 2: text is null, and a text is wanted"),
    "mmr: no text by index": ((*MMR, "answers=null_by_index.jsonl"), "null_by_index.jsonl: line 2: prediction is null, and a text"),
    "mmr: another build": ((*MMR, "answers=empty", "build=out"), "no answers to clean images"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [pytest.param(*case, id=name, marks=[PROC] if any("/proc" in word for word in case[0]) else []) for name, case in WRONG.items()],
)
def test_a_wrong_request(here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    assert cli.main(arguments) == cli.WRONG
    err = capsys.readouterr().err
    assert message in err
    assert "degrade: " in err


def test_what_goes_wrong_on_the_way(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1: rows, bytes and servers that are not as they should be, while the request is all right."""

    def failed(message: str, *arguments: str) -> None:
        assert cli.main(arguments) == cli.FAILED
        assert message in capsys.readouterr().err

    source = (here / "MMStar.tsv").read_text("utf-8")
    broken = base64.b64encode(b"no picture, but long enough not to be taken for a reference").decode()
    (here / "MMStar.tsv").write_text(source.replace(picture(1), broken), encoding="utf-8")
    failed("1 row could not be degraded", *BUILD, "output=new")
    (here / "MMStar.tsv").write_text(source.replace(picture(0), picture(9)), encoding="utf-8")
    failed("the source's image is not the one that the build read", "replay", CLEAN, "index=0", "source=MMStar.tsv")
    failed("is not the source that MMStar was made from", "verify", "build=out", "source=MMStar.tsv")
    (here / "pictures" / "b.png").write_bytes(b"no image")
    failed("1 image could not be degraded", "images", "source=pictures", "output=new-images")
    (here / "MMVP.tsv").write_bytes(b"another file")
    failed("MMVP.tsv is there with md5", "download", "benchmarks=[MMVP]", "output=.")
    remote = download.Remote("x.tsv", "http://127.0.0.1:9/x.tsv", hashlib.md5(b"").hexdigest())
    monkeypatch.setattr(download, "public", lambda benchmarks: [remote])
    monkeypatch.setattr(download, "PAUSE_SECONDS", 0)
    failed("x.tsv could not be fetched", "download", "output=fetched")
    (here / "MMStar.tsv").write_text(source, encoding="utf-8")
    monkeypatch.setattr(images, "encode", lambda *_: b"other bytes")
    failed("comes out with other bytes", "replay", CLEAN, "index=0")


def test_a_sweep_with_a_good_and_a_wrong_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", "-m", *BUILD[1:], "output=good,out", "seed=1"]) == cli.FAILED
    out, err = capsys.readouterr()
    assert "1 of 2 runs done\n  failed: output=out" in out
    assert "other settings" in err


# ------------------------------------------------------------------------------------------------------------------- Ctrl-C


INTERRUPTED_AT = """
import os, signal, sys

wanted = [sys.argv[1]]

class Finder:
    def find_spec(self, name, path, target=None):
        if name in wanted:
            wanted.clear()
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
from degrade.__main__ import main
sys.argv = ["degrade", "verify", "build=nowhere"]
sys.exit(main())
"""
"""The command line, with Ctrl-C at the moment in which a module is about to be loaded."""


@pytest.mark.parametrize(
    "module", ["degrade.cli", "hydra", "torch", "numpy", "numpy.linalg", "numpy.matrixlib", "torch._dynamo", "degrade.build"]
)
def test_ctrl_c_while_libraries_load(tmp_path: Path, module: str) -> None:
    """At whichever place it comes, some of which swallow a KeyboardInterrupt: one line, no traceback."""
    command = [sys.executable, "-c", INTERRUPTED_AT, module]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (cli.INTERRUPTED, "degrade: interrupted\n")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(cli.__file__).resolve().parent.parent)}


def test_the_command_line_itself_loads_no_torch() -> None:
    """So that Ctrl-C is looked after within some milliseconds, and help is quick."""
    program = "import sys; from degrade.__main__ import main; main(); sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, "build", "--help"], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "degrade build: " in done.stdout


def test_ctrl_c_ends_the_process_while_libraries_load_and_not_after(monkeypatch: pytest.MonkeyPatch) -> None:
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        pytest.skip("something else looks after Ctrl-C here")
    with cli._loading():
        assert signal.getsignal(signal.SIGINT) is cli._end
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN)
    with cli._loading():
        monkeypatch.undo()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "who ignores it is not overruled"
