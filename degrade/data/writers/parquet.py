"""Parquet that Hugging Face ``datasets`` opens with an image feature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from degrade.data.writers.resolved import ResolvedRow, Shard

GROUP_ROWS, GROUP_BYTES = 100, 32 << 20
"""A row group holds at most so many rows, and ends with the row that makes its images so large."""


def convert(staged: Path, suffix: str) -> Path:
    """``{stem}.parquet`` beside a staged ``{stem}.tsv``: text columns as text, ``image`` as ``{bytes, path}``, or a list of these in every
    row where some row has several images."""
    shard = Shard(staged)
    listed = any(row.listed for row in shard)
    schema = _schema(shard.columns, listed)
    target = staged.with_suffix(".parquet")
    codecs = dict.fromkeys(shard.columns, "zstd")
    with pq.ParquetWriter(target, schema, compression={**codecs, **dict.fromkeys(_leaves(listed), "none")}) as writer:
        rows: list[dict[str, Any]] = []
        size = 0
        for row in shard:
            rows.append({**row.texts, "image": _cell(row, suffix, listed)})
            size += sum(map(len, row.images))
            if len(rows) >= GROUP_ROWS or size >= GROUP_BYTES:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                rows, size = [], 0
        if rows:
            writer.write_table(pa.Table.from_pylist(rows, schema))
    return target


def _schema(columns: list[str], listed: bool) -> pa.Schema:
    picture = pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())])
    fields = [pa.field(name, pa.string()) for name in columns] + [pa.field("image", pa.list_(picture) if listed else picture)]
    feature: dict[str, Any] = {"_type": "Image"}
    features: dict[str, Any] = {name: {"dtype": "string", "_type": "Value"} for name in columns}
    features["image"] = {"feature": feature, "_type": "Sequence"} if listed else feature
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})


def _leaves(listed: bool) -> list[str]:
    root = "image.list.element" if listed else "image"
    return [f"{root}.bytes", f"{root}.path"]


def _cell(row: ResolvedRow, suffix: str, listed: bool) -> Any:
    name = f"{row.number:08d}"
    if listed:
        return [{"bytes": data, "path": f"{name}.{n}.{suffix}"} for n, data in enumerate(row.images)]
    return {"bytes": row.images[0], "path": f"{name}.{suffix}"} if row.images else None
