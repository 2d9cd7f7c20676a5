"""How many kernels each operator launches on CUDA, counted without a GPU.

    python benchmarks/launches.py [--operators mean_shift ...] [--output FILE.json]

The Triton bodies run in Triton's interpreter in the place of the CPU's, on small images, so that everything goes the way it would go on
CUDA; launches of Triton kernels and operations of torch that would launch one are counted, and among these the passes over whole images
that torch does one by one.  Copies from the host are not counted: there is one for each operator in a batch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

import torch
from torch import Tensor

import degrade

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # what puts the interpreter in the place of the CPU's bodies lives with the tests

from tests.kernels import as_cuda  # noqa: E402

SHAPE = (2, 3, 12, 19)  # more pixels than a kernel has taps
SHAPES = {"mean_shift": (2, 3, 5, 7), "watermark_damage": (1, 1, 4, 6)}  # what takes the interpreter longest


def counted(images: Tensor, name: str, intensity: float | Tensor) -> dict[str, Any]:
    weights = torch.ones_like(images)
    with as_cuda.launches(images) as found:
        out = degrade.apply(images, name, intensity, seed=0, check=False)
        if out.requires_grad:
            out.backward(weights)
    return {"launches": found.counts.total(), "passes of torch": found.passes.total(), **dict(found.counts.most_common())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", nargs="+", default=list(degrade.OPERATORS), choices=list(degrade.OPERATORS))
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "launches.json")
    options = parser.parse_args()
    as_cuda.use_the_bodies_for_cuda()
    rows = []
    for name in options.operators:
        pixels = torch.randint(0, 256, SHAPES.get(name, SHAPE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        floats = pixels / 255
        value = degrade.SEVERITIES["high"]  # no other launches more
        intensity = torch.full((len(pixels),), value, dtype=torch.float64, requires_grad=True)
        row = {
            "bytes": counted(pixels, name, value),
            "floats": counted(floats, name, value),
            "gradient of images": counted(floats.clone().requires_grad_(), name, value),
            "gradient of images and intensity": counted(floats.clone().requires_grad_(), name, intensity),
        }
        rows.append({"operator": name, **row})
        print(f"{name:24}", *(f"{what}: {found['launches']}" for what, found in row.items()), sep="  ", flush=True)
    options.output.write_text(json.dumps({"torch": torch.__version__, "results": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
