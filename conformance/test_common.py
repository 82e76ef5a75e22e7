"""Rules common to all operations."""

import ml_dtypes
import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, refuses, run
from conformance.harness.dtype_names import NUMPY
from conformance.harness.guarded_arrays import guarded, numbers, same
from conformance.harness.type_probes import constant, refused

X1 = np.zeros(4, np.int32)


def t4():
    return ct.arange(4, dtype=ct.int32)


UNARY = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil",
         "isnan", "negative", "abs", "bitwise_not", "sum", "prod", "max", "min", "argmax", "argmin", "cumsum",
         "cumprod")
BINARY = ("floordiv", "mod", "pow", "minimum", "maximum", "bitwise_and", "bitwise_or", "bitwise_xor",
          "bitwise_lshift", "bitwise_rshift", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
          "atan2")
ARITHMETIC = ("add", "sub", "mul", "truediv")


@pytest.mark.parametrize("name", [*UNARY, *BINARY, *(pytest.param(n, marks=clause("GEN-1.arithmetic"))
                                                     for n in ARITHMETIC)])
@clause("GEN-1.kind")
def test_operands_of_the_wrong_kind(name):
    op, wrong = getattr(ct, name), (None, "a", ct.int32)

    for bad in wrong:
        if name in UNARY:
            refused("TileTypeError", lambda bad=bad: op(bad))
        else:
            refused("TileTypeError", lambda bad=bad: op(bad, t4()))
            refused("TileTypeError", lambda bad=bad: op(t4(), bad))

    def of_array(x):
        if name in UNARY:
            op(x)
        else:
            op(x, t4())

    def of_tuple():
        if name in UNARY:
            op((1, 2))
        else:
            op(t4(), (1, 2))

    @ct.kernel
    def k(x):
        of_array(x)

    refuses("TileTypeError", k, X1)
    refused("TileTypeError", of_tuple)


@clause("GEN-1.text")
@pytest.mark.parametrize("f, match", [
    (lambda: ct.exp(None), r'Invalid argument "(x|#1)" of exp\(\)'),
    (lambda: ct.floor("a"), r'Invalid argument "(x|#1)" of floor\(\)'),
    (lambda: ct.bid("a"), r'Invalid argument "(axis|#1)" of bid\(\)'),
    (lambda: ct.sum(t4(), axis="a"), r'Invalid argument "axis" of sum\(\)'),
    (lambda: ct.gather(t4(), 0), r'Invalid argument "(array|#1)" of gather\(\)')])
def test_the_text_of_a_refusal(f, match):
    refused("TileTypeError", f, match=match)


OPERATORS = (
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x // y,
    lambda x, y: x % y, lambda x, y: x ** y, lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y,
    lambda x, y: x << y, lambda x, y: x >> y, lambda x, y: x @ y, lambda x, y: x < y, lambda x, y: x >= y,
)


@clause("GEN-1.operator")
@pytest.mark.parametrize("f", OPERATORS)
def test_operators_on_the_wrong_kind(f):
    @ct.kernel
    def left(x):
        f(x, t4())

    @ct.kernel
    def right(x):
        f(t4(), x)

    for k in (left, right):
        refuses("TileTypeError", k, X1)
    for bad in (None, "a", (1, 2)):
        refused("TileTypeError", lambda bad=bad: f(t4(), bad))
        refused("TileTypeError", lambda bad=bad: f(bad, t4()))


@clause("GEN-2.constant")
@pytest.mark.parametrize("f", [
    lambda n: ct.bid(n), lambda n: ct.sum(t4(), n), lambda n: ct.sum(t4(), 0, keepdims=n > 0), lambda n: ct.full((n,),
        1, ct.int32),
    lambda n: ct.reshape(t4(), (n,)), lambda n: ct.permute(t4(), (n,)), lambda n: ct.cat((t4(), t4()), n),
    lambda n: ct.cumsum(t4(), 0, reverse=n > 0), lambda n: ct.exp2(1.5 + n, flush_to_zero=n > 0),
    lambda n: ct.arange(n, dtype=ct.int32)])
def test_parameters_that_need_constants(f):
    @ct.kernel
    def k(n):
        f(n)

    refuses("TileTypeError", k, 1)


@clause("GEN-2.member", "GEN-2.name")
@pytest.mark.parametrize("mode", [ct.RoundingMode.RZ, "RZ"], ids=str)
def test_enum_parameters(mode):
    @ct.kernel
    def k(x, y, out):
        ct.store(out, 0, ct.add(ct.load(x, 0, 1), ct.load(y, 0, 1), rounding_mode=mode))

    out = run(k, np.ones(1, np.float32), np.full(1, 1.5 * 2.0**-24, np.float32), np.zeros(1, np.float32))
    assert out[0] == 1.0


@pytest.mark.parametrize("f", [
    *(pytest.param(f, marks=clause("GEN-2.value")) for f in (
        lambda x: ct.add(1.5 + ct.bid(0), 2.5, rounding_mode="zero"),
        lambda x: ct.load(x, 0, 4, padding_mode="zero"), lambda x: ct.load(x, 0, 4, memory_order="weak"),
        lambda x: ct.atomic_add(x, 0, 1, memory_scope="device"), lambda x: ct.load(x, 0, 4, padding_mode="Zero"))),
    *(pytest.param(f, marks=clause("GEN-2.enum")) for f in (
        lambda x: ct.add(1.5 + ct.bid(0), 2.5, rounding_mode=ct.PaddingMode.ZERO),
        lambda x: ct.load(x, 0, 4, padding_mode=ct.RoundingMode.RZ), lambda x: ct.load(x, 0, 4, padding_mode=0),
        lambda x: ct.load(x, 0, 4, padding_mode=None)))])
def test_what_is_no_member(f):
    @ct.kernel
    def k(x):
        f(x)

    refuses("TileTypeError", k, X1)


# ------------------------------------------------------------------ effects


@clause("GEN-3.pure")
def test_operands_stay_as_they_are():
    @ct.kernel
    def k(x, out):
        t = ct.load(x, (0, 0), (4, 4))
        u = t.insert((0, 0), ct.full((2, 2), -1, ct.int32))
        -t, t + u, ct.cumsum(t, 0), ct.sum(t), t.transpose(), ct.cat((t, u), 0), abs(t), ct.where(t > 3, t, u)
        ct.bitwise_not(t)
        ct.store(out, (0, 0), t)

    x = guarded(numbers((4, 4)))
    same(run(k, x.array, np.zeros((4, 4), np.int32)), numbers((4, 4)))
    x.check(numbers((4, 4)))


@clause("LOAD-8")
def test_a_load_whose_result_is_unused():
    @ct.kernel
    def k(x, out):
        ct.load(x, 0, 4)
        ct.gather(x, 0)
        ct.store(out, 0, 1)

    x = guarded(numbers(4))
    assert run(k, x.array, np.zeros(1, np.int32))[0] == 1
    x.check(numbers(4))


@clause("GEN-3.store", "GEN-3.scatter", "GEN-3.atomic", "GEN-3.raw", "GEN-3.view")
def test_writes_take_place():
    @ct.kernel
    def k(x):
        i, one = t4(), ct.full((4,), 1, ct.int32)
        ct.store(x, (0, 0), one[None, :])
        ct.scatter(x, (1, i), one)
        ct.store_advanced_indexing(x, (ct.full((1,), 2, ct.int32), ct.Slice(0, 4)), one[None, :])
        ct.atomic_add(x, (3, i), one)
        ct.atomic_cas(x, (4, i), 0, one)
        ct.atomic_xchg(x, (5, i), one)
        raw = x.get_raw_memory()
        raw.store_offset(i + 24, one)
        raw.atomic_add_offset(i + 28, one)
        v = x.tiled_view((1, 4))
        v.store((8, 0), one)
        v.atomic_store_add((9, 0), one)
        ct.atomic_max(x, (10, i), one)
        raw.atomic_or_offset(i + 44, one)
        raw.atomic_cas_offset(i + 48, 0, one)

    assert run(k, np.zeros((13, 4), np.int32)).tolist() == [[1] * 4] * 13


@clause("GEN-3.print")
def test_prints_take_place(capfd):
    @ct.kernel
    def k():
        print("here")
        ct.printf("%d\n", 5)

    launch(k)
    assert capfd.readouterr().out == "here\n5\n"


# ------------------------------------------------------------------ arithmetic

BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64}


def wrap(d, v):
    v &= (1 << BITS[d]) - 1
    return v - (1 << BITS[d]) if d[0] == "i" and v >> (BITS[d] - 1) else v


@clause("GEN-4.add", "GEN-4.sub", "GEN-4.mul", "GEN-4.neg", "GEN-4.shl")
@pytest.mark.parametrize("d", BITS)
def test_integers_wrap(d):
    @ct.kernel
    def k(x, y, out):
        a, b = ct.load(x, 0, 64), ct.load(y, 0, 64)
        ct.store(out, 0, a + b)
        ct.store(out, 1, a - b)
        ct.store(out, 2, a * b)
        ct.store(out, 3, -a)
        ct.store(out, 4, a << (b & (BIT_COUNT - 1)))

    BIT_COUNT = BITS[d]
    dtype = NUMPY[d]
    info = np.iinfo(dtype)
    special = [info.min, info.max, 0, 1, info.max // 3, info.min + 1, 7, 100]
    x = np.repeat(np.array(special, dtype), 8)
    y = np.tile(np.array(special, dtype), 8)
    out = run(k, x, y, np.zeros(320, dtype)).reshape(5, 64).tolist()
    for n, (a, b) in enumerate(zip(x.tolist(), y.tolist())):
        want = [a + b, a - b, a * b, -a, a << (b & (BITS[d] - 1))]
        assert [row[n] for row in out] == [wrap(d, v) for v in want], (a, b)


# (x, y, x + y, x * y): ties to even, both ways, and values just beyond a tie
ROUNDED = {
    "f16": (np.float16, [(2048, 1, 2048, 2048), (2050, 1, 2052, 2050), (2048, 1.0009765625, 2050, 2050),
                         (1.0009765625, 1.0009765625, 2.001953125, 1.001953125), (65504, 16, np.inf, np.inf)]),
    "bf16": (ml_dtypes.bfloat16, [(256, 1, 256, 256), (258, 1, 260, 258), (256, 1.0078125, 258, 258),
                                  (1.0078125, 1.0078125, 2.015625, 1.015625)]),
    "f32": (np.float32, [(2**24, 1, 2**24, 2**24), (2**24 + 2, 1, 2**24 + 4, 2**24 + 2),
                         (2**24, 1 + 2**-23, 2**24 + 2, 2**24 + 2), (1 + 2**-23, 1 + 2**-23, 2 + 2**-22, 1 + 2**-22),
                         (3e38, 3e38, np.inf, np.inf)]),
    "f64": (np.float64, [(2**53, 1, 2**53, 2**53), (2**53 + 2, 1, 2**53 + 4, 2**53 + 2),
                         (1 + 2**-52, 1 + 2**-52, 2 + 2**-51, 1 + 2**-51), (0.1, 0.2, 0.30000000000000004,
                             0.020000000000000004)]),
}


@pytest.mark.parametrize("d", [pytest.param(d, marks=clause(f"GEN-5.{d}")) for d in ROUNDED])
def test_floats_are_rounded(d):
    dtype, rows = ROUNDED[d]

    @ct.kernel
    def k(x, y, out):
        a, b = ct.load(x, 0, 8), ct.load(y, 0, 8)
        ct.store(out, 0, a + b)
        ct.store(out, 1, a * b)

    x, y = (np.array([r[c] for r in rows] + [0] * (8 - len(rows)), np.float64).astype(dtype) for c in (0, 1))
    out = run(k, x, y, np.zeros(16).astype(dtype)).astype(np.float64).reshape(2, 8)
    assert out[0, :len(rows)].tolist() == [r[2] for r in rows]
    assert out[1, :len(rows)].tolist() == [float(np.float64(r[3])) if d != "f32" else r[3] for r in rows]


@clause("GEN-5.subnormal")
@pytest.mark.parametrize("d, least", [("f16", 2.0**-24), ("bf16", 2.0**-133), ("f32", 2.0**-149), ("f64", 5e-324)])
def test_subnormals_are_kept(d, least):
    @ct.kernel
    def k(x, out):
        a = ct.load(x, 0, 4)
        ct.store(out, 0, a + a)
        ct.store(out, 1, a * 3)
        ct.store(out, 2, -a)

    x = np.array([least, 3 * least, -least, 5 * least]).astype(NUMPY[d])
    out = run(k, x, np.zeros(12).astype(NUMPY[d])).astype(np.float64) / least
    assert out.tolist() == [2, 6, -2, 10, 3, 9, -3, 15, -1, -3, 1, -5]


@clause("GEN-6.shape", "GEN-6.dtype")
@pytest.mark.parametrize("name", [n for n in (*ARITHMETIC, *BINARY) if n not in ("atan2",)])
def test_results_have_the_common_shape_and_dtype(name):
    op = getattr(ct, name)
    bits, compare = name.startswith("bitwise"), name in BINARY[10:16]
    a, b = (ct.int32, ct.int32) if bits else (ct.int16, ct.float32)
    want = ct.bool_ if compare else b

    @ct.kernel
    def k():
        r = op(ct.ones((2, 1, 4), a), ct.ones((8, 1), b))
        ct.static_assert(r.shape == (2, 8, 4) and r.dtype == want)
        s = op(ct.ones((4,), b), ct.ones((), a) if bits else ct.bid(0).astype(a))
        ct.static_assert(s.shape == (4,) and s.dtype == want)

    accepts(k)


# ------------------------------------------------------------------ folding


@clause("GEN-7.loose")
def test_loose_constants_fold():
    assert constant(lambda: ct.add(2, 3)) == (5, ct.int32)
    assert constant(lambda: ct.bitwise_xor(6, 3)) == (5, ct.int32)
    assert constant(lambda: ct.less(2, 3)) == (True, ct.bool_)
    assert constant(lambda: ct.sqrt(4.0)) == (2.0, ct.float32)
    assert constant(lambda: ct.negative(2)) == (-2, ct.int32)


@clause("GEN-7.strict")
def test_strict_constants_fold():
    assert constant(lambda: ct.int8(100) + ct.int8(100)) == (-56, ct.int8)
    assert constant(lambda: ct.bitwise_and(ct.uint8(6), ct.uint8(3))) == (2, ct.uint8)
    assert constant(lambda: ct.less(ct.int16(2), 3)) == (True, ct.bool_)
    assert constant(lambda: ct.sqrt(ct.float16(4.0))) == (2.0, ct.float16)


@clause("GEN-7.options")
def test_options_play_no_part_in_folding():
    assert constant(lambda: ct.add(2, 3, rounding_mode=ct.RoundingMode.RZ)) == (5, ct.int32)
    assert constant(lambda: ct.mul(2.5, 2, flush_to_zero=True)) == (5.0, ct.float32)
    assert constant(lambda: ct.add(ct.int32(2), ct.int32(3), rounding_mode="RP")) == (5, ct.int32)
    assert constant(lambda: ct.maximum(1, 2, propagate_nan=True)) == (2, ct.int32)
