"""Results of operators: on tensors by a call of the function, on fake tensors from its declared outputs [PT-5]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from cutile.dtypes import DType
from cutile.front.sizes import axes_of
from cutile.functions.out import Output
from cutile.functions.rules import of_function
from cutile.functions.tile_function import TileFunction


def run(function: TileFunction) -> Callable:
    """The function, with its declared outputs alone as results."""
    names = [n for n in function.kernel.names if n in function.returned]
    outputs = {o.name for o in function.outputs}

    def call(*args, **kwargs):
        given = {**dict(zip(function.parameters, args)), **kwargs}
        found = function.plain(**{n: v for n, v in given.items() if v is not None or n not in function.computed})
        found = dict(zip(names, found if len(names) > 1 else [found]))
        results = [v for n, v in found.items() if n in outputs]
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    return call


def fake(function: TileFunction) -> Callable:
    """Results without memory, of the sizes and dtypes that the outputs declare."""
    def call(*args, **kwargs):
        given = {**dict(zip(function.parameters, args)), **kwargs}
        names = _names(function, given)
        first = next(v for v in given.values() if isinstance(v, torch.Tensor))
        results = [first.new_empty(_shape(function, o, names, given), dtype=_dtype(o, names, given, first))
                   for o in function.outputs]
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    return call


def _names(function: TileFunction, given: Mapping[str, Any]) -> dict[str, Any]:
    """Named sizes and arguments. Sizes may be symbolic."""
    names = {n: v for n, v in given.items() if v is not None}
    for n, spec in function.specs.items():
        if spec.sizes is None or not isinstance(given.get(n), torch.Tensor):
            continue
        shape, axes, k = tuple(given[n].shape), spec.sizes.axes, 0
        for axis in axes:
            length = len(shape) - len(axes) + 1 if axis.rest else 1
            if axis.name is not None:
                names.setdefault(axis.name, shape[k:k + length] if axis.rest else shape[k])
            k += length
    for n in function.computed - names.keys():
        names[n] = function.defaults[n].value(names)
    return names


def _shape(function: TileFunction, o: Output, names: Mapping[str, Any], given: Mapping[str, Any]) -> list[Any]:
    if o.out.shape is None:
        return list(given[o.out.like].shape)
    if callable(o.out.shape):
        return list(of_function(f"the shape of output `{o.name}`", o.out.shape, list(names)).value(names))
    items = [o.out.shape] if isinstance(o.out.shape, str) else o.out.shape
    found: list[Any] = []
    for axis in (a for item in items for a in ([item] if isinstance(item, int) else axes_of(item))):
        if isinstance(axis, int):
            found.append(axis)
        elif axis.rest:
            found += names[axis.name]
        else:
            found.append(names[axis.name] if axis.name else axis.size(names))
    return found


def _dtype(o: Output, names: Mapping[str, Any], given: Mapping[str, Any], first: torch.Tensor) -> torch.dtype:
    if o.dtype_like is not None:
        return given[o.dtype_like].dtype
    if o.dtype is None:
        return first.dtype
    found = o.dtype.value(names)
    return getattr(torch, found.name.rstrip("_")) if isinstance(found, DType) else found
