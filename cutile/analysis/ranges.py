"""Ranges of the integer scalars of a program in a launch, from the grid and the sizes of the arrays.

A scalar that may wrap has the range of its dtype.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cutile.analysis.affine import BlockIndex, Variable, affine_scalars, is_integer
from cutile.analysis.guards import Guard
from cutile.dtypes import bool_, int_range
from cutile.ir.nodes import For, Kernel, Op, Value
from cutile.ir.walk import walk
from cutile.ops import arithmetic, bits, convert, grid, memory, select, views
from cutile.types import ArrayType, ListType

Range = tuple[int, int]  # the least and the greatest value
Shapes = Mapping[Value, Sequence[Any]]  # of each array parameter its shape, of each list parameter those of its arrays
_EVERYTHING: Range = (-(1 << 64), 1 << 64)
ANY_GRID: Sequence[Range] = ((1, (1 << 24) - 1),) * 3


class ScalarRanges:
    """The integer scalars of a kernel without frames whose ranges can be found.

    function  gives the affine function of a scalar
    tiles     the ops that count tiles of an array, by their results
    known_per_launch  variables of such functions that depend on nothing but the grid and the sizes of arrays
    """

    def __init__(self, kernel: Kernel):
        nodes = list(walk(kernel.body))
        ops = [n for n in nodes if isinstance(n, Op)]
        self.function = affine_scalars(ops)
        self.params = set(kernel.params)
        self.tiles = {n.results[0]: n for n in ops if n.op in (grid.num_tiles, views.view_num_tiles)}
        self.parts = {n.results[0]: n for n in ops if n.op in (memory.list_item_op, views.slice_)}
        self.known_per_launch: set[Variable] = {BlockIndex(k) for k in range(3)}
        self.steps: list[For | Op] = []
        for n in nodes:
            if isinstance(n, For):
                self._add(n, n.iv, (n.start, n.stop, n.step))
            elif isinstance(n, Op) and n.op in _RULES and is_integer(n.results[0]):
                self._add(n, n.results[0], n.operands)

    def _add(self, n: For | Op, v: Value, operands: Sequence[Value]) -> None:
        if self.function(v).variables != (v,):
            return
        self.steps.append(n)
        if all(map(self.is_regular, operands)):
            self.known_per_launch.add(v)

    def is_regular(self, v: Value) -> bool:
        """Whether a scalar, or the sizes of an array, depend on nothing but the grid and the sizes of arrays."""
        if not isinstance(v.type, ArrayType):
            return isinstance(v.type, ListType) or self.known_per_launch.issuperset(self.function(v).variables)
        while (n := self.parts.get(v)) is not None:
            if n.op is views.slice_ and not all(map(self.is_regular, n.operands[1:])):
                return False
            v = n.operands[0]
        return v in self.params or None not in v.type.static_shape

    def of_launch(self, blocks: Sequence[Range], shapes: Shapes,
                  numbers: Mapping[Value, int] = MappingProxyType({})) -> LaunchRanges:
        """What holds in a launch whose grid has so many blocks along each axis. `numbers`: parameters whose values are
        known.
        """
        return LaunchRanges(self, blocks, shapes, numbers)


class LaunchRanges:
    """The ranges of integer scalars in a launch. `known`: of variables, as `AffineIndex.extent` takes them."""

    def __init__(self, scalars: ScalarRanges, blocks: Sequence[Range], shapes: Shapes, numbers: Mapping[Value, int]):
        self.scalars, self.blocks, self.shapes = scalars, blocks, shapes
        self.known: dict[Variable, range] = {BlockIndex(k): range(most) for k, (_, most) in enumerate(blocks)}
        self.known.update((v, range(n, n + 1)) for v, n in numbers.items())
        for n in scalars.steps:
            if isinstance(n, For):
                self.known[n.iv] = _counter(n, *map(self.of, (n.start, n.stop, n.step)))
            else:
                found = _RULES[n.op](self, n)
                if found is not None and _fits(found, n.results[0]):
                    self.known[n.results[0]] = range(found[0], found[1] + 1)

    def of(self, v: Value) -> Range:
        """The range of an integer scalar."""
        return self._without_wrapping(v) or int_range(v.type.dtype)

    def _without_wrapping(self, v: Value) -> Range | None:
        """The range of the affine function of a scalar, if it is known and all of it fits the scalar's dtype."""
        found = self.scalars.function(v).extent(self.known)
        return found if found is not None and _fits(found, v) else None

    def under(self, guards: Sequence[Guard], v: Value) -> Range:
        """The range of an integer scalar where these comparisons hold."""
        least, most = self.scalars.function(v).extent(self.known) or _EVERYTHING
        for g in guards:
            if not is_integer(g.lower):
                continue
            limit = self.of(g.upper)[1] - g.gap  # of g.lower, from above
            if (rest := self.rest(v, 1, g.lower)) is not None:
                most = min(most, rest[1] + limit)
            if (rest := self.rest(v, -1, g.lower)) is not None:
                least = max(least, rest[0] - limit)
            limit = self.of(g.lower)[0] + g.gap  # of g.upper, from below
            if (rest := self.rest(v, 1, g.upper)) is not None:
                least = max(least, rest[0] + limit)
            if (rest := self.rest(v, -1, g.upper)) is not None:
                most = min(most, rest[1] - limit)
        return (least, most) if _fits((least, most), v) else int_range(v.type.dtype)

    def rest(self, v: Value, factor: int, other: Value) -> Range | None:
        """The range of v - factor·other; None if the two share no variable, or if `other` may wrap."""
        f, g = map(self.scalars.function, (v, other))
        if set(f.variables).isdisjoint(g.variables):
            return None
        exact = g.variables == (other,) or self._without_wrapping(other) is not None
        return f.plus(g.scale(-factor)).extent(self.known) if exact else None

    def sizes(self, array: Value) -> list[Range | None]:
        """The range of each size of an array; None for what is not known."""
        path: list[Op] = []
        root = array
        while (n := self.scalars.parts.get(root)) is not None:
            path.append(n)
            root = n.operands[0]
        found = self._of_root(root)
        for n in reversed(path):
            if n.op is views.slice_:
                found[n.attrs["axis"]] = self._length(*n.operands[1:])
        return [f if s is None else (s, s) for f, s in zip(found, array.type.static_shape, strict=True)]

    def _of_root(self, root: Value) -> list[Range | None]:
        if isinstance(root.type, ListType):
            shapes = self.shapes.get(root) or [(None,) * root.type.element.ndim]
        else:
            shapes = [self.shapes.get(root, root.type.static_shape)]
        return [None if None in sizes else (min(sizes), max(sizes)) for sizes in zip(*shapes, strict=True)]

    def _length(self, start: Value, stop: Value) -> Range | None:
        """The size of a slice, unless a bound of it may wrap or lie outside of int32."""
        if None in (self._without_wrapping(start), self._without_wrapping(stop)):
            return None
        first, last = map(self.scalars.function, (start, stop))
        found = last.plus(first.scale(-1)).extent(self.known)
        return found if found is not None and 0 <= found[0] and found[1] < 1 << 31 else None


def _fits(found: Range, v: Value) -> bool:
    low, high = int_range(v.type.dtype)
    return low <= found[0] and found[1] <= high


def _counter(n: For, start: Range, stop: Range, step: Range) -> range:
    """The values of a loop's counter, which are those of Python's range [LOOP-1]; all of its dtype if the step may be
    below 1.
    """
    low, high = int_range(n.iv.type.dtype)
    last = stop[1] - 1
    if step[0] < 1:
        return range(low, high + 1)
    if start[0] == start[1] and step[0] == step[1] and last >= start[0]:
        last -= (last - start[0]) % step[0]
    return range(start[0], last + 1)


# ------------------------------------------------------------------ rules


def _size(r: LaunchRanges, n: Op) -> Range | None:
    return None if n.attrs["stride"] else _sizes(r, n.operands[0], n.attrs["dim"])


def _tiles(r: LaunchRanges, n: Op) -> Range | None:
    dim, shape = tiled(n)
    size = _sizes(r, n.operands[0], dim)
    return -(-size[0] // shape), -(-size[1] // shape)


def _sizes(r: LaunchRanges, array: Value, dim: int) -> Range:
    return r.sizes(array)[dim] or (0, int_range(array.type.index_dtype)[1])


def tiled(n: Op) -> tuple[int, int]:
    """The array axis along which a num_tiles counts, and the size or step of the tiles there."""
    axis = n.attrs["axis"]
    return (axis, n.attrs["step"]) if n.op is views.view_num_tiles else (n.attrs["order"][axis], n.attrs["shape"][axis])


def _blocks(r: LaunchRanges, n: Op) -> Range:
    return r.blocks[n.attrs["axis"]]


def _length(r: LaunchRanges, n: Op) -> Range | None:
    arrays = r.shapes.get(n.operands[0])
    return None if arrays is None else (len(arrays), len(arrays))


def _of_operands(rule: Callable[..., Range | None]) -> Callable[[LaunchRanges, Op], Range | None]:
    """A rule on the ranges of all operands, which must be integers."""
    return lambda r, n: rule(*map(r.of, n.operands)) if all(map(is_integer, n.operands)) else None


def _cast(r: LaunchRanges, n: Op) -> Range | None:
    (v,) = n.operands
    return (0, 1) if v.type.dtype is bool_ else r.of(v) if is_integer(v) else None


def _choice(r: LaunchRanges, n: Op) -> Range | None:
    (_, x), (_, y) = ((v, r.of(v)) if is_integer(v) else (v, None) for v in n.operands[1:])
    return None if x is None or y is None else (min(x[0], y[0]), max(x[1], y[1]))


def _quotient(x: Range, y: Range) -> Range | None:
    if y[0] < 1:
        return None
    corners = [a // b for a in x for b in y]
    return min(corners), max(corners)


def _quotient_up(x: Range, y: Range) -> Range | None:
    negated = _quotient((-x[1], -x[0]), y)
    return negated and (-negated[1], -negated[0])


def _remainder(x: Range, y: Range) -> Range | None:
    if y[0] < 1:
        return None
    if y[0] == y[1] and x[0] // y[0] == x[1] // y[0]:
        return x[0] % y[0], x[1] % y[0]
    return 0, min(y[1] - 1, x[1]) if x[0] >= 0 else y[1] - 1


def _and(x: Range, y: Range) -> Range | None:
    most = [high for low, high in (x, y) if low >= 0]
    return (0, min(most)) if most else None


def _shifted(shift: Callable[[int, int], int]) -> Callable[[LaunchRanges, Op], Range | None]:
    def rule(r: LaunchRanges, n: Op) -> Range | None:
        x, (amount, most) = map(r.of, n.operands)
        width = n.results[0].type.dtype.bitwidth
        return (shift(x[0], amount), shift(x[1], amount)) if 0 <= amount == most < width else None

    return rule


_RULES: dict[Any, Callable[[LaunchRanges, Op], Range | None]] = {
    memory.array_dim: _size, grid.num_tiles: _tiles, views.view_num_tiles: _tiles, grid.num_blocks: _blocks,
    memory.list_len_op: _length, convert.astype: _cast, select.where: _choice,
    grid.assume_divisible_by: _of_operands(lambda x: x),
    arithmetic.minimum: _of_operands(lambda x, y: (min(x[0], y[0]), min(x[1], y[1]))),
    arithmetic.maximum: _of_operands(lambda x, y: (max(x[0], y[0]), max(x[1], y[1]))),
    arithmetic.mul: _of_operands(lambda x, y: (min(c := [a * b for a in x for b in y]), max(c))),
    arithmetic.floordiv: _of_operands(_quotient), arithmetic.cdiv: _of_operands(_quotient_up),
    arithmetic.mod: _of_operands(_remainder), bits.bitwise_and: _of_operands(_and),
    bits.bitwise_lshift: _shifted(operator.lshift), bits.bitwise_rshift: _shifted(operator.rshift),
}
