"""What a build will do, and what it has done."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from degrade.data import staging

REPORT_FILE = "build.json"
FORMAT = "degrade-build-1"

_BENCHMARK_KEYS = ("sha256", "rows", "files")
_FILE_KEYS = ("variant", "fingerprint", "counts", "files")


def read_report(folder: Path) -> dict[str, Any]:
    """What ``build.json`` says.

    Raises:
        FolderError: if it is not there, or is damaged.
    """
    path = folder / REPORT_FILE
    if not path.is_file():
        raise staging.FolderError(f"{path} is not there: give the build's command again, which makes the files anew, and it with them")
    found = staging.read_json(path)
    try:
        if found["format"] != FORMAT:
            raise ValueError(f"its format is {found['format']!r}, not {FORMAT!r}")
        for benchmark in found["benchmarks"].values():
            lacking = [key for key in _BENCHMARK_KEYS if key not in benchmark]
            lacking += [key for file in benchmark.get("files", {}).values() for key in _FILE_KEYS if key not in file]
            if lacking:
                raise ValueError(f"it lacks {lacking[0]!r}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise staging.FolderError(f"{path} is damaged: {what}. Build anew with overwrite=true") from error
    return dict(found)


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
        without_options: by benchmark, the indices of rows whose options could not be split from the question, which stays whole.
        left_out: by benchmark, how many rows of the source belong to another benchmark, and are in no file.
        unpublished: benchmarks whose files were not written because of failed rows.
        vlmevalkit: the configuration for VLMEvalKit, which reads no other files than TSV.
        stale: folders in which VLMEvalKit keeps images of files of these names: remove them if they were unpacked from another build.
    """

    output: Path
    files: list[Path] = field(default_factory=list)
    rows: int = 0
    images: int = 0
    failed: list[BadRow] = field(default_factory=list)
    empty: list[BadRow] = field(default_factory=list)
    without_options: dict[str, list[str]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    unpublished: list[str] = field(default_factory=list)
    vlmevalkit: Path | None = None
    stale: list[Path] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether all that was asked for was done."""
        return not self.failed
