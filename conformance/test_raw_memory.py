"""array.get_raw_memory() and its methods."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, needs, refuses, run
from conformance.harness.dtype_names import DTYPES, NUMPY
from conformance.harness.guarded_arrays import guarded, numbers, same, sample
from conformance.harness.type_probes import on_target
from conformance.test_atomics import HAS, update, valid

INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
X1 = np.zeros(8, np.int32)


@clause("RAW-1.element", "RAW-1.type", "RAW-1.bounds")
def test_offsets_count_elements():
    @ct.kernel
    def k(x, i, out):
        raw = x.get_raw_memory()
        b = ct.bid(0)
        t = raw.load_offset(ct.load(i, (b, 0), (2, 4)))
        ct.static_assert(t.dtype == x.dtype and t.shape == (2, 4))
        s = raw.load_offset(b)
        ct.static_assert(s.shape == ())
        ct.store(out, (b, 0, 0), (t * 100 + s).reshape((1, 2, 4)))

    for dtype in (np.int64, np.int16):
        x = numbers((3, 4), dtype)
        i = np.random.default_rng(0).integers(0, 12, (4, 4)).astype(np.int32)
        out = run(k, x, i, np.zeros((2, 2, 4), dtype), grid=(2,))
        for b, r, c in np.ndindex(2, 2, 4):
            assert out[b, r, c] == (i[2 * b + r, c] + 1) * 100 + b + 1


@clause("RAW-1.element", "RAW-2.element", "RAW-1.bounds")
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "gaps"])
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
def test_every_element_of_a_layout(layout, diverge):
    """An offset is the sum of position times stride, counted in elements."""
    def body(x, y, b):
        u, v, w = ct.arange(4, dtype=ct.int32)[:, None, None], ct.arange(2, dtype=ct.int32)[:, None], b
        at = u * x.strides[0] + v * x.strides[1] + w * x.strides[2]
        to = (3 - u) * y.strides[0] + (1 - v) * y.strides[1] + (2 - w) * y.strides[2]
        y.get_raw_memory().store_offset(to, x.get_raw_memory().load_offset(at))

    def whole(x, y):
        body(x, y, ct.bid(0))

    def some(x, y):
        b = ct.bid(0)
        if b < 3:
            body(x, y, b)

    x, y = guarded(numbers((4, 2, 3), np.int16), layout), guarded(np.zeros((4, 2, 3), np.int16), layout)
    launch(ct.kernel(some if diverge else whole), x.array, y.array, grid=(5 if diverge else 3,))
    x.check(numbers((4, 2, 3), np.int16))
    y.check(numbers((4, 2, 3), np.int16)[::-1, ::-1, ::-1])


@needs("negative strides")
@clause("RAW-1.element", "RAW-2.element")
@pytest.mark.parametrize("layout", ["reversed", "mixed"])
def test_layouts_with_negative_strides(layout):
    test_every_element_of_a_layout(layout, False)


@clause("RAW-1.element", "RAW-2.element")
def test_an_array_whose_elements_coincide():
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, x.get_raw_memory().load_offset(ct.arange(4, dtype=ct.int32)))

    same(run(k, np.broadcast_to(numbers(4), (3, 4)), np.zeros(4, np.int32)), numbers(4))
    same(run(k, np.lib.stride_tricks.sliding_window_view(numbers(6), 3), np.zeros(4, np.int32)), numbers(4))


@needs("safe memory")
@clause("RAW-1.foreign")
def test_memory_beside_elements_that_coincide():
    @ct.kernel
    def k(x, out):
        i = ct.arange(16, dtype=ct.int32) - 5
        ct.store(out, 0, x.get_raw_memory().load_offset(i, padding_value=-1))

    windows = np.lib.stride_tricks.sliding_window_view(numbers(12)[2:], 3)[:, ::2]  # elements 0 … 9, two apart
    out = run(k, windows[::3], np.zeros(16, np.int32))
    own = {0, 2, 3, 5, 6, 8}
    assert out.tolist() == [i + 3 if i in own else -1 for i in range(-5, 11)]
    windows = np.lib.stride_tricks.sliding_window_view(numbers(12)[2::2], 3)  # elements 0, 2, 4, 6 and 8
    assert run(k, windows, np.zeros(16, np.int32)).tolist() == [
        i + 3 if i in range(0, 10, 2) else -1 for i in range(-5, 11)]


@clause("RAW-1.offset", "RAW-5.unsigned", "RAW-2.element")
@pytest.mark.parametrize("d", INTEGERS)
def test_offsets_of_every_dtype(d):
    dtype = DTYPES[d]

    @ct.kernel
    def k(x, y):
        u = ct.arange(8, dtype=ct.int32).astype(dtype)
        y.get_raw_memory().store_offset((7 - ct.arange(8, dtype=ct.int32)).astype(dtype),
            x.get_raw_memory().load_offset(u))

    same(run(k, numbers(8), np.zeros(8, np.int32)), numbers(8)[::-1])


@clause("RAW-5.unsigned")
def test_large_unsigned_offsets():
    @ct.kernel
    def k(x, out):
        i = (ct.arange(4, dtype=ct.int32) + 200).astype(ct.uint8)
        j = (ct.arange(4, dtype=ct.int32) + 40000).astype(ct.uint16)
        ct.store(out, 0, x.get_raw_memory().load_offset(i))
        ct.store(out, 1, x.get_raw_memory().load_offset(j))

    same(run(k, numbers(50000), np.zeros(8, np.int32)), np.array([201, 202, 203, 204, 40001, 40002, 40003, 40004],
        np.int32))


@clause("RAW-5.sign", "RAW-1.bounds")
@pytest.mark.parametrize("d", ["i8", "i16", "i32", "i64"])
def test_negative_offsets(d):
    dtype = DTYPES[d]

    @ct.kernel
    def k(x, out):
        raw = x.slice(0, ct.bid(0) + 4, ct.bid(0) + 5).get_raw_memory()
        i = (0 - ct.arange(4, dtype=ct.int32)).astype(dtype)
        ct.store(out, (ct.bid(0), 0), raw.load_offset(i).reshape((1, 4)))
        raw.store_offset((ct.bid(0) - 4).astype(dtype), 50 + ct.bid(0))

    x, out = guarded(numbers(8)), np.zeros((3, 4), np.int32)
    launch(k, x.array, out, grid=(1,))
    assert out[0].tolist() == [5, 4, 3, 2]
    x.check(np.array([50, 2, 3, 4, 5, 6, 7, 8], np.int32))
    launch(k, guarded(numbers(8)).array, out, grid=(3,))
    assert out[1].tolist()[:2] == [6, 5] and out[2].tolist()[:2] == [7, 6]


@needs("safe memory")
@clause("RAW-1.foreign", "RAW-2.foreign")
@pytest.mark.parametrize("layout", ["contiguous", "gaps", "mixed"])
def test_memory_that_is_not_the_arrays(layout):
    @ct.kernel
    def k(x, i, out):
        raw, t = x.get_raw_memory(), ct.load(i, 0, 64)
        ct.store(out, 0, raw.load_offset(t, padding_value=-5))
        raw.store_offset(t, 9)
        raw.atomic_add_offset(t, 100)
        raw.atomic_xchg_offset(t, raw.atomic_cas_offset(t, 109, 110))

    x = guarded(numbers((3, 2), np.int32), layout)
    strides = [s // 4 for s in x.array.strides]
    own = {r * strides[0] + c * strides[1]: v for (r, c), v in np.ndenumerate(x.array)}
    i = np.concatenate([np.arange(-24, 36), [1 << 40, -(1 << 40), (1 << 63) - 1, -(1 << 63)]])
    out = run(k, x.array, i, np.zeros(64, np.int32))
    assert out.tolist() == [own.get(int(v), -5) for v in i]
    x.check(np.full((3, 2), 109, np.int32))


@needs("safe memory")
@clause("RAW-1.foreign", "RAW-2.foreign")
def test_an_array_without_elements():
    @ct.kernel
    def k(x, out):
        raw = x.get_raw_memory()
        ct.store(out, 0, raw.load_offset(ct.arange(4, dtype=ct.int32), padding_value=3))
        raw.store_offset(0, 1)

    same(run(k, np.zeros((0, 3), np.int32), np.zeros(4, np.int32)), np.full(4, 3, np.int32))


@clause("RAW-1.mask", "RAW-1.padding", "RAW-2.mask", "RAW-2.broadcast")
@pytest.mark.parametrize("what", ["scalar", "row", "column", "full"])
def test_masks_padding_and_values_broadcast(what):
    def shaped(t):
        if what == "scalar":
            return t.extract((0, 0), (1, 1)).reshape(())
        if what == "row":
            return t.extract((0, 0), (1, 4)).reshape((4,))
        if what == "column":
            return t.extract((0, 0), (2, 1))
        return t

    @ct.kernel
    def k(x, m, v, y, out):
        at = ct.arange(8, dtype=ct.int32).reshape((2, 4))
        mask, value = shaped(ct.load(m, (ct.bid(0), 0), (2, 4))), shaped(ct.load(v, (0, 0), (2, 4)))
        t = x.get_raw_memory().load_offset(at, mask=mask, padding_value=value)
        ct.store(out, (ct.bid(0), 0, 0), t.reshape((1, 2, 4)))
        zero = x.get_raw_memory().load_offset(at, mask=mask)
        ct.store(out, (ct.bid(0) + 2, 0, 0), zero.reshape((1, 2, 4)))
        y.get_raw_memory().store_offset(at + ct.bid(0) * 8, value, mask=mask)

    m = np.array([[True, False, True, False], [False, False, True, True]] * 2)
    m[2:] = ~m[2:]
    x, v, y, out = numbers(8), numbers((2, 4), start=50), guarded(np.zeros(16, np.int32)), np.zeros((4, 2, 4), np.int32)
    launch(k, x, m, v, y.array, out, grid=(2,))
    want = np.zeros(16, np.int32)
    for b, r, c in np.ndindex(2, 2, 4):
        p = {"scalar": (0, 0), "row": (0, c), "column": (r, 0), "full": (r, c)}[what]
        ok, fill = m[2 * b + p[0], p[1]], v[p]
        assert out[b, r, c] == (4 * r + c + 1 if ok else fill)
        assert out[b + 2, r, c] == (4 * r + c + 1 if ok else 0)
        want[8 * b + 4 * r + c] = fill if ok else 0
    y.check(want)


@clause("RAW-1.mask", "RAW-1.none")
def test_constant_masks_and_no_padding():
    @ct.kernel
    def k(x, out):
        raw, i = x.get_raw_memory(), ct.arange(4, dtype=ct.int32)
        ct.store(out, 0, raw.load_offset(i, mask=False, padding_value=8))
        ct.store(out, 1, raw.load_offset(i, mask=True, padding_value=8))
        ct.store(out, 2, raw.load_offset(i, mask=i < 2, padding_value=None))
        ct.store(out, 3, raw.load_offset(i, mask=None, padding_value=None))

    out = run(k, numbers(4), np.zeros(16, np.int32))
    assert out[:10].tolist() == [8, 8, 8, 8, 1, 2, 3, 4, 1, 2] and out[12:].tolist() == [1, 2, 3, 4]


@clause("RAW-1.padding", "RAW-2.broadcast", "RAW-1.mask")
def test_scalars_that_depend_on_the_block():
    @ct.kernel
    def k(x, y, out):
        b, i = ct.bid(0), ct.arange(4, dtype=ct.int32).reshape((2, 2))
        t = x.get_raw_memory().load_offset(i, mask=i > b, padding_value=b - 9)
        ct.store(out, (b, 0, 0), t.reshape((1, 2, 2)))
        u = x.get_raw_memory().load_offset(i + b, mask=b > 0, padding_value=-1)
        ct.store(out, (b + 3, 0, 0), u.reshape((1, 2, 2)))
        y.get_raw_memory().store_offset(i + 4 * b, b + 50, mask=b != 1)

    y, out = guarded(np.zeros(12, np.int32)), np.zeros((6, 2, 2), np.int32)
    launch(k, numbers(8), y.array, out, grid=(3,))
    for b in range(3):
        assert out[b].reshape(-1).tolist() == [i + 1 if i > b else b - 9 for i in range(4)]
        assert out[b + 3].reshape(-1).tolist() == [i + b + 1 if b else -1 for i in range(4)]
    y.check(np.array([50] * 4 + [0] * 4 + [52] * 4, np.int32))


@needs("safe memory")
@clause("RAW-1.none")
def test_no_padding_reads_as_undetermined_padding():
    @ct.kernel
    def k(x, out):
        i = ct.arange(4, dtype=ct.int32)
        ct.store(out, 0, x.get_raw_memory().load_offset(i, mask=i < 2, padding_value=None))

    same(run(k, numbers(4), np.full(4, 9, np.int32)), np.array([1, 2, 0, 0], np.int32))


@clause("RAW-1.type", "RAW-2.element")
@pytest.mark.parametrize("d", NUMPY)
def test_every_dtype(d):
    @ct.kernel
    def k(x, y):
        t = x.get_raw_memory().load_offset(ct.arange(8, dtype=ct.int32) + ct.bid(0) * 8)
        ct.static_assert(t.dtype == x.dtype)
        y.get_raw_memory().store_offset(15 - ct.arange(8, dtype=ct.int32) - ct.bid(0) * 8, t)

    x = sample(d, 16)
    with on_target(d):
        same(run(k, x, np.ones(16, np.uint8).astype(x.dtype), grid=(2,)), x[::-1])


@clause("RAW-2.cast", "RAW-1.padding", "RAW-2.result")
def test_values_are_cast():
    @ct.kernel
    def k(x):
        raw = x.get_raw_memory()
        r = raw.store_offset(0, 2049)
        ct.static_assert(r is None)
        raw.store_offset(1, ct.int32(2051))
        raw.store_offset(2, 1.5)
        raw.store_offset(3, raw.load_offset(0, mask=False, padding_value=ct.int32(2051)))

    same(run(k, np.zeros(4, np.float16)), np.array([2048, 2052, 1.5, 2052], np.float16))


@pytest.mark.parametrize("call", [
    pytest.param(lambda r: r.load_offset(True), marks=clause("RAW-1.kind")),
    pytest.param(lambda r: r.load_offset(0.0), marks=clause("RAW-1.kind")),
    pytest.param(lambda r: r.load_offset(ct.zeros((4,), ct.float32)), marks=clause("RAW-1.kind")),
    pytest.param(lambda r: r.load_offset(ct.full((4,), True, ct.bool_)), marks=clause("RAW-1.kind")),
    pytest.param(lambda r: r.load_offset((0,)), marks=clause("RAW-1.kind")),
    pytest.param(lambda r: r.load_offset(None), marks=clause("RAW-1.kind")),
    pytest.param(lambda r: r.load_offset(0, mask=1), marks=clause("RAW-1.mask.type")),
    pytest.param(lambda r: r.load_offset(0, mask=ct.full((1,), True, ct.bool_)), marks=clause("RAW-1.mask.type")),
    pytest.param(lambda r: r.load_offset(0, padding_value=1.5), marks=clause("RAW-1.padding")),
    pytest.param(lambda r: r.load_offset(0, padding_value=ct.zeros((1,), ct.int32)), marks=clause("RAW-1.padding")),
    pytest.param(lambda r: r.load_offset(0, padding_value=ct.int64(0)), marks=clause("RAW-1.padding")),
    pytest.param(lambda r: r.load_offset(0, None), marks=clause("RAW-1.mask")),
    pytest.param(lambda r: r.load_offset(0, check_bounds=True), marks=clause("RAW-1.bounds")),
    pytest.param(lambda r: r.store_offset(0.0, 1), marks=clause("RAW-1.kind")),
    pytest.param(lambda r: r.store_offset(True, 1), marks=clause("RAW-1.kind")),
    pytest.param(lambda r: r.store_offset(0, ct.zeros((1,), ct.int32)), marks=clause("RAW-2.shape")),
    pytest.param(lambda r: r.store_offset(ct.zeros((4,), ct.int32), ct.zeros((2,), ct.int32)),
                 marks=clause("RAW-2.shape")),
    pytest.param(lambda r: r.store_offset(0, 1.5), marks=clause("RAW-2.cast")),
    pytest.param(lambda r: r.store_offset(0, ct.int64(1)), marks=clause("RAW-2.cast")),
    pytest.param(lambda r: r.store_offset(0, None), marks=clause("RAW-2.cast")),
    pytest.param(lambda r: r.store_offset(0, 1, mask=1), marks=clause("RAW-2.mask")),
    pytest.param(lambda r: r.store_offset(0, 1, padding_value=0), marks=clause("RAW-2.mask")),
    pytest.param(lambda r: ct.add(r, 1), marks=clause("GEN-1.kind")),
    pytest.param(lambda r: ct.gather(r, 0), marks=clause("GEN-1.kind")),
])
def test_what_is_refused(call):
    @ct.kernel
    def k(x):
        call(x.get_raw_memory())

    refuses("TileTypeError", k, X1)


def method(raw, kind):
    """The bound method, chosen while the kernel is compiled."""
    return getattr(raw, "atomic_" + kind + "_offset")


def act(raw, kind, at, u, mask):
    f = method(raw, kind)
    return f(at, u, u + 1, mask=mask) if kind == "cas" else f(at, u, mask=mask)


def family(kind):
    return "RAW-3" if kind == "cas" else f"RAW-4.{kind}"


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(
    f"{family(k)}.element", f"{family(k)}.mask", f"{family(k)}.offset")) for k in HAS])
@pytest.mark.parametrize("layout", ["contiguous", "gaps"])
def test_atomics(kind, layout):
    @ct.kernel
    def k(x, i, u, m, out):
        b = ct.bid(0)
        at = ct.load(i, b, 16) * x.strides[0]
        t = act(x.get_raw_memory(), kind, at, ct.load(u, b, 16), ct.load(m, b, 16))
        ct.static_assert(t.dtype == x.dtype and t.shape == (16,))
        ct.store(out, b, t)

    rng = np.random.default_rng(9)
    i, u = rng.integers(0, 9, 48).astype(np.int32), rng.integers(0, 4, 48).astype(np.int32)
    m = rng.integers(0, 4, 48) > 0
    before = rng.integers(0, 4, 10).astype(np.int32)
    x, out = guarded(before, layout), np.full(48, -9, np.int32)
    launch(k, x.array, i, u, m, out, grid=(3,))
    for at in range(10):
        lanes = [((int(v), int(v) + 1) if kind == "cas" else int(v), int(o))
                 for p, v, o, ok in zip(i, u, out, m) if p == at and ok]
        assert valid(kind, "i32", int(before[at]), lanes, int(x.array[at])), at
    x.check(x.array)
    if kind == "cas":
        same(out[~m], u[~m])


@needs("safe memory")
@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"{family(k)}.mask", f"{family(k)}.foreign"))
                                  for k in HAS])
def test_what_masked_and_foreign_lanes_give(kind):
    @ct.kernel
    def k(x, out):
        i = ct.arange(4, dtype=ct.int32)
        ct.store(out, 0, act(x.get_raw_memory(), kind, i, 6, i < 2))
        ct.store(out, 1, act(x.get_raw_memory(), kind, i + 3, 6, None))
        ct.store(out, 2, act(x.get_raw_memory(), kind, i, 6, False))

    x = guarded(numbers(4))
    out = run(k, x.array, np.full(12, -9, np.int32))
    after = [update(kind, "i32", v, (6, 7) if kind == "cas" else 6) for v in (1, 2, 4)]
    missing = 6 if kind == "cas" else 0
    assert out.tolist() == [1, 2, missing, missing, 4] + [missing] * 7
    x.check(np.array([after[0], after[1], 3, after[2]], np.int32))


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"{family(k)}.dtype")) for k in HAS])
@pytest.mark.parametrize("d", ["b1", "i8", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64", "e4m3"])
def test_dtypes_of_atomics(kind, d):
    dtype = DTYPES[d]

    @ct.kernel
    def k(x):
        u = ct.full((), 1, dtype)
        if kind == "cas":
            method(x.get_raw_memory(), kind)(0, u, u)
        else:
            method(x.get_raw_memory(), kind)(0, u)

    if d in HAS[kind]:
        launch(k, np.zeros(1, NUMPY[d]))
    else:
        refuses("TileTypeError", k, np.zeros(1).astype(NUMPY[d]))


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"{family(k)}.dtype", f"{family(k)}.mask.type",
                                                               f"{family(k)}.offset")) for k in HAS])
@pytest.mark.parametrize("call", [
    lambda f, u: f(0.0, *u), lambda f, u: f(True, *u), lambda f, u: f((0,), *u), lambda f, u: f(0, *u, mask=1),
    lambda f, u: f(0, *u, mask=ct.full((1,), True, ct.bool_)), lambda f, u: f(0, *u, latency=1),
    lambda f, u: f(0, *u, check_bounds=True), lambda f, u: f(0), lambda f, u: f(0, *u, None),
    lambda f, u: f(0, *u[1:], ct.int64(1)),
    lambda f, u: f(0, *u[1:], ct.zeros((2,), ct.int32)), lambda f, u: f(0, *u[1:], 1.5)])
def test_bad_calls_of_atomics(kind, call):
    operands = (1, 1) if kind == "cas" else (1,)

    @ct.kernel
    def k(x):
        call(method(x.get_raw_memory(), kind), operands)

    refuses("TileTypeError", k, X1)


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"{family(k)}.dtype")) for k in ("and", "or", "xor")])
def test_bitwise_atomics_need_the_dtype_itself(kind):
    @ct.kernel
    def k(x):
        method(x.get_raw_memory(), kind)(0, 1)

    launch(k, np.zeros(1, np.int32))
    refuses("TileTypeError", k, np.zeros(1, np.int64))


@clause("RAWMEM-1.attributes")
def test_attributes():
    @ct.kernel
    def good(x):
        d = x.get_raw_memory().dtype
        ct.static_assert(d == ct.int32)

    launch(good, X1)
    for name in ("shape", "ndim", "strides", "load", "slice"):
        def read(raw, name=name):
            return getattr(raw, name)

        @ct.kernel
        def k(x):
            read(x.get_raw_memory())

        refuses("TileTypeError", k, X1)
