"""The tables of the evaluator: for each operation of Tile IR, what makes the function that carries it out.

    @pure("addi")                        on tiles alone; in a combine region also on many elements at once
    def _addi(o):                        `o` is the decoded operation, asked once
        return lambda x, y: x + y        called with the values of the operands, in a row

    @of_world("load_ptr_tko")            the function's first argument is the running World (machine.py)

A value is a NumPy array of the tile's shape, of the dtype that formats.py names; a pointer an address (space.py); a
token the set of accesses that it stands for (ordering.py). A function gives one value, a tuple of as many as the
operation has results, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cutile.gpu.tileir.module import Operation


class EvaluationError(Exception):
    """The program does what the Tile IR specification leaves undefined, or is not allowed to do."""


Maker = Callable[[Operation], Callable[..., Any]]

PURE: dict[str, Maker] = {}
ELEMENTWISE: set[str] = set()  # operations that also accept operands of any one shape
OF_WORLD: dict[str, Maker] = {}


def pure(*names: str, elementwise: bool = False) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        PURE.update(dict.fromkeys(names, make))
        ELEMENTWISE.update(names if elementwise else ())
        return make

    return add


def of_world(*names: str) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        OF_WORLD.update(dict.fromkeys(names, make))
        return make

    return add


def require(holds: Any, text: str, o: Operation) -> None:
    """EvaluationError, with the position in the source, unless something holds."""
    if not holds:
        raise EvaluationError(f"{described(o)}: {text}")


def described(o: Operation) -> str:
    """The operation and its position in the source."""
    return o.spec.name if o.loc is None else f"{o.spec.name} (line {o.loc.line} of {o.loc.filename})"


def where(o: Operation) -> Callable[[tuple], list]:
    """Sorts a row of values by the operands of the operation: a value, None, or a tuple of values for each."""
    plan, at = [], 0
    for x in o.operands:
        if x is None:
            plan.append(None)
        elif isinstance(x, tuple):
            plan.append(slice(at, at + len(x)))
            at += len(x)
        else:
            plan.append(at)
            at += 1
    return lambda row: [None if p is None else row[p] for p in plan]
