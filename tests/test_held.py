"""What threads change together: the first one changes it, the last one restores it."""

from __future__ import annotations

import gc
import os
import sys
import threading

import pytest

from cutile.collector import at_rest
from cutile.held import Held
from cutile.ir.recursion import LIMIT, deep_recursion


@pytest.fixture
def log():
    return []


@pytest.fixture
def held(log):
    return Held(lambda: log.append("changed") or len(log), lambda before: log.append(f"restored {before}"))


def test_nested_and_after_an_error(held, log):
    with held():
        with held():
            pass
        assert log == ["changed"]
    with pytest.raises(ZeroDivisionError), held():
        raise ZeroDivisionError
    assert log == ["changed", "restored 1", "changed", "restored 3"]


def test_the_last_thread_restores(held, log):
    inside, leave = threading.Event(), threading.Event()

    def other():
        with held():
            inside.set()
            leave.wait()

    t = threading.Thread(target=other)
    with held():
        t.start()
        inside.wait()
    assert log == ["changed"]
    leave.set()
    t.join()
    assert log == ["changed", "restored 1"]


def test_the_limit_of_recursion_is_raised_and_never_lowered():
    before = sys.getrecursionlimit()
    with deep_recursion():
        assert sys.getrecursionlimit() == max(before, LIMIT)
    assert sys.getrecursionlimit() == before
    sys.setrecursionlimit(2 * LIMIT)
    try:
        with deep_recursion():
            assert sys.getrecursionlimit() == 2 * LIMIT
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_forked_meanwhile_has_its_collector():
    inside, leave = threading.Event(), threading.Event()

    def compile_something():
        with at_rest():
            inside.set()
            leave.wait(10)

    t = threading.Thread(target=compile_something)
    t.start()
    inside.wait(10)
    try:
        pid = os.fork()
        if pid == 0:
            with at_rest():
                pass
            os._exit(0 if gc.isenabled() else 1)
    finally:
        leave.set()
        t.join()
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_forked_inside_leaves_and_comes_in_again(held, log):
    with held():
        pid = os.fork()
    if pid == 0:
        log.clear()
        with held():
            pass
        os._exit(0 if log == ["changed", "restored 1"] else 1)
    assert os.waitpid(pid, 0)[1] == 0
