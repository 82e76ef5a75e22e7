"""f.profile: bytes, operations and time of a call; ranges for profilers."""

import sys
import types

import numpy as np
import pytest

import cutile as ct
from cutile.analysis import gpus
from cutile.functions import profiling
from cutile.testing import nvtx, profile
from tests.functions.kernels import scaled, softmax
from tests.functions.shows import shows
from tests.gpu import arrays
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


@shows("BEN-8.roofline")
def test_the_roofline():
    """Products run beside all else; moving counts each array once."""
    rates = {"matrix float16": 1e15, "other float32": 1e14, "other float64": 5e13}

    def of(arrays=10**9, **operations):
        work = {n.replace("_", " "): k for n, k in operations.items()}
        return profiling.Profile(10**10, 10**9, work, 1.0, 4e12, "NVIDIA H200", rates, arrays)

    p = of(matrix_float16=5 * 10**11, other_float32=2 * 10**10, other_float64=10**10)
    assert p.compute_share == 0.5 and p.roofline == 0.5 and p.limit == "computing"
    assert p.rate == 5.3e14 and "; 50% of the roofline, where computing is the limit" in str(p)
    assert ", 530.0 T a second, 50% of what the NVIDIA H200 does at best" in str(p)
    p = of(other_float32=2 * 10**10, other_float64=10**10)
    assert p.compute_share == pytest.approx(0.4) and p.limit == "computing"
    p = of(other_float32=10**10)
    assert (p.compute_share, p.roofline, p.limit) == (0.1, 0.25, "memory") and p.share > 1
    assert of(arrays=10**12).roofline == 11e9 / 4e12 * 1000  # no more than what it moves
    p = profiling.Profile(1, 1, {"matrix float16": 1}, 1.0, 4e12, "NVIDIA X")
    assert p.compute_share is p.roofline is p.limit is None
    assert "a second the NVIDIA X does at best is not known" in str(p)


def test_figures_of_gpus():
    for g in gpus.GPUS:
        assert all(gpus.peak(g, w) == n for w, n in g["peaks"].items()) and gpus.peak(g, "other int32") == g["other"]
        assert gpus.peak(g, "matrix float4_e2m1fn") is None
    assert {gpus.of_name(n)["name"] for n in gpus._NAMES} == {g["name"] for g in gpus.GPUS}
    assert gpus.of_name("NVIDIA H200 NVL") is gpus.of_name("NVIDIA H200 MIG 1g.18gb") is None
    assert profiling._rates("NVIDIA H200", {"matrix float16": 1, "other float32": 1}) == {"matrix float16": 989e12,
                                                                                          "other float32": 67e12}
    assert profiling._rates("NVIDIA H200", {"matrix float4_e2m1fn": 1}) is profiling._rates("X", {}) is None


@ct.kernel
def product(x: ct.Array["M K"], y: ct.Array["K N"], z, T: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((T, T), ct.float32)
    for k in range(ct.num_tiles(x, 1, (T, T))):
        acc = ct.mma(ct.load(x, (i, k), (T, T)), ct.load(y, (k, j), (T, T)), acc)
    ct.store(z, (i, j), acc)


@shows("BEN-8.gpu")
def test_on_a_gpu_the_program_is_counted(monkeypatch):
    """As a run counts it, where all tiles are whole."""
    m, k, n, tile = 256, 128, 64, 32
    f = ct.jit(product, grid="cdiv(M, T) cdiv(N, T)").inout("z")
    shapes = (m, k), (k, n), (m, n)
    ran = profile(f, (*(np.ones(s, np.float32) for s in shapes), tile), repeats=1, warmup=0)
    assert ran.operations == {"matrix float32": 2 * m * k * n} and not ran.estimated and ran.gpu == ""
    assert ran.arrays == 4 * (m * k + k * n + m * n)
    fake = installed(monkeypatch)
    monkeypatch.setattr(fake, "cuDeviceGetName", lambda length, handle: (0, b"NVIDIA H200\0"), raising=False)
    monkeypatch.setattr(profiling, "do_bench", lambda fn, **how: 0.5)
    monkeypatch.setattr(profiling, "_bandwidth", lambda ordinal: 4.8e12)
    on_gpu = [arrays.at(1 << (20 + i), s) for i, s in enumerate(shapes)]
    p = profile(f, (*on_gpu, tile))
    assert p.estimated and p.gpu == "NVIDIA H200" and p.milliseconds == 0.5 and "counted in the program" in str(p)
    assert (p.bytes_read, p.bytes_written, p.operations) == (ran.bytes_read, ran.bytes_written, ran.operations)
    assert p.arrays == ran.arrays and p.rates == {"matrix float32": 67e12} and p.limit == "computing"


def test_arrays_that_are_read_and_written():
    @ct.kernel
    def k(xs, n, y, total):
        t = ct.load(xs[0], 0, 16)
        ct.store(y, 0, t.astype(y.dtype))
        ct.atomic_add(total, 0, ct.sum(t))

    xs = [np.ones(16, np.float32), np.ones(16, np.float32)]
    assert profiling._bytes_of_arrays(k, (xs, 1, np.ones(16, np.int16), np.ones(1))) == 2 * 64 + 32 + 2 * 8


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
