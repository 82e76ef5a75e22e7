"""max, min, argmax, argmin: which element they choose [RED-4, RED-6 … RED-8]."""

import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct
from conformance.harness.code_kernels import apply_nullary, nullary, numbers_of
from conformance.harness.exact_arithmetic import chosen, flushed
from conformance.harness.integer_arithmetic import integer_pairs
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import INTEGERS, encode, values
from conformance.harness.number_samples import sample
from conformance.harness.operand_types import refused, typed
from conformance.harness.reductions import ROWS, reduced

inf, nan = math.inf, math.nan


FLOATS = ("float16", "bfloat16", "float32", "float64")


EXTREMES = {"max": ct.max, "min": ct.min}


INDICES = {"argmax": ct.argmax, "argmin": ct.argmin}


SHAPE = (2, 4, 8)


def each(table, *subs):
    return pytest.mark.parametrize("name", [pytest.param(n, marks=clause(*(s.format(n) for s in subs))) for n in table])


def extreme(row, smaller, propagate):
    value = row[0]
    for v in row[1:]:
        value = chosen(value, v, smaller, propagate)
    return value


@pytest.mark.parametrize("d", FLOATS)
@each(EXTREMES, "RED-6.{}.nan", "RED-7.{}.nan", "RED-7.{}.propagate", "RED-7.{}.zero", "RED-4.{}.value")
def test_extremes_of_floats(name, d):
    f = EXTREMES[name]
    for propagate in (False, True):
        want = np.array([extreme(r, name == "min", propagate) for r in ROWS])
        x = encode(d, np.array(ROWS))
        same_numbers(reduced(lambda t: f(t, 1, propagate_nan=propagate), x, d, (16, 4), d), want, f"{name} {propagate}")
        xt = np.ascontiguousarray(x.reshape(16, 4).T)
        same_numbers(
            reduced(lambda t: f(t, 0, propagate_nan=propagate), xt, d, (4, 16), d), want, f"{name} {propagate}"
        )
    x = sample(d, 512, 9)
    want = np.array([extreme(r, name == "min", False) for r in values(d, x).reshape(64, 8).tolist()])
    same_numbers(reduced(lambda t: f(t, 1), x, d, (64, 8), d), want)


@pytest.mark.parametrize("d", FLOATS)
@each(EXTREMES, "RED-7.{}.zero")
def test_extremes_of_zeros(name, d):
    f = EXTREMES[name]
    for n in (2, 4, 16, 64):
        rows = np.where(np.eye(n, dtype=bool), 0.0, -0.0)
        for x in (rows, -rows):
            c = encode(d, x.ravel())
            for axis in (0, 1):
                same_numbers(reduced(lambda t: f(t, axis), c, d, (n, n), d), np.full(n, 0.0 if name == "max" else -0.0))


@each(EXTREMES, "RED-7.{}.nan")
def test_extremes_pass_over_nan_by_default(name):
    f, x = EXTREMES[name], encode("float32", np.array(ROWS))
    want = np.array([extreme(r, name == "min", False) for r in ROWS])
    same_numbers(reduced(lambda t: f(t, 1), x, "float32", (16, 4), "float32"), want)


@pytest.mark.parametrize("d", INTEGERS)
@each(EXTREMES, "RED-4.{}.value")
def test_extremes_of_integers(name, d):
    x = np.resize(integer_pairs(d)[1], 256)
    f = EXTREMES[name]
    got = reduced(lambda t: f(t, 1), x.view(f"u{x.itemsize}"), d, (32, 8), d)
    assert got.tolist() == [{"max": max, "min": min}[name](r) for r in x.reshape(32, 8).tolist()]


@each(EXTREMES, "RED-7.{}.ftz", "RED-7.{}.ftz.dtype")
def test_flushing_extremes(name):
    f = EXTREMES[name]
    rows = [
        (2.0**-130, -1.0),
        (-(2.0**-130), 1.0),
        (2.0**-130, 2.0**-140),
        (-(2.0**-130), -0.0),
        (2.0**-126, 1.0),
        (-(2.0**-130), 2.0**-130),
        (2.0**-130, nan),
        (nan, nan),
    ]
    want = np.array([extreme([flushed(a), flushed(b)], name == "min", False) for a, b in rows])
    got = reduced(
        lambda t: f(t, 1, flush_to_zero=True), encode("float32", np.array(rows)), "float32", (8, 2), "float32"
    )
    same_numbers(got, want)
    for d in (*INTEGERS, "bool_", "float16", "bfloat16", "float64"):
        refused(lambda x: f(x, flush_to_zero=True), d)
    for bad in (1, None):
        refused(lambda x: f(x, flush_to_zero=bad), "float32")
        refused(lambda x: f(x, propagate_nan=bad), "float32")
    refused(lambda x: f(x, rounding_mode="RN"), "float32")


# ------------------------------------------------------------------ indices


def best_index(row, smaller, propagate):
    best = None
    for i, v in enumerate(row):
        if v != v:
            if propagate:
                return i
            continue
        if best is None or (v < row[best] if smaller else v > row[best]):
            best = i
    return 0 if best is None else best


@pytest.mark.parametrize("d", FLOATS)
@each(
    INDICES, "RED-8.{}.tie", "RED-8.{}.nan", "RED-8.{}.allnan", "RED-8.{}.propagate", "RED-8.{}.value", "RED-8.{}.axis"
)
def test_indices_of_floats(name, d):
    f = INDICES[name]
    rows = [*ROWS[:12], [nan, -inf, -inf, nan], [nan, inf, nan, inf], [2.0, 3.0, 3.0, 2.0], [nan, nan, inf, -inf]]
    x = encode(d, np.array(rows))
    assert reduced(lambda t: f(t, 1), x, d, (16, 4), "int32").tolist() == [
        best_index(r, name == "argmin", False) for r in rows]
    for propagate in (False, True):
        want = [best_index(r, name == "argmin", propagate) for r in rows]
        assert reduced(lambda t: f(t, 1, propagate_nan=propagate), x, d, (16, 4), "int32").tolist() == want
        xt = np.ascontiguousarray(x.reshape(16, 4).T)
        assert reduced(lambda t: f(t, 0, propagate_nan=propagate), xt, d, (4, 16), "int32").tolist() == want
        flat = [v for r in rows for v in r]
        assert reduced(lambda t: f(t, propagate_nan=propagate), x, d, (16, 4), "int32").item() == best_index(
            flat, name == "argmin", propagate
        )


@pytest.mark.parametrize("d", [*INTEGERS, "bool_"])
@each(INDICES, "RED-8.{}.tie", "RED-8.{}.value", "RED-8.{}.flat", "RED-4.{}.dtype", "RED-8.{}.axis")
def test_indices_of_integers(name, d):
    f = INDICES[name]
    rng = np.random.default_rng(2)
    x = (
        rng.integers(0, 2, (8, 4, 2)).astype(bool)
        if d == "bool_"
        else rng.choice(integer_pairs(d)[1], (8, 4, 2)).astype(d)
    )
    c = x if d == "bool_" else x.view(f"u{x.itemsize}")
    for axis in (0, 1, 2, -1):
        got = reduced(lambda t: f(t, axis), c, d, (8, 4, 2), "int32")
        moved = np.moveaxis(x, axis, -1)
        assert got.ravel().tolist() == [
            best_index(r, name == "argmin", False) for r in moved.reshape(-1, moved.shape[-1]).tolist()
        ]
    assert reduced(lambda t: f(t), c, d, (8, 4, 2), "int32").item() == best_index(
        x.ravel().tolist(), name == "argmin", False
    )


@each(INDICES, "RED-8.{}.keepdims", "RED-8.{}.axis", "RED-8.{}.kind", "RED-8.{}.scalar", "RED-4.{}.dtype")
def test_indices_forms(name):
    f = INDICES[name]
    typed(lambda x: f(x, 1), f"float32 {SHAPE}", dtype="int32", shape=(2, 8))
    typed(lambda x: f(x), f"float16 {SHAPE}", dtype="int32", shape=())
    typed(lambda x: f(x, 1, keepdims=True), f"bool_ {SHAPE}", dtype="int32", shape=(2, 1, 8))
    typed(lambda x: f(x, keepdims=True), f"int64 {SHAPE}", dtype="int32", shape=(1, 1, 1))
    typed(lambda x: f(x), "float32 ()", dtype="int32", shape=())
    assert (
        list(
            numbers_of(
                "int32",
                apply_nullary(nullary(lambda: ct.full(4, f(ct.full((), 7, ct.int8)), ct.int32), "int32"), "int32", 4),
            )
        )
        == [0] * 4
    )
    for bad in ((0, 1), (0,), (), 3, -4, True, 1.0, "0"):
        refused(lambda x: f(x, axis=bad), f"float32 {SHAPE}")
    refused(lambda x, a: f(x, axis=a), f"float32 {SHAPE}", "int32 ()")
    refused(lambda x: f(x, 0), "float32 ()")
    for bad in (1, None):
        refused(lambda x: f(x, keepdims=bad), "float32")
        refused(lambda x: f(x, propagate_nan=bad), "float32")
