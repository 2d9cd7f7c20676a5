"""What of a configuration decides bytes, and the files that it asks for."""

from __future__ import annotations

import functools
import importlib.metadata
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

import degrade
from degrade import mixture
from degrade.config import BuildConfig, ConfigError, check
from degrade.data import images
from degrade.data.sources import MMR
from degrade.suites import Variant


def variants(config: BuildConfig) -> list[Variant]:
    """The files of one benchmark."""
    found: list[Variant] = []
    if "mixed" in config.variants:
        found += [Variant("mixed", severity) for severity in config.severities]
    if "per_operator" in config.variants:
        operators = list(degrade.OPERATORS) if config.operators is None else config.operators
        found += [Variant("operator", severity, name) for name in operators for severity in config.per_operator_severities]
    if "clean" in config.variants:
        found.append(Variant("clean"))
    return found


def weights(name_or_weights: Any) -> dict[str, float]:
    """A mixture's weights, in the operators' order: the order in which they were written must not decide anything."""
    chosen = mixture.MIXTURES[name_or_weights] if isinstance(name_or_weights, str) else name_or_weights
    return {name: float(chosen[name]) for name in degrade.OPERATORS if chosen.get(name)}


def settings(config: BuildConfig) -> dict[str, Any]:
    """What decides the bytes of a shard, apart from its source and variant."""
    found: dict[str, Any] = {"seed": config.seed, "mixture": weights(config.mixture), "codec": config.codec}
    if config.codec == "jpeg":
        found["quality"] = config.quality
    found |= {"orientation": config.orientation, "alpha": config.alpha, "max_pixels": config.max_pixels, "on_error": config.on_error}
    found |= {"writer": config.writer, "tag": config.tag}
    if config.writer == "webdataset":
        found["shard_rows"] = config.shard_rows
    return found


_ONLY_WITH = {"quality": ("codec", ("jpeg", "same")), "shard_rows": ("writer", ("webdataset",))}
"""Settings that decide something with some values of another only."""


def differences(held: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Which settings differ, one text for each; of mixtures, the operators whose weights do.

    >>> differences({"codec": "jpeg", "quality": 95, "mixture": {"graffiti": 1.0}}, {"codec": "png", "mixture": {"lens_blur": 1.0}})
    ['codec (there: jpeg, now: png)', 'mixture (lens_blur there: 0, now: 1; graffiti there: 1, now: 0)']
    >>> differences({"tag": ""}, {"tag": "v2"})
    ["tag (there: '', now: v2)"]
    """
    found = []
    for name in sorted({*held, *asked}):
        old, new = held.get(name), asked.get(name)
        if name in _ONLY_WITH:
            other, values = _ONLY_WITH[name]
            if held.get(other) != asked.get(other) or asked.get(other) not in values:
                continue
        if old == new:
            continue
        if name == "mixture" and isinstance(old, Mapping) and isinstance(new, Mapping):
            operators = [o for o in degrade.OPERATORS if old.get(o, 0) != new.get(o, 0)]
            found.append(f"mixture ({'; '.join(f'{o} there: {old.get(o, 0):g}, now: {new.get(o, 0):g}' for o in operators)})")
        else:
            there, now = ("''" if value == "" else value for value in (old, new))
            found.append(f"{name} (there: {there}, now: {now})")
    return found


def libraries() -> dict[str, str]:
    """Versions of all that takes part."""
    return {"degrade": degrade.__version__, **{name: _installed(name) for name in ("torch", "numpy")}, **images.codec_versions()}


_installed = functools.cache(importlib.metadata.version)  # which reads files


def check_pixels(alpha: str, max_pixels: int) -> None:
    """Refuse what the decoder cannot do."""
    if alpha != "drop":
        try:
            images.colour(alpha)
        except ValueError as error:
            raise ConfigError(str(error)) from error
    if max_pixels > images.MAX_PIXELS:
        raise ConfigError(f"max_pixels: got {max_pixels}, want at most {images.MAX_PIXELS}, the decoder's own limit")


def check_config(config: BuildConfig) -> None:
    check(config)
    check_pixels(config.alpha, config.max_pixels)
    device(config.device)
    if config.tag and not re.fullmatch(r"[A-Za-z0-9.]*[A-Za-z0-9][A-Za-z0-9.]*", config.tag):
        raise ConfigError(f"tag: got {config.tag!r}, want letters, digits and dots only, and not dots alone")
    if given := [name for name in ("questions", "images") if getattr(config, name) is not None and config.source != MMR]:
        raise ConfigError(
            f"{' and '.join(given)}: only source=mmr has them, and source is {config.source!r}: leave them out, or give source=mmr"
        )
    for root in config.image_roots:
        if not Path(root).expanduser().is_dir():
            raise ConfigError(f"image_roots: there is no folder {root}")
    if Path(config.source).is_dir() and Path(config.output).resolve() == Path(config.source).resolve():
        raise ConfigError(f"output: {config.output} is the source's own folder, where the next build would take its files for sources")
    try:
        stems = [variant.stem("", config.tag) for variant in variants(config)]
    except ValueError as error:  # an intensity that no file name can hold
        raise ConfigError(str(error)) from error
    for kind, severities in (("mixed", "severities"), ("per_operator", "per_operator_severities")):
        if kind in config.variants and not getattr(config, severities):
            raise ConfigError(f"{severities}: got an empty list, and variants has {kind}: name a severity, or leave {kind} out of variants")
    if not stems:
        raise ConfigError("nothing to write: variants or operators are empty")
    if twice := sorted({stem for stem in stems if stems.count(stem) > 1}):
        raise ConfigError(f"two files would have the same name ...{twice[0]}: name each severity once")


def device(name: str) -> torch.device:
    """The torch device of a name; ``auto`` is CUDA where there is one.

    Raises:
        ConfigError: if it is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(name)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device: got {name!r}, which torch cannot use here: {str(error).splitlines()[0]}") from error
    return found


def staged_name(stem: str) -> str:
    """The file that grows in the staging folder: TSV, whatever it becomes."""
    return stem + ".tsv"


def shard_name(stem: str, writer: str) -> str:
    """The file that a build leaves, the first where there may be several."""
    return f"{stem}-000000.tar" if writer == "webdataset" else f"{stem}.{writer}"
