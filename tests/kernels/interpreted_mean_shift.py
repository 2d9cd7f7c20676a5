"""The Triton bodies of mean shift against the torch references, under Triton's interpreter; test_triton.py runs this."""

from __future__ import annotations

import os

import pytest
import torch
from torch import Tensor

from degrade.kernels import mean_shift
from degrade.kernels.cuda import mean_shift as body
from degrade.kernels.mean_shift import mean_shift_climb_backward_reference, mean_shift_climb_reference
from tests.kernels.gradients import check_floats

assert os.environ["TRITON_INTERPRET"] == "1"  # Triton looked at it when the bodies were imported

SIZES = [(1, 1), (1, 2), (2, 1), (3, 3), (5, 4), (17, 23), (1, 150)]  # half of the last is wider than a block
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)


def levels(batch: int, *size: int, low: int = 0, high: int = 256, seed: int = 0) -> Tensor:
    """(batch, 3, H, W) bytes, not contiguous."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, (batch, *size, 3), dtype=torch.uint8, generator=generator).permute(0, 3, 1, 2)


def halved(size: tuple[int, int]) -> tuple[int, int]:
    return (size[0] + 1) // 2, (size[1] + 1) // 2


def somewhere(batch: int, *size: int, share: float = 0.5) -> Tensor:
    return torch.rand(batch, *size, generator=torch.Generator().manual_seed(1)) < share


def same(got: Tensor, wanted: Tensor) -> None:
    assert got.dtype == wanted.dtype
    assert got.is_contiguous()
    assert torch.equal(got, wanted)


@EACH_SIZE
def test_pyramid_of_bytes(size: tuple[int, int]) -> None:
    images, coarse = (torch.cat([levels(1, *s), levels(1, *s, low=250)]).permute(0, 1, 3, 2).mT for s in (size, halved(size)))
    same(body.pyramid_down(images), mean_shift.pyramid_down_reference(images))
    given = images, coarse, somewhere(2, *size)
    same(body.merge(*given), mean_shift.merge_reference(*given))


@pytest.mark.parametrize(("size", "dtype"), [((5, 4), torch.float32), *((size, torch.float64) for size in SIZES)], ids=str)
def test_pyramid_of_floats(size: tuple[int, int], dtype: torch.dtype) -> None:
    images = levels(1, *size).to(dtype)
    check_floats(
        body.pyramid_down,
        lambda gradient, images, wanted: [body.pyramid_down_backward(gradient, images)],
        mean_shift.pyramid_down_reference,
        images,
        differentiated=(0,),
    )
    check_floats(
        body.merge,
        lambda gradient, fine, coarse, edges, wanted: body.merge_backward(gradient, coarse, edges, wanted),
        mean_shift.merge_reference,
        images,
        levels(1, *halved(size), seed=2).to(dtype),
        somewhere(1, *size),
        differentiated=(0, 1),
    )


@pytest.mark.parametrize(
    ("size", "dtype"), [((8, 9), torch.float64), ((5, 4), torch.float32), *((size, torch.uint8) for size in SIZES)], ids=str
)
def test_edges(size: tuple[int, int], dtype: torch.dtype) -> None:
    """Nearly all, a part and hardly any; a difference of the radius is one, and so is one of 4 where that is larger."""
    found = []
    for high, radius in ((256, 30), (24, 15), (4, 5), (3, 2)):
        coarse = levels(2, *halved(size), high=high).to(dtype)
        coarse[:, 1:] = 0  # so that many differ by the radius exactly
        given = coarse, torch.tensor([radius, radius + 1], dtype=torch.int32), *size
        got = body.edges(*given)
        same(got, mean_shift.edges_reference(*given))
        found.append(got.float().mean())
    if min(size) > 4:
        assert found[0] > 0.2
        assert 0 < found[1] < 0.9
    assert found[3] == 0


@pytest.mark.parametrize("size", [(5, 7), (5, 6), (6, 7)], ids=str)
def test_edges_are_not_stored_past_the_end(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    memory = torch.ones(2 * size[0] * size[1] + 9, dtype=torch.bool)
    monkeypatch.setattr(body.torch, "empty", lambda shape, **options: memory[:-9].view(shape))
    assert not body.edges(torch.zeros(2, 3, *halved(size)), RADIUS, *size).any()
    assert memory[-9:].all()


# Colours so near to one another that the climbs go on, of two images at different levels.
IMAGES = torch.cat([levels(1, 8, 9, low=90, high=100), levels(1, 8, 9, low=100, high=112, seed=2)])
RADIUS = torch.tensor([5, 4], dtype=torch.int32)
WANTED = somewhere(2, 8, 9, share=0.8)
FRACTIONS = torch.rand(IMAGES[:1].shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.5


@pytest.mark.parametrize(("level", "everywhere"), [(0, False), (1, True)])
def test_climbs_of_whole_levels_equal_the_reference(level: int, everywhere: bool) -> None:
    wanted = None if everywhere else WANTED
    got = body.climb(IMAGES, wanted, RADIUS, level)
    same(got, mean_shift_climb_reference(IMAGES, wanted, RADIUS, level, 5).contiguous())
    assert (got != IMAGES).movedim(1, -1)[WANTED].float().mean() > 0.5


@pytest.mark.parametrize(("size", "radius"), [((1, 40), (3, 0)), ((8, 9), (1, 2))])
def test_climbs_in_small_windows_equal_the_reference(size: tuple[int, int], radius: tuple[int, int]) -> None:
    images, given = levels(2, *size, low=100, high=103), torch.tensor(radius, dtype=torch.int32)
    for level in (0, 1):
        same(body.climb(images, None, given, level), mean_shift_climb_reference(images, None, given, level, 3).contiguous())


def test_climbs_of_more_than_a_block() -> None:
    """The pixels of two images are listed in two blocks each; in one there is none."""
    images, radius = levels(2, 1, 1060, low=100, high=103), torch.tensor([1, 2], dtype=torch.int32)
    wanted = somewhere(2, 1, 1060, share=0.05)
    wanted[0, :, 1024:] = False
    wanted[1, :, 1024:] = True
    same(body.climb(images, wanted, radius, 0), mean_shift_climb_reference(images, wanted, radius, 0, 2).contiguous())
    same(body.climb(images, None, radius * 0, 0), mean_shift_climb_reference(images, None, radius * 0, 0, 0).contiguous())


@pytest.mark.parametrize(("dtype", "everywhere"), [(torch.float64, False), (torch.float32, True)], ids=str)
def test_smooth_climbs_and_their_gradient_equal_the_reference(dtype: torch.dtype, everywhere: bool) -> None:
    images, radius, mask = (IMAGES + FRACTIONS)[1:, :, :4, :7].to(dtype), RADIUS[1:], WANTED[1:, :4, :7]
    wanted = None if everywhere else mask
    tolerance = 1e-9 if dtype == torch.float64 else 1e-4
    got = body.climb(images, wanted, radius, 0)
    torch.testing.assert_close(got, mean_shift_climb_reference(images, wanted, radius, 0, 5), rtol=0, atol=tolerance)
    assert (got != images).movedim(1, -1)[mask].float().mean() > 0.5
    gradient = torch.randn(images.shape, generator=torch.Generator().manual_seed(2), dtype=dtype)
    back = body.climb_backward(gradient, images, wanted, radius, 0)
    expected = mean_shift_climb_backward_reference(gradient, images, wanted, radius, 0, 5)
    torch.testing.assert_close(back, expected, rtol=0, atol=tolerance)


def test_nothing_to_climb() -> None:
    nowhere = torch.zeros_like(WANTED)
    assert (body.climb(IMAGES, nowhere, RADIUS, 0) == 0).all()
    none = IMAGES[:0]
    for wanted in (nowhere[:0], None):
        assert body.climb(none, wanted, RADIUS[:0], 0).shape == none.shape
        assert body.climb_backward(none.float(), none.float(), wanted, RADIUS[:0], 0).shape == none.shape
    half = body.pyramid_down(none)
    assert half.shape == (0, 3, 4, 5)
    assert body.edges(half, RADIUS[:0], 8, 9).shape == (0, 8, 9)
    assert body.merge(none, half, nowhere[:0]).shape == none.shape
