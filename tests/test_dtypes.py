"""Dtypes: identity, names, the promotion table [DT-*, PROMO-5, FPTR-1]."""

import copy
import itertools
import pickle

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile.dtypes import ARITHMETIC, INFO, NUMERIC, from_foreign, info, int_range, of_storage, promote

WIDTHS = {
    "bool_": 8,
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "uint8": 8,
    "uint16": 16,
    "uint32": 32,
    "uint64": 64,
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "float64": 64,
    "tfloat32": 32,
    "float8_e4m3fn": 8,
    "float8_e5m2": 8,
    "float8_e8m0fnu": 8,
    "float8_e5m3fnu": 8,
    "float4_e2m1fn": 4,
}


def test_table():  # DT-3, DT-4
    numeric = [d for d in NUMERIC if info(d).kind != "p"]
    assert {d.name: d.bitwidth for d in numeric} == WIDTHS
    assert [d.name for d in ARITHMETIC if info(d).kind != "p"] == list(WIDTHS)[:13]
    for d in numeric:
        assert getattr(ct, d.name) is d


@pytest.mark.parametrize("d", NUMERIC, ids=str)
def test_objects(d):  # DT-1, DT-2
    assert copy.copy(d) is d and copy.deepcopy(d) is d and pickle.loads(pickle.dumps(d)) is d
    assert repr(d) == f"<DType '{d.name}'>" and str(d) == d.name == d.__name__ and hash(d) == hash(d)
    assert isinstance(d, ct.DType)
    with pytest.raises(TypeError, match="tile code only"):
        d(5)
    with pytest.raises(AttributeError):
        d.name = "x"
    with pytest.raises(TypeError):
        d < d  # noqa: B015


def test_no_new_dtypes():  # DT-1
    with pytest.raises(TypeError):
        ct.DType()


@pytest.mark.parametrize("d", [d for d in NUMERIC if info(d).floating and info(d).storage.itemsize <= 2 and of_storage(
    info(d).storage) is d], ids=str)
def test_carriers_hold_every_value(d):
    i = info(d)
    width = min(d.bitwidth, 8 * i.storage.itemsize)
    with np.errstate(all="ignore"):
        values = np.arange(2**width).astype(f"u{i.storage.itemsize}").view(i.storage).astype(np.float64)
        carried = values.astype(i.carrier).astype(np.float64)
    assert np.array_equal(carried, values, equal_nan=True)


# The promotion table: a row for each arithmetic dtype; "-" if there is no common dtype.
ORDER = [
    "bool_",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]
SHORT = dict(
    zip(["b1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"], ORDER, strict=True)
)
TABLE = """
b1 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64
i8 i8 i16 i32 i64 - - - - f16 bf16 f32 f64
i16 i16 i16 i32 i64 - - - - f16 bf16 f32 f64
i32 i32 i32 i32 i64 - - - - f16 bf16 f32 f64
i64 i64 i64 i64 i64 - - - - f16 bf16 f32 f64
u8 - - - - u8 u16 u32 u64 f16 bf16 f32 f64
u16 - - - - u16 u16 u32 u64 f16 bf16 f32 f64
u32 - - - - u32 u32 u32 u64 f16 bf16 f32 f64
u64 - - - - u64 u64 u64 u64 f16 bf16 f32 f64
f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 - f32 f64
bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 - bf16 f32 f64
f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
"""


def test_promotion_table():  # PROMO-5
    rows = [line.split() for line in TABLE.strip().splitlines()]
    for (i, a), (j, b) in itertools.product(enumerate(ORDER), repeat=2):
        cell = rows[i][j]
        want = None if cell == "-" else getattr(ct, SHORT[cell])
        assert promote(getattr(ct, a), getattr(ct, b)) is want, (a, b)


def test_restricted_floats_promote_with_themselves_only():  # PROMO-5
    for a, b in itertools.product(NUMERIC, repeat=2):
        if info(a).restricted or info(b).restricted:
            assert promote(a, b) is (a if a is b else None)


def test_int_ranges():
    assert int_range(ct.int8) == (-128, 127) and int_range(ct.uint64) == (0, 2**64 - 1)


@pytest.mark.parametrize(
    "obj,want",
    [
        (np.float32, "float32"),
        (np.dtype("f8"), "float64"),
        (np.int8, "int8"),
        (np.bool_, "bool_"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.dtype(ml_dtypes.float8_e4m3fn), "float8_e4m3fn"),
        (ml_dtypes.float4_e2m1fn, "float4_e2m1fn"),
        (np.complex64, None),
        (int, None),
        (float, None),
        ("float32", None),
        (np.dtype("U3"), None),
        (None, None),
        (np.dtype(">f4"), None),
    ],
)
def test_foreign_dtypes(obj, want):  # DT-8
    assert from_foreign(obj) is (want and getattr(ct, want))


def test_storage_round_trip():
    for d, i in INFO.items():
        if i.kind != "p" and d not in (ct.tfloat32, ct.float8_e5m3fnu):
            assert of_storage(i.storage) is d
    assert of_storage(np.dtype("c8")) is None


def test_foreign_pointers():  # FPTR-1
    p = ct.foreign_pointer_dtype(ct.float16)
    assert p is ct.foreign_pointer_dtype(ct.float16) and p.name == "foreign_pointer[float16]" and p.bitwidth == 64
    assert pickle.loads(pickle.dumps(p)) is p and info(p).pointee is ct.float16
    for bad in (3, p, np.float32, None):
        with pytest.raises(TypeError):
            ct.foreign_pointer_dtype(bad)
