"""Array objects that say they are in GPU memory, for tests with the driver that is none."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterable
from typing import Any

import numpy as np


class Cuda:
    """A NumPy array's memory as an object with the CUDA array interface."""

    def __init__(self, array: np.ndarray, read_only: bool = False):
        self.array = array  # kept alive
        self.dtype = array.dtype
        self.__cuda_array_interface__ = {
            "shape": array.shape, "strides": array.strides, "typestr": array.dtype.str.replace("=", "<"), "version": 3,
            "data": (array.ctypes.data if array.size else 0, read_only)}


def at(pointer: int, shape: tuple, strides: tuple | None = None, typestr: str = "<f4", **more: Any) -> Any:
    """An array at an address where nothing is."""
    a = Cuda(np.empty(0, np.float32))
    del a.dtype
    a.__cuda_array_interface__ = {"shape": shape, "strides": strides, "typestr": typestr, "version": 3,
                                  "data": (pointer, False)}
    a.__dict__.update(more)
    return a


class Tracked:
    """What PyTorch's autograd knows of a tensor, for stand-ins: `version` counts what was written to it, `history` is
    why it has no gradient.
    """

    __torch_dispatch__ = None
    requires_grad, is_leaf, version, history = False, True, 0, None

    def _is_view(self) -> bool:
        return False

    def numel(self) -> int:
        return 1

    def as_subclass(self, cls: type) -> Tracked:
        return self


class _Function:
    """A stand-in for torch.autograd.Function."""

    @classmethod
    def apply(cls, t: Tracked, why: str) -> None:
        t.history = why


def autograd(torch: Any, grad_mode: bool = True) -> Any:
    """A stand-in for torch, with what launches ask of its autograd."""
    def increment(tensors: Iterable[Any]) -> None:
        for t in tensors:
            t.version += 1

    torch.is_grad_enabled = lambda: grad_mode
    torch.autograd = types.SimpleNamespace(Function=_Function)
    torch._C = types.SimpleNamespace(_increment_version=increment, DisableTorchFunctionSubclass=contextlib.nullcontext)
    return torch
