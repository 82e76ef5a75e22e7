"""After a failed assertion, a debugger finds the frames of the kernel with the variables of the failing block."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import traceback
from types import FrameType

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.interp.post_mortem import ADVICE


def doubled(t, limit):
    y = t * 2
    ct.assert_(y < limit, "too large")
    return y


@ct.kernel
def copies(x, out, limit):
    """Reads one array and writes another."""
    i = ct.bid(0)
    t = ct.load(x, i, (4,))
    print("block", i)
    ct.store(out, i, doubled(t, limit))


@ct.kernel
def in_place(x):
    i = ct.bid(0)
    t = ct.load(x, i, (4,))
    ct.store(x, i, t + 1)
    ct.assert_(t < 4)


@ct.kernel
def counts(x, n):
    ct.atomic_add(n, (0,), 1)
    t = ct.load(x, ct.bid(0), (4,))
    ct.assert_(t < 4)


@ct.kernel
def lists(xs, out):
    i = ct.bid(0)
    t = ct.load(xs[i], 0, (4,))
    ct.store(out, i, t)
    ct.assert_(ct.sum(t) < 10)


@ct.kernel
def branches(x, out):
    i = ct.bid(0)
    t = ct.load(x, i, (4,))
    if i % 2 == 1:
        for j in range(i):
            ct.assert_(t < 12 - j)
    ct.store(out, i, t)


def failure(kernel, grid, args, **options) -> tuple[ct.TileAssertionError, list[FrameType]]:
    with settings.override(**options), pytest.raises(ct.TileAssertionError) as e:
        ct.launch(None, grid, kernel, args)
    return e.value, [f for f, _ in traceback.walk_tb(e.value.__traceback__)]


def numbers(n: int, dtype=np.float32) -> np.ndarray:
    return np.arange(n, dtype=dtype)


@pytest.mark.parametrize("schedule", [None, "batch", "block", "interleave"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
def test_frames_have_the_variables_of_the_failing_block(schedule, dtype, capsys):
    out = np.zeros(16, dtype)
    error, frames = failure(copies, (4,), (numbers(16, dtype), out, 17), SCHEDULE=schedule)
    assert "too large in block (2, 0, 0)" in str(error)
    kernel, helper = frames[-2:]
    assert (kernel.f_code.co_name, helper.f_code.co_name) == ("copies", "doubled")
    assert int(kernel.f_locals["i"]) == 2 and kernel.f_locals["__block__"] == (2, 0, 0)
    assert kernel.f_locals["t"].numpy().tolist() == [8, 9, 10, 11]
    assert helper.f_locals["y"].numpy().tolist() == [16, 18, 20, 22]
    assert capsys.readouterr().out.count("block 2") == 1


def test_stores_of_the_launch_stay_as_they_were():
    x, out = numbers(16), np.full(16, -1.0, np.float32)
    failure(copies, (4,), (x, out, 17), SCHEDULE="batch")
    assert np.array_equal(out, x * 2)  # the blocks of one chunk ran side by side


def test_loops_and_branches():
    _, frames = failure(branches, (4,), (numbers(16), np.zeros(16, np.float32)))
    assert frames[-1].f_code.co_name == "branches"
    assert int(frames[-1].f_locals["i"]) == 3


def test_lists():
    arrays = [numbers(4), numbers(4), numbers(4) + 3]
    _, frames = failure(lists, (3,), (arrays, np.zeros(12, np.float32)))
    assert frames[-1].f_locals["t"].numpy().tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize("kernel, args", [
    (in_place, lambda: (numbers(16),)),
    (counts, lambda: (numbers(16), np.zeros(1, np.int32))),
    (copies, lambda: (lambda x: (x, x, 17))(numbers(16))),
], ids=["in place", "atomics", "one array twice"])
def test_what_cannot_run_again_says_what_to_set(kernel, args):
    error, frames = failure(kernel, (4,), args())
    assert ADVICE in str(error) and kernel.__name__ not in [f.f_code.co_name for f in frames]
    _, frames = failure(kernel, (4,), args(), SCHEDULE="block")
    assert "t" in next(f for f in frames if f.f_code.co_name == kernel.__name__).f_locals


def test_pdb_lands_in_the_kernel(tmp_path):
    (tmp_path / "fails.py").write_text(textwrap.dedent("""
        import pdb
        import sys

        import numpy as np

        import cutile as ct


        @ct.kernel
        def fails(x, out):
            i = ct.bid(0)
            t = ct.load(x, i, (4,))
            ct.assert_(t < 8)
            ct.store(out, i, t)


        x = np.arange(16, dtype=np.float32)
        try:
            ct.launch(None, (4,), fails, (x, np.zeros_like(x)))
        except AssertionError:
            pdb.post_mortem(sys.exc_info()[2])
    """))
    done = subprocess.run([sys.executable, "fails.py"], input="p t.numpy().tolist()\np int(i)\nq\n", text=True,
                          capture_output=True, cwd=tmp_path, timeout=120)
    assert "-> ct.assert_(t < 8)" in done.stdout, done.stdout + done.stderr
    assert "[8.0, 9.0, 10.0, 11.0]" in done.stdout and "\n(Pdb) 2\n" in done.stdout
