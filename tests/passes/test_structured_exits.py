"""Returns taken out of loops: programs print the same, and no Return stands in a loop."""

from __future__ import annotations

from cutile.ir.nodes import For, Return, While
from cutile.ir.walk import walk
from cutile.passes.flatten_frames import flatten_frames
from cutile.passes.structured_exits import structured_exits
from tests.passes.random_programs import printed, program, trace
from tests.seeds import seeds


def returns_in_loops(kernel) -> int:
    loops = [n for n in walk(kernel.body) if isinstance(n, For | While)]
    return sum(isinstance(n, Return) for loop in loops for n in walk(loop.body))


@seeds(25, 80)
def test_random_programs(seed):
    kernel = structured_exits(flatten_frames(program(seed)))
    assert returns_in_loops(kernel) == 0
    assert trace(kernel, seed) == printed(seed)


def test_the_programs_have_returns_in_loops():
    assert sum(returns_in_loops(flatten_frames(program(s))) > 0 for s in range(80)) > 8
