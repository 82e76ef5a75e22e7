"""The process is the user's: no input ends it, no launch leaves anything changed, and forked children work."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

import cutile as ct

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

HEAD = """
import linecache, sys, threading
import numpy as np
import cutile as ct

def make(text, name="<made>"):
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = dict(ct=ct)
    exec(compile(text, name, "exec"), space)
    return space["k"]

def recursion(n):
    return sorted([n], key=lambda _: recursion(n + 1))
"""


def python(*args: str, timeout: float = 300) -> str:
    """What a program prints; it must end normally."""
    p = subprocess.run([sys.executable, *args], cwd=ROOT, capture_output=True, text=True, timeout=timeout,
                       env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1"})
    assert p.returncode == 0, f"{p.returncode}\n{p.stdout}\n{p.stderr[-3000:]}"
    return p.stdout


def program(text: str) -> str:
    return python("-c", HEAD + textwrap.dedent(text))


# ------------------------------------------------------------------ interrupts and forks

NEEDS_TIMERS = pytest.mark.skipif(not hasattr(os, "fork"), reason="neither timers nor forks")


@NEEDS_TIMERS
def test_interrupts_leave_nothing_changed():
    assert "150 interrupts" in python(str(HERE / "interrupts.py"), "150")


@NEEDS_TIMERS
@pytest.mark.deep
@pytest.mark.parametrize("part", range(10))
def test_many_interrupts(part):
    assert "3000 interrupts" in python(str(HERE / "interrupts.py"), "3000", str(part + 1), timeout=3600)


@NEEDS_TIMERS
def test_forks_while_threads_compile():
    assert "6 children" in python(str(HERE / "forks.py"), "6")


@NEEDS_TIMERS
@pytest.mark.deep
@pytest.mark.parametrize("part", range(5))
def test_many_forks(part):
    assert "100 children" in python(str(HERE / "forks.py"), "100", timeout=3600)


# ------------------------------------------------------------------ recursion that is not ours


def test_endless_recursion_in_static_code_is_an_error_of_the_kernel():
    assert program("""

        text = "@ct.kernel\\ndef k(o):\\n    ct.store(o, 0, ct.static_eval(recursion(0)))\\n"
        k = make(text)
        k.function.__globals__["recursion"] = recursion
        try:
            ct.launch(None, (1,), k, (np.zeros(1, np.int32),))
        except ct.TileStaticEvalError as e:
            print(type(e.__cause__).__name__, "ct.static_eval(recursion(0))" in str(e))
    """) == "RecursionError True\n"


def test_other_threads_meet_their_limit():
    assert program("""
        def other():
            while not done:
                try:
                    recursion(0)
                except RecursionError:
                    met.append(1)

        done, met = False, []
        t = threading.Thread(target=other)
        t.start()
        for j in range(3):
            lines = "".join(f"    x = x * {i} + ct.bid(0)\\n" for i in range(150))
            down = "def down(x, n):\\n    return x if n == 0 else down(x, n - 1)\\n"
            head, end = "@ct.kernel\\ndef k(o):\\n    x = ct.load(o, 0, (8,))\\n", "    ct.store(o, 0, down(x, 90))\\n"
            k = make(down + head + lines + end, f"<made {j}>")
            ct.launch(None, (1,), k, (np.zeros(8, np.int32),))
        while not met:
            pass
        done = True
        t.join()
        print("alive", sys.getrecursionlimit())
    """) == "alive 1000\n"


CALLS = ("def down(x, n):\n    if n == 0:\n        return x\n    return down(x + 1, n - 1)\n\n"
         "@ct.kernel\ndef k(o):\n    ct.store(o, 0, down(ct.load(o, 0, (8,)), 300))\n")
ELIFS = ("@ct.kernel\ndef k(o):\n    b = ct.bid(0) + 299\n    x = 0\n    if b == 0:\n        x = 1\n"
         + "".join(f"    elif b == {i}:\n        x = {i + 1}\n" for i in range(1, 300))
         + "    ct.store(o, 0, ct.full((8,), x, ct.int32))\n")


@pytest.mark.parametrize("schedule", ["batch", "block", "interleave"])
@pytest.mark.parametrize("text", [CALLS, ELIFS], ids=["calls", "branches"])
@pytest.mark.parametrize("all_threads", [True, False], ids=["all threads", "this thread"])
def test_threads_with_small_stacks(text, schedule, all_threads):
    assert program(f"""
        def go():
            o = np.zeros(8, np.int32)
            with ct.settings.override(SCHEDULE={schedule!r}):
                ct.launch(None, (1,), k, (o,))
            print("ran", o[0])

        k = make({text!r})
        threading.stack_size(192 * 1024)
        t = threading.Thread(target=go)
        t.start()
        if not {all_threads}:
            threading.stack_size(0)
        t.join()
    """) == "ran 300\n"


def below(frames: int, function, *args):
    return function(*args) if frames == 0 else below(frames - 1, function, *args)


def again(kernel, o):
    ct.launch(None, (1,), kernel, (o,))
    return 1


@ct.kernel
def launching_itself(o):
    ct.store(o, 0, ct.static_eval(again(launching_itself, np.zeros(1, np.int32))))


@ct.kernel
def one(o):
    ct.store(o, 0, ct.static_eval(again(other, np.zeros(1, np.int32))))


@ct.kernel
def other(o):
    ct.store(o, 0, ct.static_eval(again(one, np.zeros(1, np.int32))))


@pytest.mark.parametrize("kernel", [launching_itself, one])
def test_kernels_that_launch_each_other_without_end(kernel):
    with pytest.raises(RecursionError, match="launched from each other's static_eval") as caught:
        again(kernel, np.zeros(1, np.int32))
    assert isinstance(caught.value, ct.TileRecursionError)


@ct.kernel
def inner(o):
    ct.store(o, 0, 5)


@ct.kernel
def outer(o):
    ct.store(o, 0, ct.static_eval(again(inner, np.zeros(1, np.int32))))


def test_a_kernel_may_launch_another_one():
    o = np.zeros(1, np.int32)
    ct.launch(None, (1,), outer, (o,))
    assert o[0] == 1


@ct.kernel
def looping(x, o):
    total = ct.load(x, 0, (4,))
    for i in range(ct.bid(0) + 2):
        if i == 1:
            total = total + 1
    ct.store(o, 0, total)


@pytest.mark.parametrize("frames", [300, 500, 700, 800])
@pytest.mark.parametrize("schedule", ["batch", "block", "interleave"])
def test_launches_from_far_down(frames, schedule):
    x, o = np.zeros(4, np.int32), np.zeros(4, np.int32)
    kernel = ct.kernel(looping.function)
    with ct.settings.override(SCHEDULE=schedule):
        below(frames, ct.launch, None, (1,), kernel, (x, o))
    assert o.tolist() == [1] * 4


# ------------------------------------------------------------------ what else belongs to the user


@ct.kernel
def speaking(o):
    ct.print("block", ct.bid(0))
    ct.store(o, ct.bid(0), 1)


@pytest.mark.parametrize("schedule", ["batch", "block", "interleave"])
def test_without_a_standard_output_nothing_is_printed(monkeypatch, schedule):
    monkeypatch.setattr(sys, "stdout", None)
    o = np.zeros(3, np.int32)
    with ct.settings.override(SCHEDULE=schedule):
        ct.launch(None, (3,), speaking, (o,))
    assert o.tolist() == [1] * 3


@ct.kernel
def odd_static_code(o, C: ct.Constant):
    ct.store(o, 0, ct.static_eval((C is None) + (1, 2)[1] + [7][0] + {"a": 3}["a"] + (lambda: 4)() + "abc".index("c")))


def test_static_code_is_compiled_without_warnings_and_without_filters():
    o, filters = np.zeros(1, np.int32), warnings.filters
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inside = warnings.filters
        ct.launch(None, (1,), odd_static_code, (o, 3))
        assert warnings.filters is inside
    assert o[0] == 18 and warnings.filters == filters


class Speechless(Exception):
    def __str__(self):
        raise ValueError("no words")


def fails():
    raise Speechless


@ct.kernel
def failing(o):
    ct.store(o, 0, ct.static_eval(fails()))


def test_an_exception_that_cannot_be_shown():
    with pytest.raises(ct.TileStaticEvalError, match="Speechless"):
        ct.launch(None, (1,), failing, (np.zeros(1, np.int32),))


# ------------------------------------------------------------------ threads


def test_first_launches_of_several_threads():
    for _ in range(4):
        assert "4 launches" in program("""
            k = make("@ct.kernel\\ndef k(o):\\n    ct.store(o, 0, 1)\\n")
            done = []

            def work():
                o = np.zeros(1, np.int32)
                ct.launch(None, (1,), k, (o,))
                done.append(o[0])

            threads = [threading.Thread(target=work) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            print(sum(done), "launches")
        """)
