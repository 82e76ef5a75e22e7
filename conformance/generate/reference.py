"""Running a generated program from its tree: one block after another, in NumPy, with the meanings in the tree."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.generate.dtypes import DTYPES
from conformance.generate.tree import Def, Do, Each, For, If, Leave, Let, Program, Text, While, With


class Block:
    """A running block: its coordinates, and the arguments by parameter name."""

    def __init__(self, grid: tuple[int, ...], bid: tuple[int, ...], memory: dict[str, Any]):
        self.grid, self.bid, self.memory = (*grid, 1, 1)[:3], (*bid, 0, 0)[:3], memory
        self.functions: dict[str, tuple[Def, dict]] = {}

    def call(self, name: str, values: tuple) -> Any:
        """A helper. One that is defined in the kernel sees the kernel's variables."""
        d, outer = self.functions[name]
        return execute(d.body, {**outer, **dict(zip(d.params, values, strict=True))}, self)[1]


def run(program: Program, arguments: list[Any]) -> None:
    """Run over the grid; results are in the arrays, which are arguments in the order of the parameters."""
    memory = {p.name: a for p, a in zip(program.params, arguments, strict=True)}
    with np.errstate(all="ignore"):
        for bid in itertools.product(*map(range, program.grid)):
            ctx = Block(program.grid, bid, memory)
            ctx.functions = {h.name: (h, {}) for h in program.helpers if isinstance(h, Def)}
            execute(program.body, _numbers(memory), ctx)


def _numbers(memory: dict[str, Any]) -> dict[str, np.ndarray]:
    """Scalar arguments: int32, float32 or bool_ [ARG]. One that is more than an int32 has a meaning of its own."""
    kinds = {bool: np.bool_, int: np.int32, float: np.float32}
    return {n: np.asarray(v, kinds[type(v)]) for n, v in memory.items() if type(v) in kinds and v < 2**31}


GO = "go"  # a list of statements ends without break, continue or return


def execute(stmts: list, env: dict, ctx: Block) -> tuple[str, Any]:
    for s in stmts:
        how, value = RUN[type(s)](s, env, ctx)
        if how != GO:
            return how, value
    return GO, None


def _let(s: Let, env: dict, ctx: Block) -> tuple[str, Any]:
    v = s.expr.value(ctx, env)
    env.update(zip(s.names, v, strict=True) if len(s.names) > 1 else [(s.names[0], v)])
    return GO, None


def _do(s: Do, env: dict, ctx: Block) -> tuple[str, Any]:
    s.expr.value(ctx, env)
    return GO, None


def _if(s: If, env: dict, ctx: Block) -> tuple[str, Any]:
    return execute(s.then if s.cond.value(ctx, env).astype(bool) else s.orelse, env, ctx)


def _loop(rounds: Any, body: list, env: dict, ctx: Block, each: Callable) -> tuple[str, Any]:
    for i in rounds:
        each(i)
        how, value = execute(body, env, ctx)
        if how == "return":
            return how, value
        if how == "break":
            break
    return GO, None


def _for(s: For, env: dict, ctx: Block) -> tuple[str, Any]:
    bounds = (int(e.value(ctx, env)) for e in s.bounds)
    host = DTYPES[s.dtype].host
    return _loop(range(*bounds), s.body, env, ctx, lambda i: env.__setitem__(s.name, np.asarray(i, host)))


def _each(s: Each, env: dict, ctx: Block) -> tuple[str, Any]:
    return _loop(s.expr.value(ctx, env), s.body, env, ctx, lambda v: env.update(zip(s.names, v, strict=True)))


def _with(s: With, env: dict, ctx: Block) -> tuple[str, Any]:
    given = s.expr.value(ctx, env)
    env[s.name] = s.enter(ctx, *given)
    how = execute(s.body, env, ctx)
    s.leave(ctx, *given)
    return how


def _text(s: Text, env: dict, ctx: Block) -> tuple[str, Any]:
    return GO, None


def _while(s: While, env: dict, ctx: Block) -> tuple[str, Any]:
    rounds = iter(lambda: s.cond is None or bool(s.cond.value(ctx, env)), False)
    return _loop(rounds, s.body, env, ctx, lambda _: None)


def _leave(s: Leave, env: dict, ctx: Block) -> tuple[str, Any]:
    return GO if s.kind == "pass" else s.kind, s.expr.value(ctx, env) if s.expr else None


def _def(s: Def, env: dict, ctx: Block) -> tuple[str, Any]:
    ctx.functions[s.name] = (s, env)
    return GO, None


RUN = {Let: _let, Do: _do, Text: _text, If: _if, For: _for, Each: _each, While: _while, With: _with, Leave: _leave,
       Def: _def}


# ------------------------------------------------------------------ memory


def window(shape: tuple[int, ...], start: tuple[int, ...], tile: tuple[int, ...]) -> tuple[tuple, np.ndarray]:
    """Coordinates of the elements of a tile that begins at element `start`, and which are inside the array."""
    at = np.meshgrid(*(s + np.arange(n) for s, n in zip(start, tile, strict=True)), indexing="ij", sparse=True)
    inside = np.ones(tile, bool)
    for a, n in zip(at, shape, strict=True):
        inside &= (a >= 0) & (a < n)
    return tuple(np.clip(a, 0, max(n - 1, 0)) for a, n in zip(at, shape, strict=True)), inside


def load(x: np.ndarray, start: tuple[int, ...], tile: tuple[int, ...], padding: Any = 0) -> np.ndarray:
    at, inside = window(x.shape, start, tile)
    return np.where(inside, x[at], np.asarray(padding).astype(x.dtype)).astype(x.dtype)


def store(x: np.ndarray, start: tuple[int, ...], tile: np.ndarray) -> None:
    at, inside = window(x.shape, start, tile.shape)
    full = np.broadcast_arrays(*at, inside)[:-1] if at else ()
    x[tuple(a[inside] for a in full)] = tile[inside]


def accessed(x: np.ndarray, indices: tuple[np.ndarray, ...], mask: np.ndarray | None) -> tuple[tuple, np.ndarray]:
    """Coordinates of gathered elements, and a mask of those that are accessed: in range [GS-3], and not masked."""
    at = np.broadcast_arrays(*indices)
    live = np.ones(at[0].shape, bool) if mask is None else np.broadcast_to(mask, at[0].shape).copy()
    for a, n in zip(at, x.shape, strict=True):
        live &= (a >= 0) & (a < n)
    return tuple(np.where(live, a, 0).astype(np.int64) for a in at), live


def gather(x: np.ndarray, indices: tuple, mask: np.ndarray | None, padding: np.ndarray) -> np.ndarray:
    at, live = accessed(x, indices, mask)
    return np.where(live, x[at], padding).astype(x.dtype)


def scatter(x: np.ndarray, indices: tuple, value: np.ndarray, mask: np.ndarray | None) -> None:
    at, live = accessed(x, indices, mask)
    x[tuple(a[live] for a in at)] = np.broadcast_to(value, live.shape)[live]


def update(x: np.ndarray, indices: tuple, value: np.ndarray, f: Callable, mask: np.ndarray | None = None) -> np.ndarray:
    """An atomic, element after element. Returns the old values, 0 where no element is accessed."""
    at, live = accessed(x, indices, mask)
    value, old = np.broadcast_to(value, live.shape), np.zeros(live.shape, x.dtype)
    for i in np.argwhere(live):
        i = tuple(i)
        a = tuple(c[i] for c in at)
        old[i] = x[a]
        x[a] = f(x[a], value[i])
    return old
