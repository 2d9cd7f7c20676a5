"""What a build will do, and what it has done."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

REPORT_FILE = "build.json"


@dataclass(frozen=True)
class BadRow:
    """A row that could not be used; `row` is its place in the file, from 0, the header not counted."""

    benchmark: str
    file: str
    row: int
    index: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, row {self.row}, index {self.index!r}: {self.reason}"


@dataclass(frozen=True)
class Estimate:
    """What a build will write, roughly.

    Attributes:
        files: names of the shards that are not there yet; done: of those that are.
        rows, images: in the sources.
        bytes, seconds: for the shards that are not there yet, guessed from the sizes of a few images.
    """

    files: list[str]
    done: list[str]
    rows: int
    images: int
    bytes: int
    seconds: float


@dataclass
class BuildReport:
    """What a build did.

    Attributes:
        output: its folder.
        files: the shards that are there now.
        rows, images: how many rows were read and images made in this run (an earlier run's, if it was resumed, not counted).
        failed: rows that could not be used, of all sources.
        empty: rows without an image, kept as they are.
        unpublished: benchmarks whose files were not written because of failed rows.
        stale: folders in which VLMEvalKit keeps images of files of these names: remove them if they were unpacked from another build.
    """

    output: Path
    files: list[Path] = field(default_factory=list)
    rows: int = 0
    images: int = 0
    failed: list[BadRow] = field(default_factory=list)
    empty: list[BadRow] = field(default_factory=list)
    unpublished: list[str] = field(default_factory=list)
    stale: list[Path] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether all that was asked for was done."""
        return not self.failed
