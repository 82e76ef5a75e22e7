"""Random modules in the Python that tile code shares: they compute and print the same in a kernel as in Python.

They avoid all in which the language differs from Python on purpose:

- values beyond int32, which wrap at run time [STRICT-1]: every assignment takes a remainder
- `and`, `or` as values, since they give a bool [EX-13, D-21]: they stand in conditions only
- printing bools and floats at run time, which are shown as %d and %f [PRINT-3]: bools go through int()
- format specs of f-strings that differ in C: hexadecimal of negative numbers, ^ [PRINT-4]
- uses of a variable that has two types, or is assigned on some paths only [JOIN-2, JOIN-3, LOOP-7]: variables of each
  kind have names of their own, and a variable that a block assigns first is not used after the block
- `not` of something that is no number [COND-3, D-38], and int() of run-time values, which have a dtype already
- calls and choices in static constructs, where real Python runs [SEVAL-2]
- break, continue and return in static loops [SEVAL-7], except where they skip a yield; return in context managers, and
  yields in branches that are taken [CM-1]
- assignment to variables of outer functions (nonlocal), which is refused [ST-7]
- printing functions and objects without a repr, of which Python shows addresses [PRINT-2]
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random

from conformance.harness.api import ct

# ------------------------------------------------------------------ what the modules use


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


@dataclass(frozen=True)
class Pair:
    x: object
    y: object = 2

    def total(self, k=1):
        return self.x * k + self.y

    @property
    def swapped(self):
        return Pair(self.y, self.x)

    def __add__(self, other):
        return Pair((self.x + other) % 53, self.y)


LIMIT, NAMES = 7, ("n", "it's", (3, None))


def said(n, *, label="said"):
    print(label, n)
    return n


def added(*ns, start=0):
    for n in ct.static_iter(ns):
        start = start + n
    return start % 59


def worded(k, /, **words):
    if "p" in words:
        return k + words["p"]
    return k - words.get("q", 1)


def applied(f, n=3):
    return f() * n % 61


def deep(d, n):
    return n if d == 0 else deep(d - 1, (n * 2 + d) % 43)


USED = {"contextlib": contextlib, "dataclasses": dataclasses, "Color": Color, "Pair": Pair, "LIMIT": LIMIT,
        "NAMES": NAMES, "said": said, "added": added, "worded": worded, "applied": applied, "deep": deep}


# ------------------------------------------------------------------ the modules


@dataclass(frozen=True)
class Known:
    """The names that code at some point may use."""

    ints: tuple[str, ...] = ()  # variables
    mine: frozenset[str] = frozenset()  # variables of the function itself, which it may assign
    tuples: tuple[tuple[str, int], ...] = ()  # of so many ints
    pairs: tuple[str, ...] = ()
    calls: tuple[tuple[str, int], ...] = ()  # functions that return an int, and how many ints they take
    jumps: bool = False  # inside a loop with break and continue
    returns: bool = True

    def inner(self, **changes) -> Known:
        return replace(self, **changes)

    def assigned(self, *ints: str, **changes) -> Known:
        """After assignments to more variables that are ints."""
        return replace(self, ints=(*self.ints, *ints), mine=self.mine.union(ints), **changes)

    def function(self, *params: str, **changes) -> Known:
        """Inside a function with these parameters."""
        ints = (*(n for n in self.ints if n not in params), *params)
        return replace(self, ints=ints, mine=frozenset(params), jumps=False, **changes)

    @property
    def targets(self) -> list[str]:
        return [n for n in self.ints if n in self.mine]


@dataclass
class RandomModule:
    """One random module; its function `f` takes two ints and gives one."""

    rng: Random
    size: int = 2  # the most statements in a body
    depth: int = 1  # how deep expressions nest
    lines: list[str] = field(default_factory=list)
    indent: int = 0
    count: int = 0
    managers: list[tuple[str, str]] = field(default_factory=list)  # names of context managers, and what each yields

    def source(self) -> str:
        r = self.rng
        outer = Known(("LIMIT",), calls=(("said", 1),))
        for _ in range(r.choice([0, 1, 1, 2])):
            self.manager(outer)
        for i in range(r.choice([0, 0, 1, 2])):
            self.function(f"h{i}", outer)
            outer = outer.inner(calls=(*outer.calls, (f"h{i}", 2)))
        self.function("f", outer, ("a", "b"), self.depth + 1)
        return "\n".join(self.lines) + "\n"

    # -- pieces

    def put(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    @contextmanager
    def under(self, line: str):
        self.put(line)
        self.indent += 1
        yield
        self.indent -= 1

    def function(self, name: str, k: Known, params: tuple[str, ...] | None = None, depth: int = 2) -> None:
        params = params or ("p", "q")
        own = k.function(*params, returns=True)
        second = self.rng.choice(["", "", f"={self.rng.randrange(9)}"]) if name != "f" else ""
        if not self.indent:
            self.put("\n")
        with self.under(f"def {name}({params[0]}, {params[1]}{second}):"):
            end: Known | None = own
            for _ in range(self.depth + 1 if name == "f" else 1):
                end = end and self.block(end, depth)
            if end is not None:
                self.put(f"return {self.value(end)}")

    def manager(self, k: Known) -> None:
        r, name, v = self.rng, self.name("manager"), "v"
        self.put("\n")
        self.put("@contextlib.contextmanager")
        with self.under(f"def {name}(n, step=1):"):
            self.put(f"{v} = {self.value(k.inner(ints=(*k.ints, 'n', 'step')))}")
            own = k.function("n", "step", v, returns=False)
            if r.random() < 0.5:
                own = self.block(own, 1) or own
            if r.random() < 0.2:  # not reached
                with self.under(r.choice(["for e in ct.static_iter((1, 2)):", "if LIMIT < 0:"])):
                    self.put(r.choice(["break", "continue"]) if self.lines[-1].lstrip()[0] == "f" else "pass")
                    self.put("yield 9")
            kind = r.choice(["int", "call", "call", "call", "both", "none"])
            if self.managers and r.random() < 0.4:
                own = self.entered(own, lambda inner: self.yields(inner, kind)) or own
            else:
                self.yields(own, kind)
            self.put(f"{v} = {self.value(own)}")
            self.block(own, 1)
        self.managers.append((name, kind))

    def yields(self, k: Known, kind: str) -> Known:
        value = {"int": self.value(k), "call": f"lambda: {self.value(k)}", "none": ""}
        value["both"] = f"{value['int']}, {value['call']}"
        self.put(self.rng.choice(["yield ", "got = yield "]) + value[kind] if value[kind] else "yield")
        return k

    # -- expressions

    def value(self, k: Known, depth: int | None = None) -> str:
        """An expression whose value is a small int."""
        return f"({self.expression(k, self.depth if depth is None else depth)}) % {self.rng.choice([17, 47, 97])}"

    def expression(self, k: Known, depth: int) -> str:
        r = self.rng
        if depth == 0 or r.random() < 0.25:
            return self.atom(k)
        x = self.expression(k, depth - 1)
        kind = r.randrange(18)
        if kind < 5:
            return f"({x} {r.choice('+-*')} {self.expression(k, depth - 1)}) % 37"
        if kind == 5:
            return f"({x} if {self.condition(k, depth - 1)} else {self.expression(k, depth - 1)})"
        if kind == 6:
            return f"(({x}) {r.choice(['// 3', '% 5', '// -2', '% -4', '<< 2', '>> 1', '& 12', '| 3', '^ 5'])})"
        if kind == 7:
            return f"{r.choice(['min', 'max'])}({x}, {self.expression(k, depth - 1)})"
        if kind == 8:
            return r.choice([f"abs({x})", f"divmod({x}, 7)[1]", f"(-({x}))",
                             f"(~({x}))", f"(({x}) % 5) ** 2"])
        if kind < 12 and k.calls:
            fn, n = r.choice(k.calls)
            return f"{fn}({', '.join(self.expression(k, depth - 1) for _ in range(n))})"
        if kind == 12 and k.tuples:
            t, n = r.choice(k.tuples)
            return r.choice([f"{t}[{r.randrange(-n, n)}]", f"len({t})", f"added(*{t}[{r.randrange(n)}:])"])
        if kind == 13 and k.pairs:
            p = r.choice(k.pairs)
            return r.choice([f"{p}.x", f"{p}.total()", f"{p}.total(k=3)", f"{p}.swapped.x", f"({p} + 3).x"])
        return self.called(k, x, depth)

    def atom(self, k: Known) -> str:
        return self.rng.choice([*k.ints, *k.ints, str(self.rng.randrange(10)), f"-{self.rng.randrange(1, 9)}"])

    def called(self, k: Known, x: str, depth: int) -> str:
        r, y = self.rng, self.expression(k, depth - 1)
        shadow = r.choice([n for n in k.ints if n != "LIMIT"] or ["z"])
        return r.choice([
            f"added({x}, {y}, start={r.randrange(5)})", f"worded({x}, p={y})", f"worded({x}, q={y})",
            f"worded({x}, z={y})",
            f"applied(lambda: {x})", f"applied(n={y}, f=lambda w={x}: w + 1)", f"deep({r.randrange(4)}, {x})",
            f"(lambda {shadow}: {self.expression(k, 1)})({y})", f"said({x}, label='s')", f"Pair({x}).total({y})",
            f"dataclasses.replace(Pair({x}, {y}), x=3).total()",
            f"added(*({self.expression(k, 1)} for {shadow} in ct.static_iter((1, {self.atom(k)}, LIMIT))))".replace(
                "added(*(", "added(*tuple(")])

    def condition(self, k: Known, depth: int = 1) -> str:
        r, x = self.rng, self.expression(k, depth)
        kind = r.randrange(10)
        if kind < 5 or not depth:
            return f"{x} {r.choice(['<', '<=', '==', '!=', '>', '>='])} {self.expression(k, depth)}"
        if kind == 5:
            return f"({self.condition(k, 0)} {r.choice(['and', 'or'])} {self.condition(k, depth)})"
        if kind == 6:
            y = self.expression(k, 0)
            return f"{x} {r.choice(['<', '>='])} {y} {r.choice(['<', '!='])} {self.expression(k, 0)}"
        if kind == 7:
            return f"{x} {r.choice(['in', 'not in'])} ({self.expression(k, 0)}, {self.expression(k, 0)}, 3)"
        if kind == 8:
            return r.choice([f"not ({self.condition(k, 0)})", f"({x}, 1) == ({self.expression(k, 0)}, 1)", x,
                             f"Pair({x}) != Pair({self.expression(k, 0)}, 2)"])
        return r.choice(["LIMIT > 5", "'a' < NAMES[0]", "NAMES[2][1] is None", "Color.RED == Color('b')", "()",
                         "NAMES"])

    def shown(self, k: Known, depth: int = 1) -> str:
        """An argument of print."""
        r, x = self.rng, self.value(k, 1)
        if depth == 0 or r.random() < 0.4:
            return r.choice([x, x, "'it\\'s'", "'b'", "None", "2.5", "True", "Color.BLUE", "NAMES", self.text(k)])
        items = ", ".join(self.shown(k, depth - 1) for _ in range(r.randrange(1, 4)))
        return r.choice([f"({items},)", f"Pair({self.shown(k, depth - 1)})", f"Pair({x}, {self.shown(k, 0)}).swapped",
                         f"({items},)[::-1]", f"str(({items},))", self.text(k)])

    def text(self, k: Known) -> str:
        r, x = self.rng, self.value(k, 0)
        return r.choice([
            f"f'v{{{x}}}'", f"f'{{{x}:{r.choice(['4d', '<3d', '+d', '05d', ' d', '3'])}}}|'", f"f'{{({x}, NAMES)}}'",
            f"f\"it's {{Color.RED}} {{{x}}}\"", f"'<' + f'{{{x}}}' + '>'", f"str({x})", f"repr('a') + str({x})",
            f"'-'.join(('a', f'{{{x}}}', NAMES[1]))", f"f'{{Pair({x}, None)}}'"])

    # -- statements

    def block(self, k: Known, depth: int) -> Known | None:
        """Some statements; what code after them may use, or None if control does not get there."""
        for _ in range(self.rng.randrange(1, self.size + 1)):
            after = self.statement(k, depth)
            if after is None:
                return None
            k = after
        return k

    def nested(self, k: Known, depth: int, **changes) -> None:
        self.block(k.inner(**changes), depth - 1)

    def statement(self, k: Known, depth: int) -> Known | None:
        r = self.rng
        kind = r.randrange(30)
        if kind < 6 or depth == 0 and kind >= 17:
            return self.assignment(k)
        if kind < 8:
            more = f", sep={self.text(k)}" if r.random() < 0.2 else ", end='; '" if r.random() < 0.2 else ""
            self.put(f"print({', '.join(self.shown(k) for _ in range(r.randrange(1, 4)))}{more})")
            return k
        if kind < 17:
            return (self.tuple, self.pair, self.closure, self.closure, self.jump, self.leave, self.table, self.late,
                    self.definition)[kind - 8](k)
        if kind < 21:
            with self.under(f"if {self.condition(k)}:"):
                self.nested(k, depth)
            if r.random() < 0.5:
                with self.under(r.choice(["else:", f"elif {self.condition(k)}:"])):
                    self.nested(k, depth)
            return k
        if kind < 24:
            return self.loop(k, depth)
        if kind == 24:
            return self.static_loop(k, depth)
        if kind == 25:
            n = self.name("w")
            self.put(f"{n} = 0")
            with self.under(f"while {r.choice(['True', f'{n} < 4 and {self.condition(k, 0)}', f'{n} < 3'])}:"):
                self.put(f"{n} = {n} + 1")
                with self.under(f"if {n} > 4:"):
                    self.put("break")
                self.nested(k.inner(ints=(*k.ints, n)), depth, jumps=True)
            return k.inner(ints=(*k.ints, n))
        if self.managers:
            return self.entered(k, lambda inner: self.block(inner, depth - 1))
        return self.assignment(k)

    def assignment(self, k: Known) -> Known:
        r = self.rng
        mine = k.targets
        v = r.choice([*mine, *mine, self.name("x")])
        form = r.randrange(6)
        if form == 0 and len(mine) > 1:
            a, b = r.sample(mine, 2)
            self.put(f"{a}, {b} = {r.choice([f'{b}, {a}', f'{self.value(k)}, {self.value(k)}'])}")
            return k
        if form == 1 and v in mine:
            self.put(f"{v} {r.choice(['+=', '-=', '*='])} {self.value(k, 1)}")
            self.put(f"{v} %= 83")
            return k
        if form == 2:
            w = self.name("x")
            self.put(r.choice([f"{v} = {w} = {self.value(k)}", f"({v}, [{w}]), _ = ({self.value(k)}, (LIMIT,)), 0",
                               f"{v}, {w} = divmod({self.value(k)}, 6)"]))
            return k.assigned(v, w)
        self.put(f"{v}{r.choice(['', '', ': int'])} = {self.value(k)}")
        return k.assigned(v)

    def tuple(self, k: Known) -> Known:
        r = self.rng
        t, n = r.choice([*(t for t in k.tuples if t[0] in k.mine), (self.name("t"), r.randrange(1, 4))])
        self.put(f"{t} = ({', '.join(self.value(k, 1) for _ in range(n))},)" if r.random() < 0.6 or n > 2 else
                 f"{t} = tuple({self.value(k.inner(ints=(*k.ints, 'e')), 1)} for e in ct.static_iter(range({n})))")
        return k.inner(tuples=(*k.tuples, (t, n)), mine=k.mine | {t})

    def pair(self, k: Known) -> Known:
        p = self.rng.choice([*(p for p in k.pairs if p in k.mine), self.name("d")])
        self.put(f"{p} = Pair({self.value(k, 1)}, {self.value(k, 1)})")
        return k.inner(pairs=(*k.pairs, p), mine=k.mine | {p})

    def closure(self, k: Known) -> Known:
        g = self.name("g")
        self.put(self.rng.choice([f"{g} = lambda: {self.value(k)}",
                                  f"{g} = lambda z={self.value(k, 1)}: {self.value(k.inner(ints=(*k.ints, 'z')))}"]))
        return k.inner(calls=(*k.calls, (g, 0)))

    def definition(self, k: Known) -> Known:
        g = self.name("g")
        self.function(g, k, ("p", self.rng.choice([n for n in k.ints if n not in ("p", "LIMIT")] or ["q"])), 1)
        return k.inner(calls=(*k.calls, (g, 2)))

    def table(self, k: Known) -> Known:
        """Several functions of a loop variable, which all see its last value, or each see their own."""
        t, i = self.name("fs"), self.name("i")
        own = k.inner(ints=(*k.ints, i))
        f = self.rng.choice([f"lambda: {self.value(own, 1)}", f"lambda {i}={i}: {self.value(own, 1)}"])
        if self.rng.random() < 0.5:
            self.put(f"{t} = tuple(({f}) for {i} in ct.static_iter(range(3)))")
        else:
            self.put(f"{t} = ()")
            with self.under(f"for {i} in ct.static_iter((2, LIMIT, 5)):"):
                self.put(f"{t} = {t} + ({f},)")
        return k.inner(calls=(*k.calls, (f"{t}[0]", 0), (f"{t}[-1]", 0)))

    def late(self, k: Known) -> Known:
        """A function that returns one, whose variables change before it returns."""
        g, made = self.name("g"), self.name("made")
        with self.under(f"def {g}(m):"):
            own = k.function("m")
            self.put(f"get = lambda s=1: {self.value(own.inner(ints=(*own.ints, 's')))}")
            self.put(f"both = lambda: get() + {self.value(own, 1)}")
            self.put(f"m = {self.value(own.inner(calls=(*own.calls, ('get', 0))))}")
            self.put(f"return {self.rng.choice(['get', 'both', 'lambda: both() - get(s=m)'])}")
        self.put(f"{made} = {g}({self.value(k)})")
        return k.inner(calls=(*k.calls, (made, 0)))

    def jump(self, k: Known) -> Known | None:
        if not k.jumps:
            return self.assignment(k)
        with self.under(f"if {self.condition(k)}:"):
            self.put(self.rng.choice(["break", "continue"]))
        return k

    def leave(self, k: Known) -> Known | None:
        if not k.returns:
            return self.assignment(k)
        if self.rng.random() < 0.15:
            self.put(f"return {self.value(k)}")
            return None
        with self.under(f"if {self.condition(k)}:"):
            self.put(f"return {self.value(k)}")
        return k

    def loop(self, k: Known, depth: int) -> Known:
        r = self.rng
        i = r.choice([self.name("i"), self.name("i"), *k.targets])
        bounds = r.choice([f"{self.value(k, 1)} % 5", f"1, ({self.value(k, 1)}) % 6", "0, 7, 3", "3"])
        with self.under(f"for {i} in range({bounds}):"):
            self.nested(k.assigned(i), depth, jumps=True)
        return k

    def static_loop(self, k: Known, depth: int) -> Known:
        i = self.name("i")
        items = self.rng.choice(["range(3)", f"(4, {self.value(k, 0)})", "enumerate((2, 5))"])
        with self.under(f"for {f'{i}, _' if items.startswith('e') else i} in ct.static_iter({items}):"):
            self.nested(k.assigned(i), depth, jumps=False, returns=False)
        return k.assigned(i)

    def entered(self, k: Known, body) -> Known:
        """A with statement; code after it may use the variables that it binds."""
        r, (name, kind) = self.rng, self.rng.choice(self.managers)
        step = r.choice(["", f", step={self.value(k, 1)}"])
        v, g = self.name("v"), self.name("g")
        target = {"int": f" as {v}", "call": f" as {g}", "both": f" as ({v}, {g})", "none": ""}[kind]
        inner = k.assigned(v) if kind in ("int", "both") else k
        if kind in ("call", "both"):
            inner = inner.inner(calls=(*inner.calls, (g, 0)))
        with self.under(f"with {name}({self.value(k, 1)}{step}){target}:"):
            body(inner)
        return inner
