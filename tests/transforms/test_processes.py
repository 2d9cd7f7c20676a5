"""``RandomDegradation`` in the workers of a ``DataLoader`` and in the processes of a distributed run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed import all_gather, destroy_process_group, init_process_group
from torch.multiprocessing import spawn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import degrade

QUICK = {"dark_illumination": 1, "scan_lines": 1, "gaussian_noise": 1, "graffiti": 1}
COUNT = 12


def picture(n: int) -> Tensor:
    return torch.full((3, 16, 24), 20 * n, dtype=torch.uint8)


def keys(count: int = COUNT) -> list[str]:
    return [f"image {n}" for n in range(count)]


class Pictures(Dataset[Any]):
    """Pictures degraded in the worker, with keys or without; ``epoch`` is shared memory, so that persistent workers see it."""

    def __init__(self, keyed: bool) -> None:
        self.aug = degrade.RandomDegradation(QUICK, p=0.9)
        self.keyed = keyed
        self.epoch = torch.zeros((), dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, n: int) -> Tensor:
        image = picture(n)
        return self.aug(image, keys=keys()[n], epoch=int(self.epoch)) if self.keyed else self.aug(image)


def run_epochs(dataset: Pictures, epochs: Sequence[int], workers: int, start: str | None, persistent: bool) -> list[Tensor]:
    loader = DataLoader(dataset, batch_size=2, num_workers=workers, multiprocessing_context=start, persistent_workers=persistent)
    result = []
    for epoch in epochs:
        dataset.epoch.fill_(epoch)
        result.append(torch.cat(list(loader)))
    return result


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize(
    ("workers", "start", "persistent", "epochs"),
    [
        (0, None, False, [0, 1]),
        (2, "fork", False, [0, 1]),
        (4, "fork", True, [0, 1]),
        (2, "spawn", False, [1]),  # one epoch: starting workers takes seconds
        (4, "spawn", True, [0, 1]),
    ],
)
def test_keys_and_epoch_decide_in_every_worker(workers, start, persistent, epochs):
    batch = torch.stack([picture(n) for n in range(COUNT)])
    wanted = [degrade.RandomDegradation(QUICK, p=0.9)(batch, keys=keys(), epoch=epoch) for epoch in range(2)]
    assert not torch.equal(*wanted)
    found = run_epochs(Pictures(keyed=True), epochs, workers, start, persistent)
    for epoch, images in zip(epochs, found, strict=True):
        assert torch.equal(images, wanted[epoch]), f"epoch {epoch}"


@pytest.mark.parametrize("persistent", [False, True])
def test_without_keys_workers_and_epochs_differ(persistent):
    def run() -> list[Tensor]:
        torch.manual_seed(4)
        return run_epochs(Pictures(keyed=False), [0, 1], 2, "fork", persistent)

    first, again = run(), run()
    assert torch.equal(torch.stack(first), torch.stack(again)), "not reproducible under torch.manual_seed"
    assert not torch.equal(*first), "two epochs are the same"


class Noise(Dataset[Any]):
    """The same picture everywhere: what differs are the draws."""

    def __init__(self) -> None:
        self.aug = degrade.RandomDegradation({"gaussian_noise": 1}, p=1)

    def __len__(self) -> int:
        return 8

    def __getitem__(self, n: int) -> Tensor:
        return self.aug(picture(6))


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_without_keys_no_two_images_share_draws():
    images = torch.cat(list(DataLoader(Noise(), batch_size=1, num_workers=4, multiprocessing_context="fork")))
    assert len(images.flatten(1).unique(dim=0)) == 8


def _train_step(rank: int, folder: str) -> None:
    """One step of a model that begins with the module; what came out is written to ``folder``."""
    init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    aug = degrade.RandomDegradation({"gaussian_noise": 1}, p=1)
    model = DistributedDataParallel(nn.Sequential(aug, nn.Flatten(), nn.Linear(3 * 16 * 24, 2)))
    batch = torch.stack([picture(n) for n in range(4)]).float() / 255
    torch.manual_seed(100 + rank)
    model(batch).square().sum().backward()
    gradient = model.module[2].weight.grad
    assert gradient is not None
    gradients = [torch.empty_like(gradient) for _ in range(2)]
    all_gather(gradients, gradient)
    torch.manual_seed(100 + rank)
    found = {"gradients": gradients, "unkeyed": aug(batch), "keyed": aug(batch, keys=keys(4), epoch=5)}
    torch.save(found, f"{folder}/{rank}.pt")
    destroy_process_group()


def test_distributed_data_parallel(tmp_path: Path):
    spawn(_train_step, args=(str(tmp_path),), nprocs=2)
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    for found in ranks:
        assert torch.equal(*found["gradients"])
        batch = torch.stack([picture(n) for n in range(4)]).float() / 255
        wanted = degrade.RandomDegradation({"gaussian_noise": 1}, p=1)(batch, keys=keys(4), epoch=5)
        assert torch.equal(found["keyed"], wanted), "keys do not decide alone"
    assert not torch.equal(ranks[0]["unkeyed"], ranks[1]["unkeyed"]), "ranks with their own seeds draw the same"
