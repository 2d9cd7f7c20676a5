"""A pretend accelerator: real values and gradients on a device that is not the CPU, and no hardware.

Its tensors live on the device ``pretend:0`` and hold their values in a CPU tensor.  Every operation passes through here, so
what a real accelerator would punish is found: reading a value back (which stalls a real device), mixing devices, and a factory call
that forgets its device.  Custom operators of ``degrade`` run their plain torch references, operation by operation; their CPU
bodies would prove nothing.

    with Accelerator() as accelerator:
        images = accelerator.put(images)
        result = accelerator.fetch(degrade.apply(images, ...))
        accelerator.uploads  # copies from the host so far
"""

from __future__ import annotations

import importlib
import pkgutil
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.library import CustomOpDef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

import degrade.kernels
from degrade.kernels.dispatch import Kernel

NAME = "pretend"
_setup_privateuseone_for_python_backend(NAME)
torch.pretend.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]  # autocast asks for it
torch.pretend.get_rng_state = lambda device=None: torch.empty(0)  # opcheck asks for it
torch.pretend.set_rng_state = lambda state, device=None: None
DEVICE = torch.device(NAME, 0)

# The result's shape or value has to be known on the host.
_SYNCS = {
    "_local_scalar_dense", "_unique", "_unique2", "bincount", "equal", "histc", "is_nonzero", "linalg_lstsq", "masked_select", "nonzero",
    "unique_consecutive", "unique_dim", "unique_dim_consecutive", "allclose",
}  # fmt: skip
_COPIES = {"_to_copy", "copy_"}
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"}


class HostSync(RuntimeError):
    """The host waits for the device."""


class DeviceMix(RuntimeError):
    """CPU and device tensors meet in one operation."""


class PretendTensor(torch.Tensor):
    """A tensor on the pretend device; ``values`` are its values on the CPU."""

    values: Tensor

    @staticmethod
    def __new__(cls, values: Tensor) -> PretendTensor:
        made: PretendTensor = torch.Tensor._make_wrapper_subclass(
            cls, values.shape, strides=values.stride(), storage_offset=values.storage_offset(), dtype=values.dtype, device=DEVICE
        )
        made.values = values
        return made

    def __repr__(self, **_: Any) -> str:
        return f"PretendTensor({self.values})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _active is None:
            raise RuntimeError(f"{func} on the pretend device outside of `with Accelerator()`")
        return _active.run(func, args, kwargs or {})


_active: Accelerator | None = None


class Accelerator(TorchDispatchMode):
    """Runs what happens inside its ``with`` block.

    Attributes:
        uploads: tensors copied from the host to the device.
        downloads: tensors copied back; more than ``allowed_downloads`` raise ``HostSync``.
        references: names of the custom operators whose references have run.
    """

    def __init__(self, allowed_downloads: int = 0) -> None:
        super().__init__()
        self.allowed_downloads = allowed_downloads
        self.uploads = self.downloads = 0
        self.references: set[str] = set()

    def __enter__(self) -> Accelerator:
        global _active
        if _active is not None:
            raise RuntimeError("one Accelerator at a time")
        _active = self
        self._lifting = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device=) makes a CPU tensor and copies it
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        global _active
        super().__exit__(*error)
        torch._C._set_only_lift_cpu_tensors(self._lifting)
        _active = None

    @staticmethod
    def put(values: Tensor) -> Tensor:
        """``values`` on the device, not counted."""
        leaf = PretendTensor(values.detach().clone(memory_format=torch.preserve_format))
        return leaf.requires_grad_(values.requires_grad)

    @staticmethod
    def fetch(tensor: Tensor) -> Tensor:
        """The values of a device tensor, without gradient history, not counted."""
        if not isinstance(tensor, PretendTensor):
            raise TypeError(f"got a tensor on {tensor.device}, want one on {DEVICE}")
        return tensor.values.detach()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.run(func, args, kwargs or {})

    def run(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        name = func.overloadpacket.__name__
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        on_device = any(isinstance(t, PretendTensor) for t in tensors)
        if func.namespace == "degrade" and on_device:
            self.references.add(name)
            with _Again(self):
                return reference(name)(*args, **kwargs)
        return self._plain(func, name, args, kwargs, tensors, on_device)

    def _plain(self, func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any], tensors: list[Tensor], on_device: bool) -> Any:
        wanted = kwargs.get("device")
        to_device = _is_pretend(wanted) if wanted is not None else on_device
        if name in _COPIES:
            source = args[1] if name == "copy_" else args[0]
            if name == "copy_":
                to_device = isinstance(args[0], PretendTensor)
            self._count_copy(func, isinstance(source, PretendTensor), to_device)
        elif on_device:
            self._refuse(func, name, args, kwargs, tensors)
        if kwargs.get("generator") is not None and to_device:
            raise DeviceMix(f"{func}: a CPU generator on the device")
        result = func(*tree_map(_unwrapped, tuple(args)), **tree_map(_unwrapped, kwargs))
        if func._schema.is_mutable and name.endswith("_"):
            return args[0]
        if not to_device:
            return result
        return tree_map(lambda leaf: PretendTensor(leaf) if isinstance(leaf, Tensor) else leaf, result)

    def _count_copy(self, func: Any, from_device: bool, to_device: bool) -> None:
        if from_device and not to_device:
            self.downloads += 1
            if self.downloads > self.allowed_downloads:
                raise HostSync(f"{func}: a copy to the host")
        if to_device and not from_device:
            self.uploads += 1

    @staticmethod
    def _refuse(func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any], tensors: list[Tensor]) -> None:
        if name in _SYNCS:
            raise HostSync(f"{func}")
        if name == "repeat_interleave" and isinstance(args[-1], Tensor) and kwargs.get("output_size") is None:
            raise HostSync(f"{func} without output_size")
        if name in _INDEXING:
            fills = name.startswith(("index_put", "_index_put", "_unsafe_index_put")) and args[2].numel() == 1
            for index in args[1]:
                if index is not None and index.dtype in (torch.bool, torch.uint8) and not fills:
                    raise HostSync(f"{func} with a mask")
        if any(t.dim() > 0 and not isinstance(t, PretendTensor) for t in tensors):
            raise DeviceMix(f"{func}: tensors on {sorted({str(t.device) for t in tensors})}; a factory call without device=?")


class _Again(TorchDispatchMode):
    """Brings the operations of a custom operator's reference to the accelerator, which is off while it dispatches."""

    def __init__(self, accelerator: Accelerator) -> None:
        super().__init__()
        self.accelerator = accelerator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.accelerator.run(func, args, kwargs or {})


def _is_pretend(device: object) -> bool:
    return torch.device(device).type == NAME  # whatever torch takes


def _unwrapped(leaf: Any) -> Any:
    if isinstance(leaf, PretendTensor):
        return leaf.values
    if isinstance(leaf, torch.device) and leaf.type == NAME:
        return torch.device("cpu")
    return leaf


def reference(operator: str) -> Callable[..., Any]:
    """The plain torch reference from which the custom operator ``degrade::<operator>`` was made."""
    for module in kernel_modules():
        for value in vars(module).values():
            if isinstance(value, Kernel) and value.name == operator:
                return value._contiguous
            if isinstance(value, CustomOpDef) and value._qualname == f"degrade::{operator}":
                made_from = value._init_fn
                if not made_from.__name__.endswith("_reference"):
                    raise LookupError(f"degrade::{operator} was made from {made_from.__name__}, which is not called a reference")
                return made_from
    raise LookupError(f"degrade::{operator} is in no module of degrade.kernels")


def kernel_modules() -> list[types.ModuleType]:
    names = [info.name for info in pkgutil.iter_modules(degrade.kernels.__path__) if not info.ispkg and not info.name.startswith("_")]
    return [importlib.import_module(f"degrade.kernels.{name}") for name in names]
