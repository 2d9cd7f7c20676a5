"""What ``degrade images`` makes as a whole and resumes: a folder of images, or one webdataset shard."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import Protocol

from degrade.builder.folder import sha256
from degrade.builder.training_pixels import Made, Member, Sample
from degrade.builder.training_records import RECORDS, Line, intact, lines
from degrade.config import ConfigError
from degrade.data import manifest, staging
from degrade.data.errors import SourceError
from degrade.data.sources.folder import image_files
from degrade.data.sources.webdataset import is_image, key_of
from degrade.data.staging import FolderError


@dataclass
class Found:
    """What is there of a unit when a run begins.

    Attributes:
        there: how many images are as their records say.
        changed: outputs that are made again, because they or their sources are not what the records say.
        missing: outputs that are made again, because they are no longer there.
        gone: outputs whose source image is gone.
        complete: whether nothing is left to do.
    """

    there: int = 0
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    complete: bool = False


class Unit(Protocol):
    """What has its own records: a folder, or a shard."""

    source: Path
    records: Path
    staged: Path
    growing: list[str]  # the files that grow in the staging folder

    @property
    def stamp(self) -> list[int] | None:
        """What tells a source from a changed one; None where each of its files is looked at."""
        ...

    def look(self) -> Found:
        """Hold what is there against the records; to be called first, before anything else."""
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

    def put(self, growing: staging.Growing, made: Made) -> None:
        """Add the files of a sample."""
        ...

    def settle(self) -> None:
        """Make what has been put last, before the journal says that it is there; may be interrupted and repeated."""
        ...

    def end(self, growing: staging.Growing) -> None:
        """Add what stands behind the last sample."""
        ...

    def publish(self) -> None:
        """Give the output its final name; may be interrupted and repeated."""
        ...


class Folder:
    """A folder of images."""

    stamp: list[int] | None = None

    def __init__(self, source: Path, output: Path) -> None:
        self.source, self.output = source, output
        self.growing = [RECORDS]
        self.records = output / RECORDS
        self.staged = output / staging.FOLDER / "images"
        self.times = {file.relative_to(source).as_posix(): file.stat().st_mtime_ns for file in image_files(source)}  # before all reading
        self._left: list[str] = []
        self._recorded: set[str] = set()
        self._files = output / staging.FOLDER / "files"
        self._held: list[str] = []

    def look(self) -> Found:
        staged, synced = self.staged / RECORDS, staging.journal(self.staged).lengths.get(RECORDS, 0)
        if not staged.exists() or staged.stat().st_size < synced:
            staging.remove(self.staged)  # its journal would speak of what is no longer there
        done: set[str] = set()
        changed: set[str] = set()
        missing: set[str] = set()
        gone: set[str] = set()
        stale = False
        for line in chain(lines(self.records), lines(staged, synced)):
            name, output = line["name"], self.output / line["name"]
            self._recorded.add(name)
            if not self._stays(line):
                stale = True
            elif name not in self.times:
                gone.add(name)
            elif line["status"] == "ok" and not output.exists():
                missing.add(name)
            elif line["status"] == "ok" and name not in done:
                (done if intact(line, self.source / name, output) else changed).add(name)
        self._left = sorted(self.times.keys() - done)
        complete = not self._left and not stale and not self.staged.exists()
        return Found(len(done), sorted(changed - done), sorted(missing), sorted(gone), complete)

    def _stays(self, line: Line) -> bool:
        """Whether a line has its place in the records: its image is in the source, or still in the output."""
        return line["name"] in self.times or (line["status"] == "ok" and (self.output / line["name"]).exists())

    def refuse_foreign(self) -> None:
        if self.staged.exists():
            return  # what an interrupted run has made last may be there without a record
        for name in self._left:
            if name not in self._recorded and (self.output / name).exists():
                raise FolderError(f"{self.output / name} is there without a record, so it is not ours: move it, or give overwrite=true")

    def left(self) -> int:
        return len(self._left)

    def begin(self, growing: staging.Growing) -> None:
        left = set(self._left)
        for line in lines(self.records):
            if line["status"] == "ok" and line["name"] not in left:
                growing.append(RECORDS, manifest.dump(line))

    def samples(self, number: int) -> Iterator[Sample]:
        for name in self._left:
            yield [Member(name, name, (self.source / name).read_bytes)]

    def put(self, growing: staging.Growing, made: Made) -> None:
        for name, data in made.files:
            path = self._files / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            os.utime(path, ns=(self.times[name], self.times[name]))  # see `intact`
            self._held.append(name)
        if not made.files:
            for line in made.lines:
                (self.output / line["name"]).unlink(missing_ok=True)  # of another source than the one that turned out bad

    def settle(self) -> None:
        held = [name for name in self._held if (self._files / name).exists()]  # the others had been moved when this was interrupted
        for name in held:
            with (self._files / name).open("rb") as file:
                os.fsync(file.fileno())
        for name in held:
            target = self.output / name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self._files / name, target)
        for folder in {(self.output / name).parent for name in self._held}:
            staging.sync_folder(folder)
        self._held.clear()

    def end(self, growing: staging.Growing) -> None:
        """Nothing."""

    def publish(self) -> None:
        staged = self.staged / RECORDS
        if staged.exists():
            with staged.open("rb") as file:
                head = file.readline()
            # An image made again stands behind what was there, and the last line of a name counts.
            latest = {line["name"]: manifest.dump(line) for line in lines(staged) if self._stays(line)}
            staging.write(self.staged / "sorted", head + b"".join(latest[name] for name in sorted(latest)))
            os.replace(self.staged / "sorted", self.records)
            staging.sync_folder(self.output)
        staging.remove(self.staged)


class Shard:
    """A webdataset shard: its image members are degraded, all others are copied, in their order."""

    def __init__(self, source: Path, output: Path) -> None:
        self.source, self.output = source, output / source.name
        self.records = output / (source.stem + manifest.SUFFIX)
        self.staged = output / staging.FOLDER / source.stem
        self.growing = [source.name, self.records.name]
        self.stamp = _stamp(source)

    def look(self) -> Found:
        state = staging.journal(self.staged).state
        if state and state["complete"]:
            self.publish()
        elif state and state["source"] != self.stamp:
            staging.remove(self.staged)  # half of another shard
        if not self.output.exists() or not self.records.exists():
            return Found(missing=[self.output.name] if self.records.exists() else [])
        there, last, bad = 0, {"status": ""}, list[int]()
        for last in lines(self.records, bad=bad):
            there += last["status"] == "ok"
        if last["status"] == "shard" and not bad and intact(last, self.source, self.output):
            return Found(there, complete=True)
        return Found(changed=[self.output.name])

    def refuse_foreign(self) -> None:
        if self.output.exists() and not self.records.exists():
            raise FolderError(f"{self.output} is there without records, so it is not ours: move it, or give overwrite=true")

    def left(self) -> None:
        return None

    def begin(self, growing: staging.Growing) -> None:
        """Nothing: a shard is made as a whole."""

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

    def put(self, growing: staging.Growing, made: Made) -> None:
        for name, data in made.files:
            info = tarfile.TarInfo(name)  # its defaults name neither time nor owner
            info.size = len(data)
            growing.append(self.source.name, info.tobuf(tarfile.PAX_FORMAT) + data + bytes(-len(data) % tarfile.BLOCKSIZE))

    def settle(self) -> None:
        """Nothing: the shard grows in the journal's own files."""

    def end(self, growing: staging.Growing) -> None:
        growing.append(self.source.name, bytes(2 * tarfile.BLOCKSIZE))
        growing.flush()
        made = self.staged / self.source.name
        size, mtime = self.stamp
        facts = {"source_sha256": sha256(self.source), "source_bytes": size, "sha256": sha256(made), "bytes": made.stat().st_size}
        if _stamp(self.source) != self.stamp:
            raise SourceError(f"{self.source} has changed while it was being read: repeat the command")
        growing.append(self.records.name, manifest.dump({"name": self.source.name, "status": "shard", **facts}))
        os.utime(made, ns=(mtime, mtime))  # see `intact`

    def publish(self) -> None:
        for staged, target in ((self.staged / self.source.name, self.output), (self.staged / self.records.name, self.records)):
            if staged.exists():  # else it has been moved already
                os.replace(staged, target)
        staging.sync_folder(self.records.parent)
        staging.remove(self.staged)


def _stamp(path: Path) -> list[int]:
    """Size and time of change."""
    return [path.stat().st_size, path.stat().st_mtime_ns]


def units_of(source: Path, output: Path) -> Sequence[Unit]:
    """What a source consists of.

    Raises:
        ConfigError: the output lies in the source.
        SourceError: there is nothing to degrade.
    """
    if not source.exists():
        raise SourceError(f"source: there is no {source}; a folder of images, or webdataset shards, are wanted")
    inside = source if source.is_dir() else source.parent
    if output.resolve() == inside.resolve() or (source.is_dir() and output.resolve().is_relative_to(source.resolve())):
        raise ConfigError(f"output: {output} lies in the source, {source}; choose a folder beside it")
    shards = sorted(source.glob("*.tar")) if source.is_dir() else [source]
    if source.is_file() and source.suffix != ".tar":
        raise SourceError(f"source: {source} is neither a folder nor a .tar file")
    if shards:
        return [Shard(shard, output) for shard in shards]
    folder = Folder(source, output)
    if not folder.times:
        raise SourceError(f"source: {source} holds neither images nor webdataset shards (.tar)")
    return [folder]
