"""CUTILE_CHECK: what every value must be."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import cutile as ct
from cutile import dtypes
from cutile.dtypes import info
from cutile.errors import TileInternalError
from cutile.interp.exec.checking import check
from cutile.types import TileType

FLOATS = [d for d in vars(dtypes).values() if isinstance(d, ct.DType) and info(d).floating]
NODE = SimpleNamespace(op=SimpleNamespace(name="an op"), span=None)


def checked(dtype, value: float) -> float:
    return float(check(NODE, TileType(dtype, ()), np.asarray(value, info(dtype).carrier)))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_numbers_of_the_format_pass_and_no_others(dtype):
    f = info(dtype).format
    assert checked(dtype, 1.0) == 1.0 and checked(dtype, f.max) == f.max
    others = [*[math.inf] * (not f.has_inf), *[1 + 2.0**-(f.mantissa + 1)] * (not info(dtype).carried_exactly)]
    for value in others:
        with pytest.raises(TileInternalError, match=f"not representable in {dtype.name}"):
            checked(dtype, value)


@pytest.mark.parametrize("dtype", [d for d in FLOATS if info(d).format.has_inf], ids=lambda d: d.name)
@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinities_of_the_format_pass(dtype, value):
    assert checked(dtype, value) == value


def test_infinities_that_casts_do_not_make(monkeypatch):
    monkeypatch.setenv("CUTILE_CHECK", "1")

    @ct.kernel
    def bits(a, b):
        ct.store(b, 0, ct.bitcast(ct.bitcast(ct.load(a, 0, 4), ct.float8_e5m2), ct.uint8))

    a, b = np.array([0x7C, 0xFC, 0x7B, 0x80], np.uint8), np.zeros(4, np.uint8)
    ct.launch(None, (1,), bits, (a, b))
    assert b.tolist() == a.tolist()
