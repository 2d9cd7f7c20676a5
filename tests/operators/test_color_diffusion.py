"""The spots of color diffusion; its pixels are compared with OpenCV's in tests/test_oracles.py."""

import pytest
import torch

from degrade.operators.environment.color_diffusion import ColorDiffusion, Params

DIFFUSION = ColorDiffusion()
HIGH = 0.95


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_later_spots_cover_earlier_ones(dtype):
    images = torch.full((2, 3, 9, 12), 40, dtype=dtype)
    params = [Params(((4, 4, 30, 254), (4, 4, 2, 0))), Params(())]
    plan = DIFFUSION.plan((9, 12), [HIGH, HIGH], params)
    bare = DIFFUSION.plan((9, 12), [HIGH, HIGH], [Params(()), Params(())])
    intensity = torch.full((2,), HIGH, dtype=torch.float64)
    out, without = DIFFUSION.apply(images, plan, intensity), DIFFUSION.apply(images, bare, intensity)
    assert torch.equal(out[1], without[1])
    kept, mixed = 1 - 0.9 * HIGH, 0.9 * HIGH
    for pixel, value in (((0, 11), 254), ((4, 4), 0), ((4, 7), 254)):
        expected = kept * 40 + mixed * value
        assert out[0, :, *pixel].tolist() == pytest.approx([round(expected) if dtype == torch.uint8 else expected] * 3, abs=1e-4)


def test_check():
    DIFFUSION.check((9, 9), HIGH, Params(((-5, 400, 0, 254),)))
    with pytest.raises(ValueError, match=r"spots\[0\]\[3\]: got 255, want 0\.\.254"):
        DIFFUSION.check((9, 9), HIGH, Params(((0, 0, 1, 255),)))
    with pytest.raises(ValueError, match=r"spots\[1\]\[2\]: got -1"):
        DIFFUSION.check((9, 9), HIGH, Params(((0, 0, 1, 9), (0, 0, -1, 9))))
    with pytest.raises(ValueError, match=r"spots\[0\]\[0\]: got"):
        DIFFUSION.check((9, 9), HIGH, Params(((2**40, 0, 1, 9),)))
