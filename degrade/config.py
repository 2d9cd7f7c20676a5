"""The settings of every verb of the command line: one dataclass each, with meaning, default and choices beside every field.

Plain Python: a build started from a program takes a :class:`BuildConfig` just as the command line does, and nothing here needs Hydra. The
metadata of a field feeds the command line's help, its checks and its suggestions, so that a setting is described in one place.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from degrade.suites import BENCHMARKS, NAMED_SEVERITIES, OPERATOR_CATEGORIES, canonical

REQUIRED = "???"
"""The value of a setting that has no default and has not been given (OmegaConf's own mark for it)."""

MIXTURES = ("mmd", "training")
PROFILES = ("clear", "upstream")


class ConfigError(ValueError):
    """A setting that cannot be used; the message names it, what came and what is wanted."""


def option(
    default: Any,
    help: str,
    *,
    choices: Sequence[str] = (),
    path: Literal["", "any", "file", "folder"] = "",
    kind: str = "",
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """A dataclass field that carries its own documentation and limits.

    Args:
        default: the default; a list is copied for each instance.
        help: what the setting means, for ``--help``.
        choices: the only values allowed (of each item, for a list).
        path: which the value names: a file, a folder, or either ("any"); the command line takes it literally. "" if none.
        kind: ``"operators"``, ``"severities"`` or ``"benchmarks"``, whose names are checked, or ``""``.
        least, most: the range of a number, both ends included.
    """
    metadata = {"help": help, "choices": tuple(choices), "path": path, "kind": kind, "least": least, "most": most}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass
class BuildConfig:
    """Sources in, MMD-Bench shards out."""

    source: str = option(
        "sample",
        "what to degrade: `sample` (the small set inside the package); a TSV, parquet or .tar file, a folder of these or of images; one of "
        "the six benchmarks by name, whose file is looked for in data_dir; or `mmr`, with questions and images",
        path="any",
    )
    output: str = option(
        "outputs/mmd-bench", "the folder for the shards and manifests; an interrupted build in it is resumed", path="folder"
    )
    variants: list[str] = option(["mixed", "per_operator", "clean"], "which files to write", choices=("mixed", "per_operator", "clean"))
    severities: list[str | float | int] = option(
        ["low", "mid", "high"], "severities of the mixed files: names, or intensities in [0, 1]", kind="severities"
    )
    per_operator_severities: list[str | float | int] = option(
        ["high"], "severities of the per-operator files: names, or intensities in [0, 1]", kind="severities"
    )
    operators: list[str] | None = option(None, "the operators of the per-operator files; `all` for the sixteen", kind="operators")
    mixture: Any = option("mmd", "which operator a row of the mixed files gets: `mmd`, `training`, or weights as {operator: weight, ...}")
    seed: int = option(0, "decides every draw, together with each image's key; a whole number of any size", least=0)
    writer: str = option("tsv", "format of the shards", choices=("tsv", "parquet", "webdataset"))
    codec: str = option("jpeg", "how degraded images are encoded", choices=("jpeg", "png", "webp"))
    quality: int = option(95, "quality of jpeg; png and webp are lossless", least=1, most=100)
    shard_rows: int = option(1000, "rows in a webdataset shard, at most", least=1)
    tag: str = option("", "letters, digits, dots: added to all files' names, so that VLMEvalKit does not use images it unpacked before")
    on_error: str = option(
        "fail",
        "rows that cannot be degraded: `fail` at the end, `skip` them in every variant, or `keep` their original cell (both non-standard)",
        choices=("fail", "skip", "keep"),
    )
    orientation: bool = option(True, "turn images upright as their EXIF data say, as the published files were")
    alpha: str = option("drop", "transparency: `drop` the channel, or a colour to put behind it (`white`, `#808080`)")
    max_pixels: int = option(178_956_970, "an image of more pixels is a row error", least=1)
    data_dir: str = option("data", "where the benchmarks' files are, as `degrade download` leaves them", path="folder")
    image_roots: list[str] = option([], "more folders that an image_path column may point into, beside the source's own", path="folder")
    questions: str | None = option(None, "with source=mmr: MMR's question file", path="file")
    images: str | None = option(None, "with source=mmr: the folder or zip of MMR's images", path="any")
    engine: str = option("local", "where the work runs: threads and one device of this machine", choices=("local",))
    device: str = option("auto", "`auto`, `cpu`, `cuda`, `cuda:1` or any other torch device; moves no byte")
    workers: int | None = option(None, "threads that decode, degrade and encode; null: one a core, 0: none; moves no byte", least=0)
    batch: int | None = option(None, "images degraded at once, at most; null: by memory; moves no byte", least=1)
    overwrite: bool = option(False, "start anew in a folder that holds another build")
    dry_run: bool = option(False, "say what would be written, and stop")


@dataclass
class ImagesConfig:
    """A folder or webdataset shards of training images in, degraded ones out under the same names."""

    source: str = option(REQUIRED, "a folder of images, or webdataset shards", path="any")
    output: str = option(
        "outputs/images", "the folder for the degraded images and their records; an interrupted run is resumed", path="folder"
    )
    mixture: Any = option("training", "which operator an image gets: `training`, `mmd`, or weights as {operator: weight, ...}")
    seed: int = option(0, "decides every draw, together with each image's name; a whole number of any size", least=0)
    codec: str = option(
        "same",
        "how degraded images are encoded; the names stay. `same`: JPEG files as jpeg, WebP files as webp, all others as png",
        choices=("same", "jpeg", "png", "webp"),
    )
    quality: int = option(95, "quality of jpeg; png and webp are lossless", least=1, most=100)
    orientation: bool = option(True, "turn images upright as their EXIF data say")
    alpha: str = option("drop", "transparency: `drop` the channel, or a colour to put behind it (`white`, `#808080`)")
    max_pixels: int = option(178_956_970, "an image of more pixels is an error", least=1)
    device: str = option("auto", "`auto`, `cpu`, `cuda`, `cuda:1` or any other torch device")
    workers: int | None = option(None, "threads that decode, degrade and encode; null: one a core, 0: none", least=0)
    batch: int | None = option(None, "images degraded at once, at most; null: by memory", least=1)
    overwrite: bool = option(False, "start anew in a folder that was made with other settings")


@dataclass
class PreviewConfig:
    """A contact sheet of one image: operators by severities."""

    image: str = option("sample", "`sample`, or an image file", path="any")
    output: str = option("outputs/preview.png", "the file to write, with suffix .png", path="file")
    operators: list[str] | None = option(None, "the operators to show; `all` for the sixteen", kind="operators")
    severities: list[str | float | int] = option(
        ["low", "mid", "high"], "the severities to show: names, or intensities in [0, 1]", kind="severities"
    )
    seed: int = option(0, "decides every draw", least=0)
    width: int = option(
        144, "width of a thumbnail in pixels; images are degraded at their own size, then made smaller", least=48, most=2000
    )


@dataclass
class ReplayConfig:
    """One image of a build again, from its manifest, bit for bit."""

    manifest: str = option(REQUIRED, "a .manifest.jsonl file of a build", path="file")
    index: str = option(REQUIRED, "the index of the row whose image is wanted")
    part: int = option(0, "which image, where the row's cell is a list of several", least=0)
    output: str | None = option(
        None, "the file to write, with the suffix of the build's codec (.jpg, .png, .webp); null: outputs/<file stem>_<index>", path="file"
    )
    source: str | None = option(None, "the source (of MMR: its images), where it is no longer where the build found it", path="any")


@dataclass
class VerifyConfig:
    """A build's folder checked: hashes, counts, order, text cells against the source, a sample of images replayed."""

    build: str = option(REQUIRED, "the build's folder", path="folder")
    sample: int = option(20, "how many images of each file to replay", least=0)
    source: str | None = option(None, "the source (of MMR: its images), where it is no longer where the build found it", path="any")


@dataclass
class ScoreConfig:
    """Model answers in, scores and drops out."""

    results: str = option(REQUIRED, "a result file of VLMEvalKit, or a folder of them", path="any")
    build: str | None = option(None, "the build's folder; without it, plain scores", path="folder")
    profile: str = option("clear", "how an answer's letter is read", choices=PROFILES)
    judged: bool = option(False, "use a `hit` or `score` column where the result file has one")
    output: str = option("outputs/score", "the folder for score.json, the tables and the plots", path="folder")
    json: bool = option(False, "print score.json instead of the table")
    seed: int = option(0, "seed of the bootstrap", least=0)
    resamples: int = option(2000, "bootstrap resamples; fewer than 100 say nothing of a 95 % interval", least=100)
    accept_nonstandard: bool = option(False, "score a build that was made with on_error=skip or keep")


@dataclass
class MmrConfig:
    """MMR's robust accuracy and misleading rate."""

    questions: str = option(REQUIRED, "MMR's question file", path="file")
    answers: str = option(REQUIRED, "a model's answers (JSON lines, JSON or CSV), or a folder of them", path="any")
    profile: str = option("robust", "how an answer's letter is read", choices=("robust", "official"))
    build: str | None = option(None, "the folder of a `degrade build source=mmr`, for the report by operator and severity", path="folder")
    output: str = option("outputs/mmr", "the folder for mmr.json and the table", path="folder")
    json: bool = option(False, "print mmr.json instead of the table")
    seed: int = option(0, "seed of the bootstrap", least=0)
    resamples: int = option(2000, "bootstrap resamples; fewer than 100 say nothing of a 95 % interval", least=100)
    accept_nonstandard: bool = option(False, "score a build that was made with on_error=skip or keep")


@dataclass
class DownloadConfig:
    """The public sources, each checked by its md5."""

    output: str = option("data", "the folder for the files", path="folder")
    benchmarks: list[str] | None = option(None, "which, by any of their names; `all` for the six and R-Bench-Dis", kind="benchmarks")


@dataclass
class ListConfig:
    """The operators with categories, and what they draw."""

    json: bool = option(False, "print JSON instead of a table")


def nearest(word: str, known: Iterable[str]) -> str:
    """The name in `known` that `word` was probably meant to be, or "" where none is near.

    >>> nearest("lens-blurr", ["lens_blur", "lens_flare"])
    'lens_blur'
    """
    folded = {name.lower().replace("-", "_"): name for name in known}
    close = difflib.get_close_matches(word.lower().replace("-", "_"), folded, n=1, cutoff=0.5)
    return folded[close[0]] if close else ""


def unknown(what: str, word: object, known: Sequence[str]) -> ConfigError:
    """The error for a name that does not exist: what came, the nearest right one, and all of them."""
    close = nearest(str(word), known)
    hint = f"; did you mean {close!r}?" if close else "."
    return ConfigError(f"unknown {what} {str(word)!r}{hint} Known: {', '.join(known)}")


def check(config: Any) -> None:
    """Refuse a configuration that cannot be meant: a name that does not exist, a number outside its range, a setting not given.

    Args:
        config: an instance of one of the dataclasses above.

    Raises:
        ConfigError: names the setting, what came and what is wanted.
    """
    for f in dataclasses.fields(config):
        value, meta = getattr(config, f.name), f.metadata
        if isinstance(value, str) and value == REQUIRED:
            raise ConfigError(f"{f.name} is needed: {meta['help']}")
        if f.name == "mixture":
            _check_mixture(value)
        if value is None:
            continue
        items = value if isinstance(value, list) else [value]
        if meta["path"]:
            for item in items:
                _check_path(f.name, item, meta["path"], meta["help"])
        if meta["choices"]:
            for item in items:
                if item not in meta["choices"]:
                    raise unknown(f"value of {f.name}", item, meta["choices"])
        if meta["kind"] == "operators":
            _check_operators(f.name, items)
        elif meta["kind"] == "severities":
            _check_severities(f.name, items)
        elif meta["kind"] == "benchmarks":
            for item in items:
                if canonical(str(item)) not in BENCHMARKS:
                    raise unknown("benchmark", item, list(BENCHMARKS))
        for item in items:
            if (meta["least"] is not None and item < meta["least"]) or (meta["most"] is not None and item > meta["most"]):
                limits = f"at least {meta['least']}" if meta["most"] is None else f"between {meta['least']} and {meta['most']}"
                raise ConfigError(f"{f.name}={item}: it must be {limits}")
        if isinstance(value, list) and len({str(item) for item in value}) < len(value):
            raise ConfigError(f"{f.name}={value}: something stands there twice")


def _check_path(name: str, value: str, wanted: str, help: str) -> None:
    """Refuse a path under which there is something else than can be meant; one under which there is nothing passes."""
    if not value:
        raise ConfigError(f"{name}= is empty: name a {'file or folder' if wanted == 'any' else wanted} ({help})")
    path = Path(value)
    if wanted == "file" and path.is_dir():
        raise ConfigError(f"{name}={value}: this is a folder, and a file is wanted ({help})")
    folders = [] if wanted == "any" else [path, *path.parents] if wanted == "folder" else path.parents
    found = next((folder for folder in folders if folder.exists()), None)
    if found and not found.is_dir():
        what = f"this is a file, and a folder is wanted ({help})" if found == path else f"{found} is a file, and nothing can be in it"
        raise ConfigError(f"{name}={value}: {what}")


def check_suffix(output: str, wanted: Sequence[str], why: str) -> None:
    """Refuse the name of a file to write whose suffix tells of another format than it will have.

    Raises:
        ConfigError: names the suffix that is wanted.

    >>> check_suffix("sheet.PNG", [".png"], "a contact sheet is a PNG file")
    """
    if not output.lower().endswith(tuple(wanted)):
        raise ConfigError(f"output={output}: {why}, so its name must end in {' or '.join(wanted)}")


def _check_operators(name: str, values: Iterable[object]) -> None:
    for value in values:
        if value not in OPERATOR_CATEGORIES:
            raise unknown(f"operator in {name}:", value, list(OPERATOR_CATEGORIES))


def _check_severities(name: str, values: Iterable[object]) -> None:
    for value in values:
        if isinstance(value, str):
            if value not in NAMED_SEVERITIES:
                raise unknown(f"severity in {name}:", value, [*NAMED_SEVERITIES, "a number in [0, 1]"])
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise ConfigError(f"{name}: a severity is low, mid, high or a number in [0, 1], not {value!r}")


def _check_mixture(value: object) -> None:
    if isinstance(value, Mapping):
        _check_operators("mixture", value)
        for operator, weight in value.items():
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not weight >= 0:
                raise ConfigError(f"mixture: the weight of {operator} must be a number that is not negative, not {weight!r}")
        if not sum(value.values()) > 0:
            raise ConfigError("mixture: at least one weight must be positive")
    elif value not in MIXTURES:
        raise unknown("mixture", value, [*MIXTURES, "{operator: weight, ...}"])
