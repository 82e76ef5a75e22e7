"""Expressions: evaluation order, short circuits, subscripts, conditions [EX-*, COND-*]; constants [LOOSE-*]."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cutile as ct
from tests.front.compiling import A1, A2, AI, ARRAYS, B1, F32, I32, C, cell, constant, refused, result, text, typed


def test_literals():  # EX-1
    assert constant(lambda: (1, 2.5, True, "a", None, ...)) == (1, 2.5, True, "a", None, ...)


def test_stars_in_displays_and_calls():  # EX-2, EX-7
    def f(*args):
        return (0, *args, *(), *(7, 8))

    assert constant(lambda: f(*(1, 2), 3, *(4,))) == (0, 1, 2, 3, 4, 7, 8)

    def k(n):
        f(*n)

    refused(k, I32, at="*n", says="only a tuple can be unpacked with *, not an int32 scalar")


def test_double_star():  # EX-7
    def f(a, b=2, **kw):
        return a, b, kw["c"]

    def g(**kw):
        return f(1, **kw)

    assert constant(lambda: g(c=3)) == (1, 2, 3)
    refused(cell("def f(a): return a\ndef k(n): f(**n)")["k"], I32, at="n", says="only a dict of keyword arguments")
    refused(
        cell("def f(**kw): return g(a=1, **kw)\ndef g(a): return a\ndef k(): f(a=2)")["k"], says="`a` is given twice"
    )


def test_argument_order():  # CALL-8
    def f(x):
        def note(i):
            ct.scatter(x, i, ct.gather(x, 9) + 1)
            ct.scatter(x, 9, ct.gather(x, 9) + 1)
            return i
        h = lambda *a, **k: 0
        return h(note(0), note(1), z=note(3), *(note(2),))

    out = np.zeros(10, np.int32)
    result(f, out)
    assert out[:4].tolist() == [1, 2, 3, 4]  # Python evaluates * before keywords, wherever it stands


@pytest.mark.parametrize("a,b,c", [(1, 2, 3), (3, 2, 1), (2, 2, 2), (1, 3, 2), (2, 1, 3)])
def test_chained_comparisons(a, b, c):  # EX-10
    def f(a, b, c):
        return (a < b < c) + (a <= b <= c) * 2 + (a < b > c) * 4 + (a == b == c) * 8 + (a != b < c) * 16

    want = (a < b < c) + (a <= b <= c) * 2 + (a < b > c) * 4 + (a == b == c) * 8 + (a != b < c) * 16
    assert result(f, a, b, c) == want
    assert constant(f, a, b, c) == want


def test_chain_evaluates_the_middle_once_and_stops():  # EX-10
    def f(x, n):
        def note(i, v):
            ct.scatter(x, i, ct.gather(x, i) + 1)
            return v
        return note(0, 1) < note(1, n) < note(2, 9)

    for n, counts in ((5, [1, 1, 1]), (0, [1, 1, 0])):
        out = np.zeros(3, np.int32)
        assert result(f, out, n) == (n == 5)
        assert out.tolist() == counts


@pytest.mark.parametrize("n", [0, 1, 5])
def test_and_or_short_circuit_and_give_bool(n):  # EX-13
    def f(x, n):
        def note(i, v):
            ct.scatter(x, i, 1)
            return v
        a = n > 1 and note(0, 3)
        b = n or note(1, n + 7)
        c = n > 100 or n and note(2, 0.5)
        d = a.dtype
        ct.static_assert(d == ct.bool_)
        return a * 1 + b * 2 + c * 4

    out = np.zeros(3, np.int32)
    assert result(f, out, n) == (n > 1) * 1 + 2 + (n != 0) * 4
    assert out.tolist() == [n > 1, n == 0, n != 0]


def test_and_or_of_constants_give_bool():  # EX-13
    assert constant(lambda: (5 and 3, 0 or 7, 0 and 1, "" or 0, (1,) and "a")) == (True, True, False, False, True)
    assert constant(lambda: False and nothing) is False
    assert constant(lambda: "a" or nothing) is True


def test_ternary_evaluates_one_side():  # EX-14
    def f(x, n):
        def note(i):
            ct.scatter(x, i, 1)
            return i + 10
        return note(0) if n > 1 else note(1)

    out = np.zeros(2, np.int32)
    assert result(f, out, 5) == 10 and out.tolist() == [1, 0]
    assert constant(lambda: 1 if True else nothing) == 1


def test_ternary_of_tuples():  # EX-14, JOIN-5
    def f(n):
        a, (b, c) = (1, (2, n)) if n > 1 else (1, (7, 3))
        ct.static_assert(a == 1)
        return b * 10 + c

    assert [int(result(f, n)) for n in (0, 5)] == [73, 25]


def test_is_only_with_none():  # EX-11, CV-6
    def k(x, n):
        a, b, c, d = n is None, None is None, x is not None, n is not None
        ct.static_assert((a, b, c, d) == (False, True, True, True))

    typed(k, A1, I32)
    refused(cell("def k(n): n is n")["k"], I32, at="n is n", says="compare with None only")
    refused(cell("def k(): None == None")["k"], says="unsupported operands for ==: None and None", help="`is`")


def test_membership():  # EX-12
    def f(n):
        return (n in (1, n + 1, 5)) * 1 + (n not in (1, 2)) * 2

    assert [int(result(f, n)) for n in (1, 5, 7)] == [1, 3, 2]
    refused(lambda: ct.full(4, 1, ct.int32) in (1, 2), says="looks for one value", help="join the masks by |")
    refused(lambda: 1 not in (ct.full(4, 1, ct.int32), 1), says="looks for one value")
    refused(lambda: (1, ct.full(4, 1, ct.int32)) in ((1, 2),), says="looks for one value")
    assert constant(lambda: (3 in (1, 2), "a" in ("b", "a"), ct.int8 in (ct.int16,), 1 in ())) == (
        False,
        True,
        False,
        False,
    )
    assert constant(lambda **kw: 0) == 0

    def g(**kw):
        return "a" in kw, "b" not in kw

    assert constant(lambda: g(a=1)) == (True, True)
    refused(cell("def k(n): n in n")["k"], I32, says="looks into tuples and keyword dicts, not into an int32 scalar")
    refused(cell("def k(): 'a' in 'ab'")["k"], says="not into a string 'ab'")


def test_tuple_subscripts():  # CV-1
    assert constant(lambda: ((1, 2, 3)[0], (1, 2, 3)[-1], (1, 2, 3)[1:], (1, 2, 3)[::-1], (1, 2)[5:])) == (
        1, 3, (2, 3), (3, 2, 1), ())
    refused(cell("def k(n): (1, 2)[n]")["k"], I32, says="not by an int32 scalar", help="static_iter")
    refused(cell("def k(): (1, 2)[2]")["k"], says="index 2 is out of range for a tuple of 2 items")
    refused(cell("def k(t=1.0): (1, 2)[t]")["k"], C(1.0), says="not by a constant 1.0")
    refused(cell("def k(): (1, 2)[::0]")["k"], says="step cannot be zero")
    refused(cell("def k(n): (1, 2)[n:]")["k"], I32, says="bounds of a slice must be integer constants")


def test_keyword_dict():  # CV-7
    def f(**kw):
        return kw["a"], kw.get("b"), kw.get("b", 7), kw.get("a", 7), len((*("x",),))

    assert constant(lambda: f(a=1)) == (1, None, 7, 1, 1)
    space = cell("""
        def f(**kw): return kw
        def missing(): f(a=1)['b']
        def dynamic(n): f(a=1)[n]
    """)
    refused(space["missing"], says="no keyword argument 'b' was passed", help="passed: a")
    refused(space["dynamic"], I32, says="a key must be a string constant, not an int32 scalar")


def test_list_parameter():  # ARG-7, EX-6
    def k(arrays, n):
        for i in range(len(arrays)):
            ct.store(arrays[i], 0, ct.load(arrays[0], 0, (4,)) + ct.load(arrays[n], 0, (4,)))

    typed(k, ARRAYS, I32)
    refused(cell("def k(a): a[1.0]")["k"], ARRAYS, says="")


def test_arrays_are_not_subscripted():  # ARR-4
    refused(
        cell("def k(x): x[0]")["k"],
        A2,
        at="x[0]",
        says="a float32 array of rank 2 cannot be subscripted",
        help="ct.load",
    )


def test_star_in_a_subscript():
    def k():
        keys = (None, slice(None, None, None))
        t = ct.zeros((4,), ct.int32)[*keys]
        ct.static_assert(t.shape == (1, 4))

    typed(k)


# ------------------------------------------------------------------ conditions


def test_conditions():  # COND-1
    assert constant(lambda: tuple(bool(v) for v in ct.static_iter(("", "a", (), (0,), None, len, ct.int8, math)))) == (
        False, True, False, True, False, True, True, True)

    def f(a):
        if a:
            return 1
        return 0

    assert [int(result(f, v)) for v in (0, -2, 0.0, -0.0, 0.5, math.nan, True, False)] == [0, 1, 0, 0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    "source,says",
    [
        ("x", "a float32 array of rank 1"),
        ("ct.zeros((1,), ct.int32)", "an int32 tile of shape (1,)"),
        ("range(3)", "a range"),
        ("x.tiled_view(4)", "a tiled view"),
        ("x.get_raw_memory()", "a raw memory"),
        ("ct.Slice(0, 4)", "a ct.Slice"),
    ],
)
def test_what_is_no_condition(source, says):  # COND-1, TILE-6
    for form in (f"if {source}: pass", f"while {source}: pass", f"1 if {source} else 2", f"{source} and True"):
        refused(cell(f"def k(x):\n    {form}")["k"], A1, says=f"{says}".removesuffix("s"))


def test_tile_condition_says_how_to_choose():
    def k(x):
        t = ct.load(x, 0, (4,))
        if t > 0:
            pass

    e = refused(
        k, A1, at="t > 0", says="a bool_ tile of shape (4,) cannot be used as a condition", help="ct.where(mask, x, y)"
    )
    assert "ct.max" in e.help


def test_not():  # COND-3
    assert constant(lambda: (not 3, not 0.0, not True)) == (False, True, False)
    assert "logical_not" in text(cell("def k(x): ct.store(x, 0, not ct.load(x, 0, (4,)))")["k"], AI)
    for source in ("None", "'a'", "()", "ct.MemoryOrder.WEAK", "len"):
        refused(cell(f"def k(): not {source}")["k"], says="unsupported operand for not")


# ------------------------------------------------------------------ f-strings


def test_fstring_of_constants_is_a_string():  # EX-15
    def k(n):
        print(f"{n} of {3}: {n:5d}" + "!", f"{2.5:.1f}")

    assert "emit_text" in text(k, I32)


# ------------------------------------------------------------------ loose constants fold as Python does


def reference(source: str):
    """The value in Python, or the reason why tile code has no such constant."""
    try:
        value = eval(source)  # of the expressions that this test makes
    except (ZeroDivisionError, ValueError, OverflowError):
        return ct.TileValueError
    except TypeError:
        return ct.TileTypeError
    if isinstance(value, complex):
        return ct.TileTypeError
    if isinstance(value, int) and not -2**63 <= value < 2**64:
        return ct.TileValueError
    return value


numbers = st.one_of(
    st.booleans(), st.integers(-20, 20), st.integers(-(2**40), 2**40), st.sampled_from([0.5, -1.5, 2.0, 0.0])
)
operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "**", "<", "<=", "==", "!="])


@settings(max_examples=150, deadline=None)
@given(numbers, operators, numbers)
def test_binary_folding_is_pythons(x, op, y):  # LOOSE-4
    source = f"({x!r}) {op} ({y!r})"
    if op in ("**", "<<") and abs(y) > 64:
        return  # Python itself would not finish
    want = reference(source)
    f = cell(f"def f(): return {source}")["f"]
    if isinstance(want, type):
        with pytest.raises(want):
            constant(f)
    else:
        got = constant(f)
        assert repr(got) == repr(want), source


terms = st.recursive(
    st.integers(-9, 9).map(lambda n: f"({n})"),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%", "&", "|", "^", "<", ">="]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(st.sampled_from(["-", "+"]), inner).map("".join).map(lambda s: f"({s})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"min({t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"({t[0]}, {t[1]})[1]"),
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(terms)
def test_nested_folding_is_pythons(source):  # LOOSE-4, CONST-1
    want = reference(source)
    f = cell(f"def f(): return {source}")["f"]
    if isinstance(want, type):
        with pytest.raises(want):
            constant(f)
    elif "bool" not in repr(type(want)):
        assert repr(constant(f)) == repr(want)


@settings(max_examples=25, deadline=None)
@given(terms)
def test_run_time_arithmetic_agrees_with_folding(source):
    """The same expression with one operand that is known only at run time."""
    source = source.replace("(1)", "(n)")
    if any(op in source for op in ("<", ">=")):
        return  # a comparison is a bool_ at run time and cannot be added to another [PROMO-7]
    f = cell(f"def f(n): return {source}")["f"]
    try:
        want = f(1)
    except ZeroDivisionError:
        return
    if -2**31 <= want < 2**31:
        assert result(f, 1) == want, source


@pytest.mark.parametrize("source,cls", [
    ("1 << (1 << 60)", ct.TileValueError), ("2 ** (1 << 60)", ct.TileValueError), ("3 ** 3 ** 9", ct.TileValueError),
    ("2 ** 64", ct.TileValueError), ("2 ** 70 - 2 ** 70", ct.TileValueError), ("1 / 0", ct.TileValueError),
    ("1 // 0", ct.TileValueError), ("1 % 0", ct.TileValueError), ("1 << -1", ct.TileValueError),
    ("(-8) ** 0.5", ct.TileTypeError), ("1.0 << 1", ct.TileTypeError), ("~True", ct.TileTypeError)])
def test_constants_without_a_value(source, cls):  # LOOSE-2, LOOSE-4, LOOSE-5
    with pytest.raises(cls):
        constant(cell(f"def f(): return {source}")["f"])


def test_loose_integers_take_the_first_dtype_that_fits():  # LOOSE-2
    def f():
        a, b, c = 2**31 - 1, 2**31, 2**63
        return a.dtype, b.dtype, c.dtype, (2**63 + 5).dtype

    assert constant(f) == (ct.int32, ct.int64, ct.uint64, ct.uint64)


def test_floats_keep_double_precision():  # LOOSE-3 under the policy on D-1
    def f():
        x = 0.1
        return x == 0.1, x, x + 0.2

    assert constant(f) == (True, 0.1, 0.1 + 0.2)


def test_strict_constants():  # STRICT-1…4
    def f():
        a = ct.int8(100) + ct.int8(100)
        b = ct.uint8(-3)
        c = ct.int16("5")
        d = ct.float16(1e10)
        e = ct.int32()
        g = (ct.float16(7) / 2).dtype
        return a, b, c, d, e, g

    assert constant(f) == (-56, 253, 5, math.inf, 0, ct.float16)


@pytest.mark.parametrize(
    "source,cls",
    [
        ("ct.int16(1, 2)", ct.TileTypeError),
        ("ct.int16(None)", ct.TileTypeError),
        ("ct.int16('a')", ct.TileTypeError),
        ("ct.int8(100) + 1000", ct.TileValueError),
        ("ct.int8(1) == 200", ct.TileValueError),
        ("ct.int16(x)", ct.TileTypeError),
        ("ct.int16(value=1)", ct.TileTypeError),
        ("ct.float4_e2m1fn(1)", ct.TileTypeError),
    ],
)
def test_refused_strict_constants(source, cls):  # STRICT-1, STRICT-3
    refused(cell(f"def k(x): {source}")["k"], A1, cls=cls)


def test_numpy_scalars_are_strict():  # OBJ-5
    def f():
        a, b = np.float16(3), np.int8(100)
        return (a + 1).dtype, b + b, np.bool_(True)

    assert constant(f) == (ct.float16, -56, True)


def test_kinds_of_parameters():
    def k(x, n, a, b, c):
        ct.store(x, n, a + b + c)

    typed(k, A1, I32, F32, B1, C(2.5))


def test_a_local_variable_hides_the_module_that_a_helper_reads():
    space = cell("""
        import numpy as np
        def helper():
            return np.float32
        def k():
            first = helper()
            np = Pair(3, 4)
            second = np.float32
            np = Pair(5, 6)
            return first == ct.float32, second, np.float32, helper() == ct.float32
    """, Pair=dataclasses.make_dataclass("Pair", ["float32", "n"], frozen=True))
    assert constant(space["k"]) == (True, 3, 5, True)
