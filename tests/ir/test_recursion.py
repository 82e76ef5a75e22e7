"""Deep walks go on in new threads."""

from __future__ import annotations

import ast
import contextvars
import signal
import sys
import threading
import time

import pytest

from cutile.ir import recursion
from cutile.ir.recursion import compiled, in_new_thread, near_limit, recursive, with_room

NUMBER: contextvars.ContextVar[int] = contextvars.ContextVar("number", default=0)


def below(frames: int, function, *args):
    """A call with `frames` more frames around it."""
    return function(*args) if frames == 0 else below(frames - 1, function, *args)


def through_c(calls: int, function):
    """A call inside `calls` calls of a C function."""
    return function() if calls == 0 else max([calls], key=lambda n: through_c(n - 1, function))


@recursive
def nested(n: int) -> set:
    """The threads in which n nested calls run."""
    return {threading.get_ident()} | (nested(n - 1) if n else set())


def test_calls_nest_deeper_than_the_limit_allows():
    limit = sys.getrecursionlimit()
    assert len(nested(10)) == 1
    assert len(nested(5 * limit)) > 5
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("limit", [200, 500, 1000, 100_000])
def test_under_other_limits(limit):
    result = []

    def work():
        result.append(len(nested(3000)))

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, len(list(_frames())) + 60))
    try:
        t = threading.Thread(target=work)
        t.start()
        t.join()
    finally:
        sys.setrecursionlimit(before)
    assert result and result[0] > 3


def _frames():
    frame = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def test_a_walk_from_far_down_begins_in_another_thread():
    here = threading.get_ident()
    assert with_room(threading.get_ident) == here and not near_limit()
    assert below(800, with_room, threading.get_ident) != here
    assert below(800, near_limit)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="counts calls of C functions apart")
def test_calls_of_c_functions_count_too():
    seen = []
    through_c(180, lambda: seen.append((near_limit(), with_room(nested, 2000))) or 0)
    assert seen[0][0] is False and len(seen[0][1]) > 2


def test_results_errors_and_context():
    assert in_new_thread(divmod, 7, 2) == (3, 1)
    NUMBER.set(4)
    assert in_new_thread(NUMBER.get) == 4
    in_new_thread(NUMBER.set, 5)
    assert NUMBER.get() == 4
    with pytest.raises(ZeroDivisionError) as caught:
        in_new_thread(divmod, 1, 0)
    assert caught.value.__context__ is None


def test_without_an_end_it_is_a_recursion_error(monkeypatch):
    monkeypatch.setattr(recursion, "THREADS", 5)
    with pytest.raises(RecursionError, match="deeper than cutile can follow"):
        nested(10**6)


def test_no_further_thread(monkeypatch):
    def refusing(*args):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(recursion._thread, "start_new_thread", refusing)
    with pytest.raises(RecursionError, match="no thread can go on: can't start new thread"):
        nested(2000)


def conditions(n):
    """A module of `n` nested `if x:` around `y = x`."""
    inner = ast.parse("y = x").body[0]
    for _ in range(n):
        inner = ast.copy_location(ast.If(ast.copy_location(ast.Name("x", ast.Load()), inner), [inner], []), inner)
    return ast.Module([inner], [])


@pytest.mark.parametrize("n", [10, 600, 1200])
def test_syntax_that_nests_deeper_than_calls_may(n):
    limit, space = sys.getrecursionlimit(), {"x": 3}
    exec(below(300, compiled, conditions(n), "<deep>"), space)
    assert space["y"] == 3 and sys.getrecursionlimit() == limit


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="such Pythons have a limit of their own for syntax")
def test_syntax_that_nests_too_deep_for_any_stack():
    limit = sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        compiled(conditions(recursion.DEEPEST), "<deep>")
    assert sys.getrecursionlimit() == limit


def test_a_debugger_goes_along():
    seen = []

    def tracer(frame, event, arg):
        seen.append((frame.f_code.co_name, threading.get_ident()))

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        in_new_thread(below, 0, int)
    finally:
        sys.settrace(before)
    assert any(name == "below" and thread != threading.get_ident() for name, thread in seen)


def test_a_profiler_that_is_no_function_is_left_alone():
    import cProfile

    with cProfile.Profile():
        assert in_new_thread(int) == 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_an_interrupt_ends_the_thread():
    steps, ended = [], threading.Event()

    def work():
        try:
            while True:
                steps.append(time.sleep(0.001))
        finally:
            ended.set()

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            in_new_thread(work)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended.is_set() and steps
