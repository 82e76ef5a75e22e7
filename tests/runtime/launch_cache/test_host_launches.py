"""Launches in CPU memory that C code repeats."""

import gc
import sys
import types
import weakref

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile._support import float_mode
from cutile.dtypes import from_foreign
from cutile.interp import HostLaunch
from cutile.runtime import arrays, launch_cache
from tests.gpu.extension import LentTensor
from tests.runtime.launch_cache.launches import scaling


class HostTensor(LentTensor):
    """A torch.Tensor in CPU memory that is none."""

    def __init__(self, a: np.ndarray, lent: bool = True):
        super().__init__(a.ctypes.data if lent else 0, a.shape, tuple(s // a.itemsize for s in a.strides), a.dtype,
                         cuda=False)
        self.a, self.device = a, types.SimpleNamespace(type="cpu", index=-1)

    def numpy(self) -> np.ndarray:
        return self.a

    def numel(self) -> int:
        return self.a.size


@pytest.fixture
def host(c, monkeypatch):
    """A list of the launches in CPU memory that Python runs."""
    for s in settings.table().values():
        monkeypatch.delenv(s.variable, raising=False)
    monkeypatch.setattr(sys.modules["torch"], "Tensor", HostTensor)
    monkeypatch.setattr(arrays, "_HOST_DTYPES", {np.dtype(t): (from_foreign(np.dtype(t)), None) for t in ("f4", "f8")})
    ran, run = [], HostLaunch.run
    monkeypatch.setattr(HostLaunch, "run", lambda *given: ran.append(given) or run(*given))
    return ran


@pytest.mark.parametrize("made", [np.asarray, HostTensor])
def test_a_repeated_launch_in_cpu_memory(host, made):
    k = scaling()
    for n in range(4):
        x, y = np.full(48, n, np.float32), np.zeros(48, np.float32)
        ct.launch(77, (3,), k, (made(x), made(y), 2.5, 16))
        assert (y == 2.5 * n).all()
    for grid, blocks in (((2,), 2), ((2,), 2), ((3, 1), 3)):
        y[...] = 0
        ct.launch(None, grid, k, (made(x), made(y), -1.0, 16))
        assert y.tolist() == [-3.0] * 16 * blocks + [0.0] * (48 - 16 * blocks)
    assert len(host) == 2  # the first of each grid


@pytest.mark.parametrize("made", [np.asarray, HostTensor])
def test_what_python_has_to_decide_in_cpu_memory(host, monkeypatch, made):
    k, memory = scaling(), np.arange(100, dtype=np.float32)
    x, y = memory[:48], memory[50:98]

    def launch(x=x, y=y, n=16):
        before = len(host)
        ct.launch(None, (3,), k, (made(x), made(y), 2.0, n))
        assert (y == 2 * x.copy()).all() or np.may_share_memory(x, y)
        return len(host) - before

    assert [launch(), launch()] == [1, 0]
    assert [launch(y=memory[40:88]), launch()] == [1, 0]  # it overlaps x
    assert [launch(y=np.zeros(50, np.float32)[:48]), launch(y=np.zeros(96, np.float32)[::2])] == [0, 1]
    assert [launch(y=np.zeros(48)), launch(n=8), launch()] == [1, 1, 0]
    monkeypatch.setenv("CUTILE_CHECK", "1")
    assert launch() == 1
    monkeypatch.delenv("CUTILE_CHECK")
    with settings.override(MEMORY=1000):
        assert launch() == 1
    monkeypatch.setattr(float_mode, "TINY", 1e-300)  # Python finds the usual mode anyway
    assert launch() == 0
    unaligned = np.zeros(48 * 4 + 1, np.uint8)[1:].view(np.float32)
    assert [launch(y=unaligned), launch(y=unaligned), launch()] == [1, 1, 0]


def test_tensors_without_memory(host, monkeypatch):
    monkeypatch.setattr(arrays, "_state", lambda torch, t: None)
    k, y = scaling(), np.zeros(48, np.float32)
    for _ in range(2):
        ct.launch(None, (3,), k, (HostTensor(y + 1), HostTensor(y), 2.0, 16))
    with pytest.raises(TypeError, match="whose storage was given back has no memory"):
        ct.launch(None, (3,), k, (HostTensor(y + 1, lent=False), HostTensor(y), 2.0, 16))


def test_an_error_of_code_in_cpu_memory(c, host, monkeypatch):
    """It is the same from C and from Python, and no array is kept."""
    meaning, fails = ct.mul.meaning, []

    def failing(x, y, /, **options):
        if fails:
            raise fails[0]("here")
        return meaning(x, y, **options)

    monkeypatch.setattr(ct.mul, "meaning", failing)
    k, errors = scaling(), []
    x, y = np.ones(48, np.float32), np.zeros(48, np.float32)
    for module in (c, None):
        monkeypatch.setattr(launch_cache, "extension", lambda module=module: module)
        k = scaling()
        for _ in range(2):
            ct.launch(None, (3,), k, (x, y, 1.0, 16))
        for kind in (MemoryError, KeyError, KeyboardInterrupt):
            fails[:] = [kind]
            with pytest.raises(BaseException) as caught:
                ct.launch(None, (3,), k, (x, y, 1.0, 16))
            errors.append((type(caught.value), str(caught.value), type(caught.value.__cause__)))
        fails.clear()
    assert errors[:3] == errors[3:] and errors[2][0] is KeyboardInterrupt
    assert "memory" in errors[0][1]
    del caught
    gone = weakref.ref(x)
    host.clear()
    del x
    gc.collect()
    assert gone() is None


def test_views_keep_arrays_alive(host, monkeypatch):
    kept, meaning = [], ct.mul.meaning
    monkeypatch.setattr(ct.mul, "meaning", lambda x, y, /, **options: kept.append(x) or meaning(x, y, **options))
    k = scaling()
    for n in range(3):
        ct.launch(None, (3,), k, (np.full(48, n, np.float32), np.zeros(48, np.float32), 1.0, 16))
    gc.collect()
    assert [int(x.max()) for x in kept] == [0, 1, 2] and not any(x.flags.writeable for x in kept)
