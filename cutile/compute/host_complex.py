"""Operators on complex numbers that are one operation, with the bits that NumPy gives.

These are signs, sums and differences, of two numbers or with a real constant, and products with a real constant of one
or more. The language fuses a product and a sum where NumPy may round both. Of a product with a real number the other
product is a zero, so there this shows only where results underflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cutile.ir.nodes import Region, Value
from cutile.ir.walk import only_ops

Formula = Any  # the number of a parameter, or a name and operands


def ufunc_of(region: Region) -> tuple[Callable, tuple[int | complex, ...]] | None:
    """The function of NumPy that an operator is, and its operands: numbers of items, and constants."""
    found = _formulas(region)
    if found is None:
        return None
    parts, constants = found
    return next(((ufunc, operands) for ufunc, operands, expected in _operations(len(region.params) // 2, constants)
                 if expected == parts), None)


def _formulas(region: Region) -> tuple[list[Formula], list[float]] | None:
    """What the parts of the result are, and the constants; None if something else than ops computes them."""
    ops, given = only_ops(region)
    formulas: dict[Value, Formula] = {v: k for k, v in enumerate(region.params)}
    constants: list[float] = []
    for n in ops:
        if len(n.results) != 1 or n.results[0].type != region.params[0].type \
                or n.attrs.get("rounding_mode") is not None or n.attrs.get("flush_to_zero"):
            return None
        if n.op.name == "constant":
            constants.append(float(n.attrs["value"]))
            formulas[n.results[0]] = _constant(constants[-1])
        elif all(v in formulas for v in n.operands):
            formulas[n.results[0]] = (n.op.name, *(formulas[v] for v in n.operands))
        else:
            return None
    return None if given is None or len(given) != 2 else ([formulas.get(v) for v in given], constants)


def _constant(x: float) -> Formula:
    return "constant", x.hex()  # which tells zeros apart


def _operations(items: int, constants: list[float]) -> Iterator[tuple[Callable, tuple, list[Formula]]]:
    """Functions of NumPy, their operands, and formulas for the parts of their results."""
    x, y = (0, 1), (2, 3)
    if items == 2:
        for a, b, operands in ((x, y, (0, 1)), (y, x, (1, 0))):
            yield from _sums(a, b, operands)
        return
    yield _copied, (0,), [0, 1]
    yield np.negative, (0,), [("negative", 0), ("negative", 1)]
    yield np.conjugate, (0,), [0, ("negative", 1)]
    for c in filter(math.isfinite, constants):
        real = _constant(c), _constant(0.0)
        for a, b, operands in ((x, real, (0, complex(c))), (real, x, (complex(c), 0))):
            yield from _sums(a, b, operands)
            if abs(c) >= 1:
                yield np.multiply, operands, [("sub", ("mul", a[0], b[0]), ("mul", a[1], b[1])),
                                              ("add", ("mul", a[0], b[1]), ("mul", a[1], b[0]))]


def _copied(x: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, x)  # np.positive takes six times as long


def _sums(a: tuple, b: tuple, operands: tuple) -> Iterator[tuple[Callable, tuple, list[Formula]]]:
    yield np.add, operands, [("add", a[0], b[0]), ("add", a[1], b[1])]
    yield np.subtract, operands, [("sub", a[0], b[0]), ("sub", a[1], b[1])]
