"""Calls of the interpreter with XLA's buffers, made by hand."""

import zlib

import numpy as np
import pytest

import cutile as ct
from cutile.ir.text import to_text
from tests.jax.kernels import N, add, scale

pytest.importorskip("jax")  # without it, cutile.jax has no use
from cutile.jax import host


def attributes(kernel, values, places, numbers, key, batch=(), steps=()):
    program = kernel.program(kernel.classify(values)).kernel
    image = b"".join(np.asarray(n, np.float64 if isinstance(n, float) else np.int64).tobytes() for n in numbers)
    return {"program": zlib.compress(to_text(program).encode()), "places": np.array(places, np.int32).tobytes(),
            "image": image, "grid": np.array([2, 1, 1]).tobytes(), "batch": np.array(batch, np.int64).tobytes(),
            "steps": np.array(steps, np.int64).tobytes(), "key": key}


def buffer(a):
    return a.ctypes.data, a.shape


def test_a_program_that_is_only_known_as_text():
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    given = attributes(scale, (x, y, 2.5, 4), (0, 1, -1), (0, 0, 2.5), b"text")
    for _ in range(2):
        y[:] = 0
        host.run(given, [buffer(x), buffer(y)])
        assert np.array_equal(y, x * 2.5)


@pytest.mark.parametrize("number", [3, -1, True])
def test_whole_numbers(number):
    x, y = np.arange(N, dtype=np.int32), np.zeros(N, np.int32)
    host.run(attributes(scale, (x, y, int(number), 4), (0, 1, -1), (0, 0, int(number)), repr(number).encode()),
             [buffer(x), buffer(y)])
    assert np.array_equal(y, x * int(number))


def test_a_batch():
    x, y = np.random.default_rng(0).random((2, 3, N)), np.arange(3.0 * N).reshape(3, N)
    z, size = np.zeros((2, 3, N)), 8 * N
    host.run(attributes(add, (x[0, 0], y[0], z[0, 0]), (0, 1, 2), (0, 0, 0), b"batch", (2, 3),
                        (3 * size, 0, 3 * size, size, size, size)), [buffer(x), buffer(y), buffer(z)])
    assert np.array_equal(z, x + y)


def test_empty_arrays():
    x, y = np.zeros(0, np.float32), np.zeros(0, np.float32)
    host.run(attributes(scale, (x, y, 2.5, 4), (0, 1, -1), (0, 0, 2.5), b"empty"), [(0, (0,)), (0, (0,))])


def test_errors_have_their_kind_and_line():
    @ct.kernel
    def k(x):
        ct.assert_(ct.sum(ct.load(x, 0, N)) < 0, "too large")

    x = np.ones(N, np.float32)
    given = attributes(k, (x,), (0,), (0,), b"error")
    with pytest.raises(RuntimeError, match="^TileAssertionError: .*too large.*\n.*test_host.py"):
        host.run(given, [buffer(x)])


def test_a_program_without_text():
    with pytest.raises(RuntimeError, match="only the process that made the program can run it"):
        host.run({"key": b"no text", "program": zlib.compress(b"")}, [])


def test_many_programs():
    """Those that were forgotten are read again."""
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    given = attributes(scale, (x, y, 2.5, 4), (0, 1, -1), (0, 0, 2.5), b"first")
    host.run(given, [buffer(x), buffer(y)])
    kept = host._known[b"first"]
    for i in range(2 * host.LIMIT + 2):
        host._known.keep(str(i).encode(), kept)
        host.remember(str(i).encode(), kept.launch.compiled)
    assert b"first" not in host._known and len(host._known) == len(host._kernels) == host.LIMIT
    host.run(given, [buffer(x), buffer(y)])
    assert np.array_equal(y, x * 2.5)
