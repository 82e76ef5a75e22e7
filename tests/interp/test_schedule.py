"""The choice of a schedule, and chunks."""

from __future__ import annotations

import gc
import itertools
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import cutile as ct
from cutile import interp, settings
from cutile.dtypes import float32
from cutile.errors import TileAssertionError, TileStepLimitError, TileValueError
from cutile.interp import debugger, run_blocks, schedule
from cutile.interp.codegen import batch_unit
from cutile.ir.nodes import Continue, For, Frame, If, Kernel, Region, Return, Value, While, Yield
from cutile.ir.walk import walk
from cutile.ops import create, debug
from cutile.types import ArrayType, ListType, TileType
from tests.front.compiling import A1, typed
from tests.interp.ir_programs import B1, I32, Code


def simple(*, stop: bool = False) -> Kernel:
    c = Code()
    if stop:
        c.op(debug.breakpoint, kind="breakpoint")
    c.show("block", c.bid(0))
    c.add(Return((), c.span()))
    return c.kernel()


# ------------------------------------------------------------------ choice


def test_batch_is_the_default():
    assert schedule.choose(schedule.properties_of(simple()), None)[0] == "batch"


def test_the_argument_comes_before_the_setting():
    with settings.override(SCHEDULE="block"):
        assert schedule.choose(schedule.properties_of(simple()), None) == ("block", "CUTILE_SCHEDULE")
        assert schedule.choose(schedule.properties_of(simple()), "batch") == ("batch", "asked for")


def test_a_breakpoint_means_block():
    assert schedule.choose(schedule.properties_of(simple(stop=True)), None) == ("block", "the kernel has a breakpoint")
    assert schedule.choose(schedule.properties_of(simple(stop=True)), "batch")[0] == "batch"


def test_a_debugger_means_block(monkeypatch):
    monkeypatch.setattr(debugger, "attached", lambda: True)
    assert schedule.choose(schedule.properties_of(simple()), None) == ("block", "a debugger is attached")


def test_one_block_only(capsys):
    with settings.override(BLOCK=(2, 0, 0)):
        assert schedule.choose(schedule.properties_of(simple()), None) == ("block", "CUTILE_BLOCK")
        interp.run(simple(), (5,), [])
    assert capsys.readouterr().out == "block 2\n"


def test_what_a_kernel_remembers_of_a_launch_depends_on_settings(monkeypatch, capsys):
    kernel = simple()

    def shown() -> str:
        interp.run(kernel, (2,), [])
        return capsys.readouterr().err

    with settings.override(DEBUG=1):
        assert "batch" in shown()
        monkeypatch.setenv("CUTILE_SCHEDULE", "block")
        assert "runs as block (CUTILE_SCHEDULE)" in shown()
        monkeypatch.delenv("CUTILE_SCHEDULE")
        assert "batch" in shown()
        with settings.override(BLOCK=(1, 0, 0)):
            assert "runs as block (CUTILE_BLOCK)" in shown()
        monkeypatch.setattr(debugger, "attached", lambda: True)
        assert "a debugger is attached" in shown()


def test_unknown_schedules():
    with pytest.raises(ValueError, match="no schedule 'fast'"):
        schedule.choose(schedule.properties_of(simple()), "fast")


def test_a_choice_between_lists_is_not_batched():
    c = Code()
    a, b = (Value(ListType(ArrayType(float32, 1))) for _ in range(2))
    cond, r = c.less(c.bid(0), c.const(1)), Value(a.type)
    sides = [Region([Yield((v,), c.span())]) for v in (a, b)]
    c.add(If(cond, *sides, (r,), c.span()))
    c.add(Return((), c.span()))
    name, why = schedule.choose(schedule.properties_of(c.kernel(("a", a), ("b", b))), "batch")
    assert name == "block" and "lists" in why


# ------------------------------------------------------------------ debuggers


def test_coverage_and_profilers_are_no_debuggers():
    class Owner:
        def trace(self, frame, event, arg):
            return None

    assert not debugger._measures(Owner().trace)
    Owner.__module__ = "coverage.pytracer"
    Owner.trace.__module__ = "coverage.pytracer"
    assert debugger._measures(Owner().trace)


def test_debuggers_that_do_not_trace(monkeypatch):
    import sys
    import types
    monkeypatch.setattr(debugger, "_traced", lambda: False)
    monkeypatch.setattr(debugger, "_monitored", lambda: False)
    monkeypatch.delitem(sys.modules, "debugpy", raising=False)
    monkeypatch.delitem(sys.modules, "_pydevd_bundle.pydevd_constants", raising=False)
    assert not debugger.attached()
    monkeypatch.setitem(sys.modules, "debugpy", types.SimpleNamespace(is_client_connected=lambda: True))
    assert debugger.attached()
    monkeypatch.setitem(sys.modules, "debugpy", types.SimpleNamespace(is_client_connected=lambda: False))
    assert not debugger.attached()
    holder = types.SimpleNamespace(GlobalDebuggerHolder=types.SimpleNamespace(global_dbg=object()))
    monkeypatch.setitem(sys.modules, "_pydevd_bundle.pydevd_constants", holder)
    assert debugger.attached()


def test_a_tracing_debugger_is_seen():
    import sys
    before = sys.gettrace()
    try:
        sys.settrace(lambda frame, event, arg: None)
        seen = debugger.attached()
    finally:
        sys.settrace(before)
    assert seen


# ------------------------------------------------------------------ what kernels remember


def test_kernels_that_a_global_names_are_freed(monkeypatch):
    """As each cell of a notebook names one anew."""
    seen = []
    for _ in range(3):
        @ct.kernel
        def k(a):
            ct.store(a, 0, ct.load(a, 0, 4) + 1)

        monkeypatch.setitem(globals(), "some_kernel", k)
        ct.launch(None, (1,), k, (np.zeros(4, np.float32),))
        seen.append(weakref.ref(k))
    monkeypatch.undo()
    del k
    gc.collect()
    assert [r() for r in seen] == [None] * 3


def test_what_is_derived_is_derived_once():
    compiled = schedule.CompiledKernel(simple())
    plan = compiled.plan(None, True)
    assert compiled.plan(None, True) is plan and compiled.properties() is compiled.properties()
    assert compiled.plan("batch", False).code is plan.code  # another plan, with the same code
    with settings.override(CHECK=not settings.get("CHECK")):
        assert compiled.plan("batch", False).code is not plan.code


@pytest.mark.parametrize("levels", [1, batch_unit.LEVELS_PER_CHECK, batch_unit.LEVELS_PER_CHECK + 1, 400])
def test_blocks_nest_deeper_than_calls_of_python(capsys, levels):
    codes = [Code()]
    conds = []
    for _ in range(levels):
        conds.append(codes[-1].less(codes[-1].bid(0), codes[-1].const(1)))
        codes.append(Code(lines=codes[-1].lines))
    codes[-1].show("inside")
    for cond in reversed(conds):
        inner, outer = codes.pop(), codes[-1]
        then, orelse = (Region([*nodes, Yield((), outer.span())]) for nodes in (inner.nodes, []))
        outer.add(If(cond, then, orelse, (), outer.span()))
    codes[0].add(Return((), codes[0].span()))
    interp.run(codes[0].kernel(), (2,), [], schedule="batch")
    assert capsys.readouterr().out == "inside\n"


# ------------------------------------------------------------------ chunks


@hypothesis_settings(deadline=None, max_examples=50)
@given(st.tuples(*[st.integers(1, 20)] * 3), st.integers(1, 1 << 20))
def test_chunks_cover_the_grid_once(grid, value_bytes):
    properties = schedule.KernelProperties(value_bytes, schedule.BUDGET, False, None)
    extent = run_blocks.chunk_of(grid, schedule.most_blocks(properties, False))
    blocks = max(1, min(schedule.BUDGET // value_bytes, schedule.MAX_BLOCKS))
    assert extent[0] * extent[1] * extent[2] <= blocks
    total = 0
    last = (-1, -1, -1)
    for origin, size in run_blocks.chunks(grid, extent):
        assert origin > last
        last = origin
        assert all(o + n <= g and n > 0 for o, n, g in zip(origin, size, grid, strict=True))
        total += size[0] * size[1] * size[2]
    assert total == grid[0] * grid[1] * grid[2]


@pytest.mark.parametrize("dtype, scan, budget", [
    (ct.float32, lambda x: ct.cumsum(x, 0), schedule.REDUCE_BUDGET),
    (ct.int8, lambda x: ct.cumprod(x, 0), schedule.REDUCE_BUDGET),
    (ct.float16, lambda x: ct.cumsum(x, 0), schedule.SCAN_BUDGET),
    (ct.float32, lambda x: ct.cumsum(x, 0, rounding_mode=ct.RoundingMode.RZ), schedule.SCAN_BUDGET),
    (ct.float32, lambda x: ct.cumsum(x, 0, flush_to_zero=True), schedule.SCAN_BUDGET),
    (ct.float32, lambda x: ct.scan(x, 0, lambda a, b: a * 0.5 + b, 0.0), schedule.SCAN_BUDGET),
    (ct.float32, lambda x: ct.mma(x[None, :], ct.cumsum(x, 0)[:, None], ct.zeros((1, 1), ct.float32)),
     schedule.MATMUL_BUDGET),
])
def test_chunks_are_large_where_python_steps_through_a_scan(dtype, scan, budget):
    def k(a):
        scan(ct.load(a, 0, 4).astype(dtype))

    assert schedule.properties_of(typed(k, A1)).budget == budget


@pytest.mark.parametrize("name", ["batch", "block", "interleave"])
@pytest.mark.parametrize("grid", [(0,), (3, 0, 2)])
def test_empty_grids(grid, name, capsys):
    interp.run(simple(), grid, [], schedule=name)
    assert capsys.readouterr().out == ""


# ------------------------------------------------------------------ what a run reports


@pytest.mark.parametrize("name", ["batch", "block", "interleave"])
def test_print_comes_in_block_order(name, capsys, monkeypatch):
    monkeypatch.setattr(schedule, "MAX_BLOCKS", 3)
    c = Code()
    x, y = c.bid(0), c.bid(1)
    c.show("a", x, y)
    c.show("b", x, y)
    c.add(Return((), c.span()))
    interp.run(c.kernel(), (3, 2), [], schedule=name)
    blocks = itertools.product(range(3), range(2))
    assert capsys.readouterr().out == "".join(f"a {x} {y}\nb {x} {y}\n" for x, y in blocks)


def asserting() -> Kernel:
    """Block 3 fails early, block 1 late."""
    c = Code()
    x = c.bid(0)
    c.op(debug.assert_, c.less(x, c.const(3)), message="early")
    c.show("between", x)
    c.op(debug.assert_, c.equal(c.equal(x, c.const(1)), c.op(create.constant, result=B1, value=False)), message="late")
    c.add(Return((), c.span()))
    return c.kernel()


@pytest.mark.parametrize("name", ["batch", "block", "interleave"])
def test_the_first_failing_block_is_named(name, capsys):
    with pytest.raises(TileAssertionError, match=r"late in block \(1, 0, 0\)") as e:
        interp.run(asserting(), (5,), [], schedule=name)
    assert isinstance(e.value, AssertionError) and e.value.loc.filename == "<program>"
    assert "between 0" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["batch", "block", "interleave"])
def test_step_limit(name):
    c = Code()
    with c.block() as (inner, body):
        inner.add(Continue((), inner.span()))
    c.add(While(None, (), (), body, (), c.span()))
    kernel = c.kernel()
    says = r"50 iterations .* block \([01], 0, 0\)"
    with settings.override(STEP_LIMIT=50), pytest.raises(TileStepLimitError, match=says) as e:
        interp.run(kernel, (2,), [], schedule=name)
    assert e.value.loc.filename == "<program>"


@pytest.mark.parametrize("name", ["batch", "block", "interleave"])
def test_the_step_limit_counts_the_iterations_of_every_block(name):
    """Block i makes i iterations: 10 in all."""
    c = Code()
    with c.block() as (inner, body):
        inner.add(Continue((), inner.span()))
    c.add(For(Value(I32), c.const(0), c.bid(0), c.const(1), (), (), body, (), c.span()))
    c.add(Return((), c.span()))
    kernel = c.kernel()
    with settings.override(STEP_LIMIT=10):
        interp.run(kernel, (5,), [], schedule=name)
    with settings.override(STEP_LIMIT=9), pytest.raises(TileStepLimitError, match="9 iterations"):
        interp.run(kernel, (5,), [], schedule=name)


@pytest.mark.parametrize("name", ["batch", "block", "interleave"])
@pytest.mark.parametrize("varying", [False, True])
def test_a_step_that_is_not_positive(name, varying):
    c = Code()
    step = c.bid(0) if varying else c.const(0)
    with c.block() as (inner, body):
        inner.add(Continue((), inner.span()))
    c.add(For(Value(I32), c.const(0), c.const(3), step, (), (), body, (), c.span()))
    c.add(Return((), c.span()))
    with pytest.raises(TileValueError, match="must be positive, got 0"):
        interp.run(c.kernel(), (2,), [], schedule=name)


def test_debug_tells_the_schedule(capsys):
    with settings.override(DEBUG=1):
        interp.run(simple(), (2,), [], schedule="batch")
        assert "runs as batch in chunks of (2, 1, 1) (asked for)" in capsys.readouterr().err
        interp.run(simple(), (2,), [], schedule="block")
        assert "runs as block (asked for)" in capsys.readouterr().err


def test_numbers_become_carriers(capsys):
    c = Code()
    n, b = Value(I32), Value(TileType(float32))
    c.show("n", n)
    c.op(debug.emit_text, b, layout=(1,), parts=((0, "%.3f"), "\n"))
    c.add(Return((), c.span()))
    interp.run(c.kernel(("n", n), ("b", b)), (1,), [7, 0.5])
    assert capsys.readouterr().out == "n 7\n0.500\n"


def test_functions_of_the_package_take_the_place_of_their_calls():
    """So the tiles that they load and store are views of memory. Those of the user stay, as tracebacks show them; so do
    all where one block runs at a time, for debuggers.
    """
    def kernel(x):
        t = ct.load(x, (ct.bid(0),), (8,))
        ct.store(x, (ct.bid(0),), kept(ct.lib.erf(t)))

    compiled = schedule.CompiledKernel(typed(kernel, A1))
    frames = {asked: {n.function for n in walk(compiled.plan(asked, False).code.kernel.body) if isinstance(n, Frame)}
              for asked in ("batch", "block")}
    assert frames["batch"] == {"kept"} < frames["block"]


def kept(t):
    return t + 1
