"""The evaluator's arithmetic against results worked out by hand from the Tile IR specification."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.types import bf16, f16, f32, f64, i1, i8, i16, i32, i64, tf32, tile
from tests.tileir_eval import EvaluationError
from tests.tileir_eval.small_programs import evaluated

inf, nan = math.inf, math.nan
TINY = 2.0**-149  # the smallest subnormal of f32
SUB = 2.0**-127
MIN8, MAX8, MIN32, MAX32, MIN64, MAX64 = -128, 127, -(2**31), 2**31 - 1, -(2**63), 2**63 - 1


def of(name: str, element: ty.Scalar, *operands, result: ty.Scalar | None = None, **attrs) -> list:
    """The operation on tiles of rank 1 with these elements; an operand (element, list) is of another type."""
    def build(b):
        values = [b.constant(tile(e, (len(x),)), _data(e, x)) for e, x in
                  (o if isinstance(o, tuple) else (element, o) for o in operands)]
        to = {} if result is None else {"result": tile(result, values[0].type.shape)}
        return b.op(name, values, **to, **attrs)

    return evaluated(build)[0].tolist()


def _data(element: ty.Scalar, x: list) -> np.ndarray:
    return np.array(x, np.float64 if element.kind == "f" else bool if element is i1 else np.int64)


def same(got: list, want: list) -> None:
    """Signs of zeros count, NaNs are alike."""
    assert repr(got) == repr(want)


# ------------------------------------------------------------------ integers


@pytest.mark.parametrize("name, element, x, y, want, attrs", [
    ("addi", i8, [127, -1], [1, -1], [-128, -2], {}),
    ("addi", i64, [MAX64, 5], [1, -7], [MIN64, -2], {}),
    ("addi", i1, [1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0], {}),
    ("subi", i16, [-32768, 3], [1, 5], [32767, -2], {}),
    ("muli", i32, [MAX32, -3], [2, 7], [-2, -21], {}),
    ("muli", i1, [1, 1], [1, 0], [1, 0], {}),
    ("mulhii", i8, [-1, 16], [-1, 16], [-2, 1], {}),  # 255 * 255 = 0xFE01
    ("mulhii", i32, [-1, 1 << 16], [-1, 1 << 16], [-2, 1], {}),
    ("mulhii", i64, [-1, 1 << 32], [-1, 3 << 31], [-2, 1], {}),
    ("divi", i32, [7, -7, 7, -7], [2, 2, -2, -2], [3, -3, -3, 3], {"signedness": "signed"}),
    ("divi", i32, [7, -7, 7, -7], [2, 2, -2, -2], [3, -4, -4, 3], {"signedness": "signed",
                                                                    "rounding": "negative_inf"}),
    ("divi", i32, [7, -7, 7, -7], [2, 2, -2, -2], [4, -3, -3, 4], {"signedness": "signed",
                                                                    "rounding": "positive_inf"}),
    ("divi", i8, [-1, 7], [2, -1], [127, 0], {"signedness": "unsigned"}),
    ("divi", i8, [-1, 7], [2, 2], [-128, 4], {"signedness": "unsigned", "rounding": "positive_inf"}),
    ("remi", i32, [7, 7, -7, -7], [3, -3, 3, -3], [1, 1, -1, -1], {"signedness": "signed"}),
    ("remi", i8, [-1, -2], [16, 3], [15, 2], {"signedness": "unsigned"}),
    ("andi", i8, [0b1100, -1], [0b1010, 5], [0b1000, 5], {}),
    ("ori", i8, [0b1100, 0], [0b1010, -5], [0b1110, -5], {}),
    ("xori", i8, [0b1100, -1], [0b1010, 5], [0b0110, -6], {}),
    ("xori", i1, [1, 1, 0], [1, 0, 0], [0, 1, 0], {}),
    ("shli", i8, [1, 3, -1], [7, 7, 4], [-128, -128, -16], {}),
    ("shri", i8, [-128, -1, 64], [7, 4, 5], [-1, -1, 2], {"signedness": "signed"}),
    ("shri", i8, [-128, -1, 64], [7, 4, 5], [1, 15, 2], {"signedness": "unsigned"}),
    ("maxi", i8, [-1, 3], [1, 2], [1, 3], {"signedness": "signed"}),
    ("maxi", i8, [-1, 3], [1, 2], [-1, 3], {"signedness": "unsigned"}),
    ("mini", i32, [-1, 3], [1, 2], [-1, 2], {"signedness": "signed"}),
    ("mini", i32, [-1, 3], [1, 2], [1, 2], {"signedness": "unsigned"}),
    ("maxi", i1, [1, 0], [0, 0], [0, 0], {"signedness": "signed"}),  # true is -1
    ("maxi", i1, [1, 0], [0, 0], [1, 0], {"signedness": "unsigned"}),
])
def test_integers(name, element, x, y, want, attrs):
    assert of(name, element, x, y, **attrs) == want


def test_unary_integers():
    assert of("absi", i8, [-128, -3, 5]) == [-128, 3, 5]  # 128, unsigned
    assert of("negi", i32, [MIN32, 7]) == [MIN32, -7]


@pytest.mark.parametrize("name, x, y, attrs", [
    ("addi", 127, 1, {"overflow": "no_signed_wrap"}), ("addi", -1, 1, {"overflow": "no_unsigned_wrap"}),
    ("subi", 0, 1, {"overflow": "no_unsigned_wrap"}), ("muli", 64, 2, {"overflow": "no_wrap"}),
    ("shli", 64, 1, {"overflow": "no_signed_wrap"}), ("shli", -1, 1, {"overflow": "no_unsigned_wrap"})])
def test_overflow_that_was_promised_not_to_be(name, x, y, attrs):
    other = {"no_signed_wrap": "no_unsigned_wrap", "no_unsigned_wrap": "no_signed_wrap"}.get(attrs["overflow"], "none")
    of(name, i8, [x], [y], overflow=other)
    with pytest.raises(EvaluationError, match="wraps"):
        of(name, i8, [x], [y], **attrs)


@pytest.mark.parametrize("predicate, signed, unsigned", [
    ("equal", [0, 0, 1], [0, 0, 1]), ("not_equal", [1, 1, 0], [1, 1, 0]), ("less_than", [1, 0, 0], [0, 1, 0]),
    ("less_than_or_equal", [1, 0, 1], [0, 1, 1]), ("greater_than", [0, 1, 0], [1, 0, 0]),
    ("greater_than_or_equal", [0, 1, 1], [1, 0, 1])])
def test_comparison_of_integers(predicate, signed, unsigned):
    for element in (i8, i64):
        x, y = [-1, 1, 4], [1, -1, 4]
        assert of("cmpi", element, x, y, comparison_predicate=predicate, signedness="signed") == signed
        assert of("cmpi", element, x, y, comparison_predicate=predicate, signedness="unsigned") == unsigned


def test_widths():
    assert of("exti", i8, [-1, 5], result=i32, signedness="signed") == [-1, 5]
    assert of("exti", i8, [-1, 5], result=i32, signedness="unsigned") == [255, 5]
    assert of("exti", i1, [1, 0], result=i8, signedness="signed") == [-1, 0]
    assert of("exti", i1, [1, 0], result=i8, signedness="unsigned") == [1, 0]
    assert of("trunci", i32, [257, -129], result=i8) == [1, 127]
    assert of("trunci", i32, [3, 4], result=i1) == [1, 0]
    of("trunci", i32, [255], result=i8, overflow="no_unsigned_wrap")
    with pytest.raises(EvaluationError, match="wraps"):
        of("trunci", i32, [255], result=i8, overflow="no_signed_wrap")


# ------------------------------------------------------------------ floats


UP, DOWN, ZERO = ({"rounding_mode": m} for m in ("positive_inf", "negative_inf", "zero"))
FTZ = {"flush_to_zero": True}
AFTER1 = 1 + 2.0**-23  # the f32 after 1


@pytest.mark.parametrize("name, element, x, y, want, attrs", [
    ("addf", f32, [1, inf, -0.0], [2.0**-24, -inf, -0.0], [1, nan, -0.0], {}),
    ("addf", f32, [1, -1], [2.0**-30, -(2.0**-30)], [AFTER1, -1], UP),
    ("addf", f32, [1, -1], [2.0**-30, -(2.0**-30)], [1, -AFTER1], DOWN),
    ("addf", f32, [1, -1], [2.0**-24, -(2.0**-24)], [1, -1], ZERO),
    ("addf", f32, [1, 0], [-1, 0], [-0.0, 0.0], DOWN),
    ("addf", f16, [2048, 65504], [1, 32], [2048, inf], {}),
    ("addf", bf16, [256, 1], [1, 2.0**-9], [256, 1], {}),
    ("addf", f64, [1, 2.0**53], [2.0**-53, 1], [1, 2.0**53], {}),
    ("addf", f32, [SUB, SUB], [SUB, 1], [0.0, 1], FTZ),
    ("addf", f32, [-SUB, 2.0**-126], [-0.0, -1.5 * 2.0**-126], [-0.0, -0.0], FTZ),
    ("subf", f32, [1, inf], [2.0**-25, inf], [1, nan], {}),
    ("subf", f32, [1], [2.0**-30], [1 - 2.0**-24], ZERO),
    ("mulf", f32, [AFTER1, 0, 2.0**-100], [AFTER1, -1, 2.0**-49], [1 + 2.0**-22, -0.0, TINY], {}),
    ("mulf", f32, [AFTER1], [AFTER1], [1 + 1.5 * 2.0**-22], UP),
    ("mulf", f16, [256], [256], [inf], {}),
    ("divf", f32, [1, 1, -1, 0], [3, 0, 0, 0], [np.float32(1 / 3).item(), inf, -inf, nan], {}),
    ("divf", f32, [1], [3], [np.nextafter(np.float32(1 / 3), np.float32(0)).item()], ZERO),
    ("divf", f32, [6], [3], [2], {"rounding_mode": "approx"}),
    ("remf", f32, [7, -7, 7, 5, inf, 1], [3, 3, -3, inf, 2, 0], [1, -1, 1, 5, nan, nan], {}),
    ("maxf", f32, [1, nan, -0.0, nan], [2, 3, 0.0, nan], [2, 3, 0.0, nan], {}),
    ("maxf", f32, [1, nan], [2, 3], [2, nan], {"propagate_nan": True}),
    ("maxf", f32, [SUB], [-SUB], [0.0], FTZ),
    ("minf", f32, [1, nan, 0.0], [2, 3, -0.0], [1, 3, -0.0], {}),
    ("minf", f16, [1, nan], [2, 3], [1, nan], {"propagate_nan": True}),
    ("pow", f32, [2, 9, -1, 0], [10, 0.5, 0.5, -1], [1024, 3, nan, inf], {}),
    ("atan2", f64, [1, 0, -0.0], [0, -1, -1], [math.pi / 2, math.pi, -math.pi], {}),
])
def test_floats(name, element, x, y, want, attrs):
    same(of(name, element, x, y, **attrs), [float(v) for v in want])


def test_fused_multiply_add():
    for element, ulp in ((f32, 2.0**-23), (f64, 2.0**-52), (f16, 2.0**-10)):
        x = 1 + ulp
        same(of("fma", element, [x, 2], [x, 3], [-(1 + 2 * ulp), 1]), [ulp * ulp, 7.0])
        for mode, want in (("negative_inf", 2 - ulp), ("positive_inf", 2.0), ("zero", 2 - ulp)):
            same(of("fma", element, [1], [2], [-ulp / 4096], rounding_mode=mode), [want])
    for mode, want in (("negative_inf", -0.0), ("positive_inf", 0.0)):
        same(of("fma", f64, [2, 0, 1e308], [3, 1, 10], [-6, -0.0, 0], rounding_mode=mode),
             [want, want, inf if mode == "positive_inf" else np.finfo(np.float64).max.item()])


@pytest.mark.parametrize("name, x, want, attrs", [
    ("absf", [-1, -0.0, nan], [1, 0.0, nan], {}), ("negf", [1, 0.0, -inf], [-1, -0.0, inf], {}),
    ("ceil", [1.5, -1.5, -0.5], [2, -1, -0.0], {}), ("floor", [1.5, -1.5, 0.5], [1, -2, 0.0], {}),
    ("sqrt", [4, -1, -0.0], [2, nan, -0.0], {}), ("rsqrt", [4, 0, inf], [0.5, inf, 0.0], {}),
    ("sqrt", [2], [np.nextafter(np.float32(2**0.5), np.float32(2)).item()], UP),
    ("exp", [0, -inf, 1000], [1, 0, inf], {}), ("exp2", [3, -1, 0.5], [8, 0.5, np.float32(2**0.5).item()], {}),
    ("exp2", [-126.5, -127], [0, 0], FTZ), ("exp2", [-127], [SUB], {}), ("rsqrt", [SUB], [inf], FTZ),
    ("log", [1, 0, -1], [0, -inf, nan], {}), ("log2", [8, 0.25], [3, -2], {}),
    ("sin", [0, 1], [0, np.float32(math.sin(1)).item()], {}), ("cos", [0], [1], {}), ("tan", [-0.0], [-0.0], {}),
    ("sinh", [-0.0, inf], [-0.0, inf], {}), ("cosh", [0], [1], {}), ("tanh", [inf, -0.0], [1, -0.0], {}),
])
def test_functions(name, x, want, attrs):
    same(of(name, f32, x, **attrs), [float(v) for v in want])


def test_whole_powers():
    same(of("fpowi", f32, [2, -3, 0, 5], (i32, [-2, 3, -1, 0])), [0.25, -27.0, inf, 1.0])


@pytest.mark.parametrize("predicate, ordered, unordered", [
    ("equal", [0, 1, 0], [0, 1, 1]), ("not_equal", [1, 0, 0], [1, 0, 1]), ("less_than", [1, 0, 0], [1, 0, 1]),
    ("less_than_or_equal", [1, 1, 0], [1, 1, 1]), ("greater_than", [0, 0, 0], [0, 0, 1]),
    ("greater_than_or_equal", [0, 1, 0], [0, 1, 1])])
def test_comparison_of_floats(predicate, ordered, unordered):
    x, y = [1, 0.0, nan], [2, -0.0, 1]
    for ordering, want in (("ordered", ordered), ("unordered", unordered)):
        assert of("cmpf", f32, x, y, comparison_predicate=predicate, comparison_ordering=ordering) == want


def test_select():
    assert of("select", i1, [1, 0], (f32, [1, 2]), (f32, [3, 4])) == [1, 4]


# ------------------------------------------------------------------ conversions


@pytest.mark.parametrize("src, dst, x, want, mode", [
    (f32, f16, [1 + 2.0**-11, 1e6, 2.0**-25], [1, inf, 0], "nearest_even"),
    (f32, bf16, [1 + 2.0**-8, 1 + 3 * 2.0**-8], [1, 1 + 2.0**-6], "nearest_even"),
    (f32, tf32, [1 + 2.0**-11], [1], "nearest_even"),
    (f64, f32, [1 + 2.0**-24, 1e300], [1, inf], "nearest_even"),
    (f32, f16, [1 + 2.0**-11, -1 - 2.0**-11], [1, -1], "zero"),
    (f32, f16, [1 + 2.0**-11, -1 - 2.0**-11], [1, -1 - 2.0**-10], "negative_inf"),
    (f32, f16, [1 + 2.0**-11, -1 - 2.0**-11], [1 + 2.0**-10, -1], "positive_inf"),
    (f32, f16, [1 + 2.0**-11], [1 + 2.0**-10], "nearest_away"),
    (f32, ty.e4m3, [1.0625, 448], [1, 448], "nearest_even"),
    (f32, ty.e5m2, [1.125, -3], [1, -3], "nearest_even"),
    (f32, ty.e8m0, [3, 4], [2, 4], "zero"),
    (f32, ty.e8m0, [3, 4], [4, 4], "positive_inf"),
    (f16, f64, [1.5, nan], [1.5, nan], "nearest_even"),
])
def test_floats_to_floats(src, dst, x, want, mode):
    same(of("ftof", src, x, result=dst, rounding_mode=mode), [float(v) for v in want])


def test_floats_to_integers():
    assert of("ftoi", f32, [1.9, -1.9, 3e9], result=i64, signedness="signed") == [1, -1, 3000000000]
    assert of("ftoi", f64, [4294967295.5], result=i32, signedness="unsigned") == [-1]
    saturating = {"signedness": "signed", "saturating": True}
    assert of("ftoi", f32, [1e20, -1e20, nan, 3.9], result=i32, **saturating) == [MAX32, MIN32, 0, 3]
    assert of("ftoi", f64, [1e20, -1e20, nan], result=i64, **saturating) == [MAX64, MIN64, 0]
    assert of("ftoi", f32, [300, -4], result=i8, signedness="unsigned", saturating=True) == [-1, 0]


def test_integers_to_floats():
    same(of("itof", i32, [-1, 2**24 + 1], result=f32, signedness="signed"), [-1.0, 2.0**24])
    same(of("itof", i32, [-1], result=f64, signedness="unsigned"), [4294967295.0])
    same(of("itof", i32, [65504, 70000], result=f16, signedness="signed"), [65504.0, inf])
    same(of("itof", i1, [1, 0], result=f32, signedness="unsigned"), [1.0, 0.0])
    same(of("itof", i1, [1, 0], result=f32, signedness="signed"), [-1.0, 0.0])
    # 2**60 + 2**35 + 1 lies just above the middle of two f32: rounding to f64 first would lose the 1.
    same(of("itof", i64, [2**60 + 2**36 + 1], result=f32, signedness="signed"), [2.0**60 + 2.0**37])


def test_bits():
    assert of("bitcast", f32, [1, -0.0], result=i32) == [0x3F800000, MIN32]
    assert of("bitcast", i16, [0x3C00], result=f16) == [1]
    assert of("bitcast", bf16, [1], result=i16) == [0x3F80]
    assert of("bitcast", ty.e4m3, [1], result=i8) == [0x38]
