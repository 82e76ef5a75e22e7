"""ct.atomic_*, by index."""

from functools import reduce

import ml_dtypes
import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, needs, refuses, run
from conformance.harness.dtype_names import DTYPES, NUMPY
from conformance.harness.guarded_arrays import guarded, layouts, numbers, same
from conformance.harness.index_maps import GRID, blocks, looks

BITS = {"i32": 32, "u32": 32, "i64": 64, "u64": 64}
INTS = tuple(BITS)
ALL = (*INTS, "f32", "f64", "f16", "bf16")
HAS = {"cas": (*INTS, "f32", "f64"), "xchg": (*INTS, "f32", "f64"), "add": ALL, "max": INTS, "min": INTS, "and": INTS,
       "or": INTS, "xor": INTS}
KINDS = tuple(k for k in HAS if k != "cas")
OPS = {k: getattr(ct, f"atomic_{k}") for k in HAS}


def wrap(d, v):
    """An integer wrapped to a dtype."""
    v &= (1 << BITS[d]) - 1
    return v - (1 << BITS[d]) if d[0] == "i" and v >> (BITS[d] - 1) else v


def update(kind, d, x, u):
    """The value of an element after an update, in Python numbers."""
    if kind == "cas":
        return u[1] if x == u[0] else x
    if kind == "add":
        return wrap(d, x + u) if d in BITS else x + u
    return {"xchg": lambda: u, "max": lambda: max(x, u), "min": lambda: min(x, u), "and": lambda: x & u,
            "or": lambda: x | u, "xor": lambda: x ^ u}[kind]()


def valid(kind, d, x, updates, final):
    """Whether some order of `updates`, each (operand, value seen before it), leads from x to final."""
    tried = set()

    def go(x, left):
        if not left:
            return x == final
        if (x, left) in tried:
            return False
        tried.add((x, left))
        return any(updates[i][1] == x and go(update(kind, d, x, updates[i][0]), left - {i}) for i in left)

    return go(x, frozenset(range(len(updates))))


def groups(array, lanes):
    """Lanes (position, operand, old) by position; lanes out of range are under None."""
    found = {}
    for at, u, old in lanes:
        inside = all(0 <= i < n for i, n in zip(at, array.shape))
        found.setdefault(tuple(map(int, at)) if inside else None, []).append((u, old))
    return found


def judge(kind, d, before, g, lanes):
    """Assert that every element went through its updates in some order, and all others are unchanged."""
    found = groups(before, lanes)
    outside = found.pop(None, [])
    g.check(g.array)
    for at in np.ndindex(before.shape):
        x, y = before[at].item(), g.array[at].item()
        assert valid(kind, d, x, found.get(at, []), y), f"at {at}: from {x} to {y} by {found.get(at)}"
    return outside


def extremes(d):
    if d not in BITS:
        return [0.0, 1.0, -2.0, 5.5, -0.5, 8.0, 3.0, -7.0]
    low, high = (0, (1 << BITS[d]) - 1) if d[0] == "u" else (-(1 << BITS[d] - 1), (1 << BITS[d] - 1) - 1)
    return [low, high, high // 3, 1, high - 1, 6, low + 5, 0]


def test_the_judge_itself():
    assert valid("add", "i32", 1, [(2, 1), (5, 3)], 8) and not valid("add", "i32", 1, [(2, 1), (5, 1)], 8)
    assert not valid("add", "i32", 1, [(2, 1), (5, 3)], 7)


@pytest.mark.parametrize("kind, d", [
    pytest.param(k, d, marks=clause(f"ATOM-2.{k}.{d}", f"ATOM-1.{k}.type", f"ATOM-1.{k}.old", f"ATOM-4.{k}",
                                    f"ATOM-4.{k}.order", "MEM-3", *(["ATOM-4.int"] if k == "add" and d in BITS else []),
                                    *([f"ATOM-2.{k}.sign"] if k in ("max", "min") else [])))
    for k in KINDS for d in HAS[k]])
@pytest.mark.parametrize("layout", ["contiguous", "gaps"])
def test_updates(kind, d, layout):
    f, n = OPS[kind], 16

    @ct.kernel
    def k(i, j, u, x, y, out):
        b = ct.bid(0)
        t = f(x, (ct.load(i, b, n), ct.load(j, b, n)), ct.load(u, b, n))
        ct.static_assert(t.dtype == x.dtype and t.shape == (n,))
        f(y, (ct.load(i, b, n), ct.load(j, b, n)), ct.load(u, b, n))  # nobody uses the values before
        ct.store(out, b, t)

    rng = np.random.default_rng(len(kind) + len(d))
    i, j = rng.integers(-1, 4, 3 * n).astype(np.int32), rng.integers(0, 6, 3 * n).astype(np.int32)
    values = np.array(extremes(d), NUMPY[d])
    u = values[rng.integers(0, len(values), 3 * n)]
    before = values[rng.integers(0, len(values), (3, 5))]
    x, y, out = guarded(before, layout), guarded(before, layout), np.full(3 * n, 77).astype(NUMPY[d])
    launch(k, i, j, u, x.array, y.array, out, grid=(3,))
    lanes = [((i[k], j[k]), u[k].item(), out[k].item()) for k in range(3 * n)]
    judge(kind, d, before, x, lanes)
    if kind != "xchg":
        want = before.copy()
        for at, many in groups(before, lanes).items():
            if at is not None:
                want[at] = reduce(lambda x, v: update(kind, d, x, v[0]), many, before[at].item())
        y.check(want)
    else:
        y.check(y.array)
        for at, many in groups(before, lanes).items():
            assert at is None or y.array[at].item() in [v for v, _ in many]


@pytest.mark.parametrize("kind, d", [
    pytest.param(k, d, marks=clause(f"ATOM-2.{k}.{d}" if d in ALL else f"ATOM-2.{k}.others"))
    for k in HAS for d in NUMPY if d not in HAS[k]])
def test_dtypes_that_have_it_not(kind, d):
    f, dtype = OPS[kind], DTYPES[d]

    @ct.kernel
    def k(x):
        u = ct.full((), 1, dtype)
        if kind == "cas":
            f(x, 0, u, u)
        else:
            f(x, 0, u)

    refuses(("TileTypeError", "TileUnsupportedFeatureError") if d in ("e8m0", "e2m1") else "TileTypeError", k,
            np.ones(4).astype(NUMPY[d]))


@pytest.mark.parametrize("d", [pytest.param(d, marks=clause(f"ATOM-2.cas.{d}")) for d in HAS["cas"]])
@pytest.mark.parametrize("layout", ["contiguous", "gaps"])
@clause("ATOM-1.cas.type", "ATOM-1.cas.old", "ATOM-4.cas", "ATOM-5.swap", "ATOM-5.old", "ATOM-6.cas")
def test_compare_and_swap(d, layout):
    n = 16

    @ct.kernel
    def k(i, e, u, x, y, out):
        b = ct.bid(0)
        t = ct.atomic_cas(x, ct.load(i, b, n), ct.load(e, b, n), ct.load(u, b, n))
        ct.static_assert(t.dtype == x.dtype and t.shape == (n,))
        ct.atomic_cas(y, ct.load(i, b, n), ct.load(e, b, n), ct.load(u, b, n))
        ct.store(out, b, t)

    rng = np.random.default_rng(5)
    i = rng.integers(-1, 14, 3 * n).astype(np.int64)
    i[i == 13] = 1 << 33
    values = np.array(extremes(d)[:3], NUMPY[d])
    e, u = values[rng.integers(0, 3, 3 * n)], values[rng.integers(0, 3, 3 * n)]
    before = values[rng.integers(0, 3, 12)]
    x, y, out = guarded(before, layout), guarded(before, layout), np.full(3 * n, 77).astype(NUMPY[d])
    launch(k, i, e, u, x.array, y.array, out, grid=(3,))
    lanes = [((i[k],), (e[k].item(), u[k].item()), out[k].item()) for k in range(3 * n)]
    outside = judge("cas", d, before, x, lanes)
    assert outside and all(old == operand[0] for operand, old in outside)
    for at, many in groups(before, lanes).items():
        if at is not None and len(many) == 1:
            assert y.array[at].item() == update("cas", d, before[at].item(), many[0][0])
    y.check(y.array)


@clause("ATOM-5.zero", "ATOM-5.nan", "ATOM-5.old")
@pytest.mark.parametrize("d, code, nans", [
    (np.float32, np.uint32, (0x7FC00000, 0x7FC00001, 0xFFC00000)),
    (np.float64, np.uint64, (0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000))])
def test_floats_are_compared_by_their_bits(d, code, nans):
    @ct.kernel
    def k(x, e, out):
        ct.store(out, 0, ct.atomic_cas(x, ct.arange(8, dtype=ct.int32), ct.load(e, 0, 8), 5.0))

    a, b, c = (np.array(v, code).view(d) for v in nans)
    x = np.array([0.0, -0.0, 0.0, -0.0, a, a, b, c], d)
    e = np.array([-0.0, 0.0, 0.0, -0.0, a, b, b, a], d)
    before, out = x.copy(), np.zeros(8, d)
    launch(k, x, e, out)
    same(out, before)
    swapped = [False, False, True, True, True, False, True, False]
    same(x, np.where(swapped, d(5), before))


@clause("ATOM-4.float", "ATOM-4.f16", "ATOM-4.bf16")
@pytest.mark.parametrize("d, big", [(np.float16, 2048), (ml_dtypes.bfloat16, 256), (np.float32, 1 << 24),
                                    (np.float64, 1 << 53)])
@pytest.mark.parametrize("old", [True, False], ids=["old", "alone"])
def test_every_float_addition_is_rounded(d, big, old):
    """big + 1 is a tie and stays big; big + 2 + 1 is a tie and becomes big + 4."""
    @ct.kernel
    def k(x, out):
        ones = ct.full((4,), 1, ct.int8).astype(x.dtype)
        zeros = ct.zeros((4,), ct.int32)
        t = ct.atomic_add(x, zeros, ones)
        ct.atomic_add(x, 1, 2)
        ct.atomic_add(x, 1, 1)
        if old:
            ct.store(out, 0, t)

    x, out = np.array([big, big, 7]).astype(d), np.zeros(4).astype(d)
    launch(k, x, out)
    assert x.astype(float).tolist() == [big, big + 4, 7]
    if old:
        assert out.astype(float).tolist() == [big] * 4


@clause("ATOM-4.float")
def test_float_additions_of_blocks():
    @ct.kernel
    def k(x, y):
        ct.atomic_add(x, 0, 0.5)
        ct.atomic_add(y, ct.bid(0) % 3, ct.bid(0).astype(ct.float32))

    x, y = np.zeros(1, np.float32), np.zeros(4, np.float32)
    launch(k, x, y, grid=(50,))
    assert x[0] == 25 and y.tolist() == [sum(range(m, 50, 3)) for m in range(3)] + [0]


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"ATOM-1.{k}.old", f"ATOM-4.{k}.order")) for k in KINDS])
@looks
def test_lanes_of_blocks(kind, look):
    f = OPS[kind]

    @ct.kernel
    def k(x, out):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        i, j, m = look(a, b, c)
        u = ct.arange(2, dtype=ct.int32)
        t = f(x, (i + u[:, None] - 1, j * 2 - u[None, :], m), a * 8 + b * 4 + c * 2 + u)
        if a != b:
            f(x, (i, j, m), 3)
        ct.store(out, (a, b, c, 0, 0), t.reshape((1, 1, 1, 2, 2)))

    @ct.kernel
    def lone(x, out):
        a, b, c = ct.bid(0), ct.bid(1), ct.bid(2)
        if a != b:
            i, j, m = look(a, b, c)
            ct.store(out, (a, b, c, 0, 0), f(x, (i, j, m), a * 8 + b * 4 + c * 2 + 1).reshape((1, 1, 1, 1, 1)))

    x, out = guarded(numbers((3, 4, 2)) * 5), np.full((*GRID, 1, 1), -1, np.int32)
    launch(lone, x.array, out, grid=GRID)
    judge(kind, "i32", numbers((3, 4, 2)) * 5, x, [
        (look(a, b, c), a * 8 + b * 4 + c * 2 + 1, out[a, b, c, 0, 0].item()) for a, b, c in blocks() if a != b])
    if kind in ("add", "max", "or", "xor", "and", "min"):  # these end alike in every order
        x, out = guarded(numbers((3, 4, 2)) * 5), np.zeros((*GRID, 2, 2), np.int32)
        want = x.array.copy()
        launch(k, x.array, out, grid=GRID)
        for a, b, c in blocks():
            i, j, m = look(a, b, c)
            for at, v in [*(((i + p - 1, j * 2 - q, m), a * 8 + b * 4 + c * 2 + q) for p, q in np.ndindex(2, 2)),
                          *([((i, j, m), 3)] if a != b else [])]:
                if all(0 <= p < n for p, n in zip(at, want.shape)):
                    want[at] = update(kind, "i32", want[at].item(), v)
        x.check(want)


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"ATOM-6.{k}")) for k in KINDS])
@layouts
def test_lanes_out_of_range(kind, layout):
    f = OPS[kind]

    @ct.kernel
    def k(x, y, z):
        i = ct.arange(16, dtype=ct.int32) - 4
        f(x, i, 3)
        f(y, (0, i), 3)
        f(z, (1, i + 100), 3)

    def after(v):
        return update(kind, "i32", v, 3)

    x, y, z = guarded(numbers(5), layout), guarded(numbers((2, 4)), layout), guarded(numbers((2, 3)), layout)
    launch(k, x.array, y.array, z.array)
    x.check(np.array([after(v) for v in range(1, 6)], np.int32))
    y.check(np.array([[after(v) for v in range(1, 5)], [5, 6, 7, 8]], np.int32))
    z.check(numbers((2, 3)))


@needs("safe memory")
@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"ATOM-6.{k}", f"ATOM-7.{k}", "HINT-3.outside"))
                                  for k in HAS])
@pytest.mark.parametrize("bounds", [True, False])
def test_what_lanes_out_of_range_give(kind, bounds):
    f = OPS[kind]

    @ct.kernel
    def k(x, out):
        i = ct.arange(4, dtype=ct.int32) * 3 - 3
        if kind == "cas":
            t = f(x, i, 9, 4, check_bounds=bounds)
        else:
            t = f(x, i, 4, check_bounds=bounds)
        ct.store(out, 0, t)

    g = guarded(numbers(4))
    out = run(k, g.array, np.full(4, -7, np.int32))
    missing = 9 if kind == "cas" else 0
    assert out.tolist() == [missing, 1, 4, missing]
    want = numbers(4)
    if kind != "cas":
        want[0], want[3] = update(kind, "i32", 1, 4), update(kind, "i32", 4, 4)
    g.check(want)


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"ATOM-3.{k}.broadcast")) for k in HAS])
def test_operands_broadcast(kind):
    f = OPS[kind]

    def act(x, i, u):
        return f(x, i, u, u + 1) if kind == "cas" else f(x, i, u)

    @ct.kernel
    def k(x, out):
        r, c = ct.arange(2, dtype=ct.int32), ct.arange(4, dtype=ct.int32)
        t = act(x, (r[:, None], c), c + 1)
        ct.static_assert(t.shape == (2, 4))
        ct.store(out, (0, 0), t)
        s = act(x, (2, 0), 5)
        ct.static_assert(s.shape == ())
        act(x, (3, c), ct.bid(0) + 7)

    @ct.kernel
    def bad(x, size):
        act(x, (0, ct.arange(4, dtype=ct.int32)), ct.zeros((2,), ct.int32))

    @ct.kernel
    def more(x):
        act(x, (0, 0), ct.zeros((1,), ct.int32))

    def after(v, u):
        return update(kind, "i32", v, (u, u + 1) if kind == "cas" else u)

    x, out = guarded(numbers((4, 4)), "gaps"), np.zeros((2, 4), np.int32)
    want = numbers((4, 4))
    for r, c in np.ndindex(2, 4):
        want[r, c] = after(want[r, c].item(), c + 1)
    want[2, 0] = after(9, 5)
    want[3] = [after(v, 7) for v in range(13, 17)]
    launch(k, x.array, out)
    x.check(want)
    same(out, numbers((4, 4))[:2])
    refuses("TileTypeError", bad, x.array, 1)
    refuses("TileTypeError", more, x.array)


@pytest.mark.parametrize("kind, d, value, error", [
    *(pytest.param(k, d, v, e, marks=clause(f"ATOM-3.{k}.cast")) for k in ("xchg", "add", "cas") for d, v, e in [
        ("f32", lambda: 1, None), ("f32", lambda: 1.5, None), ("f32", lambda: ct.int64(1), None),
        ("f32", lambda: ct.float16(1), None), ("f32", lambda: ct.float64(1), "TileTypeError"),
        ("i32", lambda: ct.int8(1), None), ("i32", lambda: True, None), ("i32", lambda: 1.5, "TileTypeError"),
        ("i32", lambda: ct.int64(1), "TileTypeError"), ("u32", lambda: -1, "TileValueError"),
        ("u32", lambda: ct.int32(1), "TileTypeError"), ("i32", lambda: None, "TileTypeError")]),
    *(pytest.param("add", d, v, e, marks=clause("ATOM-3.add.cast")) for d, v, e in [
        ("f16", lambda: 1.5, None), ("f16", lambda: ct.float32(1), "TileTypeError"), ("bf16", lambda: 1, None)]),
    *(pytest.param(k, d, v, e, marks=clause(f"ATOM-3.{k}.cast")) for k in ("max", "min") for d, v, e in [
        ("i32", lambda: ct.int8(1), None), ("i64", lambda: 1, None), ("u64", lambda: -1, "TileValueError"),
        ("i32", lambda: ct.int64(1), "TileTypeError"), ("u32", lambda: ct.bid(0), "TileTypeError")]),
    *(pytest.param(k, d, v, e, marks=clause(f"ATOM-3.{k}.exact", f"ATOM-3.{k}.cast")) for k in ("and", "or", "xor")
      for d, v, e in [
        ("i32", lambda: ct.int32(1), None), ("i64", lambda: ct.int64(1), None), ("u32", lambda: ct.uint32(1), None),
        ("u64", lambda: ct.uint64(1), None), ("i32", lambda: ct.int8(1), "TileTypeError"),
        ("i64", lambda: ct.bid(0), "TileTypeError"), ("i32", lambda: True, "TileTypeError")]),
    *(pytest.param(k, d, v, e, marks=clause(f"ATOM-3.{k}.literal")) for k in ("and", "or", "xor") for d, v, e in [
        ("i32", lambda: 1, None), ("i64", lambda: 1, "TileTypeError"), ("u32", lambda: 1, "TileTypeError"),
        ("i64", lambda: 1 << 40, None), ("u64", lambda: 1, "TileTypeError")]),
])
def test_casts_of_operands(kind, d, value, error):
    f = OPS[kind]

    @ct.kernel
    def k(x):
        if kind == "cas":
            f(x, 0, 0, value())
        else:
            f(x, 0, value())

    @ct.kernel
    def other(x):
        if kind == "cas":
            f(x, 0, value(), 0)

    x = np.zeros(2, NUMPY[d])
    if error:
        refuses(error, k, x)
        if kind == "cas":
            refuses(error, other, x)
    else:
        launch(k, x)
        launch(other, x)
        assert x[1] == 0


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"ATOM-1.{k}.options", f"ATOM-1.{k}.type"))
                                  for k in HAS])
@pytest.mark.parametrize("call", [
    lambda f, x, u: f(x, 0, *u, mask=True), lambda f, x, u: f(x, 0, *u, latency=1), lambda f, x, u: f(x, (0, 0), *u),
    lambda f, x, u: f(x, 0.0, *u), lambda f, x, u: f(x, True, *u), lambda f, x, u: f(x, None, *u),
    lambda f, x, u: f(x, 0), lambda f, x, u: f(x, 0, *u, 1), lambda f, x, u: f(ct.zeros((4,), ct.int32), 0, *u),
    lambda f, x, u: f(x, 0, *u, check_bounds=1), lambda f, x, u: f(x, (ct.zeros((2,), ct.int32), 0), *u)])
def test_bad_calls(kind, call):
    f, operands = OPS[kind], (1, 2) if kind == "cas" else (1,)

    @ct.kernel
    def k(x):
        call(f, x, operands)

    refuses("TileTypeError", k, np.zeros(4, np.int32))


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"ATOM-4.{k}", f"ATOM-1.{k}.old")) for k in HAS])
def test_an_array_of_rank_0(kind):
    f = OPS[kind]

    @ct.kernel
    def k(x, out, y):
        u = (ct.bid(0) + 5, ct.bid(0) + 6) if kind == "cas" else (ct.bid(0) + 5,)
        ct.store(out, ct.bid(0), f(x, (), *u))
        f(y, (), *u)

    x, y, out = guarded(np.array(5, np.int32)), guarded(np.array(5, np.int32)), np.zeros(4, np.int32)
    launch(k, x.array, out, y.array, grid=(4,))
    operands = [(b + 5, b + 6) if kind == "cas" else b + 5 for b in range(4)]
    assert valid(kind, "i32", 5, list(zip(operands, out.tolist())), x.array.item())
    if kind not in ("cas", "xchg"):
        y.check(x.array)


@pytest.mark.parametrize("d", INTS)
@clause("ATOM-4.add", "ATOM-4.int")
def test_a_counter(d):
    """Each of many additions sees a different value, and none is lost."""
    dtype = DTYPES[d]

    @ct.kernel
    def k(x, out):
        b = ct.bid(0)
        ct.store(out, b, ct.atomic_add(x, ct.zeros((16,), ct.int32), ct.full((16,), 1, dtype)))
        ct.atomic_add(x, 1, 2)

    x, out = np.zeros(2, NUMPY[d]), np.zeros(320, NUMPY[d])
    launch(k, x, out, grid=(20,))
    assert x.tolist() == [320, 40] and sorted(out.tolist()) == list(range(320))


@pytest.mark.parametrize("d", INTS)
@pytest.mark.parametrize("shape", [(), (64,)])
@pytest.mark.parametrize("least, most", [(0, 4), (-1, 4), (0, 5)])
@clause("ATOM-4.add", "ATOM-4.int", "ATOM-6.add")
def test_a_histogram(d, least, most, shape):
    """Many more additions than elements, with unused results; the sums wrap."""
    @ct.kernel
    def k(i, x):
        ct.atomic_add(x, ct.load(i, ct.bid(0), shape), 3)

    i = np.random.default_rng(5).integers(least, most + 1, 256).astype(np.int32)
    x = np.array([0, 1, 2, 100, np.iinfo(NUMPY[d]).max], NUMPY[d])
    want = x + (3 * np.array([(i == j).sum() for j in range(5)])).astype(NUMPY[d])
    assert run(k, i, x, grid=(4 if shape else 256,)).tolist() == want.tolist()


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"ATOM-1.{k}.old", f"ATOM-4.{k}.order"))
                                  for k in ("max", "min", "and", "or", "xor", "add")])
def test_many_updates_of_one_element(kind):
    """The values seen before are sums of some of the updates, and never decrease."""
    f = OPS[kind]

    @ct.kernel
    def k(u, x, out):
        b = ct.bid(0)
        ct.store(out, b, f(x, ct.zeros((64,), ct.int32), ct.load(u, b, 64)))

    # With this many bits, no value occurs twice, in whatever order the updates come.
    u = np.random.default_rng(3).integers(0, 1 << (54 if kind in ("xor", "add") else 20), 256)
    x, out = np.array([1 << 10, 5]), np.zeros(256, np.int64)
    launch(k, u, x, out, grid=(4,))
    final = reduce(lambda v, w: update(kind, "i64", v, int(w)), u, 1 << 10)
    assert x.tolist() == [final, 5]
    seen = sorted(zip(out.tolist(), u.tolist()), reverse=kind in ("min", "and"))
    if kind in ("xor", "add"):  # a chain: each value seen leads to the next one
        left = dict(zip(out.tolist(), u.tolist()))
        now, steps = 1 << 10, 0
        while now in left:
            now, steps = update(kind, "i64", now, left.pop(now)), steps + 1
        assert now == final and steps == 256
        return
    now = 1 << 10
    for old, values in [(o, [v for p, v in seen if p == o]) for o in dict.fromkeys(o for o, _ in seen)]:
        assert old == now
        changing = {update(kind, "i64", now, v) for v in values} - {now}
        assert len(changing) <= 1  # of those that saw one value, at most one changed it
        now = changing.pop() if changing else now
    assert now == final
