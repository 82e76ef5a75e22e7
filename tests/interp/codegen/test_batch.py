"""The batch schedule on whole kernels: equal to one block after another, and cheap where blocks agree."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import cutile as ct
from cutile import interp, settings
from cutile.interp.codegen import batch
from cutile.ir.nodes import Continue, For, If, Region, Return, Value, Yield
from cutile.ops import debug
from cutile.ops._op import OpDef
from tests.interp.ir_programs import I32, Code


@ct.kernel
def captures(x, out):
    """A combine function that captures values which vary by block, one of them a tile."""
    i = ct.bid(0)
    t = ct.load(x, index=(i,), shape=(8,))
    biggest = ct.max(t, axis=0)
    m = ct.reduce(t, 0, lambda a, b: ct.minimum(a + b, biggest) + ct.bid(0), 0.0)
    s = ct.scan(ct.load(x, index=(0,), shape=(8,)), 0, lambda a, b: ct.maximum(a, b) * i, 0.0)
    ct.store(out, index=(i,), tile=s + m)


@ct.kernel
def joins_arrays(x, out):
    i, j = ct.bid(0), ct.bid(1)
    a = x
    if (i + j) % 2 == 0:
        a = x.slice(axis=0, start=8, stop=16 + i)
    for k in range(j):
        a = a.slice(axis=0, start=k, stop=a.shape[0])
    t = ct.load(a, index=(0,), shape=(8,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(i * ct.num_blocks(1) + j,), tile=t)


@ct.kernel
def picks_items(arrays, out):
    i = ct.bid(0)
    total = ct.zeros((4,), dtype=ct.float32)
    n = 0
    while n < i % 3:
        total = total + ct.load(arrays[n], index=(i,), shape=(4,), padding_mode=ct.PaddingMode.ZERO)
        n += 1
    ct.store(out, index=(i,), tile=total)


@ct.kernel
def counts(out):
    """Every block counts, whether its operands vary or not."""
    i, j = ct.bid(0), ct.bid(1)
    ct.atomic_add(out, 0, 1)
    ct.atomic_add(out, 1, i)
    if j == 1:
        ct.atomic_add(out, 2, 1)
        for _ in range(i):
            ct.atomic_add(out, 3, 1)
    if i > j:
        ct.atomic_add(out, 4, 1)


def early(t, n):
    for k in range(n):
        t = t * 2.0
        if k == 2:
            return t
    return t + 1.0


@ct.kernel
def returns_early(x, out):
    i, j = ct.bid(0), ct.bid(1)
    t = ct.load(x, index=(i,), shape=(8,))
    if i + j == 3:
        return
    ct.store(out, index=(i * ct.num_blocks(1) + j,), tile=early(t, i + j))


@ct.kernel
def causal(q, k, v, out, T: ct.Constant[int]):
    i, h = ct.bid(0), ct.bid(1)
    a = ct.load(q, index=(h, i, 0), shape=(1, T, T)).reshape((T, T))
    acc = ct.zeros((T, T), dtype=ct.float32)
    top = ct.full((T, 1), -1e30, dtype=ct.float32)
    for j in range(i + 1):
        b = ct.load(k, index=(h, j, 0), shape=(1, T, T)).reshape((T, T))
        s = ct.mma(a, ct.transpose(b), ct.zeros((T, T), dtype=ct.float32))
        new = ct.maximum(top, ct.max(s, axis=1, keepdims=True))
        c = ct.load(v, index=(h, j, 0), shape=(1, T, T)).reshape((T, T))
        acc = ct.mma(ct.exp(s - new), c, acc * ct.exp(top - new))
        top = new
    ct.store(out, index=(h, i, 0), tile=acc.reshape((1, T, T)))


def _floats(*shape) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


CASES = {
    "captures": (captures, (6,), lambda: (_floats(48), np.zeros(48, np.float32))),
    "joins_arrays": (joins_arrays, (4, 3), lambda: (_floats(40), np.zeros(96, np.float32))),
    "picks_items": (picks_items, (7,), lambda: ([_floats(28), _floats(9), _floats(3)], np.zeros(28, np.float32))),
    "counts": (counts, (4, 3), lambda: (np.zeros(8, np.int32),)),
    "returns_early": (returns_early, (4, 3), lambda: (_floats(32), np.zeros(96, np.float32))),
    "causal": (causal, (4, 3), lambda: (*(_floats(3, 32, 8) for _ in range(3)), np.zeros((3, 32, 8), np.float32), 8)),
}


@pytest.mark.parametrize("case", CASES)
def test_equal_bits(case):
    kernel, grid, make = CASES[case]
    results = []
    for schedule in ("block", "batch"):
        args = make()
        with settings.override(SCHEDULE=schedule, CHECK=True):
            ct.launch(None, grid, kernel, args)
        results.append(next(a for a in reversed(args) if isinstance(a, np.ndarray)))
    assert results[0].any()
    assert results[0].tobytes() == results[1].tobytes()


def test_counts():
    out = np.zeros(8, np.int32)
    ct.launch(None, (4, 3), counts, (out,))
    assert out[:5].tolist() == [12, 18, 4, 6, sum(i > j for i in range(4) for j in range(3))]


# ------------------------------------------------------------------ what is shared and what is split


def _no_rule(b, op, **terms):
    raise NotImplementedError


SEEN: list[tuple] = []


def _probe(x, /, *, ctx):
    """Records the leading axes of its operand and of the running blocks."""
    SEEN.append((x.shape, ctx.batch_shape))
    return x


probe = OpDef(_probe, _no_rule, name="_test_probe", public=False, exact=True)  # not registered


def probed(c: Code, x: Value) -> Value:
    return c.op(probe, x, result=I32)


def run(c: Code, grid=(4, 3)) -> list[tuple]:
    c.add(Return((), c.span()))
    SEEN.clear()
    interp.run(c.kernel(), grid, [], schedule="batch")
    return list(SEEN)


def loop(c: Code, stop: Value, init: Value) -> None:
    iv, p, r = Value(I32), Value(I32), Value(I32)
    with c.block() as (inner, body):
        probed(inner, p)
        inner.add(Continue((inner.add_(p, iv),), inner.span()))
    c.add(For(iv, c.const(0), stop, c.const(1), (init,), (p,), body, (r,), c.span()))
    probed(c, r)


def test_values_have_the_axes_that_they_depend_on():
    c = Code()
    x, y = c.bid(0), c.bid(1)
    probed(c, c.const(1))
    probed(c, x)
    probed(c, y)
    probed(c, c.add_(x, y))
    assert [s for s, _ in run(c)] == [(), (4, 1, 1), (1, 3, 1), (4, 3, 1)]


def test_a_loop_that_is_alike_for_all_blocks_stays_whole():
    c = Code()
    loop(c, c.const(3), c.const(0))
    assert run(c) == [((), (4, 3, 1))] * 4


def test_a_loop_that_ends_along_one_axis_stays_a_box():
    c = Code()
    x = c.bid(0)
    loop(c, x, c.bid(1))
    assert [batch_shape for _, batch_shape in run(c)] == [(3, 3, 1), (2, 3, 1), (1, 3, 1), (4, 3, 1)]


def test_lanes_leave_a_loop_as_they_finish():
    c = Code()
    loop(c, c.add_(c.bid(0), c.bid(1)), c.const(0))
    assert [batch_shape for _, batch_shape in run(c, (2, 2))] == [(3,), (1,), (2, 2, 1)]


def test_a_uniform_branch_runs_one_side():
    c = Code()
    cond = c.less(c.const(0), c.const(1))
    r = Value(I32)
    sides = []
    for k in range(2):
        with c.block() as (inner, side):
            inner.add(Yield((probed(inner, inner.const(k)),), inner.span()))
        sides.append(side)
    c.add(If(cond, *sides, (r,), c.span()))
    assert run(c) == [((), (4, 3, 1))]


def test_print_in_a_divergent_branch_keeps_block_order(capsys):
    c = Code()
    x = c.bid(0)
    odd = c.equal(c.mod(x, 2), c.const(1))
    sides = []
    for name in ("odd", "even"):
        with c.block() as (inner, side):
            inner.show(name, x)
            inner.add(Yield((), inner.span()))
        sides.append(side)
    c.add(If(odd, *sides, (), c.span()))
    c.op(debug.emit_text, layout=(0,), parts=("end\n",))
    run(c, (4,))
    assert capsys.readouterr().out == "even 0\nend\nodd 1\nend\neven 2\nend\nodd 3\nend\n"


def test_dead_values_are_dropped():
    """A value ends with its last use, so the next one can have its memory."""
    c = Code()
    v = c.const(1)
    for _ in range(3):
        v = c.add_(v, v)
    c.add(Return((), c.span()))
    kernel = c.kernel()
    interp.run(kernel, (1,), [], schedule="batch")
    code = interp.CompiledKernel(kernel).plan("batch", True).code.objects[".kernel"].__code__
    deleted = {i.argval for i in __import__("dis").get_instructions(code) if i.opname == "DELETE_FAST"}
    assert deleted == {n for n in code.co_varnames if n.startswith(".t")}


def test_an_empty_side_of_a_branch():
    c = Code()
    cond = c.less(c.bid(0), c.const(2))
    block = Region([Yield((), c.span())])
    c.add(If(cond, block, Region([Yield((), c.span())]), (), c.span()))
    assert run(c) == []


def test_memory_that_repeats_elements_takes_no_result():
    """Compiled forms return such arrays, which are read-only."""
    x = np.zeros((3, 2), np.float32)
    assert batch.reusable_or_none(x) is x and batch.reusable_or_none(x, x[:1]) is x
    repeated = np.broadcast_to(x[:1], (3, 2))
    assert batch.reusable_or_none(repeated) is None and batch.reusable_or_none(repeated, x) is None


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.float32])
@pytest.mark.parametrize("f", [lambda a, b: a + b, lambda a, b: b * a, ct.maximum, lambda a, b: named(a, b),
                               lambda a, b: a + b + 0], ids=range(5))
def test_a_combine_function_that_is_an_op(dtype, f):
    """Of integers one call of NumPy combines whole tiles. The results are those of the schedule `block`."""
    @ct.kernel
    def combines(x, out, prefixes):
        i = ct.bid(0)
        t = ct.load(x, (i, 0), (2, 64))
        ct.store(out, (i,), ct.reduce(t, 1, f, 0))
        ct.store(prefixes, (i, 0), ct.scan(t, 1, f, 0, reverse=True))
        ct.store(prefixes, (i + 2, 0), ct.scan(t, 0, f, 0))
    x = np.random.default_rng(1).integers(0, 100, (4, 64)).astype(dtype)
    found = []
    for schedule in ("batch", "block"):
        found.append((np.zeros(4, dtype), np.zeros((8, 64), dtype)))
        with settings.override(SCHEDULE=schedule):
            ct.launch(None, (2, 1, 1), combines, (x, *found[-1]))
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(*found, strict=True))


def named(a, b):
    return a & b if False else a + b


@ct.kernel
def straight(x, out):
    t = ct.load(x, 0, (8,))
    for _ in ct.static_iter(range(40)):
        t = t * 2.0 + ct.bid(0)
    ct.store(out, 0, t)


def test_equal_statements_share_their_syntax():
    """Names of locals are used again, so that what is kept until the function is compiled does not grow with it."""
    program = straight.program(straight.classify((_floats(8), _floats(8)))).kernel
    (function,) = batch.compile_kernel(program, check=False, step_limit=False, syntax=True).syntax
    nodes = list(ast.walk(function))
    assigned = [n for n in function.body if isinstance(n, ast.Assign)]
    assert len(assigned) >= 120
    assert len({t.id for n in assigned for t in n.targets}) < 8
    inner = [n.value.args[0] for n in assigned if isinstance(n.value, ast.Call) and n.value.args
             and isinstance(n.value.args[0], ast.Call)]
    assert len(inner) >= 120 > 30 > len(set(map(id, inner)))
    assert len({id(n) for n in nodes if isinstance(n, ast.Delete)}) < 8
