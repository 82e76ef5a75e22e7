"""Arithmetic of every dtype assembles; rounding, sign and overflow stand in the operations. By constant powers of two,
data is shifted and masked, with the numbers of a division.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

import cutile as ct
from cutile.dtypes import DType, int_range
from cutile.types import RoundingMode
from tests.gpu.tileir.rules.small_kernels import FLOATS, INTEGERS, NUMBERS, assemble, attributes, names, sampled, tile
from tests.gpu.tileir.tool import needs_tool
from tests.tileir_eval.kernels import instead_of_interpreter

F32, I32, U8, F16 = tile(ct.float32), tile(ct.int32), tile(ct.uint8), tile(ct.float16)


def common(x, y):
    return x + y, x - y, x * y, x / y, x // y, x % y, ct.cdiv(x, y), ct.minimum(x, y), ct.maximum(x, y), -x, abs(x)


def pairs(x, y):
    return divmod(x, y)


def rounded(x, y):
    return (ct.add(x, y, rounding_mode=RoundingMode.RZ), ct.sub(x, y, rounding_mode=RoundingMode.RM),
            ct.mul(x, y, rounding_mode=RoundingMode.RP), ct.truediv(x, y, rounding_mode=RoundingMode.RZ))


def of_float32(x, y):
    return (ct.add(x, y, flush_to_zero=True), ct.truediv(x, y, rounding_mode=RoundingMode.APPROX, flush_to_zero=True),
            ct.truediv(x, y, rounding_mode=RoundingMode.FULL),
            ct.minimum(x, y, flush_to_zero=True, propagate_nan=True), ct.maximum(x, y, propagate_nan=True))


def fused(x, y):
    return x * y + x, x * y - y, y - x * y


def by_constants(x):
    return x // 4, x % 4, ct.cdiv(x, 4), ct.cdiv(x, 2), x // 1, x // 7, x % 7, *divmod(x, 16)


CASES = [*((common, (tile(d), tile(d))) for d in NUMBERS), *((pairs, (tile(d), tile(d))) for d in INTEGERS),
         *((by_constants, (tile(d),)) for d in INTEGERS),
         *((f, (tile(d), tile(d))) for d in FLOATS for f in (rounded, fused)), (of_float32, (F32, F32)),
         (common, (tile(ct.bool_), I32))]


@needs_tool
@sampled(CASES)
def test_every_dtype(target, cases):
    assemble(cases, target)


def test_one_operation_where_there_is_one():
    for f, i, x in ((lambda x, y: x + y, "addi", "addf"), (lambda x, y: x - y, "subi", "subf"),
                    (lambda x, y: x * y, "muli", "mulf"), (ct.minimum, "mini", "minf"), (ct.maximum, "maxi", "maxf")):
        assert names(f, I32, I32) == [i]
        assert names(f, F16, F16) == [x]
    assert names(lambda x: -x, I32) == ["negi"] and names(lambda x: abs(x), F32) == ["absf"]
    assert names(lambda x, y: x * y + x, F32, F32) == ["fma"]


def test_options():
    def f(x, y):
        return ct.add(x, y, rounding_mode=RoundingMode.RM, flush_to_zero=True)

    assert attributes("addf", f, F32, F32) == [{"rounding_mode": "negative_inf", "flush_to_zero": True}]
    (found,) = attributes("minf", lambda x, y: ct.minimum(x, y, propagate_nan=True), F32, F32)
    assert found["propagate_nan"] and not found["flush_to_zero"]
    assert attributes("addf", lambda x, y: x + y, F16, F16)[0]["rounding_mode"] == "nearest_even"


def test_signs():
    for t, sign in ((I32, "signed"), (U8, "unsigned")):
        assert attributes("maxi", ct.maximum, t, t) == [{"signedness": sign}]
    (signed,) = attributes("divi", lambda x, y: x // y, I32, I32)
    assert signed == {"signedness": "signed", "rounding": "negative_inf"}
    (unsigned,) = attributes("divi", lambda x, y: x // y, U8, U8)  # to minus infinity is no mode of unsigned ones
    assert unsigned == {"signedness": "unsigned", "rounding": "zero"}
    assert attributes("divi", ct.cdiv, U8, U8) == [{"signedness": "unsigned", "rounding": "positive_inf"}]


def test_remainders_get_the_sign_of_the_divisor():
    assert names(lambda x, y: x % y, U8, U8) == ["remi"]
    assert names(lambda x, y: x % y, I32, I32) == ["remi", "cmpi", "cmpi", "xori", "cmpi", "andi", "addi", "select"]
    assert names(lambda x, y: x % y, F32, F32) == ["remf", "cmpf", "cmpf", "xori", "cmpf", "andi", "addf", "select"]


def test_quotients_of_floats_round_first():
    assert names(lambda x, y: x // y, F32, F32) == ["divf", "floor"]
    assert names(ct.cdiv, F32, F32) == ["divf", "ceil"]


# ------------------------------------------------------------------ constant divisors of integers

FOUR = 4
SPELLINGS = {
    "number": lambda x: x // 4, "strict": lambda x: x // ct.int32(4), "captured": lambda x: x // FOUR,
    "full": lambda x: x // ct.full((16,), 4, ct.int32), "one": lambda x: x // ct.full((1,), 4, ct.int32),
    "reshaped": lambda x: x // ct.full((4, 4), 4, ct.int32).reshape((16,)),
    "permuted": lambda x: x // ct.permute(ct.full((16, 1), 4, ct.int32), (1, 0)).reshape((16,)),
    "cast": lambda x: x // ct.full((16,), 260, ct.int16).astype(ct.uint8).astype(ct.int32),
}


@pytest.mark.parametrize("f", SPELLINGS.values(), ids=SPELLINGS)
def test_any_constant_is_recognised(f):
    found = names(f, I32)
    assert "shri" in found and "divi" not in found


def steps(f, *kinds) -> list[str]:
    """The operations of a function, without those that make a tile of its divisor."""
    return [name for name in names(f, *kinds) if name not in ("reshape", "broadcast")]


def test_data_is_shifted_and_masked():
    assert steps(lambda x: x // 4, I32) == ["shri"] and steps(lambda x: x % 4, I32) == ["andi"]
    assert steps(lambda x: divmod(x, 16), I32) == ["shri", "andi"]
    assert steps(lambda x: x // 1, I32) == steps(lambda x: ct.cdiv(x, 1), I32) == []
    assert steps(lambda x: ct.cdiv(x, 2), I32) == ["andi", "shri", "addi"]
    for t in (I32, U8):
        assert steps(lambda x: ct.cdiv(x, 4), t) == ["andi", "cmpi", "exti", "shri", "addi"]
    assert attributes("shri", lambda x: x // 4, I32) == [{"signedness": "signed"}]
    assert attributes("shri", lambda x: ct.cdiv(x, 4), U8) == [{"signedness": "unsigned"}]


def test_what_the_assembler_shortens_itself_stays():
    assert steps(lambda x: divmod(x, 4), U8) == ["divi", "remi"]
    for f in (lambda x: x // 3, lambda x: x // -4, lambda x: x // -2**31, lambda x: x // x):
        assert "divi" in names(f, I32)


def test_places_are_divided():
    """The assembler knows of quotients and remainders of places which ones follow each other."""
    def rows(x):
        i = ct.arange(16, dtype=ct.int32)
        return x + (i // 4) * 8 + i % 4 + ct.cdiv(ct.bid(0) * 16 + i, 8)

    found = names(rows, I32)
    assert found.count("divi") == 2 and "remi" in found and "shri" not in found


def test_elements_that_a_reduction_combines_are_data():
    assert "remi" not in names(lambda x: ct.reduce(x, 0, lambda a, b: (a + b) % 8, 0), I32)


def numbers(d: int, dtype: DType, xs: list[int]) -> None:
    """Quotients and remainders of numbers, as GPUs compute them, are those of Python."""
    n = 1 << (len(xs) - 1).bit_length()

    @ct.kernel
    def kernel(x, quotients, rests, up, both):
        v = ct.load(x, 0, n)
        ct.store(quotients, 0, v // d)
        ct.store(rests, 0, v % d)
        ct.store(up, 0, ct.cdiv(v, d))
        q, r = divmod(v, d)
        ct.store(both, 0, q)
        ct.store(both, 1, r)

    x = np.array(xs * 2, dtype.name)[:n]
    out = [np.zeros(n * k, x.dtype) for k in (1, 1, 1, 2)]
    with instead_of_interpreter():
        ct.launch(None, (1,), kernel, (x, *out))
    found = [a.tolist() for a in out]
    given = x.tolist()
    quotients, rests = [v // d for v in given], [v % d for v in given]
    assert found == [quotients, rests, [-(-v // d) for v in given], quotients + rests]


def divisors(dtype: DType) -> list[int]:
    """All positive powers of two, and what is similar to them."""
    low, high = int_range(dtype)
    return [*(1 << k for k in range(high.bit_length())), 3, high, *((-2, -4, low) if low else ())]


@pytest.mark.parametrize("d, dtype", [(d, t) for t in (ct.int8, ct.uint8) for d in divisors(t)])
def test_all_numbers_of_8_bits(d, dtype):
    low, high = int_range(dtype)
    numbers(d, dtype, list(range(low, high + 1)))


@pytest.mark.parametrize("dtype", [t for t in INTEGERS if t.bitwidth > 8])
def test_the_ends_of_wider_integers(dtype):
    low, high = int_range(dtype)
    for d in divisors(dtype):
        near = {base + k for base in (low, -d, 0, d, high // 2, high) for k in range(-2, 3)}
        numbers(d, dtype, sorted(v for v in near if low <= v <= high))


@st.composite
def divisions(draw):
    dtype = draw(st.sampled_from(INTEGERS))
    low, high = int_range(dtype)
    k = draw(st.integers(0, high.bit_length() - 1))
    return 1 << k, dtype, draw(st.lists(st.integers(low, high), min_size=1, max_size=16))


@given(divisions())
@examples(max_examples=60)
def test_any_power_of_two(case):
    numbers(*case)
