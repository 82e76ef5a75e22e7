"""Generated functions of nested branches and loops, left in every way, for elements and for scalars of blocks.

Conditions and bounds differ between elements, or are one number for all: compilers treat these apart. CPython runs the
same text for each pair of numbers.
"""

import importlib.util
import random
import re

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run, same_bits

FUNCTIONS, PARTS, SIZE = 24, 4, 16
NAMES = "abc"
X = np.random.default_rng(21).integers(-9, 10, SIZE).astype(np.int32)
Y = np.random.default_rng(22).integers(-3, 4, SIZE).astype(np.int32)
U, W = 2, -1  # numbers from around the function


class Writer:
    """Writes the body of one function. All numbers stay small; all loops end."""

    def __init__(self, seed: int):
        self.random, self.lines, self.counters = random.Random(seed), [], 0

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * (depth + 2) + text)

    def name(self) -> str:
        return self.random.choice(NAMES)

    def atom(self) -> str:
        return self.random.choice([*NAMES, *NAMES, "x", "y", "u", "w", str(self.random.randint(-4, 6))])

    def value(self) -> str:
        p, q, n = self.atom(), self.atom(), self.random.randint(2, 5)
        return self.random.choice([f"{p} + {q}", f"{p} - {q}", f"{p} * {n} % 97", f"({p} + {q}) // {n}",
                                   f"{p} * {q} % 53", f"({p} if {self.condition()} else {q})", f"-{p}",
                                   f"max({p}, {q})"])

    def condition(self) -> str:
        p, q = self.random.choice([("u", "w"), ("u", "1"), ("w", "0"), (self.name(), self.atom()), ("x", self.atom()),
                                   ("y", "0"), ("x", "y")])
        plain = f"{p} {self.random.choice(['<', '<=', '>', '>=', '==', '!='])} {q}"
        return f"({plain} {self.random.choice(['and', 'or'])} x > {self.random.randint(-5, 5)})" \
            if self.random.random() < 0.15 else plain

    def assign(self, depth: int) -> None:
        self.line(depth, f"{self.name()} = ({self.value()}) % 101")

    def divide(self, depth: int) -> None:
        d = self.random.choice([*NAMES, "y"])
        self.line(depth, f"if {d} != 0:")
        self.line(depth + 1, f"{self.name()} = {self.name()} {self.random.choice(['//', '%'])} {d}")

    def branch(self, depth: int, in_loop: bool) -> None:
        self.line(depth, f"if {self.condition()}:")
        self.block(depth + 1, in_loop)
        if self.random.random() < 0.6:
            self.line(depth, "else:")
            self.block(depth + 1, in_loop)

    def loop(self, depth: int) -> None:
        self.counters += 1
        i, kind = f"i{self.counters}", self.random.randrange(9)
        if kind < 6:
            bounds = ["3", "u + 1, 5", f"{self.name()} % 3, 4, u", f"y, {self.name()} % 3, 2",
                      f"0, 5, {self.name()} % 3 + 1", f"u, 5, {self.name()} % 2 + 1"][kind]
            self.line(depth, f"for {i} in range({bounds}):")
            self.line(depth + 1, f"{self.name()} = ({self.name()} * 2 + {i}) % 89")
            self.block(depth + 1, True)
            return
        self.line(depth, f"{i} = 0")
        self.line(depth, "while True:" if kind == 8 else f"while {i} < {['x % 4', 'u'][kind - 6]}:")
        self.line(depth + 1, f"{i} += 1")
        if kind == 8:  # a continue may skip the break at the end
            self.line(depth + 1, f"if {i} > 3:")
            self.line(depth + 2, "break")
        self.block(depth + 1, True)
        if kind == 8:
            self.line(depth + 1, self.random.choice(["break", f"if {i} > y:"]))
            if self.lines[-1].endswith(":"):
                self.line(depth + 2, "break")

    def leave(self, depth: int, in_loop: bool) -> None:
        how = self.random.choice(["break", "continue", "break", "return"] if in_loop else ["return"])
        self.line(depth, f"if {self.condition()}:")
        if self.random.random() < 0.5:
            self.assign(depth + 1)
        self.line(depth + 1, f"return {self.value()}" if how == "return" else how)
        if self.random.random() < 0.3:
            self.line(depth, "else:")
            self.assign(depth + 1)

    def block(self, depth: int, in_loop: bool) -> None:
        for _ in range(self.random.choice([1, 2, 2, 3])):
            kind = self.random.random()
            if kind < 0.2 and depth < 3:
                self.branch(depth, in_loop)
            elif kind < 0.4 and depth < 3:
                self.loop(depth)
            elif kind < 0.6:
                self.leave(depth, in_loop)
            elif kind < 0.7:
                self.divide(depth)
            else:
                self.assign(depth)

    def function(self, name: str) -> str:
        self.line(-1, f"def {name}(x, y):")
        self.line(0, "a, b, c = x, y, u + 1")
        for _ in range(3):
            self.block(0, False)
        self.line(0, "return a + b * 3 - c")
        return "\n".join(self.lines)


def text_of(part: int) -> str:
    functions = [(f"f{seed}", Writer(seed).function(f"f{seed}")) for seed in range(part, FUNCTIONS, PARTS)]
    nested = "\n".join(text for _, text in functions)
    names = ", ".join(name for name, _ in functions)
    elements = "\n".join(f"    ct.store(o, ({j}, i), ct.elementwise({f})(p, q).reshape((1, 8)))"
                         for j, (f, _) in enumerate(functions))
    scalars = "\n".join(f"    ct.store(o, ({j}, i), {f}(r, s))" for j, (f, _) in enumerate(functions))
    return f"""
def python(u, w):
{nested}
    return [{names}]

def of_elements(xs, ys, u, w, o):
{nested}
    i = ct.bid(0)
    p, q = ct.load(xs, i, (8,)), ct.load(ys, i, (8,))
{elements}

def of_scalars(xs, ys, u, w, o):
{nested}
    i = ct.bid(0)
    r, s = ct.load(xs, i, ()), ct.load(ys, i, ())
{scalars}
"""


def kernel_of(seed: int) -> str:
    """The text of a function as that of a kernel, which stores what the function returns, and ends there."""
    header, text = Writer(seed).function("k").split("\n", 1)
    body = re.sub(r"^( *)return (.*)$", r"\1ct.store(o, i, \2)\n\1return", text, flags=re.M)
    return f"""
def k(xs, ys, u, w, o):
        i = ct.bid(0)
        x, y = ct.load(xs, i, ()), ct.load(ys, i, ())
{body}

def python(x, y, u, w):
{text}
"""


@clause("ST-15.loop", "KERN-7.bare", "LOOP-13.while", "LOOP-13.blocks")
@pytest.mark.parametrize("seed", range(100, 100 + FUNCTIONS))
def test_kernels(seed, tmp_path):
    module = imported(tmp_path / f"kernel_{seed}.py", kernel_of(seed))
    want = np.array([module.python(x, y, U, W) for x, y in zip(X.tolist(), Y.tolist(), strict=True)], np.int32)
    same_bits(run(ct.kernel(module.k), X, Y, U, W, np.zeros_like(want), grid=(SIZE,)), want)


def imported(path, text: str):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    module.ct = ct
    spec.loader.exec_module(module)
    return module


@clause("ELT-3.branch", "ELT-3.return", "ELT-7.while", "ELT-7.for", "ELT-7.leave", "ELT-9.divide", "CALL-3.same",
        "LOOP-13.while", "LOOP-13.blocks")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("form", ["of_elements", "of_scalars"])
def test_functions(form, part, tmp_path):
    module = imported(tmp_path / f"functions_{form}_{part}.py", text_of(part))
    functions = module.python(U, W)
    want = np.array([[f(x, y) for x, y in zip(X.tolist(), Y.tolist(), strict=True)] for f in functions], np.int32)
    blocks = SIZE // 8 if form == "of_elements" else SIZE
    got = run(ct.kernel(getattr(module, form)), X, Y, U, W, np.zeros_like(want), grid=(blocks,))
    same_bits(got, want)
