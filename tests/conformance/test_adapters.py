"""The adapters of implementations that run on a GPU, with a stand-in for CuPy whose memory is NumPy's."""

import sys
import types

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from conformance.adapters.cutile_gpu import Gpu
from conformance.adapters.device import NoArray
from cutile import settings
from cutile.gpu import driver as drivers
from tests.gpu.fake_driver import FakeDriver


class Memory(np.ndarray):
    """Bytes with CuPy's way to their address."""

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)


class Stream:
    ptr, waited = 0, 0

    def synchronize(self):
        self.waited += 1


@pytest.fixture
def gpu(monkeypatch):
    """The adapter; what it launches runs in the interpreter, by way of copies."""
    stream = Stream()
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(
        asarray=lambda a: a.copy().view(Memory), asnumpy=lambda m: np.array(m, subok=False),
        ndarray=Memory, cuda=types.SimpleNamespace(get_current_stream=lambda: stream)))
    monkeypatch.setattr(drivers, "_driver", FakeDriver().start())
    with settings.override(BACKEND="interp"):
        yield Gpu()


@ct.kernel
def copy(x, y):
    ct.store(y, 0, ct.load(x, 0, (4,)))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
                                   ml_dtypes.float8_e5m2])
def test_dtypes_and_views(gpu, dtype):
    base = np.array([0, 1, 0, 1, 1, 0, 0, 1, 1]).astype(dtype)
    for x in (base[:4], base[::2][:4], base[3::-1]):
        y = np.zeros(9, dtype)
        gpu.launch((1,), copy, (x, y[::-2]))
        assert y[::-2][:4].tobytes() == x.tobytes() and not y[1::2].any()
    assert gpu.stream().waited == 3


def test_an_array_given_twice_is_one(gpu):
    @ct.kernel
    def k(x, y, zs):
        ct.store(x, 0, ct.load(y, 1, ()) + ct.load(zs[0], 2, ()))

    x = np.arange(4, dtype=np.int32)
    gpu.launch((1,), k, (x, x, [x]))
    assert x.tolist() == [3, 1, 2, 3]


def test_read_only_arrays_are_not_written_back(gpu):
    x, y = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    x.flags.writeable = False
    gpu.launch((1,), copy, (x, y))
    assert y.tolist() == [0, 1, 2, 3]


def test_what_the_hardware_lacks(gpu):
    assert gpu.not_applicable == (ct.TileUnsupportedFeatureError, NoArray)
    packed = np.ones(4, ml_dtypes.float4_e2m1fn)
    with pytest.raises(NoArray, match="two elements a byte"):
        gpu.to_device(packed)
