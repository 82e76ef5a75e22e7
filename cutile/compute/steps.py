"""The steps of a plan that run something: launches of kernels, and calls of functions of the host."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from cutile._support import float_mode
from cutile._support.float_mode import LESS, MORE, TINY
from cutile.compute.arrays import Piece, Temporary
from cutile.runtime.repeated import Repeated

if TYPE_CHECKING:
    from cutile.compute.plans import Plan


class ArrayInPlan:
    """What is left of an array in a plan."""

    __slots__ = ("device",)
    writable = True

    def __init__(self, device: int | None):
        self.device = device


class Part:
    """An argument that is a piece of a root. `whole`: in host memory it is the root."""

    __slots__ = ("root", "piece", "whole")

    def __init__(self, root: int, piece: Piece | Temporary, whole: bool):
        self.root, self.piece, self.whole = root, piece, whole


class FromRoot:
    """An argument that is a root."""

    __slots__ = ("root",)

    def __init__(self, root: int):
        self.root = root


class Step:
    """A launch of a plan: a kernel over a grid. `template`: its arguments, with parts and numbers in the place of what
    differs.
    """

    __slots__ = ("kernel", "grid", "_plan", "_template", "_repeated", "_constants", "_moves", "_parts",
                 "_sources")

    def __init__(self, plan: Plan, kernel: Any, blocks: int, template: tuple):
        self.kernel, self.grid, self._plan, self._template = kernel, (blocks, 1, 1), plan, template
        self._repeated: dict[int, Repeated] = {}  # by the alignment of temporary storage
        leaves = list(_leaves(template, kernel.specs))
        self._constants = [None if isinstance(x, Part | FromRoot) else x for x in leaves]
        moves = [(i, x.root, 0 if isinstance(x, FromRoot) else x.piece.moved) for i, x in enumerate(leaves)
                 if isinstance(x, FromRoot) or isinstance(x, Part) and plan.device is not None]
        self._moves: tuple[tuple[int, int, int], ...] = tuple(moves)
        self._parts: tuple[tuple[int, int, Callable], ...] = tuple(
            (i, x.root, x.piece.on_host) for i, x in enumerate(leaves) if isinstance(x, Part) and plan.device is None)
        self._sources = None if plan.device is None else _sources(self._constants, self._moves)

    def run(self, roots: list, alignment: int, stream: Any) -> None:
        found = self._repeated.get(alignment)
        if found is None or not found.unchanged():
            found = self._made(roots, stream)
            if found.repeatable:
                self._repeated[alignment] = found
            return found.run(stream, found.values)
        if self._sources is not None and found.run_in_c(stream, roots, self._sources):
            return None
        values = self._constants.copy()
        for i, root, moved in self._moves:
            values[i] = roots[root] + moved
        for i, root, take in self._parts:
            values[i] = take(roots[root])
        found.run(stream, values)

    def in_c(self, alignment: int) -> tuple[Any, bytes] | None:
        """The launch as C code runs it (`run_steps`); None as long as it has to run here."""
        found = self._repeated.get(alignment)
        if found is None or self._sources is None or self._plan.watched or (launch := found.in_c()) is None:
            return None
        return launch, self._sources

    def arguments(self, roots: list) -> tuple:
        """Those of ct.launch."""
        return self._plan.actual(self._template, roots)

    def _made(self, roots: list, stream: Any) -> Repeated:
        return Repeated(self.kernel, self.grid, self.arguments(roots), stream, self._plan.watched)


_INT, _FLOAT = struct.Struct("qq"), struct.Struct("qd")


def _sources(constants: Sequence[Any], moves: Sequence[tuple[int, int, int]]) -> bytes | None:
    """Where launch values come from, as C code takes it (`Repeated.run_in_c`); None where it takes no such constant."""
    found = {i: _INT.pack(root, moved) for i, root, moved in moves}
    for i, x in enumerate(constants):
        if i not in found:
            if type(x) not in (int, float, bool) or type(x) is int and not -1 << 63 <= x < 1 << 63:
                return None
            found[i] = (_FLOAT if type(x) is float else _INT).pack(-1, x)
    return b"".join(found[i] for i in range(len(constants)))


class Call:
    """A call of a function of the host."""

    __slots__ = ("_args", "_function")

    def __init__(self, plan: Plan, function: Callable, template: tuple):
        self._function, self._args = function, _maker(plan, template)

    def run(self, roots: list, alignment: int, stream: Any) -> None:
        if (TINY * MORE == 0.0 or TINY * LESS != 0.0) and not float_mode.usual():
            return float_mode.run(self.run, roots, alignment, stream)
        return self._function(*self._args(roots))


class Either:
    """A call that says whether it did all, and the steps that do it if not."""

    __slots__ = ("_call", "_rest")

    def __init__(self, call: Call, rest: Sequence[Any]):
        self._call, self._rest = call, rest

    def run(self, roots: list, alignment: int, stream: Any) -> None:
        if not self._call.run(roots, alignment, stream):
            for step in self._rest:
                step.run(roots, alignment, stream)


def _maker(plan: Plan, x: Any) -> Callable[[list], Any]:
    """A function of a call's roots that makes what a template stands for: one expression, since each call of a function
    costs a call of an algorithm more than the sum of a few numbers.
    """
    names: dict[str, Any] = {}
    return eval(f"lambda roots: {_expression(plan, x, names)}", names)


def _expression(plan: Plan, x: Any, names: dict[str, Any]) -> str:
    """The expression that makes it of `roots`. `names` gets what it names."""
    if type(x) is tuple:
        return f"({''.join(f'{_expression(plan, y, names)}, ' for y in x)})"
    if isinstance(x, FromRoot) or isinstance(x, Part) and x.whole and plan.device is None:
        return f"roots[{x.root}]"
    name = f"x{len(names)}"
    if isinstance(x, Part):
        names[name] = x.piece.on_host if plan.device is None else x.piece.on_gpu
        return f"{name}(roots[{x.root}])"
    names[name] = x
    return name


def _leaves(args: Sequence[Any], specs: Any) -> Iterator[Any]:
    """What becomes a launch value each, in order."""
    for arg, spec in zip(args, specs, strict=True):
        if type(arg) is tuple:
            yield from _leaves(arg, islice(spec.items, len(arg)))
        elif not spec.constant:
            yield arg
