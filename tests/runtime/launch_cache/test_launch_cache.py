"""Launches repeated in C: they do what those in Python do. Which are kept, and when C code may be used."""

import gc
import math
import struct
import sys
import weakref

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.gpu import variants
from cutile.gpu.driver import DriverError
from cutile.runtime import c_readers, launch_cache
from tests.gpu import extension
from tests.gpu.extension import CuPyArray, LentTensor, Tensor
from tests.runtime.launch_cache.launches import IN_C, LX, LY, TX, TY, X, Y, scaling


def test_python_runs_the_launches_that_ask_for_a_variant(c, gpu, monkeypatch):
    monkeypatch.setattr(variants, "LAUNCHES", 2)
    k = scaling()
    for _ in range(2):
        ct.launch(77, (3,), k, (X, Y, 2.5, 16))
        assert gpu.names()[-1] == "cuLaunchKernel"
    gpu.calls.clear()
    ct.launch(77, (3,), k, (X, Y, 2.5, 16))
    assert gpu.names() == [IN_C]


@pytest.mark.parametrize("x, y, other", [(X, Y, CuPyArray(16384, (48,), (1,))), (TX, TY, Tensor(16384, (48,), (1,))),
                                         (LX, LY, LentTensor(16384, (48,), (1,)))])
def test_a_repeated_launch(c, gpu, x, y, other):
    k = scaling()
    for grid in ((3, 2), (4,)):  # Python decides what runs for a grid
        ct.launch(77, grid, k, (x, y, 2.5, 16))
    gpu.calls.clear()
    ct.launch(77, (3, 2), k, (x, y, 2.5, 16))
    ct.launch(78, (4,), k, (other, y, -1.0, 16))
    assert gpu.names() == [IN_C] * 2
    one, _, two, three = gpu.launches
    assert one == two
    assert three == {**one, "grid": (4, 1, 1), "stream": 78, "parameters": [
        struct.pack("<Q", 16384), *one["parameters"][1:6], struct.pack("<f", -1)]}


def test_numbers(c, gpu):
    @ct.kernel
    def k(x, b, i, j: ct.ScalarInt64, f):
        ct.store(x, 0, ct.astype(b, ct.float32) + i + f + ct.astype(j, ct.float32))

    for n in (1, 2):
        for b, i, j, f in ((True, -7, 5, 0.5), (False, 2**31 - 1, -2**31, 1e300), (True, 0, 2**62, math.inf),
                           (True, 0, -2**63, np.float64(-0.0))):
            ct.launch(77, (1,), k, (X, b, i, j, f))
            float32 = struct.pack("<f", f) if abs(f) < 1e38 else struct.pack("<f", math.copysign(math.inf, f))
            assert gpu.launches[-1]["parameters"][3:] == [
                struct.pack("<i", b), struct.pack("<i", i), struct.pack("<q", j), float32]
        assert gpu.names().count(IN_C) == {1: 1, 2: 5}[n]  # two of the first four are read alike


@pytest.mark.parametrize("stream, number", [(None, 0), (0, 0), (2**63, 2**63), (type("S", (), {"cuda_stream": 9})(), 9),
                                            (type("S", (), {"ptr": 9})(), 9)])
def test_streams(c, gpu, stream, number):
    k = scaling()
    for _ in range(2):
        ct.launch(stream, (1,), k, (X, Y, 1.0, 16))
    assert [one["stream"] for one in gpu.launches] == [number] * 2 and gpu.names()[-1] == IN_C


def test_refused(c, gpu):
    k = scaling()
    ct.launch(77, (3, 2), k, (X, Y, 1.0, 16))
    gpu.fails["cuLaunchKernel in C"] = 700
    with pytest.raises(DriverError, match=r"kernel scale cannot be launched on GPU 0 .* with grid \(3, 2, 1\): "):
        ct.launch(77, (3, 2), k, (X, Y, 1.0, 16))
    assert gpu.names().count(IN_C) == 1 and "cuLaunchKernel" not in gpu.names()[-1:]


# ------------------------------------------------------------------ which launches are kept


def test_no_more_than_some_are_kept(c, gpu, monkeypatch):
    """Those that went are launched from Python once more."""
    monkeypatch.setattr(launch_cache, "LIMIT", 3)
    k = scaling()
    sizes = [16 * n + 16 for n in range(10)]
    for n in [*np.repeat(sizes, 2).tolist(), sizes[0]]:
        ct.launch(0, (1,), k, (CuPyArray(4096, (n,), (1,)), Y, 1.0, 16))
    assert [name for name in gpu.names() if name.startswith("cuLaunch")] == [*["cuLaunchKernel", IN_C] * 10,
                                                                            "cuLaunchKernel"]


def test_a_kernel_that_is_gone_takes_its_launches_with_it(c, gpu):
    k = scaling()
    for _ in range(2):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    gone = weakref.ref(k)
    del k
    gc.collect()
    assert gone() is None


def test_tensors_that_are_lent(c, libraries, monkeypatch):
    assert c_readers.c_reader(c, LX) > 2**16
    monkeypatch.setattr(LentTensor, "__dlpack_c_exchange_api__", extension.exchange(major=2))
    # a version that is not known: read as before
    assert c_readers.c_reader(c, LX) == c.TORCH


def test_without_the_extension(monkeypatch, libraries, gpu):
    monkeypatch.setattr(launch_cache, "extension", lambda: None)
    k = scaling()
    for _ in range(2):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert gpu.names().count("cuLaunchKernel") == 2 and IN_C not in gpu.names()


# ------------------------------------------------------------------ what is written


@pytest.mark.parametrize("cls", [Tensor, LentTensor])
@pytest.mark.parametrize("repeated", [False, True])
def test_the_version_of_a_written_tensor_is_raised(c, gpu, monkeypatch, cls, repeated):
    if not repeated:
        monkeypatch.setattr(launch_cache, "extension", lambda: None)
    x, y, k = cls(4096, (48,), (1,)), cls(8192, (50,), (2,)), scaling()
    for n in range(1, 4):
        ct.launch(77, (3,), k, (x, y, 2.5, 16))
        assert (x.version, y.version, len(gpu.launches)) == (0, n, n)
    assert gpu.names().count(IN_C) == (2 if repeated else 0)


@pytest.mark.parametrize("grad_mode", [True, False])
def test_a_written_leaf_that_requires_grad(c, gpu, monkeypatch, grad_mode):
    """Refused at each launch while grad mode is on, also where one like it was repeated."""
    x, y, k = Tensor(4096, (48,), (1,)), Tensor(8192, (50,), (2,)), scaling()
    monkeypatch.setattr(sys.modules["torch"], "is_grad_enabled", lambda: grad_mode)
    for _ in range(2):
        ct.launch(77, (3,), k, (x, y, 2.5, 16))
    y.requires_grad = x.requires_grad = True
    for n in range(2):
        if grad_mode:
            with pytest.raises(RuntimeError, match=r"parameter `y`.*leaf that requires grad.*torch\.no_grad"):
                ct.launch(77, (3,), k, (x, y, 2.5, 16))
        else:
            ct.launch(77, (3,), k, (x, y, 2.5, 16))
            assert gpu.names().count(IN_C) == n + 2
    assert y.version == len(gpu.launches) == (2 if grad_mode else 4)
    y.is_leaf = False
    ct.launch(77, (3,), k, (x, y, 2.5, 16))
    assert y.version == len(gpu.launches) == (3 if grad_mode else 5)


# ------------------------------------------------------------------ CUTILE_LAUNCHER


def test_python_alone_launches_where_the_setting_says_so(c, gpu, monkeypatch):
    monkeypatch.setenv("CUTILE_LAUNCHER", "python")
    scale = scaling()
    for _ in range(3):
        ct.launch(7, (3,), scale, (X, Y, 2.0, 1))
    assert scale.plans.launch_cache is None and IN_C not in gpu.names() and len(gpu.launches) == 3


def test_c_code_launches_where_the_setting_says_so(c, gpu, monkeypatch):
    monkeypatch.setenv("CUTILE_LAUNCHER", "c")
    scale = scaling()
    for _ in range(3):
        ct.launch(7, (3,), scale, (X, Y, 2.0, 1))
    assert gpu.names().count(IN_C) == 2


def test_c_code_that_is_missing_is_an_error_where_the_setting_asks_for_it(gpu, libraries, monkeypatch):
    monkeypatch.setattr(launch_cache, "extension", lambda: None)
    monkeypatch.setenv("CUTILE_LAUNCHER", "c")
    with pytest.raises(settings.SettingError, match="CUTILE_LAUNCHER is 'c', but cutile was installed without"):
        ct.launch(7, (3,), scaling(), (X, Y, 2.0, 1))
    with pytest.raises(settings.SettingError, match="CUTILE_LAUNCHER is 'c'"):
        ct.prepare(scaling(), (3,), (X, Y, 2.0, 1))
    monkeypatch.delenv("CUTILE_LAUNCHER")
    ct.launch(7, (3,), scaling(), (X, Y, 2.0, 1))
