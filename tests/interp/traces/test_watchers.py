"""What a watcher is told, under every schedule: stretches, accesses and assignments of each block, in order."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.interp import CompiledKernel, HostLaunch
from cutile.interp.sanitize.findings import at_block
from cutile.interp.traces.watchers import Watcher, watched
from cutile.runtime import launch_plan

SCHEDULES = ("batch", "block", "interleave")


class Recorder(Watcher):
    """What each block does: (line of the kernel's file, counted from its header; what is told)."""

    assignments = True

    def __init__(self):
        self.seen, self.first = defaultdict(list), 0

    def tell(self, ctx, line, what):
        for i, block in enumerate(ctx.blocks()):
            self.seen[block[0]].append((line - self.first, what(i)))

    def begins(self, ctx):
        self.tell(ctx, self.first, lambda i: "begins")

    def ran(self, stretch, ctx):
        self.tell(ctx, stretch.span.line, lambda i: sum(stretch.operations.values()))

    def accessed(self, access, place, ctx):
        index = [np.asarray(j) for j in place.named["index"]]
        self.tell(ctx, access.op.span.line, lambda i: (access.effect, int(at_block(index[0], 0, ctx, i))))

    def assigned(self, span, name, t, x, ctx):
        self.tell(ctx, span.line, lambda i: (name, at_block(x, t.ndim, ctx, i).tolist()))


def launched(schedule, grid, kernel, *args):
    """What each block of a launch does."""
    recorder = Recorder()
    plan, values = launch_plan.find(kernel, args, None)
    program = plan.program.kernel
    recorder.first = program.span.line
    with settings.override(SCHEDULE=schedule, CHECK=True):
        HostLaunch(CompiledKernel(watched(program, recorder)), False).run(grid, None, values, False)
    return recorder.seen


def of_kind(seen, *kinds):
    return [(line, what) for line, what in seen if isinstance(what, tuple) and what[0] in kinds]


@ct.kernel
def walks(x, n):
    i = ct.bid(0)
    for k in range(i):
        if k == n:
            break
        t = ct.load(x, k, (2,))
        ct.store(x, k + 4, t * 2.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_accesses_and_assignments_of_each_block(schedule):
    x = np.arange(20, dtype=np.float32)
    seen = launched(schedule, (4, 1, 1), walks, x, 2)
    assert x[8:12].tolist() == [0, 2, 4, 6]  # the program does what it did
    assert of_kind(seen[0], "read", "write", "t") == []
    one = [(5, ("read", 0)), (5, ("t", [0, 1])), (6, ("write", 4))]
    two = [(5, ("read", 1)), (5, ("t", [2, 3])), (6, ("write", 5))]
    assert of_kind(seen[1], "read", "write", "t") == one
    assert of_kind(seen[2], "read", "write", "t") == of_kind(seen[3], "read", "write", "t") == one + two
    assert [what[1] for _, what in of_kind(seen[3], "k")] == [0, 1, 2]
    assert [what for _, what in of_kind(seen[3], "i")] == [("i", 3)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stretches_of_each_block(schedule):
    seen = launched(schedule, (4, 1, 1), walks, np.zeros(20, np.float32), 2)
    for block, iterations in enumerate((0, 1, 2, 2)):
        counts = [what for line, what in seen[block] if line == 6 and isinstance(what, int)]
        assert counts == [2] * iterations  # two products each
        assert seen[block][0] == (0, "begins") and sum(what == "begins" for _, what in seen[block]) == 1


@ct.function
def shrunk(t, n):
    if n > 1:
        return t * 0.5
    return t


@ct.kernel
def calls(x):
    i = ct.bid(0)
    t = ct.load(x, i, (4,))
    u = shrunk(t, i)
    while ct.sum(u) > 1:
        u = u - 1.0
    ct.store(x, i, u)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_calls_and_conditions(schedule):
    x = np.repeat([1, 2, 4], 4).astype(np.float32)
    recorded = launched(schedule, (3, 1, 1), calls, x)
    assert x.reshape(3, 4)[:, 0].tolist() == [0, 0, 0]
    for block, loops in enumerate((1, 2, 2)):
        lines = [line for line, what in recorded[block] if isinstance(what, int) and what == 4 and line == 5]
        assert len(lines) == loops  # u - 1.0, of four elements
        product = [line for line, what in recorded[block] if isinstance(what, int) and what and line < 0]
        assert len(product) == (block == 2)  # in the helper, which stands above


@ct.kernel
def closes(x):
    t = ct.load(x, 0, (4,))

    def shifted(by):
        u = t + by
        return u

    ct.store(x, 0, shifted(1.0) + shifted(2.0))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_free_variable_of_a_closure_is_assigned_once(schedule):
    (seen,) = launched(schedule, (1, 1, 1), closes, np.zeros(4, np.float32)).values()
    assert [what for _, what in of_kind(seen, "t", "u")] == [("t", [0] * 4), ("u", [1] * 4), ("u", [2] * 4)]


@ct.kernel
def fused(x):
    t = ct.load(x, 0, (8,))
    u = t * 2.0
    ct.store(x, 0, u + 1.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_product_that_is_fused_counts_once_and_is_shown(schedule):
    (seen,) = launched(schedule, (1, 1, 1), fused, np.ones(8, np.float32)).values()
    assert sum(what for _, what in seen if isinstance(what, int)) == 16
    assert of_kind(seen, "u") == [(2, ("u", [2] * 8))]
