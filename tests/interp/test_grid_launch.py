"""A repeated launch gives what a first launch would give now, whatever has changed in between."""

from __future__ import annotations

import sys
import threading
import warnings
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

import cutile as ct
from cutile import interp, settings
from cutile.interp import debugger, grid_launch
from cutile.runtime import launch_cache
from tests.gpu import extension

T = 4
BF16 = ml_dtypes.bfloat16
FACTOR = 2.0


@ct.kernel
def add(a, b, c, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(c, i, ct.load(a, i, n) + ct.load(b, i, n))


@ct.kernel
def scaled(a, c, f, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(c, i, ct.load(a, i, n) * FACTOR + f)


@ct.kernel
def copied(a, c, n: ct.Constant[int]):
    ct.store(c, ct.bid(0), ct.load(a, ct.bid(0), n))


@ct.kernel
def onto_f32(a, c, n: ct.Constant[int]):
    ct.store(c, ct.bid(0), ct.load(a, ct.bid(0), n).astype(ct.float32) + 1.0)


@ct.kernel
def negated(a, c, n: ct.Constant[int]):
    ct.store(c, ct.bid(0), -ct.load(a, ct.bid(0), n))


@ct.kernel
def doubled(a, c, n: ct.Constant[int]):
    ct.store(c, ct.bid(0), (ct.load(a, ct.bid(0), n).astype(ct.float32) * 2.0).astype(c.dtype))


@ct.kernel
def turned(a, c, n: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(c, (j, i), ct.load(a, (i, j), (n, n)), order="F")


@ct.kernel
def rows(a, c):
    i = ct.bid(0)
    ct.store(c, (i, 0), ct.load(a, (i, 0), (1, 4)).astype(c.dtype))


@ct.kernel
def picked(x, index, out, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, i, ct.gather(x, ct.load(index, i, n)))


@ct.kernel
def onto_itself(a, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(a, i, ct.load(a, i, n) * 2.0 + 1.0)


@ct.kernel
def last_block_stays(a, out, n: ct.Constant[int]):
    ct.store(out, 0, ct.load(a, ct.bid(0), n))


@ct.kernel
def some_leave(a, c, n: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, i, n)
    if ct.max(x) > 20.0:
        return
    ct.store(c, i, x + ct.load(a, i + 0, n))


@ct.kernel
def scalar(a, c):
    ct.store(c, 0, ct.load(a, 0, ()))


@ct.kernel
def counted(x, counts, n: ct.Constant[int]):
    ct.atomic_add(counts, ct.load(x, ct.bid(0), n), 1)


@pytest.fixture(autouse=True, params=["", "checked", "in C"])
def runs(monkeypatch, request):
    """No setting but CHECK is touched; counts the grid launches that run, in Python or in C."""
    for s in settings.table().values():
        monkeypatch.delenv(s.variable, raising=False)
    if request.param == "checked":
        monkeypatch.setenv("CUTILE_CHECK", "1")
    module = extension.built() if request.param == "in C" else None
    monkeypatch.setattr(launch_cache, "extension", lambda: module)
    for name, x in list(globals().items()):
        if isinstance(x, ct.kernel):
            monkeypatch.setitem(globals(), name, fresh(x))
    done, run, record = [], grid_launch.GridLaunch.run, grid_launch.GridLaunch.record

    def counting(self, values):
        done.append(run(self, values))
        return done[-1]

    def counted_in_c(self, args):
        found = record(self, args)
        return found and (*found[:2], lambda *given: done.append(True) or found[2](*given), *found[3:])

    monkeypatch.setattr(grid_launch.GridLaunch, "run", counting)
    monkeypatch.setattr(grid_launch.GridLaunch, "record", counted_in_c)
    return done


def f32(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def fresh(kernel):
    """A kernel that has not been launched."""
    return ct.kernel(kernel.function)


def as_in_block(kernel, grid, args):
    """What an array of the arguments is after a launch in the schedule block, which prepares nothing."""
    copies = {id(a): a.copy() for a in args if isinstance(a, np.ndarray)}
    with settings.override(SCHEDULE="block"):
        ct.launch(None, grid, kernel, tuple(copies.get(id(a), a) for a in args))
    return list(copies.values())


def same(kernel, grid, args) -> None:
    """Launch; the arrays, none of which overlap, end as in the schedule block."""
    wanted = as_in_block(kernel, grid, args)
    ct.launch(None, grid, kernel, args)
    for a, w in zip([a for a in args if isinstance(a, np.ndarray)], wanted, strict=True):
        assert a.tobytes() == w.tobytes()


CASES = {
    "add": (add, (5,), lambda: (f32(20), f32(20), np.zeros(20, np.float32), T)),
    "an edge": (add, (5,), lambda: (f32(18), f32(18), np.zeros(18, np.float32), T)),
    "one input at an edge": (add, (5,), lambda: (f32(20), f32(18), np.zeros(20, np.float32), T)),
    "an output at an edge": (add, (5,), lambda: (f32(20), f32(20), np.zeros(18, np.float32), T)),
    "a number": (scaled, (5,), lambda: (f32(20), np.zeros(20, np.float32), 1.5, T)),
    "f16": (add, (5,), lambda: (f32(20).astype(np.float16), f32(20).astype(np.float16), np.zeros(20, np.float16), T)),
    "bf16": (add, (5,), lambda: (f32(20).astype(BF16), f32(20).astype(BF16), np.zeros(20, BF16), T)),
    "bf16 at an edge": (add, (5,), lambda: (f32(18).astype(BF16), f32(20).astype(BF16), np.zeros(19, BF16), T)),
    "bf16 many times": (last_block_stays, (5,), lambda: (f32(20).astype(BF16), np.zeros(4, BF16), T)),
    "every value": (onto_f32, (64,), lambda: (np.arange(1 << 16, dtype=np.uint16).view(np.float16),
                                              np.zeros(1 << 16, np.float32), 1024)),
    "every bf16": (onto_f32, (64,), lambda: (np.arange(1 << 16, dtype=np.uint16).view(BF16),
                                             np.zeros(1 << 16, np.float32), 1024)),
    "every f8": (onto_f32, (2,), lambda: (np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn),
                                          np.zeros(256, np.float32), 128)),
    "every f16 copied": (copied, (64,), lambda: (np.arange(1 << 16, dtype=np.uint16).view(np.float16),
                                                 np.zeros(1 << 16, np.float16), 1024)),
    "every f16 negated": (negated, (64,), lambda: (np.arange(1 << 16, dtype=np.uint16).view(np.float16),
                                                   np.zeros(1 << 16, np.float16), 1024)),
    "every bf16 negated": (negated, (64,), lambda: (np.arange(1 << 16, dtype=np.uint16).view(BF16),
                                                    np.zeros(1 << 16, BF16), 1024)),
    "every f8 doubled": (doubled, (2,), lambda: (np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2),
                                                 np.zeros(256, ml_dtypes.float8_e5m2), 128)),
    "copies": (copied, (5,), lambda: (f32(20), np.zeros(20, np.float32), T)),
    "narrow copies": (copied, (5,), lambda: (f32(20).astype(np.float16), np.zeros(20, np.float16), T)),
    "every second": (copied, (5,), lambda: (f32(40)[::2], np.zeros(40, np.float32)[1::2], T)),
    "backwards": (copied, (5,), lambda: (f32(20)[::-1], np.zeros(20, np.float32)[::-1], T)),
    "turned": (turned, (2, 3), lambda: (f32(8, 12), np.zeros((12, 8), np.float32), T)),
    "turned arrays": (turned, (2, 3), lambda: (f32(12, 8).T, np.zeros((8, 12), np.float32).T, T)),
    "picked": (picked, (5,), lambda: (f32(9), np.arange(20, dtype=np.int32) % 9, np.zeros(20, np.float32), T)),
    "picked outside": (picked, (5,), lambda: (f32(9), np.arange(-3, 17, dtype=np.int32), f32(20), T)),
    "in place": (onto_itself, (5,), lambda: (f32(20), T)),
    "one place": (last_block_stays, (5,), lambda: (f32(20), np.zeros(4, np.float32), T)),
    "some leave": (some_leave, (8,), lambda: (f32(32), np.zeros(32, np.float32), T)),
    "a scalar": (scalar, (3,), lambda: (f32(3), np.zeros(1, np.float32))),
    "rank 0": (ct.kernel(lambda a, c: ct.store(c, (), ct.load(a, (), ()) + 1.0)), (2,), lambda: (
        np.full((), 3, np.float32), np.zeros((), np.float32))),
    "counted": (counted, (5,), lambda: (np.arange(20, dtype=np.int32) % 7 - 1, np.zeros(5, np.int32), T)),
    "nothing": (copied, (5,), lambda: (f32(0), np.zeros(0, np.float32), T)),
    "more axes": (add, (3, 40), lambda: (f32(12), f32(12), np.zeros(12, np.float32), T)),
}


@pytest.mark.parametrize("name", CASES)
def test_equal_launches(name, runs):
    kernel, grid, make = CASES[name]
    kernel = fresh(kernel)
    for _ in range(3):
        same(kernel, grid, make())
    assert runs == [True] * 3


def test_the_next_launch_sees_other_contents(runs):
    a, b, c = f32(20), f32(20), np.zeros(20, np.float32)
    for k in range(3):
        a[...] = k
        same(add, (5,), (a, b, c, T))
        assert c.tolist() == (b + k).tolist()


def test_chunks(runs, monkeypatch):
    from cutile.interp import schedule

    monkeypatch.setattr(schedule, "STREAM_BUDGET", 2 * T * 4)
    kernel = fresh(add)
    for n in (20, 18, 20, 18):
        same(kernel, (5,), (f32(n), f32(n), np.zeros(n, np.float32), T))
    monkeypatch.setattr(grid_launch, "CHUNKS", 2)
    kernel = fresh(add)
    del runs[:]
    same(kernel, (5,), (f32(20), f32(20), np.zeros(20, np.float32), T))
    assert not runs


# ------------------------------------------------------------------ arrays that change


def test_an_array_changes_in_place(runs):
    """What NumPy lets one do to an array that someone holds: another shape, other strides, dtype, size, memory."""
    a, c = np.zeros((4, 8), np.float32), np.zeros((4, 4), np.float32)
    kernel = fresh(rows)
    for change in (lambda: setattr(a, "shape", (2, 16)), lambda: setattr(a, "shape", (8, 4)),
                   lambda: setattr(a, "strides", (4, 32)), lambda: setattr(a, "strides", (16, 4)),
                   lambda: setattr(a, "dtype", np.int32), lambda: a.resize((5000, 10), refcheck=False),
                   lambda: setattr(a, "dtype", np.int16), lambda: a.resize((2, 2), refcheck=False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy, that attributes are set
            change()
        for k in range(2):
            a[...] = np.arange(a.size).reshape(a.shape) % 1000 + k
            same(kernel, (4,), (a, c))
    assert runs == [True] * 16


def test_memory_that_moves(runs):
    a, c = f32(20), np.zeros(20, np.float32)
    a = a.copy()
    same(copied, (5,), (a, c, T))
    for n in (100_000, 20):
        a.resize((n,), refcheck=False)
        a[:20] = n
        same(copied, (5,), (a, c, T))
        assert c[0] == n


def test_nothing_is_kept_alive(runs):
    a, b, c = f32(20), f32(20), np.zeros(20, np.float32)
    for _ in range(2):
        ct.launch(None, (5,), add, (a, b, c, T))
        ct.launch(None, (5,), picked, (a, np.arange(20), c, T))
    gone = [weakref.ref(x) for x in (a, b, c)]
    x = None
    del a, b, c, x
    assert [r() for r in gone] == [None] * 3


def test_another_array_at_the_same_id(runs):
    """Arrays that come and go, of two layouts: most have the id, and the memory, of one before."""
    seen = set()
    for k in range(20):
        n = 20 if k % 3 else 24
        a, c = np.full(n, k, np.float32), np.zeros(n, np.float32)
        seen.add(id(a))
        ct.launch(None, (n // T,), copied, (a, c, T))
        assert c.tolist() == [k] * n
        del a, c
    assert len(seen) < 20


def test_an_array_becomes_read_only(runs):
    a, c = f32(20), np.zeros(20, np.float32)
    same(copied, (5,), (a, c, T))
    c.flags.writeable = a.flags.writeable = False
    with pytest.raises(TypeError, match="`c`, but the array given for it is read-only"):
        ct.launch(None, (5,), copied, (a, c, T))
    c.flags.writeable = True
    same(copied, (5,), (a, c, T))


def test_what_is_read_cannot_be_written(runs, monkeypatch):
    seen = []
    meaning = ct.add.meaning

    def look(x, y, /, **options):
        seen.extend((x.flags.writeable, y.flags.writeable))
        return meaning(x, y, **options)

    monkeypatch.setattr(ct.add, "meaning", look)
    kernel = fresh(add)
    for _ in range(2):
        ct.launch(None, (5,), kernel, (f32(20), f32(20), np.zeros(20, np.float32), T))
    assert seen == [False] * 4 and runs == [True] * 2


def test_arrays_that_are_not_aligned(runs):
    kernel = fresh(add)
    for k in (0, 1, 0, 1):
        a, b, c = (np.zeros(81, np.uint8)[k:k + 80].view(np.float32) for _ in range(3))
        a[...], b[...] = f32(20), 1
        same(kernel, (5,), (a, b, c, T))


# ------------------------------------------------------------------ arrays that overlap [ARG-6]


def overlapping(memory, kernel, grid, pick, *others):
    """The memory after a launch on parts of it."""
    ct.launch(None, grid, kernel, (*pick(memory), *others))
    return memory


@pytest.mark.parametrize("pick", [
    lambda m: (m[:20], m[:20], m[:20]), lambda m: (m[:20], m[20:], m[10:30]), lambda m: (m[1:21], m[20:], m[:20]),
    lambda m: (m[20:], m[:20], m[19::-1]), lambda m: (m[:20], m[:20], m[20:])])
@pytest.mark.parametrize("first", ["apart", "overlapping"])
def test_arrays_that_overlap(pick, first, runs):
    kernel = fresh(add)
    apart = (f32(20), f32(20), np.zeros(20, np.float32), T)
    if first == "apart":
        same(kernel, (5,), apart)
    for _ in range(2):
        got = overlapping(f32(40), kernel, (5,), pick, T)
        with settings.override(SCHEDULE="batch"):  # which prepares nothing
            assert got.tobytes() == overlapping(f32(40), kernel, (5,), pick, T).tobytes()
        same(kernel, (5,), apart)
    assert runs.count(True) >= 2


def test_one_array_for_two_parameters(runs):
    a, c = f32(20), np.zeros(20, np.float32)
    same(add, (5,), (a, c.copy(), c, T))
    ct.launch(None, (5,), add, (a, a, c, T))
    assert c.tolist() == (a + a).tolist()
    for _ in range(2):
        before = a.copy()
        ct.launch(None, (5,), add, (a, c, a, T))
        assert a.tolist() == (before + c).tolist()


# ------------------------------------------------------------------ what is outside


def test_a_global_changes(runs, monkeypatch):
    a, c = f32(20), np.zeros(20, np.float32)
    for factor in (2.0, 3.0, 2.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        for _ in range(2):
            ct.launch(None, (5,), scaled, (a, c, 1.0, T))
            assert c.tolist() == (a * factor + 1).tolist()


def test_a_number_changes(runs):
    a, c = f32(20), np.zeros(20, np.float32)
    for f in (1.0, -0.0, 2.5, 1.0):
        ct.launch(None, (5,), scaled, (a, c, f, T))
        assert c.tolist() == (a * 2 + f).tolist()


def test_settings_change(runs, monkeypatch, capsys):
    a, b, c = f32(18), f32(18), np.zeros(20, np.float32)

    def launch():
        ct.launch(None, (5,), add, (a, b, c, T))
        return c[-1]

    assert [launch(), launch()] == [0, 0]
    monkeypatch.setenv("CUTILE_UNDETERMINED", "poison")
    assert np.isnan(launch())
    monkeypatch.delenv("CUTILE_UNDETERMINED")
    assert launch() == 0
    with settings.override(UNDETERMINED="poison"):
        assert np.isnan(launch())
    assert launch() == 0
    monkeypatch.setenv("CUTILE_DEBUG", "1")
    launch()
    assert "add grid (5, 1, 1) runs as batch in chunks of" in capsys.readouterr().err
    monkeypatch.setenv("CUTILE_SCHEDULE", "block")
    launch()
    assert "runs as block" in capsys.readouterr().err
    monkeypatch.setenv("CUTILE_SCHEDULE", "nonsense")
    with pytest.raises(ValueError, match="CUTILE_SCHEDULE"):
        launch()


def test_settings_of_gpu_code_are_no_hindrance(runs, monkeypatch):
    a, b, c = f32(18), f32(18), np.zeros(20, np.float32)
    kernel = fresh(add)
    for name, text in (("CACHE_DIR", "/tmp"), ("BACKEND", "interp"), ("HINTS", "0")):
        monkeypatch.setenv(f"CUTILE_{name}", text)
        ct.launch(None, (5,), kernel, (a, b, c, T))
    assert runs == [True] * 3


def test_the_launch_keeps_the_settings_that_it_found(runs, monkeypatch):
    """Settings are looked at once, before it runs."""
    kernel, meaning, seen = fresh(add), ct.add.meaning, []

    def changing(x, y, /, **options):
        monkeypatch.setenv("CUTILE_UNDETERMINED", "poison")
        seen.append(settings.get("UNDETERMINED"))
        return meaning(x, y, **options)

    monkeypatch.setattr(ct.add, "meaning", changing)
    for _ in range(2):
        monkeypatch.delenv("CUTILE_UNDETERMINED", raising=False)
        ct.launch(None, (5,), kernel, (f32(18), f32(18), np.zeros(18, np.float32), T))
    assert seen == ["zero"] * 2 and runs == [True] * 2


def test_a_debugger_comes_later(runs, monkeypatch):
    a, c = f32(20), np.zeros(20, np.float32)
    same(copied, (5,), (a, c, T))
    before = len(runs)
    monkeypatch.setattr(debugger, "attached", lambda: True)
    same(copied, (5,), (a, c, T))
    monkeypatch.undo()
    assert len(runs) == before


def test_a_trace_function_comes_later(runs):
    """One that is no debugger's sees the lines of the kernel."""
    lines = set()

    def trace(frame, event, arg):
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name == "add":
            lines.add((event, __block__ if (__block__ := frame.f_locals.get("__block__")) else None))
        return trace

    args = (f32(20), f32(20), np.zeros(20, np.float32), T)
    same(add, (5,), args)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        ct.launch(None, (5,), add, args)
    finally:
        sys.settrace(before)
    assert {event for event, _ in lines} >= {"call", "line", "return"}
    assert {block for _, block in lines} > {(0, 0, 0), (4, 0, 0)}  # it may be a debugger's: one block after another


def test_another_interpreter_stands_in(runs, monkeypatch):
    a, c = f32(20), np.zeros(20, np.float32)
    same(copied, (5,), (a, c, T))
    seen = []
    monkeypatch.setattr(interp.HostLaunch, "run", lambda *given: seen.append(given))
    ct.launch(None, (5,), fresh(copied), (a, c, T))
    assert len(seen) == 1 and seen[0][1] == (5, 1, 1)


def test_numpy_says_nothing(runs):
    a, c = np.full(20, 3e38, np.float32), np.zeros(20, np.float32)
    for _ in range(3):
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            ct.launch(None, (5,), add, (a, a, c, T))
            with pytest.raises(FloatingPointError):  # still
                a + a
        assert np.isinf(c).all()


# ------------------------------------------------------------------ others


def test_other_grids(runs):
    a, c = f32(20), np.zeros(20, np.float32)
    for grid in ((5,), (2,), (7,), (0,), (5, 1), (2, 2), (5,)):
        c[...] = -1
        same(copied, grid, (a, c, T))
    for grid in ((True,), (5.0,)):
        with pytest.raises(TypeError, match="grid entries must be ints"):
            ct.launch(None, grid, copied, (a, c, T))


def test_many_grids(runs):
    """Launches are prepared for a number of grids; with other ones they run without."""
    kernel = fresh(copied)
    a, c = f32(20), np.zeros(20, np.float32)
    for n in range(1, 250):
        c[:] = 0
        ct.launch(None, (n,), kernel, (a, c, T))
        assert c.tolist() == [*a[:4 * n].tolist(), *[0] * (20 - 4 * n)]
    assert runs == [True] * grid_launch.GRIDS
    ct.launch(None, (1,), kernel, (a, c, T))
    assert runs == [True] * (grid_launch.GRIDS + 1)


def test_threads(runs):
    kernel, wrong = fresh(scaled), []

    def work(k):
        a, c = np.full(4000, k, np.float32), np.zeros(4000, np.float32)
        for _ in range(100):
            ct.launch(None, (1000,), kernel, (a, c, float(k), T))
            if not (c == 3 * k).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_what_the_host_sees_goes_the_long_way(runs, capsys):
    kernel = ct.kernel(lambda a: ct.printf("%d\n", ct.bid(0)))
    for _ in range(2):
        ct.launch(None, (3,), kernel, (f32(2),))
    assert capsys.readouterr().out == "0\n1\n2\n" * 2 and not runs


LAYOUTS = st.tuples(st.integers(0, 3), st.sampled_from([1, 2, -1, -2]), st.sampled_from([0, 3, 12, 17, 24]))


@examples(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(LAYOUTS, min_size=3, max_size=3), st.integers(1, 7)), min_size=1, max_size=4),
       st.sampled_from(["add", "picked"]))
def test_any_parts_of_one_memory(launches, which):
    """Parts of one array, which overlap or not, again and again: as in the schedule batch without preparation."""
    dtype = np.float32 if which == "add" else np.int32
    kernel = add if which == "add" else picked

    def run(memory, parts, grid):
        arrays = [memory[start:start + n * abs(step)][::step][:n] for start, step, n in parts]
        ct.launch(None, (grid,), kernel, (*arrays, T))
        return memory.tobytes()

    for parts, grid in launches * 2:
        got = run(np.arange(60, dtype=dtype), parts, grid)
        with settings.override(SCHEDULE="batch"):
            assert got == run(np.arange(60, dtype=dtype), parts, grid)


def test_subclasses_of_arrays_are_prepared_as_the_memory_they_are(runs):
    a, c = f32(20).view(type("Mine", (np.ndarray,), {})), np.zeros(20, np.float32)
    for _ in range(2):
        same(copied, (5,), (a, c, T))
    assert runs and all(runs)


@pytest.mark.parametrize("name, made", [
    ("add", 0), ("one input at an edge", 1), ("picked", 1), ("some leave", 2), ("in place", 1)])
def test_repeated_launches_make_no_descriptor_of_an_array_whose_tiles_are_views(name, made, runs, monkeypatch):
    """Tiles at an edge, gathered elements, what comes after blocks that left, and loads of what is stored need one."""
    kernel, grid, make = CASES[name]
    kernel = fresh(kernel)
    ct.launch(None, grid, kernel, make())
    seen, buffer = [], grid_launch.Buffer
    monkeypatch.setattr(grid_launch, "Buffer", lambda *a: seen.append(a) or buffer(*a))
    for _ in range(2):
        ct.launch(None, grid, kernel, make())
    assert len(seen) == 2 * made and runs == [True] * 3
