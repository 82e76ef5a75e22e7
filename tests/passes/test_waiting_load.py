"""Which loads become atomics: those of one element by which a loop waits for other blocks."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.front.program import type_kernel
from cutile.gpu.tileir.lower import after_passes
from cutile.ir.check import check
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.ops import atomics, create, memory
from cutile.passes.fma import fma
from cutile.types import ArrayType
from tests.gpu.tileir.lowering import assemble

ACQUIRE, RELAXED, RELEASE = ct.MemoryOrder.ACQUIRE, ct.MemoryOrder.RELAXED, ct.MemoryOrder.RELEASE
DEVICE, SYS = ct.MemoryScope.DEVICE, ct.MemoryScope.SYS
ZERO = ct.PaddingMode.ZERO
FLAGS, Y = ArrayType(ct.int32, 1), ArrayType(ct.int32, 1)


def ops(code, *kinds) -> list[Op]:
    kernel = after_passes(fma(type_kernel(code, kinds or (FLAGS, Y)).kernel))
    check(kernel)
    return [n for n in walk(kernel.body) if isinstance(n, Op)]


def loads(code, *kinds) -> int:
    return sum(n.op is memory.load and n.attrs["memory_order"] in (ACQUIRE, RELAXED) for n in ops(code, *kinds))


def atomic(code, *kinds) -> Op:
    found, = (n for n in ops(code, *kinds) if n.op is atomics.atomic_or)
    return found


def in_the_condition(flags, y):
    i = ct.bid(0)
    while ct.load(flags, (i,), (1,), memory_order=ACQUIRE, memory_scope=DEVICE).item() == 0:
        pass
    ct.store(flags, (i + 1,), ct.full((1,), 1, flags.dtype), memory_order=RELEASE, memory_scope=DEVICE)


def a_scalar(flags, y):
    while True:
        if ct.load(flags, ct.bid(0), (), memory_order=RELAXED, memory_scope=SYS, check_bounds=False) != 0:
            break
    ct.store(flags, (ct.bid(0) + 1,), ct.full((1,), 1, flags.dtype), memory_order=RELEASE, memory_scope=DEVICE)


def by_a_carried_value(flags, y):
    seen = flags.dtype(0)
    while seen == 0:
        seen = ct.load(flags, (0,), (1,), memory_order=ACQUIRE, memory_scope=DEVICE).item()
        if ct.bid(0) == 0:
            ct.store(flags, (0,), ct.full((1,), 1, flags.dtype), memory_order=RELEASE, memory_scope=DEVICE)


def returns_from_a_loop(flags, y):
    for k in range(1000):
        if ct.load(flags, (k,), (1,), memory_order=ACQUIRE, memory_scope=DEVICE).item() == 0:
            ct.store(y, (0,), ct.full((1,), 1, y.dtype))
            return
    ct.store(flags, (1,), ct.full((1,), 1, flags.dtype), memory_order=RELEASE, memory_scope=DEVICE)


WAIT = [in_the_condition, a_scalar, by_a_carried_value, returns_from_a_loop]


@pytest.mark.parametrize("dtype", atomics.INTS, ids=lambda d: d.name)
@pytest.mark.parametrize("code", WAIT, ids=lambda f: f.__name__)
def test_loops_that_wait(code, dtype):
    kinds = ArrayType(dtype, 1), Y
    assert loads(code, *kinds) == 0
    assert atomic(code, *kinds).operands[0].type == kinds[0]


@pytest.mark.parametrize("code", WAIT, ids=lambda f: f.__name__)
def test_the_assembler_takes_them(code):
    assert assemble(code, FLAGS, Y)


def test_order_scope_and_bounds_are_those_of_the_load():
    n, m = atomic(in_the_condition), atomic(a_scalar)
    assert (n.attrs["memory_order"], n.attrs["memory_scope"], n.attrs["check_bounds"]) == (ACQUIRE, DEVICE, True)
    assert (m.attrs["memory_order"], m.attrs["memory_scope"], m.attrs["check_bounds"]) == (RELAXED, SYS, False)


@pytest.mark.parametrize(("order", "want"), [("C", [3, 5]), ("F", [5, 3]), ((1, 0), [5, 3])])
def test_an_index_goes_along_the_axis_of_its_order(order, want):
    def code(flags, y):
        while ct.load(flags, (3, 5), (1, 1), order=order, memory_order=ACQUIRE, memory_scope=DEVICE).item() == 0:
            ct.store(flags, (0, 0), ct.full((1, 1), 1, ct.int32), memory_order=RELEASE, memory_scope=DEVICE)

    found = ops(code, ArrayType(ct.int32, 2), Y)
    values = {n.results[0]: n.attrs["value"] for n in found if n.op is create.constant}
    n, = (n for n in found if n.op is atomics.atomic_or)
    assert [values.get(v) for v in n.operands[1:]] == [*want, 0]


def outside_of_loops(flags, y):
    ct.store(y, (0,), ct.load(flags, (0,), (1,), memory_order=ACQUIRE, memory_scope=DEVICE))
    ct.store(flags, (1,), ct.full((1,), 1, ct.int32), memory_order=RELEASE, memory_scope=DEVICE)


def nobody_writes(flags, y):
    while ct.load(flags, (0,), (1,), memory_order=ACQUIRE, memory_scope=DEVICE).item() == 0:
        ct.store(y, (0,), ct.full((1,), 1, ct.int32))


def counts(flags, y):
    for k in range(8):
        ct.store(flags, (k,), ct.load(flags, (k,), (1,), memory_order=RELAXED, memory_scope=DEVICE) + 1,
                 memory_order=RELAXED, memory_scope=DEVICE)


def several(flags, y):
    while ct.sum(ct.load(flags, (0,), (4,), memory_order=RELAXED, memory_scope=DEVICE)) == 0:
        ct.store(flags, (1,), ct.full((1,), 1, ct.int32), memory_order=RELEASE, memory_scope=DEVICE)


def with_padding(flags, y):
    while ct.load(flags, (9,), (1,), padding_mode=ZERO, memory_order=ACQUIRE, memory_scope=DEVICE).item() == 0:
        ct.store(flags, (1,), ct.full((1,), 1, ct.int32), memory_order=RELEASE, memory_scope=DEVICE)


@pytest.mark.parametrize("code", [outside_of_loops, nobody_writes, counts, several],
                         ids=lambda f: f.__name__)
def test_other_loads_stay(code):
    assert loads(code) == 1
    assert not any(n.op is atomics.atomic_or for n in ops(code))


@pytest.mark.parametrize(("code", "dtype", "said"), [
    *((code, dtype, f"waits by a load of {dtype.name} .* use flags of int32 or int64")
      for code in WAIT for dtype in (ct.int16, ct.uint8, ct.float32)),
    (with_padding, ct.int32, "waits by a load with a padding .* leave padding_mode out"),
])
def test_loads_without_such_atomics_stay_and_are_told_of(code, dtype, said):
    with pytest.warns(UserWarning, match=said) as told:
        assert loads(code, ArrayType(dtype, 1), Y) == 1
    warning, = told
    first = code.__code__.co_firstlineno
    assert warning.filename == __file__ and first < warning.lineno <= first + 4


def test_loads_of_data_are_not_told_of(recwarn):
    """A loop waits by one flag, and reads something else besides."""
    def code(flags, data):
        total = ct.float32(0)
        while ct.load(flags, (0,), (1,), memory_order=ACQUIRE, memory_scope=DEVICE).item() == 0:
            total = total + ct.load(data, (0,), (1,), memory_order=RELAXED, memory_scope=DEVICE).item()
        ct.store(data, (0,), total, memory_order=RELEASE, memory_scope=DEVICE)
        ct.store(flags, (1,), ct.full((1,), 1, ct.int32), memory_order=RELEASE, memory_scope=DEVICE)

    assert loads(code, FLAGS, ArrayType(ct.float32, 1)) == 1
    assert not recwarn
