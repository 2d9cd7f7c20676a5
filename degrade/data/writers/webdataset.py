"""Webdataset shards: tar files with, for every row, its images and its text as JSON under one key."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from degrade.data.writers.resolved import Shard


def convert(staged: Path, suffix: str, shard_rows: int) -> list[Path]:
    """``{stem}-000000.tar`` and so on beside a staged ``{stem}.tsv``. The key of a row is its place in the shard; a list's images are
    ``{key}.0.{suffix}`` and so on."""
    made: list[Path] = []
    archive: tarfile.TarFile | None = None
    try:
        for row in Shard(staged):
            if row.number % shard_rows == 0:
                if archive:
                    archive.close()
                made.append(staged.with_name(f"{staged.stem}-{len(made):06d}.tar"))
                archive = tarfile.open(made[-1], "w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115  one after the other
            assert archive is not None
            key = f"{row.number:08d}"
            for n, data in enumerate(row.images):
                _add(archive, f"{key}.{n}.{suffix}" if row.listed else f"{key}.{suffix}", data)
            _add(archive, f"{key}.json", json.dumps(row.texts, ensure_ascii=False).encode("utf-8"))
    finally:
        if archive:
            archive.close()
    return made


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)  # its defaults name neither time nor owner
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))
