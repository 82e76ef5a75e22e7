"""Mathematical functions against mpmath, within their own freedom, and the rules of their operands."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from cutile.dtypes import (
    DType,
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
    uint8,
    uint16,
    uint32,
)
from cutile.errors import TileTypeError, TileValueError
from cutile.ir.terms import Const, Leaf, Static
from cutile.ops import _numeric
from cutile.ops import math as M
from cutile.ops._constants import loose, strict
from cutile.ops._freedom import ulp_of
from cutile.types import RoundingMode, TileType
from tests.ops.ruling import Bench
from tests.ops.samples import POSITIVE

INF, NAN = math.inf, math.nan
rng = np.random.default_rng(7)
mpmath.mp.prec = 140

UNARY = {
    "exp": mpmath.exp, "exp2": lambda v: mpmath.power(2, v), "log": mpmath.log, "log2": lambda v: mpmath.log(v, 2),
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "sinh": mpmath.sinh, "cosh": mpmath.cosh,
    "tanh": mpmath.tanh, "rsqrt": lambda v: 1 / mpmath.sqrt(v), "sqrt": mpmath.sqrt,
}
CORRECTLY_ROUNDED = {"sqrt"}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def unit_of(value, dtype: DType):
    """The last place of `value` in `dtype`."""
    f = info(dtype).format
    e = f.emin if value == 0 else max(int(mpmath.floor(mpmath.log(abs(value), 2))), f.emin)
    return mpmath.mpf(2) ** (e - f.mantissa)


def assert_within(op, got: np.ndarray, exact: list, dtype: DType, ulps: float | None = None):
    free = ulp_of(op.freedom)
    bound = ulps if ulps is not None else free.limit[dtype] if free else 0.5
    top = info(dtype).format.max
    for g, e in zip(got.reshape(-1).tolist(), exact, strict=True):
        if abs(e) > top:
            assert math.isinf(g) or abs(g) == top, (op, g, e)
            continue
        error = abs(mpmath.mpf(g) - e) / unit_of(e, dtype)
        assert error <= bound, f"{op.name} of {dtype.name}: {g!r} is {float(error):.3f} ulp from {e}"


def sample(name: str, dtype: DType, n: int) -> np.ndarray:
    span = {"float16": 8, "float64": 20}.get(dtype.name, 16)
    x = rng.standard_normal(n) * 2.0 ** rng.integers(-span, 7, n)
    x = _numeric.round_to(dtype, x.astype(info(dtype).carrier))
    return np.abs(x) + (x == 0) if name in POSITIVE else x


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
@pytest.mark.parametrize("name", list(UNARY))
def test_unary_within_their_freedom(name, dtype, bench):
    op = getattr(M, name)
    x = sample(name, dtype, 256)
    got = bench(op, bench.tile(x, dtype))
    exact = [UNARY[name](mpmath.mpf(v)) for v in x.tolist()]
    # The interpreter itself rounds once from float64: all but exact for the narrower formats.
    own = 0.5 if name in CORRECTLY_ROUNDED else 0.5001 if dtype is not float64 else None
    assert_within(op, got, exact, dtype, own)


SPECIAL = {
    "exp": [(-INF, 0.0), (INF, INF), (0.0, 1.0), (-0.0, 1.0), (NAN, NAN), (1e30, INF)],
    "exp2": [(-INF, 0.0), (INF, INF), (3.0, 8.0), (NAN, NAN), (1e30, INF)],
    "log": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (1.0, 0.0), (NAN, NAN)],
    "log2": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (8.0, 3.0), (NAN, NAN)],
    "sin": [(INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "cos": [(INF, NAN), (-INF, NAN), (0.0, 1.0)],
    "tan": [(INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "sinh": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0)],
    "cosh": [(INF, INF), (-INF, INF), (0.0, 1.0)],
    "tanh": [(INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0)],
    "sqrt": [(-1.0, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, INF), (4.0, 2.0), (NAN, NAN)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0), (4.0, 0.5)],
    "floor": [(INF, INF), (-INF, -INF), (NAN, NAN), (-0.0, -0.0), (2.5, 2.0), (-2.5, -3.0), (-0.5, -1.0)],
    "ceil": [(INF, INF), (-INF, -INF), (NAN, NAN), (-0.0, -0.0), (2.5, 3.0), (-2.5, -2.0), (-0.5, -0.0)],
}


def same(a: float, b: float) -> bool:
    return math.isnan(a) and math.isnan(b) or a == b and math.copysign(1, a) == math.copysign(1, b)


@pytest.mark.parametrize("dtype", [float32, float64, bfloat16], ids=str)
@pytest.mark.parametrize("name", list(SPECIAL))
def test_special_values(name, dtype, bench):
    for x, want in SPECIAL[name]:
        got = bench(getattr(M, name), bench.tile(x, dtype)).item()
        assert same(got, want), f"{name}({x!r}) = {got!r}, want {want!r}"


@pytest.mark.parametrize("name", list(UNARY))
def test_integers_are_converted_to_float32(name, bench):
    for dtype in (int8, int64, uint16, bool_):
        y = bench.call(getattr(M, name), bench.tile([1, 1], dtype))
        assert y.type == TileType(float32, (2,))
        assert bench.value(y).dtype == np.float32


@pytest.mark.parametrize("name", [*UNARY, "floor", "ceil", "isnan"])
def test_restricted_floats_are_refused(name, bench):
    with pytest.raises(TileTypeError, match="float8_e4m3fn has no arithmetic") as e:
        bench.call(getattr(M, name), bench.tile([1.0], float8_e4m3fn))
    assert "astype" in e.value.help


@pytest.mark.parametrize("name", [*UNARY, "floor"])
def test_other_things_are_refused(name, bench):
    for thing in (None, (1.0,), "x"):
        with pytest.raises(TileTypeError, match='Invalid argument "x"'):
            bench.call(getattr(M, name), thing)


# ------------------------------------------------------------------ constants


@pytest.mark.parametrize("name, x, want", [
    ("floor", 2.5, 2), ("ceil", 2.5, 3), ("exp2", 3, 8), ("exp2", -1, 0.5), ("exp2", 0.5, 2**0.5), ("sqrt", 4, 2.0),
    ("rsqrt", 4, 0.5), ("exp", 1, math.e), ("log", 1, 0.0), ("log2", 8, 3.0), ("isnan", 3, False), ("isnan", NAN, True),
    ("tanh", 0.0, 0.0), ("exp", -INF, 0.0), ("floor", True, 1),
])
def test_loose_constants(name, x, want, bench):
    c = bench.call(getattr(M, name), x)
    assert c.loose and c.value == want and type(c.value) is type(want)


@pytest.mark.parametrize("name, x", [
    ("sqrt", -1), ("log", 0), ("log", -1), ("log2", 0.0), ("rsqrt", 0), ("exp", 1000.0), ("exp2", 2000.0),
    ("exp2", 100), ("exp2", 10**9), ("sin", INF), ("cosh", 1000.0), ("floor", INF), ("ceil", NAN),
])
def test_loose_constants_without_value(name, x, bench):
    with pytest.raises(TileValueError):
        bench.call(getattr(M, name), x)


def test_strict_constants_fold_in_their_dtype(bench):
    c = bench.call(M.exp, strict(1.0, float16))
    assert not c.loose and c.dtype is float16 and c.value == float(np.float16(math.e))
    assert bench.call(M.sqrt, strict(2, int32)).dtype is float32
    assert bench.call(M.floor, strict(-2.5, float64)).value == -3.0
    assert bench.call(M.isnan, strict(NAN, float32)).value is True
    for name, x in (("sqrt", -1.0), ("log", 0.0), ("rsqrt", 0.0), ("exp", 1000.0)):
        with pytest.raises(TileValueError):
            bench.call(getattr(M, name), strict(x, float32))
    # A float32 that is exceeded only by the result's range becomes infinite.
    assert bench.call(M.exp, strict(100.0, float32)).value == INF


def test_options_do_not_count_for_constants(bench):
    assert bench.call(M.exp2, 3, flush_to_zero=True).value == 8
    assert bench.call(M.sqrt, 4.0, rounding_mode="RZ").value == 2.0
    assert bench.call(M.sqrt, strict(4.0, float64), flush_to_zero=True).value == 2.0


@pytest.mark.parametrize("name", ["floor", "ceil", "isnan"])
def test_rounding_of_integers_is_refused(name, bench):
    for x in (bench.tile([1], int32), bench.tile([True], bool_), strict(1, int8)):
        with pytest.raises(TileTypeError, match="expected a float tile"):
            bench.call(getattr(M, name), x)


# ------------------------------------------------------------------ options

ACCEPTS = {"sqrt": {"RN", "RZ", "RM", "RP", "APPROX"}, "exp": {"FULL", "APPROX"}, "tanh": {"FULL", "APPROX"}}


@pytest.mark.parametrize("name", list(ACCEPTS))
@pytest.mark.parametrize("dtype", [float32, float16, float64, int32], ids=str)
def test_rounding_modes(name, dtype):
    for mode in RoundingMode:
        bench = Bench()
        one = bench.tile([1.0], dtype)
        ok = mode.name in ACCEPTS[name] and (dtype in (float32, int32) or mode.name not in ("FULL", "APPROX"))
        if ok:
            bench(getattr(M, name), one, rounding_mode=Static(mode))
        else:
            with pytest.raises(TileTypeError, match="rounding_mode"):
                bench.call(getattr(M, name), one, rounding_mode=Static(mode))


@pytest.mark.parametrize("name", ["exp2", "rsqrt", "sqrt"])
def test_flush_needs_float32(name, bench):
    with pytest.raises(TileTypeError, match="float32 result"):
        bench.call(getattr(M, name), bench.tile([1.0], float16), flush_to_zero=True)
    bench.call(getattr(M, name), bench.tile([1], int32), flush_to_zero=True)
    with pytest.raises(TileTypeError, match="bool constant"):
        bench.call(getattr(M, name), bench.tile([1.0], float32), flush_to_zero=1)


def test_flush_to_zero(bench):
    tiny = bench.tile([1e-40, -1e-40], float32)
    assert bench(M.rsqrt, tiny, flush_to_zero=True).tolist() == [INF, -INF]
    assert bench(M.sqrt, bench.tile([1e-40], float32), flush_to_zero=True).tolist() == [0.0]
    powers = bench.tile([-126.0, -127.0, -140.0], float32)
    assert bench(M.exp2, powers, flush_to_zero=True).tolist() == [2.0**-126, 0, 0]
    assert bench(M.exp2, bench.tile([-127.0, -149.0], float32)).tolist() == [2.0**-127, 2.0**-149]


def test_sqrt_in_directions(bench):
    x = bench.tile([2.0, 3.0, 4.0], float32)
    down, up, near = (bench(M.sqrt, x, rounding_mode=m) for m in ("RM", "RP", "RN"))
    assert (down <= near).all() and (near <= up).all()
    for d, u, v in zip(down.tolist(), up.tolist(), (2, 3, 4), strict=True):
        assert Fraction(d) ** 2 <= v <= Fraction(u) ** 2
    assert (np.nextafter(down, np.float32(INF)) == up).tolist() == [True, True, False]
    assert (bench(M.sqrt, x, rounding_mode="RZ") == down).all()


# ------------------------------------------------------------------ two operands


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
@pytest.mark.parametrize("name, exact", [("atan2", mpmath.atan2), ("pow", mpmath.power)])
def test_binary_within_their_freedom(name, exact, dtype, bench):
    x = sample(name, dtype, 256) if name == "atan2" else sample("log", dtype, 256)
    y = sample(name, dtype, 256) if name == "atan2" else _numeric.round_to(
        dtype, rng.uniform(-3, 3, 256).astype(info(dtype).carrier))
    got = bench(getattr(M, name), bench.tile(x, dtype), bench.tile(y, dtype))
    want = [exact(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert_within(getattr(M, name), got, want, dtype, 0.5001 if dtype is not float64 else None)


@pytest.mark.parametrize("y, x, want", [
    (0.0, -1.0, math.pi), (-0.0, -1.0, -math.pi), (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (1.0, 0.0, math.pi / 2),
    (INF, -INF, 3 * math.pi / 4), (INF, INF, math.pi / 4), (NAN, 1.0, NAN), (1.0, NAN, NAN), (-0.0, -0.0, -math.pi),
    (1.0, INF, 0.0), (-1.0, -INF, -math.pi),
])
def test_atan2_special_values(y, x, want, bench):
    assert same(bench(M.atan2, bench.tile(y, float64), bench.tile(x, float64)).item(), want)


def test_atan2_operands(bench):
    y = bench.call(M.atan2, bench.tile([1.0, 2.0], float16), bench.tile([[1.0], [2.0]], float32))
    assert y.type == TileType(float32, (2, 2))
    assert bench.call(M.atan2, bench.tile([1], int32), 0.5).type.dtype is float32
    assert bench.call(M.atan2, 1, 1).value == math.pi / 4
    assert bench.call(M.atan2, strict(1.0, float32), 1).dtype is float32
    for pair in ((bench.tile([1], int32), bench.tile([1], int32)), (strict(1, int32), 2)):
        with pytest.raises(TileTypeError, match="needs floats"):
            bench.call(M.atan2, *pair)
    with pytest.raises(TileTypeError, match="no implicit promotion"):
        bench.call(M.atan2, bench.tile([1.0], float16), bench.tile([1.0], bfloat16))


# ------------------------------------------------------------------ powers


@pytest.mark.parametrize("base", [float16, bfloat16, float32, float64], ids=str)
@pytest.mark.parametrize("exponent, takes", [
    (int8, int8), (int16, int16), (int32, int32), (uint8, int16), (uint16, int32),
])
def test_integer_powers_keep_the_base_dtype(base, exponent, takes, bench):
    y = bench.call(M.pow, bench.tile([2.0, 3.0], base), bench.tile([[3], [2]], exponent))
    assert y.type == TileType(base, (2, 2))
    node = bench.b.region.nodes[-1]
    assert node.op is M.powi and node.operands[1].type.dtype is takes
    assert bench.value(y).tolist() == [[8, 27], [4, 9]]


def test_scalar_exponents_stay_scalars(bench):
    x = bench.tile(np.full((2, 1, 1, 4), 3.0), float32, shape=(4,))
    y = bench.call(M.pow, x, -2)
    assert bench.b.region.nodes[-1].operands[1].type == TileType(int32)
    assert bench.value(y).shape == (2, 1, 1, 4)
    ninth = float(_numeric.round_to(float32, np.array(1 / 9)))
    assert (bench.value(y) == np.float32(ninth)).all()
    n = bench.tile(np.array([1, 2]).reshape(2, 1, 1), int32, shape=())
    assert bench(M.pow, x, n)[:, 0, 0, 0].tolist() == [3.0, 9.0]


def test_integer_power_by_algorithm(bench):
    x = bench.tile([NAN, 0.0, INF, 1e30, 1e-30], float32)
    assert bench(M.pow, x, 0).tolist() == [1.0] * 5
    y = bench(M.pow, x, -2).tolist()
    assert math.isnan(y[0]) and y[1:] == [INF, 0.0, 0.0, INF]
    assert isinstance(bench.call(M.pow, strict(2.0, float32), 3), Leaf), "never folded"
    assert bench.value(bench.call(M.pow, 2.0, bench.tile([3], int32))).tolist() == [8.0]


@pytest.mark.parametrize("x, y, dtype", [
    ((float32, 2.0), (int64, 3), float32), ((float32, 2.0), (uint32, 3), float32),
    ((float16, 2.0), (bool_, 1), float16), ((int32, 2), 2.0, float32), (2, (float16, 3.0), float16),
    ((float16, 2.0), (float32, 3.0), float32),
    ((float32, 2.0), 1 << 40, float32), ((int8, 2), (int32, 3), int32), ((bool_, 1), (int16, 3), int16),
    ((uint8, 2), 3, uint8),
])
def test_other_powers_promote(x, y, dtype, bench):
    x, y = (bench.tile([v[1]], v[0]) if isinstance(v, tuple) else v for v in (x, y))
    z = bench.call(M.pow, x, y)
    assert z.type.dtype is dtype and bench.b.region.nodes[-1].op is M.pow


def test_power_special_values(bench):
    def f(x, y):
        return bench(M.pow, bench.tile(x, float32), bench.tile(y, float32)).item()

    assert f(NAN, 0.0) == f(1.0, NAN) == f(INF, 0.0) == f(-1.0, INF) == 1.0
    assert math.isnan(f(-8.0, 0.5)) and f(0.0, -1.0) == INF and f(-8.0, 3.0) == -512.0 and f(-0.0, -3.0) == -INF


def test_integer_to_the_integer(bench):
    x, n = bench.tile([2, 3, -1, 1, 5, 0], int32), bench.tile([31, 21, -3, -5, -1, 0], int32)
    wrapped = [(2**31 + 2**31) % 2**32 - 2**31, (3**21 + 2**31) % 2**32 - 2**31, -1, 1, 0, 1]
    assert bench(M.pow, x, n).tolist() == wrapped
    assert bench(M.pow, bench.tile([200], uint8), 2).tolist() == [40000 % 256]


def test_powers_of_constants(bench):
    for x, y, want in ((2, 3, 8), (2, -1, 0.5), (2.0, 3, 8.0), (0, 0, 1)):
        c = bench.call(M.pow, x, y)
        assert c.loose and c.value == want and type(c.value) is type(want)
    c = bench.call(M.pow, strict(2, int32), -1)
    assert isinstance(c, Const) and c.dtype is int32 and c.value == 0
    assert bench.call(M.pow, strict(2, int8), 7).value == -128
    assert bench.call(M.pow, strict(2.0, float16), 0.5).value == float(_numeric.encode(2**0.5, float16))
    for x, y, error in ((2, 70, TileValueError), (10, 10**9, TileValueError), (0, -1, TileValueError),
                        (-8, 0.5, TileTypeError), (10.0, 1000.0, TileValueError)):
        with pytest.raises(error):
            bench.call(M.pow, x, y)
    with pytest.raises(TileValueError):
        bench.call(M.pow, strict(0, int32), -1)
    with pytest.raises(TileValueError):
        bench.call(M.pow, strict(0.0, float32), -1.0)


def test_powers_that_are_refused(bench):
    flag = bench.tile([True], bool_)
    with pytest.raises(TileTypeError, match="two bool_"):
        bench.call(M.pow, flag, flag)
    with pytest.raises(TileTypeError, match="broadcast"):
        bench.call(M.pow, bench.tile([1.0, 2.0], float32), bench.tile([1, 2, 3, 4], int32))
    with pytest.raises(TileValueError, match="does not fit"):
        bench.call(M.pow, bench.tile([1], int8), 300)
    assert bench.call(M.pow, bench.tile([1.0], float32), loose(2)).type.dtype is float32
