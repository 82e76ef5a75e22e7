"""Calls put where they stand: no frame is left, and programs print the same."""

from __future__ import annotations

from cutile.ir.nodes import Frame, Return, While
from cutile.ir.walk import walk
from cutile.passes.flatten_frames import flatten_frames, flatten_some
from tests.front.compiling import I32, typed
from tests.passes.random_programs import printed, program, trace
from tests.seeds import seeds


@seeds(25, 80)
def test_random_programs(seed):
    flat = flatten_frames(program(seed))
    assert not any(isinstance(n, Frame) for n in walk(flat.body))
    assert trace(flat, seed) == printed(seed)


def helper_early(n):
    if n > 3:
        return n * 2
    m = n + 1
    return m


def helper_nested(n):
    if n > 3:
        if n > 5:
            return 1
        n = n + 7
    return n


def helper_endless(n):
    while True:
        n = n + 1


def test_an_early_return_becomes_branches():
    def kernel(n):
        print(helper_early(n))

    flat = flatten_frames(typed(kernel, I32))
    assert not any(isinstance(n, While) for n in walk(flat.body))
    assert sum(isinstance(n, Return) for n in walk(flat.body)) <= 1
    assert [set(trace(flat, s).split()) for s in (0, 3, 4)] == [{"1"}, {"4"}, {"8"}]


def test_where_both_branches_go_on_a_loop_runs_once():
    def kernel(n):
        print(helper_nested(n))

    flat = flatten_frames(typed(kernel, I32))
    assert any(isinstance(n, While) and n.cond is None for n in walk(flat.body))
    assert [set(trace(flat, s).split()) for s in (2, 4, 6)] == [{"2"}, {"11"}, {"1"}]


def test_what_follows_an_endless_call_is_dropped():
    def kernel(n):
        helper_endless(n)
        print("never")

    flat = flatten_frames(typed(kernel, I32))
    assert isinstance(flat.body.nodes[-1], While)


def test_some():
    """Only wanted functions take the place of their calls, and none with an early return."""
    def kernel(n):
        print(helper_plain(n) + helper_early(n))

    whole = typed(kernel, I32)
    flat = flatten_some(whole, lambda n: n.function != "helper_inner")
    assert {n.function for n in walk(flat.body) if isinstance(n, Frame)} == {"helper_inner", "helper_early"}
    assert flatten_some(whole, lambda n: False) is whole
    assert [trace(flat, s) for s in range(8)] == [trace(whole, s) for s in range(8)]


def helper_plain(n):
    return helper_inner(n) * 2


def helper_inner(n):
    return n + 1


def test_without_frames_a_kernel_stays_the_same():
    def kernel(n):
        for i in range(n):
            if i > 2:
                print(i)

    before = typed(kernel, I32)
    assert flatten_frames(before) is before
