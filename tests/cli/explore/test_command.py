"""python -m cutile explore, on planted faults."""

from __future__ import annotations

import json
import textwrap

import numpy as np
import pytest
from typer.testing import CliRunner

import cutile as ct
from cutile.cli.main import app

SCRIPT = textwrap.dedent('''
    import numpy as np
    import cutile as ct

    ACQUIRE, RELEASE, RELAXED = ct.MemoryOrder.ACQUIRE, ct.MemoryOrder.RELEASE, ct.MemoryOrder.RELAXED
    DEVICE = ct.MemoryScope.DEVICE

    @ct.kernel
    def counter(x):
        t = ct.load(x, 0, (1,))
        ct.store(x, 0, t + 1)

    @ct.kernel
    def atomic_counter(x):
        ct.atomic_add(x, 0, 1)

    @ct.kernel
    def lock_released_early(x, lock):
        while ct.atomic_cas(lock, 0, 0, 1, memory_order=ACQUIRE) != 0:
            pass
        t = ct.load(x, 0, (1,))
        ct.atomic_xchg(lock, 0, 0, memory_order=RELEASE)
        ct.store(x, 0, t + 1)

    @ct.kernel
    def lock(x, lock):
        while ct.atomic_cas(lock, 0, 0, 1, memory_order=ACQUIRE) != 0:
            pass
        t = ct.load(x, 0, (1,))
        ct.store(x, 0, t + 1)
        ct.atomic_xchg(lock, 0, 0, memory_order=RELEASE)

    @ct.kernel
    def flag_before_value(values, flags, out):
        i = ct.bid(0)
        if i == 0:
            ct.atomic_xchg(flags, 0, 1, memory_order=RELEASE)
            ct.store(values, 0, 7)
        else:
            while ct.atomic_add(flags, 0, 0, memory_order=ACQUIRE) == 0:
                pass
            ct.store(out, i, ct.load(values, 0, (1,)))

    @ct.kernel
    def flag_without_acquire(values, flags, out):
        i = ct.bid(0)
        if i == 0:
            ct.store(values, 0, 7)
            ct.atomic_xchg(flags, 0, 1, memory_order=RELEASE)
        else:
            while ct.atomic_add(flags, 0, 0, memory_order=RELAXED) == 0:
                pass
            ct.store(out, i, ct.load(values, 0, (1,)))

    @ct.kernel
    def flag(values, flags, out):
        i = ct.bid(0)
        if i == 0:
            ct.store(values, 0, 7)
            ct.atomic_xchg(flags, 0, 1, memory_order=RELEASE)
        else:
            while ct.atomic_add(flags, 0, 0, memory_order=ACQUIRE) == 0:
                pass
            ct.store(out, i, ct.load(values, 0, (1,)))

    @ct.kernel
    def lookback_relaxed(values, flags, out):
        i, before = ct.bid(0), 0
        if i > 0:
            while ct.load(flags, i - 1, (), memory_order=RELAXED, memory_scope=DEVICE) == 0:
                pass
            before = ct.load(out, i - 1, ())
        ct.store(out, i, ct.load(values, i, ()) + before)
        ct.store(flags, i, 1, memory_order=RELAXED, memory_scope=DEVICE)

    @ct.kernel
    def lookback(values, flags, out):
        i, before = ct.bid(0), 0
        if i > 0:
            while ct.load(flags, i - 1, (), memory_order=ACQUIRE, memory_scope=DEVICE) == 0:
                pass
            before = ct.load(out, i - 1, ())
        ct.store(out, i, ct.load(values, i, ()) + before)
        ct.store(flags, i, 1, memory_order=RELEASE, memory_scope=DEVICE)

    @ct.kernel
    def races_if_late(tickets, x, out):
        if ct.bid(0) == 0:
            ct.store(x, 0, 1)
            ct.atomic_add(tickets, 0, 1)
        elif ct.atomic_add(tickets, 0, 0) == 0:
            ct.store(out, ct.bid(0), ct.load(x, 0, (1,)) * 0)

    @ct.kernel
    def ticket(tickets, out):
        ct.store(out, ct.atomic_add(tickets, 0, 1), ct.full((1,), 1, ct.int32))

    @ct.kernel
    def ticket_reused(tickets, out):
        n = ct.load(tickets, 0, ())
        ct.atomic_add(tickets, 0, 1)
        ct.store(out, n, ct.full((1,), ct.bid(0) + 1, ct.int32))

    @ct.kernel
    def signs(zeros):
        ct.store(zeros, 0, -0.0 if ct.bid(0) == 0 else 0.0)

    @ct.kernel
    def prints(tickets):
        if ct.atomic_add(tickets, 0, 1) == 0:
            print("first is", ct.bid(0))

    @ct.kernel
    def fails(tickets):
        ct.assert_(ct.atomic_add(tickets, 0, 1) != 2 or ct.bid(0) == 2, "wrong ticket")

    @ct.kernel
    def deadlock(x):
        while ct.atomic_add(x, 0, 0) == 0:
            pass

    def new(n=1):
        return np.zeros(n, np.int32)

    for kernel, args in ((counter, (new(),)), (atomic_counter, (new(),)), (lock_released_early, (new(), new())),
                         (lock, (new(), new())), (flag_before_value, (new(), new(), new(6))),
                         (flag_without_acquire, (new(), new(), new(6))), (flag, (new(), new(), new(6))),
                         (lookback_relaxed, (new(6), new(6), new(6))), (lookback, (new(6), new(6), new(6))),
                         (races_if_late, (new(), new(), new(6))), (ticket, (new(), new(6))),
                         (ticket_reused, (new(), new(6))), (signs, (np.zeros(1, np.float32),)), (prints, (new(),)),
                         (fails, (new(),)), (deadlock, (new(),))):
        ct.launch(None, (6,), kernel, args)
''')


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    return "script.py"


def explore(*args: str, code: int) -> str:
    done = CliRunner().invoke(app, ["explore", *args])
    assert done.exit_code == code, done.output
    return done.stdout if code < 2 else done.stderr


@pytest.mark.parametrize("kernel, most, says", [
    ("counter", 4, "x[0] is "), ("lock_released_early", 8, "x[0] is "), ("flag_before_value", 8, "out["),
    ("ticket_reused", 5, "out["), ("signs", 12, "zeros[0] is -0.0, and 0.0 in the usual order; 1 of 1"),
    ("prints", 4, "it prints"), ("fails", 10, "it fails: TileAssertionError"),
])
def test_dependences_are_found_with_few_steps(script, tmp_path, kernel, most, says):
    found = json.loads(explore(f"{script}::{kernel}", "--json", code=1))
    assert bool(found["races"]) == (kernel not in ("prints", "fails"))
    assert found["depends on order"] and any(d.startswith(says) for d in found["differences"]), found
    assert 0 < len(found["steps"]) <= most
    text = explore(f"{script}::{kernel}", "--replay", "order.json", code=1)
    assert f"What {kernel} does depends on the order of its blocks" in text
    assert "then each block runs to its end" in text
    assert "with ct.schedule(replay='order.json')" in text and (tmp_path / f"{kernel}.json").exists()


@pytest.mark.parametrize("kernel, lines", [
    ("flag_without_acquire", ["ct.store(out, i, ct.load(values, 0, (1,)))", "ct.store(values, 0, 7)"]),
    ("lookback_relaxed", ["before = ct.load(out, i - 1, ())",
                          "ct.store(out, i, ct.load(values, i, ()) + before)"])])
def test_races_that_change_nothing_here_are_found(script, kernel, lines):
    """Results are the same in each order that the interpreter has."""
    found = json.loads(explore(f"{script}::{kernel}", "--json", "--seeds", "20", code=1))
    source = SCRIPT.splitlines()
    (race,) = found["races"]
    assert [source[n - 1].strip() for n in race["lines"]] == lines and race["element"] == [0]
    assert not found["depends on order"] and found["steps"] == [] and found["differences"] == []
    text = explore(f"{script}::{kernel}", "--seeds", "20", code=1)
    assert text.startswith(f"{kernel} did the same in 20 orders of its blocks, but its accesses race: a GPU ")
    assert "\nIt shows a race if each block runs to its end before the next one begins.\nTo repeat it: with " \
        f"ct.sanitize(\"race\"), ct.schedule(replay='{kernel}.json') around the launch.\n\n" \
        "race: load() in block (1, 0, 0) reads element (0,) of `" in text


def test_a_race_of_some_orders_is_shown_with_few_steps(script, tmp_path):
    found = json.loads(explore(f"{script}::races_if_late", "--json", code=1))
    assert len(found["races"]) == 1 and not found["depends on order"] and 0 < len(found["steps"]) <= 3
    assert "The fewest steps found that show a race, " in explore(f"{script}::races_if_late", code=1)
    scope: dict = {}
    exec(compile(SCRIPT.split("def new")[0], "script.py", "exec"), scope)
    with ct.sanitize("race"), ct.schedule(replay=found["replay"]), pytest.raises(ct.TileSanitizerError):
        ct.launch(None, (6,), scope["races_if_late"], tuple(np.zeros(n, np.int32) for n in (1, 1, 6)))


@pytest.mark.parametrize("kernel", ["atomic_counter", "lock", "flag", "lookback"])
def test_right_kernels_are_not_reported(script, kernel):
    assert explore(f"{script}::{kernel}", "--seeds", "50", code=0) == \
        f"{kernel} did the same in 50 orders of its blocks.\n"


def test_a_deadlock_is_named(script):
    text = explore(f"{script}::deadlock", "--seeds", "5", code=1)
    assert "deadlock fails in each of 5 orders of its blocks: TileDeadlockError: deadlock: 6 blocks wait" in text


def test_the_file_shows_it_again(script, monkeypatch):
    found = json.loads(explore(f"{script}::counter", "--json", code=1))
    scope: dict = {}
    exec(compile(SCRIPT.split("def new")[0], "script.py", "exec"), scope)
    x = np.zeros(1, np.int32)
    with ct.schedule(replay=found["replay"]):
        ct.launch(None, (6,), scope["counter"], (x,))
    assert found["differences"] == [f"x[0] is {x[0]}, and 6 in the usual order; 1 of 1 element(s) differ"]


@pytest.mark.parametrize("kernel", ["ticket_reused", "races_if_late"])
def test_processes_share_the_seeds(script, kernel):
    alone = json.loads(explore(f"{script}::{kernel}", "--json", "--seeds", "8", code=1))
    assert json.loads(explore(f"{script}::{kernel}", "--json", "--seeds", "8", "--workers", "2", code=1)) == alone


@pytest.mark.parametrize("args, says", [
    (["nowhere.py::k"], "there is no file nowhere.py"), (["script.py"], "is not FILE.py::KERNEL"),
    (["script.py::nope"], "nope was never launched by script.py"),
])
def test_what_is_wrong(script, args, says):
    with open(script, "w") as f:
        f.write("import cutile as ct")
    assert says in explore(*args, code=2)
