"""What the dispatcher would do with a call after autograd."""

import pytest

torch = pytest.importorskip("torch")

from cutile.torch.dispatch import kernel_is_next  # noqa: E402

KEY = torch._C.DispatchKey


@pytest.mark.parametrize("device", [KEY.CPU, KEY.CUDA])
def test_the_kernel_of_a_device_is_next(device):
    keys = torch._C.DispatchKeySet(device)
    assert kernel_is_next(keys) and kernel_is_next(keys.add(KEY.ADInplaceOrView))


@pytest.mark.parametrize("key", [KEY.Negative, KEY.Conjugate, KEY.Python, KEY.Functionalize])
def test_something_is_before_the_kernel(key):
    assert not kernel_is_next(torch._C.DispatchKeySet(KEY.CPU).add(key))


@pytest.mark.parametrize("key", [KEY.Meta, KEY.SparseCPU, KEY.QuantizedCPU])
def test_another_kernel_is_next(key):
    assert not kernel_is_next(torch._C.DispatchKeySet(key))
