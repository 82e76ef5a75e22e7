"""The block schedule in a debugger: lines, names, stacks, edits, and what a breakpoint sees."""

from __future__ import annotations

import ast
import enum
import io
import pdb
import re
import sys
import traceback
from dataclasses import dataclass

import numpy as np
import pytest

import cutile as ct
from cutile import interp, settings
from cutile.interp.codegen import py_ast
from cutile.ir.nodes import Frame, Region, Return, Value
from cutile.ops._op import OpDef
from cutile.spans import Span
from tests.interp.ir_programs import I32, Code

# ------------------------------------------------------------------ kernels; tests count lines from their `def`


@dataclass(frozen=True)
class Point:
    x: object
    y: int


def twice(v, n):
    w = v * 2.0
    if n > 1:
        w = w + 1.0
    return w


@ct.kernel
def steps(x, out, n):
    i = ct.bid(0)
    four = 4
    t = ct.load(x, index=(i,), shape=(four,))
    p = Point(t, 3)
    acc = ct.zeros((4,), dtype=ct.float32)
    for j in range(n):
        if j == 1:
            continue
        acc = acc + twice(t, j)
    k = 0
    while k < 2:
        k += 1
    if i == 1:
        acc = acc + 1.0
    else:
        acc = acc - 1.0
    m = ct.reduce(p.x, 0, lambda a, b: ct.maximum(a, b), 0.0)
    ct.store(out, index=(i,),
             tile=acc + m)


@ct.kernel
def stops(x):
    i = ct.bid(0)
    breakpoint()
    ct.store(x, index=(i,), tile=ct.full((1,), i, dtype=ct.int32))


FIRST = {f.__name__: f.__wrapped__.__code__.co_firstlineno for f in (steps, stops)}


def launch(kernel, grid, args, schedule="block"):
    with settings.override(SCHEDULE=schedule):
        ct.launch(None, grid, kernel, args)


def arrays(n: int = 2):
    return np.arange(4 * n, dtype=np.float32), np.zeros(4 * n, np.float32)


def lines_of(kernel, grid, args, schedule) -> list[tuple[str, int]]:
    """(function, line counted from the kernel's decorator) of each line event in this file."""
    events = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename != __file__:
            return None
        if event == "line":
            events.append((frame.f_code.co_name, frame.f_lineno - FIRST[kernel.__name__]))
        return trace

    launch(kernel, grid, args, schedule)  # typing is over before the trace begins
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        launch(kernel, grid, args, schedule)
    finally:
        sys.settrace(before)
    return events


def test_lines_are_those_of_python():
    """Every line once each time it runs, in order, as if Python ran the kernel itself."""
    x, out = arrays()
    events = lines_of(steps, (1,), (x, out, 3), "block")
    kernel = [line for name, line in events if name == "steps"]
    head, loop = [2, 3, 4, 5, 6], [7, 8, 10, 7, 8, 9, 7, 8, 10, 7]
    # the combine function stands in the line that calls it, and returns there after each of three calls
    tail = [11, 12, 13, 12, 13, 12, 14, 17, 18]
    assert _once(kernel)[:len(head + loop + tail)] == head + loop + tail
    helper = FIRST["steps"] - twice.__code__.co_firstlineno
    inside = [line + helper for name, line in events if name == "twice"]
    assert inside[:9] in ([1, 2, 4, 1, 2, 3, 4], [0, 1, 2, 4, 0, 1, 2, 3, 4])


def _once(lines: list[int]) -> list[int]:
    return [b for a, b in zip([None, *lines], lines, strict=False) if a != b]


def test_batch_runs_the_same_lines():
    x, out = arrays()
    lines = {line for name, line in lines_of(steps, (1,), (x, out, 3), "batch") if name in ("steps", "<lambda>")}
    assert lines - {0, 1} >= {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 18}
    assert 15 not in lines  # the branch that no block took


def debug(commands: str, grid=(2,), n: int = 3):
    """A pdb session over a launch of `steps`: what it printed, and the kernel's output."""
    x, out = arrays(grid[0])
    launch(steps, grid, (x, out, n))
    result = np.zeros_like(out)
    text = io.StringIO()
    session = pdb.Pdb(stdin=io.StringIO(commands + "\nc\nc\nc\nc\nc\nc\n"), stdout=text, nosigint=True, readrc=False)
    session.use_rawinput = False
    before = sys.gettrace()
    try:
        with settings.override(SCHEDULE=None):
            session.runcall(ct.launch, None, grid, steps, (x, result, n))
    finally:
        sys.settrace(before)
        session.clear_all_breaks()  # pdb keeps them for the whole process
    return text.getvalue(), out, result


def at(line: int) -> str:
    return f"b {__file__}:{FIRST['steps'] + line}"


class Activation(enum.StrEnum):
    RELU = "relu"


@ct.kernel
def named(x, activation: ct.Constant):
    kept = (activation, Activation.RELU)
    ct.assert_(ct.bid(0) == 0, Activation.RELU)
    ct.scatter(x, 0, 2 if kept[0] == Activation.RELU else 3)


@pytest.mark.parametrize("schedule", ["batch", "block", "interleave"])
def test_string_enums_are_values(schedule):
    """Python compiles no literal of a subclass of str."""
    x = np.zeros(1, np.int32)
    launch(named, (1,), (x, Activation.RELU), schedule)
    assert x[0] == 2


def test_a_conditional_breakpoint_on_the_block():
    text, out, result = debug(f"{at(6)}, __block__ == (1, 0, 0)\nc\np i, four, t, p, x, n\np i == 1, __block__")
    tile = "f32[4] [4, 5, 6, 7]"
    assert f"(i32 1, 4, {tile}, Point(x={tile}, y=3), x: f32[8] array, i32 3)" in text
    assert "(True, (1, 0, 0))" in text and text.count("steps()") == 1
    assert (out == result).all()


def test_a_breakpoint_in_a_loop_stops_each_iteration():
    text, _, _ = debug(f"{at(10)}\nc\np j\nc\np j\nc", grid=(1,))
    assert "i32 0" in text and "i32 2" in text


def test_the_stack_is_the_users():
    first = twice.__code__.co_firstlineno + 1
    text, _, _ = debug(f"b {__file__}:{first}\nc\np v, n\nup\np j, acc\ndown\nargs", grid=(1,))
    assert "(f32[4] [0, 1, 2, 3], i32 0)" in text and "(i32 0, f32[4] [0, 0, 0, 0])" in text
    assert "twice()" in text


def test_what_the_debugger_assigns_flows_on():
    _, out, result = debug(f"{at(11)}\nc\n!acc = acc + 100", grid=(1,))
    assert (result == out + 100).all()
    _, out, result = debug(f"{at(10)}, j == 2\nc\n!t = t * 0", grid=(1,))
    assert not (result == out).all()


def test_elements_of_a_combine_function_are_scalars():
    line = FIRST["steps"] + 18
    text, _, _ = debug(f"b {__file__}:{line}\nc\ns\ns\ns\ns\ns\ns\ns\ns\np a, b", grid=(1,))
    assert "<lambda>()" in text


def test_stepping_into_an_op_lands_in_its_meaning():
    text, _, _ = debug(f"{at(4)}\nc\ns\nw\n", grid=(1,))
    assert "load()" in text and "ops/memory.py" in text.replace("\\", "/")


def test_temporaries_do_not_pile_up():
    """Only what is still to be read stands beside the user's variables."""
    text, _, _ = debug(f"{at(19)}\nc\np sorted(n for n in locals() if not n.startswith('.'))\n"
                       "p len([n for n in locals() if n.startswith('.t')])", grid=(1,))
    assert "['__block__', 'acc', 'four', 'i', 'j', 'k', 'm', 'n', 'out', 'p', 't', 'x']" in text
    count = [int(s) for s in text.replace("(Pdb) ", "").split() if s.isdigit()][-1]
    assert count <= 12


def test_breakpoint_stops_in_the_kernel(monkeypatch):
    seen = []

    def hook(*args, **kwargs):
        f = sys._getframe(1)
        seen.append((f.f_code.co_name, f.f_lineno - FIRST["stops"], int(f.f_locals["i"])))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    x = np.zeros(2, np.int32)
    launch(stops, (2,), (x,), None)  # the kernel's breakpoint chooses the schedule
    assert seen == [("stops", 3, 0), ("stops", 3, 1)] and x.tolist() == [0, 1]


# ------------------------------------------------------------------ hand-made programs


def _no_rule(b, op, **terms):
    raise NotImplementedError


def _raises(x, /):
    """An op whose meaning fails."""
    raise ZeroDivisionError("inside")


raises = OpDef(_raises, _no_rule, name="_test_raises", public=False, effect="host")  # not registered


@pytest.mark.parametrize("schedule", ["block", "batch"])
def test_tracebacks_point_into_the_line(schedule, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def größe(x):\n    y = 'ä'; z = boom(x)\n    return z\n", encoding="utf-8")
    c = Code("größe")
    c.span = lambda: Span(str(file), 2, 17, 2, 24, "größe")
    x = Value(I32)
    c.op(raises, x, result=I32)
    c.add(Return((), Span(str(file), 3, 4, 3, 12, "größe")))
    kernel = c.kernel(("x", x))
    kernel.span = Span(str(file), 1, 0, 1, 13, "größe")
    with pytest.raises(ZeroDivisionError) as e:
        interp.run(kernel, (1,), [1], schedule=schedule)
    text = "".join(traceback.format_exception(e.value))
    assert f'File "{file}", line 2, in größe' in text
    assert re.search(r"\n    y = 'ä'; z = boom\(x\)\n {17}[~^]{7}\n", text)


@pytest.mark.parametrize("schedule", ["block", "batch"])
def test_calls_nest_a_thousand_deep(schedule, capsys):
    c = Code()
    x = c.bid(0)

    def call(depth: int) -> None:
        nonlocal body
        span = c.span()
        inner, r = Code("f", c.lines), Value(I32)
        if body is None:
            inner.add(Return((inner.add_(x, x),), span))
        else:
            inner.nodes += body[0]
            inner.add(Return((body[1],), span))
        body = ([Frame("f", span, Region(inner.nodes), (r,), span)], r)

    body = None
    for depth in range(1000):
        call(depth)
    c.nodes += body[0]
    c.show("r", body[1])
    c.add(Return((), c.span()))
    limit = sys.getrecursionlimit()
    interp.run(c.kernel(), (3,), [], schedule=schedule)
    assert capsys.readouterr().out == "r 0\nr 2\nr 4\n"
    assert sys.getrecursionlimit() == limit


def test_nodes_at_one_place_share_their_position():
    stmt = py_ast.assign(["a", "b"], py_ast.call(py_ast.load("f"), [py_ast.constant(1)], [("k", py_ast.load("x"))]))
    py_ast.set_position(stmt, (3, 4, 3, 9))
    nodes = [n for n in ast.walk(stmt) if "lineno" in n._attributes]
    assert len({id(n.__dict__) for n in nodes}) == 1
    assert {(n.lineno, n.col_offset, n.end_lineno, n.end_col_offset) for n in nodes} == {(3, 4, 3, 9)}


def test_a_position_is_given_to_one_statement_only():
    first, second = (py_ast.set_position(py_ast.assign([name], py_ast.load("x")), py_ast.NO_POSITION)
                     for name in "ab")
    written = py_ast.set_position(py_ast.assign(["c"], py_ast.load("x")), (3, 4, 3, 9))
    py_ast.inherit_position([first, written, second])
    assert [s.lineno for s in (first, written, second)] == [3, 3, -1]
    assert py_ast.Name("x", ast.Load()).lineno == -1
