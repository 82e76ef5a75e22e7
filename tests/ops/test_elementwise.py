"""What element functions take and return, and what they refuse."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import cutile as ct
from tests.elements import applied
from tests.front.compiling import A1, refused, typed
from tests.interp.debugging.sessions import line_of, pdb

X, Y = np.linspace(-4, 4, 16).astype(np.float32), np.linspace(3, -2, 16).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    y: float



def run(body, *args) -> None:
    ct.launch(None, (1,), ct.kernel(body), args)


def test_both_spellings():
    def kernel(a, b, o):
        x, y = ct.load(a, (0,), (16,)), ct.load(b, (0,), (16,))
        f = lambda v, w: v if v > w else w * 2
        ct.store(o, (0,), ct.elementwise(f)(x, y) - ct.elementwise(f, x, y))

    o = np.ones(16, np.float32)
    run(kernel, X, Y, o)
    assert not o.any()


def test_records_go_in_and_come_out():
    def kernel(a, b, o):
        def f(p, k):
            if p.x > p.y:
                return Point(p.x - p.y, y=1), k
            return Point(p.y, p.x), 2
        x, y = ct.load(a, (0,), (16,)), ct.load(b, (0,), (16,))
        p, k = ct.elementwise(f)(Point(x, y), 7)
        ct.store(o, (0, 0), ct.cat((p.x[None], p.y[None]), 0))
        ct.store(o, (1, 0), ct.cat((k[None], k[None]), 0))

    o = np.zeros((4, 16), np.float32)
    run(kernel, X, Y, o)
    more = X > Y
    assert np.array_equal(o[:2], [np.where(more, X - Y, Y), np.where(more, 1, X)])
    assert np.array_equal(o[2], np.where(more, 7, 2))


def test_arrays_and_constants_are_arguments():
    def kernel(a, o):
        def f(v, table, scale):
            return ct.gather(table, v) * scale if v < 8 else scale
        ct.store(o, (0,), ct.elementwise(f)(ct.arange(16, dtype=ct.int32), a, 3))

    o = np.zeros(16, np.float32)
    run(kernel, X, o)
    assert np.array_equal(o, np.where(np.arange(16) < 8, X * 3, 3))


def test_values_that_meet_have_one_dtype():
    """A literal takes the dtype of the other side; dtypes promote, also of what a loop carries [ELT-4, ELT-7]."""
    assert applied(lambda v: v if v > 0 else 0, X).tolist() == np.maximum(X, 0).tolist()

    def sums(v):
        total = 0
        for i in range(3):
            total += v * i
        return total
    assert applied(sums, X).tolist() == (X * 3).tolist()

    def kinds(v):
        n = ct.int32(v)
        if v > 1:
            return n
        if v < -1:
            return v * 0.5
        return True
    assert applied(kinds, X).tolist() == [kinds_of(v) for v in X.tolist()]


def kinds_of(v):
    return int(v) if v > 1 else v * 0.5 if v < -1 else 1


def test_functions_call_element_functions():
    g = lambda v: -v if v < 0 else v
    assert applied(lambda v: ct.elementwise(g)(v) + g(v), X).tolist() == (2 * np.abs(X)).tolist()


def test_captured_numbers_count_anew():
    scale, results = 2, []

    @ct.kernel
    def kernel(a, o):
        ct.store(o, (0,), ct.elementwise(lambda v: v * scale if v > 0 else 0)(ct.load(a, (0,), (16,))))
    for _ in range(2):
        results.append(np.zeros(16, np.float32))
        ct.launch(None, (1,), kernel, (X, results[-1]))
        scale += 1
    assert [r.tolist() for r in results] == [(np.maximum(X, 0) * s).tolist() for s in (2, 3)]


def printing(x):
    ct.print(x)
    return x


def storing(x, a):
    ct.scatter(a, 0, x)
    return x


def adding(x, a):
    a.tiled_view((1,)).atomic_store_add((0,), 1.0)
    return x


def asserting(x):
    ct.assert_(x > 0)
    return x


def loading(x, a):
    return ct.load(a, (0,), (1,)).item()


def summing(x, a):
    return ct.sum(ct.full((4,), x, ct.float32))


def half(x):
    if x > 0:
        return x


def undefined(x):
    if x > 0:
        y = x
    return y


def looping(x, y):
    while x < y:
        x = x * 2
    return x


KERNEL = "ct.elementwise({})(ct.load(a, (0,), (16,)){})"


@pytest.mark.parametrize("f, at, says, cls", [
    (printing, "ct.print(x)", "print() cannot be used inside an element function", ct.TileSyntaxError),
    (storing, "ct.scatter(a, 0, x)", "scatter() cannot be used", ct.TileSyntaxError),
    (adding, "a.tiled_view((1,)).atomic_store_add((0,), 1.0)",
     "works on a float32 tile of shape (1,)", ct.TileTypeError),
    (asserting, "ct.assert_(x > 0)", "assert_() cannot be used", ct.TileSyntaxError),
    (loading, "ct.load(a, (0,), (1,))", "load() reads a tile", ct.TileSyntaxError),
    (summing, "ct.full((4,), x, ct.float32)", "works on a float32 tile of shape (4,)", ct.TileTypeError),
    (half, None, "Type of return value depends on path taken", ct.TileTypeError),
    (undefined, "y", "potentially undefined variable `y`", ct.TileTypeError),
])
def test_what_is_refused(f, at, says, cls):
    many = f.__code__.co_argcount == 2

    def kernel(a):
        t = ct.load(a, (0,), (16,))
        ct.store(a, (0,), ct.elementwise(f)(t, a) if many else ct.elementwise(f)(t))

    refused(kernel, A1, cls=cls, at=at, says=says)


def test_atomic_updates_at_offsets():
    """They take the mask; those at an index, which have none, go out of range."""
    @ct.kernel
    def k(a, counts):
        raw = counts.get_raw_memory()

        def f(v):
            if v > 2:
                raw.atomic_add_offset(v, 1)
                ct.atomic_cas(counts, 0, 0, v)
            return v
        ct.store(a, (0,), ct.elementwise(f)(ct.load(a, (0,), (4,))))
    counts = np.zeros(8, np.int32)
    ct.launch(None, (1,), k, (np.array([1, 2, 5, 7], np.int32), counts))
    assert counts.tolist() == [5, 0, 0, 0, 0, 1, 0, 1]


def test_a_tile_from_around_is_refused():
    def kernel(a):
        t = ct.load(a, (0,), (16,))
        ct.store(a, (0,), ct.elementwise(lambda v: v + t)(t))

    refused(kernel, A1, at="v + t", says="tile of shape (16,)", help="pass the tile as an argument")


def test_no_number_is_refused():
    def kernel(a):
        ct.elementwise(lambda v: "no")(ct.load(a, (0,), (16,)))

    e = refused(kernel, A1, says="must return a number")
    assert [(text, where.line) for text, where in e.notes] == [("this is the function", e.loc.line)]


def returns_text(v):
    return "no"


def test_a_function_that_is_refused_is_shown_where_it_is_defined():
    def kernel(a):
        ct.elementwise(returns_text)(ct.load(a, (0,), (16,)))

    def reduced(a):
        ct.reduce(ct.load(a, (0,), (16,)), 0, lambda p, q: returns_text(p), 0)

    assert [where.line for _, where in refused(kernel, A1).notes] == [returns_text.__code__.co_firstlineno]
    assert [where.line for _, where in refused(reduced, A1).notes] == [reduced.__code__.co_firstlineno + 1]


def test_no_function_is_refused():
    def kernel(a):
        ct.elementwise(3)(ct.load(a, (0,), (16,)))

    refused(kernel, A1, at="3", says="expected a function, got constant 3")


def test_in_a_reduction():
    """Branches are welcome there, loops and memory are not; a plain function says what helps [RED-11]."""
    def loops(a):
        ct.store(a, (0,), ct.reduce(ct.load(a, (0,), (16,)), 0, ct.elementwise(looping), 0))

    def reads(a):
        ct.store(a, (0,), ct.reduce(ct.load(a, (0,), (16,)), 0, ct.elementwise(
            lambda p, q: p + ct.gather(a, 0)), 0))

    def plain(a):
        ct.store(a, (0,), ct.reduce(ct.load(a, (0,), (16,)), 0, lambda p, q: p if p > q else q, 0))

    refused(loops, A1, cls=ct.TileSyntaxError, says="a loop cannot be used")
    refused(reads, A1, cls=ct.TileSyntaxError, says="gather() cannot be used inside the function given to reduce()")
    refused(plain, A1, cls=ct.TileSyntaxError, help="ct.elementwise(f)")


def test_nothing_is_left_on_the_host():
    with pytest.raises(RuntimeError, match="works in tile code only"):
        ct.elementwise(half)


def test_the_ir_holds_scalars():
    def kernel(a):
        ct.store(a, (0,), ct.elementwise(half_or_zero)(ct.load(a, (0,), (16,))))

    assert "elementwise" in {n.op.name for n in typed(kernel, A1).body.nodes if hasattr(n, "op")}


def half_or_zero(x):
    return x / 2 if x > 0 else 0


SCRIPT = '''import numpy as np
import cutile as ct

def rooted(value, limit):
    steps = 0
    while value > limit:
        value = value / 2
        steps += 1
    if steps > 1:
        return value
    return steps

@ct.kernel
def kernel(a, o):
    x = ct.load(a, (0,), (4,))
    ct.store(o, (0,), ct.elementwise(rooted)(x, 3))

a, o = np.array([1, 4, 9, 30], np.float32), np.zeros(4, np.float32)
ct.launch(None, (1,), kernel, (a, o))
print("out", o.tolist())
'''


def test_a_breakpoint_in_an_element_function(tmp_path):
    """pdb stops inside it, once for each element that comes there, with scalars under the user's names."""
    import sys

    script = tmp_path / "user.py"
    script.write_text(SCRIPT)
    halve, deep = line_of("value = value / 2", script), line_of("return value", script)
    a = pdb(sys.executable, [f"b user.py:{halve}", "c", "p value, limit, steps", "n", "p value", "w", "cl 1",
                             f"b user.py:{deep}", "c", "p value, steps", "c", "p value, steps", "c"], script)
    assert a[1].stop == ("user.py", halve, "rooted")
    assert a[2].text.strip() == "(f32 4.0, 3, i32 0)"
    assert a[4].text.strip() == "f32 2.0"
    assert "kernel()" in a[5].text
    assert a[8].stop == ("user.py", deep, "rooted") and a[9].text.strip() == "(f32 2.25, i32 2)"
    assert a[11].text.strip() == "(f32 1.875, i32 4)"
    assert "out [0.0, 1.0, 2.25, 1.875]" in a[12].text


def test_breakpoint_stops_in_an_element_function(tmp_path):
    """`breakpoint()` written in one stops there under any schedule."""
    import sys

    script = tmp_path / "user.py"
    script.write_text(SCRIPT.replace("    if steps > 1:", "    breakpoint()\n    if steps > 1:"))
    a = pdb(sys.executable, ["p value, steps", "c", "p value, steps"], script, module=False)
    assert a[1].text.strip() == "(f32 1.0, i32 0)" and a[3].text.strip() == "(f32 2.0, i32 1)"
