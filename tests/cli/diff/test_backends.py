"""The GPU as a back end of diff: the arguments it gets, the results it returns. The fake driver evaluates bytecode."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile.cli.diff.compare import difference
from cutile.gpu import cubin, driver
from cutile.gpu.facts import of_parameters
from cutile.gpu.to_bytecode import to_bytecode
from tests.gpu.evaluating import EvaluatingDriver


@pytest.fixture
def gpu(monkeypatch):
    """The driver; `ops` of its machine code can be changed by the test."""
    api = EvaluatingDriver()
    monkeypatch.setattr(cubin, "build", lambda program, constraints, target, options, symbol: to_bytecode(
        program, of_parameters(constraints), str(target), "13.4", symbol=symbol))
    driver.replace(driver.Driver(api))
    yield api
    driver.replace(None)


@ct.kernel
def scaled(x, y, n, factor):
    t = ct.load(x, (0, ct.bid(0)), (2, 4), padding_mode=ct.PaddingMode.ZERO)
    u = t * factor
    for _ in range(n):
        u = u + 1
    ct.store(y, (ct.bid(0), 0), ct.permute(u, (1, 0)))


def arguments():
    whole = np.arange(32, dtype=np.float32).reshape(4, 8)
    return whole[::2, ::-1][:, ::-1][:, 1:], np.zeros((8, 2), np.float32), 3, 2.5


def test_agreement(gpu):
    args = arguments()
    found = difference(scaled, (2,), args, ("interp", "gpu"))
    assert found.first is None and not found.arrays and found.compared >= 3
    assert not args[1].any()  # both ran on copies
    assert not gpu.memory


def test_a_wrong_gpu(gpu, monkeypatch):
    right = gpu.cuMemcpyDtoH

    def wrong(host, pointer, n):
        right(host, pointer, n)
        if n == 8 * 2 * 4:
            np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * 16).from_address(host))[5] += 1
        return 0,

    monkeypatch.setattr(gpu, "cuMemcpyDtoH", wrong)
    found = difference(scaled, (2,), arguments(), ("interp", "gpu"))
    assert found.first is None and [d.what for d in found.arrays] == ["y"] and found.arrays[0].at == (2, 1)


def test_a_kernel_that_fails(gpu):
    gpu.fails["cuCtxSynchronize"] = 700
    with pytest.raises(driver.DriverError, match="the kernel failed.*CUDA_ERROR_ILLEGAL_ADDRESS"):
        difference(scaled, (2,), arguments(), ("interp", "gpu"))


def test_halves_of_bytes(gpu):
    @ct.kernel
    def k(x, y):
        ct.store(y, 0, ct.load(x, 0, 4).astype(ct.float32))

    x, y = np.ones(4, ml_dtypes.float4_e2m1fn), np.zeros(4, np.float32)
    with pytest.raises(ct.TileUnsupportedFeatureError, match="two elements a byte"):
        difference(k, (1,), (x, y), ("interp", "gpu"))
    assert difference(k, (1,), (x, y), ("batch", "block")).first is None


def test_without_a_gpu_it_says_what_can_be_compared(monkeypatch):
    def missing():
        raise ct.TileUnsupportedFeatureError("launching on a GPU needs cuda-python, which is not installed")

    monkeypatch.setattr(driver, "driver", missing)
    with pytest.raises(ct.TileUnsupportedFeatureError) as e:
        difference(scaled, (2,), arguments(), ("interp", "gpu"))
    assert "--backends batch,block" in e.value.help
