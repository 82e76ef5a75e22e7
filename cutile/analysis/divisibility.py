"""Powers of two that divide integer scalars of a kernel.

Arithmetic modulo 2**n keeps divisors that are powers of two. A back end uses them where it computes an address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cutile.analysis.affine import is_integer
from cutile.ir.nodes import For, Kernel, Op, Value
from cutile.ir.walk import walk
from cutile.ops import arithmetic, bits, convert, create, grid

MAX_DIVISOR = 1 << 20


def _power_of_two(n: int) -> int:
    """The largest power of two, up to MAX_DIVISOR, that divides n."""
    return min(n & -n, MAX_DIVISOR) if n else MAX_DIVISOR


def divisibility(kernel: Kernel, known: Callable[[Op], int] = lambda n: 1) -> dict[Value, int]:
    """For each integer scalar, a divisor above 1, if one is known. `known` returns a divisor of the result of an op
    that has no rule here, as one that reads the size of an array.
    """
    found: dict[Value, int] = {}
    for n in walk(kernel.body):
        if isinstance(n, For):
            _note(found, n.iv, min(found.get(n.start, 1), found.get(n.step, 1)))
        elif isinstance(n, Op) and len(n.results) == 1 and is_integer(n.results[0]):
            rule = _RULES.get(n.op)
            _note(found, n.results[0], known(n) if rule is None else rule(n, [found.get(v, 1) for v in n.operands]))
    return found


def _note(found: dict[Value, int], v: Value, divisor: int) -> None:
    if divisor > 1:
        found[v] = min(divisor, MAX_DIVISOR)


def _least(n: Op, d: list[int]) -> int:
    return min(d)


def _product(n: Op, d: list[int]) -> int:
    return d[0] * d[1]


def _greatest(n: Op, d: list[int]) -> int:
    return max(d)


def _of_operand(n: Op, d: list[int]) -> int:
    """A cast between integers keeps the low bits."""
    return d[0] if is_integer(n.operands[0]) else 1


_RULES: dict[Any, Callable[[Op, list[int]], int]] = {
    create.constant: lambda n, d: _power_of_two(n.attrs["value"]),
    grid.assume_divisible_by: lambda n, d: max(d[0], _power_of_two(n.attrs["divisor"])),
    arithmetic.add: _least, arithmetic.sub: _least, arithmetic.minimum: _least, arithmetic.maximum: _least,
    arithmetic.negative: _of_operand, arithmetic.mul: _product, bits.bitwise_and: _greatest, bits.bitwise_or: _least,
    convert.astype: _of_operand,
}
