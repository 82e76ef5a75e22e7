"""Emits code for the interleave schedule: that of the block schedule, with generators that pause before each access to
memory.

A generator yields `(Pause, *arrays)` before an access, with the arrays that it may change, and `(Spin, *state)` before
each iteration of a loop that waits for other blocks. Functions that never yield are plain functions, and so are combine
functions, which take all elements in one call.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from cutile._support.structs import structure
from cutile.analysis.spin_wait import waiting_loops
from cutile.interp.codegen.block import Function, emit_kernel, liveness_of
from cutile.interp.codegen.emit import EmittedCode, Liveness
from cutile.interp.codegen.py_ast import NO_POSITION, assign, call, load, set_position, tuple_of
from cutile.interp.exec.combine import combine_at_once
from cutile.interp.exec.turns import Pause, Spin
from cutile.ir import nodes as ir
from cutile.ir.nodes import Kernel, Op, Region, Value
from cutile.ir.recursion import recursive
from cutile.ir.walk import regions
from cutile.ops._op import ATOMIC, READ, WRITE
from cutile.types import TileType


def compile_kernel(kernel: Kernel, *, check: bool, step_limit: bool, syntax: bool = False) -> EmittedCode:
    """The kernel as a function (ctx, block, *arguments), the object ".kernel" of the emitted code.

    It returns a generator; if the kernel never pauses, it runs the block and returns None.
    `syntax`: keep the functions' syntax.
    """
    pauses = _pauses(kernel)
    code = EmittedCode(kernel, check, step_limit, editable=True, syntax=[] if syntax else None)
    return emit_kernel(kernel, PausingFunction(code, liveness_of(kernel), deque(), pauses))


@structure(frozen=True)
class Pauses:
    """The regions in which a kernel pauses, at any depth, and its waiting loops with their state."""

    regions: frozenset[Region]
    waiting: dict[ir.For | ir.While, tuple[Value, ...]]


def _pauses(kernel: Kernel) -> Pauses:
    every = list(regions(kernel.body))
    inside: set[Region] = set()
    for region, holder in reversed(every):  # inner ones first
        if isinstance(holder, Op):
            continue
        if any(isinstance(n, Op) and is_access(n) or not inside.isdisjoint(ir.regions_of(n)) for n in region.nodes):
            inside.add(region)
    return Pauses(frozenset(inside), waiting_loops(kernel))


def is_access(n: Op) -> bool:
    return n.op.effect in (READ, WRITE, ATOMIC)


class PausingFunction(Function):
    """A function under construction that is a generator if it pauses."""

    def __init__(self, code: EmittedCode, liveness: Liveness, queue: deque, pauses: Pauses,
                 constants: dict[Value, str] | None = None):
        super().__init__(code, liveness, queue, constants)
        self.pauses = pauses
        self.spins: dict[ir.While, str] = {}  # waiting loop → the local with its Spin

    def combining(self):
        return combine_at_once

    def survives_deep_stack(self, function, body):
        return partial(_advanced, function) if body in self.pauses.regions else recursive(function)

    def inner(self):
        return PausingFunction(self.code, self.liveness, self.queue, self.pauses, self.constants)

    def called(self, y, body):
        return ast.YieldFrom(y) if body in self.pauses.regions else y

    def pause(self, n):
        if not is_access(n):
            return []
        changes = [] if n.op.effect == READ else [self.use(v) for v in n.operands if not isinstance(v.type, TileType)]
        return [_yield(self.code.ref(Pause(n.span), "pause"), *changes)]

    def before_loop(self, n):
        if n not in self.pauses.waiting:
            return []
        self.spins[n] = self.code.slot("spin")
        spin = call(self.code.ref(Spin, "Spin"), [self.code.ref(n.span, "span")])
        return [set_position(assign([self.spins[n]], spin), NO_POSITION)]

    def before_iteration(self, n):
        if n not in self.pauses.waiting:
            return []
        return [_yield(load(self.spins[n]), *map(self.use, self.pauses.waiting[n]))]


def _advanced(function: Callable, *args: Any) -> Generator:
    """The generator that a function returns; each of its steps may run in a new thread, when the stack is nearly full.
    """
    inner = function(*args)
    while True:
        going_on, item = _step(inner)
        if not going_on:
            return item
        yield item


@recursive
def _step(steps: Generator) -> tuple[bool, Any]:
    try:
        return True, next(steps)
    except StopIteration as e:
        return False, e.value


def _yield(*items: ast.expr) -> ast.stmt:
    return set_position(ast.Expr(ast.Yield(tuple_of(items))), NO_POSITION)
