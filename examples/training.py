"""Train a small network on clean digits and on digits under ``RandomDegradation``; measure both on every operator at every severity.

    pip install 'degrade[examples]'
    python examples/training.py                # about ten minutes on two cores
    python examples/training.py --quick        # a minute, and no meaningful figures

The digits are scikit-learn's (1,797 scans of 8 x 8 pixels, shipped with the package), enlarged, each in two colours of its own.
Writes ``training.json``, ``training.md`` (the table) and ``training.png`` to ``--output``.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

import degrade
from degrade.mixture import TRAINING

KINDS = ("plain", "hardened")
TEST_IMAGES = 300
BATCH = 64
CLASSES = 10


@dataclass(frozen=True)
class Settings:
    size: int = 64  # pixels
    epochs: int = 20
    seeds: int = 5
    p: float = 0.75
    test_images: int = TEST_IMAGES
    operators: tuple[str, ...] = tuple(degrade.OPERATORS)


QUICK = Settings(size=32, epochs=1, seeds=1, test_images=20, operators=("dark_illumination", "scan_lines"))


def digits(size: int, test_images: int = TEST_IMAGES) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images (B, 3, size, size) uint8 and labels for training, then for the test."""
    data = load_digits()
    scans = torch.from_numpy(data.images).float()[:, None] / 16
    ink = F.interpolate(scans, size=(size, size), mode="bicubic").clamp(0, 1)
    generator = torch.Generator().manual_seed(0)
    dark, bright = (torch.rand(len(ink), 3, 1, 1, generator=generator) * 0.45 + low for low in (0.0, 0.55))
    images = ((dark + ink * (bright - dark)) * 255).round().to(torch.uint8)
    labels = torch.from_numpy(data.target)
    order = torch.randperm(len(ink), generator=generator)
    images, labels = images[order], labels[order]
    return images[test_images:], labels[test_images:], images[:test_images], labels[:test_images]


def network() -> nn.Module:
    def block(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(
        *block(3, 16), *block(16, 32), *block(32, 64), *block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, CLASSES)
    )


def as_floats(images: Tensor) -> Tensor:
    return images.float() / 255


def train(images: Tensor, labels: Tensor, epochs: int, seed: int, augment: degrade.RandomDegradation | None = None) -> nn.Module:
    """A network trained from ``seed``; with ``augment`` every batch passes through it first, and nothing else differs."""
    torch.manual_seed(seed)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    steps = epochs * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    order = torch.Generator().manual_seed(seed)
    for epoch in range(epochs):
        for at in torch.randperm(len(images), generator=order).split(BATCH):
            batch = images[at]
            if augment is not None:
                batch = augment(batch, keys=[str(n) for n in at.tolist()], epoch=epoch)
            loss = F.cross_entropy(model(as_floats(batch)), labels[at])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    found = torch.cat([model(as_floats(part)).argmax(1) for part in images.split(100)])
    return (found == labels).float().mean().item()


def degraded_sets(images: Tensor, operators: tuple[str, ...]) -> dict[tuple[str, str], Tensor]:
    """The test images clean, and under each operator at each severity; the same for every network."""
    sets = {("clean", ""): images}
    for name in operators:
        for severity in degrade.SEVERITIES:
            sets[name, severity] = degrade.apply(images, name, severity, seed=1, keys=[f"test {n}" for n in range(len(images))])
    return sets


def measure(settings: Settings) -> dict[str, Any]:
    """Accuracies of both networks for every seed, on every test set."""
    train_images, train_labels, images, labels = digits(settings.size, settings.test_images)
    sets = degraded_sets(images, settings.operators)
    weights = {name: TRAINING[name] for name in settings.operators}
    rows: list[dict[str, Any]] = [{"operator": name, "severity": severity, "plain": [], "hardened": []} for name, severity in sets]
    seconds: dict[str, list[float]] = {"plain": [], "hardened": []}
    for seed in range(settings.seeds):
        for kind in KINDS:
            augment = degrade.RandomDegradation(weights, p=settings.p, seed=seed) if kind == "hardened" else None
            began = time.perf_counter()
            model = train(train_images, train_labels, settings.epochs, seed, augment)
            seconds[kind].append(round(time.perf_counter() - began, 1))
            for row, degraded in zip(rows, sets.values(), strict=True):
                row[kind].append(accuracy(model, degraded, labels))
            print(f"seed {seed}, {kind}: {rows[0][kind][-1]:.3f} on clean images after {seconds[kind][-1]:.0f} s of training", flush=True)
    return {
        "settings": asdict(settings),
        "images": {"train": len(train_images), "test": len(images)},
        "versions": {"degrade": degrade.__version__, "torch": torch.__version__, "python": platform.python_version()},
        "threads": torch.get_num_threads(),
        "training_seconds": seconds,
        "rows": rows,
    }


def mean_and_spread(values: list[float]) -> tuple[float, float]:
    """Mean and standard deviation over seeds, in percent."""
    return 100 * statistics.mean(values), 100 * (statistics.stdev(values) if len(values) > 1 else math.nan)


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``rows`` and, for each severity, their mean over operators (of each seed)."""
    means = []
    for severity in degrade.SEVERITIES:
        same = [row for row in rows if row["severity"] == severity]
        columns = {kind: [statistics.mean(of_seed) for of_seed in zip(*(row[kind] for row in same), strict=True)] for kind in KINDS}
        means.append({"operator": "mean of operators", "severity": severity, **columns})
    return [*rows, *means]


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: accuracy in percent, mean and standard deviation over seeds, and the gain, paired by seed."""
    lines = ["| operator | severity | plain | hardened | gain |", "|---|---|---|---|---|"]
    for row in summary(rows):
        gains = [hardened - plain for plain, hardened in zip(row["plain"], row["hardened"], strict=True)]
        (plain, a), (hardened, b), (gain, c) = map(mean_and_spread, (row["plain"], row["hardened"], gains))
        cells = f"{plain:.1f} \u00b1 {a:.1f} | {hardened:.1f} \u00b1 {b:.1f} | {gain:+.1f} \u00b1 {c:.1f}"
        lines.append(f"| {row['operator']} | {row['severity']} | {cells} |")
    return "\n".join(lines) + "\n"


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Accuracy of both networks under each operator, one panel for each severity; bars show the standard deviation over seeds."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 5), sharey=True, layout="constrained")
    clean = rows[0]
    for axis, severity in zip(axes, degrade.SEVERITIES, strict=True):
        same = [row for row in rows if row["severity"] == severity]
        for kind, colour, shift in (("plain", "tab:red", 0.15), ("hardened", "tab:blue", -0.15)):
            means, spreads = zip(*(mean_and_spread(row[kind]) for row in same), strict=True)
            places = [n + shift for n in range(len(same))]
            axis.errorbar(means, places, xerr=spreads, fmt="o", color=colour, capsize=2, label=f"trained {kind}")
            axis.axvline(mean_and_spread(clean[kind])[0], color=colour, linestyle=":", linewidth=1)
        axis.set(title=severity, xlabel="accuracy in percent (dotted: on clean images)", xlim=(0, 102))
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(same)), [row["operator"] for row in same])
    axes[0].invert_yaxis()
    axes[0].legend(loc="lower left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few, small images and one epoch: shows that it runs")
    parser.add_argument("--seeds", type=int, help=f"networks of each kind (default {Settings.seeds})")
    parser.add_argument("--output", type=Path, default=Path("outputs/training"))
    options = parser.parse_args(arguments)
    settings = QUICK if options.quick else Settings()
    if options.seeds:
        settings = replace(settings, seeds=options.seeds)
    result = measure(settings)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "training.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (options.output / "training.md").write_text(table(result["rows"]), encoding="utf-8")
    plot(result["rows"], options.output / "training.png")
    print(table(result["rows"]))
    print(f"table, plot and figures are in {options.output}")


if __name__ == "__main__":
    main()
