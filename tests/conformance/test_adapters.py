"""The adapters of implementations that run on a GPU, with stand-ins for CuPy and PyTorch whose memory is NumPy's."""

import re
import sys
import types
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from conformance.adapters import dlpack
from conformance.adapters.cuda_tile import CudaTile
from conformance.adapters.cutile_gpu import Gpu, Prepared
from conformance.adapters.device import CuPy, NoArray, Torch, driver_version
from cutile import settings
from cutile.gpu import driver as drivers
from tests.gpu.fake_driver import FakeDriver


class Memory(np.ndarray):
    """Bytes with an address as CuPy gives it."""

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)


class Stream:
    ptr, waited = 0, 0

    def synchronize(self):
        self.waited += 1


class Tensor:
    def __init__(self, data):
        self.data = data

    def cuda(self):
        return self

    cpu = cuda

    def numpy(self):
        return self.data

    def data_ptr(self):
        return self.data.ctypes.data


class Fault(Exception):
    """CUDA's error."""


def fault():
    raise Fault("an illegal memory access\nwas encountered")


def stand_ins(stream):
    """Stand-ins for the parts of CuPy and PyTorch that the adapters need."""
    runtime = types.SimpleNamespace(deviceSynchronize=lambda: None, CUDARuntimeError=Fault,
                                    getDeviceProperties=lambda _: {"name": b"A GPU"})
    device = types.SimpleNamespace(compute_capability="90", id=0)
    cupy = types.SimpleNamespace(
        asarray=lambda a: a.copy().view(Memory), asnumpy=lambda m: np.array(m, subok=False), ndarray=Memory,
        cuda=types.SimpleNamespace(get_current_stream=lambda: stream, runtime=runtime, Device=lambda: device))
    torch = types.SimpleNamespace(Tensor=Tensor, from_numpy=Tensor, cuda=types.SimpleNamespace(
        current_stream=lambda: stream, current_device=lambda: 0, synchronize=lambda: None,
        get_device_capability=lambda: (9, 0), get_device_name=lambda: "A GPU"))
    return cupy, torch


README = Path(__file__).resolve().parents[2] / "conformance" / "README.md"


def official():
    """The adapter that the README writes out."""
    block = next(b for b in re.findall(r"```python\n(.*?)```", README.read_text(), re.S) if "class Official" in b)
    assert len(block.splitlines()) <= 60
    space: dict = {}
    exec(block, space)
    return type("Ours", (space["Official"],), {"module": "cutile"})()


@pytest.fixture(params=["CuPy", "PyTorch", "README"])
def gpu(request, monkeypatch):
    """An adapter whose launches run in the interpreter, on copies."""
    cupy, torch = stand_ins(Stream())
    monkeypatch.setitem(sys.modules, "cupy", None if request.param == "PyTorch" else cupy)
    monkeypatch.setitem(sys.modules, "torch", torch if request.param == "PyTorch" else None)
    monkeypatch.setattr(drivers, "_driver", FakeDriver().start())
    with settings.override(BACKEND="interp"):
        yield official() if request.param == "README" else Gpu()


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


def test_prepared_launches(monkeypatch):
    """Results come from a launch by ct.prepare, not from ct.launch."""
    monkeypatch.setitem(sys.modules, "cupy", stand_ins(Stream())[0])
    monkeypatch.setattr(drivers, "_driver", FakeDriver().start())
    monkeypatch.setattr(ct, "launch", None)
    x, y = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    with settings.override(BACKEND="interp"):
        gpu = Prepared()
        gpu.launch((1,), copy, (x, y))
    assert y.tolist() == [0, 1, 2, 3] and gpu.stream().waited == 1


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


def test_what_the_hardware_lacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", stand_ins(Stream())[0])
    gpu = Gpu()
    assert gpu.not_applicable == (ct.TileUnsupportedFeatureError, NoArray)
    packed = np.ones(4, ml_dtypes.float4_e2m1fn)
    with pytest.raises(NoArray, match="two elements a byte"):
        gpu.to_device(packed)


def test_dlpack_is_read_by_numpy(monkeypatch):
    monkeypatch.setattr(dlpack, "CUDA", 1)  # the CPU, and bytes: what NumPy reads
    monkeypatch.setattr(dlpack, "CODES", {"uint8": 1})
    base = np.arange(24, dtype=np.uint8).reshape(4, 6)
    for x in (base, base[1:, ::2], base.T, base[2, 3], base[::-1]):
        x = np.asarray(x)
        exported = dlpack.Exported(base, x.ctypes.data, x, 0)
        got = np.from_dlpack(exported)
        assert got.tolist() == x.tolist() and got.strides == x.strides and got.ctypes.data == x.ctypes.data


def test_8_bit_floats_go_by_dlpack(monkeypatch):
    class Official(CudaTile):
        module, package = "cutile", None

    monkeypatch.setitem(sys.modules, "cupy", stand_ins(Stream())[0])
    adapter = Official()
    for name, code in dlpack.CODES.items():
        x = np.arange(1, 7).astype(getattr(ml_dtypes, name))[1::2]
        sent = adapter.to_device(x)
        assert not hasattr(sent, "__cuda_array_interface__") and sent.__dlpack_device__() == (2, 0)
        assert (sent.tensor.code, sent.tensor.bits, sent.numbers[:]) == (code, 8, [3, 2])
        want = x.copy()
        x[:] = 1
        adapter.to_host(sent, x)
        assert x.tobytes() == want.tobytes()
    assert hasattr(adapter.to_device(np.zeros(3, np.int8)), "__cuda_array_interface__")


def test_a_gpu_that_is_lost(monkeypatch):
    cupy, _ = stand_ins(Stream())
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    for adapter in (Gpu(), official()):
        assert adapter.lost() is None
        with monkeypatch.context() as m:
            m.setattr(cupy.cuda.runtime, "deviceSynchronize", fault)
            assert "an illegal memory access" in adapter.lost()


@pytest.mark.parametrize("lib", [CuPy, Torch])
def test_facts(lib, monkeypatch):
    cupy, torch = stand_ins(Stream())
    monkeypatch.setitem(sys.modules, "cupy", cupy if lib is CuPy else None)
    monkeypatch.setitem(sys.modules, "torch", torch)
    gpu = Gpu()
    assert type(gpu.memory) is lib and gpu.memory.architecture() == "sm_90" and gpu.memory.device() == 0
    assert gpu.hardware().startswith(f"A GPU, driver {driver_version()}; ") and gpu.version() == ct.__version__


def test_without_any_library(monkeypatch):
    for name in ("cupy", "torch"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="need CuPy .* or PyTorch"):
        Gpu()
