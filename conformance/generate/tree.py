"""A generated program as a tree: it prints as source, the reference runs it, the shrinker cuts it.

Expressions and statements carry their source as a template over their operands, and their meaning as a function of
the running block and the operands' values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.generate.dtypes import T


@dataclass(eq=False)
class Expr:
    """`text` has {0}, {1}, … for the operands; `fn(ctx, *values)` is the meaning.

    ops   which ops it applies, as (op, dtype) for the counts
    mag   about log2 of the largest magnitude, to keep values tame
    soft  what the language leaves open about the value: 0 nothing, 1 a multiply-add may be fused, 2 rounding errors
    constant  whether it may be a compile-time number: then it has no attributes of a tile, and an op that Python cannot
        do on it is an error. If None: whether it is a scalar of operands that all may be
    """

    text: str
    args: tuple[Expr, ...]
    t: T | tuple[T, ...]
    fn: Callable
    ops: tuple[tuple[str, str], ...] = ()
    mag: float = 3
    soft: int = 0
    constant: bool | None = None

    def __post_init__(self) -> None:
        if self.constant is None:
            scalar = any(t.shape == () for t in (self.t if isinstance(self.t, tuple) else (self.t,)))
            self.constant = scalar and bool(self.args) and all(a.constant for a in self.args)

    def source(self) -> str:
        return self.text.format(*(a.source() for a in self.args)) if self.args else self.text

    def walk(self) -> Iterator[Expr]:
        yield self
        for a in self.args:
            yield from a.walk()

    def value(self, ctx: Any, env: dict) -> Any:
        return self.fn(ctx, *(a.value(ctx, env) for a in self.args))


@dataclass(eq=False)
class Var(Expr):
    """A use of a variable."""

    def source(self) -> str:
        return self.text

    def value(self, ctx: Any, env: dict) -> Any:
        return env[self.text]


def variable(text: str, e: Expr, t: T | None = None) -> Var:
    """The variable that a value is bound to."""
    return Var(text, (), t or e.t, None, (), e.mag, e.soft, e.constant)


def bare(text: str) -> str:
    """Without the parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if depth == 0 and i < len(text) - 1 or depth == 1 and c == ",":
            return text
    return text[1:-1]


# ------------------------------------------------------------------ statements


@dataclass(eq=False)
class Let:
    """`name = expr`, `a, b = expr`, or `name += operand` where `augmented` says how it is written. `targets` is the
    left side where it is anything else, as `a = b`.
    """

    names: tuple[str, ...]
    expr: Expr
    augmented: str | None = None
    kind: str = "assign"
    targets: str = ""

    def lines(self, pad: str) -> list[str]:
        if self.augmented:
            return [f"{pad}{self.names[0]} {self.augmented}= {bare(self.expr.args[1].source())}"]
        return [f"{pad}{self.targets or ', '.join(self.names)} = {bare(self.expr.source())}"]


@dataclass(eq=False)
class Do:
    """A statement for its effect: a store, an atomic, an assertion."""

    expr: Expr
    kind: str

    def lines(self, pad: str) -> list[str]:
        return [pad + bare(self.expr.source())]


@dataclass(eq=False)
class Text:
    """Lines that the reference ignores: a definition that it need not know, or one of the module by `name`."""

    name: str
    text: list[str]
    kind: str

    def lines(self, pad: str) -> list[str]:
        return [pad + line if line else "" for line in self.text]


@dataclass(eq=False)
class If:
    cond: Expr
    then: list
    orelse: list
    kind: str = "if"

    def lines(self, pad: str) -> list[str]:
        out = [f"{pad}if {bare(self.cond.source())}:", *block(self.then, pad)]
        if len(self.orelse) == 1 and isinstance(self.orelse[0], If):
            inner = self.orelse[0].lines(pad)
            return [*out, pad + "el" + inner[0][len(pad):], *inner[1:]]
        return [*out, f"{pad}else:", *block(self.orelse, pad)] if self.orelse else out


@dataclass(eq=False)
class For:
    """`bounds` are the one to three arguments of range; `held` names a variable that holds the range."""

    name: str
    bounds: tuple[Expr, ...]
    body: list
    kind: str = "for"
    dtype: str = "i32"  # of the loop's variable
    held: str = ""

    def lines(self, pad: str) -> list[str]:
        head = f"range({', '.join(bare(e.source()) for e in self.bounds)})"
        before = [f"{pad}{self.held} = {head}"] if self.held else []
        return [*before, f"{pad}for {self.name} in {self.held or head}:", *block(self.body, pad)]


@dataclass(eq=False)
class Each:
    """A compile-time loop over `expr`. The value of `expr` lists, for each round, the values of `names` as a tuple.
    `name` is the first of them, and `target` their text.
    """

    name: str
    names: tuple[str, ...]
    target: str
    expr: Expr
    body: list
    kind: str = "static_iter"

    def lines(self, pad: str) -> list[str]:
        return [f"{pad}for {self.target} in ct.static_iter({bare(self.expr.source())}):", *block(self.body, pad)]


@dataclass(eq=False)
class While:
    """`cond` None stands for True."""

    cond: Expr | None
    body: list
    kind: str = "while"

    def lines(self, pad: str) -> list[str]:
        return [f"{pad}while {'True' if self.cond is None else bare(self.cond.source())}:", *block(self.body, pad)]


@dataclass(eq=False)
class With:
    """`with expr as name`: the value of `expr` is the manager's argument, from which `enter` computes what it yields;
    `leave` runs at the end. If the body is another With alone, both are written in one line.
    """

    name: str
    expr: Expr
    enter: Callable
    leave: Callable
    body: list
    kind: str = "with"

    def lines(self, pad: str) -> list[str]:
        head, rest = f"{bare(self.expr.source())} as {self.name}", self
        while rest.kind == "with several" and len(rest.body) == 1 and isinstance(rest.body[0], With):
            rest = rest.body[0]
            head += f", {bare(rest.expr.source())} as {rest.name}"
        return [f"{pad}with {head}:", *block(rest.body, pad)]


@dataclass(eq=False)
class Leave:
    """break, continue, return, pass or raise; a return may give a value."""

    kind: str
    expr: Expr | None = None

    def lines(self, pad: str) -> list[str]:
        return [f"{pad}{self.kind}" + (f" {bare(self.expr.source())}" if self.expr else "")]


@dataclass(eq=False)
class Def:
    """A helper, in the module or in the kernel."""

    name: str
    params: tuple[str, ...]
    body: list
    kind: str = "helper"

    def lines(self, pad: str) -> list[str]:
        return [f"{pad}def {self.name}({', '.join(self.params)}):", *block(self.body, pad)]


def block(stmts: list, pad: str) -> list[str]:
    inner = pad + "    "
    return [line for s in stmts for line in s.lines(inner)] or [inner + "pass"]


BODIES = ("then", "orelse", "body")


def bodies(s: Any) -> list[tuple[str, list]]:
    """The nested statement lists of a statement, by field."""
    return [(n, getattr(s, n)) for n in BODIES if isinstance(getattr(s, n, None), list)]


def exprs(s: Any) -> list[Expr]:
    """The expressions of a statement itself, nested statements apart."""
    own = [getattr(s, n, None) for n in ("expr", "cond")]
    return [e for e in (*own, *getattr(s, "bounds", ())) if e is not None]


def walk(stmts: list) -> Iterator[Any]:
    for s in stmts:
        yield s
        for _, b in bodies(s):
            yield from walk(b)


# ------------------------------------------------------------------ the program


@dataclass(eq=False)
class Param:
    """A kernel parameter: `make` is the host expression of its argument, over `np`, `data` and `rng`."""

    name: str
    make: str
    annotation: str = ""


DATA = '''
rng = np.random.default_rng({seed})


def data(shape, dtype, low=-4, high=4, special=False):
    """Tame numbers of a dtype: integers, fractions (half of the time short ones), sometimes a few special ones."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iub":
        return rng.integers(low, high, shape, dtype if dtype.kind in "iu" else int, endpoint=True).astype(dtype)
    x = rng.uniform(low, high, shape)
    x = np.round(x * 64) / 64 if rng.random() < 0.5 else x
    if special:
        x = np.where(rng.random(shape) < 0.05, rng.choice([np.inf, -np.inf, np.nan, -0.0, 1e-40, 3e4], shape), x)
    return x.astype(dtype)
'''


STANDARD = ("contextlib", "dataclasses", "enum", "math", "operator")  # imported where they are named


@dataclass(eq=False)
class Program:
    """A kernel, its helpers, its arguments and its grid."""

    seed: Any
    params: list[Param]
    helpers: list[Def | Text]
    body: list
    grid: tuple[int, ...]
    features: set[str] = field(default_factory=set)  # "sm_100": needs such a GPU

    def source(self, module: str = "cutile") -> str:
        """The program as a file: `python FILE` runs it and prints its arrays."""
        heads = [f"{p.name}: {p.annotation}" if p.annotation else p.name for p in self.params]
        code: list[str] = []
        for h in self.helpers:
            code += ["", *h.lines(""), ""]
        code += ["", "@ct.kernel", f"def kernel({', '.join(heads)}):", *block(self.body, ""), ""]
        said = "\n".join(code)
        out = [*(f"import {m}" for m in STANDARD if f"{m}." in said), "", "import ml_dtypes", "import numpy as np", "",
               f"import {module} as ct", "", *code]
        out += [DATA.format(seed=self.seed).rstrip(), "", "", "def arguments():",
                "    global rng", f"    rng = np.random.default_rng({self.seed})", "    return (",
                *(f"        {p.make},  # {p.name}" for p in self.params), "    )", "", "",
                f"GRID = {self.grid}", "", 'if __name__ == "__main__":', "    args = arguments()",
                "    ct.launch(None, GRID, kernel, args)",
                f"    for name, x in zip({tuple(p.name for p in self.params)}, args, strict=True):",
                "        print(name, x, sep='\\n')"]
        return "\n".join(out) + "\n"

    def statements(self) -> Iterator[Any]:
        yield from walk(self.helpers)
        yield from walk(self.body)

    def ops(self) -> Counter:
        """How often it applies each (op, dtype)."""
        return Counter(o for s in self.statements() for e in exprs(s) for x in e.walk() for o in x.ops)

    def kinds(self) -> Counter:
        """How often it has each kind of statement."""
        return Counter(s.kind for s in self.statements())

    def with_(self, **changed: Any) -> Program:
        return replace(self, **changed)
