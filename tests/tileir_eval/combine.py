"""Reductions, scans and matrix products.

A combine region is run on many elements at once: its operations on scalars work just as well on arrays of one shape.
Regions with anything else in them are run element by element. Reductions pair the halves of the dimension, a power of
two, again and again; scans go one by one. Both begin with the identity only where that is asked for: Tile IR allows it,
a right identity changes nothing, and a wrong one shows.

Of each pair of region arguments the first is what was combined before. The text of the specification says the second;
on a GPU it was measured to be the first, and NVIDIA's own front end hands them on so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cutile.gpu.tileir.module import Operation
from tests.tileir_eval import formats
from tests.tileir_eval.registry import pure

Run = Callable[[list], Sequence]  # a region on the values of its arguments: what it yields
Combine = Callable[[Sequence, Sequence], Sequence]  # (before, elements) -> combined


def _combiner(o: Operation, run: Run, at_once: bool) -> Combine:
    """The region as a function of arrays."""

    def whole(before, elements):
        shape = elements[0].shape
        given = [x for pair in zip(before, elements, strict=True) for x in pair]
        return [r if r.shape == shape else np.broadcast_to(r, shape) for r in map(np.asarray, run(given))]

    def one_by_one(before, elements):
        out = [np.empty_like(e) for e in elements]
        for at in np.ndindex(elements[0].shape):
            results = run([np.asarray(x[at]) for pair in zip(before, elements, strict=True) for x in pair])
            for x, r in zip(out, results, strict=True):
                x[at] = r
        return out

    return whole if at_once else one_by_one


def _part(xs: Sequence[np.ndarray], part: slice | int) -> list[np.ndarray]:
    return [x[part] for x in xs]


def _begun(o: Operation, combine: Combine, lines: list[np.ndarray]) -> list[np.ndarray]:
    """The elements, the first one combined with the identity."""
    given = [formats.pattern(i.bits, i.type) for i in o.attrs["identities"]]
    first = _part(lines, 0)
    begun = combine([np.broadcast_to(g, x.shape) for g, x in zip(given, first, strict=True)], first)
    return [np.concatenate((x[None], rest[1:])) for x, rest in zip(begun, lines, strict=True)]


def _halving(combine: Combine, lines: list[np.ndarray]) -> list[np.ndarray]:
    while (n := lines[0].shape[0]) > 1:
        lines = list(combine(_part(lines, slice(0, n // 2)), _part(lines, slice(n // 2, n))))
    return _part(lines, 0)


def _prefixes(combine: Combine, lines: list[np.ndarray]) -> list[np.ndarray]:
    steps: list[Sequence[np.ndarray]] = [_part(lines, 0)]
    for k in range(1, lines[0].shape[0]):
        steps.append(combine(steps[-1], _part(lines, k)))
    return [np.stack(s) for s in zip(*steps, strict=True)]


def reduction(o: Operation, at_once: bool):
    """A function of the region, the operands, and whether the identity comes first. `at_once`: the region may run on
    arrays."""
    dim = o.attrs["dim"]

    def reduce(run: Run, xs: Sequence, begin: bool) -> list[np.ndarray]:
        combine = _combiner(o, run, at_once)
        lines = [np.moveaxis(x, dim, 0) for x in xs]
        return _halving(combine, _begun(o, combine, lines) if begin else lines)

    return reduce


def prefix(o: Operation, at_once: bool):
    dim, order = o.attrs["dim"], slice(None, None, -1 if o.attrs["reverse"] else 1)

    def scan(run: Run, xs: Sequence, begin: bool) -> list[np.ndarray]:
        combine = _combiner(o, run, at_once)
        lines = [np.moveaxis(x, dim, 0)[order] for x in xs]
        return [np.moveaxis(x[order], 0, dim)
                for x in _prefixes(combine, _begun(o, combine, lines) if begin else lines)]

    return scan


FOLDS = {"reduce": reduction, "scan": prefix}


# ------------------------------------------------------------------ matrix products


def _product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x @ y, products summed one after another along k."""
    total = x[..., :, :1] * y[..., :1, :]
    for k in range(1, x.shape[-1]):
        total += x[..., :, k:k + 1] * y[..., k:k + 1, :]
    return total


def _wide(*xs: np.ndarray) -> list[np.ndarray]:
    return [x.astype(np.float64) for x in xs]


@pure("mmaf")
def _mmaf(o):
    """In float64, where the products are exact, rounded once with the accumulator."""
    element = o.results[0].type.element

    def multiply(x, y, acc):
        x, y, acc = _wide(x, y, acc)
        return formats.nearest(_product(x, y) + acc, element)

    return multiply


@pure("mmaf_scaled")
def _mmaf_scaled(o):
    x, y, _, x_scale, y_scale = (v.type.shape for v in o.operands)
    x_block, y_block = x[-1] // x_scale[-1], y[-2] // y_scale[-2]
    element = o.results[0].type.element

    def multiply(x, y, acc, x_scale, y_scale):
        x, y, acc, x_scale, y_scale = _wide(x, y, acc, x_scale, y_scale)
        x, y = x * np.repeat(x_scale, x_block, -1), y * np.repeat(y_scale, y_block, -2)
        return formats.nearest(_product(x, y) + acc, element)

    return multiply


@pure("mmai")
def _mmai(o):
    kinds = [v.type.element for v in o.operands]
    signs = o.attrs["signedness_lhs"], o.attrs["signedness_rhs"]

    def multiply(x, y, acc):
        x, y = (formats.numbers(v, e, s).astype(np.int64) for v, e, s in zip((x, y), kinds, signs, strict=False))
        return formats.wrapped(np.matmul(x, y) + acc, kinds[2])

    return multiply
