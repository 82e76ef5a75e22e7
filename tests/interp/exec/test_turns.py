"""Kernels whose blocks wait for each other: they run, in an order that the seed decides, and deadlocks are found."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from tests.interp.debugging.interpreters import environment
from tests.patience import PATIENCE


def ints(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int32)


def launch(grid, kernel, *args) -> None:
    ct.launch(None, grid, kernel, args)


SEEDS = pytest.mark.parametrize("seed", range(4))


# ------------------------------------------------------------------ the classics


@ct.kernel
def spin_lock(lock, total, order, N: ct.Constant[int]):
    for _ in range(N):
        while ct.atomic_cas(lock, 0, 0, 1) != 0:
            pass
        n = ct.load(total, index=0, shape=())
        ct.store(order, index=n, tile=ct.bid(0))
        ct.store(total, index=0, tile=n + 1)
        ct.atomic_xchg(lock, 0, 0)


@SEEDS
def test_spin_lock(seed):
    total, order = ints(1), ints(40)
    with settings.override(SEED=seed):
        launch((8,), spin_lock, ints(1), total, order, 5)
    assert total[0] == 40 and np.bincount(order).tolist() == [5] * 8


def test_the_seed_decides_the_order():
    def run(seed):
        order = ints(40)
        with settings.override(SEED=seed):
            launch((8,), spin_lock, ints(1), ints(1), order, 5)
        return order.tolist()

    assert run(3) == run(3)
    assert len({tuple(run(s)) for s in range(4)}) > 1


def acquire(tickets, serving):
    """A helper that waits: the pause goes through the call."""
    mine = ct.atomic_add(tickets, 0, 1)
    while ct.load(serving, 0, ()) != mine:
        pass
    return mine


@ct.kernel
def ticket_lock(tickets, serving, order):
    mine = acquire(tickets, serving)
    ct.store(order, index=mine, tile=ct.bid(0))
    ct.store(serving, index=0, tile=mine + 1)


@SEEDS
def test_ticket_lock(seed):
    serving, order = ints(1), ints(9)
    with settings.override(SEED=seed):
        launch((3, 1, 3), ticket_lock, ints(1), serving, order)
    assert serving[0] == 9 and np.bincount(order).tolist() == [3] * 3


@ct.kernel
def produce_and_consume(flags, data, out, T: ct.Constant[int]):
    """Even blocks consume what the next odd block produces."""
    b = ct.bid(0)
    if b % 2 == 1:
        ct.store(data, index=b // 2, tile=ct.arange(T, dtype=ct.int32) * b)
        ct.atomic_xchg(flags, b // 2, 1)
    else:
        seen = False
        while not seen:
            seen = ct.atomic_or(flags, b // 2, 0) != 0
        ct.store(out, index=b // 2, tile=ct.load(data, index=b // 2, shape=T))


@SEEDS
def test_producer_and_consumer(seed):
    out = ints(12)
    with settings.override(SEED=seed):
        launch((6,), produce_and_consume, ints(3), ints(12), out, 4)
    assert out.tolist() == [k * b for b in (1, 3, 5) for k in range(4)]


@ct.kernel
def grid_barrier(count, x, y):
    """Every block writes, all meet, every block reads what its neighbour wrote."""
    b = ct.bid(0)
    ct.store(x, index=b, tile=b + 1)
    ct.atomic_add(count, 0, 1)
    while True:
        n = ct.load(count, 0, ())
        if n == ct.num_blocks(0):
            break
    ct.store(y, index=b, tile=ct.load(x, index=(b + 1) % ct.num_blocks(0), shape=()))


def test_a_barrier_of_more_blocks_than_begin_at_once(monkeypatch):
    from cutile.interp.exec import turns
    monkeypatch.setattr(turns, "RESIDENT", 3)
    y = ints(10)
    launch((10,), grid_barrier, ints(1), ints(10), y)
    assert y.tolist() == [*range(2, 11), 1]


@ct.kernel
def split_k_with_lock(a, b, c, lock, T: ct.Constant[int]):
    acc = ct.mma(ct.load(a, index=(0, ct.bid(0)), shape=(T, T)), ct.load(b, index=(ct.bid(0), 0), shape=(T, T)),
                 ct.zeros((T, T), ct.float32))
    while ct.atomic_cas(lock, 0, 0, 1) == 1:
        pass
    ct.store(c, index=(0, 0), tile=ct.load(c, index=(0, 0), shape=(T, T)) + acc)
    ct.atomic_xchg(lock, 0, 0)


@SEEDS
def test_split_k_with_a_lock(seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-4, 5, s).astype(np.float32) for s in ((8, 48), (48, 8)))
    c = np.zeros((8, 8), np.float32)
    with settings.override(SEED=seed):
        launch((6,), split_k_with_lock, a, b, c, ints(1), 8)
    assert (c == a @ b).all()


@ct.kernel
def no_access(x):
    ct.printf("block %d\n", ct.bid(0))


def test_a_kernel_without_accesses(capsys):
    with settings.override(SCHEDULE="interleave"):
        launch((3,), no_access, ints(1))
    assert capsys.readouterr().out == "block 0\nblock 1\nblock 2\n"


# ------------------------------------------------------------------ deadlocks


@ct.kernel
def never_released(lock, x):
    while ct.atomic_cas(lock, 0, 0, 1) != 0:
        pass
    ct.store(x, index=0, tile=ct.bid(0))


def deadlock(grid, kernel, *args) -> ct.TileDeadlockError:
    begin = time.process_time()
    with pytest.raises(ct.TileDeadlockError) as e:
        launch(grid, kernel, *args)
    assert time.process_time() - begin < 5  # it takes a tenth of a second
    return e.value


def test_a_lock_that_is_never_released():
    e = deadlock((4,), never_released, ints(1), ints(1))
    assert "3 blocks wait" in e.message and "1 finished" in e.message
    assert e.loc.source_line().strip() == "while ct.atomic_cas(lock, 0, 0, 1) != 0:"
    assert isinstance(e, ct.TileError) and "release" in e.help


@ct.kernel
def crossed(flags):
    """Block 0 and block 1 each wait for the other to begin."""
    b = ct.bid(0)
    if b == 0:
        while ct.load(flags, 1, ()) == 0:  # for block 1
            pass
    else:
        while ct.load(flags, 0, ()) == 0:  # for block 0
            pass
    ct.atomic_xchg(flags, b, 1)


def test_a_deadlock_names_every_waiting_line():
    e = deadlock((2,), crossed, ints(2))
    assert {span.source_line().partition("#")[2].strip(): text for text, span in e.notes} == {
        "for block 1": "block (0, 0, 0) waits here", "for block 0": "block (1, 0, 0) waits here"}
    assert all(text in str(e) for text in ("block (0, 0, 0) waits here", "# for block 1", "# for block 0"))


@ct.kernel
def impatient(flags, out):
    """Counts its rounds, and gives up in the end."""
    n = 0
    while ct.load(flags, 0, ()) == 0:
        n += 1
        if n == 300:
            break
    ct.store(out, index=0, tile=n)


def test_a_loop_that_ends_by_itself_is_no_deadlock():
    out, flags = ints(1), ints(2)
    with settings.override(SCHEDULE="interleave"):
        launch((1,), impatient, flags, out)
    assert out[0] == 300


@ct.kernel
def patient(flags, limit):
    """Its state never repeats."""
    n = 0
    while ct.atomic_or(flags, 0, 0) == 0:
        n += 1
        if n == limit:
            break


def test_a_deadlock_with_a_counter(monkeypatch):
    from cutile.interp.exec import turns
    monkeypatch.setattr(turns, "PATIENCE", 2000)
    deadlock((2,), patient, ints(1), 2**31 - 1)


@ct.kernel
def rewriting(flags, big):
    """Storing what is there already changes nothing, in large arrays neither."""
    while ct.load(flags, 0, ()) == 0:
        ct.store(big, index=0, tile=7)
    ct.atomic_xchg(flags, 0, 1)


def test_stores_of_equal_values_are_no_progress():
    deadlock((3,), rewriting, ints(1), ints(1 << 17))


@ct.kernel
def loops_one_after_another(flags, out):
    """The second run of the inner loop begins in the state in which the first began."""
    for t in range(3):
        while ct.load(flags, t, ()) == 0:
            pass
    ct.store(out, index=0, tile=1)
    ct.atomic_xchg(flags, 0, 1)


def test_a_loop_that_begins_anew_is_not_stuck():
    out = ints(1)
    launch((1,), loops_one_after_another, np.ones(3, np.int32), out)
    assert out[0] == 1


@ct.kernel
def fails_and_blocks(lock, bad):
    while ct.atomic_cas(lock, 0, 0, 1) != 0:
        pass
    ct.assert_(ct.bid(0) != bad, "the holder")
    ct.atomic_xchg(lock, 0, 0)


def test_a_failed_block_is_named_not_those_that_wait_for_it():
    with pytest.raises(ct.TileAssertionError, match=r"the holder in block \(2, 0, 0\)"):
        launch((5,), fails_and_blocks, ints(1), 2)


@ct.kernel
def all_fail(x):
    ct.load(x, 0, ())
    ct.printf("%d\n", ct.bid(0))
    ct.assert_(ct.bid(0) < 2, "late")


@SEEDS
def test_the_first_failing_block_of_the_grid_is_named(seed, capsys):
    with (settings.override(SCHEDULE="interleave", SEED=seed),
          pytest.raises(ct.TileAssertionError, match=r"block \(2, 0, 0\)")):
        launch((6,), all_fail, ints(1))
    assert capsys.readouterr().out == "0\n1\n2\n3\n4\n5\n"


def test_one_block_alone_that_waits():
    with settings.override(BLOCK=(0, 0, 0)):
        e = deadlock((2,), crossed, ints(2))
    assert "1 block waits" in e.message


# ------------------------------------------------------------------ limits, choice, debuggers


def test_the_step_limit_ends_a_wait():
    with settings.override(STEP_LIMIT=100), pytest.raises(ct.TileStepLimitError, match=r"block \(0, 0, 0\)") as e:
        launch((1,), patient, ints(1), 10**6)
    assert "while" in e.value.loc.source_line()


def test_debug_tells_why(capsys):
    with settings.override(DEBUG=1):
        launch((2,), spin_lock, ints(1), ints(1), ints(2), 1)
    line = spin_lock._fn.__code__.co_firstlineno + 3
    assert f"runs as interleave (the loop in line {line} waits for other blocks)" in capsys.readouterr().err


@ct.kernel
def deep(x, n: ct.Constant[int]):
    descend(x, n)


def descend(x, n):
    if n == 0:
        ct.store(x, index=0, tile=ct.load(x, index=0, shape=()) + 1)
    else:
        descend(x, n - 1)


@pytest.mark.parametrize("schedule", ["batch", "block", "interleave"])
def test_calls_nest_a_thousand_deep(schedule):  # CALL-4
    x, limit = ints(1), sys.getrecursionlimit()
    with settings.override(SCHEDULE=schedule):
        launch((1,), deep, x, 990)
    assert x[0] == 1 and sys.getrecursionlimit() == limit


PROGRAM = """
import numpy as np
import cutile as ct

@ct.kernel
def kernel(lock, total):
    while ct.atomic_cas(lock, 0, 0, 1) != 0:
        pass
    n = ct.load(total, index=0, shape=())
    ct.store(total, index=0, tile=n + 1)  # inside
    ct.atomic_xchg(lock, 0, 0)

total = np.zeros(1, np.int32)
ct.launch(None, (4,), kernel, (np.zeros(1, np.int32), total))
print("total", total[0])
"""


def test_breakpoints_stop_in_blocks_that_take_turns(tmp_path):
    file = tmp_path / "waiting.py"
    file.write_text(PROGRAM)
    commands = ["b 10", *["c", "p n", "bt"] * 4, "c", "q"]
    done = subprocess.run([sys.executable, "-m", "pdb", file], input="\n".join(commands) + "\n", text=True,
                          capture_output=True, timeout=PATIENCE, env=environment())
    assert done.stdout.count("-> ct.store(total, index=0, tile=n + 1)  # inside") >= 4, done.stdout + done.stderr
    assert [f"i32 {k}" in done.stdout for k in range(4)] == [True] * 4, done.stdout
    assert "total 4" in done.stdout
