"""The statistics of the noise field, and that its bits depend on its key and the place alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import degrade
from degrade.kernels import noise
from tests import laws
from tests.fake_accelerator import Accelerator

SIZE = (256, 512)
COUNT = 3 * SIZE[0] * SIZE[1]


FIRST = [
    0.21106062829494476,
    0.19555889070034027,
    0.232896625995636,
    -1.2476112842559814,
    -0.8834394216537476,
    0.46855318546295166,
]  # of seed 7


def field(seed: int) -> Tensor:
    """(3, H, W) float64 standard normal noise."""
    return noise.normal(noise.keys([seed]), noise.quantiles(), COUNT).view(3, *SIZE).double()


def added(level: int, seed: int, intensity: float) -> Tensor:
    """What noise adds to a flat grey image, (3, H, W) in levels."""
    flat = torch.full((1, 3, *SIZE), level, dtype=torch.uint8)
    record = {"operator": "gaussian_noise", "intensity": intensity, "params": {"seed": seed}}
    return degrade.replay(flat, [record])[0].double() - level


def correlation(a: Tensor, b: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])


def errors(count: int) -> float:
    """Five standard errors of a mean or a correlation of ``count`` independent values."""
    return 5 / count**0.5


@pytest.mark.parametrize("seed", [0, 1, 2**53 - 1])
def test_distribution(seed):
    values = field(seed).flatten()
    assert abs(values.mean()) < errors(COUNT)
    assert abs(values.std() - 1) < errors(2 * COUNT)
    assert abs(values.pow(3).mean()) < 15**0.5 * errors(COUNT)
    assert abs(values.pow(4).mean() - 3) < 96**0.5 * errors(COUNT)
    # the greatest distance from the normal distribution function (Kolmogorov and Smirnov); 1.95 has a probability of 0.001
    uniform = torch.special.ndtr(values.sort().values)
    steps = torch.arange(1, COUNT + 1, dtype=torch.float64) / COUNT
    distance = torch.maximum((steps - uniform).abs(), (steps - 1 / COUNT - uniform).abs()).max()
    assert distance * COUNT**0.5 < 1.95


def test_the_tails_are_there():
    values = field(3)
    for deviations, share in ((3, 0.0027), (4, 6.33e-5)):
        expected = share * COUNT
        assert abs((values.abs() > deviations).sum() - expected) < 5 * expected**0.5
    assert values.abs().max() < 4.5  # the table ends at 4.3


@pytest.mark.parametrize("seed", [0, 17])
def test_no_correlation_between_neighbours(seed):
    values = field(seed)
    for lag in (1, 2, 3, 7, 8, 16, 64, 128, 256):
        assert abs(correlation(values[..., lag:], values[..., :-lag])) < errors(COUNT), f"{lag} columns"
        if lag < SIZE[0]:
            assert abs(correlation(values[:, lag:], values[:, :-lag])) < errors(COUNT), f"{lag} rows"
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(correlation(values[one], values[other])) < errors(COUNT // 3), f"channels {one}, {other}"
    squares = values.square()
    assert abs(correlation(squares[..., 1:], squares[..., :-1])) < errors(COUNT)
    halves = values.flatten()  # the two values of one hash stand half a field apart
    assert abs(correlation(halves[: COUNT // 2], halves[COUNT // 2 :])) < errors(COUNT // 2)


def test_no_structure_in_frequency():
    """The power of rows' and columns' means is flat: no stripes."""
    values = field(5)
    for means, count in ((values.mean((0, 1)), 3 * SIZE[0]), (values.mean((0, 2)), 3 * SIZE[1])):
        power = torch.fft.rfft(means * count**0.5).abs().square()[1:-1] / len(means)
        assert power.max() < 14  # exponential with mean 1: 256 of them stay below with probability 0.9998
        assert abs(power.mean() - 1) < errors(len(power))


def test_neighbouring_seeds_are_unlike():
    for first, second in ((0, 1), (1, 2), (2, 3), (2**32 - 1, 2**32), (5, 5 + 2**32), (7, 7 + 2**52)):
        assert abs(correlation(field(first), field(second))) < errors(COUNT), f"seeds {first}, {second}"


def test_neighbouring_keys_and_seeds_of_apply_are_unlike():
    flat = torch.full((4, 3, *SIZE), 128, dtype=torch.uint8)
    first = degrade.apply(flat, "gaussian_noise", "low", seed=0, keys=["0", "1", "2", "10"]).double()
    second = degrade.apply(flat[:1], "gaussian_noise", "low", seed=1, keys=["0"]).double()
    fields = [*first, *second]
    for n, one in enumerate(fields):
        for other in fields[:n]:
            assert abs(correlation(one, other)) < errors(COUNT)


@pytest.mark.parametrize("severity", degrade.SEVERITIES)
def test_mean_and_deviation_in_levels(severity):
    """Truncation takes half a level from the mean and adds the variance of a uniform fraction."""
    intensity = degrade.SEVERITIES[severity]
    deviation = 75 * intensity
    values = added(128, 4, intensity)
    unclipped = deviation < 128 / 4.4
    if unclipped:
        assert abs(values.mean() + 0.5) < deviation * errors(COUNT)
        assert abs(values.std() / (deviation**2 + 1 / 12) ** 0.5 - 1) < errors(2 * COUNT)
    else:  # clipped at 0 and 255; compare with what clipping leaves
        expected = np.clip(np.floor(128 + deviation * np.random.default_rng(0).standard_normal(COUNT)), 0, 255) - 128
        assert abs(float(values.mean()) - expected.mean()) < 1.5 * deviation * errors(COUNT)
        assert abs(float(values.std()) / expected.std() - 1) < 1.5 * errors(COUNT)


def test_low_and_high_are_one_field():
    """The same draws at every severity: noise grows, its pattern stays."""
    low, high = (added(128, 6, i) for i in (0.1, 0.2))
    assert correlation(low, high) > 0.995


def test_bits_depend_on_key_and_place_alone():
    keys = noise.keys([3, 4, 5])
    together = noise.normal(keys, noise.quantiles(), 1001)
    for n in range(3):
        laws.assert_same(noise.normal(keys[n : n + 1], noise.quantiles(), 1001)[0], together[n], "alone")
    with Accelerator() as accelerator:
        there = noise.normal(accelerator.put(keys), accelerator.put(noise.quantiles()), 1001)
        laws.assert_same(accelerator.fetch(there), together, "on a device")


@pytest.mark.cuda
def test_bits_are_equal_on_cuda():
    keys = noise.keys([3, 4, 5])
    there = noise.normal(keys.cuda(), noise.quantiles().cuda(), 100_001).cpu()
    laws.assert_same(there, noise.normal(keys, noise.quantiles(), 100_001), "on CUDA")


def test_bits_are_those_of_the_first_release():
    """A change here changes every published noise image."""
    values = noise.normal(noise.keys([7]), noise.quantiles(), 6)[0]
    torch.testing.assert_close(values, torch.tensor(FIRST), rtol=0, atol=0)
