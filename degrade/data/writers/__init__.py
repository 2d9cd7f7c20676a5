"""What becomes of a complete shard: it is staged as TSV, whatever is asked for, and then moved or converted.

So rows can be added, synced and taken up again after an interruption in one way for all formats.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from degrade.data.staging import sync_folder

WRITERS = ("tsv", "parquet", "webdataset")


def shards(folder: Path, stem: str, writer: str) -> list[Path]:
    """The files of a published shard that are there."""
    if writer == "webdataset":
        return sorted(folder.glob(f"{stem}-" + "[0-9]" * 6 + ".tar"))
    return [path for path in [folder / f"{stem}.{writer}"] if path.exists()]


def publish(staged: Path, output: Path, writer: str, *, suffix: str, shard_rows: int) -> None:
    """Give a complete staged TSV file its final name and form in `output`; may be interrupted and repeated.

    Args:
        staged: ``{stem}.tsv`` in a staging folder. Moved away where the form is TSV.
        writer: one of ``WRITERS``.
        suffix: file suffix of the encoded images.
        shard_rows: rows in a webdataset shard, at most.
    """
    if writer == "tsv":
        if staged.exists():  # else it has been moved already
            os.replace(staged, output / staged.name)
        made: Sequence[Path] = []
    elif writer == "parquet":
        from degrade.data.writers import parquet

        made = [parquet.convert(staged, suffix)]
    elif writer == "webdataset":
        from degrade.data.writers import webdataset

        made = webdataset.convert(staged, suffix, shard_rows)
    else:
        raise ValueError(f"writer: got {writer!r}, want one of {', '.join(WRITERS)}")
    for path in made:
        with path.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(path, output / path.name)
    sync_folder(output)
