"""The evaluator on whole tiles, memory and control flow, against results worked out by hand from the specification."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.builder import Bounded, DivBy, SameElements
from cutile.gpu.tileir.types import f16, f32, i1, i8, i16, i32, i64, ptr, tile
from tests.tileir_eval import EvaluationError, Pointer
from tests.tileir_eval.small_programs import evaluated, pointers, run, store


def one(build) -> list:
    return evaluated(build)[0].tolist()


def line(b, n, element=i32):
    return b.op("iota", result=tile(element, (n,)))


def square(b, element=i32):
    """[[0, 1, 2, 3], [4, 5, 6, 7]]"""
    return b.constant(tile(element, (2, 4)), np.arange(8).reshape(2, 4))


# ------------------------------------------------------------------ shapes


def test_constants():
    assert one(lambda b: b.constant(tile(f16, (2, 2)), 1.5)) == [[1.5, 1.5], [1.5, 1.5]]
    assert one(lambda b: b.constant(tile(i1, (16,)), [0, 1] * 8)) == [0, 1] * 8
    for size in (4, 16):
        assert one(lambda b, size=size: b.constant(tile(i1, (size,)), True)) == [1] * size
    assert one(lambda b: b.constant(tile(ty.tf32, (2,)), [1.5, -2.0])) == [1.5, -2.0]
    assert one(lambda b: b.constant(tile(i8, (2,)), [200, -1])) == [-56, -1]


def test_moving_elements():
    assert one(lambda b: line(b, 4, i8)) == [0, 1, 2, 3]
    assert one(lambda b: b.op("reshape", [square(b)], result=tile(i32, (4, 2)))) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert one(lambda b: b.op("permute", [square(b)], permutation=(1, 0), result=tile(i32, (4, 2)))) == [
        [0, 4], [1, 5], [2, 6], [3, 7]]
    cube = np.arange(8).reshape(2, 1, 4)
    assert np.array(one(lambda b: b.op("permute", [b.constant(tile(i32, (2, 1, 4)), cube)], permutation=(2, 0, 1),
                                       result=tile(i32, (4, 2, 1))))).tolist() == cube.transpose(2, 0, 1).tolist()
    assert one(lambda b: b.op("broadcast", [b.op("reshape", [line(b, 2)], result=tile(i32, (2, 1)))],
                              result=tile(i32, (2, 2)))) == [[0, 0], [1, 1]]
    assert one(lambda b: b.op("cat", [square(b), square(b)], dim=1, result=tile(i32, (2, 8)))) == [
        [0, 1, 2, 3] * 2, [4, 5, 6, 7] * 2]


def test_parts():
    def at(b, *index):
        return [b.constant(tile(i32), k) for k in index]

    assert one(lambda b: b.op("extract", [square(b), at(b, 1, 1)], result=tile(i32, (1, 2)))) == [[6, 7]]
    assert one(lambda b: b.op("insert", [b.constant(tile(i32, (1, 2)), -1), square(b), at(b, 0, 1)])) == [
        [0, 1, -1, -1], [4, 5, 6, 7]]
    for index in ((2, 0), (0, 2), (-1, 0)):
        with pytest.raises(EvaluationError, match="no slice"):
            one(lambda b, index=index: b.op("extract", [square(b), at(b, *index)], result=tile(i32, (1, 2))))


def test_bytes():
    assert one(lambda b: b.op("pack", [b.constant(tile(i16, (2,)), [0x0102, -1])], result=tile(i8, (4,)))) == [
        2, 1, -1, -1]
    assert one(lambda b: b.op("unpack", [b.constant(tile(i8, (4,)), [0, 0, 0x80, 0x3F])], result=tile(f32, (1,)))) == [
        1.0]
    halves = b"\x21\x43"  # the lower half of a byte comes first: codes 1, 2, 3, 4
    floats = one(lambda b: b.op("unpack", [b.constant(tile(i8, (2,)), list(halves))], result=tile(ty.e2m1, (4,))))
    assert floats == [0.5, 1.0, 1.5, 2.0]
    assert one(lambda b: b.op("pack", [b.constant(tile(ty.e2m1, (4,)), floats)], result=tile(i8, (2,)))) == list(halves)


@pytest.mark.parametrize("holds, values, predicate", [
    (True, [4, -8, 0, 12], DivBy(4)), (False, [4, 2, 0, 0], DivBy(4)),
    (True, [4, 5, 12, 13], DivBy(4, 2, 0)), (False, [4, 6, 12, 13], DivBy(4, 2, 0)),
    (False, [5, 6, 12, 13], DivBy(4, 2, 0)), (True, [-3, 0, 5, 1], Bounded(-3, 5)),
    (False, [0, 0, 6, 0], Bounded(-3, 5)), (False, [-1, 0, 0, 0], Bounded(0)), (True, [2**31 - 1, 0, 0, 0], Bounded(0)),
    (True, [1, 1, 7, 7], SameElements((2,))), (False, [1, 1, 7, 8], SameElements((2,)))])
def test_assumptions(holds, values, predicate):
    def build(b):
        return b.assume(b.constant(tile(i32, (4,)), values), predicate)

    if holds:
        assert one(build) == values
    else:
        with pytest.raises(EvaluationError, match="does not hold"):
            one(build)


def test_assumptions_about_pointers():
    whole = np.zeros(64, np.float32)
    start = -(whole.__array_interface__["data"][0] // 4) % 16  # of an element at a multiple of 64 bytes
    build = lambda b, p: b.assume(p, DivBy(64))
    run(build, [tile(ptr(f32))], [Pointer(whole[start:])])
    with pytest.raises(EvaluationError, match="does not hold"):
        run(build, [tile(ptr(f32))], [Pointer(whole[start + 1:])])


# ------------------------------------------------------------------ reductions, scans, products


def folded(kind, x, element, op, identity, **options):
    """One reduce or scan with the accumulated value on the left."""
    def build(b):
        t = tile(element, np.shape(x))
        make = b.reduce if kind == "reduce" else b.scan
        how = {"reverse": options.get("reverse", False)} if kind == "scan" else {}
        with make([b.constant(t, x)], options.get("dim", 0), [identity], **how) as r:
            before, new = r.arguments
            b.op("yield", [[op(b, before, new)]])
        return r.results[0]

    return evaluated(build, identities=options.get("identities", False))[0].tolist()


def add(b, x, y):
    return b.op("addi", [x, y])


def digits(b, x, y):
    """10 x + y, which shows the order."""
    return b.op("addi", [b.op("muli", [x, b.constant(tile(i32), 10)]), y])


def test_reductions():
    x = [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert folded("reduce", x, i32, add, 0, dim=0) == [16, 20]
    assert folded("reduce", x, i32, add, 0, dim=1) == [3, 7, 11, 15]
    assert folded("reduce", [5], i32, add, 0) == 5
    assert folded("reduce", [127, 1], i8, add, 0) == -128
    assert folded("reduce", [1, 2, 3, 4], i32, add, 100, identities=True) == 110
    assert folded("reduce", [1, 2, 3, 4], i32, add, 100) == 10


def test_scans():
    assert folded("scan", [1, 2, 3, 4], i32, digits, 0) == [1, 12, 123, 1234]
    assert folded("scan", [1, 2, 3, 4], i32, digits, 0, reverse=True) == [4321, 432, 43, 4]
    assert folded("scan", [[1, 2], [3, 4]], i32, digits, 0, dim=1) == [[1, 12], [3, 34]]
    assert folded("scan", [1, 2], i32, add, 100, identities=True) == [101, 103]


def test_reductions_of_several_tiles():
    def build(b):
        x = b.constant(tile(f32, (4,)), [3.0, 9.0, 8.0, 1.0])
        with b.reduce([x, line(b, 4)], 0, [-np.inf, -1]) as r:
            best, v, place, i = r.arguments
            better = b.op("cmpf", [v, best], comparison_predicate="greater_than", comparison_ordering="ordered")
            b.op("yield", [[b.op("select", [better, v, best]), b.op("select", [better, i, place])]])
        return r.results

    assert [r.tolist() for r in evaluated(build)] == [9.0, 1]


def test_regions_that_do_not_run_on_arrays():
    """An if in a region is run element by element."""
    def smaller(b, x, y):
        less = b.op("cmpi", [x, y], comparison_predicate="less_than", signedness="signed")
        with b.if_(less, [tile(i32)]) as branch:
            with branch.then:
                b.op("yield", [[x]])
            with branch.otherwise:
                b.op("yield", [[y]])
        return branch.results[0]

    assert folded("reduce", [[4, 2], [3, 9]], i32, smaller, 99, dim=0) == [3, 2]


def test_products():
    def product(name, a, c, **attrs):
        def build(b):
            x, y = (b.constant(tile(a, (2, 2)), v) for v in ([[1, 2], [3, 4]], [[5, 6], [-7, 8]]))
            return b.op(name, [x, y, b.constant(tile(c, (2, 2)), [[1, 0], [0, 1]])], **attrs)

        return one(build)

    for element in (f16, f32, ty.e4m3):
        assert product("mmaf", element, f32) == [[-8.0, 22.0], [-13.0, 51.0]]
    signs = {"signedness_lhs": "signed", "signedness_rhs": "signed"}
    assert product("mmai", i8, i32, **signs) == [[-8, 22], [-13, 51]]
    assert product("mmai", i8, i32, **(signs | {"signedness_rhs": "unsigned"})) == [[504, 22], [1011, 51]]


def test_scaled_products():
    def build(b):
        x = b.constant(tile(ty.e4m3, (1, 64)), 1.0)
        y = b.constant(tile(ty.e4m3, (64, 1)), np.where(np.arange(64) < 32, 1.0, 2.0)[:, None])
        scales = [b.constant(tile(ty.e8m0, s), np.array([1.0, 4.0]).reshape(s)) for s in ((1, 2), (2, 1))]
        return b.op("mmaf_scaled", [x, y, b.constant(tile(f32, (1, 1)), 0.5), *scales])

    assert one(build) == [[32 + 32 * 2 * 4 * 4 + 0.5]]


# ------------------------------------------------------------------ control flow


def test_counting():
    def counted(lower, upper, step, element=i32, **options):
        def build(b):
            start, stop, by, zero = (b.constant(tile(element), v) for v in (lower, upper, step, 0))
            with b.for_(start, stop, by, [zero, start], **options) as loop:
                i, n, _ = loop.arguments
                b.op("continue", [[b.op("addi", [n, b.constant(tile(element), 1)]), i]])
            return loop.results

        return [r.tolist() for r in evaluated(build)]

    assert counted(0, 10, 3) == [4, 9]
    assert counted(-4, -1, 1) == [3, -2]
    assert counted(5, 5, 1) == [0, 5]
    assert counted(32760, -32766, 3, i16, unsigned=True) == [4, -32767]
    assert counted(0, 100, 20, i16) == [5, 80]
    with pytest.raises(EvaluationError, match="step is not positive"):
        counted(0, 1, 0)
    for bounds in ((0, 127, 64, i8), (125, 127, 1, i8), (125, 0, 1, i8), (0, -126, 1, i8)):
        with pytest.raises(EvaluationError, match="passes the ends of its dtype"):
            counted(*bounds)
    with pytest.raises(EvaluationError, match="passes the ends of its dtype"):
        counted(0, 2, 1, i8, unsigned=True)


def test_loops_are_left_and_go_on_from_within_branches():
    """The sum of 1, 2, 4, 5 …, multiples of 3 left out, until it is more than 20."""
    def build(b):
        zero, unit = b.constant(tile(i32), 0), b.constant(tile(i32), 1)
        with b.loop([zero, zero], [tile(i32)]) as loop:
            i, total = loop.arguments
            i = b.op("addi", [i, unit])
            third = b.op("remi", [i, b.constant(tile(i32), 3)], signedness="signed")
            skip = b.op("cmpi", [third, zero], comparison_predicate="equal", signedness="signed")
            with b.if_(skip) as branch, branch.then:
                b.op("continue", [[i, total]])
            total = b.op("addi", [total, i])
            over = b.op("cmpi", [total, b.constant(tile(i32), 20)], comparison_predicate="greater_than",
                        signedness="signed")
            with b.if_(over) as branch:
                with branch.then:
                    b.op("break", [[total]])
                with branch.otherwise:
                    b.op("continue", [[i, total]])
            b.op("continue", [[i, total]])
        return loop.results

    assert evaluated(build)[0].tolist() == 1 + 2 + 4 + 5 + 7 + 8


def test_returning_early():
    def build(b, p):
        x, _, _ = b.op("get_tile_block_id")
        first = b.op("cmpi", [x, b.constant(tile(i32), 0)], comparison_predicate="equal", signedness="signed")
        with b.if_(first) as branch, branch.then:
            b.op("return")
        store(b, p, b.constant(tile(i32, (1,)), 7))

    for blocks, want in ((1, 0), (2, 7)):
        out = np.zeros(1, np.int32)
        run(build, [tile(ptr(i32))], [Pointer(out)], grid=(blocks,))
        assert out[0] == want


# ------------------------------------------------------------------ memory


NUMBERS = np.arange(24, dtype=np.float32).reshape(4, 6)
ARRAY = [tile(ptr(f32)), *[tile(i32)] * 4]


def through_view(a, make, index, use, **options):
    """Use a view of an array of rank 2 at an index; what `use(b, view, index)` gives, stored."""
    shape = []

    def build(b, out, base, *dims):
        t = ty.TensorView(f32, (None, None), (None, None))
        tensor = b.tensor_view(base, t, dims[:2], dims[2:])
        kind, view = make(t)
        at = [b.constant(tile(i32, np.shape(k)), k) for k in index]
        x = use(b, b.op(f"make_{kind}_view", [tensor], result=view), at)
        if x is not None:
            shape.append(x.type.shape)
            store(b, out, x)

    out = np.zeros(64, np.float32)
    run(build, [tile(ptr(f32)), *ARRAY], [Pointer(out), a], **options)
    return out[:int(np.prod(shape[0]))].reshape(shape[0]).tolist() if shape else None


def load(b, view, at):
    return b.op("load_view_tko", [view, at])[0]


def partition(*args):
    return lambda t: ("partition", ty.PartitionView(args[0], t, *args[1:]))


def test_loads_through_views():
    assert through_view(NUMBERS, partition((2, 2)), (1, 2), load) == [[16, 17], [22, 23]]
    assert through_view(NUMBERS, partition((2, 4), (), "neg_inf"), (0, 1), load) == [
        [4, 5, -np.inf, -np.inf], [10, 11, -np.inf, -np.inf]]
    assert through_view(NUMBERS, partition((2, 4)), (0, 1), load) == [[4, 5, 0, 0], [10, 11, 0, 0]]
    poisoned = np.array(through_view(NUMBERS, partition((2, 4)), (0, 1), load, poison=True))
    assert np.isnan(poisoned[:, 2:]).all() and not np.isnan(poisoned[:, :2]).any()
    # Dimension 0 of the tile lies along dimension 1 of the array.
    assert through_view(NUMBERS, partition((2, 4), (1, 0)), (1, 0), load) == [[2, 8, 14, 20], [3, 9, 15, 21]]
    assert through_view(NUMBERS[1:, ::2], partition((2, 2)), (0, 1), load) == [[10, 0], [16, 0]]
    with pytest.raises(EvaluationError, match="outside an array"):  # strides are unsigned
        through_view(NUMBERS[::-1], partition((2, 2)), (0, 0), load)


def test_loads_through_other_views():
    strided = lambda t: ("strided", ty.StridedView((1, 2), (1, 3), t, padding="nan"))
    assert through_view(NUMBERS, strided, (1, 1), load) == [[9, 10]]
    rows = lambda t: ("gather_scatter", ty.GatherScatterView((4, 2), t, 0, "zero"))
    assert through_view(NUMBERS, rows, ([3, 0, -1, 0], 2), load) == [[20, 21], [2, 3], [0, 0], [2, 3]]


def test_sizes_of_views():
    def sizes(b, view, at):
        counts = b.op("get_index_space_shape", [view], result=[tile(i32)] * 2)
        for n in counts:
            b.op("print_tko", [[n]], str="%d ")

    said = run(lambda b, base, *dims: sizes(b, b.op("make_partition_view", [b.tensor_view(
        base, ty.TensorView(f32, (None, None), (None, None)), dims[:2], dims[2:])], result=ty.PartitionView(
            (4, 1), ty.TensorView(f32, (None, None), (None, None)), (1, 0))), ()), ARRAY, [NUMBERS])
    assert said == ["2 ", "4 "]  # six columns in fours, four rows in ones


def test_sizes_along_one_dimension():
    kind = ty.TensorView(f32, (None,), (None,))
    part = ty.PartitionView((2,), kind, (0,))

    def count_and_store(b, base, n, stride):
        tensor = b.tensor_view(base, kind, [n], [stride])
        view = b.op("make_partition_view", [tensor], result=part)
        blocks, = b.op("get_index_space_shape", [view], result=[tile(i32)])
        size, = b.op("get_tensor_shape", [tensor], result=[tile(i32)])
        at = b.op("subi", [blocks, b.op("subi", [size, b.constant(tile(i32), 5)])])
        b.op("store_view_tko", [b.constant(tile(f32, (2,)), [7, 8]), view, [at]])

    a = np.zeros(6, np.float32)
    run(count_and_store, [tile(ptr(f32)), tile(i32), tile(i32)], [a])
    assert a.tolist() == [0, 0, 0, 0, 7, 8]  # block 3 - (6 - 5)


def test_stores_through_views():
    a = np.zeros((3, 3), np.float32)

    def put(b, view, at):
        b.op("store_view_tko", [b.constant(tile(f32, (2, 2)), [[1, 2], [3, 4]]), view, at])

    through_view(a, partition((2, 2)), (1, 0), put)
    through_view(a, partition((2, 2)), (0, 1), put)
    assert a.tolist() == [[0, 0, 1], [0, 0, 3], [1, 2, 0]]


@pytest.mark.parametrize("size, checked", [(5, True), (6, False)])
def test_constant_sizes(size, checked):
    """The assembler takes for granted that tiles begin inside where they divide a constant size."""
    kind = ty.TensorView(f32, (size,), (1,))

    def second(b, out, base):
        view = b.op("make_partition_view", [b.tensor_view(base, kind, [], [])], result=ty.PartitionView((2,), kind))
        store(b, out, b.op("load_view_tko", [view, [b.constant(tile(i32), 3)]])[0])

    args = [tile(ptr(f32))] * 2, [Pointer(np.zeros(2, np.float32)), Pointer(np.zeros(size, np.float32))]
    if checked:
        run(second, *args)
        return
    with pytest.raises(EvaluationError, match="leaves the tensor along dimension 0, whose size is a constant"):
        run(second, *args)


def test_promises_about_bounds():
    def inbounds(*promise):
        return lambda b, view, at: b.op("load_view_tko", [view, at], inbounds=promise)[0]

    assert through_view(NUMBERS, partition((2, 4)), (1, 0), inbounds(True, True))
    through_view(NUMBERS, partition((2, 4)), (0, 1), inbounds(True, False))
    with pytest.raises(EvaluationError, match="leaves the tensor along dimension 1"):
        through_view(NUMBERS, partition((2, 4)), (0, 1), inbounds(True, True))


def test_masks():
    def build(b, p, out):
        at, mask = pointers(b, p, tile(f32, (4,))), b.constant(tile(i1, (4,)), [1, 0, 1, 0])
        x, _ = b.op("load_ptr_tko", [at, mask, b.constant(tile(f32, (4,)), 9.0)])
        b.op("store_ptr_tko", [pointers(b, out, x.type), x, b.constant(tile(i1, (4,)), [1, 1, 0, 0])])

    out = np.zeros(4, np.float32)
    run(build, [tile(ptr(f32))] * 2, [Pointer(np.array([1, 2, 3], np.float32)), Pointer(out)])  # the fourth is masked
    assert out.tolist() == [1, 9, 0, 0]


@pytest.mark.parametrize("mode, element, start, args, after, old", [
    ("add", i32, 5, [1, 2, 3], 11, [5, 6, 8]), ("xchg", i32, 5, [1, 2, 3], 3, [5, 1, 2]),
    ("max", i32, -5, [-7, 2, 1], 2, [-5, -5, 2]), ("umax", i32, 1, [-1, 2, 3], -1, [1, -1, -1]),
    ("umin", i32, -1, [7, 2, 3], 2, [-1, 7, 2]), ("min", i64, 5, [7, -2, 3], -2, [5, 5, -2]),
    ("and", i32, 15, [7, 3, 8], 0, [15, 7, 3]), ("or", i32, 0, [1, 2, 4], 7, [0, 1, 3]),
    ("xor", i32, 0, [1, 1, 4], 4, [0, 1, 0]), ("addf", f32, 0.5, [1, 2, 2.0**-30], 3.5, [0.5, 1.5, 3.5]),
    ("addf", f16, 2048, [1, 1, 2], 2050, [2048, 2048, 2048])])
def test_atomics(mode, element, start, args, after, old):
    """The first three elements are one; the last is masked out."""
    def build(b, p, out):
        one = b.op("reshape", [p], result=tile(p.type.element, (1,)))
        at = b.op("broadcast", [one], result=tile(p.type.element, (4,)))
        x = b.constant(tile(element, (4,)), [*args, 100])
        got, _ = b.op("atomic_rmw_tko", [at, x, b.constant(tile(i1, (4,)), [1, 1, 1, 0])], mode=mode,
                      memory_ordering_semantics="relaxed", memory_scope="device")
        store(b, out, got)

    dtype = {i32: np.int32, i64: np.int64, f32: np.float32, f16: np.float16}[element]
    memory, out = np.array([start], dtype), np.zeros(4, dtype)
    run(build, [tile(ptr(element))] * 2, [Pointer(memory), Pointer(out)])
    assert memory[0] == after and out[:3].tolist() == old


def test_compare_and_swap():
    def build(b, p, out):
        at = pointers(b, p, tile(f32, (4,)))
        wanted, new = b.constant(tile(f32, (4,)), [1, 0.0, np.nan, 5]), b.constant(tile(f32, (4,)), 9.0)
        got, _ = b.op("atomic_cas_tko", [at, wanted, new, b.constant(tile(i1, (4,)), [1, 1, 1, 0])],
                      memory_ordering_semantics="acq_rel", memory_scope="device")
        store(b, out, got)

    memory, out = np.array([1, -0.0, np.nan, 5], np.float32), np.zeros(4, np.float32)
    run(build, [tile(ptr(f32))] * 2, [Pointer(memory), Pointer(out)])
    assert memory.tolist() == [9, -0.0, 9, 5] and np.signbit(memory[1])  # bits are compared
    assert str(out.tolist()) == "[1.0, -0.0, nan, 5.0]"  # masked: what was compared with


def test_atomics_through_views():
    a = np.ones((2, 3), np.float32)
    through_view(a, partition((2, 2)), (0, 1), lambda b, view, at: b.op(
        "atomic_red_view_tko", [view, at, b.constant(tile(f32, (2, 2)), 2.0)], mode="addf",
        memory_ordering_semantics="relaxed", memory_scope="device") and None)
    assert a.tolist() == [[1, 1, 3], [1, 1, 3]]


def test_memory_of_its_own():
    def build(b):
        p = b.op("alloca", num_elem=4, alignment=64, result=tile(ptr(i32)))
        b.assume(p, DivBy(64))
        store(b, p, line(b, 4))
        return b.op("load_ptr_tko", [pointers(b, p, tile(i32, (4,)))])[0]

    assert one(build) == [0, 1, 2, 3]
    with pytest.raises(EvaluationError, match="outside an array"):
        run(lambda b: store(b, b.op("alloca", num_elem=2, alignment=4, result=tile(ptr(i32))), line(b, 4)), [], [])


def test_global_variables():
    def build(b, out):
        b.module.variable("table", tile(f16, (4,)), [1, 2, 3, 4])
        p = b.op("get_global", name="table", result=tile(ptr(f16)))
        store(b, out, b.op("load_ptr_tko", [pointers(b, p, tile(f16, (4,)))])[0])

    out = np.zeros(4, np.float16)
    run(build, [tile(ptr(f16))], [Pointer(out)])
    assert out.tolist() == [1, 2, 3, 4]


def test_pointers_as_numbers():
    def build(b, p, out):
        n = b.op("addi", [b.op("ptr_to_int", [p], result=tile(i64)), b.constant(tile(i64), 6)])
        q = b.op("ptr_to_ptr", [b.op("int_to_ptr", [n], result=tile(ptr(f32)))], result=tile(ptr(i16)))
        store(b, out, b.op("reshape", [b.op("load_ptr_tko", [q])[0]], result=tile(i16, (1,))))

    out = np.zeros(1, np.int16)
    run(build, [tile(ptr(f32)), tile(ptr(i16))], [Pointer(np.array([0, 1], np.float32)), Pointer(out)])
    assert out[0] == 0x3F80  # the upper half of 1.0


def test_elements_of_four_bits():
    """NumPy keeps each in a byte; addresses are those of packed ones."""
    a = np.array([0.5, 1, 1.5, 2], ml_dtypes.float4_e2m1fn)

    def build(b, p):
        q = b.op("offset", [p, b.constant(tile(i32), 1)])
        x, _ = b.op("load_ptr_tko", [pointers(b, q, tile(ty.e2m1, (2,)))])
        store(b, p, x)

    run(build, [tile(ptr(ty.e2m1))], [Pointer(a)])
    assert a.astype(np.float32).tolist() == [1, 1.5, 1.5, 2]


def test_lists_of_arrays():
    def build(b, table, count):
        word = b.op("offset", [table, b.constant(tile(i32), 3)])  # the second array: pointer, size, stride
        p = b.op("int_to_ptr", [b.op("load_ptr_tko", [word])[0]], result=tile(ptr(i32)))
        size, _ = b.op("load_ptr_tko", [b.op("offset", [word, b.constant(tile(i32), 1)])])
        store(b, p, b.op("reshape", [b.op("trunci", [size], result=tile(i32))], result=tile(i32, (1,))))
        b.op("print_tko", [[count]], str="%d")

    xs = [np.zeros(2, np.int32), np.zeros(5, np.int32)]
    assert run(build, [tile(ptr(i64)), tile(i32)], [xs]) == ["2"]
    assert xs[1].tolist() == [5, 0, 0, 0, 0] and not xs[0].any()


# ------------------------------------------------------------------ printing


@pytest.mark.parametrize("form, element, x, want", [
    ("%d|", i32, -5, "-5|"), ("%u", i32, -1, "4294967295"), ("%lld", i64, -(2**40), "-1099511627776"),
    ("%x %%", i8, -1, "ff %"), ("%#o", i32, 8, "010"), ("%+05d", i32, 7, "+0007"), ("%5.2d", i32, 3, "   03"),
    ("%f", f32, 0.5, "0.500000"), ("%-8.2e|", f32, 1234, "1.23e+03|"), ("%g", f16, 0.25, "0.25"),
    ("%a", f32, 1.5, "0x1.8p+0"), ("%F", f32, np.inf, "INF"), ("%05f", f32, -np.nan, "  nan")])
def test_printing(form, element, x, want):
    assert run(lambda b: b.op("print_tko", [[b.constant(tile(element), x)]], str=form), [], []) == [want]


def test_printing_tiles():
    assert run(lambda b: b.op("print_tko", [[square(b), b.constant(tile(i32), 1)]], str="%d;%d"), [], []) == [
        "[[0, 1, 2, 3], [4, 5, 6, 7]];1"]
    with pytest.raises(EvaluationError, match="1 conversions for 2 values"):
        run(lambda b: b.op("print_tko", [[b.constant(tile(i32), 1)] * 2], str="%d"), [], [])
