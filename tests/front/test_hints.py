"""What errors say to write instead, for mistakes that come from other libraries or from Python's habits."""

import functools

import numpy as np
import pytest

import cutile as ct
from cutile.front.program import compile_kernel
from tests.front.compiling import A1, ARRAYS, I32, cell, refused

TILE = "    t = ct.load(a, i, 4).astype(ct.float32)\n"


@pytest.mark.parametrize("line, help", [
    ("ct.where(t > 0 & t < 1, t, t)", "(x > 0) & (x < 1)"),
    ("ct.load(a, i / 2, 4)", "divide integers with //"),
    ("ct.load(a, i > 2, 4)", "convert it: x.astype(ct.int32)"),
    ("for j in range(128 / 2): pass", "divide integers with //"),
    ("ct.max(t, 0.0)", "the larger of two is ct.maximum(x, y)"),
    ("ct.min(t, t)", "the smaller of two is ct.minimum(x, y)"),
    ("ct.max(t, i)", "constants are literals"),
    ("t.exp()", "write ct.exp(x)"),
    ("t.mean()", "write ct.sum(x, axis) / n"),
    ("t.sigmoid()", "write 1 / (1 + ct.exp(-x))"),
    ("np.finfo(np.float32).min", "inside ct.static_eval(...)"),
    ("t.dtype.itemsize", "inside ct.static_eval(…)"),
    ("ct.ByTarget()", "runs on the host"),
    ("ct.load(a, i, 4, padding_mode=0.0)", "ct.PaddingMode.ZERO, "),
    ("ct.assert_(i > 0, f'{i}')", "a plain string; print and ct.printf"),
    ("ct.store(a, t, i)", "one tile index per axis"),
    ("ct.store(a, i, (i, 0))", "the index comes before the tile"),
    ("ct.zeros((1, i), ct.float32)", "for k in ct.static_iter(range(…))"),
    ("ct.load(a, i, 4, mask=t > 0, other=0)", "as padding_mode says"),
    ("ct.sum(t, dim=0)", "did you mean `axis`?"),
    ("ct.atomic_add(a, i, t)", "the indices are those of elements"),
    ("t[0] = 1", "tiles are immutable"),
    ("a[0] = 1", "ct.store(array, index, tile)"),
    ("a.T", "order=(1, 0)"),
    ("a.stride(0)", "array.strides[k]"),
    ("a.foo", "there are: dtype, foreign_pointer, "),
    ("a.shape()", "a shape is no method"),
    ("len(a)", "x.shape[0]"),
    ("t.reshape(2, 2)", "a shape is one tuple"),
    ("ct.load(a, i, 4, order='K')", "order=(1, 0)"),
    ("ct.syncthreads()", "what a block does, it does in order"),
    ("functools.partial(max, 1)", "write a lambda"),
    ("np.where(t > 0, t, t)", "use ct.where(cond, x, y)"),
    ("np.zeros((4, 4))", "use ct.zeros(shape, dtype)"),
])
def test_of_tile_code(line, help):
    with pytest.raises(ct.TileError) as caught:
        compile_kernel(cell(f"def k(a, i):\n{TILE}    {line}", np=np, functools=functools)["k"], (A1, I32))
    assert help in caught.value.help


def test_of_lists_of_arrays():
    refused(cell("def k(xs):\n    xs.shape")["k"], ARRAYS, help="index it: arrays[i]")


@pytest.mark.parametrize("value, says", [
    (None, "pass any array in its place and a flag beside it"), (np.float32(2), r"pass float\(x\)"),
    ((1, (2, None)), r"\(`x\[1\]\[1\]`\)"), ((1, np.int16(3)), r"\(`x\[1\]`\).*pass int\(x\)"),
    (np.ma.masked_array(np.zeros(4, np.float32)), "kernels know no masked arrays"),
])
def test_of_arguments(value, says):
    @ct.kernel
    def k(x):
        pass

    with pytest.raises(TypeError, match=says):
        ct.launch(None, (1,), k, (value,))


def test_of_constants_and_declarations():
    @ct.kernel
    def k(x: ct.Constant):
        pass

    with pytest.raises(TypeError, match="arrays need no annotation"):
        ct.launch(None, (1,), k, (np.zeros(3),))
    with pytest.raises(TypeError, match="defaults of a kernel's parameters do not count"):
        ct.launch(None, (1,), ct.kernel(lambda x, n=4: None), (np.zeros(3),))
    with pytest.raises(TypeError, match="kernels in classes take no self"):
        ct.launch(None, (1,), ct.kernel(lambda self, x: None), (np.zeros(3),))
    with pytest.raises(TypeError, match="unknown kernel option 'num_warps'; there are num_ctas, "):
        ct.kernel(num_warps=4)
    with pytest.raises(TypeError, match="@ct.function needs a function, got int"):
        ct.function(3)

    def later(x: "Missing"):
        pass

    with pytest.raises(NameError, match="'Missing' in an annotation of .*later.*ct.Array"):
        ct.kernel(later)
