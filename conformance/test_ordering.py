"""Which effects accesses to memory see [MEM]."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, named, needs, run


def counting(n=4):
    return np.arange(n, dtype=np.int32)


@clause("MEM-4.store_load", "MEM-4.load_store", "MEM-4.store_store")
def test_program_order_of_one_block():
    @ct.kernel
    def k(x, out):
        before = ct.load(x, 0, 4)
        ct.store(x, 0, before + 10)
        between = ct.load(x, 0, 4)
        ct.store(x, 0, ct.full((4,), -1, ct.int32))
        ct.store(x, 0, between + before)
        ct.store(out, 0, before)
        ct.store(out, 1, between)
        ct.store(out, 2, ct.load(x, 0, 4))

    x, out = counting(), np.zeros(12, np.int32)
    launch(k, x, out)
    assert out.tolist() == [0, 1, 2, 3, 10, 11, 12, 13, 10, 12, 14, 16] and x.tolist() == [10, 12, 14, 16]


@clause("MEM-4.atomic")
def test_atomics_among_plain_accesses():
    @ct.kernel
    def k(x, out):
        i = ct.arange(4, dtype=ct.int32)
        ct.store(x, 0, i * 2)
        old = ct.atomic_add(x, i, 5)
        seen = ct.load(x, 0, 4)
        ct.store(out, 0, old)
        ct.store(out, 1, seen)
        ct.store(x, 0, i)
        ct.store(out, 2, ct.atomic_xchg(x, i, 9))

    assert run(k, counting(), np.zeros(12, np.int32)).tolist() == [0, 2, 4, 6, 5, 7, 9, 11, 0, 1, 2, 3]


@clause("MEM-4.gather")
def test_scatter_then_gather():
    @ct.kernel
    def k(x, out):
        i = ct.arange(4, dtype=ct.int32)
        before = ct.gather(x, i)
        ct.scatter(x, 3 - i, before * 10)
        ct.store(out, 0, ct.gather(x, i))
        ct.store(out, 1, before)

    assert run(k, counting(), np.zeros(8, np.int32)).tolist() == [30, 20, 10, 0, 0, 1, 2, 3]


@clause("MEM-4.view")
def test_views_among_other_accesses():
    @ct.kernel
    def k(x, out):
        v = x.tiled_view(2)
        v.store(1, ct.full((2,), 7, ct.int32))
        ct.store(out, 0, ct.load(x, 0, 4))
        ct.store(x, 0, ct.full((4,), 8, ct.int32))
        ct.store(out, 2, v.load(0))
        x.get_raw_memory().store_offset(1, 5)
        ct.store(out, 3, x.slice(0, 0, 2).tiled_view(2).load(0))

    assert run(k, counting(), np.zeros(8, np.int32)).tolist() == [0, 1, 7, 7, 8, 8, 8, 5]


@clause("MEM-4.loop")
def test_iterations():
    @ct.kernel
    def k(x):
        for i in range(1, 8):
            ct.store(x, i, ct.load(x, i - 1, 1) * 2)

    x = np.ones(8, np.int32)
    run(k, x)
    assert x.tolist() == [2**i for i in range(8)]


@clause("MEM-4.list")
@needs("cpu arrays")
def test_lists_with_one_array_twice():
    @ct.kernel
    def k(xs, out):
        a, b = xs[0], xs[1]
        before = ct.load(b, 0, 4)
        ct.store(a, 0, before + 100)
        ct.store(out, 0, ct.load(b, 0, 4))
        ct.store(out, 1, before)

    x, out = counting(), np.zeros(8, np.int32)
    launch(k, [x, x], out)
    assert out.tolist() == [100, 101, 102, 103, 0, 1, 2, 3]


@clause("MEM-2.relaxed", "MEM-3")
@pytest.mark.parametrize("order, scope", [("RELAXED", "DEVICE"), ("ACQ_REL", "DEVICE"), ("RELEASE", "SYS")])
def test_updates_of_many_blocks(order, scope):
    @ct.kernel
    def k(x, old):
        i = ct.zeros((4,), ct.int32) + ct.arange(4, dtype=ct.int32) // 2
        ct.store(old, ct.bid(0), ct.atomic_add(x, i, 1, memory_order=order, memory_scope=scope))

    x, old = np.zeros(2, np.int32), np.zeros(4 * 100, np.int32)
    launch(k, x, old, grid=(100,))
    assert x.tolist() == [200, 200]
    for place in (0, 1):
        assert sorted(old.reshape(100, 2, 2)[:, place].ravel().tolist()) == list(range(200))


@clause("MEM-2.acquire")
def test_release_and_acquire():
    """Each block waits for the one before it, and must see its stores."""
    @ct.kernel
    def k(flag, data):
        b = ct.bid(0)
        while ct.load(flag, 0, (), memory_order="ACQUIRE", memory_scope="DEVICE") < b:
            pass
        here = ct.load(data, b, 4, memory_order="RELAXED", memory_scope="DEVICE")
        ct.store(data, b + 1, here + 1)
        ct.store(flag, 0, b + 1, memory_order="RELEASE", memory_scope="DEVICE")

    data = np.zeros(4 * 9, np.int32)
    launch(k, np.zeros(1, np.int32), data, grid=(8,))
    assert data.tolist() == [i for i in range(9) for _ in range(4)]


@clause("MEM-4.store_store", "MACH-2")
@pytest.mark.parametrize("place", [
    lambda i, n: i + 1, lambda i, n: 1 + i, lambda i, n: i + n, lambda i, n: n + i - 1, lambda i, n: n - i,
    lambda i, n: i + (n - i), lambda i, n: (n - i) + i, lambda i, n: i - i, lambda i, n: n + 1, lambda i, n: i // 2 + 1,
    lambda i, n: i + i % 2, lambda i, n: i % 2 + i, lambda i, n: i - (i + n) % 3,
], ids=named)
def test_stores_of_iterations_that_meet_or_do_not(place):
    """The last store of a loop stays, wherever its iterations store."""
    @ct.kernel
    def k(out, n, every):
        for i in range(n):
            ct.store(out, place(i, n), ct.full((1,), i + 1, ct.int32))
        for i in range(n):
            ct.store(every, (place(i, n), 0), ct.full((1, 2), i + 1, ct.int32))

    n = 6
    out, every = np.zeros(16, np.int32), np.zeros((16, 2), np.int32)
    launch(k, out, n, every)
    want = np.zeros(16, np.int32)
    for i in range(n):
        want[place(i, n)] = i + 1
    assert out.tolist() == want.tolist() == every[:, 0].tolist() == every[:, 1].tolist()


@clause("MEM-4.store_store", "MACH-2")
def test_stores_of_iterations_at_carried_places():
    @ct.kernel
    def k(out, twice, n):
        m = n
        for i in range(n):
            ct.store(out, i + m, ct.full((1,), i + 1, ct.int32))
            m -= 1
        for i in range(n):
            ct.store(twice, i, ct.full((1,), i + 1, ct.int32))
            ct.store(twice, i + 1, ct.full((1,), -i, ct.int32))

    out, twice = np.zeros(8, np.int32), np.zeros(8, np.int32)
    launch(k, out, twice, 4)
    assert out.tolist() == [0, 0, 0, 0, 4, 0, 0, 0] and twice.tolist() == [1, 2, 3, 4, -3, 0, 0, 0]


@clause("MEM-4.store_store", "MEM-4.view")
def test_stores_of_iterations_in_slices_that_move():
    @ct.kernel
    def k(out, n):
        one = ct.full((1,), 1, ct.int32)
        for i in range(n):
            ct.store(out.slice(0, n - i, 8), i, ct.full((1,), i + 1, ct.int32))
        for i in range(n):
            ct.store(out.slice(0, 7 - i, 8), i, one)

    assert run(k, np.zeros(8, np.int32), 4).tolist() == [0, 0, 0, 0, 4, 0, 0, 1]


@clause("MEM-4.store_store", "MEM-4.view")
@pytest.mark.parametrize("step", [1, 2, 4])
def test_stores_of_iterations_in_tiles_that_overlap(step):
    @ct.kernel
    def k(out, n):
        v = out.tiled_view((4,), traversal_steps=(step,))
        for i in range(n):
            v.store(i, ct.full((4,), i + 1, ct.int32))

    want = np.zeros(16, np.int32)
    for i in range(4):
        want[i * step:i * step + 4] = i + 1
    assert run(k, np.zeros(16, np.int32), 4).tolist() == want.tolist()


def by_adding_nothing(flag, i):
    while ct.atomic_add(flag, i, 0) == 0:
        pass


def by_exchanging(flag, i):
    while True:
        if ct.atomic_cas(flag, i, 1, 1) == 1:
            break


def by_going_on(flag, i):
    while True:
        seen = ct.atomic_max(flag, i, 0)
        if seen == 0:
            continue
        break


def by_returning(flag, i):
    for _ in range(1 << 30):
        if ct.atomic_or(flag, i, 0) > 0:
            return


def by_loading(flag, i):
    seen = 0
    while seen == 0:
        seen = ct.load(flag, i, (), memory_order="ACQUIRE", memory_scope="DEVICE")


def by_counting(flag, i):
    """Waits for the bounds of an inner loop."""
    there = False
    while not there:
        for _ in range(ct.atomic_or(flag, i, 0)):
            there = True


def by_steps(flag, i):
    steps = 0
    while steps != 1:
        steps = 0
        for _ in range(0, 2, ct.atomic_or(flag, i, 0) + 1):
            steps += 1


def by_choosing(flag, i):
    there = 0
    while there == 0:
        if ct.atomic_or(flag, i, 0) == 1:
            there = 1
        else:
            there = 0


def by_a_copy(flag, i):
    seen, before = 0, 0
    while before == 0:
        before = seen
        seen = ct.reshape(ct.atomic_or(flag, i, 0), (1,)).item() + 0


@clause("MACH-4.atomic", "MACH-4.acquire")
@pytest.mark.parametrize("wait", [by_adding_nothing, by_exchanging, by_going_on, by_returning, by_loading,
                                  by_counting, by_steps, by_choosing, by_a_copy], ids=lambda f: f.__name__)
def test_ways_to_wait(wait):
    """The first block waits for the second, which waits for the third; it sees what they have stored."""
    @ct.kernel
    def k(flag, data):
        b = ct.bid(0)
        if b < 3:
            wait(flag, b + 1)
        here = ct.load(data, b + 1, 1, memory_order="RELAXED", memory_scope="DEVICE")
        ct.store(data, b, here + b + 1)
        ct.atomic_xchg(flag, b, 1, memory_order="RELEASE", memory_scope="DEVICE")

    flag, data = np.zeros(8, np.int32), np.zeros(8, np.int32)
    launch(k, flag, data, grid=(4,))
    assert flag.tolist() == [1] * 4 + [0] * 4 and data.tolist() == [10, 9, 7, 4, 0, 0, 0, 0]


#: whether a flag is set, as atomics see it
POLLS = {
    "add nothing": lambda flag, i: ct.atomic_add(flag, i, 0) != 0,
    "compare and exchange": lambda flag, i: ct.atomic_cas(flag, i, 1, 1) != 0,
    "or": lambda flag, i: ct.atomic_or(flag, i, 0) != 0,
    "and": lambda flag, i: ct.atomic_and(flag, i, -1) != 0,
    "exclusive or": lambda flag, i: ct.atomic_xor(flag, i, 0) != 0,
    "greatest": lambda flag, i: ct.atomic_max(flag, i, 0) != 0,
    "least": lambda flag, i: ct.atomic_min(flag, i, 1) != 0,
    "add nothing at an offset": lambda flag, i: flag.get_raw_memory().atomic_add_offset(i, 0) != 0,
}
TRIES = 1 << 13


@clause("MACH-4.atomic")
@pytest.mark.parametrize("poll", POLLS)
def test_waits_that_give_up(poll):
    """The first block waits for the second, which waits for the third, as long as they may take."""
    is_set = POLLS[poll]

    @ct.kernel
    def k(flag, tries):
        b, n = ct.bid(0), 0
        while n < TRIES and b < 3:
            if is_set(flag, b + 1):
                break
            n += 1
        ct.store(tries, b, n)
        ct.atomic_xchg(flag, b, 1)

    flag, tries = np.zeros(8, np.int32), np.zeros(4, np.int32)
    launch(k, flag, tries, grid=(4,))
    assert flag.tolist() == [1] * 4 + [0] * 4 and max(tries.tolist()) < TRIES


@clause("MACH-4.atomic")
def test_loops_that_do_not_wait():
    """Loops that hand out work, and loops that work in place, end with any number of blocks."""
    @ct.kernel
    def k(next, done, x):
        mine = ct.atomic_add(next, 0, 1)
        while mine < 40:
            ct.atomic_add(done, mine, 1)
            mine = ct.atomic_add(next, 0, 1)
        b = ct.bid(0)
        while ct.load(x, b, ()) > 0:
            ct.store(x, b, ct.load(x, b, ()) - 1)

    next, done, x = np.zeros(1, np.int32), np.zeros(40, np.int32), np.arange(8, dtype=np.int32)
    launch(k, next, done, x, grid=(8,))
    assert next[0] == 48 and done.tolist() == [1] * 40 and not x.any()
