"""CPU tensors of PyTorch as arguments, without cutile importing it. Skipped where torch is not installed."""

import numpy as np
import pytest

import cutile as ct

torch = pytest.importorskip("torch")


@ct.kernel
def double(x, out, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, i, ct.load(x, i, N) + ct.load(x, i, N))


@ct.kernel
def copy(x, out, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, i, ct.load(x, i, N))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64"])
def test_arithmetic_dtypes(dtype):
    x = torch.arange(50).to(getattr(torch, dtype))
    out = torch.zeros_like(x)
    ct.launch(None, (4,), double, (x, out, 16))
    assert torch.equal(out, x + x)


@pytest.mark.parametrize("dtype", ["bool", "float8_e4m3fn", "float8_e5m2"])
def test_other_dtypes(dtype):
    x = torch.tensor([0.0, 1.0, 0.0, 1.0]).to(getattr(torch, dtype))
    out = torch.zeros(4).to(getattr(torch, dtype))
    ct.launch(None, (1,), copy, (x, out, 4))
    assert torch.equal(out.float(), x.float())


def test_views_and_gradients():
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    x = base.T[1].requires_grad_()  # strided
    out = torch.zeros(3)
    ct.launch(None, (1,), double, (x, out, 4))
    assert out.tolist() == [2.0, 10.0, 18.0]


def test_mixed_with_numpy():
    x = torch.ones(4)
    out = np.zeros(4, np.float32)
    ct.launch(None, (1,), double, (x, out, 4))
    assert out.tolist() == [2.0] * 4


def test_dtypes_in_tile_code():
    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.full((4,), 1.5, torch.bfloat16).astype(torch.float32))

    out = torch.zeros(4)
    ct.launch(None, (1,), k, (out,))
    assert out.tolist() == [1.5] * 4


def test_a_dtype_that_tile_code_lacks():
    with pytest.raises(TypeError, match="complex64"):
        ct.launch(None, (1,), copy, (torch.zeros(4, dtype=torch.complex64), torch.zeros(4), 4))
