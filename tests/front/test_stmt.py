"""Assignment, branches, returns [ST-*, JOIN-*, COND-2, CALL-3]."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cutile as ct
from cutile.ir.nodes import Bind, If
from cutile.settings import override
from tests.front.compiling import A1, AI, F32, I32, cell, constant, refused, result, text, typed
from tests.front.random_functions import RandomFunctions

# ------------------------------------------------------------------ assignment


def test_assignment():  # ST-2
    def f():
        (a, b), c = (1, 2), 3
        [d, e] = a, b
        g = h = c
        i: int = 7
        j: int
        return a, b, c, d, e, g, h, i

    assert constant(f) == (1, 2, 3, 1, 2, 3, 3, 7)


@pytest.mark.parametrize("op,value", [("+", 9), ("-", 5), ("*", 14), ("//", 3), ("%", 1), ("**", 49), ("<<", 28),
                                      (">>", 1), ("|", 7), ("&", 2), ("^", 5), ("/", 3.5)])
def test_augmented_assignment(op, value):  # ST-4
    assert constant(cell(f"def f():\n    a = 7\n    a {op}= 2\n    return a")["f"]) == value


def test_augmented_assignment_of_an_undefined_name():  # ST-4
    def k():
        z += 1

    refused(k, cls=ct.TileSyntaxError, at="z", says="Undefined variable `z`")


def test_unpack_count():  # ERR-5
    def few():
        a, b = (1,)

    def many():
        a, b = 1, 2, 3

    refused(few, cls=ct.TileValueError, says="not enough values to unpack: expected 2, got 1")
    refused(many, cls=ct.TileValueError, says="too many values to unpack: expected 2, got 3")


def test_unpack_what_is_no_tuple():
    def k(n):
        a, b = n

    refused(k, I32, says="cannot unpack an int32 scalar")


@pytest.mark.parametrize(
    "target,says", [("x", "array of rank 1"), ("n", "int32 scalar"), ("t", "tuple"), ("d", "dict")]
)
def test_item_assignment(target, says):  # ST-6, OBJ-2
    k = cell(f"""
        def make(**d): return d
        def k(x, n):
            t, d = (1, 2), make(a=1)
            {target}[0] = 1
    """)["k"]
    refused(k, A1, I32, at=f"{target}[0]", says=says, help="ct.store" if target == "x" else "immutable")


def test_expression_statements():
    def k(x):
        """Docstring."""
        "another string"
        ...
        1
        ct.store(x, 0, 0.0)

    assert "store" in text(k, A1)


def test_bytes_and_complex_have_no_meaning():  # EX-1
    for literal in ("b'x'", "1j"):
        refused(cell(f"def k():\n    a = {literal}")["k"], at=literal, says="tile code has no")
        refused(cell(f"def k():\n    {literal}")["k"], at=literal)


# ------------------------------------------------------------------ branches


def test_constant_condition_compiles_one_side():  # COND-2
    def f(flag):
        if flag:
            return 1
        else:
            return nothing

    assert constant(f, True) == 1


def test_equal_constants_stay_constant():  # JOIN-1
    def k(n):
        if n > 1:
            y = 4
        else:
            y = 4
        ct.static_assert(y == 4)
        ct.zeros((y,), ct.float32)

    assert "if" in text(k, I32)


def test_different_constants_of_one_dtype_become_a_value():  # JOIN-1
    def f(n):
        y = 1 if n > 1 else 2
        if n > 5:
            z = 10
        else:
            z = 20
        return y + z

    assert [int(result(f, n)) for n in (0, 3, 9)] == [22, 21, 11]


def test_different_constants_are_no_longer_loose():  # JOIN-1, PROMO-5
    def k(n):
        y = z = 1
        if n > 1:
            y, z = 1, 2
        same, other = (ct.int8(1) + y).dtype, (ct.int8(1) + z).dtype
        ct.static_assert(same == ct.int8 and other == ct.int32)

    typed(k, I32)


CONFLICTS = [
    ("1", "2.0"),
    ("1", "1 << 40"),
    ("1", "None"),
    ("'a'", "'b'"),
    ("ct.int8", "ct.int16"),
    ("len", "abs"),
    ("(1, 2)", "(1, 2, 3)"),
    ("(1, 2)", "(1, 2.0)"),
    ("ct.zeros((2,), ct.int32)", "ct.zeros((4,), ct.int32)"),
    ("x", "x.slice(0, 0, 4)"),
    ("x.tiled_view(4)", "x.tiled_view(2)"),
    ("ct.MemoryOrder.WEAK", "ct.MemoryOrder.ACQUIRE"),
    ("(lambda: 1)", "(lambda: 2)"),
    ("ct.int32(1)", "ct.int64(1)"),
    ("range(n)", "range(ct.int64(n))"),
]


@pytest.mark.parametrize("one,two", CONFLICTS)
def test_two_types(one, two):  # JOIN-2, JOIN-5
    source = """
        def k(x, n):
            if n > 1:
                y = ONE
            else:
                y = TWO
            USE
    """.replace("ONE", one).replace("TWO", two)
    typed(cell(source.replace("USE", "z = 1"))["k"], A1, I32)  # unused: no error
    e = refused(cell(source.replace("USE", "z = y"))["k"], A1, I32, at="y", says="Type of `y` depends on path taken: ")
    assert [span.line for _, span in e.notes] == [3, 5]  # the error shows both assignments


def test_assignment_ends_a_conflict():  # JOIN-2
    def k(n):
        y = 1
        if n > 1:
            y = 2.0
        y = 3
        return ct.static_assert(y == 3)

    typed(k, I32)


def test_defined_on_one_path():  # JOIN-3
    def k(n):
        if n > 1:
            y = 1
        ct.assert_(y > 0)
        ct.assert_(y > 1)

    refused(
        k, I32, at="y", says="Use of potentially undefined variable `y`", help="assign `y` before the branch or loop"
    )


def test_a_path_that_leaves_does_not_join():  # JOIN-4
    def f(n):
        if n > 1:
            y = 1
        else:
            return -1
        if n == 7:
            y = 2.5
            return 77
        return y

    assert [int(result(f, n)) for n in (0, 3, 7)] == [-1, 1, 77]


def test_raise_does_not_join():  # JOIN-4, ST-8: typing the statement stops compilation
    def k(n):
        if n > 1:
            raise ct.static_exception(ValueError("not here"))

    refused(k, I32, cls=ct.StaticException, says="ValueError: not here")


def test_tuples_join_element_by_element():  # JOIN-5
    def f(n):
        t = (1, (2, 30))
        if n > 1:
            t = (4, (2, 50))
        a, (b, c) = t
        ct.static_assert(b == 2)
        return a + c

    assert [int(result(f, n)) for n in (0, 3)] == [31, 54]


def test_arrays_views_and_ranges_join():  # JOIN-6
    def f(x, n):
        r, v, a = range(n), x.tiled_view(2), x
        if n > 2:
            r, v, a = range(1, n), x.slice(0, 2, 6).tiled_view(2), x.slice(0, 1, n)
        if n > 2:
            a = x.slice(0, 2, n)
        total = 0
        for i in r:
            total += i
        return total

    assert [int(result(f, np.arange(8, dtype=np.int32), n)) for n in (2, 4)] == [1, 6]


def test_closures_of_one_definition_join():  # JOIN-6, CALL-6
    def make(v):
        w = v * 2
        return lambda: w + 1

    def f(n):
        g = make(n)
        if n > 1:
            g = make(n + 10)
        return g()

    assert [int(result(f, n)) for n in (0, 3)] == [1, 27]


def test_poison_in_a_branch_is_silent_afterwards():
    def k(n):
        if n > 1:
            t = (nothing, 1)
        else:
            t = (1, 1)
        a, b = t
        return a + b

    refused(k, I32, cls=ct.TileSyntaxError, at="nothing")


def test_conflicts_name_variables_in_the_order_of_the_source():
    def k(n):
        y = 1
        if n > 2:
            y = 2.0
        ct.assert_(y > 0)

    e = refused(k, I32)
    assert e.message == "Type of `y` depends on path taken: int32 scalar vs. float32 scalar"
    assert [t for t, _ in e.notes] == ["here `y` is an int32 scalar", "here `y` is a float32 scalar"]


# ------------------------------------------------------------------ return


def test_return_types_must_match():  # CALL-3
    def f(n):
        if n > 1:
            return 1
        return 2.0

    def g(n):
        for i in range(n):
            if i == 3:
                return i

    e = refused(
        lambda n: f(n) and None, I32, says="Type of return value depends on path taken: int32 scalar vs. float32 scalar"
    )
    assert len(e.notes) == 2
    refused(lambda n: g(n) and None, I32, says="int32 scalar")


def test_unreachable_returns_do_not_count():  # CALL-3
    def f(flag):
        if flag:
            return 1
        return 2.0

    assert constant(f, True) == 1
    assert constant(f, False) == 2.0


def test_falling_off_gives_none():  # CALL-3
    def f():
        pass

    assert constant(lambda: f()) is None


def test_early_return_in_nested_loops():  # ST-15
    def f(n):
        for i in range(10):
            j = 0
            while True:
                j += 1
                if i * j > n:
                    return i * 100 + j
                if j > 3:
                    break
        return -1

    def reference(n):
        return next((i * 100 + j for i in range(10) for j in (1, 2, 3, 4) if i * j > n), -1)

    assert [int(result(f, n)) for n in (0, 5, 17, 99)] == [reference(n) for n in (0, 5, 17, 99)]


@pytest.mark.parametrize("body", ["return 1", "if n > 1:\n        return n", "return ()"])
def test_kernel_returns_nothing(body):  # KERN-7
    refused(cell(f"def k(n):\n    {body}")["k"], I32, says="a kernel cannot return a value", help="ct.store")


def test_kernel_may_return_none():  # KERN-7
    def k(n):
        if n > 1:
            return None
        return

    typed(k, I32)


def test_ternary_of_two_types_is_refused_only_where_it_is_used():  # EX-14
    def unused(n):
        a = 1 if n > 1 else None
        None if n > 1 else ct.assert_(n > 0)

    def used(n):
        a = 1 if n > 1 else None
        b = a

    def at_once(n):
        ct.assert_((1 if n > 1 else 2.0) > 1)

    assert "assert" in text(unused, I32)  # the effects of both sides are kept
    refused(used, I32, at="a", says="int32 scalar vs. None")
    refused(at_once, I32, at="1 if n > 1 else 2.0", says="int32 scalar vs. float32 scalar")


def test_kernel_of_a_float():
    def k(x, a):
        ct.store(x, 0, a * 2)

    assert "mul" in text(k, A1, F32)


# ------------------------------------------------------------------ random programs mean what they mean in Python

BLOCKS = 16
INPUTS = [np.random.default_rng(i).integers(-5, 12, BLOCKS).astype(np.int32) for i in range(3)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_random_control_flow_agrees_with_python(seed):
    source = RandomFunctions(random.Random(seed)).source()
    space = cell(source + """
def k(x, y, z, out):
    i = ct.bid(0)
    ct.scatter(out, i, f(ct.gather(x, i), ct.gather(y, i), ct.gather(z, i)))
""")
    out = np.zeros(BLOCKS, np.int32)
    with override(CHECK=True):
        ct.launch(None, (BLOCKS,), ct.kernel(space["k"]), (*INPUTS, out))
    assert out.tolist() == [space["f"](*map(int, row)) for row in zip(*INPUTS, strict=True)], source


def test_value_of_kernel_parameter_kinds():
    def k(x, n, a):
        ct.scatter(x, n, a)

    assert "scatter" in text(k, AI, I32, I32)


def test_debuggers_are_told_what_joined_variables_are():
    """Those that no branch changes are not told again."""
    def k(n):
        same = one = n + 1
        if n > 0:
            one = n
            two = n
        else:
            two = one

    kernel = typed(k, I32)
    after = next(i for i, n in enumerate(kernel.body.nodes) if isinstance(n, If))
    assert [n.name for n in kernel.body.nodes[after:] if isinstance(n, Bind)] == ["one", "two"]
