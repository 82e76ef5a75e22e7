"""What C code leaves to Python: unusual arguments, settings, and programs whose dependencies changed."""


import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.gpu import driver as drivers
from cutile.runtime import launch_cache
from tests.front.compiling import cell
from tests.gpu.extension import CuPyArray, LentTensor, Tensor
from tests.runtime.launch_cache.launches import IN_C, TX, X, Y, launches_of, scaling


def unusual():
    class Sub(CuPyArray):
        pass

    far = CuPyArray(4096, (48,), (1,), device=1)
    return {
        "another shape": (0, (1,), (CuPyArray(4096, (32,), (1,)), Y, 1.0, 16)),
        "another alignment": (0, (1,), (CuPyArray(4100, (48,), (1,)), Y, 1.0, 16)),
        "another dtype": (0, (1,), (CuPyArray(4096, (48,), (1,), "f2"), Y, 1.0, 16)),
        "another GPU": (0, (1,), (far, CuPyArray(8192, (50,), (2,), device=1), 1.0, 16)),
        "another constant": (0, (1,), (X, Y, 1.0, 17)),
        "an equal constant of another type": (0, (1,), (X, Y, 1.0, 16.0)),
        "another library": (0, (1,), (TX, Y, 1.0, 16)),
        "a subclass": (0, (1,), (Sub(4096, (48,), (1,)), Y, 1.0, 16)),
        "an int for a float": (0, (1,), (X, Y, 1, 16)),
        "a grid with nothing in it": (0, (0,), (X, Y, 1.0, 16)),
        "a mix": (0, (1,), (X, np.zeros(50, np.float32), 1.0, 16)),
        "two GPUs": (0, (1,), (far, Y, 1.0, 16)),
        "a negative stream": (-1, (1,), (X, Y, 1.0, 16)),
        "no stream": (object(), (1,), (X, Y, 1.0, 16)),
        "a bool as a stream": (True, (1,), (X, Y, 1.0, 16)),
        "a list as grid": (0, [1], (X, Y, 1.0, 16)),
        "a bool in the grid": (0, (True,), (X, Y, 1.0, 16)),
        "a grid of four": (0, (1, 1, 1, 1), (X, Y, 1.0, 16)),
        "a grid that is too large": (0, (2**24,), (X, Y, 1.0, 16)),
        "a negative grid": (0, (-1,), (X, Y, 1.0, 16)),
        "a list of arguments": (0, (1,), [X, Y, 1.0, 16]),
        "too few arguments": (0, (1,), (X, Y, 1.0)),
        "too many arguments": (0, (1,), (X, Y, 1.0, 16, 16)),
        "no array": (0, (1,), (X, None, 1.0, 16)),
        "a negated tensor": (0, (1,), (X, Tensor(8192, (50,), (2,), neg=True), 1.0, 16)),
        "a lent tensor that is negated": (0, (1,), (X, LentTensor(8192, (50,), (2,), neg=True), 1.0, 16)),
        "a lent tensor elsewhere": (0, (1,), (X, LentTensor(8192, (50,), (2,), cuda=False), 1.0, 16)),
        "a tensor elsewhere": (0, (1,), (X, Tensor(8192, (50,), (2,), cuda=False), 1.0, 16)),
    }


@pytest.mark.parametrize("name", unusual())
def test_unusual(monkeypatch, c, gpu, name):
    """The outcome is that of a process without the extension."""
    stream, grid, values = unusual()[name]

    def outcome(k):
        gpu.launches.clear()
        gpu.calls.clear()
        try:
            ct.launch(stream, grid, k, values)
        except Exception as e:
            return type(e), str(e)
        return launches_of(gpu)

    k = scaling()
    for _ in range(2):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert gpu.names()[-1] == IN_C
    got = outcome(k)
    assert IN_C not in gpu.names()
    monkeypatch.setattr(launch_cache, "extension", lambda: None)
    assert got == outcome(scaling())


def test_a_dependent_launch(c, gpu):
    k = scaling()
    for _ in range(3):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16), programmatic_dependent_launch=True)
    assert len(gpu.launches) == 3 and all(one["attributes"] for one in gpu.launches)


def test_another_current_context(c, gpu):
    k = scaling()
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    gpu.contexts[:] = [0]
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert IN_C not in gpu.names() and gpu.launches[-1]["context"] == 0x1000 and gpu.contexts == [0]
    gpu.contexts[:] = [0x1000]
    gpu.fails["cuCtxGetCurrent"] = 3
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert IN_C not in gpu.names()


def test_whether_a_context_is_current(c, gpu):
    device = drivers.driver().device(0)
    is_current = launch_cache.is_current(device)
    gpu.contexts[:] = [0]
    assert is_current() is False
    entered = device.enter()
    assert entered and is_current() is True and not launch_cache.is_current(drivers.driver().device(1))()
    device.leave()
    gpu.contexts[:] = [device.context_number]
    assert is_current() is True and not device.enter()
    gpu.fails["cuCtxGetCurrent"] = 3
    assert is_current() is False
    with pytest.raises(TypeError, match="takes an address and a context"):
        c.is_current(1)
    with settings.override(LAUNCHER="python"):
        assert launch_cache.is_current(device) is None


def test_settings(c, gpu, monkeypatch, capsys):
    k = scaling()
    for _ in range(2):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert gpu.names().count(IN_C) == 1
    with settings.override(DEBUG=1):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert "scale" in capsys.readouterr().err
    monkeypatch.setenv("CUTILE_DEBUG", "1")
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert "scale" in capsys.readouterr().err
    monkeypatch.setenv("CUTILE_DEBUG", "much")
    with pytest.raises(ValueError, match="CUTILE_DEBUG is 'much'"):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    monkeypatch.delenv("CUTILE_DEBUG")
    assert gpu.names().count(IN_C) == 1
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert gpu.names().count(IN_C) == 2
    monkeypatch.setenv("CUTILE_BACKEND", "interp")
    x = np.arange(48, dtype=np.float32)
    y = np.zeros(50, np.float32)
    ct.launch(0, (3,), k, (CuPyArray(x.ctypes.data, (48,), (1,)), CuPyArray(y.ctypes.data, (25,), (2,)), 2.0, 16))
    assert y[::2].tolist() == (2 * x[:25]).tolist() and gpu.names().count(IN_C) == 2


def test_an_environment_that_was_replaced(c, gpu, monkeypatch):
    import os

    k = scaling()
    for _ in range(2):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    monkeypatch.setattr(os, "environ", {"CUTILE_DEBUG": "many"})
    with pytest.raises(ValueError, match="CUTILE_DEBUG is 'many'"):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))


def test_what_changed_outside_is_seen(c, gpu):
    for code in ("A = 2\n@ct.kernel\ndef k(x): ct.store(x, 0, ct.full((), A, ct.float32))",
                 "A = [2]\n@ct.kernel\ndef k(x): ct.store(x, 0, ct.full((), ct.static_eval(A[0]), ct.float32))"):
        space = cell(code)
        gpu.calls.clear()
        for _ in range(2):
            ct.launch(77, (1,), space["k"], (X,))
        assert gpu.names()[-1] == IN_C
        if isinstance(space["A"], list):
            space["A"][0] = 3
        else:
            space["A"] = 3
        gpu.calls.clear()
        ct.launch(77, (1,), space["k"], (X,))
        assert IN_C not in gpu.names()
        ct.launch(77, (1,), space["k"], (X,))
        assert gpu.names()[-1] == IN_C


def test_a_builtin_that_a_global_comes_to_hide(c, gpu):
    space = cell("@ct.kernel\ndef k(x): ct.store(x, 0, ct.full((), min(1, 2), ct.float32))")
    for hide in (None, lambda a, b: 3):
        if hide:
            space["min"] = hide
        gpu.calls.clear()
        ct.launch(77, (1,), space["k"], (X,))
        assert IN_C not in gpu.names()
        ct.launch(77, (1,), space["k"], (X,))
        assert gpu.names()[-1] == IN_C


def test_a_closure_that_changes_is_seen(c, gpu):
    n = 2.0

    @ct.kernel
    def k(x):
        ct.store(x, 0, n)

    for value in (2.0, 3.0):
        n = value
        gpu.calls.clear()
        ct.launch(77, (1,), k, (X,))
        assert IN_C not in gpu.names()
        ct.launch(77, (1,), k, (X,))
        assert gpu.names()[-1] == IN_C


def test_lists_tuples_and_what_the_stream_decides_are_not_repeated(c, gpu):
    @ct.kernel
    def numbers(n):
        ct.printf("%d", n)

    @ct.kernel
    def pair(t):
        ct.store(t[1], 0, ct.load(t[0], 0, 16))

    for _ in range(3):
        ct.launch(77, (1,), numbers, (3,))
        ct.launch(77, (1,), pair, ((X, Y),))
    assert IN_C not in gpu.names()
