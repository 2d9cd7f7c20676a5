"""The worked examples for training run, and write what they say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="the examples need scikit-learn: pip install 'degrade[examples]'")


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    import training

    return training


def test_training(training, tmp_path: Path):
    training.main(["--quick", "--output", str(tmp_path)])
    result = json.loads((tmp_path / "training.json").read_text(encoding="utf-8"))
    assert [(row["operator"], row["severity"]) for row in result["rows"]] == [
        ("clean", ""),
        *((name, severity) for name in training.QUICK.operators for severity in ("low", "mid", "high")),
    ]
    assert all(0 <= row[kind][0] <= 1 for row in result["rows"] for kind in training.KINDS)
    assert (tmp_path / "training.png").stat().st_size > 1000
    assert "| scan_lines | high |" in (tmp_path / "training.md").read_text(encoding="utf-8")


def test_gains_are_paired_by_seed(training):
    rows = [{"operator": "scan_lines", "severity": s, "plain": [0.1, 0.5], "hardened": [0.3, 0.7]} for s in ("low", "mid", "high")]
    spread = f"{100 * math.sqrt(0.08):.1f}"
    assert training.table(rows).splitlines()[2] == f"| scan_lines | low | 30.0 ± {spread} | 50.0 ± {spread} | +20.0 ± 0.0 |"
    assert training.table(rows).splitlines()[-1].startswith("| mean of operators | high |")


def test_training_is_reproducible(training):
    images, labels, *_ = training.digits(16)
    augment = training.degrade.RandomDegradation({"dark_illumination": 1}, p=0.5)
    first, again = (training.train(images[:96], labels[:96], 1, seed=2, augment=augment).state_dict() for _ in range(2))
    assert all((first[name] == again[name]).all() for name in first)


def test_recover(training, tmp_path: Path):
    import recover

    rows, _ = recover.recover_all(steps=25, operators=(("dark_illumination", "mid"),))
    assert rows[0]["psnr_recovered"] > rows[0]["psnr_degraded"] + 5
    recover.main(["--quick", "--output", str(tmp_path)])
    result = json.loads((tmp_path / "recover.json").read_text(encoding="utf-8"))
    assert len(result["recovered"]) == 2
    assert {row["mixture"] for row in result["attack"]["rows"]} >= {"none", "equal", "by gradient, 4 starts of 2 steps"}
    assert (tmp_path / "recover.jpg").stat().st_size > 1000
