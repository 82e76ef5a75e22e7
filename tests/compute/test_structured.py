"""Arrays of structs and of complex numbers, in GPU memory and as tensors: what is read, and what launches get."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute.arrays import array_of
from cutile.compute.structured import structured
from tests.gpu.arrays import Cuda, at
from tests.gpu.fake_driver import installed
from tests.gpu.fields_in_c import array

Point = compute.gpu_struct({"n": np.int8, "x": np.float32, "z": {"a": np.int16, "b": np.float64}})
PACKED = np.dtype([("n", "i1"), ("x", "f8")])


@pytest.fixture
def gpu(monkeypatch):
    compute.clear_all_caches()
    yield installed(monkeypatch)
    compute.clear_all_caches()


def described(dtype, n):
    """Such an array of a library without structured dtypes of its own."""
    line = np.zeros(n, dtype)
    return at(line.ctypes.data, (n,), None, dtype.str, descr=dtype.descr), line


@pytest.mark.parametrize("dtype", [Point.dtype, PACKED, np.dtype(np.complex64), np.dtype(np.complex128)], ids=str)
def test_what_is_read(gpu, dtype):
    line = np.zeros((4, 6), dtype)
    for a, want in ((line, (24, dtype.itemsize)), (line.T, (24, dtype.itemsize)), (line[0][::-2], (3, -2)),
                    (line[:, :1], (4, 6)), (line[::2], None), (line[:0], (0, 1))):
        found = structured(Cuda(a))
        assert found.dtype == dtype and (found.shape, found.strides) == (a.shape, a.strides) and found.host is None
        if want is None or a.size == 4:
            with pytest.raises(ValueError, match="Non-contiguous arrays are not supported"):
                array_of(Cuda(a))
        else:
            n, stride = want
            made = array_of(Cuda(a))
            assert (made.size, made.stride) == (n, stride if abs(stride) > 6 else stride * dtype.itemsize)
            assert made.layout == dtype and made.host is None
    fixed = array_of(Cuda(line, read_only=True))
    assert not fixed.writable and array_of(Cuda(line)).writable


def test_fields_that_the_interface_describes(gpu):
    for dtype in (Point.dtype, PACKED):
        a, _ = described(dtype, 5)
        a.__cuda_array_interface__["descr"] = dtype.descr
        assert structured(a).dtype == dtype and array_of(a).size == 5
    for typestr, descr in (("|V2", [("", "|V2")]), ("|V8", []), ("|V8", [("a", "<i4")]), ("<f4", [])):
        a = at(4096, (3,), None, typestr)
        a.__cuda_array_interface__["descr"] = descr
        assert structured(a) is None
    for obj in (None, 3, 2.5, "text", (1, 2), [1], np.zeros(3, PACKED), np.float32(1)):
        assert structured(obj) is None


@pytest.mark.parametrize("dtype", [Point.dtype, PACKED], ids=str)
def test_launches_on_structs(gpu, dtype):
    """Of other arrays of the same kind, later calls get the addresses."""
    for k in range(3):
        x, o = Cuda(np.zeros(100, dtype)), Cuda(np.zeros(100, np.float64))
        compute.unary_transform(x, o, lambda p: p.x * 2 + p.n, 100)
        given = {int.from_bytes(p, "little") for p in gpu.launches[k]["parameters"] if len(p) == 8}
        start = x.array.ctypes.data
        assert {start + dtype.fields["n"][1], start + dtype.fields["x"][1], o.array.ctypes.data} <= given
    assert len(gpu.built) == 1
    with pytest.raises(TypeError, match="`d_out`"):
        compute.unary_transform(x, Cuda(np.zeros(100, np.int8), read_only=True), lambda p: p.n, 100)


@pytest.mark.parametrize("dtype", ["c8", "c16", Point.dtype], ids=str)
def test_arrays_of_cupy_are_read_by_their_attributes(gpu, dtype):
    a = array(1 << 20, (7,), (1,), dtype)
    found = structured(a)
    assert found.dtype == np.dtype(dtype) and found.pointer == 1 << 20 and found.device == 0
    assert structured(array(1 << 20, (7,), (1,), "f4")) is None
    b = array(3 << 20, (7,), (1,), dtype)
    assert structured(b).part == found.part != structured(array(1 << 20, (6,), (1,), dtype)).part


def test_tensors():
    torch = pytest.importorskip("torch")
    x, o = torch.arange(6) * (1 + 2j), torch.zeros(6, dtype=torch.complex64)
    x = x.to(torch.complex64)
    for source in (x, x[::2], x.reshape(2, 3)):
        n = source.numel()
        compute.unary_transform(source, o, lambda z: z * z, n)
        assert torch.equal(o[:n], (source * source).reshape(-1))
        compute.unary_transform(source.numpy(), o.numpy(), lambda z: z + z, n)  # NumPy's have plans of their own
        assert torch.equal(o[:n], (source + source).reshape(-1))
    for lazy in (x.conj(), x.conj().imag):
        with pytest.raises(TypeError, match="argument `d_in`: a torch tensor that is a lazily"):
            compute.unary_transform(lazy, o, lambda z: z * z, 6)
    kept = torch.ones(6, dtype=torch.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="`d_out`"):
        compute.unary_transform(x, kept, lambda z: z * z, 6)
