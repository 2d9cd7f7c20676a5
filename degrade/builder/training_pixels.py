"""Training images: the encoded images of a few samples in, the degraded ones and their records out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from degrade import transforms
from degrade.builder.pixels import window_of
from degrade.builder.settings import device
from degrade.builder.training_records import Line
from degrade.config import ImagesConfig
from degrade.data import images
from degrade.data.errors import RowError
from degrade.kernels import layout

_OWN_CODEC = {".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp"}


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
    lines: list[Line]


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
        lines: list[Line] = []
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
                data = images.encode(layout.channels_last(image), self._codec(member.name), self.config.quality)
            except RowError as error:
                bad = bad or f"{member.name}: {error}"
                lines.append({"name": member.name, "key": member.key, "status": "failed", "reason": str(error)})
                continue
            files.append((member.name, data))
            facts: Line = {"name": member.name, "key": member.key, "status": "ok"}
            facts |= {"source_sha256": hashlib.sha256(found[0]).hexdigest(), "source_bytes": len(found[0])}
            facts |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            lines.append(facts | {"size": [image.shape[2], image.shape[1]], "record": record})
        if bad:  # a sample without one of its images is of no use, and a clean one must not stand there
            left_out = {"status": "failed", "reason": f"left out with {bad}"}
            return Made(
                [], [line if line["status"] == "failed" else {"name": line["name"], "key": line["key"], **left_out} for line in lines]
            )
        return Made(files, lines)

    def _codec(self, name: str) -> str:
        return _OWN_CODEC.get(Path(name).suffix.lower(), "png") if self.config.codec == "same" else self.config.codec
