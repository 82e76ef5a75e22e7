"""Device-wide algorithms [CNV, TMP, ITR, AOT, OPR, TYP, TRF, RDC, SCN]."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, same_bits

N = 3001
X = np.random.default_rng(7).integers(-50, 50, N).astype(np.int32)
AT = np.random.default_rng(8).permutation(N).astype(np.int32)


def transformed(it, op=lambda v: v, n=N, dtype=np.int32):
    out = np.zeros(n, dtype)
    ct.compute.unary_transform(d_in=it, d_out=out, op=op, num_items=n)
    return out


@clause("CNV-1.keyword", "TRF-1.unary", "OPR-1.function")
def test_unary_transform():
    same_bits(transformed(X, lambda v: v * 2 if v > 3 else -v), np.where(X > 3, X * 2, -X))


@clause("CNV-3.position", "TRF-1.binary", "TRF-1.place", "TRF-2.nothing")
def test_binary_transform():
    out = X.copy()
    ct.compute.binary_transform(out, AT, out, lambda a, b: a - b, 0)
    same_bits(out, X)
    ct.compute.binary_transform(out, AT, out, lambda a, b: a - b, N)
    same_bits(out, X - AT)


@clause("TRF-1.convert")
def test_results_convert():
    same_bits(transformed(X, lambda v: v / 4, dtype=np.int8), (X / 4).astype(np.int8))


@clause("CNV-7.many", "CNV-7.negative")
@pytest.mark.parametrize("n", [N + 1, -1])
def test_counts(n):
    with pytest.raises(ValueError):
        ct.compute.unary_transform(X, np.zeros(N + 5, np.int32), lambda v: v, n)


@clause("ITR-1.counting", "ITR-2.constant", "ITR-9.advance")
def test_numbers_without_memory():
    c = ct.compute
    same_bits(transformed(c.CountingIterator(np.uint8(250)), n=10), np.array([*range(250, 256), 0, 1, 2, 3], np.int32))
    same_bits(transformed(c.CountingIterator(5) + 7), np.arange(12, N + 12, dtype=np.int32))
    same_bits(transformed(c.ConstantIterator(np.int16(3))), np.full(N, 3, np.int32))
    same_bits(transformed(c.TransformIterator(X, lambda v: v + 1) + 4, n=9), X[4:13] + 1)


@clause("ITR-3.transform", "ITR-5.zip", "ITR-6.permutation", "ITR-7.reverse")
def test_iterators_to_read():
    c = ct.compute
    same_bits(transformed(c.TransformIterator(X, lambda v: v * v)), X * X)
    same_bits(transformed(c.ZipIterator(X, AT), lambda z: z[0] * 3 + z.field_1), X * 3 + AT)
    same_bits(transformed(c.PermutationIterator(X, AT)), X[AT])
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        at = (AT % 100).astype(dtype)
        same_bits(transformed(c.PermutationIterator(X, at)), X[AT % 100])
        same_bits(transformed(c.PermutationIterator(c.ReverseIterator(X), at)), X[::-1][AT % 100])
    same_bits(transformed(c.ReverseIterator(X)), X[::-1])
    same_bits(transformed(c.ReverseIterator(c.CountingIterator(np.int32(10)) + 4), n=5), np.arange(14, 9, -1,
                                                                                                 dtype=np.int32))


@clause("ITR-5.choice")
def test_fields_at_run_time():
    which = (np.arange(N) % 3).astype(np.int8)
    pairs = ct.compute.ZipIterator(X, AT, which)
    same_bits(transformed(pairs, lambda z: z[z[2]]), np.choose(which, (X, AT, which)).astype(np.int32))


@clause("ITR-4.output", "ITR-5.zip", "ITR-6.permutation", "ITR-7.reverse", "ITR-8.discard")
def test_iterators_to_write():
    c = ct.compute

    def written(make, op=lambda v: v):
        out = np.zeros(N, np.int32)
        c.unary_transform(X, make(out), op, N)
        return out
    same_bits(written(lambda o: c.TransformOutputIterator(o, lambda v: v - 1, np.int32)), X - 1)
    same_bits(written(c.ReverseIterator), X[::-1])
    same_bits(written(lambda o: c.PermutationIterator(o, AT))[AT], X)
    same_bits(written(lambda o: c.ZipIterator(c.DiscardIterator(), o), lambda v: (v, v + 2)), X + 2)


@clause("OPR-3.known")
def test_known_operators():
    out, y = np.zeros(4, np.int32), np.array([2, -2, 3, -5], np.int32)
    ct.compute.binary_transform(np.array([-7, -7, 8, 9], np.int32), y, out, ct.compute.OpKind.DIVIDES, 4)
    same_bits(out, np.array([-3, 3, 2, -1], np.int32))


@clause("OPR-5.captured")
def test_captured_numbers():
    for k in (2, 5, 2):
        same_bits(transformed(X, lambda v: v * k), X * k)


@clause("OPR-4.complex")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers(dtype):
    x = (X + 1j * X[::-1]).astype(dtype)  # of small integers, so that all but quotients are exact
    y, out, equal = np.roll(x, 3), np.zeros(N, dtype), np.zeros(N, bool)
    for kind, want in (("PLUS", x + y), ("MINUS", x - y), ("MULTIPLIES", x * y), ("NEGATE", None)):
        if want is None:
            ct.compute.unary_transform(x, out, ct.compute.OpKind.NEGATE, N)
            assert np.array_equal(out, -x)
        else:
            ct.compute.binary_transform(x, y, out, ct.compute.OpKind[kind], N)
            assert np.array_equal(out, want)
    for kind, want in (("EQUAL_TO", x == y), ("NOT_EQUAL_TO", x != y)):
        ct.compute.binary_transform(x, y, equal, ct.compute.OpKind[kind], N)
        assert np.array_equal(equal, want)
    ct.compute.binary_transform(x, np.full(N, 2 + 2j, dtype), out, lambda a, b: a / b * 2 + 1, N)
    assert np.array_equal(out, (x * (1 - 1j) / 2 + 1).astype(dtype))
    ct.compute.unary_transform(x, out, lambda z: (z.imag, z.real), N)
    assert np.array_equal(out, (x.imag + 1j * x.real).astype(dtype))


@clause("OPR-5.array")
def test_captured_arrays():
    table, counts = np.array([5, -3, 2, 9], np.int32), np.zeros(4, np.int32)

    def looked_up(v):
        ct.atomic_add(counts, v & 3, 1)
        return table[v & 3]
    for k in range(2):
        table[0] = k
        same_bits(transformed(X, looked_up), table[X & 3])
    same_bits(counts, (2 * np.bincount(X & 3, minlength=4)).astype(np.int32))


@clause("TYP-2.struct", "TYP-3.fields")
def test_structs():
    c = ct.compute
    Pair = c.gpu_struct({"a": np.int32, "b": np.float32})

    @c.gpu_struct
    class Other:
        a: np.int32
        b: np.float32
    assert Pair.dtype == Other.dtype == c.gpu_struct(Pair.dtype).dtype
    x, out = np.zeros(N, Pair.dtype), np.zeros(N, Pair.dtype)
    x["a"], x["b"] = X, AT
    c.unary_transform(x, out, lambda p: Pair(p[0] + 1, p.b * 2) if p.a > 0 else p, N)
    same_bits(out["a"], np.where(X > 0, X + 1, X))
    same_bits(out["b"], np.where(X > 0, AT * 2, AT).astype(np.float32))
    c.unary_transform(x, out, lambda p: (p.b, p.a), N)
    same_bits(out["a"], AT)


@clause("TYP-4.packed")
@pytest.mark.parametrize("first", ["i1", "i2", "i4"])
def test_packed_structs(first):
    dtype = np.dtype([("a", first), ("b", "f8"), ("c", "f4")])
    x, out = np.zeros(N, dtype), np.zeros(N, dtype)
    x["a"], x["b"], x["c"] = X, AT, AT / 2
    Item = ct.compute.gpu_struct(dtype)
    ct.compute.unary_transform(x, out, lambda p: Item(p.a + 1, p.c, p.b), N)
    for name, want in (("a", x["a"] + 1), ("b", x["c"]), ("c", x["b"])):
        same_bits(out[name].copy(), want.astype(dtype[name]))


def add(a, b):
    return a + b


@clause("TMP-1.query", "TMP-1.run", "TMP-2.small", "TMP-5.free", "TMP-5.kind", "CNV-3.position")
def test_objects():
    out, big = np.zeros(1, np.int64), np.arange(1 << 17, dtype=np.int32)
    reducer = ct.compute.make_reduce_into(big, out, add, np.int64(0))
    need = reducer(temp_storage=None, d_in=big, d_out=out, num_items=len(big), op=add, h_init=np.int64(0))
    assert need > 0 and out[0] == 0
    if need > 1:
        with pytest.raises(ValueError):
            reducer(np.zeros(need - 1, np.uint8), big, out, add, len(big), np.int64(0))
        assert out[0] == 0
    storage = np.zeros(need, np.uint8)
    assert reducer(storage, big, out, add, len(big), np.int64(0)) == need and out[0] == big.sum(dtype=np.int64)
    assert reducer(storage, big[5:], out, add, 10, np.int64(3)) <= need and out[0] == big[5:15].sum() + 3
    for arguments in ((big.astype(np.float32), out, add), (big, out.astype(np.int32), add),
                      (big, out, lambda a, b: a * b)):
        with pytest.raises(TypeError):
            reducer(storage, *arguments, 10, np.int64(0))


@clause("RDC-1.reduce", "RDC-2.accumulator", "RDC-3.nothing", "RDC-6.convert")
def test_reduce_into():
    out = np.zeros(1, np.float64)
    ct.compute.reduce_into(X, out, N, lambda a, b: a if a > b else b)
    assert out[0] == X.max()
    small = np.full(N, 100, np.int8)
    ct.compute.reduce_into(small, out, N, add, np.array([5], np.int64))
    assert out[0] == 100 * N + 5
    ct.compute.reduce_into(small, out, N, add)
    assert out[0] == np.array(100 * N).astype(np.int8)
    out[0] = 8
    ct.compute.reduce_into(X, out, 0, add)
    assert out[0] == 8
    ct.compute.reduce_into(X, out, 0, add, np.int32(4))
    assert out[0] == 4


@clause("SCN-1.inclusive", "SCN-1.exclusive", "SCN-5.place", "SCN-4.nothing")
def test_scans():
    out, total = X.copy(), np.cumsum(X).astype(np.int32)
    ct.compute.inclusive_scan(d_in=out, d_out=out, op=add, num_items=0)
    ct.compute.inclusive_scan(d_in=out, d_out=out, op=add, num_items=N)
    same_bits(out, total)
    ct.compute.inclusive_scan(X, out, add, np.int32(9), N)
    same_bits(out, total + 9)
    out = X.copy()
    ct.compute.exclusive_scan(out, out, add, np.int32(9), N)
    same_bits(out, total - X + 9)


@clause("SCN-1.order")
def test_the_order_of_scans():
    Map = ct.compute.gpu_struct({"scale": np.int64, "shift": np.int64})

    def then(p, q):
        return Map(p.scale * q.scale, p.shift * q.scale + q.shift)
    x, out = np.zeros(N, Map.dtype), np.zeros(N, Map.dtype)
    x["scale"], x["shift"] = np.where(AT % 2, 1, -1), X
    ct.compute.inclusive_scan(x, out, then, None, N)
    scale, shift, want = 1, 0, []
    for a, b in x.tolist():
        scale, shift = scale * a, shift * a + b
        want.append((scale, shift))
    assert out.tolist() == want


@clause("SCN-3.none")
def test_exclusive_scans_begin_with_a_value():
    with pytest.raises(ValueError):
        ct.compute.exclusive_scan(X, X.copy(), add, None, N)


def positions(search, data, values, comp=None, dtype=np.uint64):
    out = np.zeros(len(values), dtype)
    search(d_data=data, num_items=N, d_values=values, num_values=len(values), d_out=out, comp=comp)
    return out


@clause("BSR-1.lower", "BSR-1.upper", "BSR-1.comp", "BSR-2.dtype")
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_searches(dtype):
    data, values = np.sort(X), np.arange(-60, 60, dtype=np.int32)
    low, high = (np.searchsorted(data, values, side).astype(dtype) for side in ("left", "right"))
    same_bits(positions(ct.compute.lower_bound, data, values, None, dtype), low)
    same_bits(positions(ct.compute.upper_bound, data, values, None, dtype), high)
    same_bits(positions(ct.compute.lower_bound, data[::-1].copy(), values, lambda a, b: a > b, dtype), N - high)


@clause("BSR-2.refused")
@pytest.mark.parametrize("dtype, error", [(np.float32, TypeError), (np.int16, ValueError), (np.uint8, ValueError)])
def test_positions_need_long_integers(dtype, error):
    with pytest.raises(error):
        positions(ct.compute.lower_bound, np.sort(X), X, None, dtype)


@clause("BSR-2.iterator")
def test_searches_in_iterators():
    c = ct.compute
    squares = c.TransformIterator(c.CountingIterator(np.int64(0)), lambda v: v * v)
    values = c.TransformIterator(c.CountingIterator(np.int64(0)), lambda v: v + 3)
    out = np.zeros(50, np.uint64)
    c.upper_bound(squares, N, values, 50, out)
    same_bits(out, np.searchsorted(np.arange(N) ** 2, np.arange(50) + 3, "right").astype(np.uint64))


def near(a, b):
    """Tens, the largest ones first."""
    return a // 10 > b // 10


@clause("MRG-1.order", "MRG-1.values", "MRG-3.stable", "MRG-2.place", "MRG-5.nothing")
def test_merge_sort():
    order = np.argsort(-(X // 10), kind="stable")
    keys, values = np.zeros(N, np.int32), np.zeros(N, np.int32)
    ct.compute.merge_sort(d_in_keys=X, d_in_values=AT, d_out_keys=keys, d_out_values=values, num_items=0, op=near)
    assert not keys.any()
    ct.compute.merge_sort(d_in_keys=X, d_in_values=AT, d_out_keys=keys, d_out_values=values, num_items=N, op=near)
    same_bits(keys, X[order])
    same_bits(values, AT[order])
    keys = X.copy()
    ct.compute.merge_sort(keys, None, keys, None, N, near)
    same_bits(keys, X[order])


@clause("MRG-1.any")
@pytest.mark.parametrize("op", [lambda a, b: True, lambda a, b: (a * 7 + b * 3) % 5 < 2])
def test_any_comparison(op):
    keys, values = np.full(N + 20, -99, np.int32), np.full(N + 20, -99, np.int32)
    ct.compute.merge_sort(X, np.arange(N, dtype=np.int32), keys[10:-10], values[10:-10], N, op)
    same_bits(np.sort(values[10:-10]), np.arange(N, dtype=np.int32))
    same_bits(keys[10:-10], X[values[10:-10]])
    for a in (keys, values):
        assert set(a[:10]) == set(a[-10:]) == {-99}


@clause("MRG-1.struct", "MRG-2.iterator")
def test_sorts_of_structs():
    Pair = ct.compute.gpu_struct({"major": np.int32, "minor": np.int32}, "Pair")
    x, out = np.zeros(N, Pair.dtype), np.zeros(N, Pair.dtype)
    x["major"], x["minor"] = X // 10, AT
    count = np.zeros(N, np.int64)
    ct.compute.merge_sort(x, ct.compute.CountingIterator(5), out, count, N,
                          lambda p, q: p.major < q.major or (p.major == q.major and p[1] > q[1]))
    order = np.lexsort((-AT, X // 10))
    assert out.tolist() == x[order].tolist()
    same_bits(count, order + 5)


@clause("MRG-2.side")
def test_values_on_one_side():
    for values in ((X, None), (None, X.copy())):
        with pytest.raises(ValueError):
            ct.compute.merge_sort(X, values[0], X.copy(), values[1], N, near)


def by_radix(keys, order, *bits):
    out, moved = np.zeros_like(keys), np.zeros(len(keys), np.int32)
    ct.compute.radix_sort(keys, out, np.arange(len(keys), dtype=np.int32), moved, len(keys), order, *bits)
    same_bits(out, keys[moved])
    return moved


@clause("RDX-1.types")
def test_structs_have_no_order_of_bits():
    x = np.zeros(9, [("a", np.int32), ("b", np.int32)])
    with pytest.raises(TypeError):
        ct.compute.radix_sort(x, x.copy(), None, None, 9, ct.compute.SortOrder.ASCENDING)


@clause("RDX-2.order", "RDX-2.zero", "RDX-2.descending", "RDX-3.stable")
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64, np.float16, np.float64])
def test_radix_sort(dtype):
    keys = X.astype(dtype)
    up, down = ct.compute.SortOrder
    if keys.dtype.kind == "f":
        keys[::7], keys[::11] = -0.0, 0.0
    rank = keys if keys.dtype.kind == "u" else keys.astype(np.float64)
    same_bits(by_radix(keys, up), np.argsort(rank, kind="stable").astype(np.int32))
    same_bits(by_radix(keys, down), (len(keys) - 1 - np.argsort(rank[::-1], kind="stable")[::-1]).astype(np.int32))
    if keys.dtype.kind == "f":
        keys[5], keys[50] = np.nan, -np.float64(np.nan)
        assert by_radix(keys, up)[[0, -1]].tolist() == [50, 5]
        assert by_radix(keys, down)[[0, -1]].tolist() == [5, 50]


@clause("RDX-4.bits")
def test_bits_of_radix_sort():
    up = ct.compute.SortOrder.ASCENDING
    keys = AT.astype(np.uint32)
    same_bits(by_radix(keys, up, 2, 7), np.argsort(keys >> 2 & 31, kind="stable").astype(np.int32))
    same_bits(by_radix(keys, up, 6, 6), np.arange(N, dtype=np.int32))


@clause("RDX-5.buffer")
@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_double_buffers(dtype):
    keys = ct.compute.DoubleBuffer(X.astype(dtype), np.zeros(N, dtype))
    values = ct.compute.DoubleBuffer(np.arange(N), np.zeros(N, int))
    ct.compute.radix_sort(d_in_keys=keys, d_out_keys=None, d_in_values=values, num_items=N,
                          order=ct.compute.SortOrder.ASCENDING)
    same_bits(keys.current(), np.sort(X).astype(dtype))
    same_bits(values.current(), np.argsort(X, kind="stable"))
    assert keys.current() is keys.d_buffers[keys.selector] and keys.alternate() is not keys.current()


@clause("RDX-6.input", "RDX-6.nothing")
def test_radix_sort_preserves_its_input():
    x, out = X.copy(), np.zeros(N, np.int32)
    ct.compute.radix_sort(x, out, None, None, 0, ct.compute.SortOrder.ASCENDING)
    assert not out.any()
    ct.compute.radix_sort(x, out, None, None, N, ct.compute.SortOrder.ASCENDING)
    same_bits(x, X)
    with pytest.raises(ValueError):
        ct.compute.radix_sort(x, x, None, None, N, ct.compute.SortOrder.ASCENDING)


@clause("ITR-9.shuffle")
def test_shuffle():
    n, orders = 300, []
    for seed in (1, 1, 2):
        out = np.zeros(n, np.int64)
        ct.compute.unary_transform(ct.compute.ShuffleIterator(n, seed), out, lambda v: v, n)
        assert sorted(out.tolist()) == list(range(n))
        orders.append(out.tolist())
    assert orders[0] == orders[1] != orders[2]


@clause("AOT-1.capability", "AOT-2.proxy")
def test_objects_made_ahead():
    def added(a, b):
        return a + b
    array, total = ct.compute.ProxyArray(np.int32), ct.compute.ProxyValue(np.int64)
    x, out = np.arange(9, dtype=np.int32), np.zeros(1, np.int64)
    for capability in (None, 90, (9, 0), "9.0", "90", [90, 100]):
        reduce = ct.compute.make_reduce_into(array, ct.compute.ProxyArray(np.int64), added, total,
                                             compute_capability=capability)
        storage = np.empty(reduce(None, x, out, added, 9, np.int64(5)), np.uint8)
        reduce(storage, x, out, added, 9, np.int64(5))
        assert out.tolist() == [41]
    with pytest.raises(ValueError):
        ct.compute.make_unary_transform(array, array, lambda v: v, compute_capability=[])
    with pytest.raises(RuntimeError):
        ct.compute.reduce_into(array, out, 9, lambda a, b: a + b, np.int64(0))


@clause("SER-1.round", "SER-3.host", "SER-1.type")
def test_objects_as_bytes():
    def added(a, b):
        return a + b
    x, out = np.arange(9, dtype=np.int32), np.zeros(1, np.int64)
    blob = ct.compute.serialize(ct.compute.make_reduce_into(x, out, added, np.int64(0)))
    assert type(blob) is bytes
    reduce = ct.compute.deserialize(blob)
    reduce(np.empty(reduce(None, x, out, added, 9, np.int64(5)), np.uint8), x, out, added, 9, np.int64(5))
    assert out.tolist() == [41]
    for args in ((x.astype(np.float32), out, added), (x, out, lambda a, b: a - b)):
        with pytest.raises(TypeError):
            reduce(None, *args, 9, np.int64(5))
    for wrong in (x, None, added):
        with pytest.raises(TypeError):
            ct.compute.serialize(wrong)
        with pytest.raises(TypeError):
            ct.compute.deserialize(None)


@clause("SER-1.damaged", "SER-1.release")
def test_wrong_blobs():
    x = np.arange(9, dtype=np.int32)
    blob = ct.compute.serialize(ct.compute.make_unary_transform(x, x, lambda v: v))
    for wrong in (b"", b"text", blob[:-1], blob[:len(blob) // 2], blob[:-1] + bytes([blob[-1] ^ 255]), blob + b"0"):
        with pytest.raises(ValueError):
            ct.compute.deserialize(wrong)
    version = vars(ct)["__version__"].encode()  # no name of the language
    with pytest.raises(ValueError, match="0.0.0-other"):
        ct.compute.deserialize(blob.replace(version, b"0.0.0-other", 1))


@clause("AOT-1.missing", "SER-2.several")
def test_compiling_without_a_gpu():
    array = ct.compute.ProxyArray(np.float32)
    blob = ct.compute.serialize(ct.compute.make_unary_transform(array, array, lambda v: v * 2,
                                                                compute_capability=[90, (10, 0)]))
    x = np.arange(5, dtype=np.float32)
    ct.compute.deserialize(blob)(x, x, lambda v: v * 2, 5)
    same_bits(x, np.arange(0, 10, 2, np.float32))
    made = ct.compute.make_unary_transform(array, array, lambda v: v)
    try:
        ct.compute.serialize(made)
    except RuntimeError as e:
        assert "compute_capability" in str(e)


@clause("SER-4.cache")
def test_folder_of_compiled_code(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    assert str(ct.compute.pch_cache_dir()) == str(tmp_path)
    assert ct.compute.clear_pch_cache() == 0


@clause("SGS-1.segments", "SGS-1.outside", "SGS-2.stable", "SGS-1.buffer")
def test_segmented_sort():
    starts, ends = np.array([2000, 5, 900, 700]), np.array([3001, 600, 900, 890])
    for order in ct.compute.SortOrder:
        keys, values = np.full(N, -99, np.int32), np.full(N, -99, np.int32)
        want_keys, want_values = keys.copy(), values.copy()
        for a, b in zip(starts, ends, strict=True):
            at = np.argsort(X[a:b] if order == ct.compute.SortOrder.ASCENDING else -X[a:b], kind="stable")
            want_keys[a:b], want_values[a:b] = X[a:b][at], AT[a:b][at]
        ct.compute.segmented_sort(X, keys, AT, values, N, 4, starts, ends, order)
        same_bits(keys, want_keys)
        same_bits(values, want_values)
        buffer = ct.compute.DoubleBuffer(X.copy(), np.full(N, -99, np.int32))
        ct.compute.segmented_sort(d_in_keys=buffer, num_items=N, num_segments=4, start_offsets_in=starts,
                                  end_offsets_in=ends, order=order)
        same_bits(buffer.current(), want_keys)
