"""Tiles made of constants and scalars."""

from __future__ import annotations

import pytest

import cutile as ct
from tests.gpu.tileir.rules.small_kernels import (
    INTEGERS,
    NUMBERS,
    SINGLE,
    assemble,
    attributes,
    names,
    sampled,
    scalar,
)
from tests.gpu.tileir.tool import needs_tool


def filled(x):
    return ct.full((4, 8), x, x.dtype), ct.astile((x, x, x, x), dtype=x.dtype), ct.astile(((x,), (x,)), dtype=x.dtype)


def constants(x):
    return ct.zeros((4, 4), x.dtype), ct.ones(8, x.dtype), ct.full((2,), 3, x.dtype)


def counted(x):
    return ct.arange(16, dtype=x.dtype), ct.arange(16, dtype=x.dtype, start=x, step=2)


CASES = [*((f, (scalar(d),)) for d in SINGLE for f in (filled, constants)),
         *((counted, (scalar(d),)) for d in NUMBERS)]


@needs_tool
@sampled(CASES)
def test_every_dtype(target, cases):
    assemble(cases, target)


def test_operations():
    i = scalar(ct.int32)
    assert names(lambda x: ct.full((4, 8), x, x.dtype), i)[-2:] == ["reshape", "broadcast"]
    assert names(counted, i).count("iota") == 1 and "muli" in names(counted, i)
    for f, cats in ((lambda x: ct.astile((x,), dtype=x.dtype), 0),
                    (lambda x: ct.astile(((x, x), (x, x)), dtype=x.dtype), 3)):
        assert names(f, i).count("cat") == cats


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_constants_are_encoded(dtype):
    data = [a["value"].data for a in attributes("constant", lambda x: ct.full(4, 200, x.dtype) + x, scalar(dtype))]
    assert (200).to_bytes(8, "little")[:dtype.bitwidth // 8] in data
