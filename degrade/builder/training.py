"""Training images: a folder or webdataset shards in, the same names out, degraded."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from degrade import transforms
from degrade.builder.pixels import window_of, windows
from degrade.builder.settings import check_pixels, device, libraries, weights
from degrade.config import ConfigError, ImagesConfig, check
from degrade.data import images, manifest, staging
from degrade.data.errors import RowError, SourceError
from degrade.data.sources.folder import image_files
from degrade.data.sources.webdataset import is_image, key_of
from degrade.data.staging import FolderError
from degrade.engines import local

FORMAT = "degrade-images-1"
RECORDS = "manifest.jsonl"
"""The records of a folder's images; those of the shard ``a.tar`` are in ``a.manifest.jsonl``."""

_OWN_CODEC = {".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp"}


@dataclass
class ImagesReport:
    """What was done.

    Attributes:
        output: the folder.
        made: how many images this run has written; there: how many an earlier run had.
        failed: images that could not be used, one text each.
    """

    output: Path
    made: int = 0
    there: int = 0
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Member:
    """A file of the source, by the name that it keeps."""

    name: str
    key: str
    read: Callable[[], bytes]
    is_image: bool = True


Sample = list[Member]
"""What stands or falls together: one file of a folder, or the members of one key of a shard."""


@dataclass(frozen=True)
class Made:
    """The files that a sample becomes, by name, none where one of its images is bad; and its lines in the records."""

    files: list[tuple[str, bytes]]
    lines: list[dict[str, Any]]


def degrade_images(
    config: ImagesConfig,
    progress: Callable[[int, int | None], None] | None = None,
    announce: Callable[[int | None, int], None] | None = None,
) -> ImagesReport:
    """Degrade every image of a folder or of webdataset shards, each by an operator and at a severity of its own.

    The draws are those of ``degrade.RandomDegradation(mixture, p=1, seed=seed)`` with the image's name (behind a shard's name and a slash)
    as its key. What an earlier run has finished is left alone; an image or a shard whose file is gone since then is made again.

    Args:
        config: the settings.
        progress: told the images done and, where that is known, how many there are.
        announce: told, before anything is written, how many images are left (None: not known) and how many are done.

    Raises:
        ConfigError: a setting that cannot be used.
        SourceError: a source that cannot be used.
        FolderError: an output folder that another run holds, that holds images made with other settings, or that is full.
    """
    check(config)
    check_pixels(config.alpha, config.max_pixels)
    begun = time.monotonic()
    source, output = Path(config.source).expanduser(), Path(config.output)
    units = _units(source, output)
    report = ImagesReport(output)
    try:
        with staging.locked(output), images.quiet():
            if config.overwrite:
                _clear(output)
            _refuse_other_settings(output, config)
            todo = [unit for unit in units if not unit.finish_earlier(report)]
            if announce:
                counts = [unit.left() for unit in todo]
                announce(None if None in counts else sum(filter(None, counts)), report.there)
            for unit in todo:
                if not config.overwrite:
                    unit.refuse_foreign()
                _run(config, unit, report, progress)
            for unit in units:
                failed = (line for line in _lines(unit.records) if line["status"] == "failed")
                report.failed += [f"{unit.source}, {line['name']}: {line['reason']}" for line in failed]
            staging.remove(output / staging.FOLDER)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FolderError(f"no space left in {output}. What is done is kept: make room, and the same command goes on") from error
        raise
    report.seconds = time.monotonic() - begun
    return report


class _Unit(Protocol):
    """What has its own records: a folder, or a shard."""

    source: Path
    records: Path
    staged: Path
    growing: list[str]  # the files that grow in the staging folder

    def finish_earlier(self, report: ImagesReport) -> bool:
        """Count what earlier runs have finished; whether that is all."""
        ...

    def refuse_foreign(self) -> None:
        """Raise `FolderError` where something that is not ours would be overwritten."""
        ...

    def left(self) -> int | None:
        """How many images are left; None where only reading them all would tell."""
        ...

    def begin(self, growing: staging.Growing) -> None:
        """Take over into new records what earlier ones say."""
        ...

    def samples(self, number: int) -> Iterator[Sample]:
        """The samples that are left, `number` of which are done."""
        ...

    def put(self, growing: staging.Growing, files: Sequence[tuple[str, bytes]]) -> None:
        """Add a sample."""
        ...

    def end(self, growing: staging.Growing) -> None:
        """Add what stands behind the last sample."""
        ...

    def settle(self) -> None:
        """Make what has been put last, before the journal says that it is there."""
        ...

    def publish(self) -> None:
        """Give the output its final name; may be interrupted and repeated."""
        ...


class _Folder:
    """A folder of images."""

    def __init__(self, source: Path, output: Path) -> None:
        self.source, self.output = source, output
        self.growing = [RECORDS]
        self.records = output / RECORDS
        self.staged = output / staging.FOLDER / "images"
        self.names = sorted(file.relative_to(source).as_posix() for file in image_files(source))
        self._left = self.names
        self._files = output / staging.FOLDER / "files"
        self._held: list[str] = []

    def finish_earlier(self, report: ImagesReport) -> bool:
        if not (self.staged / RECORDS).exists():
            staging.remove(self.staged)  # its records are published: its journal would speak of what is no longer there
        synced = staging.journal(self.staged).lengths.get(RECORDS, 0)
        done = {line["name"] for line in chain(_lines(self.records), _lines(self.staged / RECORDS, synced)) if self._made(line)}
        report.there += len(done.intersection(self.names))
        self._left = [name for name in self.names if name not in done]
        return not self._left and not self.staged.exists()

    def _made(self, line: dict[str, Any]) -> bool:
        return bool(line["status"] == "ok" and (self.output / line["name"]).is_file())

    def left(self) -> int:
        return len(self._left)

    def refuse_foreign(self) -> None:
        if self.staged.exists():
            return
        for name in self._left:
            if (self.output / name).exists():
                raise FolderError(f"{self.output / name} is there without a record, so it is not ours: move it, or give overwrite=true")

    def begin(self, growing: staging.Growing) -> None:
        left = set(self._left)
        for line in _lines(self.records):
            if line["status"] == "ok" and line["name"] not in left:
                growing.append(RECORDS, manifest.dump(line))

    def samples(self, number: int) -> Iterator[Sample]:
        staged = _lines(self.staged / RECORDS)  # as the journal has them
        done = {line["name"] for line in staged if line["status"] == "failed" or self._made(line)}
        for name in self.names:
            if name not in done:
                yield [Member(name, name, (self.source / name).read_bytes)]

    def put(self, growing: staging.Growing, files: Sequence[tuple[str, bytes]]) -> None:
        for name, data in files:
            path = self._files / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            self._held.append(name)

    def end(self, growing: staging.Growing) -> None:
        """Nothing."""

    def settle(self) -> None:
        for name in self._held:
            with (self._files / name).open("rb") as file:
                os.fsync(file.fileno())
        for name in self._held:
            target = self.output / name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self._files / name, target)
        for folder in {(self.output / name).parent for name in self._held}:
            staging.sync_folder(folder)
        self._held.clear()

    def publish(self) -> None:
        staged = self.staged / RECORDS
        names = [line["name"] for line in _lines(staged)]
        if names == sorted(set(names)):
            _move(staged, self.records)
        else:  # images made again or anew stand behind the earlier ones, and the last line of a name counts
            with staged.open("rb") as file:
                head, *lines = file
            latest = dict(zip(names, lines, strict=True))
            staging.write(self.staged / "sorted", head + b"".join(latest[name] for name in sorted(latest)))
            _move(self.staged / "sorted", self.records)
            staged.unlink()
        staging.sync_folder(self.output)


class _Shard:
    """A webdataset shard: its image members are degraded, all others are copied, in their order."""

    def __init__(self, source: Path, output: Path) -> None:
        self.source, self.output = source, output
        self.records = output / (source.stem + manifest.SUFFIX)
        self.staged = output / staging.FOLDER / source.stem
        self.growing = [source.name, self.records.name]

    def finish_earlier(self, report: ImagesReport) -> bool:
        shard = self.source.name
        if not (self.output / shard).is_file():
            if not (self.staged / shard).exists():
                staging.remove(self.staged)  # its journal would speak of a shard that is gone
            return False
        if not self.records.exists():
            return False
        for line in _lines(self.records):
            report.there += line["status"] == "ok"
        return True

    def left(self) -> None:
        return None

    def refuse_foreign(self) -> None:
        target = self.output / self.source.name
        if target.exists() and not (self.staged / self.records.name).exists():
            raise FolderError(f"{target} is there without records, so it is not ours: move it, or give overwrite=true")

    def begin(self, growing: staging.Growing) -> None:
        self.records.unlink(missing_ok=True)  # a shard is done as a whole: without it, its records say nothing

    def samples(self, number: int) -> Iterator[Sample]:
        try:
            with tarfile.open(self.source) as archive:
                files = (member for member in archive if member.isfile())
                for at, (_, members) in enumerate(groupby(files, key=lambda member: key_of(member.name))):
                    if at >= number:
                        yield [self._member(archive, member) for member in members]
        except (tarfile.TarError, EOFError) as error:
            raise SourceError(f"{self.source} cannot be read as a tar file: {error}") from error

    def _member(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> Member:
        file = archive.extractfile(member)
        data = file.read() if file else b""
        return Member(member.name, f"{self.source.stem}/{member.name}", lambda: data, is_image(member.name))

    def put(self, growing: staging.Growing, files: Sequence[tuple[str, bytes]]) -> None:
        for name, data in files:
            info = tarfile.TarInfo(name)  # its defaults name neither time nor owner
            info.size = len(data)
            growing.append(self.source.name, info.tobuf(tarfile.PAX_FORMAT) + data + bytes(-len(data) % tarfile.BLOCKSIZE))

    def end(self, growing: staging.Growing) -> None:
        growing.append(self.source.name, bytes(2 * tarfile.BLOCKSIZE))

    def settle(self) -> None:
        """The shard grows in the journal's own files."""

    def publish(self) -> None:
        _move(self.staged / self.source.name, self.output / self.source.name)
        _move(self.staged / self.records.name, self.records)
        staging.sync_folder(self.output)


def _units(source: Path, output: Path) -> list[_Folder] | list[_Shard]:
    if not source.exists():
        raise SourceError(f"source: there is no {source}; a folder of images, or webdataset shards, are wanted")
    inside = source if source.is_dir() else source.parent
    if output.resolve() == inside.resolve() or (source.is_dir() and output.resolve().is_relative_to(source.resolve())):
        raise ConfigError(f"output: {output} lies in the source, {source}; choose a folder beside it")
    shards = sorted(source.glob("*.tar")) if source.is_dir() else [source]
    if source.is_file() and source.suffix != ".tar":
        raise SourceError(f"source: {source} is neither a folder nor a .tar file")
    if shards:
        return [_Shard(shard, output) for shard in shards]
    folder = _Folder(source, output)
    if not folder.names:
        raise SourceError(f"source: {source} holds neither images nor webdataset shards (.tar)")
    return [folder]


def _run(config: ImagesConfig, unit: _Unit, report: ImagesReport, progress: Callable[[int, int | None], None] | None) -> None:
    known = staging.journal(unit.staged).state
    if known is None or not known["complete"] or unit.left():  # what had been made may be gone since
        _stage(config, unit, report, progress)
    unit.publish()
    staging.remove(unit.staged)


def _stage(config: ImagesConfig, unit: _Unit, report: ImagesReport, progress: Callable[[int, int | None], None] | None) -> None:
    """Degrade what is left of a unit."""
    left, records = unit.left(), unit.records.name
    total = None if left is None else report.there + left
    growing = staging.Growing(unit.staged, unit.growing)
    try:
        number = failed = 0
        if growing.state is None:
            growing.append(records, manifest.dump(_header(config)))
            unit.begin(growing)
            growing.sync({"samples": 0, "complete": False})
        else:
            number = growing.state["samples"]
        maker = Maker(config)
        with closing(local.ordered(maker, windows(unit.samples(number), maker.window, lambda _: 0), config.workers)) as done:
            for made in chain.from_iterable(done):
                unit.put(growing, made.files)
                for line in made.lines:
                    growing.append(records, manifest.dump(line))
                    report.made += line["status"] == "ok"
                    failed += line["status"] == "failed"
                number += 1
                if growing.due():
                    unit.settle()
                    growing.sync({"samples": number, "complete": False})
                if progress:
                    progress(report.there + report.made + failed, total)
        unit.end(growing)
        unit.settle()
        growing.sync({"samples": number, "complete": True})
    finally:
        growing.close()


class Maker:
    """Degrades the images of neighbouring samples; called from several threads."""

    def __init__(self, config: ImagesConfig) -> None:
        self.config = config
        self.device = device(config.device)
        self.window = window_of(self.device, config.batch)
        self.random = transforms.RandomDegradation(config.mixture, p=1, seed=config.seed)

    def __call__(self, samples: Sequence[Sample]) -> list[Made]:
        decoded = {id(member): self._decoded(member) for member in chain.from_iterable(samples) if member.is_image}
        groups: dict[tuple[int, ...], list[tuple[Member, Tensor]]] = {}
        for member in chain.from_iterable(samples):
            found = decoded.get(id(member))
            if isinstance(found, tuple):
                groups.setdefault(tuple(found[1].shape), []).append((member, found[1]))
        degraded: dict[int, tuple[Tensor, Any]] = {}
        for group in groups.values():
            batch = torch.stack([image for _, image in group]).to(self.device)
            out, records = self.random(batch, keys=[member.key for member, _ in group], return_records=True)
            degraded |= {id(member): made for (member, _), made in zip(group, zip(out.cpu(), records, strict=True), strict=True)}
        return [self._made(sample, decoded, degraded) for sample in samples]

    def _decoded(self, member: Member) -> tuple[bytes, Tensor] | RowError:
        config = self.config
        try:
            data = member.read()
            return data, images.decode(data, orientation=config.orientation, alpha=config.alpha, max_pixels=config.max_pixels)
        except RowError as error:
            return error
        except OSError as error:
            return RowError(f"the file cannot be read: {error.strerror or error}")

    def _made(self, sample: Sample, decoded: dict[int, tuple[bytes, Tensor] | RowError], degraded: dict[int, tuple[Tensor, Any]]) -> Made:
        files: list[tuple[str, bytes]] = []
        lines: list[dict[str, Any]] = []
        bad = ""
        for member in sample:
            if not member.is_image:
                files.append((member.name, member.read()))
                continue
            try:
                found = decoded[id(member)]
                if isinstance(found, RowError):
                    raise found
                image, record = degraded[id(member)]
                data = images.encode(image, self._codec(member.name), self.config.quality)
            except RowError as error:
                bad = bad or f"{member.name}: {error}"
                lines.append({"name": member.name, "key": member.key, "status": "failed", "reason": str(error)})
                continue
            files.append((member.name, data))
            hashes = {"source_sha256": hashlib.sha256(found[0]).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}
            size = [image.shape[2], image.shape[1]]
            lines.append({"name": member.name, "key": member.key, "status": "ok", **hashes, "size": size, "record": record})
        if bad:  # a sample without one of its images is of no use, and a clean one must not stand there
            lines = [
                line if line["status"] == "failed" else {**_named(line), "status": "failed", "reason": f"left out with {bad}"}
                for line in lines
            ]
            return Made([], lines)
        return Made(files, lines)

    def _codec(self, name: str) -> str:
        return _OWN_CODEC.get(Path(name).suffix.lower(), "png") if self.config.codec == "same" else self.config.codec


def _named(line: dict[str, Any]) -> dict[str, Any]:
    return {"name": line["name"], "key": line["key"]}


def _settings(config: ImagesConfig) -> dict[str, Any]:
    """What decides the bytes of an image, apart from its source."""
    found = {"seed": config.seed, "mixture": weights(config.mixture), "codec": config.codec, "quality": config.quality}
    return found | {"orientation": config.orientation, "alpha": config.alpha, "max_pixels": config.max_pixels}


def _header(config: ImagesConfig) -> dict[str, Any]:
    facts = {"configuration": _settings(config), "libraries": libraries()}
    moving = {"configuration": _settings(config), "codecs": images.codec_versions()}
    return {"format": FORMAT, **facts, "fingerprint": manifest.fingerprint(moving)}


def _head(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        first = file.readline()
    try:
        head = json.loads(first)
        if head["format"] == FORMAT:
            return dict(head)
    except (ValueError, KeyError, TypeError):
        pass  # said below
    raise FolderError(f"{path} is not from `degrade images`: choose another output folder")


def _lines(path: Path, length: int | None = None) -> Iterator[dict[str, Any]]:
    """The lines of records behind the header, as far as `length` bytes if given; none where the file is not there."""
    if path.exists():
        with path.open("rb") as file:
            file.readline()
            while (raw := file.readline()) and (length is None or file.tell() <= length):
                yield json.loads(raw)


def _move(path: Path, target: Path) -> None:
    if path.exists():  # else it has been moved already
        os.replace(path, target)


def _all_records(output: Path) -> list[Path]:
    """Published records, and staged ones as far as a journal says that they can be read."""
    staged = output.glob(f"{staging.FOLDER}/*/*{RECORDS}")
    return [*output.glob(f"*{RECORDS}"), *(path for path in staged if staging.journal(path.parent).lengths.get(path.name))]


def _refuse_other_settings(output: Path, config: ImagesConfig) -> None:
    asked = _settings(config) | images.codec_versions()
    for path in _all_records(output):
        head = _head(path)
        held = head["configuration"] | {name: head["libraries"].get(name, "none") for name in images.codec_versions()}
        differing = [f"{k} (there: {held.get(k)}, now: {v})" for k, v in asked.items() if held.get(k) != v]
        if differing:
            raise FolderError(
                f"{output} holds images made with other settings: {'; '.join(differing)}. "
                "Choose another output folder, or start anew with overwrite=true"
            )


def _clear(output: Path) -> None:
    """Remove what earlier runs have left in a folder, and nothing else."""
    for path in _all_records(output):
        _head(path)
        if path.name == RECORDS:
            synced = None if path.parent == output else staging.journal(path.parent).lengths.get(RECORDS, 0)
            for line in _lines(path, synced):
                (output / line["name"]).unlink(missing_ok=True)
        elif path.parent == output:
            (output / (path.name.removesuffix(manifest.SUFFIX) + ".tar")).unlink(missing_ok=True)
        path.unlink()
    staging.remove(output / staging.FOLDER)
