"""Which loops wait for other blocks, and by which state it shows that they would wait for ever."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.analysis.spin_wait import waiting_loops
from cutile.front.program import Embedded, type_kernel
from cutile.types import ArrayType

AI = ArrayType(ct.int32, 1)


def lines(fn) -> list[int]:
    """The lines of the loops that wait, counted from the def."""
    kernel = type_kernel(fn, (AI, AI, Embedded(4))[:fn.__code__.co_argcount]).kernel
    return sorted(n.span.line - fn.__code__.co_firstlineno for n in waiting_loops(kernel))


def states(fn) -> list[int]:
    """How many carried values each waiting loop has as its state."""
    kernel = type_kernel(fn, (AI, AI)).kernel
    return [len(state) for state in waiting_loops(kernel).values()]


# ------------------------------------------------------------------ loops that wait


def by_cas(x, y):
    while ct.atomic_cas(x, 0, 0, 1) != 0:
        pass


def by_load(x, y):
    while ct.load(x, 0, ()) == 0:
        pass
    ct.store(x, 0, 1)


def by_break(x, y):
    while True:
        old = ct.atomic_or(x, 0, 0)
        if old != 0:
            break


def by_continue(x, y):
    while True:
        if ct.atomic_xchg(x, 0, 1) != 0:
            continue
        break


def by_return(x, y):
    for _ in range(1000):
        if ct.atomic_max(x, 0, 1) > 0:
            return


def by_carried(x, y):
    done = False
    while not done:
        if ct.atomic_cas(x, 0, 0, 1) == 0:
            done = True


def try_lock(x):
    if ct.atomic_cas(x, 0, 0, 1) == 0:
        return True
    return False


def by_call(x, y):
    while not try_lock(x):
        pass


def by_slice(x, y):
    flags = x.slice(axis=0, start=2, stop=4)
    while ct.gather(flags, 1) == 0:
        pass
    ct.scatter(x, 3, 1)


def by_add_of_zero(x, y):
    while ct.atomic_add(x, 0, 0) == 0:
        pass


def by_add_of_something(x, y):
    while ct.atomic_add(x, 0, ct.load(y, 0, ())) == 0:
        pass


@pytest.mark.parametrize("fn", [by_cas, by_load, by_break, by_return, by_continue, by_call, by_add_of_zero,
                                by_add_of_something], ids=lambda f: f.__name__)
def test_waits(fn):
    assert lines(fn) == [1]


@pytest.mark.parametrize("fn", [by_carried, by_slice], ids=lambda f: f.__name__)
def test_waits_in_the_second_line(fn):
    assert lines(fn) == [2]


def nested(x, y):
    for i in range(4):
        while ct.atomic_cas(x, i, 0, 1) != 0:
            pass
        for j in range(4):
            ct.store(y, j, i)


def test_only_the_loop_that_waits():
    assert lines(nested) == [2]


# ------------------------------------------------------------------ loops that do not


def histogram(x, y):
    for i in range(10):
        ct.atomic_add(x, ct.load(y, i, ()), 1)


def last_block_done(x, y):
    if ct.atomic_add(x, 0, 1) == ct.num_blocks(0) - 1:
        s = 0
        for i in range(ct.num_blocks(0)):
            s += ct.load(y, i, ())
        ct.store(y, 0, s)


def work_queue(x, y):
    while True:
        i = ct.atomic_add(x, 0, 1)
        if i >= 100:
            break
        ct.store(y, i, i)


def reads_what_nobody_writes(x, y):
    i = 0
    while ct.load(x, i, ()) == 0:
        i += 1
    ct.store(y, 0, i)


def bounds_from_an_atomic(x, y):
    for i in range(ct.atomic_add(x, 0, 0)):
        ct.store(y, i, i)


def branch_inside(x, y):
    for i in range(10):
        if ct.atomic_cas(x, i, 0, 1) == 0:
            ct.store(y, i, 1)


def works_in_place(x, y):
    while ct.load(x, 0, ()) > 0:
        ct.store(x, 0, ct.load(x, 0, ()) - 1)


def insertion(x, y):
    key, j = ct.gather(y, 0), 10
    while j >= 0 and ct.gather(x, j) > key:
        ct.scatter(x, j + 1, ct.gather(x, j))
        j -= 1


def works_on_a_slice(x, y):
    half = x.slice(axis=0, start=0, stop=2)
    while ct.gather(half, 0) > 0:
        ct.scatter(x, 0, 0)


@pytest.mark.parametrize("fn", [histogram, last_block_done, work_queue, reads_what_nobody_writes, bounds_from_an_atomic,
                                branch_inside, works_in_place], ids=lambda f: f.__name__)
def test_does_not_wait(fn):
    assert lines(fn) == []


@pytest.mark.parametrize("fn", [insertion, works_on_a_slice], ids=lambda f: f.__name__)
def test_work_in_place_does_not_wait(fn):
    assert lines(fn) == []


def ordered_in_place(x, y):
    while ct.load(x, 0, (), memory_order=ct.MemoryOrder.ACQUIRE, memory_scope=ct.MemoryScope.DEVICE) == 0:
        ct.store(x, 1, 1)


def inside_of_one_that_stores(x, y):
    for i in range(4):
        while ct.load(x, i, ()) == 0:
            pass
        ct.store(x, i, 0)


@pytest.mark.parametrize("fn, line", [(ordered_in_place, 1), (inside_of_one_that_stores, 2)],
                         ids=lambda x: getattr(x, "__name__", str(x)))
def test_waits_in_spite_of_its_stores(fn, line):
    assert lines(fn) == [line]


# ------------------------------------------------------------------ state


def counting(x, y):
    n = 0
    while ct.atomic_cas(x, 0, 0, 1) != 0:
        n += 1
    ct.store(y, 0, n)


def counting_and_using(x, y):
    n = 0
    while ct.atomic_cas(x, n % 2, 0, 1) != 0:
        n += 1


def giving_up(x, y):
    n = 0
    while ct.atomic_cas(x, 0, 0, 1) != 0:
        n += 1
        if n > 10:
            break


def reloading(x, y):
    v, n = ct.load(x, 0, ()), 0
    while v == 0:
        v = ct.load(x, 0, ())
        n += 1
    ct.store(x, 0, n)


@pytest.mark.parametrize("fn, count", [(counting, 0), (counting_and_using, 1), (giving_up, 1), (reloading, 1)],
                         ids=lambda x: getattr(x, "__name__", None))
def test_only_what_decides_is_state(fn, count):
    assert states(fn) == [count]
