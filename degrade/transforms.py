"""``RandomDegradation``: random degradations inside a training loop, on the batch that is already there."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import PIL.Image
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten
from torchvision import tv_tensors
from torchvision.transforms.v2.functional import pil_to_tensor, to_pil_image

from degrade import functional
from degrade import record as records_
from degrade.draws import Stream, randint, uniform
from degrade.functional import Job
from degrade.mixture import MIXTURES, TRAINING_SEVERITIES, choose
from degrade.operator import Size
from degrade.operators import OPERATORS
from degrade.record import Record, did_you_mean
from degrade.severity import intensity_of

T = TypeVar("T", int, float)
Entry = Record | list[Record] | None  # what happened to one image


class RandomDegradation(nn.Module):
    """Degrade each image of a batch, with probability ``p``, by an operator and at an intensity of its own.

    No geometry is changed, so boxes and masks stay right, but for ``atmospheric_turbulence``, which bends the image by up to
    40 x intensity pixels (and ``motion_blur``, whose even kernels move it by up to one pixel, and ``block_exchange``, which
    swaps blocks); leave it out of ``mixture`` where that matters.

    Without ``keys`` each call takes one seed from torch's global CPU generator: reproducible under ``torch.manual_seed``, different in
    every call, ``DataLoader`` worker and epoch.  With ``keys`` the result is a function of the images and of (``seed``, key, ``epoch``).

    Like dropout, the module acts in training mode only: after ``.eval()`` images pass through, and their records are None.

    Args:
        mixture: ``"training"`` or ``"mmd"`` (the weights of MMD-Bench), or {operator: weight} over any of ``degrade.OPERATORS``.
        p: the probability in [0, 1] that an image is degraded.
        severities: {severity: weight}, where a severity is a name of ``degrade.SEVERITIES`` or a number in [0, 1], or one severity.
            Default: low, mid and high with 0.2, 0.3 and 0.5.
        intensity: (low, high) in [0, 1], instead of ``severities``: an intensity drawn uniformly between them.
        chain: how many operators a degraded image gets, one after the other, all different; or (fewest, most), equally likely.
        quantize: for floats: the values of the 8-bit result, with the gradient of the smooth formula.
        seed: with ``keys`` and ``epoch`` it decides all draws; not used without keys.
        check: whether floats are checked against [0, 1]; None checks on the CPU only.

    Raises:
        ValueError, TypeError: name the argument, what came and what is wanted.

    >>> import torch, degrade
    >>> images = torch.full((4, 3, 32, 32), 0.5)
    >>> aug = degrade.RandomDegradation({"dark_illumination": 1, "scan_lines": 2}, p=1, severities={"low": 1, 0.7: 3})
    >>> out, records = aug(images, keys=["a", "b", "c", "d"], epoch=3, return_records=True)
    >>> [record["operator"] for record in records]
    ['scan_lines', 'dark_illumination', 'dark_illumination', 'dark_illumination']
    >>> torch.equal(out, degrade.replay(images, records))
    True
    """

    def __init__(
        self,
        mixture: str | Mapping[str, float] = "training",
        p: float = 0.5,
        *,
        severities: Mapping[str | float, float] | str | float | None = None,
        intensity: tuple[float, float] | None = None,
        chain: int | tuple[int, int] = 1,
        quantize: bool = False,
        seed: int = 0,
        check: bool | None = None,
    ) -> None:
        super().__init__()
        if intensity is not None and severities is not None:
            raise ValueError(f"severities: got {severities!r} and intensity={intensity!r}, want one of the two")
        self._weights = _weights(mixture)
        self.mixture = mixture if isinstance(mixture, str) else dict(mixture)
        self.p = _number(p, "p")
        self.severities = {} if intensity is not None else _severities(severities)
        self.intensity = None if intensity is None else _pair(intensity, "intensity", _number)
        self.chain = (chain, chain) if isinstance(chain, int) else _pair(chain, "chain", _integer)
        self.quantize = quantize
        self.seed = _integer(seed, "seed")
        self.check = check
        if not 1 <= self.chain[0] <= self.chain[1] <= len(self._weights):
            raise ValueError(f"chain: got {chain!r}, want 1 to {len(self._weights)}, the operators that the mixture can give")

    def extra_repr(self) -> str:
        names = ("mixture", "p", "severities", "intensity", "chain", "quantize", "seed", "check")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name) not in (None, {}))

    @torch.compiler.disable(reason="degrade draws on the host; compile the network that follows")  # type: ignore[no-untyped-call, untyped-decorator]  # no stub
    def forward(self, *inputs: Any, keys: str | Sequence[str] | None = None, epoch: int | None = None, return_records: bool = False) -> Any:
        """Degrade what came, and return the same structure.

        Args:
            inputs: a (B, C, H, W) or (C, H, W) tensor as for ``degrade.apply`` (uint8, or floats in [0, 1]; C = 3 or 1), or a
                ``tv_tensors.Image``, a PIL image of mode RGB or L, or an (H, W, 3), (H, W, 1) or (H, W) array.  Or tuples, lists and
                dicts that hold such images and other things: as in ``torchvision.transforms.v2``, all ``tv_tensors.Image`` and PIL
                images are degraded, with the same draws for all; where there is none, the first plain tensor is.  All else (boxes,
                masks, labels, arrays) is returned as it came.
            keys: B strings that identify the images, or one for one image.
            epoch: a number that makes the draws for the same keys new; default 0.
            return_records: also return B records, from which ``degrade.replay`` makes the same result.

        Returns:
            The same structure with degraded images of the same type, shape, dtype and device; with records, a pair.

        Raises:
            ValueError, TypeError: name the argument, what came and what is wanted.
        """
        if not self.training and not return_records:
            return inputs if len(inputs) != 1 else inputs[0]
        if epoch is not None and keys is None:
            raise ValueError(f"epoch: got {epoch!r} without keys; want keys as well (without them each call draws anew)")
        seed = self.seed if keys is not None else int(torch.randint(2**63 - 1, (), dtype=torch.int64, device="cpu").item())
        turn = 0 if epoch is None else _integer(epoch, "epoch")
        flat, structure = tree_flatten(inputs if len(inputs) != 1 else inputs[0])
        places = _images_in(flat)
        if return_records and len(places) > 1:
            raise ValueError(f"return_records: got {len(places)} images in one sample, want one; call the module once for each")
        chains: list[list[Job]] = []
        for place in places:
            flat[place], chains = self._degraded(flat[place], seed, keys, turn)
        out = tree_unflatten(flat, structure)
        return (out, [self._entry(chain) for chain in chains]) if return_records else out

    def _degraded(self, image: Any, seed: int, keys: str | Sequence[str] | None, epoch: int) -> tuple[Any, list[list[Job]]]:
        tensor = _to_tensor(image)
        batch = functional.as_batch(tensor, self.check if self.training else False)
        names = [str(n) for n in range(len(batch))] if keys is None else functional.each_key(keys, len(batch))
        size = (batch.shape[-2], batch.shape[-1])
        chains = [self._draw(size, seed, key, epoch) if self.training else [] for key in names]
        return _like(functional.run(batch, chains, quantize=self.quantize).reshape(tensor.shape), image), chains

    def _entry(self, chain: list[Job]) -> Entry:
        records = [records_.make(operator.name, i, params) for operator, i, params in chain]
        if not records:
            return None
        return records[0] if self.chain == (1, 1) else records

    def _draw(self, size: Size, seed: int, key: str, epoch: int) -> list[Job]:
        """What happens to one image: a function of its size and of (seed, key, epoch)."""
        stream = Stream(seed, f"{epoch}/{key}", "mixture")
        if stream.uniform("apply") >= self.p:
            return []
        weights, chain = dict(self._weights), list[Job]()
        for step in range(randint(stream.uniform("length"), *self.chain)):
            name = f"{epoch}/{step}/{key}"
            operator = OPERATORS[choose(weights, seed, name)]
            del weights[operator.name]
            if self.intensity is not None:
                i = uniform(Stream(seed, name, "mixture").uniform("intensity"), *self.intensity)
            else:
                i = intensity_of(choose(self.severities, seed, name, "severity"))
            chain.append((operator, i, operator.draw(size, i, Stream(seed, name, operator.name))))
        return chain


def _images_in(flat: Sequence[Any]) -> list[int]:
    """The places of the images in a flattened sample, by the rule of ``torchvision.transforms.v2``."""
    if explicit := [n for n, part in enumerate(flat) if isinstance(part, tv_tensors.Image | PIL.Image.Image)]:
        return explicit
    plain = [n for n, part in enumerate(flat) if isinstance(part, Tensor) and not isinstance(part, tv_tensors.TVTensor)]
    if plain or (len(flat) == 1 and isinstance(flat[0], np.ndarray)):
        return plain[:1] or [0]
    raise TypeError(
        f"inputs: got {', '.join(type(part).__name__ for part in flat) or 'nothing'}, want a tensor, tv_tensors.Image or PIL image among "
        "them, or one array alone"
    )


def _to_tensor(image: Any) -> Tensor:
    """Any image as a plain tensor (..., C, H, W)."""
    if isinstance(image, PIL.Image.Image):
        if image.mode not in ("RGB", "L"):
            raise ValueError(f"images: got a PIL image of mode {image.mode}, want RGB or L; use image.convert('RGB')")
        tensor: Tensor = pil_to_tensor(image)
        return tensor
    if isinstance(image, np.ndarray):
        if image.ndim == 2:
            image = image[..., None]
        if image.ndim != 3:
            raise ValueError(f"images: got an array of shape {image.shape}, want (H, W, 3), (H, W, 1) or (H, W)")
        return torch.from_numpy(np.array(image)).permute(2, 0, 1)
    plain: Tensor = image.as_subclass(Tensor)
    return plain


def _like(result: Tensor, image: Any) -> Any:
    """``result`` as the kind of image that came."""
    if isinstance(image, PIL.Image.Image):
        return to_pil_image(result)
    if isinstance(image, np.ndarray):
        return result.permute(1, 2, 0).contiguous().numpy().reshape(image.shape)
    if isinstance(image, tv_tensors.Image):
        return tv_tensors.wrap(result, like=image)
    return result


def _weights(mixture: str | Mapping[str, float]) -> dict[str, float]:
    """The operators that can be drawn, in the order of the table, so that the order in which they were given decides nothing."""
    if isinstance(mixture, str):
        if mixture not in MIXTURES:
            wanted = f"one of {', '.join(MIXTURES)} or {{operator: weight}}"
            raise ValueError(f"mixture: got {mixture!r}, want {wanted}{did_you_mean(mixture, MIXTURES)}")
        mixture = MIXTURES[mixture]
    else:
        _check_weights(mixture, "mixture")
        for name in mixture:
            if name not in OPERATORS:
                raise ValueError(f"mixture: got {name!r}, want names of degrade.OPERATORS{did_you_mean(name, OPERATORS)}")
    return {name: float(mixture[name]) for name in OPERATORS if mixture.get(name, 0) > 0}


def _severities(severities: Mapping[str | float, float] | str | float | None) -> dict[str | float, float]:
    if severities is None:
        return dict(TRAINING_SEVERITIES)
    if not isinstance(severities, Mapping):
        severities = {intensity_of(severities, "severities"): 1}
    for severity in severities:
        intensity_of(severity, "severities")
    _check_weights(severities, "severities")
    return {severity: float(weight) for severity, weight in severities.items()}


def _check_weights(weights: Mapping[Any, float], argument: str) -> None:
    if not isinstance(weights, Mapping):
        raise TypeError(f"{argument}: got {type(weights).__name__}, want a mapping to weights")
    for name, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, numbers.Real) or not 0 <= weight < float("inf"):
            raise ValueError(f"{argument}[{name!r}]: got {weight!r}, want a finite number >= 0")
    if not sum(weights.values()) > 0:
        raise ValueError(f"{argument}: got {dict(weights)}, want at least one weight above 0")


def _number(value: object, argument: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{argument}: got {type(value).__name__}, want a number in [0, 1]")
    if not 0 <= float(value) <= 1:
        raise ValueError(f"{argument}: got {value}, want a number in [0, 1]")
    return float(value)


def _integer(value: object, argument: str) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{argument}: got {type(value).__name__}, want an integer")
    return int(value)


def _pair(value: object, argument: str, parse: Callable[[object, str], T]) -> tuple[T, T]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise TypeError(f"{argument}: got {value!r}, want a pair (lowest, highest)")
    low, high = parse(value[0], f"{argument}[0]"), parse(value[1], f"{argument}[1]")
    if low > high:
        raise ValueError(f"{argument}: got {value!r}, want the lower number first")
    return low, high
