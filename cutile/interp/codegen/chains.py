"""Elementwise ops on large tiles that become one op, a *chain*: a compiled form computes them over pieces of tiles.

NumPy writes the result of each op to memory that the first caches do not hold. A chain ends in an op whose result
something else reads; what only the chain reads is part of it. The ops that it consists of stay in the IR, where nothing
reads their results any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cutile import compiled
from cutile.analysis.elements import number_of
from cutile.dtypes import bfloat16, float16, float32, float64, info
from cutile.errors import TileInternalError
from cutile.interp.codegen.steps import RULES, Steps, format_of
from cutile.ir.nodes import Kernel, Node, Op, Region, Value
from cutile.ir.walk import definitions, homes, nodes_of, rewrite, uses
from cutile.ops._constants import compute
from cutile.ops._op import PURE, OpDef, Sig, made_elsewhere
from cutile.ops.arithmetic import mul
from cutile.ops.math import pow, powi
from cutile.types import TileType

SMALLEST = 1 << 12  # elements of a tile: caches hold what one op after another makes of smaller ones
MOST_OPERANDS, MOST_OPS = 12, 24  # of a chain
POWERS = range(2, 9)  # exponents
ALONE = {"floordiv", "mod", "floor", "ceil"}  # ops whose meanings write to memory of their own
SIGNS = {"abs": (0x7FFF, np.bitwise_and), "negative": (0x8000, np.bitwise_xor)}  # of formats of 16 bits


class Chain(NamedTuple):
    """Ops in their order, of which the last one has the result, and what the first ones read."""

    ops: tuple[Op, ...]
    operands: tuple[Value, ...]


def chained(kernel: Kernel, check: bool) -> Kernel:
    """The kernel with chains. With `check`, a chain also computes its ops one by one, and compares."""
    if not compiled.steps():
        return kernel
    kernel = _multiplied_out(kernel)
    nodes = [n for n in nodes_of(kernel) if type(n) is Op]
    able = _chainable(nodes)
    made = dict(_chains(kernel, nodes, able, check)) if able else {}
    if not made:
        return kernel
    stores = _stores(kernel, made)
    return rewrite(kernel, lambda old, n: [stores[old], n] if old in stores else
                   () if old in made and made[old] in stores.values() else [made[old]] if old in made else None)


def _multiplied_out(kernel: Kernel) -> Kernel:
    """The kernel with the products that powers of large tiles with small constant exponents are [POW-1] [POW-3]."""
    powers = [n for n in nodes_of(kernel) if type(n) is Op and _is_power(n)]
    if not powers:
        return kernel
    source = definitions(kernel.body)
    products = {n: _products(n, number_of(source, n.operands[1])) for n in powers}
    return rewrite(kernel, lambda old, n: products.get(old))


def _is_power(n: Op) -> bool:
    """Whether it is a power with an integer exponent, of a large tile."""
    integers = n.op is pow and info(n.result.type.dtype).integral
    return (n.op is powi or integers) and n.result.type.size >= SMALLEST


def _products(n: Op, exponent: int | None) -> list[Op] | None:
    """The products that a power is, by repeated squaring; None if there are no such ones. Of short floats only the
    result is rounded, so that they have one for a square alone.
    """
    x, t = n.operands[0], n.result.type
    if exponent not in POWERS or exponent > 2 and info(t.dtype).floating and t.dtype not in (float32, float64):
        return None
    found: list[Op] = []

    def product(a: Value, b: Value, last: bool) -> Value:
        y = n.result if last else Value(t)
        found.append(Op(mul, (a, b), {"rounding_mode": None, "flush_to_zero": False}, (y,), n.span))
        return y

    power, rest = (x, exponent >> 1) if exponent & 1 else (None, exponent >> 1)
    while rest:
        last = rest == 1
        x = product(x, x, last and power is None)
        if rest & 1:
            power = x if power is None else product(x, power, last)
        rest >>= 1
    return found


def _stores(kernel: Kernel, made: dict[Op, Op]) -> dict[Op, Op]:
    """Stores that alone read the result of a chain, with the chain: it stands directly before them, so that it computes
    into the array.
    """
    readers, home = uses(kernel.body), homes(kernel.body)
    found = {}
    for old, chain in made.items():
        v = old.results[0]
        n = readers[v][0]
        if len(readers[v]) == 1 and type(n) is Op and n.op.target is not None and n.operands[-1] is v \
                and n in home[v].nodes:
            found[n] = chain
    return found


def _chainable(nodes: Sequence[Op]) -> dict[Value, Op]:
    """The ops that may be part of a chain, by their results."""
    constants: set[Value] = set()  # which need no code
    found = {}
    for n in nodes:
        if n.op.effect == PURE and n.region is None and all(v in constants for v in n.operands) \
                and (n.operands or n.op.name == "constant"):
            constants.update(n.results)
        elif n.op.name in RULES and n.op.elementwise and _is_large(n):
            found[n.results[0]] = n
    return found


def _is_large(n: Op) -> bool:
    t = n.results[0].type
    return len(n.results) == 1 and isinstance(t, TileType) and t.size >= SMALLEST and all(
        isinstance(v.type, TileType) and v.type.shape == t.shape and format_of(v.type.dtype) for v in n.operands)


def _chains(kernel: Kernel, nodes: Sequence[Op], able: dict[Value, Op], check: bool) -> Iterator[tuple[Op, Op]]:
    """Ops with the chains that replace them."""
    readers, home = uses(kernel.body), homes(kernel.body)
    place = {n: i for i, n in enumerate(nodes)}
    taken: set[Op] = set()
    for n in reversed(nodes):
        if n in taken or len(n.results) != 1 or n.results[0] not in able or n.results[0] not in readers:
            continue
        for most in (MOST_OPS, MOST_OPS // 3, 2, 1):
            chain = _chain(n, able, readers, home, place, most)
            worth = len(chain.ops) > 1 or n.op.name in ALONE or _truncates(n) or _of_signs(chain)
            if worth and (function := _function(chain)) is not None:
                taken.update(chain.ops)
                yield n, _as_op(chain, function, check)
                break


def _chain(last: Op, able: dict[Value, Op], readers: dict[Value, list[Node]], home: dict[Value, Region],
           place: dict[Op, int], most: int) -> Chain:
    """The chain that ends in an op, of so many ops at most."""
    ops = {last}
    todo = [last]
    while todo:
        for v in todo.pop().operands:
            n = able.get(v)
            if n is not None and n not in ops and len(ops) < most and home[v] is home[last.results[0]] \
                    and n.results[0].type.shape == last.results[0].type.shape and ops.issuperset(readers[v]):
                ops.add(n)
                todo = [*ops]  # an operand may now have no readers besides
    inside = {n.results[0] for n in ops}
    ordered = sorted(ops, key=place.__getitem__)
    return Chain(tuple(ordered), tuple(dict.fromkeys(v for n in ordered for v in n.operands if v not in inside)))


def _function(chain: Chain) -> Callable | None:
    """The compiled form of a chain; None if it would need too many arrays."""
    if len(chain.operands) > MOST_OPERANDS:
        return None
    steps = Steps()
    names = {v: steps.given(format_of(v.type.dtype)) for v in chain.operands}
    for n in chain.ops:
        y = RULES[n.op.name](steps, n, *(names[v] for v in n.operands))
        if y is None:
            return None
        names[n.results[0]] = y
    return steps.function(y, format_of(chain.ops[-1].results[0].type.dtype))


def _truncates(n: Op) -> bool:
    """Whether it makes integers of floats, for which NumPy looks at all of them first."""
    return n.op.name == "astype" and info(n.operands[0].type.dtype).floating and info(n.result.type.dtype).integral


def _of_signs(chain: Chain) -> bool:
    """Whether it changes nothing but the signs of short floats, which it does to their bits too."""
    return all(n.op.name in SIGNS and n.results[0].type.dtype in (float16, bfloat16) for n in chain.ops)


def takes_bits(n: Op) -> bool:
    """Whether an op is a chain that makes bits of the bits of short floats."""
    return getattr(n.op.meaning, "takes_bits", False)


def _as_op(chain: Chain, function: Callable, check: bool) -> Op:
    of_signs = _of_signs(chain)

    def meaning(*operands, out=None):
        if of_signs and operands[0].dtype == np.uint16:
            return _signs(chain, operands[0])
        # Some steps read their operands again after they wrote.
        apart = out is None or any(np.may_share_memory(x, out) for x in operands)
        y = function(*operands, None if apart else out)
        if check:
            _compare(chain, operands, y)
        return y

    meaning.takes_bits = of_signs
    last = chain.ops[-1]
    names = " ".join(f"x{k}" for k in range(len(chain.operands)))
    o = OpDef(meaning, made_elsewhere, name="chain", operands=names, exact=True, elementwise=True, public=False,
              language=False)
    return Op(o, chain.operands, {}, last.results, last.span)


def _signs(chain: Chain, bits: np.ndarray) -> np.ndarray:
    for n in chain.ops:
        mask, change = SIGNS[n.op.name]
        bits = change(bits, np.uint16(mask))
    return bits


def _compare(chain: Chain, operands: Sequence[np.ndarray], y: np.ndarray) -> None:
    """TileInternalError if the ops of a chain, one by one, give other bits. Which NaN a result is they may choose."""
    found = dict(zip(chain.operands, operands, strict=True))
    for n in chain.ops:
        sig = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
        found[n.results[0]] = compute(n.op, sig, [found[v] for v in n.operands], n.attrs)
    want = np.asarray(found[chain.ops[-1].results[0]])
    got, want = np.broadcast_arrays(y, want)
    word = np.dtype(f"u{got.dtype.itemsize}")
    same = np.ascontiguousarray(got).view(word) == np.ascontiguousarray(want).view(word)
    if not (same | (got != got) & (want != want)).all():
        names = ", ".join(n.op.name for n in chain.ops)
        raise TileInternalError(f"the chain of {names} gives other bits than these ops", chain.ops[-1].span)
