"""What names denote [EX-4, CALL-5…7, CONST-1], and that launches see changes."""

import math
import types

import numpy as np
import pytest

import cutile as ct
from tests.front.compiling import AI, I32, cell, constant, refused, result, typed

ANSWER = 42
SHADOWED = 1


def test_local_before_closure_before_global_before_builtin():  # EX-4
    SHADOWED = 2

    def closure():
        return SHADOWED

    def local():
        SHADOWED = 3
        return SHADOWED

    assert constant(lambda: ANSWER) == 42
    assert constant(closure) == 2
    assert constant(local) == 3
    assert constant(lambda: abs(-1)) == 1
    assert constant(cell("abs = 5\ndef f(): return abs")["f"]) == 5


def test_undefined_name():  # EX-4, ERR-2
    def k(x):
        return ANSWRE

    e = refused(k, I32, cls=ct.TileSyntaxError, at="ANSWRE", says="Undefined variable `ANSWRE` used")
    assert e.help == "did you mean `ANSWER`?"


def test_undefined_name_is_reported_once():
    def k(x):
        ct.scatter(x, nothing, nothing)
        ct.scatter(x, 0, nothing)

    assert "did you mean" not in (refused(k, AI, cls=ct.TileSyntaxError, at="nothing").help or "")


def test_undefined_name_only_if_reached():  # EX-4, COND-2
    def k(x):
        if False:
            nothing
        y = 1 if True else nothing
        return
        nothing

    typed(k, AI)


def test_local_assigned_later():  # EX-4, LOOP-8
    def k(x):
        y = z
        z = 1
        return y + z

    refused(k, AI, cls=ct.TileSyntaxError, at="z", says="assigned only later")


def test_annotation_alone_defines_nothing():
    def k(x):
        z: int
        return z

    refused(k, AI, cls=ct.TileSyntaxError, at="z")


def test_unset_cell():
    def outer():
        def inner():
            return late
        if not ANSWER:
            late = 1
        return inner

    refused(outer(), cls=ct.TileSyntaxError, at="late")


def test_module_constants():  # FN-7
    assert constant(lambda: math.inf) == math.inf
    assert constant(lambda: np.pi) == math.pi
    assert constant(lambda: np.newaxis) is None

    def k():
        math.pii

    refused(k, at="math.pii", says="module `math` has no attribute `pii`", help="did you mean `pi`?")


# ------------------------------------------------------------------ closures


def test_late_binding():  # CALL-5
    def f():
        y = 1
        g = lambda: y
        y = 2
        return g()

    assert constant(f) == 2


def test_loop_of_lambdas_sees_the_last_value():  # CALL-5
    def f():
        fs = ()
        for i in ct.static_iter(range(3)):
            fs = (*fs, lambda: i)
        return fs[0](), fs[1](), fs[2]()

    assert constant(f) == (2, 2, 2)


def test_default_is_early_binding():  # CALL-1
    def f():
        fs = ()
        for i in ct.static_iter(range(3)):
            fs = (*fs, lambda i=i: i)
        return fs[0](), fs[1](), fs[2]()

    assert constant(f) == (0, 1, 2)


def test_closure_sees_changes_in_a_loop():  # CALL-5
    def f(n):
        y = 0
        g = lambda: y + 1
        for _ in range(n):
            y = g()
        return g()

    assert result(f, 4) == 5


def test_inner_function_cannot_rebind():  # CALL-7
    def f():
        y = 1

        def g():
            y = 2
            return y
        return g(), y

    assert constant(f) == (2, 1)


def test_functions_call_later_ones():  # CALL-5
    def f(n):
        def even(k):
            return True if k == 0 else odd(k - 1)

        def odd(k):
            return False if k == 0 else even(k - 1)
        return even(n)

    assert constant(f, 6) is True
    assert constant(f, 7) is False


# ------------------------------------------------------------------ changes that a launch sees [CONST-4, policy]


def launches(k, out, *args):
    ct.launch(None, (1,), k, (out, *args))
    return out[0]


def test_changed_global():
    space = cell("""
        N = 1
        def helper(): return N
        @ct.kernel
        def k(out): ct.scatter(out, 0, helper() + N)
    """)
    out = np.zeros(1, np.int32)
    assert launches(space["k"], out) == 2
    space["N"] = 5
    assert launches(space["k"], out) == 10
    space["N"] = True  # equal to 1, of another type: the sum of two bools is an int
    assert launches(space["k"], out) == 2


def test_equal_constants_of_different_types():  # SPEC-1
    space = cell("""
        N = 1
        @ct.kernel
        def k(out): ct.scatter(out, 0, (3 / 2) * N if ct.static_eval(type(N) is float) else 7)
    """)
    out = np.zeros(1, np.float32)
    assert launches(space["k"], out) == 7
    space["N"] = 1.0
    assert launches(space["k"], out) == 1.5


@pytest.mark.parametrize("number", [0.0, math.nan])
def test_contents_that_differ_in_sign_only(number):
    space = cell("""
        @ct.kernel
        def k(out): ct.store(out, 0, ct.static_eval(held[0]))
    """, held=[number])
    out = np.zeros(1)
    assert not np.signbit(launches(space["k"], out))
    space["held"][0] = -number
    assert np.signbit(launches(space["k"], out))


def test_changed_closure_variable():
    n = 1

    @ct.kernel
    def k(out):
        ct.scatter(out, 0, n)

    out = np.zeros(1, np.int32)
    assert launches(k, out) == 1
    n = 2
    assert launches(k, out) == 2


def test_redefined_helper():
    space = cell("""
        def helper(): return 1
        @ct.kernel
        def k(out): ct.scatter(out, 0, helper())
    """)
    out = np.zeros(1, np.int32)
    assert launches(space["k"], out) == 1
    space["helper"] = cell("def helper(): return 2")["helper"]
    assert launches(space["k"], out) == 2


def test_changed_code_and_defaults_of_a_helper():
    space = cell("""
        def helper(a=1): return a
        def other(a=1): return a + 10
        @ct.kernel
        def k(out): ct.scatter(out, 0, helper())
    """)
    out = np.zeros(1, np.int32)
    assert launches(space["k"], out) == 1
    space["helper"].__defaults__ = (3,)
    assert launches(space["k"], out) == 3
    space["helper"].__code__ = space["other"].__code__
    assert launches(space["k"], out) == 13


def test_changed_module_attribute():
    config = types.ModuleType("config")
    config.N = 1
    space = cell("""
        @ct.kernel
        def k(out): ct.scatter(out, 0, config.N + ct.static_eval(config.N * 10))
    """, config=config)
    out = np.zeros(1, np.int32)
    assert launches(space["k"], out) == 11
    config.N = 2
    assert launches(space["k"], out) == 22


def test_changed_class_attribute():
    space = cell("""
        import dataclasses
        @dataclasses.dataclass(frozen=True)
        class P:
            x: int
            K = 3
            def get(self): return self.x + self.K
        @ct.kernel
        def k(out): ct.scatter(out, 0, P(1).get())
    """)
    out = np.zeros(1, np.int32)
    assert launches(space["k"], out) == 4
    space["P"].K = 5
    assert launches(space["k"], out) == 6
