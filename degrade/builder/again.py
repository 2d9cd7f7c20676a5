"""Any image of a build again, bit for bit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

import degrade
from degrade.builder.report import REPORT_FILE, read_report
from degrade.builder.settings import device, libraries
from degrade.config import ConfigError
from degrade.data import images, manifest
from degrade.data.errors import SourceError
from degrade.data.rows import Source
from degrade.data.sources import open_sources


class ReplayError(ValueError):
    """An image that cannot be made again; the message says why."""


@dataclass(frozen=True)
class Replayed:
    """An image made again.

    Attributes:
        image: uint8 RGB, (3, H, W), before encoding.
        data: the encoded image, the bytes of the shard.
        suffix: of a file that holds `data`.
        line: the manifest's line.
    """

    image: Tensor
    data: bytes
    suffix: str
    line: dict[str, Any]


def replay(manifest_path: str | Path, index: str, part: int = 0, source: str | Path | None = None, device_name: str = "auto") -> Replayed:
    """Make one image of a build again, bit for bit, from its manifest and the source.

    Args:
        manifest_path: a ``.manifest.jsonl`` file.
        index: the row's index; a row that shares another's image gives that image.
        part: which image, where the cell is a list of several.
        source: where the source is now, of MMR its images; by default where ``build.json`` beside the manifest says it was.
        device_name: where to degrade.

    Raises:
        ConfigError: if the manifest has no such image.
        ReplayError: if the source is another, or the bytes come out differently.
        SourceError: if manifest or source cannot be read.
    """
    path = Path(manifest_path)
    head = manifest.header(path)
    line = line_of(path, index, part)
    table = reopen(path, head, source)
    number = line["row"]
    table.scan()
    row = next(table.rows(number), None)
    if row is None or row.index != line["index"]:
        raise ReplayError(f"{table.path} is not the source of {path.name}: its row {number} is not index {line['index']!r}")
    with images.quiet():
        return remake(head, line, table.images(row).parts[line.get("part", 0)], device_name)


def remake(head: dict[str, Any], line: dict[str, Any], data: bytes, device_name: str = "auto") -> Replayed:
    """An image again from its source bytes, its manifest's header and its line.

    Raises:
        ReplayError: if the source bytes or the result are not those of the manifest.
    """
    what = f"index {line['index']!r} of {head['stem']}"
    if hashlib.sha256(data).hexdigest() != line["source_sha256"]:
        raise ReplayError(f"{what}: the source's image is not the one that the build read")
    made = head["configuration"]
    image = images.decode(data, orientation=made["orientation"], alpha=made["alpha"], max_pixels=made["max_pixels"])
    if line["record"] is not None:
        try:
            image = degrade.replay(image.to(device(device_name))[None], [line["record"]])[0].cpu()
        except (ValueError, TypeError) as error:
            raise ReplayError(f"{what}: {error}") from error
    encoded = images.encode(image, made["codec"], made.get("quality", 95))
    if hashlib.sha256(encoded).hexdigest() != line["sha256"]:
        now = libraries()
        other = [f"{name} {version} there, {now.get(name)} here" for name, version in head["libraries"].items() if now.get(name) != version]
        raise ReplayError(f"{what} comes out with other bytes. Versions that differ: {'; '.join(other) or 'none'}")
    return Replayed(image, encoded, images.CODECS[made["codec"]], line)


def line_of(path: Path, index: str, part: int) -> dict[str, Any]:
    """The manifest's line of an image, references followed.

    Raises:
        ConfigError: if there is none.
    """
    lines = list(manifest.lines(path))
    named = [line for line in lines if line["index"] == index]
    if not named:
        some = ", ".join(dict.fromkeys(line["index"] for line in lines[:20]))
        raise ConfigError(f"index={index}: {path} has no row of this index. Its first ones are {some or 'none'}")
    if named[0]["status"] == "reference":
        named = [line for line in lines if line["row"] == named[0]["payload"]]
    if named[0]["status"] != "ok":
        raise ConfigError(f"index={index}: the build made no image for this row of {path}, it is {named[0]['status']}; name another")
    if not 0 <= part < len(named):
        only = "only one image, part=0" if len(named) == 1 else f"{len(named)} images, part=0 to part={len(named) - 1}"
        raise ConfigError(f"part={part}: the cell of index {index} in {path} holds {only}")
    return named[part]


def reopen(path: Path, head: dict[str, Any], source: str | Path | None) -> Source:
    """The source that a manifest was made from."""
    benchmark = head["benchmark"]
    where: dict[str, Any] = {}
    report = path.parent / REPORT_FILE
    if report.exists():
        where = read_report(path.parent)["benchmarks"].get(benchmark, {}).get("source", {})
    if source is not None:
        where |= {"images" if head["source"]["kind"] == "mmr" else "source": str(source)}
    if "source" not in where:
        raise SourceError(f"{report} does not say where the source of {benchmark} is: name it with source=")
    tables = open_sources(**where)
    for table in tables:
        if table.benchmark == benchmark or len(tables) == 1:
            return table
    raise SourceError(f"{where['source']} holds no {benchmark}")
