"""What variables hold, along paths that change it, against whole copies of all that each holds."""

from __future__ import annotations

import random

import pytest

from cutile.dtypes import int32
from cutile.interp.codegen.variables import Variables
from cutile.ir.nodes import Value
from cutile.types import TileType

VALUES = [Value(TileType(int32), f"v{i}") for i in range(8)]
NAMES = [f"n{i}" for i in range(5)]


class Copies:
    """The same by copying: variables by name, the one bound latest last."""

    def __init__(self, held=()):
        self.held = dict(held)

    def bind(self, name, values):
        self.held.pop(name, None)
        self.held[name] = frozenset(values)

    def rename(self, old, new):
        extra = {v: {b for a, b in zip(old, new, strict=True) if a is v} for v in old}
        self.held = {n: (values - frozenset(new)).union(*(extra.get(v, ()) for v in values))
                     for n, values in self.held.items()}

    def holder(self, v):
        return next((n for n in reversed(self.held) if v in self.held[n]), None)


def meet(paths):
    first, *rest = paths
    return Copies({n: values.intersection(*(p.held[n] for p in rest)) for n, values in first.held.items()
                   if all(n in p.held for p in rest)})


def steps(draw, variables, copies, count):
    for _ in range(count):
        if draw.random() < 0.7:
            name, values = draw.choice(NAMES), draw.sample(VALUES, draw.randrange(3))
            variables.bind(name, values)
            copies.bind(name, values)
        else:
            old, new = draw.choices(VALUES, k=2), draw.sample(VALUES, 2)
            variables.rename(old, new)
            copies.rename(old, new)


def same(variables, copies):
    assert [variables[n] for n in NAMES] == [copies.held.get(n, frozenset()) for n in NAMES]
    assert [variables.holder(v) for v in VALUES] == [copies.holder(v) for v in VALUES]


@pytest.mark.parametrize("seed", range(200))
def test_paths(seed):
    draw = random.Random(seed)
    variables, copies = Variables(), Copies()
    steps(draw, variables, copies, 6)
    for _ in range(3):  # branches, one after another
        mark, paths, ends = variables.mark(), [], []
        for _ in range(draw.randrange(1, 4)):
            own = Copies(copies.held)
            steps(draw, variables, own, draw.randrange(4))
            old, new = draw.choices(VALUES, k=2), draw.sample(VALUES, 2)
            paths.append(variables.path(mark, old, new))
            same(variables, own)  # telling a path changes nothing
            own.rename(old, new)
            ends.append(own)
            variables.undo(mark)
            same(variables, copies)
        variables.meet(paths)
        copies = meet(ends)
        same(variables, copies)
