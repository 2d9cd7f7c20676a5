"""The command line: grammar, quoting, refusals, sweeps, exit codes.  The verbs' own work is tested where it is done."""

import dataclasses
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from degrade import cli
from degrade.config import BuildConfig, PreviewConfig, ReplayConfig, ScoreConfig

Seen = list[Any]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Seen:
    """The configurations that verbs were called with, instead of their work; in an empty working directory."""
    configs: Seen = []

    def run(config: Any) -> int:
        configs.append(config)
        return cli.FAILED if getattr(config, "tag", "") == "broken" else cli.DONE

    for name, kind in {"build": BuildConfig, "preview": PreviewConfig, "replay": ReplayConfig, "score": ScoreConfig}.items():
        monkeypatch.setitem(cli.VERBS, name, cli.Verb(kind, run, f"degrade {name}"))
    monkeypatch.chdir(tmp_path)
    return configs


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one message with which a command line is refused."""
    assert cli.main(arguments) == cli.WRONG
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("degrade: ")
    assert "Traceback" not in err
    return err


# ------------------------------------------------------------------------------------------------------------ configuration


def test_names_are_the_library_s() -> None:
    """The names that a configuration is checked against stand apart from the tables that give them a meaning."""
    from degrade import OPERATORS, SEVERITIES, config
    from degrade.mixture import MIXTURES

    assert list(config.MIXTURES) == list(MIXTURES)
    assert list(config.NAMED_SEVERITIES) == list(SEVERITIES)
    assert {name: operator.category for name, operator in OPERATORS.items()} == config.OPERATOR_CATEGORIES


@pytest.mark.parametrize("name", cli.VERBS)
def test_defaults_are_the_schema_s(name: str) -> None:
    """conf/ holds choices; where nothing is chosen, the command line and a program get the same configuration."""
    kind = cli.VERBS[name].config
    needed = [f"{f.name}=x" for f in dataclasses.fields(kind) if f.default == "???"]
    ((label, config),) = cli._jobs(name, cli.VERBS[name], needed, cli.Flags())
    assert label == ""
    assert config == kind(**dict(text.split("=") for text in needed))


def test_values_of_every_type(seen: Seen) -> None:
    arguments = ["variants=[clean]", "severities=[low,0.5,1]", "operators=graffiti", "mixture={graffiti: 2, lens_blur: 1}", "seed=7"]
    assert cli.main(["build", *arguments, "overwrite=true", "workers=null", "alpha=#ff0000", "quality=80", "image_roots=/a, b"]) == 0
    assert seen == [
        BuildConfig(
            variants=["clean"],
            severities=["low", 0.5, 1],
            operators=["graffiti"],
            mixture={"graffiti": 2, "lens_blur": 1},
            seed=7,
            overwrite=True,
            alpha="#ff0000",
            quality=80,
            image_roots=["/a, b"],
        )
    ]


@pytest.mark.parametrize("value", ["all", "[all]", "null"])
def test_all_operators(seen: Seen, value: str) -> None:
    assert cli.main(["build", f"operators={value}"]) == 0
    assert seen == [BuildConfig()]


def test_groups_and_presets(seen: Seen, tmp_path: Path) -> None:
    (tmp_path / "mine" / "preset").mkdir(parents=True)
    (tmp_path / "mine" / "preset" / "quick.yaml").write_text("# @package _global_\nvariants: [clean]\nquality: 50\n")
    assert cli.main(["build", "preset=published", "writer=tsv"]) == 0
    assert cli.main(["build", "preset=published", "variants=[clean]"]) == 0
    assert cli.main(["build", "--config-dir", "mine", "preset=quick", "quality=60"]) == 0
    assert seen == [
        BuildConfig(variants=["mixed", "per_operator"]),
        BuildConfig(variants=["clean"]),
        BuildConfig(variants=["clean"], quality=60),
    ]


def test_documented_commands_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    for name, verb in cli.VERBS.items():
        monkeypatch.setitem(cli.VERBS, name, dataclasses.replace(verb, run=lambda config, name=name: (ran.append(name), cli.DONE)[1]))
    root = Path(__file__).resolve().parents[2]
    for page in (root / "README.md", *sorted((root / "docs").glob("*.md"))):
        for line in page.read_text("utf-8").splitlines():
            if line.startswith("degrade "):
                assert cli.main(shlex.split(line, comments=True)[1:]) == cli.DONE, f"{page.name}: {line}"
    assert set(cli.VERBS) <= set(ran), "every verb is shown somewhere"


def test_cfg_job_shows_and_does_not_run(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", "--cfg", "job", "seed=3"]) == 0
    assert "seed: 3\n" in capsys.readouterr().out
    assert seen == []


# ------------------------------------------------------------------------------------------------------------------ quoting

PATHS = [
    "plain.tsv",
    "/data/my set (1).tsv",
    "a,b.tsv",
    "a, b.tsv",
    "[brackets].tsv",
    "{braces}.tsv",
    "a=b=c.tsv",
    "it's.tsv",
    'a "quoted" word.tsv',
    "back\\slash.tsv",
    "trailing\\",
    "both' and \".tsv",
    "007",
    "1_000",
    "1e5",
    "true",
    "None",
    "a:b",
    "$HOME",
    "100%",
    "übung/日本.tsv",
    " leading and trailing ",
    "a#b",
    "range(1,3)",
    "*",
    "???.tsv",
    "${seed}/x.tsv",
    "${",
    "a\\${seed}",
    "a\\\\${oc.env:HOME}\\",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_taken_literally(seen: Seen, path: str) -> None:
    assert cli.main(["build", f"source={path}"]) == 0
    assert seen[0].source == path


@pytest.mark.parametrize("path", [p for p in PATHS if "," not in p])
def test_a_path_is_taken_literally_in_a_sweep(seen: Seen, path: str) -> None:
    assert cli.main(["build", "-m", f"source={path}", "seed=0,1"]) == 0
    assert [config.source for config in seen] == [path, path]


def test_no_text_is_an_interpolation(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    """Of OmegaConf's, that is: in quotes, in lists and in sweeps as little as alone; where no text is wanted it is one."""
    assert cli.main(["build", "source='a${seed}'", "image_roots=[${seed},'b ${', c]", "seed=3", "quality=${seed}"]) == 0
    assert (seen[0].source, seen[0].image_roots, seen[0].quality) == ("a${seed}", ["${seed}", "b ${", "c"], 3)
    assert cli.main(["build", "-m", "source='a,${seed}',${tag}/b", "tag=x"]) == 0
    assert [config.source for config in seen[1:]] == ["a,${seed}", "${tag}/b"]
    capsys.readouterr()
    assert cli.main(["build", "--cfg", "job", "source=${seed}"]) == 0
    shown = OmegaConf.create(capsys.readouterr().out)
    assert (shown.source, shown.seed) == ("${seed}", 0)


def test_quotes_of_the_grammar(seen: Seen) -> None:
    assert cli.main(["build", "source='a,b [1].tsv'"]) == 0
    assert cli.main(["build", "-m", 'source="a,b.tsv"', "seed=0,1"]) == 0
    assert cli.main(["build", "-m", "source='a,b.tsv',c d.tsv"]) == 0
    assert [config.source for config in seen] == ["a,b [1].tsv", "a,b.tsv", "a,b.tsv", "a,b.tsv", "c d.tsv"]


def test_null_and_home(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert cli.main(["build", "workers=null", "source=null", "output=~/out"]) == 0
    assert (seen[0].workers, seen[0].source, seen[0].output) == (None, "null", "/home/someone/out")


@pytest.mark.parametrize("index", ["007", "1_000", "123456789012345678", "None", "1.50"])
def test_an_index_stays_text(seen: Seen, index: str) -> None:
    assert cli.main(["replay", "manifest=m.jsonl", f"index={index}"]) == 0
    assert seen[0].index == index


# ----------------------------------------------------------------------------------------------------------------- refusals

REFUSED = {
    "a verb": (["biuld"], "unknown verb 'biuld'; did you mean 'build'?"),
    "a key": (["build", "sead=1"], "unknown key 'sead'; did you mean 'seed'?"),
    "a key of another verb": (["preview", "writer=tsv"], "unknown key 'writer'"),
    "a key with a plus": (["build", "+sead=1"], "did you mean 'seed'?"),
    "an operator": (["build", "operators=[lens-blurr]"], "did you mean 'lens_blur'?"),
    "an operator of a mixture": (["build", "mixture={grafiti: 1}"], "did you mean 'graffiti'?"),
    "a mixture": (["build", "mixture=trainig"], "did you mean 'training'?"),
    "a weight": (["build", "mixture={graffiti: -1}"], "must be a number that is not negative"),
    "a severity": (["build", "severities=[hihg]"], "did you mean 'high'?"),
    "an intensity": (["build", "severities=[1.5]"], "a number in [0, 1], not 1.5"),
    "a variant": (["build", "variants=[mixd]"], "did you mean 'mixed'?"),
    "a writer": (["build", "writer=tvs"], "did you mean 'tsv'?"),
    "a preset": (["build", "preset=publishd"], "did you mean 'published'?"),
    "a codec": (["build", "codec=jpg"], "did you mean 'jpeg'?"),
    "a number": (["build", "seed=x"], "degrade: seed=x: a whole number is wanted\n"),
    "a fraction": (["build", "seed=1.5"], "degrade: seed=1.5: a whole number is wanted\n"),
    "no number": (["build", "quality=null"], "degrade: quality=null: a whole number is wanted\n"),
    "a number or null": (["build", "workers=all"], "degrade: workers=all: a whole number or null is wanted\n"),
    "a null in a list": (["build", "severities=[low,null]"], "degrade: severities[1]=null: a text or number is wanted\n"),
    "a part of a setting": (["build", "seed.x=1"], "seed has no parts"),
    "a weight by itself": (["build", "mixture.graffiti=1"], "write mixture={graffiti: 1}"),
    "a range": (["build", "quality=101"], "quality=101: it must be between 1 and 100"),
    "a truth value": (["build", "overwrite=maybe"], "degrade: overwrite=maybe: true or false is wanted\n"),
    "a setting of a preset": (["build", "--config-dir", "presets", "preset=wrong"], "degrade: seed=x: a whole number is wanted\n"),
    "doubles": (["build", "severities=[low,low]"], "stands there twice"),
    "a key twice": (["build", "seed=0", "seed=1"], "seed is given twice"),
    "no equals sign": (["build", "my.tsv"], "write key=value, for example source=my.tsv"),
    "dashes": (["build", "--seed=1"], "write seed=1 instead of --seed=1"),
    "a benchmark": (["download", "benchmarks=[MMStra]"], "did you mean 'MMStar'?"),
    "a flag": (["build", "--multrun"], "did you mean '--multirun'?"),
    "a flag before the verb": (["-m", "build"], "the verb comes first"),
    "a deletion": (["build", "~seed"], "cannot be deleted"),
    "a sweep without -m": (["build", "seed=0,1"], "A run for each is asked for with -m"),
    "a list without brackets": (["build", "severities=low,mid"], "A list is written severities=[low,mid]"),
    "an interval": (["build", "-m", "seed=interval(0,1)"], "an interval cannot be swept"),
    "broken grammar": (["build", "severities=[low"], "cannot read 'severities=[low'"),
    "something needed": (["replay", "index=3"], "manifest is needed"),
    "a folder of settings": (["build", "--config-dir", "nowhere"], "--config-dir wants a folder"),
    "another cfg": (["build", "--cfg", "hydra"], "write --cfg job"),
    "a profile": (["score", "results=x", "profile=claer"], "did you mean 'clear'?"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_at_once_with_the_nearest_right_name(
    seen: Seen, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    Path("presets/preset").mkdir(parents=True)
    Path("presets/preset/wrong.yaml").write_text("# @package _global_\nseed: x\n")
    assert message in refused(capsys, *arguments)
    assert seen == []


def test_a_plus_says_nothing_more(seen: Seen) -> None:
    assert cli.main(["build", "+seed=3", "++preset=published"]) == 0
    assert seen == [BuildConfig(seed=3, variants=["mixed", "per_operator"])]


def test_a_sweep_with_one_wrong_job_runs_none(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'high'?" in refused(capsys, "build", "-m", "severities=[low],[hihg]")
    assert seen == []


# ------------------------------------------------------------------------------------------------------------------- sweeps


def outputs(seen: Seen) -> list[str]:
    return [config.output for config in seen]


def test_sweep_has_a_folder_per_job_named_by_what_differs(seen: Seen) -> None:
    assert cli.main(["build", "-m", "severities=[low],[mid,0.5]", "seed=0,1", "output=out", "quality=90"]) == 0
    assert outputs(seen) == [
        "out/severities=low,seed=0",
        "out/severities=low,seed=1",
        "out/severities=mid+0.5,seed=0",
        "out/severities=mid+0.5,seed=1",
    ]
    assert [(c.severities, c.seed, c.quality) for c in seen[:3]] == [(["low"], 0, 90), (["low"], 1, 90), (["mid", 0.5], 0, 90)]


def test_sweep_over_items_of_a_list_and_ranges(seen: Seen) -> None:
    assert cli.main(["build", "-m", "operators=graffiti,lens_blur", "seed=range(0,2)"]) == 0
    assert [(c.operators, c.seed) for c in seen] == [(["graffiti"], 0), (["graffiti"], 1), (["lens_blur"], 0), (["lens_blur"], 1)]


def test_sweep_over_paths_of_one_name_keeps_them_apart(seen: Seen) -> None:
    assert cli.main(["build", "-m", "source=x/a.tsv,y/a.tsv", "output=out"]) == 0
    assert outputs(seen) == ["out/source=x_a.tsv", "out/source=y_a.tsv"]
    seen.clear()
    assert cli.main(["build", "-m", "source=x/a.tsv,y/b.tsv", "output=out"]) == 0
    assert outputs(seen) == ["out/source=a", "out/source=b"]


def test_sweep_of_a_file_and_of_the_output_itself(seen: Seen) -> None:
    assert cli.main(["preview", "-m", "seed=0,1", "output=p/sheet.png"]) == 0
    assert cli.main(["preview", "-m", "output=a.png,b.png"]) == 0
    assert outputs(seen) == ["p/seed=0/sheet.png", "p/seed=1/sheet.png", "a.png", "b.png"]


def test_sweep_that_would_overwrite_is_refused(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    assert "would write to" in refused(capsys, "build", "-m", "seed=1,1")
    assert seen == []


def test_sweep_goes_on_after_a_failed_job_and_names_it(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", "-m", "tag=a,broken,c"]) == cli.FAILED
    assert [config.tag for config in seen] == ["a", "broken", "c"]
    assert "2 of 3 runs done\n  failed: tag=broken" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------------- help, errors, files


@pytest.mark.parametrize("name", cli.VERBS)
def test_help_names_every_key_with_default_and_choices(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == 0
    text = capsys.readouterr().out
    for field in dataclasses.fields(cli.VERBS[name].config):
        assert f"\n  {field.name}=" in text
        assert all(choice in text for choice in field.metadata["choices"])
    assert f"\nExample: degrade {name}" in text
    assert max(map(len, text.splitlines())) <= 140


def test_overview(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in cli.VERBS)
    assert cli.main([]) == cli.WRONG


def raising(error: BaseException) -> Callable[[Any], int]:
    def run(config: Any) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(28, "No space left on device", "out/x.tsv"), cli.FAILED, "No space left on device: out/x.tsv"),
        (ValueError("row 7 is bad"), cli.FAILED, "row 7 is bad"),
        (KeyboardInterrupt(), cli.INTERRUPTED, "interrupted"),
    ],
)
def test_errors_are_one_message(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(cli.VERBS, "preview", cli.Verb(PreviewConfig, raising(error), "degrade preview"))
    assert cli.main(["preview"]) == code
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.VERBS, "preview", cli.Verb(PreviewConfig, raising(AssertionError()), "degrade preview"))
    with pytest.raises(AssertionError):
        cli.main(["preview"])
    monkeypatch.setitem(cli.VERBS, "preview", cli.Verb(PreviewConfig, raising(ValueError("x")), "degrade preview"))
    with pytest.raises(ValueError, match="x"):
        cli.main(["preview", "--debug"])


def test_list_shows_every_operator_and_its_draws(capsys: pytest.CaptureFixture[str]) -> None:
    from degrade import OPERATORS

    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, operator in OPERATORS.items():
        (line,) = [line for line in lines if name in line]
        assert all(field.name in line for field in dataclasses.fields(operator.params))
    categories = [line[:16].strip() for line in lines[1:] if line[:16].strip()]
    assert categories == list(dict.fromkeys(operator.category for operator in OPERATORS.values()))


def test_a_process_leaves_no_files_but_its_own(tmp_path: Path) -> None:
    """One real process: exit code, output, and nothing of Hydra's left behind."""
    root = Path(cli.__file__).resolve().parent.parent
    command = [sys.executable, "-m", "degrade.cli", "preview", "operators=[lens_blur]", "severities=[high]", "output=my sheet.png"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "my sheet.png" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["my sheet.png"]
