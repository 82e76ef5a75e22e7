"""Making a program smaller while its disagreement stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from conformance.generate import Program
from conformance.generate.dtypes import T
from conformance.generate.tree import Do, Expr, For, If, Leave, Let, Var, While, bodies, exprs

NAME = re.compile(r"[A-Za-z_]\w*")


def shrink(program: Program, still: Callable[[Program], bool], attempts: int = 400) -> Program:
    """The smallest program found for which `still` holds, after at most this many attempts."""
    budget = [attempts]

    def accepted(candidate: Program) -> bool:
        if budget[0] <= 0 or not closed(candidate):
            return False
        budget[0] -= 1
        return still(candidate)

    current, size = program, -1
    while size != measure(current) and budget[0] > 0:
        size = measure(current)
        for step in (fewer_statements, flatter, simpler, smaller_grid, used_only):
            current = settle(current, step, accepted)
    return current


def settle(program: Program, step: Callable, accepted: Callable[[Program], bool]) -> Program:
    """Take the first accepted candidate of a step, until none is accepted."""
    while True:
        for candidate in step(program):
            if accepted(candidate):
                program = candidate
                break
        else:
            return program


def measure(p: Program) -> int:
    """The size of a program: the length of its source."""
    return len(p.source())


# ------------------------------------------------------------------ places in the tree


def rebuilt(stmts: list, path: tuple, new: list) -> list:
    """The statements with the one at `path` replaced by several. A path is (i, field, i, field, …, i)."""
    i, rest = path[0], path[1:]
    if not rest:
        return [*stmts[:i], *new, *stmts[i + 1:]]
    s = stmts[i]
    inner = rebuilt(getattr(s, rest[0]), rest[1:], new)
    return [*stmts[:i], changed(s, **{rest[0]: inner}), *stmts[i + 1:]]


def changed(s: Any, **fields: Any) -> Any:
    """A statement with some fields changed."""
    return type(s)(**{**{n: getattr(s, n) for n in s.__dataclass_fields__}, **fields})


def places(stmts: list, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """All statements, the last first, outer ones before inner ones."""
    for i in range(len(stmts) - 1, -1, -1):
        yield (*path, i), stmts[i]
        for name, b in bodies(stmts[i]):
            yield from places(b, (*path, i, name))


def replaced(p: Program, path: tuple, new: list) -> Program:
    """The program with the statement at a path replaced by several."""
    return p.with_(body=rebuilt(p.body, path, new))


# ------------------------------------------------------------------ steps


def fewer_statements(p: Program) -> Iterator[Program]:
    """Halves of the kernel, then single statements."""
    n = len(p.body)
    width = n // 2
    while width > 1:
        for i in range(1, n, width):
            yield p.with_(body=[*p.body[:i], *p.body[i + width:]])
        width //= 2
    for path, _ in places(p.body):
        if path != (0,):
            yield replaced(p, path, [])


def flatter(p: Program) -> Iterator[Program]:
    """The body of a branch or loop in place of the statement."""
    for path, s in places(p.body):
        for _, b in bodies(s) if isinstance(s, If | For | While) else ():
            inner = [x for x in b if not (isinstance(x, Leave) and x.kind in ("break", "continue"))]
            if isinstance(s, For):
                zero = Expr("0", (), T("i32"), lambda _: np.asarray(0, np.int32))
                inner = [Let((s.name,), zero), *inner]
            yield replaced(p, path, inner)


def simpler(p: Program) -> Iterator[Program]:
    """An expression replaced by one of its operands, or by a constant."""
    for path, s in places(p.body):
        for field in ("expr", "cond"):
            e = getattr(s, field, None)
            if e is None or path == (0,) or getattr(s, "augmented", None):
                continue
            for new in alternatives(e):
                if new.t == e.t or isinstance(s, Do):
                    yield replaced(p, path, [changed(s, **{field: new})])


def alternatives(e: Expr) -> Iterator[Expr]:
    """An expression made smaller in one place; in a statement with an effect, only its operands."""
    if isinstance(e.t, T) and e.text and not isinstance(e, Var):
        yield from (a for a in e.args if a.t == e.t)
        if e.args and e.t.shape and not e.t.d.restricted:
            yield one(e.t)
    for i, a in enumerate(e.args):
        for new in alternatives(a):
            if new.t == a.t:
                yield Expr(e.text, (*e.args[:i], new, *e.args[i + 1:]), e.t, e.fn, e.ops, e.mag, e.soft)


def one(t: T) -> Expr:
    """A tile of ones, in place of any expression of its type."""
    return Expr(f"ct.ones({t.shape}, ct.{t.d.name})", (), t, lambda _: np.ones(t.shape, t.d.host), (("ones", t.dtype),))


def smaller_grid(p: Program) -> Iterator[Program]:
    """The program with one block."""
    if max(p.grid) > 1:
        yield p.with_(grid=(1,) * len(p.grid))


def used_only(p: Program) -> Iterator[Program]:
    """The program without parameters and helpers that nothing names."""
    q = used_only_now(p)
    if len(q.params) + len(q.helpers) < len(p.params) + len(p.helpers):
        yield q


def used_only_now(p: Program) -> Program:
    """Without parameters and helpers that nothing names. Data is drawn in order, so parameters whose data is drawn
    before that of others stay.
    """
    names = set(NAME.findall("\n".join(line for s in [*p.helpers, *p.body] for line in s.lines("    "))))
    calls = set(NAME.findall("\n".join(line for s in p.body for line in s.lines("    "))))
    last = max((i for i, q in enumerate(p.params) if q.name in names and "data(" in q.make), default=-1)
    params = [q for i, q in enumerate(p.params) if q.name in names or i < last and "data(" in q.make]
    return p.with_(params=params, helpers=[h for h in p.helpers if h.name in calls])


# ------------------------------------------------------------------ is it still a program?


def closed(p: Program) -> bool:
    """Whether every variable that is read has been assigned, judging by names. Saves running programs that cannot
    compile.
    """
    known = {"b", *(q.name for q in p.params), *(h.name for h in p.helpers)}
    return any(True for _ in effects(p.body)) and _closed(p.body, known)


def effects(stmts: list) -> Iterator[Do]:
    """The statements that are there for their effect, those in branches and loops too."""
    for s in stmts:
        if isinstance(s, Do):
            yield s
        for _, b in bodies(s):
            yield from effects(b)


def _closed(stmts: list, known: set[str]) -> bool:
    for s in stmts:
        read = {v.text for e in exprs(s) for v in e.walk() if isinstance(v, Var)}
        if not read <= known:
            return False
        if isinstance(s, While) and not ends(s):
            return False
        inner = known | ({s.name} if hasattr(s, "name") else set()) | set(getattr(s, "params", ()))
        if not all(_closed(b, set(inner)) for _, b in bodies(s)):
            return False
        known |= set(getattr(s, "names", ())) | ({s.name} if s.kind == "closure" else set())
    return True


def ends(s: While) -> bool:
    """Whether a while loop still counts: its condition, or that of the break at its head, reads the variable that the
    next statement of the body increments.
    """
    head, rest = s.cond, s.body
    if head is None:
        first = s.body[0] if s.body else None
        if not (isinstance(first, If) and [x.kind for x in first.then] == ["break"] and not first.orelse):
            return False
        head, rest = first.cond, s.body[1:]
    counted = rest[0] if rest else None
    return isinstance(counted, Let) and counted.augmented == "+" and any(
        isinstance(v, Var) and v.text == counted.names[0] for v in head.walk())
