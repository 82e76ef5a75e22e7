"""The compiled steps of an op against its meaning: the same bits, for every op that has a rule, and every dtype."""

import numpy as np
import pytest

from cutile import compiled
from cutile.dtypes import (
    bfloat16,
    bool_,
    float8_e4m3fn,
    float16,
    float32,
    float64,
    info,
    int8,
    int16,
    int32,
    int64,
    tfloat32,
    uint8,
    uint16,
    uint32,
    uint64,
)
from cutile.interp.codegen.steps import BETWEEN, RULES, Steps, format_of
from cutile.ir.nodes import Op, Value
from cutile.ops import _numeric
from cutile.ops._constants import compute
from cutile.ops._op import Sig, lookup
from cutile.spans import Span
from cutile.types import RoundingMode, tile_type

pytestmark = pytest.mark.skipif(not compiled.steps(), reason="the C extension was not built, or this CPU has none")

INTS = (int8, uint8, int16, uint16, int32, uint32, int64, uint64)
FLOATS = (float16, bfloat16, float32, float64)
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
N = 3000
rng = np.random.default_rng(7)


def values(dtype):
    """Values of a dtype as carriers: the edges, small ones, and ones of all magnitudes."""
    carrier = info(dtype).carrier
    if carrier == np.bool_:
        return rng.integers(0, 2, N).astype(bool)
    if carrier.kind in "iu":
        limits = np.iinfo(carrier)
        edges = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 2, 3]
        small = rng.integers(max(limits.min, -9), 10, N // 2)
        x = rng.integers(0, 256, (N, carrier.itemsize), np.uint8).view(carrier).ravel()
        x[:len(edges)], x[len(edges):len(small)] = edges, small[len(edges):]
        return rng.permutation(x)
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 32767.5, 65535.5, -32768.5, 2.0**31, -(2.0**31), 1e9,
             2.0**63, 127.9, 255.9, -0.9]
    x = rng.standard_normal(N) * 10.0 ** rng.integers(-6, 12, N)
    x[:len(edges)] = edges
    return _numeric.round_to(dtype, rng.permutation(x)).astype(carrier)


def node(name, operands, result, **attrs):
    o = lookup(name)
    given = {k: v for k, v in (o.meaning.__kwdefaults__ or {}).items() if k != "out"}
    return Op(o, tuple(Value(tile_type(d, (1,))) for d in operands), given | attrs,
              (Value(tile_type(result, (1,))),), Span("a.py", 1, 0, 1, 5, "f"))


def compiled_form(n):
    steps = Steps()
    x = [steps.given(format_of(v.type.dtype)) for v in n.operands]
    y = RULES[n.op.name](steps, n, *x)
    return None if y is None else steps.function(y, format_of(n.results[0].type.dtype))


def assert_agrees(n, operands):
    function = compiled_form(n)
    assert function is not None, f"{n.op.name} of {[v.type.dtype.name for v in n.operands]} has no steps"
    sig = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
    with np.errstate(all="ignore"):
        want = np.asarray(compute(n.op, sig, operands, n.attrs))
    got = function(*operands)
    assert got.dtype == want.dtype
    word = f"u{got.dtype.itemsize}"
    different = (got.view(word) != want.view(word)) & ~((got != got) & (want != want))
    i = int(different.argmax())
    assert not different.any(), f"{n.op.name}{tuple(x[i] for x in operands)} is {got[i]!r} instead of {want[i]!r}"


def cases():
    for d in (*INTS, *FLOATS):
        yield from ((name, (d, d), d) for name in ("add", "sub", "mul"))
        yield from ((name, (d,), d) for name in ("negative", "abs"))
    for d in (*INTS, *FLOATS, bool_):
        yield from ((name, (d, d), bool_) for name in COMPARISONS)
        yield "where", (bool_, d, d), d
    for d in (*INTS, bool_):
        yield from ((name, (d, d), d) for name in BITS)
        yield "bitwise_not", (d,), d
    for d in INTS:
        yield from ((name, (d, d), d) for name in ("bitwise_lshift", "bitwise_rshift", "minimum", "maximum"))
    for d in (int8, uint8, int16, uint16, int32):
        yield from ((name, (d, d), d) for name in ("floordiv", "mod"))
    for d in FLOATS:
        yield "truediv", (d, d), d
        yield "fma", (d, d, d), d
        yield "isnan", (d,), bool_
        yield from ((name, (d,), d) for name in ("sqrt", "floor", "ceil"))
    yield "logical_not", (bool_,), bool_


@pytest.mark.parametrize(("name", "operands", "result"), list(cases()),
                         ids=lambda x: x if isinstance(x, str) else getattr(x, "name", "-"))
def test_an_op_and_its_steps_agree(name, operands, result):
    assert_agrees(node(name, operands, result), [values(d) for d in operands])


def test_every_rule_is_compared():
    assert {name for name, *_ in cases()} | {"astype"} == set(RULES)


@pytest.mark.parametrize("propagate_nan", [False, True])
@pytest.mark.parametrize("name", ["minimum", "maximum"])
@pytest.mark.parametrize("d", FLOATS, ids=lambda d: d.name)
def test_extremes_of_floats(d, name, propagate_nan):
    assert_agrees(node(name, (d, d), d, propagate_nan=propagate_nan), [values(d), values(d)])


@pytest.mark.parametrize("dst", [bool_, *INTS, *FLOATS, tfloat32, float8_e4m3fn], ids=lambda d: d.name)
def test_casts(dst):
    for src in (bool_, *INTS, *FLOATS):
        n = node("astype", (src,), dst)
        through_another = dst in (uint32, int64, uint64) and info(src).floating or (
            info(dst).floating and not info(src).floating and dst not in (float32, float64)
            and (dst.bitwidth <= 8 or info(src).carrier.itemsize == 8))
        if through_another:
            assert compiled_form(n) is None
        else:
            assert_agrees(n, [values(src)])


@pytest.mark.parametrize("name", ["floordiv", "mod", "bitwise_lshift", "bitwise_rshift"])
@pytest.mark.parametrize("d", [int8, uint8, int16, uint16, int32], ids=lambda d: d.name)
def test_one_divisor_or_amount_for_all(name, d):
    limits = np.iinfo(d.name)
    given = {*range(-20, 21), 64, 100, -64, -128, limits.min, limits.min + 1, limits.max, limits.max - 1,
             limits.max // 2, *map(int, rng.integers(limits.min, limits.max, 60))}
    x = values(d)
    for y in sorted(y for y in given if limits.min <= y <= limits.max):
        assert_agrees(node(name, (d, d), d), [x, np.full_like(x, y)])


@pytest.mark.parametrize("d", [int8, uint8], ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["floordiv", "mod"])
def test_every_quotient_of_bytes(name, d):
    every = np.arange(256).astype(np.uint8).view(d.name)
    for y in every:
        assert_agrees(node(name, (d, d), d), [every, np.full_like(every, y)])


@pytest.mark.parametrize("d", INTS, ids=lambda d: d.name)
def test_the_smaller_of_a_larger_one_is_one_step(d):
    larger, smaller = node("maximum", (d, d), d), node("minimum", (d, d), d)
    steps = Steps()
    x, low, high = (steps.given(format_of(d)) for _ in range(3))
    y = RULES["minimum"](steps, smaller, RULES["maximum"](steps, larger, x, low), high)
    a, b, c = values(d), values(d), values(d)
    assert steps.made_by(y)[0].startswith("maximum, minimum")
    assert (steps.function(y, format_of(d))(a, b, c) == np.minimum(np.maximum(a, b), c)).all()


@pytest.mark.parametrize("d", [bool_, *INTS, *FLOATS], ids=lambda d: d.name)
def test_not_of_a_number_is_one_step(d):
    steps = Steps()
    x = steps.given(format_of(d))
    y = RULES["logical_not"](steps, node("logical_not", (bool_,), bool_),
                             RULES["astype"](steps, node("astype", (d,), bool_), x))
    a = values(d)
    assert (steps.function(y, "?")(a) == np.logical_not(a)).all()


@pytest.mark.parametrize("d", [bool_, int8, uint8, int16, uint16, int32, float16, float32, float64],
                         ids=lambda d: d.name)
def test_a_root_in_float64_as_float32(d):
    """Of a number that float32 holds it is the root in float32; of another it is computed in float64."""
    steps = Steps()
    x = steps.given(format_of(d))
    wide = RULES["astype"](steps, node("astype", (d,), float64), x)
    root = RULES["sqrt"](steps, node("sqrt", (float64,), float64), wide)
    y = RULES["astype"](steps, node("astype", (float64,), float32), root)
    a = values(d) if d is bool_ else np.concatenate([values(d), np.arange(100)]).astype(info(d).carrier)
    assert (steps.made_by(y)[0] == "sqrt float32") == (d not in (int32, float64))
    with np.errstate(all="ignore"):
        want = np.sqrt(a.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(steps.function(y, "f")(a), want)


def test_what_has_no_steps():
    assert compiled_form(node("add", (float32, float32), float32, rounding_mode=RoundingMode.RZ)) is None
    assert compiled_form(node("mul", (float32, float32), float32, flush_to_zero=True)) is None
    assert compiled_form(node("maximum", (float32, float32), float32, flush_to_zero=True)) is None
    assert compiled_form(node("fma", (float32,) * 3, float32, rounding_mode=RoundingMode.RP)) is None
    assert compiled_form(node("sqrt", (float32,), float32, rounding_mode=RoundingMode.RM)) is None
    assert compiled_form(node("astype", (float64,), float32, rounding_mode=RoundingMode.RZ)) is None
    assert compiled_form(node("floordiv", (float32, float32), float32)) is None
    assert compiled_form(node("floordiv", (int64, int64), int64)) is None


def test_a_step_on_nothing_is_a_copy():
    steps = Steps()
    x = steps.given("i")
    a = np.arange(5, dtype=np.int32)
    got = steps.function(x, "i")(a)
    assert got is not a and (got == a).all()


def test_arrays_between_steps_are_used_again_until_there_are_too_many():
    def alternating(count):
        steps = Steps()
        x = steps.given("i")
        kept = [steps.add("negative int32", x) for _ in range(count)]
        y = kept[0]
        for z in kept[1:]:
            y = steps.add("add int32", y, z)
        return steps.function(y, "i")

    a = np.arange(9000, dtype=np.int32)
    assert (alternating(BETWEEN - 1)(a) == -a * (BETWEEN - 1)).all()
    assert alternating(BETWEEN + 2) is None
    steps = Steps()
    y = steps.given("i")
    for _ in range(50):
        y = steps.add("bitwise_not int32", y)
    assert (steps.function(y, "i")(a) == a).all()


def test_steps_that_nothing_reads_are_left_out():
    steps = Steps()
    x = steps.given("i")
    y = steps.add("negative int32", x)
    for _ in range(100):  # more than a chain may have
        steps.add("negative int32", x)
    assert (steps.function(y, "i")(np.arange(3, dtype=np.int32)) == [0, -1, -2]).all()
