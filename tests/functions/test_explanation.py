"""What a call adds to an error of its kernel."""

import numpy as np
import pytest

import cutile as ct
from tests.functions.shows import shows


@ct.kernel
def weighted(x: ct.Array["N"], w: ct.Array["N"], y):
    ct.store(y, 0, ct.load(x, 0, 4) * ct.load(w, 0, 4) / 3)


def refused(f, *dtypes):
    with pytest.raises(ct.TileTypeError) as e:
        f(*(np.ones(4, d) for d in dtypes))
    assert "y, 0" in e.value.loc.source_line() and len(e.value.notes) == 1
    return e.value.notes[0][0], e.value.help


@shows("JIT-6.dtypes")
@pytest.mark.parametrize("x, w, note, help", [
    ("f4", "f8", "`x` has dtype float32; `w` has dtype float64; output `y` has dtype float32, as the first array, `x`",
     'pass `w` as float32 or declare ct.Out("N", ct.float64), or convert explicitly: value.astype(ct.float32)'),
    ("f2", "f4", "`x` has dtype float16; `w` has dtype float32; output `y` has dtype float16, as the first array, `x`",
     'pass `w` as float16 or declare ct.Out("N", ct.float32), or convert explicitly: value.astype(ct.float16)'),
    ("i8", "f4", "`x` has dtype int64; `w` has dtype float32; output `y` has dtype int64, as the first array, `x`",
     'declare ct.Out("N", ct.float32), which holds fractions; value.astype(ct.int64) would cut them off'),
    ("i4", "i4", "`x` has dtype int32; `w` has dtype int32; output `y` has dtype int32, as the first array, `x`",
     'declare ct.Out("N", ct.float32), which holds fractions; value.astype(ct.int32) would cut them off')])
def test_where_dtypes_come_from(x, w, note, help):
    f = ct.jit(weighted, grid=(1,), out=ct.Out("N"))
    for _ in range(2):
        assert refused(f, x, w) == (note, help)


def test_a_declared_dtype():
    note, help = refused(ct.jit(weighted, grid=(1,), out=ct.Out("N", ct.float32)), "f4", "f8")
    assert note.endswith("output `y` has dtype float32")
    assert help == "pass `w` as float32, or convert explicitly: value.astype(ct.float32)"
    note, help = refused(ct.jit(weighted, grid=(1,), out=ct.Out("N", ct.int8)), "f4", "f4")
    assert help == "let what takes the value have dtype float32: value.astype(ct.int8) would cut off fractions"


def test_other_shapes_of_declarations():
    _, help = refused(ct.jit(weighted, grid=(1,), out=ct.Out(like="w", dtype="x")), "f4", "f8")
    assert help == "pass `w` as float32, or convert explicitly: value.astype(ct.float32)"
    _, help = refused(ct.jit(weighted, grid=(1,), out=ct.Out(lambda N: (N,))), "f4", "f8")
    assert 'declare ct.Out(..., ct.float64)' in help


def test_launches_know_no_declaration():
    with pytest.raises(ct.TileTypeError) as e:
        ct.launch(None, (1,), weighted, (np.ones(4, "f4"), np.ones(4), np.ones(4, "f4")))
    assert e.value.notes == () and e.value.help == "convert explicitly: value.astype(ct.float32)"
