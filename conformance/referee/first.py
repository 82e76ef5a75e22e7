"""The first value of a program that differs: every assigned tile is recorded on both sides, and the records compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.generate import Program
from conformance.generate.core import NP
from conformance.generate.dtypes import DTYPES, T
from conformance.generate.tree import Do, Each, Expr, Let, Param, Var, bodies
from conformance.referee.compare import bounds_of, fused, inside, same
from conformance.referee.implementations import Implementation, flat, loaded

LIMIT = 8  # how many assignments of one variable are kept, besides the last one

RECORD = '''
def record(log, when, count, clock, b, t, size):
    """The value of a variable as it is assigned, with its number among all assignments of the block."""
    n = ct.load(count, (b,), ())
    c = ct.load(clock, (b,), ())
    at = min(n, {limit})
    ct.store(log, (b, at, 0), ct.reshape(t, (1, 1, size)))
    ct.store(when, (b, at), c)
    ct.store(count, (b,), n + 1)
    ct.store(clock, (b,), c + 1)
'''.strip().format(limit=LIMIT)


@dataclass(eq=False)
class Text:
    """A helper function given as text."""

    text: str
    name: str = "record"
    kind: str = "helper"

    def lines(self, pad: str) -> list[str]:
        return self.text.splitlines()


@dataclass
class First:
    """The first difference: the statement, the block, how often the statement had run before, both values."""

    variable: str
    statement: str
    block: int
    round: int
    first: np.ndarray
    second: np.ndarray
    ops: tuple[str, ...]


def recorded(program: Program) -> tuple[Program, dict[str, Let]]:
    """The program with a record after each assignment in the kernel, and the last assignment of each variable."""
    blocks = int(np.prod(program.grid))
    seen: dict[str, Any] = {}
    body = _recording(program.body, seen)
    params = [*program.params, Param("clock", f"np.zeros({(blocks,)}, np.int32)")]
    for name, (t, _) in seen.items():
        np_type = NP.get(_kept(t), f"np.{DTYPES[_kept(t)].name}")
        params += [Param(f"log_{name}", f"np.zeros({(blocks, LIMIT + 1, t.size)}, {np_type})"),
                   Param(f"when_{name}", f"np.full({(blocks, LIMIT + 1)}, -1, np.int32)"),
                   Param(f"count_{name}", f"np.zeros({(blocks,)}, np.int32)")]
    made = program.with_(params=params, body=body, helpers=[Text(RECORD), *program.helpers])
    return made, {n: s for n, (_, s) in seen.items()}


def _kept(t: T) -> str:
    return "f32" if not t.d.arrays else t.dtype


def _recording(stmts: list, seen: dict) -> list:
    out = []
    for s in stmts:
        copy = s.__class__(**{**{n: getattr(s, n) for n in s.__dataclass_fields__},
                              **{n: _recording(b, seen) for n, b in bodies(s) if s.kind not in ("helper", "closure")}})
        out.append(copy)
        if isinstance(s, Let) and not isinstance(s.expr.t, tuple) and not isinstance(s, Each):
            out.append(_record(s.names[0], s.expr.t))
            seen[s.names[0]] = (s.expr.t, s)
    return out


def _record(name: str, t: T) -> Do:
    value = f"{name}.astype(ct.float32)" if not t.d.arrays else name
    text = f"record(log_{name}, when_{name}, count_{name}, clock, b, {value}, {t.size})"

    def fn(ctx, b, v):
        log, when, count, clock = (ctx.memory[f"{p}_{name}"] if p != "clock" else ctx.memory["clock"]
                                   for p in ("log", "when", "count", "clock"))
        b, at = int(b), min(int(count[int(b)]), LIMIT)
        log[b, at], when[b, at] = np.asarray(v).reshape(-1), clock[b]
        count[b] += 1
        clock[b] += 1

    return Do(Expr(text, (Var("b", (), T("i32"), None), Var(name, (), t, None)), t, fn), "record")


def first_difference(program: Program, first: Implementation, second: Implementation) -> First | None:
    """The first assignment, in the order of execution, whose value differs by more than the language allows."""
    made, statements = recorded(program)
    with loaded(made) as modules:
        a, b = (dict(flat(made, i.run(made, modules))) for i in (first, second))
        known = bounds_of(made, modules, fused(first, second))
        found = dict(zip([n for n, _ in flat(made, modules("cutile").arguments())], known, strict=True))
    best = None
    for name, s in statements.items():
        x, y, f = a[f"log_{name}"], b[f"log_{name}"], found[f"log_{name}"]
        wrong = ~same(x, y) & np.isfinite(f.bound) & ~(inside(x, f) & inside(y, f))
        for block, at in {(int(i), int(j)) for i, j, _ in np.argwhere(wrong)}:
            when = int(a[f"when_{name}"][block, at])
            if best is None or (when, block) < best[0]:
                best = ((when, block), First(name, s.lines("")[0], block, at, x[block, at], y[block, at],
                                             tuple(dict.fromkeys(o for e in s.expr.walk() for o, _ in e.ops))))
    return best[1] if best else None
