"""Results of operators: on tensors by a call of the function, on fake tensors from its declared outputs [PT-5]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from cutile.dtypes import DType
from cutile.front.sizes import axes_of
from cutile.functions.binding import MISSING, check_rank, two_places
from cutile.functions.out import Output
from cutile.functions.rules import of_function
from cutile.functions.tile_function import TileFunction
from cutile.torch import undeclared


def run(function: TileFunction) -> Callable:
    """The function, with its declared outputs alone as results."""
    names = [n for n in function.kernel.names if n in function.returned]
    outputs = {o.name for o in function.outputs}

    def call(*args, **kwargs):
        given = {**dict(zip(function.parameters, args)), **kwargs}
        undeclared.refuse(function, given, lambda: planned(function, given))
        found = function.plain(**{n: v for n, v in given.items() if v is not None or n not in function.computed})
        found = dict(zip(names, found if len(names) > 1 else [found]))
        results = [v for n, v in found.items() if n in outputs]
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    return call


def planned(function: TileFunction, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], undeclared.Outputs]:
    """Named sizes and arguments of a call, and its outputs."""
    names = named(function, given)
    return names, _outputs(function, names, given)


def fake(function: TileFunction) -> Callable:
    """Results without memory, of the sizes and dtypes that the outputs declare."""
    def call(*args, **kwargs):
        given = {**dict(zip(function.parameters, args)), **kwargs}
        _one_place(function, given)
        names, made = planned(function, given)
        undeclared.refuse(function, given, lambda: (names, made))
        first = tensors_in(given)[0][1]
        results = [first.new_empty(shape, dtype=dtype) for _, shape, dtype in made]
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    return call


def _one_place(function: TileFunction, given: Mapping[str, Any]) -> None:
    """TypeError or ValueError for tensors on several devices, as calls of the function have it [JIT-15]."""
    places = [(n, t.device.type if t.device.type != "cuda" else t.device.index or 0) for n, t in tensors_in(given)]
    for n, place in places:
        if place != places[0][1]:
            raise two_places(function.__name__, *places[0], n, place)


def tensors_in(given: Mapping[str, Any]) -> list[tuple[str, torch.Tensor]]:
    """The tensors among arguments, those of lists too, with the names of their parameters."""
    return [(n, t) for n, v in given.items() for t in (v if isinstance(v, tuple | list) else [v])
            if isinstance(t, torch.Tensor)]


def named(function: TileFunction, given: Mapping[str, Any]) -> dict[str, Any]:
    """Named sizes and arguments, with defaults, as PyTorch leaves out what is equal to one. Sizes may be symbolic."""
    names = {n: p.default for n, p in function.parameters.items() if p.default is not p.empty}
    names = {n: v for n, v in {**names, **given}.items() if v is not None and v is not MISSING}
    for n, spec in function.specs.items():
        if spec.sizes is None or not isinstance(given.get(n), torch.Tensor):
            continue
        shape, axes, k = tuple(given[n].shape), spec.sizes.axes, 0
        check_rank(function, n, shape, spec.sizes)
        for axis in axes:
            length = len(shape) - len(axes) + 1 if axis.rest else 1
            if axis.name is not None:
                names.setdefault(axis.name, shape[k:k + length] if axis.rest else shape[k])
            k += length
    for n in function.computed - names.keys():
        names[n] = function.defaults[n].value(names)
    return names


def _outputs(function: TileFunction, names: Mapping[str, Any], given: Mapping[str, Any]) -> undeclared.Outputs:
    first = tensors_in(given)[0][1]
    return [(o.name, _shape(function, o, names, given), _dtype(o, names, given, first)) for o in function.outputs]


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
