"""What names denote [EX-4, CALL-5…7, CONST-1], and that a launch sees what has changed."""

import math
import types

import numpy as np
import pytest

import cutile as ct
from cutile.front.reads import Reads
from cutile.front.scope import MISSING
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


# ------------------------------------------------------------------ what a launch sees of changes [CONST-4, policy]


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


def test_changed_contents_of_what_static_code_reads():
    space = cell("""
        table, config = [1, 2], {"a": [3]}
        def total(): return sum(table)
        @ct.kernel
        def k(out): ct.scatter(out, 0, ct.static_eval(total() + config["a"][0]))
    """)
    out = np.zeros(1, np.int32)
    assert launches(space["k"], out) == 6
    space["table"].append(10)
    assert launches(space["k"], out) == 16
    space["config"]["a"][0] = 4
    assert launches(space["k"], out) == 17


def test_unchanged_surroundings_are_fresh():
    from cutile.front.program import compile_kernel

    space = cell("""
        import dataclasses, enum, math
        class E(enum.Enum):
            X = 1
        @dataclasses.dataclass(frozen=True)
        class P:
            x: int
            @classmethod
            def make(cls): return cls(1)
            @staticmethod
            def two(): return 2
            @property
            def three(self): return 3
        table = [1, (2, {"a": 3})]
        def k():
            a = P.make().three + P.two() + E.X.value + ct.static_eval(table[1][0]) + len((1,))
            b = math.pi + np.float32(1) if ct.bid(0) > 0 else 0.0
            with_len = tuple(i for i in ct.static_iter(table))if False else ()
    """)
    program = compile_kernel(space["k"], ())
    assert program.reads.fresh()
    assert len(program.reads) > 8


def test_reads_of_things_that_vanish():
    reads, space = Reads(), {"x": 1}
    reads.add(space, "x", 1)
    assert reads.fresh()
    del space["x"]
    assert not reads.fresh()


@pytest.mark.parametrize("then, now", [(None, MISSING), (MISSING, None), (None, 1), (MISSING, 1), (1, None)])
def test_reads_of_nothing_and_of_none_differ(then, now):
    def put(obj):
        space.pop("x", None)
        space.update({} if obj is MISSING else {"x": obj})

    reads, space = Reads(), {"y": 2}
    put(then)
    reads.add(space, "x", then)
    reads.add(space, "y", 2)
    assert reads.fresh()
    put(now)
    assert not reads.fresh()
    put(then)
    assert reads.fresh()
    reads.add(space, "z", 3)
    assert not reads.fresh()


def test_what_reads_must_find():
    """`seen` lists what `fresh` compares where that is simple, and is `fresh` where it is not."""
    fn, module, n = (lambda: n), types.ModuleType("m"), 5
    module.x = 1
    reads, space = Reads(), {"x": 1}
    reads.add(space, "x", 1)
    reads.add(module, "x", 1)
    reads.add(fn, "__code__", fn.__code__)
    reads.add(fn.__closure__[0], None, n)
    assert reads.seen() == (space, "x", 1, vars(module), "x", 1, fn, "__code__", fn.__code__,
                            fn.__closure__[0], "cell_contents", n)
    for container, key, obj in ((types.SimpleNamespace(x=1), "x", 1), (int, "real", int.real)):
        more = Reads()
        more.add(container, key, obj)
        assert more.seen() == more.fresh
    reads.inside([1])
    assert reads.seen() == reads.fresh and reads.fresh()
    module.x = 2
    assert not reads.fresh()


def test_deep_objects_are_not_followed_without_end():
    ring: list = [1]
    ring.append(ring)
    assert constant(lambda: ct.static_eval(ring[1][1][0])) == 1
