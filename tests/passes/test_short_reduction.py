"""Reductions of short axes by parts: which are replaced, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import interp, settings
from cutile.dtypes import info
from cutile.front.program import Embedded, type_kernel
from cutile.gpu.tileir.lower import after_passes
from cutile.ir.check import check
from cutile.ir.nodes import Kernel, Op
from cutile.ir.walk import walk
from cutile.passes.fma import fma
from cutile.passes.short_reduction import short_reduction
from cutile.types import ArrayType

DTYPES = (ct.int8, ct.uint32, ct.int64, ct.float16, ct.bfloat16, ct.float32, ct.float64)


def passed(code, *kinds) -> tuple[Kernel, Kernel]:
    """A kernel as the pass gets it, and as it gives it."""
    with settings.override(HINTS=False):
        before = after_passes(fma(type_kernel(code, kinds).kernel))
    after = short_reduction(before)
    check(after)
    return before, after


def named(kernel: Kernel) -> list[str]:
    return [n.op.name for n in walk(kernel.body) if isinstance(n, Op)]


def reductions(kernel: Kernel) -> int:
    return sum(name in ("sum", "prod", "max", "min") for name in named(kernel))


def reduced(x, y, f, dims, axis):
    t = ct.load(x, 0, 1024).reshape(dims)
    r = f(t, axis=axis)
    ct.store(y, 0, r.reshape((r.shape[0] * r.shape[1],)))


def values(dtype) -> np.ndarray:
    x = np.random.default_rng(0).integers(-99, 99, 1024).astype(info(dtype).storage)
    if info(dtype).floating:
        x[::7], x[::11], x[::13], x[::5] = np.nan, np.inf, -0.0, x[::5] * x.dtype.type(1e-3)
        x[:8], x[512:520] = 0.0, -0.0
    return x


def run(kernel: Kernel, x: np.ndarray) -> np.ndarray:
    y = np.zeros(1024, x.dtype)
    interp.launch(kernel, (1, 1, 1), [x.copy(), y])
    return y


# The interpreter adds up floats of the last axis in another order.
AXES = (((4, 256, 1), 0), ((2, 2, 256), 1), ((256, 2, 2), 2), ((8, 32, 4), -1))
SAME = [(f, d, *a) for f in (ct.max, ct.min, ct.sum) for d in DTYPES for a in AXES
        if f is not ct.sum or not info(d).floating or a[1] in (0, 1)]


@pytest.mark.parametrize("f, dtype, dims, axis", SAME, ids=lambda x: getattr(x, "name", str(x)))
def test_the_same_bits(f, dtype, dims, axis):
    before, after = passed(reduced, *[ArrayType(dtype, 1)] * 2, *map(Embedded, (f, dims, axis)))
    assert reductions(before) == 1 and not reductions(after)
    x = values(dtype)
    one, other = run(before, x), run(after, x)
    if info(dtype).floating:
        one, other = one.astype(np.float64), other.astype(np.float64)
        np.testing.assert_array_equal(np.signbit(one[one == 0]), np.signbit(other[one == 0]))
    np.testing.assert_array_equal(one, other)


def test_sums_of_the_last_axis():
    def code(x, y):
        ct.store(y, 0, ct.sum(ct.load(x, 0, 1024).reshape((256, 4)), axis=1))

    before, after = passed(code, *[ArrayType(ct.float32, 1)] * 2)
    x = np.random.default_rng(0).standard_normal(1024).astype(np.float32)
    np.testing.assert_allclose(run(before, x), run(after, x), rtol=0, atol=4e-6)
    assert not reductions(after)


def test_options_pass_to_the_steps():
    def code(x, y):
        t = ct.load(x, 0, 1024).reshape((4, 256))
        low = ct.min(t, axis=0, propagate_nan=True, flush_to_zero=True)
        ct.store(y, 0, low + ct.sum(t, axis=0, rounding_mode=ct.RoundingMode.RZ))

    _, after = passed(code, *[ArrayType(ct.float32, 1)] * 2)
    steps = [n for n in walk(after.body) if isinstance(n, Op) and n.op.name in ("minimum", "add")]
    assert [n.attrs for n in steps[:2]] == [{"flush_to_zero": True, "propagate_nan": True}] * 2
    assert [n.attrs["rounding_mode"] for n in steps[2:]] == [ct.RoundingMode.RZ] * 2 + [None]


@pytest.mark.parametrize("dims, axis", [
    ((8, 128, 1), 0), ((4, 16, 16), 1), ((256, 2, 2), 1), ((64, 2, 8), 1), ((1, 1024, 1), 0)])
def test_what_stays(dims, axis):
    """Axes that are long, of one element, or whose elements lie in one warp but not side by side."""
    before, after = passed(reduced, *[ArrayType(ct.float32, 1)] * 2, *map(Embedded, (ct.max, dims, axis)))
    assert after is before


def shifted(x, y):
    t = ct.load(x, 0, 1024).reshape((2, 512))
    ct.store(y, 0, (t - ct.max(t, axis=0, keepdims=True)).reshape((1024,)))


def normalised(x, y):
    t = ct.load(x, 0, 1024).reshape((2, 512))
    ct.store(y, 0, (t * ct.rsqrt(ct.sum(t * t, axis=0) / 2)).reshape((1024,)))


@pytest.mark.parametrize("code", [shifted, normalised], ids=lambda f: f.__name__)
def test_a_result_that_goes_back_to_its_elements(code):
    before, after = passed(code, *[ArrayType(ct.float32, 1)] * 2)
    assert after is before


def test_turned_off():
    with settings.override(HINTS=False):
        before, after = passed(reduced, *[ArrayType(ct.float32, 1)] * 2, *map(Embedded, (ct.max, (4, 256, 1), 0)))
    assert after is before
