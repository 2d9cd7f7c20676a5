"""Any image of a build again, bit for bit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

import degrade
from degrade.builder.report import REPORT_FILE
from degrade.builder.settings import device, libraries
from degrade.data import images, manifest, staging
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
        ReplayError: if the manifest has no such image, the source is another, or the bytes come out differently.
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
    """The manifest's line of an image, references followed."""
    named = [line for line in manifest.lines(path) if line["index"] == index]
    if not named:
        raise ReplayError(f"{path} has no row of index {index!r}")
    if named[0]["status"] == "reference":
        named = [line for line in manifest.lines(path) if line["row"] == named[0]["payload"]]
    if named[0]["status"] != "ok":
        raise ReplayError(f"index {index!r} of {path.name} has no image of the build's: it is {named[0]['status']}")
    if not 0 <= part < len(named):
        raise ReplayError(f"part: got {part}; the cell of index {index!r} holds {len(named)} image(s), counted from 0")
    return named[part]


def reopen(path: Path, head: dict[str, Any], source: str | Path | None) -> Source:
    """The source that a manifest was made from."""
    benchmark = head["benchmark"]
    where: dict[str, Any] = {}
    report = path.parent / REPORT_FILE
    if report.exists():
        where = staging.read_json(report)["benchmarks"].get(benchmark, {}).get("source", {})
    if source is not None:
        where |= {"images" if head["source"]["kind"] == "mmr" else "source": str(source)}
    if "source" not in where:
        raise SourceError(f"{report} does not say where the source of {benchmark} is: name it with source=")
    tables = open_sources(**where)
    for table in tables:
        if table.benchmark == benchmark or len(tables) == 1:
            return table
    raise SourceError(f"{where['source']} holds no {benchmark}")
