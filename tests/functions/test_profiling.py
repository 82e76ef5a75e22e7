"""f.profile: bytes, operations and time of a call; ranges for profilers."""

import sys
import types

import numpy as np

import cutile as ct
from cutile.functions import profiling
from cutile.testing import nvtx, profile
from tests.functions.kernels import scaled, softmax
from tests.functions.shows import shows
from tests.gpu.fake_driver import installed

X = np.ones(100, np.float32)


@shows("BEN-8.profile")
def test_what_is_counted():
    p = scaled.profile(X, 2.0)
    assert (p.bytes_read, p.bytes_written, p.operations) == (400, 400, {"other float32": 100})
    assert p.milliseconds > 0 and p.bandwidth == 800 / (p.milliseconds / 1000) and p.peak is p.share is None
    assert "400 bytes read, 400 written" in str(p) and "100 other float32" in str(p)


def test_products_of_matrices():
    @ct.kernel
    def k(x: ct.Array["16 16"], y):
        t = ct.load(x, (0, 0), (16, 16))
        ct.store(y, (0, 0), t @ t)

    p = profile(ct.jit(k, grid=(2,), out=ct.Out("16 16")), (np.ones((16, 16), np.float32),), repeats=1, warmup=0)
    assert p.operations == {"matrix float32": 2 * 2 * 16**3} and p.bytes_read == 2 * 1024


def test_tuned_functions():
    f = ct.autotune([{"TILE": 16}], quiet=True, timeout_s=None)(softmax)
    assert profile(f, (np.ones((3, 8), np.float32),), repeats=1, warmup=0).bytes_read == 96


def test_the_share_of_bandwidth(monkeypatch):
    fake = installed(monkeypatch)
    monkeypatch.setattr(fake, "cuDeviceGetAttribute", lambda a, d: (0, {37: 5120, 36: 2_000_000}[int(a)]))
    fake.CUdevice_attribute = int
    assert profiling._bandwidth(0) == 5120 / 8 * 2e9 * 2
    p = profiling.Profile(10**9, 10**9, {}, 1.0, 4e12)
    assert p.share == 0.5 and "50% of the memory's bandwidth" in str(p)


def test_ranges(monkeypatch):
    seen = []
    marks = types.ModuleType("cupy")
    marks.cuda = types.SimpleNamespace(nvtx=types.SimpleNamespace(RangePush=seen.append,
                                                                  RangePop=lambda: seen.append(None)))
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "cupy", marks)
    with nvtx("step"):
        seen.append("inside")
    assert seen == ["step", "inside", None]
    monkeypatch.setitem(sys.modules, "cupy", None)
    with nvtx("step"):
        pass
