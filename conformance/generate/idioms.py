"""Ways to write a computation: functions and calls of every form, dataclasses, enumerations, tuples, evaluation at
compile time. Each is a text with its meaning.

The numbers are integers of any dtype, which wrap, so that the meaning is NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from conformance.generate.core import Gen, T
from conformance.generate.dtypes import INTS
from conformance.generate.tree import Expr, Text, Var


@dataclass(frozen=True)
class Idiom:
    """`name` is counted as an op. `define` is what the module has before the kernel, `setup` what the kernel has before
    the expression; `text` the expression; {f} a fresh name in all of them, {0}, {1}, … operands, {k} a small number,
    {op} one of + - ^ | &. `fn(f, k, *operands)` is the meaning, f being the operator's. `ops`: the ops that stand in
    it, besides that of {op}.
    """

    name: str
    text: str
    fn: Callable
    operands: int = 1
    define: str = ""
    setup: str = ""
    ops: tuple[str, ...] = ()
    kind: str = "helper"
    scalar: bool = False  # of scalars only


def _twice(f, k, x):
    return f(f(x, x), f(x, x))


FUNCTIONS = (
    Idiom("parameters", "{f}({0}, r={1})", lambda f, k, x, y: f(x, y) + x.dtype.type(k), 2,
          "def {f}(p, /, q={k}, *, r):\n    return (p {op} r) + q", ops=("add",)),
    Idiom("parameters", "{f}(r={1}, p={0}, q={k})", lambda f, k, x, y: f(x, y) - x.dtype.type(k), 2,
          "def {f}(p, q=None, *, r):\n    if q is None:\n        return p\n    return (p {op} r) - q", ops=("sub",)),
    Idiom("star", "{f}({0}, {1}, {0})", lambda f, k, x, y: f(f(x, y), x), 2,
          "def {f}(p, *rest):\n    for q in ct.static_iter(rest):\n        p = p {op} q\n    return p"),
    Idiom("star", "{f}(*({0}, {1}))", lambda f, k, x, y: f(y, x), 2, "def {f}(p, q):\n    return q {op} p"),
    Idiom("double star", "{f}(q={0}, p={1})", lambda f, k, x, y: f(y, x), 2,
          "def {f}_of(p, q):\n    return p {op} q\n\n\ndef {f}(**named):\n    return {f}_of(**named)"),
    Idiom("double star", "{f}({0}, r={1})", lambda f, k, x, y: f(x, y), 2,
          "def {f}(p, **named):\n    return p {op} named['r'] if 'r' in named else p"),
    Idiom("function as argument", "{f}(lambda q: q {op} {k}, {0})", lambda f, k, x: f(f(x, x.dtype.type(k)),
                                                                                  x.dtype.type(k)),
          1, "def {f}(function, p):\n    return function(function(p))"),
    Idiom("function as argument", "{f}(ct.bitwise_xor, {0}, {1})", lambda f, k, x, y: x ^ f(x, y), 2,
          "def {f}(function, p, q):\n    return function(p, p {op} q)", ops=("bitwise_xor",)),
    Idiom("function as result", "{f}({0})({1})", lambda f, k, x, y: f(y, x), 2,
          "def {f}(p):\n    def inner(q):\n        return q {op} p\n\n    return inner"),
    Idiom("function in a tuple", "{f}[1]({0})", lambda f, k, x: x ^ x.dtype.type(k), 1, "",
          "{f} = (lambda q: q {op} 1, lambda q: q ^ {k})", ("bitwise_xor",), "lambda"),
    Idiom("lambda", "{f}({0}, {1})", lambda f, k, x, y: f(x, y) | y, 2, "", "{f} = lambda p, q: (p {op} q) | q",
          ("bitwise_or",), "lambda"),
    Idiom("recursion", "{f}({0}, 2)", _twice, 1,
          "def {f}(p, n):\n    if n == 0:\n        return p\n    return {f}(p {op} p, n - 1)"),
    Idiom("ct.function", "{f}({0}, {1})", lambda f, k, x, y: f(x, y), 2,
          "@ct.function\ndef {f}(p, q):\n    \"\"\"A docstring.\"\"\"\n    return p {op} q"),
    Idiom("ct.function", "{f}({0})", lambda f, k, x: f(x, x.dtype.type(k)), 1,
          "@ct.function(host=True)\ndef {f}(p):\n    return p {op} {k}"),
    Idiom("no result", "({0} if {f}({1}) is None else {1})", lambda f, k, x, y: x, 2,
          "def {f}(p):\n    p {op} p\n    ..."),
)

RECORDS = (
    Idiom("dataclass", "{f}({0}).times({1})", lambda f, k, x, y: f(x, y) ^ x.dtype.type(k), 2,
          "@dataclasses.dataclass(frozen=True)\nclass {f}:\n    first: object\n    second: object = {k}\n\n"
          "    def times(self, p):\n        return (self.first {op} p) ^ self.second", "", ("bitwise_xor",),
          "dataclass"),
    Idiom("dataclass", "({f}({0}, second={1}) + {f}({1}, {0})).both", lambda f, k, x, y: f(f(x, y), f(y, x)), 2,
          "@dataclasses.dataclass(frozen=True)\nclass {f}:\n    first: object\n    second: object\n\n"
          "    def __add__(self, other):\n        return {f}(self.first {op} other.first, self.second {op} "
          "other.second)\n\n    @property\n    def both(self):\n        return self.first {op} self.second", "", (),
          "dataclass"),
    Idiom("dataclass", "{f}(7)({0})", lambda f, k, x: f(x, x.dtype.type(7)), 1,
          "@dataclasses.dataclass(frozen=True, kw_only=True)\nclass {f}_base:\n    LIMIT = 7\n\n\n"
          "@dataclasses.dataclass(frozen=True)\nclass {f}({f}_base):\n    n: object\n\n    def __post_init__(self):\n"
          "        ct.static_assert(self.n == self.LIMIT)\n\n    def __call__(self, p):\n"
          "        return p {op} self.n", "", ("static_assert",), "dataclass"),
    Idiom("dataclasses.replace", "dataclasses.replace({f}_o, b={1}).a[0]", lambda f, k, x, y: f(x, y), 2,
          "@dataclasses.dataclass(frozen=True)\nclass {f}:\n    a: object\n    b: object\n\n    @staticmethod\n"
          "    def of(p, q):\n        return {f}((p {op} q,), None)", "{f}_o = {f}.of({0}, {1})", (), "dataclass"),
    Idiom("dataclass in a branch", "({f}_o.a {op} {f}_o.b)", lambda f, k, x, y: f(y, x), 2,
          "@dataclasses.dataclass(frozen=True)\nclass {f}:\n    a: object\n    b: object",
          "{f}_o = {f}({0}, {1})\nif b >= 0:\n    {f}_o = {f}({f}_o.b, {f}_o.a)", (), "dataclass"),
    Idiom("tuple in a loop", "({f}_t[0] {op} {f}_t[1])", lambda f, k, x, y: f(y, x), 2, "",
          "{f}_t = ({0}, {1})\nfor {f}_i in range(3):\n    {f}_t = ({f}_t[1], {f}_t[0])", (), "tuple"),
    Idiom("enum", "{f}({0}, {f}_kind.TWO)", lambda f, k, x: f(x, x.dtype.type(2)), 1,
          "class {f}_kind(enum.Enum):\n    ONE = 1\n    TWO = 2\n\n\ndef {f}(p, kind):\n"
          "    if kind == {f}_kind.ONE:\n        return None\n    return p {op} 2", "", (), "enum"),
    Idiom("enum", "({0} {op} {f}.TWO)", lambda f, k, x: f(x, x.dtype.type(2)), 1,
          "class {f}(enum.IntEnum):\n    ONE = 1\n    TWO = 2", "", (), "enum"),
)

EXPRESSIONS = (
    Idiom("tuple item", "{f}[-1]", lambda f, k, x, y: f(x, y), 2, "", "{f} = ({0}, ({1}, 1), {0} {op} {1})", (),
          "tuple"),
    Idiom("tuple slice", "{f}[::-1][0]", lambda f, k, x, y: y, 2, "", "{f} = (1, *({0}, {1}))", (), "tuple"),
    Idiom("len", "({0} {op} len({f}))", lambda f, k, x: f(x, x.dtype.type(3)), 1, "", "{f} = (None, 'text', ct.int32)",
          (), "tuple"),
    Idiom("closure sees the last value", "{f}()", lambda f, k, x, y: f(y, x), 2, "",
          "{f}_v = {0}\n\ndef {f}():\n    return {f}_v {op} {0}\n\n{f}_v = {1}", (), "closure"),
    Idiom("static_eval", "({0} {op} ct.static_eval({{'a': {k}, 'b': 1}}['a']))",
          lambda f, k, x: f(x, x.dtype.type(k))),
    Idiom("static_eval", "({0} {op} ct.static_eval(sum([i for i in range({k}) if i % 2])))",
          lambda f, k, x: f(x, x.dtype.type(sum(i for i in range(k) if i % 2)))),
    Idiom("static_eval", "ct.static_eval({f} + {f} if {f}.ndim < 9 else None)", lambda f, k, x: x + x, 1, "",
          "{f} = {0}", ("add",), "assign"),
    Idiom("static_eval", "({0} {op} ct.static_eval(len('text') + max(1, {k})))",
          lambda f, k, x: f(x, x.dtype.type(4 + max(1, k)))),
    Idiom("ensure_constant", "({0} {op} ct.ensure_constant({k} + 1))", lambda f, k, x: f(x, x.dtype.type(k + 1)), 1,
          "", "", ("add",)),
    Idiom("static condition", "({0} {op} {1} if {f}.dtype == ct.{d} and len({f}.shape) == {f}.ndim else None)",
          lambda f, k, x, y: f(x, y), 2, "", "{f} = {0}", (), "assign"),
    Idiom("static condition", "({0} if 'a' + 'b' == 'ab' and ct.int32 is not None else None)", lambda f, k, x: x),
    Idiom("generator", "tuple({0} {op} i for i in ct.static_iter(range({k} + 1)))[-1]", lambda f, k, x: f(
        x, x.dtype.type(k))),
    Idiom("generator", "tuple({0} {op} i * j for i in ct.static_iter((1, 2)) for j in ct.static_iter((3, 4)) "
          "if j > i)[1]", lambda f, k, x: f(x, x.dtype.type(4))),
    Idiom("printed text", "{f}({0})", lambda f, k, x: f(x, x.dtype.type(k)), 1,
          "def {f}(p):\n    text = f'{{p}} is {{{k}}}'\n    if text is None:\n        print(text)\n"
          "    return p {op} {k}"),
    Idiom("int", "({0} {op} int(True + {k}))", lambda f, k, x: f(x, x.dtype.type(k + 1)), 1, "", "", ("add",)),
    Idiom("getattr", "({0} + (getattr({f}, 'ndim') * 0 + {k}))", lambda f, k, x: x + x.dtype.type(k), 1, "",
          "{f} = {0}", ("add",), "assign"),
    Idiom("in", "({0} in ({1}, {k}))", lambda f, k, x, y: (x == y) | (x == x.dtype.type(k)), 2, scalar=True),
    Idiom("in", "({0} not in (1, {k}))", lambda f, k, x: (x != x.dtype.type(1)) & (x != x.dtype.type(k)),
          scalar=True),
    Idiom("chained comparison", "({0} < {1} <= {k})", lambda f, k, x, y: (x < y) & (y <= x.dtype.type(k)), 2,
          scalar=True),
    Idiom("chained comparison", "({k} >= {0} != {1} > 1)", lambda f, k, x, y: (x <= x.dtype.type(k)) & (x != y) & (
        y > y.dtype.type(1)), 2, scalar=True),
)
IDIOMS = (*FUNCTIONS, *RECORDS, *EXPRESSIONS)
OPERATORS = {"+": ("add", np.add), "-": ("sub", np.subtract), "^": ("bitwise_xor", np.bitwise_xor),
             "|": ("bitwise_or", np.bitwise_or), "&": ("bitwise_and", np.bitwise_and)}


def idiom(g: Gen, made: Idiom | None = None) -> Expr:
    """One of the above, of tiles in scope."""
    made, k, f = made or g.pick(IDIOMS), g.pick((1, 2, 3, 5, 7)), g.fresh("f")
    sign = g.pick(tuple(OPERATORS))
    op, of = OPERATORS[sign]
    d, shape = g.pick(INTS), () if made.scalar else g.shape()
    xs: list[Var] = []
    for _ in range(made.operands):
        x = g.want(d, shape, clean=True, tile=True)  # constants do not wrap, and have no attributes
        xs.append(g.use(x) if isinstance(x, Var) else g.use(g.let(x)))
    words = {"f": f, "k": k, "op": sign, "d": xs[0].t.d.name}
    if made.define:
        g.helpers.append(Text(f, made.define.format(**words).split("\n"), made.kind))
    if made.setup:
        lines = made.setup.format(*(x.text for x in xs), **words).split("\n")
        g.out.append(Text("", lines, "assign" if made.define else made.kind))
    text = made.text.format(*(x.text for x in xs), **words).replace("{", "{{").replace("}", "}}")
    ops = ((made.name, d), *((o, d) for o in made.ops), *(((op, d),) if "{op}" in made.define + made.setup + made.text
                                                          else ()))
    t = T("b1") if made.scalar else T(d, shape)
    return Expr(text, tuple(xs), t, lambda _, *v: np.asarray(made.fn(of, k, *v)), ops)
