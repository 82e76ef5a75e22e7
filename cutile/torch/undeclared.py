"""Refuses operators whose kernel stores to an argument that `inout` does not name.

PyTorch believes the schema: it drops a call whose results nobody uses, and moves one across reads of what it stores to.
What a kernel stores to is found by typing it for arguments like those of a call, once for each kind of call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from cutile.dtypes import INFO, from_foreign
from cutile.functions import stored
from cutile.functions.tile_function import TileFunction

Outputs = Sequence[tuple[str, Sequence[Any], torch.dtype]]  # names, shapes and dtypes


def refuse(function: TileFunction, given: Mapping[str, Any],
           planned: Callable[[], tuple[Mapping[str, Any], Outputs]]) -> None:
    """TileTypeError if a call of this kind stores to what is not declared. Other errors are left to the call.

    given     the arguments, which may be fake tensors and symbols
    planned   gives the values of all parameters that callers pass, and the outputs
    """
    kind = "declared", tuple(given), tuple(map(_kind, given.values()))
    if kind in function.checked:
        return
    try:
        values, outputs = planned()
        samples = {n: _sample(v) for n, v in values.items()}
        samples.update((n, _array(shape, dtype)) for n, shape, dtype in outputs)
        kernel = function.launched
        program = kernel.program(kernel.classify(tuple(samples[n] for n in kernel.names)))
    except Exception:
        return
    stored.check_declared(function, program.kernel)
    function.checked.keep(kind, True)


def _kind(value: Any) -> Any:
    """What typing reads of an argument. Each call asks for it, and a text takes three times as long as a number."""
    cls = type(value)
    if cls is int or cls is bool:
        return cls, value
    if isinstance(value, torch.Tensor):
        return value.dtype, value.ndim
    return tuple(map(_kind, value)) if isinstance(value, tuple | list) else repr(value)


def _sample(value: Any) -> Any:
    """An argument like this one, without its memory and symbols."""
    if isinstance(value, torch.Tensor):
        return _array(value.shape, value.dtype)
    if isinstance(value, tuple | list):
        return type(value)(map(_sample, value))
    if isinstance(value, torch.SymFloat):
        return 1.0
    return _size(value) if isinstance(value, torch.SymInt) else value


def _array(shape: Sequence[Any], dtype: torch.dtype) -> np.ndarray:
    known = from_foreign(dtype)
    if known is None:
        raise TypeError(f"kernels have no {dtype}")
    return np.broadcast_to(np.zeros((), INFO[known].storage), tuple(map(_size, shape)))


def _size(n: Any) -> int:
    """A size as a number; where it is a symbol, the one that it had when the graph was made, if that is known."""
    if isinstance(n, torch.SymInt):
        return n.node.hint if n.node.has_hint() else 2
    return n
