"""Which tensors a launch writes to, and what it does before [what PyTorch's own operations do]."""

import sys
import types

import numpy as np
import pytest

import cutile as ct
from cutile.runtime import autograd
from cutile.runtime.autograd import Written
from tests.gpu.arrays import Tracked
from tests.gpu.arrays import autograd as with_autograd


class Tensor(Tracked):
    """One that says of itself what it is told."""

    def __init__(self, **says):
        self.__dict__.update(says)


@pytest.fixture
def torch(monkeypatch):
    module = with_autograd(types.SimpleNamespace(Tensor=Tensor))
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_where_written_tensors_stand(torch):
    @ct.kernel
    def k(x, pair, N: ct.Constant, lists, y):
        ct.store(pair[1], 0, ct.load(x, 0, N))
        ct.atomic_add(lists[0], ct.arange(4, dtype=ct.int32), ct.load(pair[0], 0, N))
        ct.load(y, 0, N)

    arrays = [np.zeros(4, np.float32) for _ in range(6)]
    arguments = k.classify((arrays[0], (arrays[1], arrays[2]), 4, [arrays[3], arrays[4]], arrays[5]))
    program, types = k.program(arguments), [a.arg_type for a in arguments]
    t = [Tensor() for _ in range(6)]
    found = autograd.written_tensors(program.kernel, (t[0], (t[1], t[2]), 4, [arrays[3], t[4]], t[5]), types)
    assert found == (Written((1, 1), "pair[1]"), Written((3, 1), "lists[1]"))
    assert autograd.written_tensors(program.kernel, (*arrays[:1], tuple(arrays[1:3]), 4, arrays[3:5], arrays[5]),
                                    types) == ()


def test_versions(torch):
    a, b = Tensor(), Tensor()
    autograd.before_writing([Written((0,), "x"), Written((1, 0), "y[0]")], (a, [b]))
    assert (a.version, b.version) == (1, 1)


def test_versions_by_a_torch_that_takes_one_tensor_at_a_time(torch):
    def increment(t):
        if isinstance(t, list):
            raise TypeError
        t.version += 1

    torch._C._increment_version = increment
    a, b = Tensor(is_inference=lambda: False), Tensor(is_inference=lambda: True)
    autograd.before_writing([Written((0,), "x"), Written((1,), "y")], (a, b))
    assert (a.version, b.version) == (1, 0)


@pytest.mark.parametrize("says, view", [({"is_leaf": True}, ""), (
    {"is_leaf": False, "_is_view": lambda: True, "_base": types.SimpleNamespace(is_leaf=True)}, "through a view")])
def test_leaves(torch, says, view):
    t = Tensor(requires_grad=True, **says)
    with pytest.raises(RuntimeError, match=rf"`x\[1\]`.*is a leaf that requires grad.*{view}"):
        autograd.before_writing([Written((0,), "x[1]")], (t,))
    torch.is_grad_enabled = lambda: False
    autograd.before_writing([Written((0,), "x[1]")], (t,))
    assert t.version == 1


@pytest.mark.parametrize("grad_mode", [True, False])
def test_what_requires_grad_and_is_no_leaf(torch, grad_mode):
    """Its gradient is an error from then on."""
    t, other = Tensor(requires_grad=True, is_leaf=False), Tensor()
    torch.is_grad_enabled = lambda: grad_mode
    autograd.before_writing([Written((0,), "x"), Written((1,), "y")], (t, other))
    assert (t.version, other.version, other.history) == (1, 1, None)
    assert (t.history is None) != grad_mode and (not grad_mode or "stored to parameter `x`" in t.history)


def test_without_torch(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert autograd.written_tensors(None, (), ()) == ()
