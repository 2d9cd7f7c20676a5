"""Optimise through the operators: recover an image from its degraded version, and find the mixture that hurts a classifier most.

    pip install 'degrade[examples]'
    python examples/recover.py                # about three minutes on two cores
    python examples/recover.py --quick        # half a minute, and no meaningful figures

Prints both tables and writes ``recover.json`` and ``recover.jpg`` to ``--output``.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_sample_image
from torch import Tensor, nn
from torch.nn import functional as F

import degrade

from training import as_floats, digits, train

RECOVERED = (("motion_blur", "mid"), ("lens_blur", "high"), ("atmospheric_turbulence", "low"), ("watermark_damage", "low"))
SMOOTHNESS = 3e-4  # weight of the total variation, against a mean squared error
ATTACK = ("color_diffusion", "dark_illumination", "gaussian_noise")
BUDGET = 0.8  # length of the vector of the three intensities


def psnr(image: Tensor, truth: Tensor) -> float:
    """Decibels, for images in [0, 1]."""
    return -10 * math.log10(F.mse_loss(image, truth).item())


def total_variation(image: Tensor) -> Tensor:
    return image.diff(dim=-1).abs().mean() + image.diff(dim=-2).abs().mean()


def recover(observed: Tensor, record: dict[str, Any], steps: int) -> Tensor:
    """The image in [0, 1] whose degraded version is nearest to ``observed``; the record says how it was degraded."""
    estimate = observed.clone().requires_grad_()
    optimizer = torch.optim.Adam([estimate], lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        again = degrade.replay(estimate.clamp(0, 1), record)
        loss = F.mse_loss(again, observed) + SMOOTHNESS * total_variation(estimate)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return estimate.detach().clamp(0, 1)


def recover_all(steps: int, operators: tuple[tuple[str, str], ...]) -> tuple[list[dict[str, Any]], list[Tensor]]:
    """PSNR against the truth before and after, and the pictures (truth, observed, recovered) of each."""
    photograph = torch.from_numpy(load_sample_image("china.jpg").copy()).permute(2, 0, 1)
    truth = photograph[:, 100:292, 200:392]
    rows, pictures = [], []
    for name, severity in operators:
        observed, (record,) = degrade.apply(truth, name, severity, seed=0, return_records=True)  # 8 bits, as a camera would give them
        recovered = recover(as_floats(observed), record, steps)
        before, after = (psnr(image, as_floats(truth)) for image in (as_floats(observed), recovered))
        rows.append({"operator": name, "severity": severity, "psnr_degraded": round(before, 2), "psnr_recovered": round(after, 2)})
        pictures += [as_floats(truth), as_floats(observed), recovered]
        print(f"{name} {severity}: {before:.2f} dB degraded, {after:.2f} dB recovered", flush=True)
    return rows, pictures


def attacked_loss(model: nn.Module, images: Tensor, labels: Tensor, intensities: Tensor) -> Tensor:
    """The classifier's loss on images that pass through all of ``ATTACK``, one after the other."""
    for name, intensity in zip(ATTACK, intensities, strict=True):
        images = degrade.apply(images, name, intensity.clamp(0, 1), seed=0)
    return F.cross_entropy(model(images), labels)


def on_budget(direction: Tensor) -> Tensor:
    return BUDGET * direction / direction.norm()


def worst_mixture(model: nn.Module, images: Tensor, labels: Tensor, steps: int) -> Tensor:
    """How to spend ``BUDGET`` on the three operators so that the loss is greatest: gradient ascent from the middle and near each corner."""
    best, best_loss = torch.empty(0), -math.inf
    for start in torch.cat([torch.ones(1, len(ATTACK)), 0.2 + torch.eye(len(ATTACK))]).double():
        direction = start.clone().requires_grad_()
        optimizer = torch.optim.Adam([direction], lr=0.1)
        for _ in range(steps):
            intensities = on_budget(direction.abs())
            loss = attacked_loss(model, images, labels, intensities)
            if loss.item() > best_loss:
                best, best_loss = intensities.detach(), loss.item()
            optimizer.zero_grad()
            (-loss).backward()
            optimizer.step()
    return best


def attack(steps: int, epochs: int, grid: int) -> list[dict[str, Any]]:
    """Loss and accuracy at the mixture that the gradient finds, at simple ones, and at the best of a grid."""
    train_images, train_labels, images, labels = digits(64 if epochs > 1 else 32)
    model = train(train_images, train_labels, epochs, seed=0).requires_grad_(False)
    chosen, chosen_labels = as_floats(images[:100]), labels[:100]
    found = worst_mixture(model, chosen, chosen_labels, steps)
    mixtures = {"none": torch.zeros(3), "equal": on_budget(torch.ones(3))}
    mixtures |= {f"only {name}": on_budget(torch.eye(3)[n]) for n, name in enumerate(ATTACK)}
    points = [on_budget(torch.tensor([a, b, grid - a - b]).float()) for a in range(grid + 1) for b in range(grid + 1 - a)]
    with torch.no_grad():
        mixtures[f"best of a grid of {len(points)}"] = max(points, key=lambda p: attacked_loss(model, chosen, chosen_labels, p).item())
        mixtures[f"by gradient, {1 + len(ATTACK)} starts of {steps} steps"] = found
        rows = []
        for name, intensities in mixtures.items():
            degraded = as_floats(images[100:])  # images that the search has not seen
            loss = attacked_loss(model, chosen, chosen_labels, intensities).item()
            for operator, intensity in zip(ATTACK, intensities, strict=True):
                degraded = degrade.apply(degraded, operator, intensity.item(), seed=1)
            accuracy = (model(degraded).argmax(1) == labels[100:]).float().mean().item()
            row = {"mixture": name, "intensities": [round(i, 3) for i in intensities.tolist()], "loss": round(loss, 3)}
            rows.append({**row, "accuracy_on_others": round(accuracy, 3)})
            print(f"{name:38}{row['intensities']!s:22} loss {loss:.3f}, accuracy on other images {accuracy:.3f}", flush=True)
    return rows


def show(pictures: list[Tensor], rows: list[dict[str, Any]], path: Path) -> None:
    figure, axes = plt.subplots(len(rows), 3, figsize=(7.5, 2.6 * len(rows)), layout="constrained", squeeze=False)
    for n, axis in enumerate(axes.flat):
        row = rows[n // 3]
        axis.imshow(pictures[n].permute(1, 2, 0).numpy(), interpolation="nearest")
        axis.set_axis_off()
        titles = ("truth", f"{row['operator']} {row['severity']}\n{row['psnr_degraded']} dB", f"recovered\n{row['psnr_recovered']} dB")
        axis.set_title(titles[n % 3], fontsize=9)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few steps: shows that it runs")
    parser.add_argument("--output", type=Path, default=Path("outputs/recover"))
    options = parser.parse_args(arguments)
    if options.quick:
        recovered, pictures = recover_all(steps=3, operators=RECOVERED[:2])
        attacked = attack(steps=2, epochs=1, grid=1)
    else:
        recovered, pictures = recover_all(steps=300, operators=RECOVERED)
        attacked = attack(steps=15, epochs=20, grid=9)
    options.output.mkdir(parents=True, exist_ok=True)
    result = {"recovered": recovered, "attack": {"operators": ATTACK, "budget": BUDGET, "rows": attacked}}
    (options.output / "recover.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    show(pictures, recovered, options.output / "recover.jpg")


if __name__ == "__main__":
    main()
