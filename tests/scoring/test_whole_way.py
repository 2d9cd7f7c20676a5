"""The documented example: build, ask, score."""

from __future__ import annotations

import importlib.util
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "whole_way.py"


def test_degraded_images_cost_a_model_its_score(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("whole_way", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    whole_way = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(whole_way)
    out = whole_way.main(tmp_path)
    low, high = out["averages"]
    assert (low["severity"], high["severity"]) == ("low", "high")
    assert low["clean"] == high["clean"] == 1.0  # it answers every clean question, the mirrored pair of MMVP too
    assert high["drop"] > 0.15
    assert low["drop"] < high["drop"]
    assert {d["clean_side"] for d in out["drops"]} == {"control"}
    assert {path.suffix for path in (tmp_path / "score").iterdir()} == {".json", ".csv", ".png"}
