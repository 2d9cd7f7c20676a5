"""benchmarks/cuda.py, all of it, on a few pixels of the CPU."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import torch

import degrade

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "cuda.py"


def test_runs_in_full(tmp_path):
    output = tmp_path / "results.json"
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--tiny", "--runs", "1", "--output", str(output)]
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    results = json.loads(output.read_text())["results"]
    cases = [(name, severity) for name in degrade.OPERATORS for severity in degrade.SEVERITIES]
    assert [(row["operator"], row["severity"]) for row in results["equality"]] == cases
    assert all(row["differing"] == 0 and row["values"] > 0 and row["gradient_cosine"] > 0.999 for row in results["equality"])
    assert [(row["operator"], row["severity"]) for row in results["operators"] if row["images"] == "bytes"] == cases
    assert [row["operator"] for row in results["operators"] if row["images"] == "floats and their gradient"] == list(degrade.OPERATORS)
    assert len(results["mixtures"]) == 4
    for row in results["operators"] + results["mixtures"]:
        assert row["images_per_second"] > 0
        assert row["copies_per_second"] > 0
        assert row["operations"] > 0
    mixed = 3
    assert [row["outputs"] for row in results["build"]] == [2 * (mixed + len(degrade.OPERATORS) - left_out) for left_out in (0, 1)]


def test_finds_a_difference(monkeypatch):
    spec = importlib.util.spec_from_file_location("cuda_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # its dataclasses look it up
    spec.loader.exec_module(module)
    exact = degrade.replay
    monkeypatch.setattr(degrade, "replay", lambda images, records: exact(images.flip(-1), records))
    row = module.equality("scan_lines", "mid", module.photographs(1, 9, 12), torch.device("cpu"))
    assert row["differing"] > 0
