"""Foreign pointers and raw memory as objects [FPTR, RAWMEM]."""


import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, needs, refuses, run
from conformance.harness.dtype_names import DTYPES, NAMES
from conformance.harness.tile_code import body, rejects, result
from conformance.harness.type_probes import counting, inspect, refused

ONE = np.zeros(4, np.float32)


# ------------------------------------------------------------------ foreign pointers


@clause("FPTR-1.cached", "FPTR-1.name", "FPTR-1.bitwidth")
def test_pointer_dtypes():
    seen = set()
    for short, name in NAMES.items():
        d = ct.foreign_pointer_dtype(DTYPES[short])
        assert isinstance(d, ct.DType) and d is ct.foreign_pointer_dtype(DTYPES[short])
        assert d.name == str(d) == f"foreign_pointer[{name}]" and d.bitwidth == 64
        seen.add(d)
    assert len(seen) == len(NAMES)


@clause("FPTR-1.other", "FPTR-1.pointer")
def test_arguments_of_pointer_dtypes():
    for wrong in (int, 5, "float32", None, np.float32, ct.foreign_pointer_dtype(ct.float32)):
        with pytest.raises(TypeError):
            ct.foreign_pointer_dtype(wrong)


@clause("FPTR-1.tile", "FPTR-2.type")
def test_types_of_pointers():
    @ct.kernel
    def k(x, y):
        p, q = x.foreign_pointer, y.foreign_pointer
        d, e, s, n = p.dtype, q.dtype, p.shape, p.ndim
        f = ct.foreign_pointer_dtype(ct.float32)
        ct.static_assert(d == f and s == () and n == 0 and e != f)

    accepts(k, ONE, np.zeros(4, np.int8))


@clause("FPTR-1.tile", "FPTR-1.other", "FPTR-1.pointer")
def test_types_of_pointers_in_tile_code():
    def f(n):
        kinds = (ct.float32, ct.int8, np.float16, ct.uint64)
        made = tuple(ct.foreign_pointer_dtype(d) for d in ct.static_iter(kinds))
        return tuple(ct.static_eval(d.bitwidth + ("float" in d.name)) for d in ct.static_iter(made)), made[0] == made[1]

    def same(n):
        names = ct.static_eval(tuple(d.name for d in (ct.foreign_pointer_dtype(ct.float32),)))
        return ct.static_eval(names[0] == "foreign_pointer[float32]"), f(n)[1], *f(n)[0]

    assert result(same, 1) == [1, 0, 65, 64, 65, 64]
    for wrong in ("5", "n", "'float32'", "None", "ct", "ct.exp", "ct.foreign_pointer_dtype(ct.int8)", "", "ct.int8, 1",
                  "ct.zeros((2,), ct.int8)", "(ct.int8,)"):
        rejects("TileTypeError", body(f"return ct.foreign_pointer_dtype({wrong})"), 1)


@clause("FPTR-1.call")
def test_calls_of_pointer_dtypes():
    kind = ct.foreign_pointer_dtype(ct.float32)
    refused("TileTypeError", lambda: kind(0))


@pytest.mark.parametrize("f", [pytest.param(f, id=f"{n}{i}", marks=clause(f"FPTR-2.{n}")) for i, (n, f) in enumerate([
    ("arithmetic", lambda p, q: p + 1), ("arithmetic", lambda p, q: p - q), ("arithmetic", lambda p, q: -p),
    ("arithmetic", lambda p, q: p & 1), ("arithmetic", lambda p, q: p << 1), ("arithmetic", lambda p, q: ct.sum(p)),
    ("comparison", lambda p, q: p == q), ("comparison", lambda p, q: p < q), ("comparison", lambda p, q: p == 0),
    ("cast", lambda p, q: p.astype(ct.uint64)), ("cast", lambda p, q: ct.bitcast(p, ct.uint64)),
    ("cast", lambda p, q: ct.uint64(p)), ("cast", lambda p, q: ct.zeros((2,), ct.uint64).astype(p.dtype)),
    ("memory", lambda p, q: ct.load(p, 0, 4)), ("memory", lambda p, q: ct.store(p, 0, 1)),
    ("where", lambda p, q: ct.where(True, p, 0))])])
def test_what_pointers_cannot_do(f):
    @ct.kernel
    def k(x, y):
        f(x.foreign_pointer, y.foreign_pointer)

    refuses("TileTypeError", k, ONE, ONE)


@clause("FPTR-2.memory")
def test_pointers_are_not_stored():
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, x.foreign_pointer)

    refuses("TileTypeError", k, ONE, np.zeros(1, np.uint64))


@clause("FPTR-2.where", "FPTR-2.uses")
def test_choosing_a_pointer():
    @ct.kernel
    def k(n, x, y, out):
        p = ct.where(n > 0, x.foreign_pointer, y.foreign_pointer)
        ct.store(out, 0, ct.load(ct.Array.from_foreign(p, (4,), (1,)), 0, 4))

    @ct.kernel
    def two(x, y):
        ct.where(True, x.foreign_pointer, y.foreign_pointer)

    for n in (1, 0):
        assert run(k, n, counting(4), 10 * counting(4), np.zeros(4, np.float32)).tolist() == [
            [0, 10, 20, 30], [0, 1, 2, 3]][n]
    refuses("TileTypeError", two, ONE, np.zeros(4, np.int32))


@clause("FPTR-3.element")
def test_arrays_at_pointers():
    @ct.kernel
    def k(x, n, out, back):
        a = ct.Array.from_foreign(x.slice(0, 2, 24).foreign_pointer, (2, n), (n * 2, 2))
        ct.store(out, (0, 0), ct.load(a, (0, 0), (2, 4), padding_mode="NEG_INF"))
        ct.store(a, (0, 0), ct.full((2, 4), -1, ct.float32))
        ct.store(back, 0, a.shape[0] * 1000 + a.shape[1] * 100 + a.strides[0] * 10 + a.strides[1])

    x, out, back = counting(24), np.zeros((2, 4), np.float32), np.zeros(1, np.int32)
    run(k, x, 3, out, back)
    ninf = float("-inf")
    assert out.tolist() == [[2, 4, 6, ninf], [8, 10, 12, ninf]] and back.tolist() == [2362]
    assert [i for i in range(24) if x[i] == -1] == [2, 4, 6, 8, 10, 12]


@clause("FPTR-3.element", "FPTR-3.runtime", "FPTR-3.index")
@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64"])
def test_run_time_entries_of_each_width(kind):
    """Narrower entries beside wide ones keep their signs."""
    @ct.kernel
    def k(x, size, step, out):
        a = ct.Array.from_foreign(x.slice(0, 6, 8).foreign_pointer, (size.astype(ct.int64),),
                                  (step.astype(getattr(ct, kind)),))
        ct.store(out, 0, ct.load(a, 0, 4, padding_mode="NEG_INF"))

    assert run(k, counting(8), 3, -2, np.zeros(4, np.float32)).tolist() == [6, 4, 2, float("-inf")]


@clause("FPTR-3.constant", "FPTR-3.runtime", "FPTR-3.index")
def test_types_of_arrays_at_pointers():
    def at(shape, strides):
        def f(a):
            b = ct.Array.from_foreign(a.foreign_pointer, shape(a), strides(a))
            return (*b.shape, *b.strides)
        return f

    x = counting(16)
    assert inspect(at(lambda a: (4, 2), lambda a: (2, 1)), x) == [(v, "int32") for v in (4, 2, 2, 1)]
    assert inspect(at(lambda a: (4, a.shape[0]), lambda a: (a.strides[0], 1)), x) == [
        (4, "int32"), (None, "int32"), (None, "int32"), (1, "int32")]
    assert inspect(at(lambda a: (a.shape[0],), lambda a: (a.strides[0].astype(ct.int64),)), x) == [(None, "int64")] * 2
    assert inspect(at(lambda a: (a.shape[0].astype(ct.int8),), lambda a: (a.strides[0],)), x) == [(None, "int32")] * 2
    assert inspect(at(lambda a: (ct.int64(4) + ct.bid(0),), lambda a: (a.strides[0],)), x) == [(None, "int64")] * 2


@pytest.mark.parametrize("f", [pytest.param(f, id=f"{n}{i}", marks=clause(f"FPTR-3.{n}")) for i, (n, f) in enumerate([
    ("pointer", lambda a: ct.Array.from_foreign(a, (4,), (1,))),
    ("pointer", lambda a: ct.Array.from_foreign(0, (4,), (1,))),
    ("pointer", lambda a: ct.Array.from_foreign(ct.zeros((1,), ct.uint64), (4,), (1,))),
    ("entries", lambda a: ct.Array.from_foreign(a.foreign_pointer, 4, 1)),
    ("entries", lambda a: ct.Array.from_foreign(a.foreign_pointer, (4.0,), (1,))),
    ("entries", lambda a: ct.Array.from_foreign(a.foreign_pointer, (4,), (True,))),
    ("entries", lambda a: ct.Array.from_foreign(a.foreign_pointer, (ct.uint32(4),), (1,))),
    ("entries", lambda a: ct.Array.from_foreign(a.foreign_pointer, (ct.zeros((1,), ct.int32),), (1,))),
    ("length", lambda a: ct.Array.from_foreign(a.foreign_pointer, (4, 1), (1,))),
    ("length", lambda a: ct.Array.from_foreign(a.foreign_pointer, (4,), (1, 1))),
    ("negative", lambda a: ct.Array.from_foreign(a.foreign_pointer, (-1,), (1,))),
    ("negative", lambda a: ct.Array.from_foreign(a.foreign_pointer, (4,), (-1,)))])])
def test_arrays_at_pointers_that_are_refused(f):
    @ct.kernel
    def k(x):
        f(x)

    refuses("TileTypeError", k, ONE)


@clause("FPTR-3.foreign")
@needs("cpu arrays")
def test_arrays_at_pointers_beyond_the_argument():
    @ct.kernel
    def k(x, n, out):
        a = ct.Array.from_foreign(x.foreign_pointer, (n,), (1,))
        ct.store(out, 0, ct.load(a, 0, 8, padding_mode="NEG_INF"))
        ct.store(a, 0, ct.full((8,), -1, ct.float32))

    memory = counting(16)
    assert run(k, memory[4:8], 8, np.zeros(8, np.float32)).tolist()[:4] == [4, 5, 6, 7]
    assert memory[:4].tolist() == [0, 1, 2, 3] and memory[4:8].tolist() == [-1] * 4


# ------------------------------------------------------------------ raw memory


@clause("RAWMEM-1.attributes", "RAWMEM-1.dropped")
def test_attributes_of_raw_memory():
    @ct.kernel
    def k(x):
        d = x.get_raw_memory().dtype
        ct.static_assert(d == ct.float32)

    accepts(k, ONE)
    for f in (lambda r: r.shape, lambda r: r.strides, lambda r: r.ndim, lambda r: r.size, lambda r: r[0]):
        @ct.kernel
        def wrong(x):
            f(x.get_raw_memory())

        refuses("TileTypeError", wrong, ONE)


@clause("RAWMEM-1.static")
def test_raw_memory_in_static_code():
    @ct.kernel
    def k(x):
        r = x.get_raw_memory()
        ct.static_eval(r)

    refuses("TileTypeError", k, ONE)
