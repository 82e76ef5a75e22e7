"""Accesses to memory, every dtype and form: assembled for architectures that have them, refused where they do not."""

from __future__ import annotations

import functools
from math import prod

import pytest

import cutile as ct
from cutile import dtypes
from cutile.dtypes import INFO, float4_e2m1fn, float8_e5m3fnu, float8_e8m0fnu
from cutile.gpu.facts import ArrayFacts, nothing_known
from cutile.gpu.target import parse_target, supports
from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir.builder import Module
from cutile.gpu.to_bytecode import module_of
from cutile.ops import atomics
from cutile.ops._op import ATOMIC, READ, WRITE, registry
from cutile.types import ArrayType, ListType, TileType
from tests.front.compiling import cell
from tests.gpu.tileir.lowering import TARGETS, assemble, module, ops, text, typed, usual
from tests.gpu.tileir.tool import needs_tool

I32, I64, U8, B1 = (TileType(d) for d in (ct.int32, ct.int64, ct.uint8, ct.bool_))
A0, A1, A2, A3 = (ArrayType(ct.float32, n) for n in range(4))
DTYPES = [d for d in INFO if INFO[d].kind != "p" and d not in (dtypes.tfloat32,)]


def every_form(a, v, arrays, i, j):
    """Every access that any dtype has: a of rank 1, v of rank 2."""
    x = ct.load(a, i, 16, padding_mode=ct.PaddingMode.ZERO)
    ct.store(v, (i, j), ct.reshape(x, (4, 4)), order="F")
    y = ct.load(v, (j, i), (2, 4), order=(1, 0), latency=2)
    ct.store(v, (0, i), y, allow_tma=False)
    ct.store(a, i, ct.load(v, (i, j), ()))
    w = v.tiled_view((4, 2), traversal_steps=(3, 2), padding_mode=ct.PaddingMode.ZERO)
    w.store((i, j), w.load((j, i)))
    k = ct.full((8,), 3, ct.int16)
    g = ct.gather(v, (k, i), mask=k > 1, padding_value=x.extract(0, ()).item())
    ct.scatter(v, (i, k), g, mask=k > 2)
    ct.scatter(a, k, ct.gather(a, k, check_bounds=False), check_bounds=False)
    s = a.slice(0, i, j)
    ct.store(s, 0, ct.load(s, 1, 8, check_bounds=False))
    p = a.get_raw_memory()
    p.store_offset(k, p.load_offset(ct.full((8,), 3, ct.uint32), mask=k > 1, padding_value=None))
    rows = ct.load_advanced_indexing(v, (k, ct.Slice(i, 4)), padding_mode=ct.PaddingMode.ZERO)
    ct.store_advanced_indexing(v, (ct.Slice(j, 8), ct.full((4,), 3, ct.uint64)), ct.reshape(rows, (8, 4)))
    ct.store(a, 0, ct.load(arrays[j], i, 8))
    f = ct.Array.from_foreign(a.foreign_pointer, (i, 4), (j, 1))
    ct.store(f, (0, 0), ct.load(f, (1, 1), (2, 2)))


def only_bytes(a, v, arrays, i, j):
    """Without what has a value of the dtype in a register that the dtype cannot be made of."""
    ct.store(a, i, ct.load(a, j, 16))
    ct.store(v, (i, j), ct.load(v, (j, i), (4, 16)))


STRIDES = [  # constant or not, and the bound: in the type of a view, and whether sizes and strides take 64 bits
    (2**31 - 1, None, "2147483647", False), (5, None, "5", False), (0, None, "?", False), (-1, None, "?", True),
    (None, 0, "?", False), (None, -1, "?", True), (None, None, "?", True)]


@needs_tool
@pytest.mark.parametrize("stride, low, shown, wide", STRIDES)
def test_strides_of_views(stride, low, shown, wide):
    """Types of views have no constants below 1, and views read what they get as unsigned."""
    def kernel(a, y):
        ct.store(y, 0, ct.load(a, (0, 0), (1, 8)).reshape((8,)))

    facts = ArrayFacts((None, None), (stride, 1), (1, 1), (1, 1), (low, 0), 16, (), False)
    found = text(kernel, A2, A1, facts=[facts, usual(A1)])
    assert f"tensor_view<?x?xf32, strides=[{shown},1]>" in found
    assert ("exti" in found) is wide


@pytest.mark.parametrize("stride, times", [(1, 0), (2, 1), (3, 1), (None, 1)])
def test_a_slice_begins_its_start_times_the_stride_ahead(stride, times):
    def kernel(a, n):
        x = a.slice(0, n, 100)
        ct.store(x, (0, 0), ct.zeros((1, 8), ct.float32))

    facts = ArrayFacts((None, None), (stride, 1), (1, 1), (1, 1), (0, 0), 16, (), False)
    assert ops(kernel, A2, I32, facts=[facts, None]).count("muli") == times


@needs_tool
@pytest.mark.parametrize("stride, shown", [(2**31 - 1, "2147483647"), (2**31, "?"), (2**40, "?")])
def test_strides_of_2_to_the_31_and_more_are_no_constants(stride, shown):
    """The assembler multiplies them by sizes of tiles, and crashes if that overflows."""
    def kernel(a):
        ct.store(a, (0, 0), ct.load(a, (0, 0), (1, 8)))

    facts = ArrayFacts((None, None), (stride, 1), (1, 1), (1, 1), (0, 0), 16, (), False)
    assert f"strides=[{shown},1]>" in text(kernel, ArrayType(ct.float32, 2, ct.int64), facts=[facts])


@functools.cache
def program(dtype):
    form = only_bytes if dtype in (float4_e2m1fn, float8_e5m3fnu, float8_e8m0fnu) else every_form
    a, v = ArrayType(dtype, 1), ArrayType(dtype, 2, ct.int64)
    return typed(form, a, v, ListType(a), I32, I32)


def cases(kinds: list) -> list:
    """(target, kinds): each kind for one target in turn, all for all of them when there is time."""
    sample = [(t, kinds[i::len(TARGETS)]) for i, t in enumerate(TARGETS)]
    return [*sample, *(pytest.param(t, kinds, marks=pytest.mark.deep) for t in TARGETS)]


@needs_tool
@pytest.mark.parametrize(("target", "kinds"), cases(DTYPES))
def test_every_dtype(target, kinds):
    m, where = Module("13.4"), parse_target(target)
    for d in kinds:
        kernel = program(d)
        known = [usual(p.type) for p in kernel.params]
        if supports(where, d):
            module_of(kernel, known, target, symbol=d.name, module=m)
        else:
            with pytest.raises(ct.TileUnsupportedFeatureError, match=d.name):
                module_of(kernel, known, target, symbol=d.name)
    assert tileiras.assemble(m.to_bytes(), where, opt_level=0)


CAS = """
def kernel(a, v, i):
    k = ct.full((8,), 3, ct.int32)
    old = ct.atomic_cas(a, k, ct.full((8,), 1, dtype), dtype(2))
    ct.scatter(a, k, old)
    a.get_raw_memory().atomic_cas_offset(k, dtype(1), dtype(2), mask=k > 1, memory_order="RELAXED")
    ct.atomic_cas(v, (i, k), dtype(1), dtype(2), check_bounds=False, memory_scope="BLOCK")
"""
UPDATE = """
def kernel(a, v, i):
    k = ct.full((8,), 3, ct.int32)
    old = ct.atomic_KIND(a, k, ct.full((8,), 1, dtype))
    ct.scatter(a, k, old)
    a.get_raw_memory().atomic_KIND_offset(k, dtype(2), mask=k > 1, memory_order="RELAXED")
    ct.atomic_KIND(v, (i, 3), dtype(2), check_bounds=False, memory_order="RELEASE", memory_scope="SYS")
"""
TILES = """
def kernel(a, v, i):
    v.tiled_view((4, 8)).atomic_store_KIND((i, 0), dtype(1))
    a.tiled_view((4,), traversal_steps=(5,)).atomic_store_KIND(i, dtype(1))
"""


def atomic_programs(kind: str, dtype):
    for source in (CAS,) if kind == "cas" else (UPDATE,) if kind == "xchg" else (UPDATE, TILES):
        kernel = cell(source.replace("KIND", kind), dtype=dtype)["kernel"]
        yield typed(kernel, ArrayType(dtype, 1), ArrayType(dtype, 2), I32)


ATOMICS = [(kind, d) for kind, row in {**atomics.KINDS, "cas": atomics.CAS}.items() for d in row.dtypes]


@needs_tool
@pytest.mark.parametrize(("target", "kinds"), cases(ATOMICS))
def test_every_atomic(target, kinds):
    m, where = Module("13.4"), parse_target(target)
    for kind, d in kinds:
        for k, kernel in enumerate(atomic_programs(kind, d)):
            known = [usual(p.type) for p in kernel.params]
            if d is ct.bfloat16 and where.number < 90:
                with pytest.raises(ct.TileUnsupportedFeatureError, match="bfloat16"):
                    module_of(kernel, known, target, symbol="x")
            else:
                module_of(kernel, known, target, symbol=f"{kind}_{d.name}_{k}", module=m)
    assert tileiras.assemble(m.to_bytes(), where, opt_level=0)


@needs_tool
def test_indices_are_widened_before_they_are_broadcast():
    def kernel(a, i):
        k = i + ct.arange(16, dtype=ct.int32)
        ct.scatter(a, (k[:, None], k[None, :]), 0)

    made = module(kernel, ArrayType(ct.int32, 2), I32).contents.entries[0].block.ops
    shapes = {o.results[0].type.shape for o in made if o.spec.name in ("exti", "muli", "cmpi")}
    assert shapes == {(), (16, 1), (1, 16)}


def test_ranks():
    def kernel(a, b, c, n):
        ct.store(a, (), ct.load(a, (), ()) + 1)
        ct.scatter(a, (), ct.gather(a, ()))
        ct.atomic_add(a, (), 1)
        a.tiled_view(()).atomic_store_add((), 1)
        ct.store(b, (n, 0, 1), ct.load(b, (0, 1, n), (2, 1, 8), order=(2, 0, 1)))
        ct.store(c, (0, 0, 0, 0, 0, 0), ct.load(c, (n, n, n, n, n, n), (1, 2, 1, 2, 1, 2)))
        for k in range(len(c.shape)):
            ct.store(a, (), c.shape[0] + c.strides[1] * k)

    i = ct.int32
    for target in TARGETS:
        assemble(kernel, ArrayType(i, 0), A3, ArrayType(i, 6), I32, target=target)


@needs_tool
def test_paddings_and_orders_in_the_text():
    def kernel(a, n):
        x = ct.load(a, (n, 0), (4, 8), padding_mode=ct.PaddingMode.NEG_INF, order="F")
        ct.store(a, (0, n), x, memory_order="RELEASE", memory_scope="BLOCK")

    t = text(kernel, A2, I32)
    assert "padding_value = neg_inf" in t and "dim_map=[1, 0]" in t and "store_view_tko release tl_blk" in t


def test_bool_is_a_byte_in_memory():
    def kernel(a):
        ct.store(a, 0, ct.load(a, 1, 8))
        ct.scatter(a, 1, ct.gather(a, 3))

    found = ops(kernel, ArrayType(ct.bool_, 1))
    assert found.count("cmpi") == 4 and found.count("exti") >= 2  # two loads, two bounds; two stores and a padding
    t = module(kernel, ArrayType(ct.bool_, 1)).contents.entries[0].block.args[0].type
    assert str(t) == "tile<ptr<i8>>"


def test_what_needs_a_newer_version_is_refused_by_name():
    def bounds(a):
        ct.load(a, 0, 8, check_bounds=False, memory_order="ACQUIRE", memory_scope="SYS")

    def steps(a):
        w = a.tiled_view(8, traversal_steps=(3,))
        w.store(0, w.load(1))

    def rows(a):
        ct.store_advanced_indexing(a, (ct.full((4,), 1, ct.int32), ct.Slice(0, 2)), ct.full((4, 2), 0.0, ct.float32))

    def wait(a):
        ct.grid_dependency_control_wait()

    def tiles(a):
        a.tiled_view(8).atomic_store_add(0, 1.0)

    for kernel, a, version in ((bounds, A1, "13.3"), (steps, A1, "13.2"), (rows, A2, "13.2"), (wait, A1, "13.3"),
                               (tiles, A1, "13.2")):
        with pytest.raises(ct.TileUnsupportedFeatureError) as caught:
            module(kernel, a, version=version)
        assert caught.value.loc is not None and caught.value.loc.function == kernel.__name__
        module(kernel, a, version="13.4")


@pytest.mark.parametrize("version", ["13.1", "13.2", "13.3", "13.4"])
def test_plain_accesses_in_every_version(version):
    def kernel(a, v, n):
        x = ct.load(a, n, 8, padding_mode=ct.PaddingMode.ZERO)
        ct.scatter(v, (ct.full((8,), 1, ct.int32), n), x)
        ct.atomic_add(a, ct.full((8,), 1, ct.int32), x)
        ct.store(a, n, ct.gather(a, ct.full((8,), 1, ct.int32)))

    module(kernel, A1, A2, I32, version=version)


def test_every_op_on_memory_has_a_rule():
    import cutile.gpu.tileir.rules  # noqa: F401
    from cutile.gpu.tileir.rules._rule import RULES

    missing = [o.name for o in registry().values()
               if (o.effect in (READ, WRITE, ATOMIC) or o.family in ("views", "grid", "memory", "atomics"))
               and o not in RULES and o.operands and o.name not in ("printf",)]
    assert missing == []


@needs_tool
def test_grid():
    def kernel(a, n):
        k = ct.bid(0) + ct.num_blocks(2) * ct.num_tiles(a, 1, (4, 8), order="F")
        m = ct.assume_divisible_by(n, 24)
        w = a.tiled_view((4, 4), traversal_steps=(3, 5))
        ct.grid_dependency_control_wait()
        ct.store(a, (k, m), ct.load(a, (m, w.num_tiles(0)), (4, 4)))
        ct.grid_dependency_control_launch_dependents()

    t = text(kernel, A2, I32)
    assert "div_by<8>" in t and "rounding<positive_inf>" in t
    assemble(kernel, A2, I32)


@pytest.mark.parametrize(("dtype", "shape", "strides", "alone"), [
    (ct.float16, (2, 4, 4), (16, 4, 1), True), (ct.bfloat16, (2, 2, 2, 4), (16, 8, 4, 1), True),
    (ct.int8, (1, 2, 1, 8), (16, 8, 8, 1), True), (ct.float16, (2, 64, 4), (256, 4, 1), True),
    (ct.float16, (4, 4, 4), (16, 4, 1), False), (ct.float16, (2, 4, 8), (32, 8, 1), False),
    (ct.float32, (2, 4, 2), (8, 2, 1), False), (ct.float16, (2, 4, 4), ("n", 4, 1), False)])
def test_two_of_short_rows_are_taken_alone(dtype, shape, strides, alone):
    """docs/assembler-bugs.md, 9."""
    kernel = cell(f"""
def kernel(x, n):
    a = ct.Array.from_foreign(x.foreign_pointer, {shape}, ({', '.join(map(str, strides))}))
    ct.store(x, 0, ct.load(a, {(0,) * len(shape)}, {shape}).reshape(({prod(shape)},)))
""")["kernel"]
    assert ("reduce" in ops(kernel, ArrayType(dtype, 1), I32)) == alone


# ------------------------------------------------------------------ constant sizes and strides


def broadcast_rows(x, y):
    v = x.tiled_view((2, 8), traversal_steps=(1, 8), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, (0, 0), ct.load(x, (0, 0), (2, 8)) + v.load((1, 0)))


@pytest.mark.parametrize("strides, sizes", [
    ((0, 1), (None, None)), ((None, 0), (None, None)), ((0, 0), (None, None)), ((0, 1), (0, 8)), ((8, 1), (0, 8)),
    ((-8, 1), (0, None)), ((0, -1), (4, 0)), ((4, 1), (4, 4))])
def test_constants_of_views(strides, sizes):
    """Strides that Tile IR allows are part of a view's type; all others, and sizes, are constant operands of the view.

    Of a size in its type that tiles divide, the assembler checks no bounds (docs/assembler-bugs.md, 13).
    """
    t = ArrayType(ct.float32, 2, static_shape=sizes, static_strides=strides)
    made = module(broadcast_rows, t, A2, target="sm_100", facts=[nothing_known(t), usual(A2)])
    view = next(o for o in made.contents.entries[0].block.ops if o.spec.name == "make_tensor_view")

    kept = tuple(d if d is not None and d > 0 else None for d in strides)
    assert (view.results[0].type.shape, view.results[0].type.strides) == ((None, None), kept)


@needs_tool
@pytest.mark.parametrize("strides", [(0, 1), (None, 0), (0, 0), (-8, 0)])
@pytest.mark.parametrize("sizes", [(None, None), (0, 8), (0, 0)])
def test_constants_below_1_are_assembled(strides, sizes):
    t = ArrayType(ct.float32, 2, static_shape=sizes, static_strides=strides)
    for target in ("sm_90", "sm_100"):
        assert assemble(broadcast_rows, t, A2, target=target, facts=[nothing_known(t), usual(A2)])
