"""From model answers to scores and drops: the verbs `score` and `mmr` as functions.

from degrade.config import ScoreConfig
from degrade.scoring import score

report = score(ScoreConfig(results="results", build="outputs/mmd-bench", output="outputs/score"))
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from degrade.scoring.answers import MmrProfile, Profile
from degrade.scoring.tables import ScoringError

__all__ = ["ScoringError", "score", "score_mmr"]


class ScoreSettings(Protocol):
    """What :func:`score` is told; :class:`degrade.config.ScoreConfig` says what each means."""

    results: str
    build: str | None
    profile: Any
    judged: bool
    output: str
    seed: int
    resamples: int
    accept_nonstandard: bool


class MmrSettings(Protocol):
    """What :func:`score_mmr` is told; :class:`degrade.config.MmrConfig` says what each means."""

    questions: str
    answers: str
    profile: Any
    build: str | None
    output: str
    seed: int
    resamples: int
    accept_nonstandard: bool


def score(config: ScoreSettings) -> dict[str, Any]:
    """Score result files of VLMEvalKit and, with a build, the drops between clean and degraded answers.

    Writes score.json, CSV files and plots into `output`.

    Returns:
        the content of score.json, see docs/scoring.md; :func:`degrade.scoring.report.mmd_table` makes a text of it.

    Raises:
        ScoringError: with a line for every fault of every file, and for a build that is not standard without `accept_nonstandard`.
        FileNotFoundError: where results or build do not exist.
    """
    from degrade.scoring import mmd, plots, report, results
    from degrade.scoring.builds import read_build
    from degrade.scoring.drops import Bootstrap
    from degrade.suites import BENCHMARKS

    build = read_build(config.build, config.accept_nonstandard) if config.build else None
    names = {name for b in BENCHMARKS.values() for name in (b.name, *b.aliases)}
    found = results.find(Path(config.results), names | set(build.benchmarks if build else ()), build.datasets if build else None)
    chosen = mmd.choose(found, config.judged)
    if not chosen:
        what = "of this build or of its benchmarks' official files" if build else f"of {', '.join(sorted(BENCHMARKS))}"
        notes = "".join(f"\n{note}" for note in found.notes[:10])
        raise ScoringError(f"results: {config.results} holds no result file {{model}}_{{dataset}}{{.xlsx, .tsv, .json}} {what}{notes}")
    profile: Profile = config.profile
    out = mmd.report(chosen, build, profile, config.judged, Bootstrap(config.seed, config.resamples), found.notes)
    report.write_mmd(Path(config.output), out)
    plots.write_plots(Path(config.output), out)
    return out


def score_mmr(config: MmrSettings) -> dict[str, Any]:
    """Score answers to MMR; with a build, under degradation too.

    Writes mmr.json and CSV files into `output`.

    Args:
        config: the settings; `answers` is a file or, with a build, a folder of files, see :func:`degrade.scoring.mmr_drops.find_answers`.

    Returns:
        the content of mmr.json, see docs/scoring.md; :func:`degrade.scoring.report.mmr_table` makes a text of it.

    Raises:
        ScoringError: names every answer that is missing, doubled, too many or of another question; for a build that is not standard without
            `accept_nonstandard`.
        FileNotFoundError: where a file does not exist.
    """
    from degrade.scoring import mmr, mmr_drops, report
    from degrade.scoring.builds import read_build
    from degrade.scoring.drops import Bootstrap

    answers = Path(config.answers)
    profile: MmrProfile = config.profile
    for name, path in (("questions", Path(config.questions)), ("answers", answers)):
        if not path.exists():
            raise FileNotFoundError(f"{name}: there is no file {'or folder ' * (name == 'answers')}{str(path)!r}")
    questions = mmr.load_questions(config.questions)
    if config.build is None:
        if answers.is_dir():
            raise ScoringError(f"answers: {answers} is a folder; give one file, or build=... for answers to degraded images")
        out: dict[str, Any] = mmr.score_answers(questions, mmr.load_answers(answers, questions), profile)
    else:
        if not answers.is_dir():
            raise ScoringError(f"answers: with a build a folder of files is wanted, one for each file of the build; {answers} is a file")
        out = mmr_drops.report(
            questions, answers, read_build(config.build, config.accept_nonstandard), profile, Bootstrap(config.seed, config.resamples)
        )
    report.write_mmr(Path(config.output), out)
    return out
