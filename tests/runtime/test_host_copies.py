"""CUTILE_BACKEND=interp: launches on GPU arrays, run on copies. The GPU's memory here is NumPy's."""

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.gpu import driver as drivers
from cutile.runtime import host_copies
from tests.gpu.arrays import Cuda, at
from tests.gpu.fake_driver import FakeDriver


@pytest.fixture
def gpu(monkeypatch):
    fake = FakeDriver()
    monkeypatch.setattr(drivers, "_driver", fake.start())
    with settings.override(BACKEND="interp"):
        yield fake


@ct.kernel
def scale(x, y, f, N: ct.Constant[int]):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), N) * f)


@ct.kernel
def copy2(x, y, M: ct.Constant[int], N: ct.Constant[int]):
    ct.store(y, (ct.bid(0), ct.bid(1)), ct.load(x, (ct.bid(0), ct.bid(1)), (M, N)))


def copies(gpu, name):
    return [c[1:] for c in gpu.calls if c[0] == name]


def test_a_launch(gpu):
    x, y = np.arange(40, dtype=np.float32), np.full(50, 7, np.float32)
    for f in (2.0, 3.0):  # the plan is used again
        ct.launch(77, (3,), scale, (Cuda(x), Cuda(y), f, 16))
        assert y.tolist() == [*(x * f), *[0] * 8, 7, 7]
    assert "cuLaunchKernel" not in gpu.names() and "cuModuleLoadData" not in gpu.names()
    assert gpu.contexts == [0]


@pytest.mark.parametrize("checks", ["bounds", "off"])
def test_checks_run_on_copies(gpu, checks):
    """CUTILE_SANITIZE alone asks for the interpreter, and the copies have the results of a launch that reports."""
    x, y = np.arange(40, dtype=np.float32), np.full(50, 7, np.float32)
    with settings.override(BACKEND=None if checks == "bounds" else "interp"), ct.sanitize(checks):
        if checks == "off":
            ct.launch(77, (4,), scale, (Cuda(x), Cuda(y), 2.0, 16))
        else:
            with pytest.raises(ct.TileSanitizerError, match="tile at index .3,. of `x` lies wholly outside") as e:
                ct.launch(77, (4,), scale, (Cuda(x), Cuda(y), 2.0, 16))
            assert [(f.array, f.block) for f in e.value.errors] == [("x", (3, 0, 0))]
    assert y.tolist() == [*(x * 2), *[0] * 8, 0, 0] and "cuLaunchKernel" not in gpu.names()


def test_it_waits_for_the_stream_before_it_copies(gpu):
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    ct.launch(77, (1,), scale, (Cuda(x), Cuda(y), 2.0, 16))
    assert [n for n in gpu.names() if "Mem" in n or "Stream" in n] == [
        "cuStreamSynchronize", "cuMemcpyDtoH", "cuMemcpyDtoH", "cuMemcpyHtoD"]
    assert copies(gpu, "cuStreamSynchronize") == [(77,)]


def test_only_what_may_have_been_stored_to_comes_back(gpu):
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    ct.launch(0, (1,), scale, (Cuda(x, read_only=True), Cuda(y), 2.0, 16))
    assert copies(gpu, "cuMemcpyHtoD") == [(y.ctypes.data, 64)]


@pytest.mark.parametrize("cut", [lambda a: a.T, lambda a: a[::-1], lambda a: a[1:-1, ::2], lambda a: a[::-2, ::-3].T,
                                 lambda a: a[3:3], lambda a: np.broadcast_to(a[:1], (5, a.shape[1]))])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float16, np.bool_])
def test_views(gpu, cut, dtype):
    base = np.random.default_rng(0).integers(0, 2, (12, 9)).astype(dtype)
    x = cut(base)
    y = np.ones((24, 30), dtype)[::2, ::-2]
    want = y.copy()
    want[:x.shape[0], :x.shape[1]] = x
    ct.launch(0, (ct.cdiv(x.shape[0], 4), 3), copy2, (Cuda(x), Cuda(y[:x.shape[0], :x.shape[1]]), 4, 4))
    assert np.array_equal(y, want)


def test_overlapping_arrays_see_each_other(gpu):
    a, b = np.arange(70, dtype=np.float32), np.arange(70, dtype=np.float32)
    ct.launch(None, (4,), scale, (Cuda(a[:64]), Cuda(a[6:]), 2.0, 16))
    ct.launch(None, (4,), scale, (b[:64], b[6:], 2.0, 16))
    assert np.array_equal(a, b)
    assert len(copies(gpu, "cuMemcpyDtoH")) == 1


def test_lists(gpu):
    @ct.kernel
    def total(xs, out):
        s = ct.zeros((4,), ct.int32)
        for i in range(len(xs)):
            s += ct.load(xs[i], 0, (4,), padding_mode=ct.PaddingMode.ZERO)
        ct.store(out, 0, s)

    xs, out = [np.arange(k, dtype=np.int32) for k in (3, 4, 5)], np.zeros(4, np.int32)
    ct.launch(None, (1,), total, ([*map(Cuda, xs)], Cuda(out)))
    assert out.tolist() == [0, 3, 6, 6]


def test_a_kernel_that_fails_leaves_what_it_stored(gpu):
    @ct.kernel
    def k(x):
        ct.store(x, 0, 1.0)
        ct.assert_(ct.load(x, 1, ()) > 5, "too small")

    x = np.zeros(4, np.float32)
    with pytest.raises(ct.TileAssertionError, match="too small"):
        ct.launch(None, (1,), k, (Cuda(x),))
    assert x.tolist() == [1, 0, 0, 0]


def test_without_arrays_the_gpu_is_not_asked(gpu, capsys):
    @ct.kernel
    def k(n):
        ct.print("n is", n)

    ct.launch(77, (1,), k, (3,))
    assert capsys.readouterr().out == "n is 3\n" and gpu.names() == ["cuInit"]


def test_a_mix_is_an_error_here_too(gpu):
    with pytest.raises(TypeError, match="`x` is in GPU memory, `y` in CPU memory"):
        ct.launch(None, (1,), scale, (at(4096, (16,)), np.zeros(16, np.float32), 1.0, 16))


def test_memory_that_cannot_be_copied(gpu):
    gpu.fails["cuMemcpyDtoH"] = 700
    x = np.zeros(16, np.float32)
    with pytest.raises(drivers.DriverError, match="cannot be copied to the host"):
        ct.launch(None, (1,), scale, (Cuda(x), Cuda(x), 1.0, 16))
    assert gpu.contexts == [0]


def test_extents():
    found = host_copies.merged([(0, 8, False), (4, 12, True), (6, 7, False), (12, 20, False), (30, 31, True)])
    assert [(e.low, e.high, e.stored) for e in found] == [(0, 12, True), (12, 20, False), (30, 31, True)]
