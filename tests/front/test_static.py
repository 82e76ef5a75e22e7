"""static_eval, static_assert, static_iter, static_exception, ensure_constant [SEVAL-*, ST-8]."""

import dataclasses
import enum
import linecache
import sys
import types

import numpy as np
import pytest

import cutile as ct
from cutile.front.proxies import EVALUATOR
from tests.front.compiling import A1, A2, AI, ARRAYS, I32, C, cell, constant, refused, result, typed

se = ct.static_eval
table = {"block": 8, "names": ["a", "b"]}


@dataclasses.dataclass(frozen=True)
class Config:
    block: int
    tail: tuple = ()


class Mode(enum.Enum):
    FAST = 1


def test_full_python_inside():  # SEVAL-2
    def f(n):
        a = ct.static_eval(sum([i for i in range(n) if i % 2]))
        b = ct.static_eval({"x": n}["x"] + (lambda q: q * 2)(3))
        c = ct.static_eval(table["block"] * len(table["names"]))
        d = se(max(a, b, c))
        return a, b, c, d

    assert constant(f, 6) == (9, 12, 16, 16)


def test_comprehensions_see_locals():  # SEVAL-2
    def f():
        y, zs = 7, (1, 2)
        return ct.static_eval([y + z for z in zs][1])

    assert constant(f) == 9


def test_what_values_look_like_inside():  # SEVAL-2
    seen = []

    def f(n):
        t, s, g = (1, (True, 2.5)), "a", len
        p, m, d = Config(n, (1,)), Mode.FAST, ct.int8
        ct.static_eval(seen.append((t, s, g, p, m, d, None)))
        return n

    constant(f, 3)
    assert seen == [((1, (True, 2.5)), "a", len, Config(3, (1,)), Mode.FAST, ct.int8, None)]


def test_proxies():  # SEVAL-2, SEVAL-3
    seen = []

    def f(x, n):
        ct.static_eval(
            seen.append((n.dtype, n.shape, n.ndim, type(n), x.dtype, x.ndim, len(x.shape), type(x), type(x.shape[0])))
        )
        a = ct.static_eval(n * 2 + 1 - (-n) // 3)
        b = ct.static_eval(ct.maximum(n, 3) + ct.where.__name__.count("w"))
        c = ct.static_eval((n > 3, 10 - n))
        d = ct.static_eval(x.shape[0] + n)
        return a * 1000 + b * 100 + c[0] * 50 + c[1] + d

    x = np.zeros(9, np.int32)
    assert result(f, x, 5) == (11 + 2) * 1000 + 600 + 50 + 5 + 14
    assert seen == [(ct.int32, (), 0, ct.Tile, ct.int32, 1, 1, ct.Array, ct.Tile)]


def test_proxies_have_no_value():  # SEVAL-3
    for source in (
        "bool(n)",
        "int(n)",
        "1 if n else 2",
        "range(n)",
        "[1, 2][n]",
        "max(n, 3)",
        "n and 3",
        "bool(x)",
    ):
        e = refused(cell(f"def k(x, n): ct.static_eval({source})")["k"], A1, I32, cls=ct.StaticException, alone=True)
        assert isinstance(e.__cause__, ValueError | TypeError)


def test_arrays_are_not_compared():
    """Python would compare the proxies."""
    for source in ("x == x", "x != 1", "1 == x", "x in (n, x, x.shape)"):
        k = cell(f"def k(x, n): ct.static_eval({source})")["k"]
        refused(k, A1, I32, says="unsupported operands for", help="an array is memory")


def test_other_ops_are_refused():  # SEVAL-3
    for source in ("ct.exp(n)", "ct.load(x, 0, 4)", "ct.zeros((4,), ct.int32)", "n.reshape((1,))", "ct.bid(0)"):
        with pytest.raises(ct.TileStaticEvalError):
            typed(cell(f"def k(x, n): ct.static_eval({source})")["k"], A1, I32)
    refused(cell("def k(x, n): ct.static_eval(ct.exp(n))")["k"], A1, I32, cls=ct.TileStaticEvalError,
            says="ct.exp() cannot be called inside static_eval()")


def test_errors_of_operators_on_proxies():
    refused(cell("def k(n): ct.static_eval(n + 'a')")["k"], I32, says="unsupported operands for +")


def test_what_is_not_handed_in():  # SEVAL-2, TV-5, RAWMEM-1
    for source, says in (
        ("range(3)", "a range"),
        ("x.tiled_view(4)", "a tiled view"),
        ("x.get_raw_memory()", "a raw memory"),
        ("xs", "a list of"),
        ("f'{n}'", "a formatted string"),
        ("ct.Slice(0, 4)", "a ct.Slice"),
    ):
        k = cell(f"def k(x, xs, n):\n    v = {source}\n    ct.static_eval(v)")["k"]
        refused(k, A1, ARRAYS, I32, at="ct.static_eval(v)", says=f"{says}")


def test_results():  # SEVAL-4
    for source in ("[1]", "{1: 2}", "{1}", "b'x'", "1j", "object()", "range(3)", "np.zeros(3)", "(1, [2])", "iter(())"):
        refused(
            cell(f"def k(): ct.static_eval({source})")["k"], at=f"ct.static_eval({source})", says="static_eval() gave a"
        )
    assert constant(lambda: ct.static_eval((1, None, "a", Mode.FAST, ct.int8, (2.5,), len))) == (
        1, None, "a", Mode.FAST, ct.int8, (2.5,), len)
    assert constant(lambda: ct.static_eval(Config(3)).block) == 3


def test_dtypes_are_not_called_inside():  # SEVAL-4
    e = refused(cell("def k(): ct.static_eval(ct.int8(3))")["k"], cls=ct.StaticException, says="TypeError: int8(...)")
    assert isinstance(e.__cause__, TypeError)


def test_exceptions_inside():  # SEVAL-5
    e = refused(cell("def k(): ct.static_eval(1 / 0)")["k"], cls=ct.StaticException, at="ct.static_eval(1 / 0)",
                says="ZeroDivisionError: division by zero (raised inside static_eval())")
    assert isinstance(e.__cause__, ZeroDivisionError)
    refused(cell("def k(): ct.static_eval(nothing)")["k"], cls=ct.StaticException, says="NameError: name 'nothing'")


def fails_inside(x):
    raise KeyError(x)


def test_python_frames_of_exceptions_inside():  # ERR-12
    e = refused(cell("def k(): ct.static_eval(g(1))", g=fails_inside)["k"], cls=ct.StaticException)
    [(_, span)] = e.notes
    assert span.function == "fails_inside" and span.source_line().strip() == "raise KeyError(x)"


def test_divmod_of_proxies():  # SEVAL-3
    assert result(lambda n: ct.static_eval(sum(divmod(n, 3))), 8) == 4
    assert result(lambda n: ct.static_eval(sum(divmod(8, n))), 3) == 4


def test_nesting():  # SEVAL-1
    for outer in ("ct.static_eval", "ct.static_assert"):
        for inner in ("ct.static_eval(1)", "ct.static_assert(True)", "ct.static_iter(())"):
            refused(cell(f"def k(): {outer}({inner})")["k"], cls=ct.TileStaticEvalError, says="cannot be used inside")


def test_aliasing():  # SEVAL-1: not called by a global name: a local, an item, an argument
    for k in ("e = ct.static_eval\n    e(3)", "(ct.static_eval,)[0](3)", "(lambda f: f(3))(ct.static_eval)"):
        refused(
            cell(f"def k():\n    {k}")["k"],
            cls=ct.TileSyntaxError,
            says="static_eval() must be called directly by its name",
        )


def test_same_spelling_of_something_else():
    def static_eval(x):
        return x + 1

    space = types.SimpleNamespace(static_eval=static_eval)
    assert constant(lambda: static_eval(1)) == 2
    refused(cell("def k(): s.static_eval(1)", s=space)["k"], at="s")


def test_misplaced():  # SEVAL-1
    refused(
        cell("def k(): a = ct.static_iter((1, 2))")["k"],
        cls=ct.TileSyntaxError,
        says="only as the iterable of a for loop",
    )
    refused(
        cell("def k(): a = ct.static_exception(ValueError())")["k"], cls=ct.TileSyntaxError, says="only after raise"
    )


def test_functions_made_inside_are_callable_afterwards():  # SEVAL-9
    fns = [lambda v: v + 1, lambda v: v * 2]

    def f():
        g = ct.static_eval(fns[1])
        return g(5)

    assert constant(f) == 10


def helper(v):
    return v + 1


def test_module_functions_are_python_inside():  # SEVAL-9
    assert constant(lambda: ct.static_eval(helper(3))) == 4


def test_functions_of_tile_code_are_not_called_inside():
    def k():
        g = lambda: 1
        ct.static_eval(g())

    refused(k, cls=ct.TileStaticEvalError, says="is defined in tile code and cannot be called")
    assert constant(lambda: ct.static_eval((lambda: 5, 1))[0]()) == 5


def test_undefined_and_poisoned_variables():
    def undefined(n):
        if n > 1:
            y = 1
        ct.static_eval(y)

    def poisoned():
        y = nothing
        z = ct.static_eval(y)
        ct.static_assert(y)
        for i in ct.static_iter(y):
            pass
        return z

    refused(undefined, I32, says="potentially undefined variable `y`")
    refused(poisoned, cls=ct.TileSyntaxError, at="nothing")


# ------------------------------------------------------------------ static_assert


def test_static_assert():  # SEVAL-6
    typed(cell("def k(): ct.static_assert(True, 1 / 0)")["k"])
    cls = ct.TileStaticAssertionError
    assert refused(cell("def k(): ct.static_assert(1 > 2)")["k"], cls=cls).message == "Static assertion failed"
    assert (
        refused(cell("def k(): ct.static_assert(False, 'a' + 'b')")["k"], cls=cls).message
        == "Static assertion failed: ab"
    )
    assert refused(cell("def k(): ct.static_assert(False, 3)")["k"], cls=cls).message == "Static assertion failed: 3"
    assert refused(cell("def k(): ct.static_assert(False, None)")["k"], cls=cls).message == "Static assertion failed"
    refused(cell("def k(): ct.static_assert(1)")["k"], says="needs a bool constant, got 1")
    refused(cell("def k(n): ct.static_assert(n > 3)")["k"], I32, says="known at compile time", help="ct.assert_")
    refused(cell("def k(): ct.static_assert(False, 1 / 0)")["k"], cls=ct.StaticException)


def test_static_assertions_end_collection():
    def k():
        nothing
        ct.static_assert(False)
        other

    e = refused(k, cls=ct.TileSyntaxError, alone=False)
    assert [type(x) for x in e.errors] == [ct.TileSyntaxError, ct.TileStaticAssertionError]


# ------------------------------------------------------------------ static_exception


def test_static_exception():  # ST-8
    e = refused(cell("def k(): raise ct.static_exception(ValueError('a', 1))")["k"], cls=ct.StaticException,
                says="ValueError: ('a', 1)")
    assert e.__cause__.args == ("a", 1)
    refused(cell("def k(): raise ct.static_exception(KeyError)")["k"], cls=ct.StaticException, says="KeyError")
    refused(
        cell("def k(n):\n    if n > 1:\n        raise ct.static_exception(ValueError('x'))")["k"],
        I32,
        cls=ct.StaticException,
    )
    refused(
        cell("def k(): raise ct.static_exception(3)")["k"], cls=ct.StaticException, says="needs an exception, got 3"
    )
    typed(cell("def k():\n    if False:\n        raise ct.static_exception(ValueError('x'))")["k"])


# ------------------------------------------------------------------ tuples of generators


def test_tuple_of_a_generator():  # EX-3
    def f(n):
        i = 77
        squares = tuple(i * i for i in ct.static_iter(range(n)) if i != 1)
        pairs = tuple((i, j) for i in ct.static_iter(range(2)) for j in ct.static_iter(range(i + 1)))
        named = tuple(f for _, f in ct.static_iter(enumerate("ab")))
        late = tuple(lambda: j for j in ct.static_iter(range(3)))
        return squares, pairs, named, late[0](), i

    assert constant(f, 4) == ((0, 4, 9), ((0, 0), (1, 0), (1, 1)), ("a", "b"), 2, 77)


def test_generator_conditions_are_constant():  # EX-3
    k = cell("def k(n): tuple(i for i in ct.static_iter((1, 2)) if n > i)")["k"]
    refused(k, I32, at="n > i", says="must be known at compile time, got a bool_ scalar", alone=False)


def test_run_time_elements():
    def f(n):
        a, b, c = tuple(n * i for i in ct.static_iter(range(3)))
        return a + b + c

    assert result(f, 5) == 15


# ------------------------------------------------------------------ ensure_constant


def test_ensure_constant():  # SEVAL-8
    assert constant(lambda: ct.ensure_constant((1, "a", None, ct.float32, len))) == (1, "a", None, ct.float32, len)
    for source in ("n", "x", "lambda: 1", "range(3)", "(1, n)", "ct.zeros((4,), ct.int32)", "x.tiled_view(4)"):
        refused(cell(f"def k(x, n): ct.ensure_constant({source})")["k"], AI, I32, cls=ct.TileStaticAssertionError)


def test_on_the_host():  # FN-3
    assert ct.static_iter((1, 2)) == (1, 2)
    e = ValueError()
    assert ct.static_exception(e) is e
    for f in (ct.static_eval, ct.static_assert, ct.ensure_constant):
        with pytest.raises(RuntimeError, match=f.__name__):
            f(1)


def test_constant_parameters():
    def k(n):
        ct.static_assert(n == 3 and type(n) is int)

    typed(k, C(3))


@pytest.mark.parametrize("use", ["ct.static_eval(t)", "ct.static_assert(t[1] == 2)", "ct.static_eval(f)", "ct.static_iter(t)"])
def test_a_failed_value_is_silent_in_a_static_construct(use):
    k = cell(f"""
        def k(x):
            t = ct.exp("a"), 1
            def f(): return t
            for i in ct.static_iter((1,)):
                {"for j in " + use + ": pass" if "iter" in use else use}
    """)["k"]
    refused(k, A1, says="exp()")


@pytest.mark.parametrize("use", [
    "tuple(i for i in ct.static_iter(bad))[1]", "tuple(i for i in ct.static_iter((1, 2)) if i + bad[1] > 2)[1]",
    "tuple(i + j for i in ct.static_iter((1, 2)) for j in ct.static_iter(bad))[1]", "tuple(i for i in ct.static_iter(3))[1]",
    "tuple(i for i in ct.static_iter((1, 2)) if ct.bid(0) > i)[3]", "y"])
def test_items_hidden_by_an_error_have_no_other_errors(use):
    """Neither of the tuple that they would make, nor of the variables that the loop over them would assign."""
    k = cell(f"""
        def k(x):
            y = None
            {'bad = ct.exp("a"), 1' if "bad" in use or use == "y" else "pass"}
            for i in ct.static_iter({"bad" if use == "y" else "()"}):
                y = i
            ct.store(x, 0, {use} * 2.0)
    """)["k"]
    assert len(refused(k, A1).errors) == 1


def test_conditions_of_generators_end_at_the_first_that_is_false():  # EX-3
    def f():
        return tuple(i for i in ct.static_iter((0, 1, 2)) if i > 0 if ct.static_eval(2 // i) > 1)

    assert constant(f) == (1,)


def test_methods_inside():
    """A static construct may give a method, which tile code then calls; static code cannot call it."""
    x, out = np.arange(8, dtype=np.int32), np.zeros(4, np.int32)

    @ct.kernel
    def run(x, out):
        cut = ct.static_eval(x.slice)
        part = ct.load(cut(0, start=4, stop=8), 0, 4)
        wide, unbound = ct.static_eval((part.reshape, ct.Tile.permute))
        ct.static_assert(hasattr(x, "slice") and not hasattr(x, "reshape"))
        ct.store(out, 0, unbound(wide(shape=(2, 2)), axes=(1, 0)).reshape((4,)))

    ct.launch(None, (1,), run, (x, out))
    assert out.tolist() == [4, 6, 5, 7]
    for method in ("x.slice(0, 0, 4)", "ct.Array.slice(x, 0, 0, 4)"):
        refused(cell(f"def k(x): ct.static_eval({method})")["k"], A1, cls=ct.TileStaticEvalError,
                says=".slice() cannot be called inside static_eval()")


def test_attributes_inside():
    def k(x):
        there = ct.static_eval((x.dtype, x.ndim, x.shape, x.strides, x.foreign_pointer))
        ct.static_assert(there[0] == ct.float32 and there[1] == 2)
        ct.Array.from_foreign(there[4], there[2], there[3])

    typed(k, A2)


def test_attributes_of_what_was_kept():
    """Python code may keep a tile or array: the attributes of its type remain."""
    kept = []

    def k(x):
        i = ct.bid(0)
        ct.static_eval(kept.append((x, i)))

    typed(k, A2)
    [(x, i)] = kept
    assert (x.dtype, x.ndim, i.dtype, i.ndim, i.shape) == (ct.float32, 2, ct.int32, 0, ())


NUMPY_OF_TILES = ("np.sum(t)", "np.prod(t)", "np.max(t)", "np.dot(t, t)", "np.ptp(t)", "np.argmax(t)", "np.size(t)",
                  "np.asarray(t).ndim", "np.array(t).size", "np.ravel(t)[0]", "np.full(4, t)[0]", "np.mean(t)",
                  "np.exp(t)", "np.ones(1) * t", "np.cumsum(t)", "np.sum(x)", "np.max(x)", "np.size(x)", "np.maximum(t, t)")


@pytest.mark.parametrize("expression", NUMPY_OF_TILES)
def test_numpy_takes_no_value_of_run_time(expression):
    k = kernel_of(f"t = ct.load(x, 0, (4,))\nct.store(o, 0, ct.static_eval({expression}))")
    with pytest.raises(ct.TileTypeError, match=r"(?s)numpy\..*known only at run time.*in k"):
        ct.launch(None, (1,), k, (np.ones(4, np.float32), np.zeros(4, np.float32)))


@pytest.mark.parametrize("expression, wanted", [
    ("np.float32(2) * t", [2, 4, 6, 8]), ("t - np.int64(1)", [0, 1, 2, 3]), ("np.float32(8) / t", [8, 4, 8 / 3, 2]),
    ("t * len(np.shape(t))", [1, 2, 3, 4]), ("t + np.ndim(x)", [2, 3, 4, 5])])
def test_numpy_scalars_beside_tiles(expression, wanted):
    k, out = kernel_of(f"t = ct.load(x, 0, (4,))\nct.store(o, 0, ct.static_eval({expression}))"), np.zeros(4, np.float32)
    ct.launch(None, (1,), k, (np.arange(1, 5, dtype=np.float32), out))
    np.testing.assert_array_equal(out, np.asarray(wanted, np.float32))


def kernel_of(body: str):
    text = "@ct.kernel\ndef k(x, o):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    name = f"<static {body}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"ct": ct, "np": np}
    exec(compile(text, name, "exec"), space)
    return space["k"]


@pytest.mark.parametrize("body", ["ct.store(x, 0, G)", "ct.store(x, 0, ct.bid(0) * G)", "print(G)",
                                  "ct.store(x, 0, ct.static_eval(10**5000))"])
def test_integers_of_thousands_of_digits(body):
    k = kernel_of(body)
    k.function.__globals__["G"] = 10**5000
    with pytest.raises(ct.TileValueError, match=r"(?s)the integer constant 2\^16609 and more fits neither.*in k"):
        ct.launch(None, (1,), k, (np.zeros(4, np.float32), 0))


def interrupted(n: int, run) -> bool:
    """Run it with an interrupt at the nth line that static.py runs; whether there was one."""
    lines = 0

    def trace(frame, event, arg):
        nonlocal lines
        if not frame.f_code.co_filename.endswith("front/static.py"):
            return None
        if event == "line":
            lines += 1
            if lines == n:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def test_an_interrupt_at_any_line_leaves_no_thread_in_static_code(monkeypatch):
    late = []
    monkeypatch.setattr(sys, "unraisablehook", late.append)

    def k(o):
        n = ct.static_eval(ct.cdiv(7, 2) + o.ndim)
        for i in ct.static_iter((1, n)):
            ct.store(o, i, n)

    o = np.zeros(8, np.int32)
    n = 1
    while interrupted(n, lambda: ct.launch(None, (1,), ct.kernel(k), (o,))):
        assert ct.cdiv(7, 2) == 4 and EVALUATOR.get() is None, n
        with pytest.raises(RuntimeError, match="tile code only"):
            ct.exp(1.0)
        n += 1
    assert n > 40 and not late
    assert o.tolist() == [0, 5, 0, 0, 0, 5, 0, 0]
