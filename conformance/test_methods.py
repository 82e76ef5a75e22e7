"""Method forms, reflected operators, lists, tuples and dicts, and the static constructs."""

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, needs, refuses, run
from conformance.harness.dtype_names import DTYPES
from conformance.harness.guarded_arrays import guarded, numbers, same
from conformance.harness.tile_code import module
from conformance.harness.type_probes import constant, refused, static

X1, X2 = np.zeros(4, np.int32), np.zeros((4, 4), np.int32)
INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def t24():
    return ct.arange(8, dtype=ct.int32).reshape((2, 4))


def shown(f, shape, dtype=np.int32):
    """The result of a function of tile code."""
    zeros = (0,) * len(shape)

    @ct.kernel
    def k(out):
        t = f()
        ct.static_assert(t.shape == shape)
        ct.store(out, zeros, t)

    return run(k, np.zeros(shape, dtype))


A = numbers((2, 4), start=0)

FORMS = {
    "astype": [(lambda: t24().astype(ct.float32), A.astype(np.float32)),
               (lambda: (t24().astype(ct.float64) / 3).astype(ct.float32, rounding_mode="RZ"), None),
               (lambda: t24().astype(dtype=ct.int8), A.astype(np.int8))],
    "reshape": [(lambda: t24().reshape((4, 2)), A.reshape(4, 2)), (lambda: t24().reshape(shape=(8,)), A.reshape(8))],
    "permute": [(lambda: t24().permute((1, 0)), A.T), (lambda: t24().permute(axes=(1, 0)), A.T),
                (lambda: t24().reshape((2, 2, 2)).permute((2, 0, 1)), A.reshape(2, 2, 2).transpose(2, 0, 1))],
    "transpose": [(lambda: t24().transpose(), A.T), (lambda: t24().transpose(axis0=0, axis1=1), A.T),
                  (lambda: t24().reshape((2, 2, 2)).transpose(0, 2), A.reshape(2, 2, 2).transpose(2, 1, 0))],
    "extract": [(lambda: t24().extract((0, 1), (2, 2)), A[:, 2:]),
                (lambda: t24().extract(index=(1, 0), shape=(1, 4)), A[1:]),
                (lambda: t24().extract((1, ct.bid(0)), (1, 2)), A[1:, :2])],
    "insert": [(lambda: t24().insert((0, 1), ct.full((2, 2), 9, ct.int32)),
        np.array([[0, 1, 9, 9], [4, 5, 9, 9]], np.int32)),
               (lambda: t24().insert(index=(1, 3), value=ct.full((1, 1), 9, ct.int32)),
                np.array([[0, 1, 2, 3], [4, 5, 6, 9]], np.int32))],
}


@pytest.mark.parametrize("f, want", [pytest.param(f, w, marks=clause(f"METH-1.{n}", "METH-1.keyword"))
                                     for n, rows in FORMS.items() for f, w in rows])
def test_methods(f, want):
    if want is None:  # thirds of 0 … 7, toward zero
        want = (A.astype(np.float64) / 3).astype(np.float32)
        want = np.where(want.astype(np.float64) > A / 3, np.nextafter(want, np.float32(0)), want)
        assert (want != (A / 3).astype(np.float32)).any()
    same(shown(f, want.shape, want.dtype), np.ascontiguousarray(want))


@clause("METH-1.astype", "METH-1.reshape", "METH-1.permute", "METH-1.transpose", "METH-1.extract", "METH-1.insert")
def test_methods_are_the_functions():
    @ct.kernel
    def k(out):
        t = t24() * 3 + 1
        ct.store(out, (0, 0), (t.astype(ct.int16) == ct.astype(t, ct.int16)).astype(ct.int32))
        ct.store(out, (1, 0), (t.reshape((4, 2)) == ct.reshape(t, (4, 2))).reshape((2, 4)).astype(ct.int32))
        ct.store(out, (2, 0), (t.permute((1, 0)) == ct.permute(t, (1, 0))).reshape((2, 4)).astype(ct.int32))
        ct.store(out, (3, 0), (t.transpose() == ct.transpose(t)).reshape((2, 4)).astype(ct.int32))
        ct.store(out, (4, 0), (t.extract((0, 0), (2, 4)) == ct.extract(t, (0, 0), (2, 4))).astype(ct.int32))
        v = ct.full((1, 4), 5, ct.int32)
        ct.store(out, (5, 0), (t.insert((1, 0), v) == ct.insert(t, (1, 0), v)).astype(ct.int32))

    assert (run(k, np.zeros((12, 4), np.int32)) == 1).all()


@clause("METH-1.item")
def test_item():
    @ct.kernel
    def k(out):
        for shape in ct.static_iter(((), (1,), (1, 1), (1, 1, 1))):
            s = (ct.full(shape, 5, ct.int32) + ct.bid(0)).item()
            ct.static_assert(s.shape == () and s.dtype == ct.int32)
            ct.store(out, len(shape), s + len(shape))

    assert run(k, np.zeros(4, np.int32)).tolist() == [5, 6, 7, 8]


@clause("METH-1.item.many")
def test_item_of_many():
    refused("TileTypeError", lambda: t24().item())
    refused("TileTypeError", lambda: ct.zeros((2,), ct.int32).item())
    refused("TileTypeError", lambda: ct.zeros((1,), ct.int32).item(0))


@clause("METH-1.bound", "METH-1.tile")
def test_methods_are_values():
    @ct.kernel
    def k(out):
        f, g = t24().reshape, ct.Tile.reshape
        ct.store(out, (0, 0), f((2, 4)))
        ct.store(out, (1, 0), g(t24() + 10, (2, 4)))
        ct.store(out, (2, 0), ct.Tile.astype(t24(), ct.int32))

    same(run(k, np.zeros((6, 4), np.int32)), np.concatenate([A, A + 10, A]))


@clause("METH-1.array", "SLICE-5")
def test_methods_of_arrays():
    @ct.kernel
    def k(x, out):
        s = ct.Array.slice(x, 0, 1, 3)
        f = x.slice
        u = f(axis=0, stop=4, start=2)
        ct.store(out, 0, ct.load(s, 0, 2))
        ct.store(out, 1, ct.load(u, 0, 2))

    assert run(k, numbers(4), np.zeros(4, np.int32)).tolist() == [2, 3, 3, 4]


@clause("METH-1.tile", "METH-1.array", "METH-1.bound")
def test_methods_of_every_class():
    """Called by the class, with the receiver first, and as values."""
    @ct.kernel
    def k(x, out):
        view = ct.Array.tiled_view(x, (2,))
        raw = ct.Array.get_raw_memory(x)
        ct.store(out, 0, ct.TiledView.load(view, 1))
        ct.TiledView.store(x.tiled_view((2,)), (0,), view.load(1) + 10)
        f, g = view.load, raw.load_offset
        ct.store(out, 1, f((0,)))
        ct.store(out, 4, ct.RawArrayMemory.load_offset(raw, 3) + g(0) * 10)
        ct.RawArrayMemory.store_offset(raw, 2, 70)
        ct.store(out, 5, raw.load_offset(offset=2))

    got = run(k, numbers(4), np.zeros(8, np.int32)).tolist()
    assert got == [3, 4, 13, 14, 4 + 130, 70, 0, 0]


@clause("METH-1.unknown", "ARR-4.unknown", "TV-4.exchange")
def test_methods_of_other_classes():
    """Each class has the methods of its own values alone."""
    x = np.zeros(4, np.int32)
    for lines in ("ct.Tile.slice(t, 0, 1, 2)", "ct.Array.reshape(x, (4,))", "ct.TiledView.slice(v, 0, 1, 2)",
                  "ct.RawArrayMemory.load(r, 0)", "ct.TiledView.load_offset(v, 0)", "ct.Tile.load(t, 0)",
                  "ct.Array.load_offset(x, 0)", "ct.TiledView.astype(v, ct.int8)", "t.load(0)", "v.load_offset(0)",
                  "r.load(0)", "x.load(0)", "x.astype(ct.int8)", "v.reshape((2,))", "r.tiled_view((2,))"):
        space = module(f"""
            @ct.kernel
            def kern(x):
                t, v, r = ct.load(x, 0, 4), x.tiled_view((2,)), x.get_raw_memory()
                {lines}
        """)
        refuses("TileTypeError", space["kern"], x)


@clause("METH-1.unknown")
@pytest.mark.parametrize("f", [lambda: t24().sum(), lambda: t24().T, lambda: t24().abs(), lambda: t24().exp(),
                               lambda: t24().__add__(1), lambda: t24().broadcast_to((2, 4)), lambda: t24().view()])
def test_other_methods(f):
    refused("TileTypeError", f)


REFLECTED = {
    "add": (lambda c, t: c + t, ct.add), "sub": (lambda c, t: c - t, ct.sub), "mul": (lambda c, t: c * t, ct.mul),
    "truediv": (lambda c, t: c / t, ct.truediv), "floordiv": (lambda c, t: c // t, ct.floordiv),
    "mod": (lambda c, t: c % t, ct.mod), "pow": (lambda c, t: c ** t, ct.pow),
    "lshift": (lambda c, t: c << t, ct.bitwise_lshift), "rshift": (lambda c, t: c >> t, ct.bitwise_rshift),
    "and": (lambda c, t: c & t, ct.bitwise_and), "or": (lambda c, t: c | t, ct.bitwise_or),
    "xor": (lambda c, t: c ^ t, ct.bitwise_xor),
}
# of 100 and (1, 2, 3, 5)
VALUES = {"add": [101, 102, 103, 105], "sub": [99, 98, 97, 95], "mul": [100, 200, 300, 500],
          "truediv": [100.0, 50.0, float(np.float32(100 / 3)), 20.0], "floordiv": [100, 50, 33, 20],
          "mod": [0, 0, 1, 0], "pow": [100, 10000, 1000000, 1410065408], "lshift": [200, 400, 800, 3200],
          "rshift": [50, 25, 12, 3], "and": [0, 0, 0, 4], "or": [101, 102, 103, 101], "xor": [101, 102, 103, 97]}


@pytest.mark.parametrize("name", [pytest.param(n, marks=clause(f"METH-2.{n}")) for n in REFLECTED])
def test_reflected_operators(name):
    by_operator, function = REFLECTED[name]

    @ct.kernel
    def k(x, n, out):
        t = ct.load(x, 0, 4)
        ct.store(out, 0, by_operator(100, t))
        ct.store(out, 1, function(100, t))
        ct.store(out, 2, by_operator(n, t))
        ct.store(out, 3, by_operator(ct.int32(100), t))

    out = np.zeros(16, np.float32 if name == "truediv" else np.int32)
    assert run(k, np.array([1, 2, 3, 5], np.int32), 100, out).tolist() == VALUES[name] * 4


@clause("METH-2.divmod")
def test_reflected_divmod():
    @ct.kernel
    def k(x, out):
        q, r = divmod(100, ct.load(x, 0, 4))
        ct.store(out, 0, q)
        ct.store(out, 1, r)

    out = run(k, np.array([1, -7, 7, 200], np.int32), np.zeros(8, np.int32))
    assert out.tolist() == [100, -15, 14, 0, 0, -5, 2, 100]


@clause("METH-2.compare")
def test_reflected_comparisons():
    @ct.kernel
    def k(x, out):
        t = ct.load(x, 0, 4)
        for n, (a, b) in ct.static_iter(enumerate(PAIRS)):
            ct.store(out, 2 * n, a(2, t))
            ct.store(out, 2 * n + 1, b(2, t))

    out = run(k, np.array([1, 2, 3, -4], np.int32), np.zeros(48, bool)).reshape(6, 2, 4)
    want = [[False, True, False, False], [True, False, True, True], [False, False, True, False],
            [False, True, True, False], [True, False, False, True], [True, True, False, True]]
    for n in range(6):
        assert out[n, 0].tolist() == out[n, 1].tolist() == want[n]


PAIRS = (
    (lambda c, t: c == t, ct.equal),
    (lambda c, t: c != t, ct.not_equal),
    (lambda c, t: c < t, ct.less),
    (lambda c, t: c <= t, ct.less_equal),
    (lambda c, t: c > t, ct.greater),
    (lambda c, t: c >= t, ct.greater_equal),
)


@clause("METH-3.axis", "METH-3.builtin")
def test_max_with_two_arguments():
    @ct.kernel
    def k(x, out):
        t = ct.load(x, (0, 0), (2, 4))
        ct.store(out, 0, ct.max(t, 0))
        ct.store(out, 1, ct.min(t, 0))
        a, b = t.extract((0, 0), (1, 4)).reshape((4,)), t.extract((1, 0), (1, 4)).reshape((4,))
        ct.store(out, 2, max(a, b))
        ct.store(out, 3, ct.maximum(a, b))
        ct.store(out, 4, min(a, b))
        ct.store(out, 5, ct.minimum(a, b))

    out = run(k, np.array([[1, 5, 3, -2], [4, 2, 3, -9]], np.int32), np.zeros(24, np.int32)).reshape(6, 4)
    high, low = [4, 5, 3, -2], [1, 2, 3, -9]
    assert out.tolist() == [high, low, high, high, low, low]


@clause("METH-3.tile")
def test_max_of_two_tiles():
    refused("TileTypeError", lambda: ct.max(t24(), t24()))
    refused("TileTypeError", lambda: ct.min(t24(), t24()))


# ------------------------------------------------------------------ lists of arrays


@clause("LIST-1.len", "LIST-1.item", "LIST-1.width")
@pytest.mark.parametrize("d", INTEGERS)
def test_lists(d):
    dtype = DTYPES[d]

    @ct.kernel
    def k(xs, out):
        n = len(xs)
        ct.static_assert(n.dtype == ct.int32 and n.shape == ())
        b = ct.bid(0)
        x = xs[(2 - b).astype(dtype)]
        ct.store(out, (b, 0), (ct.load(x, 0, 4) + 1000 * n).reshape((1, 4)))
        ct.store(out, (b + 3, 0), (ct.load(xs[dtype(1)], 0, 4) + x.shape[0]).reshape((1, 4)))

    xs = [numbers(4), numbers(8, start=100), guarded(numbers(5, start=200), "gaps").array]
    out = run(k, xs, np.zeros((6, 4), np.int32), grid=(3,))
    for b in range(3):
        same(out[b], xs[2 - b][:4] + 3000)
        same(out[b + 3], xs[1][:4] + len(xs[2 - b]))


@clause("LIST-1.item")
@pytest.mark.parametrize("diverge", [False, True], ids=["all", "some"])
def test_every_access_to_items(diverge):
    """Stores, gathers, scatters and atomics on an item that depends on the block."""
    def body(xs, out, b):
        x = xs[(b * b + 1) % 3]
        t = ct.load(x, (b % 2, 0), (2, 4), padding_mode=ct.PaddingMode.ZERO)
        i = ct.arange(4, dtype=ct.int32)
        g = ct.gather(x, (b % 2, i), padding_value=-1)
        old = ct.atomic_add(xs[b], (0, i), 10 * b)
        ct.scatter(xs[b], (1, i), old)
        ct.store(xs[b], (1, 0), ct.full((2, 2), b, ct.int32))
        ct.store(out, (b, 0, 0), t.reshape((1, 2, 4)))
        ct.store(out, (b, 1, 0), g.reshape((1, 1, 4)))

    def whole(xs, out):
        body(xs, out, ct.bid(0))

    def some(xs, out):
        b = ct.bid(0)
        if b != 1:
            body(xs, out, b)

    shapes = [(3, 4), (5, 3), (2, 6)]
    for b in range(3):
        xs = [guarded(numbers(s, start=100 * (n + 1)), layout)
              for n, (s, layout) in enumerate(zip(shapes, ("contiguous", "transposed", "gaps")))]
        want, out, expected = [x.array.copy() for x in xs], np.full((3, 3, 4), -5, np.int32), np.full((3, 3, 4), -5,
            np.int32)

        @ct.kernel
        def one(xs, out, only):
            b = ct.bid(0)
            if b == only:
                body(xs, out, b)

        launch(one, [x.array for x in xs], out, b, grid=(3,))
        source = want[(b * b + 1) % 3].copy()
        for r, c in np.ndindex(2, 4):
            at = (b % 2 * 2 + r, c)
            expected[b, r, c] = source[at] if at[0] < source.shape[0] and c < source.shape[1] else 0
        for c in range(4):
            expected[b, 1, c] = source[b % 2, c] if c < source.shape[1] else -1
            if c < want[b].shape[1]:
                want[b][1, c] = want[b][0, c]
                want[b][0, c] += 10 * b
        rows = want[b][2:4, :2]
        rows[...] = b
        same(out, expected)
        for x, w in zip(xs, want):
            x.check(w)
    xs = [numbers(s) for s in shapes]
    launch(ct.kernel(some if diverge else whole), xs, np.zeros((3, 3, 4), np.int32), grid=(3,))
    for n, (x, s) in enumerate(zip(xs, shapes)):
        same(x[0, :4], numbers(s)[0, :4] + (0 if diverge and n == 1 else 10 * n))


@clause("LIST-1.refused")
@pytest.mark.parametrize("call", [lambda xs: xs[0.0], lambda xs: xs[True], lambda xs: xs[0:1], lambda xs: xs[None],
                                  lambda xs: xs[ct.zeros((1,), ct.int32)], lambda xs: xs["a"], lambda xs: xs[0, 0]])
def test_what_is_no_list_index(call):
    @ct.kernel
    def k(xs):
        call(xs)

    refuses("TileTypeError", k, [X1, X1])


@clause("LIST-1.negative")
def test_a_negative_constant_list_index():
    @ct.kernel
    def k(xs):
        xs[-1]

    refuses("TileValueError", k, [X1, X1])


@needs("safe memory")
@clause("LIST-1.range")
@pytest.mark.parametrize("index", [-1, 2, 2**31 - 1, -(2**31)])
def test_list_indices_out_of_range(index):
    @ct.kernel
    def k(xs, i, out):
        x = xs[i]
        ct.store(out, 0, ct.load(x, 0, 4, padding_mode=ct.PaddingMode.ZERO))
        ct.store(out, 4, x.shape[0])
        ct.store(x, 0, 9)
        ct.scatter(x, ct.arange(4, dtype=ct.int32), 9)

    x, y = guarded(numbers(4)), guarded(numbers(4))
    out = np.full(5, 7, np.int32)
    launch(k, [x.array, y.array], index, out)
    assert out.tolist() == [0] * 5
    x.check(numbers(4))
    y.check(numbers(4))


@pytest.mark.parametrize("body", [
    pytest.param(lambda xs: iterate(xs), marks=clause("LIST-1.iter")),
    pytest.param(lambda xs: 1 in xs, marks=clause("LIST-1.in")),
    pytest.param(lambda xs: ct.static_eval(len(xs)), marks=clause("LIST-1.static")),
])
def test_what_lists_do_not_do(body):
    @ct.kernel
    def k(xs):
        body(xs)

    refuses("TileTypeError", k, [X1, X1])


def iterate(xs):
    for _ in xs:
        pass


# ------------------------------------------------------------------ tuples and dicts


@clause("TUP-1.len")
def test_the_length_of_a_tuple():
    @ct.kernel
    def k(p, out):
        n = len(p)
        ct.static_assert(n == 3)
        ct.store(out, 0, ct.full((len((1, 2)),), n, ct.int32))

    assert run(k, (1, 2.0, X1), np.zeros(2, np.int32)).tolist() == [3, 3]
    assert constant(lambda: len(())) == (0, ct.int32)


def keywords(**d):
    return d


@clause("DICT-1.item", "DICT-1.in", "DICT-1.get", "DICT-1.default")
def test_dicts():
    assert static(lambda: keywords(a=1, b="x")["b"]) == "x"
    assert constant(lambda: keywords(a=1, b=2)["a"]) == (1, ct.int32)
    assert constant(lambda: "a" in keywords(a=1)) == (True, ct.bool_)
    assert constant(lambda: "c" in keywords(a=1)) == (False, ct.bool_)
    assert constant(lambda: keywords(a=1).get("a")) == (1, ct.int32)
    assert constant(lambda: keywords(a=1).get("a", 5)) == (1, ct.int32)
    assert constant(lambda: keywords(a=1).get("c", 5)) == (5, ct.int32)
    assert static(lambda: keywords(a=1).get("c")) is None


@clause("DICT-1.iter", "DICT-1.forward")
def test_dicts_are_iterated_and_forwarded():
    def names(**d):
        out = ""
        for n in ct.static_iter(d):
            out = out + n
        return out

    def both(b, a):
        return a - b

    assert static(lambda: names(z=1, a=2, m=3)) == "zam"
    assert constant(lambda: both(**keywords(a=7, b=2))) == (5, ct.int32)


def assign():
    d = keywords(a=1)
    d["a"] = 2


@pytest.mark.parametrize("f", [
    pytest.param(lambda: keywords(a=1)["b"], marks=clause("DICT-1.missing")),
    pytest.param(assign, marks=clause("DICT-1.assign")),
    pytest.param(lambda: len(keywords(a=1)), marks=clause("DICT-1.len")),
    pytest.param(lambda: keywords(a=1).keys(), marks=clause("DICT-1.keys"))])
def test_what_dicts_do_not_do(f):
    refused("TileTypeError", f)


# ------------------------------------------------------------------ static constructs


@clause("STATIC-1.eval", "STATIC-1.constant")
def test_static_eval_and_ensure_constant():
    assert constant(lambda: ct.static_eval(sum([1, 2, 3]))) == (6, ct.int32)
    assert constant(lambda: ct.ensure_constant(5)) == (5, ct.int32)
    refused("TileStaticAssertionError", lambda: ct.ensure_constant(ct.bid(0)))


def good_assertion():
    ct.static_assert(1 < 2)


def bad_assertion():
    ct.static_assert(2 < 1)


def raising():
    raise ct.static_exception(ValueError("no"))


@clause("STATIC-1.assert", "STATIC-1.exception")
def test_static_assert_and_exception():
    @ct.kernel
    def k():
        good_assertion()

    accepts(k)
    refused("TileStaticAssertionError", bad_assertion)
    refused("StaticException", raising)


@clause("STATIC-1.iter")
def test_static_iter():
    @ct.kernel
    def k(out):
        for n in ct.static_iter([0, 1, 3]):
            ct.store(out, n, n + 5)

    assert run(k, np.zeros(4, np.int32)).tolist() == [5, 6, 0, 8]
