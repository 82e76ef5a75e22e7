"""Random functions of three ints: branches, loops, returns and calls, which mean the same in tile code as in Python."""

from __future__ import annotations

from random import Random


class RandomFunctions:
    """Writes a function `f` of three ints, and a helper `h` that it calls."""

    def __init__(self, rng: Random):
        self.rng = rng
        self.names = 0

    def source(self) -> str:
        body = self.block(3, False, 4) + self.block(3, False, 4)
        return "\n".join([
            "def h(a, b):", "    c = a - b", "    if c > 3:", "        return c % 7", "    for i in range(3):",
            "        if i * b > a:", "            return i", "    return b",
            "def f(a, b, c):", *body, "    return (a * 5 + b * 3 + c) % 101", ""])

    def expression(self, depth: int = 2) -> str:
        r = self.rng
        if depth == 0 or r.random() < 0.3:
            return r.choice(["a", "b", "c", str(r.randrange(-3, 9))])
        x, y = self.expression(depth - 1), self.expression(depth - 1)
        kind = r.randrange(7)
        if kind < 4:  # the remainder keeps values small, so that no int32 wraps
            return f"({x} {r.choice('+-*')} {y}) % 17"
        if kind == 4:
            return f"({x} if {self.condition()} else {y})"
        return f"h({x}, {y})" if kind == 5 else f"({x}) // {r.choice([2, 3])}"

    def condition(self) -> str:
        r = self.rng
        kind = r.randrange(6)
        if kind < 3:
            return f"{self.expression(1)} {r.choice(['<', '<=', '==', '!=', '>'])} {self.expression(1)}"
        if kind == 3:
            return f"({self.condition()} {r.choice(['and', 'or'])} {self.condition()})"
        if kind == 4:
            return f"{self.expression(0)} < {self.expression(0)} <= {self.expression(0)}"
        return r.choice(["a > 2", "not (b > 3)"])

    def block(self, depth: int, in_loop: bool, indent: int) -> list[str]:
        out: list[str] = []
        for _ in range(self.rng.randrange(1, 4)):
            lines, leaves = self.statement(depth, in_loop, " " * indent)
            out += lines
            if leaves:
                break
        return out

    def statement(self, depth: int, in_loop: bool, pad: str) -> tuple[list[str], bool]:
        r, kind = self.rng, self.rng.randrange(12)
        if depth == 0 or kind < 4:
            return self.simple(kind, in_loop, pad)
        inner = len(pad) + 4
        if kind < 7:
            out = [f"{pad}if {self.condition()}:", *self.block(depth - 1, in_loop, inner)]
            if r.random() < 0.6:
                out += [f"{pad}else:", *self.block(depth - 1, in_loop, inner)]
            return out, False
        self.names += 1
        if kind < 9:
            v = r.choice([f"i{self.names}", "a"])
            return [f"{pad}for {v} in range({r.choice(['', '1, '])}({self.expression(1)}) % 5):",
                    f"{pad}    b = (b + {v}) % 19", *self.block(depth - 1, True, inner)], False
        v = f"g{self.names}"
        if kind == 9:
            return [f"{pad}{v} = 0", f"{pad}while {v} < ({self.expression(1)}) % 4 + 1 and {v} < 4:",
                    f"{pad}    {v} = {v} + 1", *self.block(depth - 1, True, inner)], False
        if kind == 10:
            return [
                f"{pad}{v} = 0",
                f"{pad}while True:",
                f"{pad}    {v} = {v} + 1",
                f"{pad}    if {v} > {r.randrange(1, 4)}:",
                f"{pad}        break",
                *self.block(depth - 1, True, inner),
            ], False
        return [f"{pad}return {self.expression()}"], True

    def simple(self, kind: int, in_loop: bool, pad: str) -> tuple[list[str], bool]:
        r = self.rng
        if kind == 0 and in_loop:
            return [pad + r.choice(["break", "continue"])], True
        v, w = r.sample("abc", 2)
        if kind == 1:
            return [f"{pad}{v}, {w} = {self.expression()}, {self.expression()}"], False
        if kind == 2:
            return [f"{pad}{v} {r.choice(['+=', '-='])} {self.expression(1)}", f"{pad}{v} = {v} % 23"], False
        return [f"{pad}{v} = {self.expression()}"], False
