"""latency, allow_tma, check_bounds; memory_order and memory_scope."""

import itertools

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, needs, refuses
from conformance.harness.guarded_arrays import guarded, numbers, same

X = np.zeros(4, np.int32)
X2 = np.zeros((4, 4), np.int32)
NAMES = ("cas", "xchg", "add", "max", "min", "and", "or", "xor")


def i4():
    return ct.arange(4, dtype=ct.int32)


def rows():
    return i4(), ct.Slice(0, 4)


# Every op with such a parameter, as a function of the array of rank 2 and of one option.
LATENCY = {
    "load": lambda x, **o: ct.load(x, (0, 0), (4, 4), **o),
    "store": lambda x, **o: ct.store(x, (0, 0), ct.zeros((4, 4), ct.int32), **o),
    "load_advanced_indexing": lambda x, **o: ct.load_advanced_indexing(x, rows(), **o),
    "store_advanced_indexing": lambda x, **o: ct.store_advanced_indexing(x, rows(), ct.zeros((4, 4), ct.int32), **o),
    "gather": lambda x, **o: ct.gather(x, (0, i4()), **o),
    "scatter": lambda x, **o: ct.scatter(x, (0, i4()), 1, **o),
    "load_offset": lambda x, **o: x.get_raw_memory().load_offset(i4(), **o),
    "store_offset": lambda x, **o: x.get_raw_memory().store_offset(i4(), 1, **o),
    "view_load": lambda x, **o: x.tiled_view((4, 4)).load((0, 0), **o),
    "view_store": lambda x, **o: x.tiled_view((4, 4)).store((0, 0), 1, **o),
}
TMA = {n: LATENCY[n] for n in ("load", "store", "load_advanced_indexing", "store_advanced_indexing", "view_load",
                               "view_store")}
BOUNDS = {n: LATENCY[n] for n in ("load", "store", "gather", "scatter", "view_load", "view_store")} | {
    "atomic_add": lambda x, **o: ct.atomic_add(x, (0, i4()), 1, **o),
    "atomic_cas": lambda x, **o: ct.atomic_cas(x, (0, i4()), 1, 2, **o),
    "atomic_xchg": lambda x, **o: ct.atomic_xchg(x, (0, i4()), 1, **o),
}


@pytest.mark.parametrize("name", LATENCY)
@pytest.mark.parametrize("value, error", [
    *(pytest.param(v, None, marks=clause("HINT-1.range")) for v in (1, 2, 9, 10)),
    pytest.param(None, None, marks=clause("HINT-1.none")),
    *(pytest.param(v, "TileValueError", marks=clause("HINT-1.low")) for v in (0, -1)),
    *(pytest.param(v, "TileValueError", marks=clause("HINT-1.high")) for v in (11, 1000)),
    *(pytest.param(v, "TileTypeError", marks=clause("HINT-1.float")) for v in (1.0, "1")),
    pytest.param(True, "TileTypeError", marks=clause("HINT-1.bool"))])
def test_latency(name, value, error):
    call = LATENCY[name]

    @ct.kernel
    def k(x):
        call(x, latency=value)

    refuses(error, k, X2) if error else accepts(k, X2)


@pytest.mark.parametrize("name", TMA)
@pytest.mark.parametrize("value, error", [
    *(pytest.param(v, None, marks=clause("HINT-2.bool")) for v in (None, True, False)),
    *(pytest.param(v, "TileTypeError", marks=clause("HINT-2.kind")) for v in (1, 0, 1.0, "True"))])
def test_allow_tma(name, value, error):
    call = TMA[name]

    @ct.kernel
    def k(x):
        call(x, allow_tma=value)

    refuses(error, k, X2) if error else accepts(k, X2)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("value, error", [
    *(pytest.param(v, None, marks=clause("HINT-3.bool")) for v in (True, False)),
    *(pytest.param(v, "TileTypeError", marks=clause("HINT-3.kind")) for v in (None, 1, 0, 1.0, "False"))])
def test_check_bounds(name, value, error):
    call = BOUNDS[name]

    @ct.kernel
    def k(x):
        call(x, check_bounds=value)

    refuses(error, k, X2) if error else accepts(k, X2)


@pytest.mark.parametrize("option, table, value", [
    pytest.param("latency", LATENCY, 3, marks=clause("HINT-1.constant")),
    pytest.param("allow_tma", TMA, True, marks=clause("HINT-2.constant")),
    pytest.param("check_bounds", BOUNDS, True, marks=clause("HINT-3.constant"))])
def test_options_are_constants(option, table, value):
    for name in table:
        call = table[name]

        @ct.kernel
        def k(x, v):
            if option == "latency":
                call(x, latency=v)
            elif option == "allow_tma":
                call(x, allow_tma=v)
            else:
                call(x, check_bounds=v)

        refuses("TileTypeError", k, X2, value)


@clause("HINT-1.result", "HINT-2.result", "HINT-3.inside", "HINT-1.none")
@pytest.mark.parametrize("latency, tma, bounds", [(None, None, True), (1, False, True), (10, True, False)])
def test_options_change_nothing(latency, tma, bounds):
    @ct.kernel
    def k(x, y, out):
        t = ct.load(x, (0, 0), (4, 4), latency=latency, allow_tma=tma, check_bounds=bounds)
        ct.store(out, (0, 0, 0), t.reshape((1, 4, 4)), latency=latency, allow_tma=tma, check_bounds=bounds)
        v = x.tiled_view((4, 4)).load((0, 0), latency=latency, allow_tma=tma, check_bounds=bounds)
        ct.store(out, (1, 0, 0), v.reshape((1, 4, 4)))
        r = ct.load_advanced_indexing(x, rows(), latency=latency, allow_tma=tma)
        ct.store(out, (2, 0, 0), r.reshape((1, 4, 4)))
        g = ct.gather(x, (i4()[:, None], i4()), latency=latency, check_bounds=bounds)
        ct.scatter(out, (3, i4()[:, None], i4()), g, latency=latency, check_bounds=bounds)
        m = x.get_raw_memory().load_offset(ct.arange(16, dtype=ct.int32), latency=latency).reshape((4, 4))
        ct.store_advanced_indexing(y, rows(), m, latency=latency, allow_tma=tma)
        out.slice(0, 4, 5).get_raw_memory().store_offset(ct.arange(16, dtype=ct.int32), m.reshape((16,)),
            latency=latency)
        ct.atomic_add(out, (5, i4()[:, None], i4()), m, check_bounds=bounds)

    x, y, out = numbers((4, 4)), guarded(np.zeros((4, 4), np.int32)), guarded(np.zeros((6, 4, 4), np.int32))
    launch(k, x, y.array, out.array)
    out.check(np.broadcast_to(x, (6, 4, 4)))
    y.check(x)


@needs("safe memory")
@clause("HINT-3.outside")
def test_bounds_are_kept():
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.load(x, 1, 4, check_bounds=False, padding_mode=ct.PaddingMode.ZERO))
        ct.store(x, 1, ct.full((4,), 9, ct.int32), check_bounds=False)
        ct.store(out, 1, x.tiled_view(4).load(1, check_bounds=False))
        x.tiled_view(4).store(1, 8, check_bounds=False)

    x, out = guarded(numbers(6)), np.zeros(8, np.int32)
    launch(k, x.array, out)
    assert out.tolist() == [5, 6, 0, 0, 9, 9, 0, 0]
    x.check(np.array([1, 2, 3, 4, 8, 8], np.int32))


# ------------------------------------------------------------------ memory arguments

ORDERS = ("WEAK", "RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL")
SCOPES = ("NONE", "BLOCK", "CLUSTER", "DEVICE", "SYS")
ALLOWED = {"load": ("WEAK", "RELAXED", "ACQUIRE"), "store": ("WEAK", "RELAXED", "RELEASE"),
           "atomic": ("RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL")}
ATOMICS = {f"atomic_{n}": n for n in NAMES} | {f"atomic_{n}_offset": n for n in NAMES}


def atomic(name):
    kind, operands = ATOMICS[name], (1, 2) if ATOMICS[name] == "cas" else (1,)
    if name.endswith("_offset"):
        return lambda x, **o: getattr(x.get_raw_memory(), name)(0, *operands, **o)
    f = getattr(ct, f"atomic_{kind}")
    return lambda x, **o: f(x, 0, *operands, **o)


ORDERED = {"load": lambda x, **o: ct.load(x, 0, 4, **o), "store": lambda x, **o: ct.store(x, 0, 1, **o)} | {
    n: atomic(n) for n in ATOMICS}


def table(name):
    return {"load": "MEMARG-1", "store": "MEMARG-2"}.get(name, "MEMARG-3")


def _case(name, order, scope):
    ids = [f"{table(name)}.{order}"]
    if scope == "CLUSTER":
        ids.append("MEMARG-6.CLUSTER")
    if order == "WEAK" and scope != "NONE":
        ids.append("MEMARG-6.weak")
    if order != "WEAK" and scope == "NONE":
        ids.append("MEMARG-6.none")
    return pytest.param(name, order, scope, marks=clause(*ids))


@pytest.mark.parametrize("name, order, scope", [_case(*c) for c in itertools.product(ORDERED, ORDERS, SCOPES)])
def test_orders_and_scopes(name, order, scope):
    call, o, s = ORDERED[name], getattr(ct.MemoryOrder, order), getattr(ct.MemoryScope, scope)

    @ct.kernel
    def members(x):
        call(x, memory_order=o, memory_scope=s)

    @ct.kernel
    def names(x):
        call(x, memory_order=order, memory_scope=scope)

    good = order in ALLOWED.get(name, ALLOWED["atomic"]) and (
        scope == "NONE" if order == "WEAK" else scope in ("BLOCK", "DEVICE", "SYS"))
    for k in (members, names):
        accepts(k, X) if good else refuses("TileTypeError", k, X)


@pytest.mark.parametrize("name", [pytest.param(n, marks=clause(f"{table(n)}.default")) for n in ORDERED])
def test_defaults(name):
    call, ordered = ORDERED[name], name in ATOMICS

    @ct.kernel
    def neither(x):
        call(x)

    @ct.kernel
    def order(x):
        call(x, memory_order=ct.MemoryOrder.RELAXED if ordered else ct.MemoryOrder.WEAK)

    @ct.kernel
    def scope(x):
        call(x, memory_scope=ct.MemoryScope.SYS if ordered else ct.MemoryScope.NONE)

    @ct.kernel
    def other(x):
        call(x, memory_scope=ct.MemoryScope.NONE if ordered else ct.MemoryScope.DEVICE)

    for k in (neither, order, scope):
        accepts(k, X)
    refuses("TileTypeError", other, X)


@clause("MEMARG-6.scope")
@pytest.mark.parametrize("name, order", [("load", "RELAXED"), ("load", "ACQUIRE"), ("store", "RELAXED"),
    ("store", "RELEASE")])
def test_an_order_needs_a_scope(name, order):
    call = ORDERED[name]

    @ct.kernel
    def k(x):
        call(x, memory_order=order)

    refuses("TileTypeError", k, X)


@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("value", [
    pytest.param(None, marks=clause("MEMARG-6.null")), pytest.param(0, marks=clause("MEMARG-6.kind")),
    pytest.param("relaxed", marks=clause("MEMARG-6.kind")), pytest.param("device", marks=clause("MEMARG-6.kind")),
    pytest.param(ct.PaddingMode.ZERO, marks=clause("MEMARG-6.kind"))])
def test_what_is_no_order_and_no_scope(name, value):
    call, good = ORDERED[name], "RELAXED"

    @ct.kernel
    def order(x):
        call(x, memory_order=value, memory_scope="DEVICE")

    @ct.kernel
    def scope(x):
        call(x, memory_order=good, memory_scope=value)

    refuses("TileTypeError", order, X)
    refuses("TileTypeError", scope, X)


@clause("MEMARG-5")
@pytest.mark.parametrize("name", [n for n in LATENCY if n not in ("load", "store")])
def test_ops_without_order_and_scope(name):
    call = LATENCY[name]

    @ct.kernel
    def order(x):
        call(x, memory_order=ct.MemoryOrder.WEAK)

    @ct.kernel
    def scope(x):
        call(x, memory_scope=ct.MemoryScope.NONE)

    refuses("TileTypeError", order, X2)
    refuses("TileTypeError", scope, X2)


@clause("MEMARG-4")
@pytest.mark.parametrize("kind", ["add", "max", "min", "and", "or", "xor"])
def test_atomic_stores_of_views_have_none(kind):
    @ct.kernel
    def order(x):
        getattr(x.tiled_view(4), "atomic_store_" + kind)(0, ct.full((4,), 1, ct.int32), memory_order="RELAXED")

    @ct.kernel
    def scope(x):
        getattr(x.tiled_view(4), "atomic_store_" + kind)(0, ct.full((4,), 1, ct.int32), memory_scope="DEVICE")

    refuses("TileTypeError", order, X)
    refuses("TileTypeError", scope, X)


@clause("MEMARG-1.ACQUIRE", "MEMARG-2.RELEASE", "MEMARG-3.ACQ_REL")
@pytest.mark.parametrize("scope", ["BLOCK", "DEVICE", "SYS"])
def test_ordered_accesses_do_what_plain_ones_do(scope):
    @ct.kernel
    def k(x, out):
        t = ct.load(x, ct.bid(0), 4, memory_order="ACQUIRE", memory_scope=scope)
        u = ct.load(x, ct.bid(0), 4, memory_order="RELAXED", memory_scope=scope)
        ct.store(out, ct.bid(0), t + u, memory_order="RELEASE", memory_scope=scope)
        ct.atomic_add(out, ct.bid(0) * 4, 100, memory_order="ACQ_REL", memory_scope=scope)

    out = np.zeros(8, np.int32)
    launch(k, numbers(8), out, grid=(2,))
    same(out, np.array([102, 4, 6, 8, 110, 12, 14, 16], np.int32))
