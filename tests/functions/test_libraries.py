"""Outputs of the libraries of arrays, and their current streams."""

import os
import sys
import types

import numpy as np
import pytest

import cutile as ct
from cutile.functions import libraries
from cutile.runtime import launch as launching
from cutile.runtime import launch_cache
from tests.functions.kernels import scaled, softmax, unstored
from tests.functions.shows import shows
from tests.gpu.arrays import Cuda
from tests.gpu.fake_driver import installed


@ct.kernel
def filled(y, n: ct.Constant[int]):
    ct.store(y, ct.bid(0), ct.full((4,), n, y.dtype))


def ones(device=None):
    return ct.jit(filled, grid="cdiv(n,4)", out=ct.Out("n", ct.float32, device=device), name="ones")


@shows("JIT-9.device")
def test_on_a_device_without_arrays():
    f = ones("cpu")
    for _ in range(2):
        assert type(f(8)) is np.ndarray and f(8).tolist() == [8] * 8


@shows("JIT-9.none")
def test_without_arrays_and_device(monkeypatch):
    for name in ("torch", "cupy"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TypeError, match='write device="cpu" or device="cuda"'):
        ones()(8)
    with pytest.raises(TypeError, match="needs PyTorch or CuPy"):
        ones("cuda")(8)
    with pytest.raises(TypeError, match="device is "):
        ones(3.5)(8)


@shows("JIT-9.library")
def test_other_arrays_of_the_cpu():
    class Mine:
        def __init__(self, a):
            self.__array_interface__, self.a = a.__array_interface__, a

    x = np.ones((2, 4), np.float32)
    assert type(softmax(Mine(x))) is np.ndarray and np.allclose(softmax(Mine(x)), 0.25)


# ------------------------------------------------------------------ PyTorch


def pytorch():
    return pytest.importorskip("torch")


@shows("JIT-9.library", "JIT-9.dtypes")
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_tensors(dtype):
    torch = pytorch()
    x = torch.arange(12, dtype=getattr(torch, dtype)).reshape(3, 4)
    for _ in range(2):
        y = softmax(x)
        assert type(y) is torch.Tensor and y.dtype == x.dtype and not y.requires_grad
        assert torch.allclose(y.double().sum(1), torch.ones(3, dtype=torch.float64), atol=2e-2)
    o = torch.zeros_like(x)
    assert softmax(x, out=o) is o and torch.equal(o, y) and softmax(x, out=o) is o


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool_", "float8_e4m3fn", "float8_e5m2", "bfloat16",
                                   "float64"])
def test_dtypes_of_tensors(dtype):
    torch = pytorch()

    @ct.kernel
    def k(x: ct.Array["N"], y):
        unstored(y)

    f = ct.jit(k, grid=(1,), out=ct.Out("N", getattr(ct, dtype)))
    y = f(torch.zeros(3))
    assert y.dtype == getattr(torch, dtype.rstrip("_")) and y.shape == (3,)
    poisoned = y.float()
    assert torch.isnan(poisoned).all() or (poisoned == (255 if dtype == "uint8" else 1 if dtype == "bool_" else
                                                        torch.iinfo(y.dtype).min)).all()
    g = ct.jit(k, grid=(1,), out=ct.Out("N", getattr(ct, dtype), fill=1))
    assert (g(torch.zeros(3)).float() == 1).all()
    given = torch.zeros(6, dtype=y.dtype)
    for out in (given[:3], given[:3], given[::2].contiguous()):
        out.view(torch.uint8).zero_()
        assert g(torch.zeros(3), out=out) is out and (out.float() == 1).all()
    assert not given[3:].float().any()


def test_pairs_of_float4():
    torch = pytorch()

    @ct.kernel
    def k(x: ct.Array["N"], y):
        ct.store(y, 0, ct.full((4,), 1.0, ct.float32).astype(ct.float4_e2m1fn))

    f = ct.jit(k, grid=(1,), out=ct.Out("4", ct.float4_e2m1fn))
    y = f(torch.zeros(3))
    assert y.dtype == torch.float4_e2m1fn_x2 and y.view(torch.uint8).tolist() == [0x22, 0x22]
    with pytest.raises(ValueError, match="must be even"):
        ct.jit(k, grid=(1,), out=ct.Out("N", ct.float4_e2m1fn))(torch.zeros(3))


def test_a_dtype_that_pytorch_lacks():
    torch = pytorch()

    @ct.kernel
    def k(x: ct.Array["N"], y):
        unstored(y)

    if not hasattr(torch, "float8_e5m3fnu"):
        with pytest.raises(TypeError, match="has no dtype float8_e5m3fnu"):
            ct.jit(k, grid=(1,), out=ct.Out("N", ct.float8_e5m3fnu))(torch.zeros(3))


def test_parameters_and_modes_of_pytorch():
    torch = pytorch()
    x = torch.nn.Parameter(torch.ones(2, 4))
    with torch.no_grad():
        assert type(softmax(x)) is torch.Tensor
    with torch.inference_mode():
        assert softmax(torch.ones(2, 4)).is_inference()


def test_repeated_calls_on_tensors(monkeypatch):
    """C code makes their outputs, where it is there."""
    torch = pytorch()
    x = torch.rand(2, 4)
    before = softmax(x)
    if launch_cache.extension() is not None and "CUTILE_CHECK" not in os.environ:
        monkeypatch.setattr(launching, "launch", lambda *a: pytest.fail("Python code ran the launch"))
    assert torch.equal(softmax(x), before) and softmax(x) is not before
    with torch.inference_mode():
        assert softmax(x).is_inference()
    grad = torch.rand(2, 4, requires_grad=True)
    assert torch.allclose(softmax(grad), torch.softmax(grad, 1)) and not softmax(grad).requires_grad


@pytest.mark.parametrize("shape", [(), (1,), (0,), (5,), (3, 1, 4), (1, 5), (5, 1), (2, 3, 4, 5), (4, 0, 3)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool_", "float8_e5m2"])
def test_what_c_code_makes_tensors_with(shape, dtype):
    """Like torch.empty, without keeping memory."""
    torch = pytorch()
    kind = getattr(torch, dtype.strip("_"))
    function, args, named, fill = libraries._Torch(torch).empty(shape, kind, torch.device("cpu"))
    made, want = function(*args, **(named or {})), torch.empty(shape, dtype=kind)
    assert (made.shape, made.stride(), made.dtype, fill) == (want.shape, want.stride(), want.dtype, None)
    if named is None:
        assert args[0].untyped_storage().nbytes() == want.dtype.itemsize


def test_without_arrays_on_the_current_device_of_pytorch():
    torch = pytorch()
    y = ones()(8)
    assert y.device == torch.get_default_device() or y.is_cuda
    assert type(ones(torch.device("cpu"))(8)) is torch.Tensor


def test_inside_torch_compile():
    torch = pytorch()
    compiled = torch.compile(lambda x: softmax(x) * 2, backend="eager")
    x = torch.rand(3, 8)
    for _ in range(2):
        assert torch.equal(compiled(x), softmax(x) * 2)


# ------------------------------------------------------------------ streams


class Memory:
    def __init__(self, array, device):
        self.ptr, self.device_id = array.ctypes.data, device


def cupy_like(monkeypatch):
    """A stand-in for CuPy, with a current device and a current stream for each. What is made and filled is written
    down: on which device, and for the last of it on which stream.
    """
    m = types.ModuleType("cupy")
    state = {"device": 0, "streams": {0: 11, 1: 22}, "made_on": [], "queued_on": None}

    class ndarray(Cuda):
        def __init__(self, a, device=0):
            super().__init__(a)
            self.shape, self.strides, self.data = a.shape, a.strides, Memory(a, device)

        def fill(self, value):
            state["filled_on"], state["queued_on"] = state["device"], state["streams"][state["device"]]
            self.array.fill(value)

    class Device:
        def __init__(self, n):
            self.id = n

        def __enter__(self):
            self.before, state["device"] = state["device"], self.id

        def __exit__(self, *_):
            state["device"] = self.before

    class ExternalStream:
        def __init__(self, ptr):
            self.ptr = ptr

        def __enter__(self):
            self.before, state["streams"][state["device"]] = state["streams"][state["device"]], self.ptr

        def __exit__(self, *_):
            state["streams"][state["device"]] = self.before

    def empty(shape, dtype):
        state["made_on"].append(state["device"])
        state["queued_on"] = state["streams"][state["device"]]
        return ndarray(np.empty(shape, dtype), state["device"])

    def full(shape, fill, dtype):
        a = empty(shape, dtype)
        a.array[...] = fill
        return a

    m.ndarray, m.empty, m.full = ndarray, empty, full
    m.cuda = types.SimpleNamespace(
        Device=Device, ExternalStream=ExternalStream, runtime=types.SimpleNamespace(getDevice=lambda: state["device"]),
        get_current_stream=lambda: types.SimpleNamespace(ptr=state["streams"][state["device"]]))
    ndarray.__module__ = "cupy"
    monkeypatch.setitem(sys.modules, "cupy", m)
    return m, state


def streams_of(fake):
    return [launch["stream"] for launch in fake.launches]


@pytest.fixture
def on_gpu(monkeypatch):
    fake = installed(monkeypatch)
    return fake, *cupy_like(monkeypatch)


@shows("JIT-14.current", "JIT-14.given")
def test_the_current_stream_of_the_first_array(on_gpu):
    fake, cupy, state = on_gpu
    x = cupy.ndarray(np.ones(8, np.float32))
    assert type(scaled(x, 2.0)) is cupy.ndarray
    state["streams"][0] = 33
    scaled(x, 2.0)
    scaled(x, 2.0, out=cupy.ndarray(np.ones(8, np.float32)))
    scaled(x, 2.0, stream=0)
    scaled(x, 2.0, stream=44)
    scaled(cupy.ndarray(np.ones(8, np.float32), 1), 2.0)
    assert streams_of(fake) == [11, 33, 33, 0, 44, 22]
    assert state["made_on"] == [0, 0, 0, 0, 1] and state["device"] == 0


def counts():
    @ct.kernel
    def counted(x: ct.Array["N"], y):
        ct.atomic_add(y, 0, ct.sum(ct.load(x, ct.bid(0), 8)))

    return ct.jit(counted, grid=(1,), out=ct.Out((1,), fill=3))


def doubles():
    @ct.kernel
    def doubled(x: ct.Array["N"], y):
        ct.store(y, ct.bid(0), 2 * ct.load(x, ct.bid(0), 8))

    return ct.jit(doubled, grid=(1,), out=ct.Out("N"))


@shows("JIT-14.given")
@pytest.mark.parametrize("way", ["first", "again"])
def test_outputs_are_made_and_filled_on_the_stream_of_the_launch(on_gpu, way):
    """Otherwise they might be filled after the kernel has run, or in memory that other work has not left yet."""
    fake, cupy, state = on_gpu
    f, g = counts(), doubles()
    x, y = cupy.ndarray(np.ones(8, np.float32)), cupy.ndarray(np.zeros(1, np.float32))
    if way == "again":
        f(x), f(x, out=y), g(x)
    for stream, number in ((44, 44), (None, 11), (types.SimpleNamespace(ptr=66), 66), (0, 0)):
        for call in (lambda **given: f(x, **given), lambda **given: f(x, out=y, **given),
                     lambda **given: g(x, **given)):
            state["queued_on"] = None
            call(stream=stream)
            assert state["queued_on"] == streams_of(fake)[-1] == number
    state["device"] = 1  # another device is current
    assert f(x, stream=55) is not y and state["made_on"][-1] == 0
    assert state["queued_on"] == streams_of(fake)[-1] == 55 and state["streams"] == {0: 11, 1: 22}
    with pytest.raises(TypeError, match="an object of type str is no stream"):
        f(x, stream="side")


def test_the_stream_of_outputs_that_callers_give_where_there_is_no_other_array(on_gpu):
    @ct.kernel
    def numbered(y):
        ct.store(y, ct.bid(0), ct.arange(8, dtype=ct.float32))

    fake, cupy, _ = on_gpu
    f, y = ct.jit(numbered, grid=(1,), out=ct.Out((8,), ct.float32)), cupy.ndarray(np.zeros(8, np.float32))
    for _ in range(3):
        assert f(out=y) is y and streams_of(fake)[-1] == 11


def test_streams_say_nothing_in_cpu_memory():
    f, x, y = counts(), np.ones(8, np.float32), np.zeros(1, np.float32)
    for _ in range(3):
        assert f(x, stream=7)[0] == f(x, out=y, stream=7)[0] == 11


def test_what_is_no_stream_is_said_before_outputs_are_filled():
    f, x, y = counts(), np.ones(8, np.float32), np.zeros(1, np.float32)
    for _ in range(3):
        y[0] = 5
        for given in ({}, {"out": y}):
            with pytest.raises(TypeError, match="an object of type str is no stream"):
                f(x, stream="side", **given)
        assert y[0] == 5
        f(x, out=y), f(x)


def test_fill_in_gpu_memory(on_gpu, monkeypatch):
    _, cupy, state = on_gpu

    @ct.kernel
    def k(x: ct.Array["N"], y):
        unstored(y)

    f = ct.jit(k, grid=(1,), out=ct.Out("N", ct.int32, fill=3))
    x, y = cupy.ndarray(np.ones(8, np.float32)), cupy.ndarray(np.zeros(8, np.int32))
    assert f(x).array.tolist() == [3] * 8
    assert f(x, out=y) is y and y.array.tolist() == [3] * 8
    x, y = cupy.ndarray(np.ones(8, np.float32), 1), cupy.ndarray(np.zeros(8, np.int32), 1)
    for _ in range(2):
        y.array[...] = 0
        assert f(x, out=y) is y and y.array.tolist() == [3] * 8 and state["filled_on"] == 1
    y = Cuda(np.zeros(8, np.int32))
    with pytest.raises(TypeError, match="to fill .*Cuda in GPU memory needs CuPy"):
        monkeypatch.setitem(sys.modules, "cupy", None)
        f(Cuda(np.ones(8, np.float32)), out=y)


def test_arrays_of_other_libraries_in_gpu_memory(on_gpu, monkeypatch):
    _, cupy, _ = on_gpu
    assert type(scaled(Cuda(np.ones(8, np.float32)), 2.0)) is cupy.ndarray
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(TypeError, match="need CuPy; import cupy before, or pass them by out="):
        scaled(Cuda(np.ones(8, np.float32)), 2.0)


def test_without_arrays_on_the_current_device_of_cupy(on_gpu, monkeypatch):
    fake, cupy, _ = on_gpu
    monkeypatch.setitem(sys.modules, "torch", None)
    for device in (None, "cuda", "cuda:0", cupy.cuda.Device(0)):
        assert type(ones(device)(8)) is cupy.ndarray
    assert streams_of(fake) == [11] * 4
