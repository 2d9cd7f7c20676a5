"""The command line: ``degrade VERB [key=value ...]`` in Hydra's override grammar.  The only module that imports Hydra.

Hydra composes the configuration (``conf/``, typed by :mod:`degrade.config`) and nothing else: it opens no log, makes no folder and
changes no working directory. Exit codes: 0 where all that was asked for was done, 1 where something failed, 2 where the request has to
change: a wrong command line or configuration, or a file or folder that cannot be what it is given for.
"""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
import os
import re
import signal
import sys
import textwrap
import threading
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from degrade import config as schema
from degrade.config import REQUIRED, ConfigError
from degrade.data.errors import SourceError
from degrade.data.staging import FolderError
from degrade.progress import Progress, duration

if TYPE_CHECKING:
    from degrade.build import Estimate

RESUMABLE = ("build", "images", "download")
DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130

_UNUSABLE = (ConfigError, SourceError, FolderError)
_UNUSABLE_PATH = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError)
_UNUSABLE_PLACE = (errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP)
FLAGS = ("--help", "--multirun", "--cfg", "--config-dir", "--debug", "--version")

USAGE = """usage: degrade VERB [key=value ...] [-m] [--help] [--cfg job] [--config-dir DIR] [--debug]"""
GRAMMAR = """
  -m, --multirun    one run for each combination: `-m severities=[low],[mid] seed=0,1`; a folder a run, named by what differs
  --cfg job         print the resulting configuration and stop
  --config-dir DIR  look for preset/NAME.yaml and the like in DIR too
  --debug           show the traceback of an error
  --help            this text

Lists are written [a,b], mappings {a: 1, b: 2}, nothing is null. A text value, such as a path, is taken as it stands, with all its spaces,
commas, brackets, equals signs and ${...}; only the shell needs its quotes:
  degrade build source='/data/my set (1), new.tsv'
With -m, where a comma separates runs, such a value takes a second pair:
  degrade build -m source='"/data/my set (1), new.tsv"' seed=0,1"""


@dataclass(frozen=True)
class Verb:
    """What the command line knows of one verb."""

    config: type[Any]
    run: Callable[[Any], int]
    example: str


# ---------------------------------------------------------------------------------------------------------------- the verbs


def _end(number: int, frame: types.FrameType | None) -> None:
    os.write(2, b"degrade: interrupted\n")
    os._exit(INTERRUPTED)


@contextmanager
def _loading() -> Iterator[None]:
    """Ctrl-C ends the process at once while libraries load: the C code of torch and NumPy swallows a KeyboardInterrupt, or breaks on it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # a program that calls us has its own way
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _list(config: schema.ListConfig) -> int:
    with _loading():
        from degrade.operators import OPERATORS

    rows = [
        {"operator": name, "category": operator.category, "draws": [f.name for f in dataclasses.fields(operator.params)]}
        for name, operator in OPERATORS.items()
    ]
    if config.json:
        print(json.dumps(rows, indent=1))
        return DONE
    width = max(len(row["operator"]) for row in rows)
    print(f"{'category':<16}{'operator':<{width + 2}}draws")
    for category, group in itertools.groupby(rows, key=lambda row: row["category"]):
        for n, row in enumerate(group):
            print(f"{category if n == 0 else '':<16}{row['operator']:<{width + 2}}{', '.join(row['draws']) or '-'}")
    return DONE


def _preview(config: schema.PreviewConfig) -> int:
    with _loading():
        from degrade.preview import preview

    def announce(count: int, width: int, height: int) -> None:
        print(f"{_counted(count, 'image')} of {width} x {height} pixels to make, shown smaller on the sheet", flush=True)

    print(f"wrote {preview(config, announce)}")
    return DONE


def _build(config: schema.BuildConfig) -> int:
    with _loading():
        from degrade.build import build, estimate

    if config.dry_run:
        _announce(config, estimate(config))
        return DONE
    with Progress("rows") as progress:
        report = build(config, progress, lambda expected: _announce(config, expected))
    for bad in report.empty:
        print(f"no image: {bad}", file=sys.stderr)
    for benchmark, found in report.without_options.items():
        some = ", ".join(map(repr, found[:5])) + (", ..." if len(found) > 5 else "")
        print(
            f"{benchmark}: {_counted(len(found), 'row')} without options that could be split from the question, which stays whole "
            f"(all are in build.json): index {some}",
            file=sys.stderr,
        )
    for benchmark, count in report.left_out.items():
        print(f"{benchmark}: {_counted(count, 'row')} of the source left out, of another benchmark", file=sys.stderr)
    if report.failed:
        rows = _counted(len(report.failed), "row")
        print(f"{rows} could not be degraded (the first row is row 0):", *report.failed, sep="\n  ", file=sys.stderr)
    if report.files:
        size = sum(file.stat().st_size for file in report.files)
        print(f"{_counted(len(report.files), 'file')}, {_bytes(size)}, in {report.output} ({duration(report.seconds)})")
        print(f"  the files' images, row by row:  {report.output}/*.manifest.jsonl")
        print(f"  what was built, and how:        {report.output / 'build.json'}")
        if report.vlmevalkit:
            print(f"  to evaluate with VLMEvalKit:    run.py --config {report.vlmevalkit}")
    else:
        print(f"no files were written; what failed is also in {report.output / 'build.json'}")
    if report.unpublished:
        print(f"not written because of failed rows: {', '.join(report.unpublished)}; see on_error in degrade build --help", file=sys.stderr)
    if report.stale:
        print("VLMEvalKit holds images unpacked earlier under these names; remove them, or give the build a tag:", file=sys.stderr)
        print(*report.stale, sep="\n", file=sys.stderr)
    return DONE if report.ok else FAILED


def _announce(config: schema.BuildConfig, expected: Estimate) -> None:
    there = f" ({_there(len(expected.done))})" if expected.done else ""
    cost = f"about {_bytes(expected.bytes)}, about {duration(expected.seconds)}"
    print(f"{config.source}: {_counted(expected.rows, 'row')}, {_counted(expected.images, 'image')}")
    print(f"{_counted(len(expected.files), 'file')} to write in {config.output}{there}, {cost}", flush=True)


def _counted(count: int, what: str) -> str:
    """A number of things.

    >>> _counted(1, "row"), _counted(1500, "row")
    ('1 row', '1,500 rows')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _there(count: int) -> str:
    return f"{count:,} more {'is' if count == 1 else 'are'} there already"


def _bytes(count: float) -> str:
    """A size for people.

    >>> _bytes(900), _bytes(12_345_678)
    ('900 B', '12.3 MB')
    """
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


def _replay(config: schema.ReplayConfig) -> int:
    with _loading():
        from degrade.build import replay
        from degrade.data import images, manifest, staging

    codec = manifest.header(Path(config.manifest))["configuration"]["codec"]
    if config.output:
        suffixes = [".jpg", ".jpeg"] if codec == "jpeg" else [f".{images.CODECS[codec]}"]
        schema.check_suffix(config.output, suffixes, f"a replay gives the bytes of the build, which are {codec}")
    again = replay(config.manifest, config.index, config.part, config.source)
    stem = Path(config.manifest).name.removesuffix(manifest.SUFFIX)
    part = f".{config.part}" if "part" in again.line else ""
    file_name = re.sub(r"[^\w.-]+", "_", f"{stem}_{config.index}{part}")
    output = Path(config.output or f"outputs/{file_name}.{again.suffix}")
    staging.write_output(output, again.data)
    record = again.line["record"]
    what = f"{record['operator']} at intensity {record['intensity']}" if record else "the clean image"
    print(f"wrote {output}: {what}, byte for byte as in the build")
    return DONE


def _images(config: schema.ImagesConfig) -> int:
    with _loading():
        from degrade.build import degrade_images

    def announce(left: int | None, there: int) -> None:
        done = f" ({_there(there)})" if there else ""
        print(f"{'the images of the shards' if left is None else _counted(left, 'image')} to write in {config.output}{done}", flush=True)

    with Progress("images") as progress:
        report = degrade_images(config, progress, announce)
    for note in report.notes:
        print(note, file=sys.stderr)
    if report.failed:
        print(f"{_counted(len(report.failed), 'image')} could not be degraded:", *report.failed, sep="\n  ", file=sys.stderr)
    count = _counted(report.made + report.there, "image")
    print(f"{count} and the records (*manifest.jsonl) are in {report.output} ({duration(report.seconds)})")
    return FAILED if report.failed else DONE


def _verify(config: schema.VerifyConfig) -> int:
    with _loading():
        from degrade.build import verify

    with Progress("rows") as progress:
        report = verify(config.build, config.sample, config.source, progress)
    if report.problems:
        print(f"{config.build} is not as it should be:", *report.problems, sep="\n  ", file=sys.stderr)
    looked = [_counted(n, what) for n, what in ((report.shards, "file"), (report.rows, "row"), (report.images, "image"))]
    found = "all as they were built" if report.ok else _counted(len(report.problems), "problem")
    print(f"{', '.join(looked)}, {report.replayed:,} of them made again: {found}")
    return DONE if report.ok else FAILED


def _download(config: schema.DownloadConfig) -> int:
    from degrade.data.download import download, public

    files = public(config.benchmarks)
    if not files:
        raise ConfigError("nothing to fetch: benchmarks is empty; `all` is for all of them")
    print(f"{_counted(len(files), 'file')} to fetch into {config.output}: {', '.join(file.name for file in files)}", flush=True)
    with Progress("bytes") as progress:
        for path in download(files, Path(config.output), progress):
            print(f"{path}, {_bytes(path.stat().st_size)}, checked")
    return DONE


def _score(config: schema.ScoreConfig) -> int:
    with _loading():
        from degrade.scoring import mmd, plots, report, score  # noqa: F401  so that what `score` needs is loaded here

    result = score(config)
    return _report(result, report.mmd_table, config.json, config.output)


def _mmr(config: schema.MmrConfig) -> int:
    with _loading():
        from degrade.scoring import mmr_drops, report, score_mmr  # noqa: F401  so that what `score_mmr` needs is loaded here

    result = score_mmr(config)
    return _report(result, report.mmr_table, config.json, config.output)


def _report(result: dict[str, Any], table: Callable[[dict[str, Any]], str], as_json: bool, output: str) -> int:
    if as_json:
        print(json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print(table(result), f"\nThe report is in {output}", sep="\n")
    return DONE


VERBS: dict[str, Verb] = {
    "build": Verb(schema.BuildConfig, _build, "degrade build source=MMStar.tsv output=outputs/mmstar severities=[low,mid,high]"),
    "images": Verb(schema.ImagesConfig, _images, "degrade images source=train2017 output=train2017-degraded"),
    "preview": Verb(schema.PreviewConfig, _preview, "degrade preview image=photo.jpg severities=[0.1,0.5,1] output=sheet.png"),
    "replay": Verb(schema.ReplayConfig, _replay, "degrade replay manifest=outputs/mmd-bench/MMStar_CLEAN.manifest.jsonl index=0"),
    "verify": Verb(schema.VerifyConfig, _verify, "degrade verify build=outputs/mmd-bench"),
    "score": Verb(schema.ScoreConfig, _score, "degrade score results=outputs/answers build=outputs/mmd-bench"),
    "mmr": Verb(schema.MmrConfig, _mmr, "degrade mmr questions=MMR-benchmark.json answers=answers.jsonl"),
    "download": Verb(schema.DownloadConfig, _download, "degrade download benchmarks=[MMStar,MMVP] output=data"),
    "list": Verb(schema.ListConfig, _list, "degrade list"),
}


# ----------------------------------------------------------------------------------------------------------- the command line


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    try:
        return _main([a for a in arguments if a != "--debug"])
    except KeyboardInterrupt:
        goes_on = "; the same command goes on where this one stopped" if arguments[:1] and arguments[0] in RESUMABLE else ""
        print(f"degrade: interrupted{goes_on}", file=sys.stderr)
        return INTERRUPTED
    except (OSError, ValueError) as error:
        if debug:
            raise
        print(f"degrade: {_describe(error)}", file=sys.stderr)
        return _code(error)


def _code(error: Exception) -> int:
    """2 where the request has to change, since what it names cannot be used; 1 where something went wrong on the way."""
    if isinstance(error, FolderError) and isinstance(error.__cause__, OSError):
        error = error.__cause__  # the system's own error says which
    if isinstance(error, OSError):
        return WRONG if isinstance(error, _UNUSABLE_PATH) or error.errno in _UNUSABLE_PLACE else FAILED
    return WRONG if isinstance(error, _UNUSABLE) else FAILED


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _main(arguments: list[str]) -> int:
    if "--version" in arguments:
        from importlib.metadata import version

        print(version("degrade"))
        return DONE
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_overview())
        return DONE if arguments else WRONG
    name, *rest = arguments
    if name not in VERBS:
        if name.startswith("-") or "=" in name:
            raise ConfigError(f"the verb comes first, but {name!r} came. {USAGE}\nVerbs: {', '.join(VERBS)}")
        raise schema.unknown("verb", name, list(VERBS))
    verb = VERBS[name]
    flags, overrides = _split(rest)
    if flags.help:
        print(_help(name, verb))
        return DONE
    jobs = _jobs(name, verb, overrides, flags)
    if flags.show:
        from omegaconf import OmegaConf

        for label, config in jobs:
            print(f"# {label}\n" if label else "", OmegaConf.to_yaml(_escaped(dataclasses.asdict(config))), sep="", end="")
        return DONE
    return _run(verb, jobs)


def _run(verb: Verb, jobs: list[tuple[str, Any]]) -> int:
    if len(jobs) == 1:
        return verb.run(jobs[0][1])
    codes: set[int] = set()
    failed: list[str] = []
    for n, (label, config) in enumerate(jobs, start=1):
        print(f"[{n}/{len(jobs)}] {label}", flush=True)
        try:
            code = verb.run(config)
        except (OSError, ValueError) as error:
            print(f"degrade: {_describe(error)}", file=sys.stderr)
            code = _code(error)
        codes.add(code)
        if code != DONE:
            failed.append(label)
    print(f"{len(jobs) - len(failed)} of {len(jobs)} runs done" + "".join(f"\n  failed: {label}" for label in failed))
    return codes.pop() if len(codes) == 1 else FAILED


@dataclass
class Flags:
    help: bool = False
    multirun: bool = False
    show: bool = False
    folder: str | None = None


def _split(arguments: Iterable[str]) -> tuple[Flags, list[str]]:
    """Flags, and the overrides that remain."""
    flags, overrides = Flags(), []
    rest = iter([part for a in arguments for part in (a.split("=", 1) if a.startswith(("--cfg=", "--config-dir=")) else [a])])
    for argument in rest:
        if argument in ("-h", "--help"):
            flags.help = True
        elif argument in ("-m", "--multirun"):
            flags.multirun = True
        elif argument in ("-c", "--cfg"):
            if (what := next(rest, "")) != "job":
                raise ConfigError(f"--cfg shows the configuration of the job: write --cfg job, not --cfg {what}".rstrip())
            flags.show = True
        elif argument in ("-cd", "--config-dir"):
            flags.folder = next(rest, None)
            if flags.folder is None or not Path(flags.folder).is_dir():
                raise ConfigError(f"--config-dir wants a folder, not {flags.folder!r}")
        elif argument.startswith("-"):
            if "=" in argument:
                raise ConfigError(f"settings have no dashes: write {argument.lstrip('-')} instead of {argument}")
            raise schema.unknown("flag", argument, FLAGS)
        else:
            overrides.append(argument)
    return flags, overrides


# -------------------------------------------------------------------------------------------------- overrides to configurations


def conf_folder() -> Path:
    """Where ``conf/`` is: inside an installed package, beside it in a checkout."""
    here = Path(__file__).resolve().parent
    return here / "conf" if (here / "conf").is_dir() else here.parent / "conf"


def _groups(folder: str | None) -> dict[str, list[str]]:
    """The config groups of ``build`` and their choices."""
    roots = [conf_folder(), *([Path(folder)] if folder else [])]
    found: dict[str, set[str]] = {}
    for file in (f for root in roots for f in root.glob("*/*.yaml")):
        found.setdefault(file.parent.name, set()).add(file.stem)
    return {group: sorted(names) for group, names in sorted(found.items())}


def _jobs(name: str, verb: Verb, overrides: list[str], flags: Flags) -> list[tuple[str, Any]]:
    """The configurations to run, each with a label that says what differs ("" if there is only one)."""
    fields = {f.name: f for f in dataclasses.fields(verb.config)}
    hints = typing.get_type_hints(verb.config)
    groups = _groups(flags.folder) if name == "build" else {}
    parsed = [_parse(text, fields, hints, groups, flags.multirun) for text in overrides]
    keys = [key for key, _ in parsed]
    if double := next((key for key in keys if keys.count(key) > 1), None):
        raise ConfigError(f"{double} is given twice")
    swept = [key for key, values in parsed if len(values) > 1]
    configs = []
    for combination in itertools.product(*(values for _, values in parsed)):
        chosen = dict(zip(keys, combination, strict=True))
        config = _compose(name, verb, list(chosen.values()), flags.folder)
        schema.check(config)
        configs.append((", ".join(chosen[key].lstrip("+") for key in swept), config))
    if len(configs) > 1 and "output" in fields:
        _separate([key for key in swept if key != "output"], configs)
    return configs


def _parse(
    text: str, fields: dict[str, dataclasses.Field[Any]], hints: dict[str, Any], groups: dict[str, list[str]], multirun: bool
) -> tuple[str, list[str]]:
    """The key of one override, and the overrides that it stands for: one, or several in a sweep."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    stem, equals, value = text.partition("=")
    key = stem.lstrip("+")
    if text.startswith("~"):
        raise ConfigError(f"{text}: settings cannot be deleted, only set")
    if not equals:
        example = next((f.name for f in fields.values() if f.metadata["path"]), next(iter(fields)))
        raise ConfigError(f"{text!r} is no setting: write key=value, for example {example}={text}")
    known = key.split(".", 1)[0]
    if known not in fields and known not in groups:
        raise schema.unknown("key", key, [*fields, *(g for g in groups if g not in fields)])
    if known != key:
        parts = f": write {known}={{{key.partition('.')[2]}: {value}}}" if known == "mixture" else ""
        raise ConfigError(f"{text}: {known} has no parts{parts}")
    text = f"{key}={value}"
    literal = known in fields and known not in groups and (str in _kinds(hints[known]) or bool(fields[known].metadata["path"]))
    if literal and not (list in _kinds(hints[known]) and value.startswith("[")):
        text = f"{key}={_literal(key, value, fields[known], hints[known], multirun)}"
    try:
        override = OverridesParser.create().parse_override(text)
    except HydraException as error:
        raise ConfigError(f"cannot read {text!r}: {str(error).splitlines()[0]}. Quote what is special: key='\"...\"'") from error
    if override.is_discrete_sweep():
        values = [_element(v, literal) for v in override.sweep_iterator()]
    else:
        values = [_element(override._value, literal) if literal else text.partition("=")[2]]
    if override.is_sweep_override() and not override.is_discrete_sweep():
        raise ConfigError(f"{text}: an interval cannot be swept; write the values, or range(start,stop,step)")
    if override.is_sweep_override() and not multirun:
        listing = f"A list is written {key}=[{value}]; a" if known in fields and list in _kinds(hints[known]) else "A"
        raise ConfigError(f"{text}: several values. {listing} run for each is asked for with -m")
    if known in groups:
        for choice in values:
            if choice.strip("'\"") not in [*groups[known], "null"]:
                raise schema.unknown(f"value of {known}", choice.strip("'\""), groups[known])
    elif list in _kinds(hints[known]):
        values = [_listed(v, type(None) in _kinds(hints[known])) for v in values]
    return key, [f"{key}={v}" for v in values]


def _element(value: Any, literal: bool) -> str:
    """A parsed value, written so that the grammar reads it again as the same; texts in it as they stand, if `literal`."""
    from hydra.core.override_parser.types import Override, Quote, QuotedString

    if literal and isinstance(value, list):
        return f"[{','.join(_element(v, literal) for v in value)}]"
    if literal and (isinstance(value, QuotedString) or (isinstance(value, str) and "${" in value)):
        value = QuotedString(_escaped(value.text if isinstance(value, QuotedString) else value), Quote.single)
    return Override._get_value_element_as_str(value)


def _escaped(value: Any) -> Any:
    """A value in which OmegaConf finds no interpolation, but ``${`` as it stands."""
    if isinstance(value, dict):
        return {key: _escaped(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_escaped(v) for v in value]
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", value) if isinstance(value, str) else value


def _kinds(hint: Any) -> set[Any]:
    """The types that a field takes, without their parameters.

    >>> sorted(t.__name__ for t in _kinds(list[str] | None))
    ['NoneType', 'list']
    """
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union else (hint,)
    return {typing.get_origin(option) or option for option in options}


def _literal(key: str, value: str, field: dataclasses.Field[Any], hint: Any, multirun: bool) -> str:
    """A text value in Hydra's quotes, unless it has quotes already, is null, or is a sweep."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import Quote, QuotedString
    from hydra.errors import HydraException

    if re.fullmatch(r"""(['"]).*\1""", value, re.DOTALL) or (value == "null" and type(None) in _kinds(hint)):
        return value
    if multirun:
        try:
            if OverridesParser.create().parse_override(f"{key}={value}").is_sweep_override():
                return value
        except HydraException:
            pass  # not of the grammar, so no sweep: literal
    if field.metadata["path"] and value.startswith("~/"):
        value = str(Path(value).expanduser())
    return QuotedString(value, Quote.single).with_quotes()


def _listed(value: str, optional: bool) -> str:
    """A value for a list: one item alone becomes a list of one, and `all` the null that means all."""
    if optional and value.strip("[]'\" ") in ("all", "null"):
        return "null"
    return value if value.startswith("[") else f"[{value}]"


def _compose(name: str, verb: Verb, overrides: list[str], folder: str | None) -> Any:
    from hydra import compose, initialize_config_dir
    from hydra.core.config_store import ConfigStore
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    ConfigStore.instance().store(name=f"{name}_schema", node=verb.config)
    if folder:
        overrides = [*overrides, f"hydra.searchpath=['file://{Path(folder).resolve()}']"]
    try:
        with initialize_config_dir(str(conf_folder()), version_base="1.3"):
            composed = compose(name, overrides)
        if missing := sorted(OmegaConf.missing_keys(composed)):
            meanings = {f.name: f.metadata["help"] for f in dataclasses.fields(verb.config)}
            raise ConfigError("; ".join(f"{key} is needed: {meanings[key]}" for key in missing) + f". For example: {verb.example}")
        return OmegaConf.to_object(composed)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_reason(error, typing.get_type_hints(verb.config))) from error


def _reason(error: BaseException, hints: dict[str, Any]) -> str:
    """A setting of another type in our words; else what Hydra and OmegaConf have to say, first lines only, the innermost cause last."""
    from omegaconf.errors import ValidationError

    lines: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ValidationError) and (hint := hints.get(re.split(r"[.[]", cause.full_key or "")[0])):
            wanted = "a text or number" if "[" in str(cause.full_key) else _wanted(hint)  # of a list's item, or of the whole
            return f"{cause.full_key}={_shown(cause.value)}: {wanted} is wanted"
        line = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
        lines += [line] if line not in lines else []
        cause = cause.__cause__ or cause.__context__
    return ": ".join(lines)


_WANTED = {int: "a whole number", bool: "true or false", str: "a text", list: "a list such as [a,b]", type(None): "null"}


def _wanted(hint: Any) -> str:
    """The values that a field takes, in words.

    >>> _wanted(int | None)
    'a whole number or null'
    """
    return " or ".join(words for kind, words in _WANTED.items() if kind in _kinds(hint))


def _separate(keys: list[str], configs: list[tuple[str, Any]]) -> None:
    """Give each run of a sweep its own folder inside `output`, named by what differs, so that none overwrites another."""
    for short in (True, False):
        places = [_place(config, keys, short) for _, config in configs]
        if len(set(places)) == len(places):
            break
    else:
        same = next(place for place in places if places.count(place) > 1)
        raise ConfigError(f"two runs of the sweep would write to {same}: their settings are the same")
    for (_, config), place in zip(configs, places, strict=True):
        config.output = place


def _place(config: Any, keys: list[str], short: bool) -> str:
    if not keys:
        return str(config.output)
    name = ",".join(f"{key}={_word(getattr(config, key), short)}" for key in keys)
    output = Path(config.output)
    return str(output.parent / name / output.name if output.suffix else output / name)


def _word(value: Any, short: bool) -> str:
    """A value as a part of a folder's name."""
    if isinstance(value, list):
        return "+".join(_word(v, short) for v in value) or "none"
    if isinstance(value, dict):
        return "+".join(f"{k}-{v}" for k, v in value.items())
    text = "all" if value is None else str(value)
    if short and "/" in text:
        text = Path(text).stem
    return re.sub(r"[^\w.+-]+", "_", text).strip("_") or "none"


# ---------------------------------------------------------------------------------------------------------------------- help


def _overview() -> str:
    width = max(map(len, VERBS))
    lines = [USAGE, "", "Verbs (`degrade VERB --help` lists the keys of each):"]
    lines += [f"  {name:<{width}}  {_summary(verb)}" for name, verb in VERBS.items()]
    return "\n".join(lines)


def _summary(verb: Verb) -> str:
    return (verb.config.__doc__ or "").split("\n", 1)[0]


def _help(name: str, verb: Verb) -> str:
    lines = [f"degrade {name}: {_summary(verb)}", "", USAGE.replace("VERB", name), "", "Keys, with their defaults:"]
    lines += _keys(verb)
    if name == "build":
        choices = _groups(None).get("preset", [])
        lines += ["  preset=null", f"      several settings at once, from conf/preset: {', '.join(choices)}"]
    return "\n".join([*lines, GRAMMAR, "", f"Example: {verb.example}"])


def _keys(verb: Verb) -> Iterator[str]:
    for f in dataclasses.fields(verb.config):
        default = f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
        yield f"  {f.name}={_shown(default)}"
        yield from textwrap.wrap(f.metadata["help"], 110, initial_indent=" " * 6, subsequent_indent=" " * 6)
        choices = [*f.metadata["choices"]]
        if choices:
            yield f"      choices: {', '.join(choices)}"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_shown, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else "(needed)" if value == REQUIRED else "''" if value == "" else str(value)


if __name__ == "__main__":
    sys.exit(main())
