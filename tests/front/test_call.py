"""Calls: signatures, recursion, functions as values, what may be called [FN-*, CALL-*]."""

import dataclasses
import enum
import functools
import math
import threading
from types import MethodType

import numpy as np
import pytest

import cutile as ct
from cutile.errors import UnsupportedCallError
from cutile.front import functions
from tests.front.compiling import A1, AI, F32, I32, C, cell, constant, refused, result, text, typed


def test_full_signatures():  # CALL-1
    def f(a, b=2, /, c=3, *rest, d, e=5, **more):
        return a, b, c, rest, d, e, more.get("z")

    assert constant(lambda: f(1, d=4)) == (1, 2, 3, (), 4, 5, None)
    assert constant(lambda: f(1, 9, 8, 7, 6, d=0, e=1, z=2)) == (1, 9, 8, (7, 6), 0, 1, 2)
    assert constant(lambda: f(1, c=0, d=4)) == (1, 2, 0, (), 4, 5, None)


@pytest.mark.parametrize(
    "call,says",
    [
        ("f()", "missing a required"),
        ("f(1, 2, 3)", "too many positional"),
        ("f(1, b=2, c=3)", "unexpected keyword argument 'c'"),
        ("g(1)", "missing a required"),
        ("g(1, 2)", "too many positional"),
        ("h(a=1)", "a"),
        ("f(1, a=2)", "multiple values"),
    ],
)
def test_binding_errors(call, says):  # EX-7, ERR-4
    k = cell(f"""
        def f(a, b=1): pass
        def g(a, *, b): pass
        def h(a, /): pass
        def k(): {call}
    """)["k"]
    e = refused(k, at=call, says=says)
    (text, where), = e.notes
    assert text.startswith("it is defined as ") and where.source_line().strip().startswith(f"def {call[0]}(")


def test_default_values():  # CALL-1
    space = cell("""
        def f(a, b=[1]): return a
        def fine(): f(1, 2)
        def bad(): f(1)
    """)
    typed(space["fine"])
    refused(space["bad"], says="`b` is a list")


def test_defaults_of_nested_functions_are_evaluated_at_the_def():  # CALL-1
    def f(n):
        def g(a=n, *, b=n * 2):
            return a + b
        n = 100
        return g() + g(b=n)

    assert result(f, 3) == 9 + 103


def test_calls_are_specialised():  # CALL-2
    def f(shape, dtype):
        return ct.zeros(shape, dtype).shape

    assert constant(lambda: (f((2, 4), ct.int8), f((8,), ct.float32))) == ((2, 4), (8,))


def test_a_call_is_a_frame():
    def helper(a):
        return a + 1

    def k(x, n):
        ct.scatter(x, 0, helper(n))

    assert "frame helper : i32[]" in text(k, AI, I32)


def test_functions_are_values():  # CALL-6
    def twice(f, x):
        return f(f(x))

    def pick(i):
        return (lambda v: v + 1, lambda v: v * 2, abs, ct.negative)[i]

    assert constant(lambda: (twice(pick(0), 3), twice(pick(1), 3), pick(2)(-3), pick(3)(3))) == (5, 12, 3, -3)


def test_returned_closures_carry_their_variables():  # CALL-5
    def make(v):
        w = v * 2
        if w > 10:
            w = w + 1

        def h(m):
            return w + v if m == 0 else h(m - 1)
        return h, lambda z=w: z + w

    def f(n):
        h, g = make(n)
        return h(2) * 1000 + g() * 10 + g(1)

    def reference(n):
        w = n * 2 + (n * 2 > 10)
        return (w + n) * 1000 + 2 * w * 10 + 1 + w

    assert [int(result(f, n)) for n in (2, 7)] == [reference(2), reference(7)]


def test_closures_of_closures():  # CALL-5
    def outer(a):
        b = a + 1

        def middle(c):
            d = c * 2

            def inner(e):
                return a + b * 10 + c * 100 + d * 1000 + e * 10000
            return inner
        return middle

    def f(n):
        return outer(n)(2)(n)

    assert result(f, 1) == 1 + 20 + 200 + 4000 + 10000


def test_closures_that_know_each_other():  # CALL-5
    def make(n):
        start = n * 2

        def even(k):
            return start if k == 0 else odd(k - 1)

        def odd(k):
            return -start if k == 0 else even(k - 1)
        return even, (odd,)

    def f(n):
        even, (odd,) = make(n)
        return even(4) * 100 + odd(4)

    assert result(f, 3) == 600 - 6


# ------------------------------------------------------------------ recursion


def countdown(n):
    if n == 0:
        return 0
    return 1 + countdown(n - 1)


def test_recursion_ends_at_compile_time():  # CALL-4
    assert constant(countdown, 50) == 50


def test_recursion_to_the_limit_also_in_a_thread():  # CALL-4
    seen = []
    out = np.zeros(1, np.int32)

    @ct.kernel
    def k(out):
        ct.scatter(out, 0, countdown(998))

    def run():
        ct.launch(None, (1,), k, (out,))
        seen.append(out[0])

    t = threading.Thread(target=run)
    t.start()
    t.join()
    assert seen == [998]


def test_recursion_over_the_limit():  # CALL-4, ERR-6
    def k(n):
        countdown(n)

    e = refused(k, I32, cls=ct.TileRecursionError, at="countdown(n - 1)", says="calls are nested more than 1000 deep",
                help="recursion must end at compile time")
    assert len(e.loc.frames()) == 1001
    shown = str(e)
    assert "… and 997 more times the same call" in shown
    assert shown.count("countdown(n - 1)") == 3


def without_its_end(n):
    if [n] > 2:
        return n
    return without_its_end(n - 1) + without_its_end(n - 2)


def test_recursion_whose_end_is_lost_by_an_error_is_no_other_error():  # CALL-4, ERR-6
    assert len(refused(lambda n: without_its_end(n), C(9), cls=ct.TileSyntaxError, says="a list").errors) == 1


# ------------------------------------------------------------------ what may be called


@ct.function
def tile_only(a):
    return a + 1


@ct.function(host=True)
def both(a):
    return a * 2


@ct.function(tile=False)
def host_only(a):
    return a


def test_declared_functions():  # FN-1
    assert constant(lambda: (tile_only(1), both(4))) == (2, 8)
    assert both(4) == 8
    with pytest.raises(RuntimeError, match="tile_only"):
        tile_only(1)

    def k():
        host_only(1)

    refused(k, cls=UnsupportedCallError, at="host_only(1)", says="declared host only")


@ct.kernel
def some_kernel(x):
    pass


def test_kernel_inside_a_kernel():  # FN-4
    def k(x):
        some_kernel(x)

    refused(k, A1, at="some_kernel", says="`some_kernel` is a kernel", help="plain function")


@pytest.mark.parametrize(
    "call,help",
    [
        ("enumerate((1, 2))", "static_iter(enumerate"),
        ("zip((1,), (2,))", "static_iter(zip"),
        ("sum((1, 2))", "ct.sum"),
        ("isinstance(n, int)", "static_eval"),
        ("sorted((1, 2))", ""),
        ("round(n)", "ct.lib.rint"),
        ("math.sin(1.0)", "ct.sin"),
        ("np.exp(n)", "ct.exp"),
        ("np.zeros(3)", "ct.zeros"),
        ("np.linalg.slogdet(n)", "host"),
        ("np.average(n)", "ct.lib.mean"),  # Python functions that are not compiled
        ("ct.launch(None, (1,), n, ())", "host"),
        ("operator.iadd(n, 1)", ""),
        ("Plain()", "frozen dataclass"),
        ("partial(1)", "lambda"),
        ("cached(1)", ""),
        ("list((1,))", "tuple"),
        ("dict(a=1)", ""),
    ],
)
def test_what_cannot_be_called(call, help):  # FN-6, ERR-3
    import operator

    class Plain:
        pass

    space = {"math": math, "operator": operator, "Plain": Plain, "partial": functools.partial(max, 1),
             "cached": functools.lru_cache(lambda a: a)}
    refused(cell(f"def k(n): {call}", **space)["k"], F32, cls=UnsupportedCallError, at=call, help=help)


@pytest.mark.parametrize(
    "call,says",
    [
        ("n()", "an int32 scalar cannot be called"),
        ("(1, 2)()", "a tuple"),
        ("f()", "a string 'a'"),
        ("None()", "None cannot be called"),
        ("x()", "a float32 array"),
    ],
)
def test_what_is_no_function(call, says):  # ERR-4
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        k = cell(f"f = 'a'\ndef k(x, n): {call}")["k"]
    refused(k, A1, I32, at=call, says=says)


def test_op_signatures_are_enforced():  # CALL-8, FN-6
    for call in ("ct.bid()", "ct.bid(0, 1)", "ct.load(array=x, index=0, shape=4)", "ct.load(x, 0, 4, wrong=1)",
                 "ct.load(x, 0)", "ct.load(x, 0, 4, 'C')", "n.astype()", "n.reshape((1,), (1,))"):
        e = refused(cell(f"def k(x, n): {call}")["k"], A1, I32, at=call)
        assert "its signature is " in e.help


def test_ops_as_values_and_methods_by_class():  # FN-6, METH-1
    def k(x):
        load = ct.load
        t = load(x, 0, (4,))
        u = ct.Tile.reshape(t, (2, 2))
        v = t.reshape(shape=(2, 2))
        ct.static_assert(u.shape == v.shape == (2, 2))

    typed(k, A1)


# ------------------------------------------------------------------ methods and dataclasses


@dataclasses.dataclass(frozen=True)
class Scale:
    k: int
    rest: tuple = ()
    FACTOR = 10

    def __post_init__(self):
        if len(self.rest) > 3:
            raise ct.static_exception(ValueError("too long"))

    def apply(self, x, *, plus=0):
        return x * self.k + plus

    @property
    def double(self):
        return Scale(self.k * 2, self.rest)

    @classmethod
    def make(cls, k):
        return cls(k)

    @staticmethod
    def add(a, b):
        return a + b

    def __call__(self, x):
        return self.apply(x)

    def __len__(self):
        return 7

    def __getitem__(self, i):
        return self.k + i

    def __setitem__(self, i, v):
        ct.assert_(v > i)


CAPTURED = Scale(3)


def test_dataclass_members():  # DC-2, DC-3, FN-5
    def f(n):
        s = Scale.make(n)
        s[0] = 1
        total = s.apply(2, plus=1) + s.double.k * 10 + Scale.FACTOR + s.FACTOR + Scale.add(1, 2) + s.add(1, 2)
        return total + s(4) + len(s) + s[5] + CAPTURED.apply(1) + s.make(1).k

    assert result(f, 6) == 13 + 120 + 20 + 6 + 24 + 7 + 11 + 3 + 1


def test_bound_methods_as_values():  # FN-5
    apply = CAPTURED.apply

    def f(n):
        g = Scale(n).apply
        return g(2) + apply(n)

    assert result(f, 4) == 8 + 12


def test_calling_an_instance_without_call():  # DC-3
    @dataclasses.dataclass(frozen=True)
    class Plain:
        a: int

    refused(cell("def k(): T(1)(2)", T=Plain)["k"], at="T(1)(2)", says="a Plain instance cannot be called")


def test_replace():  # DC-4
    def f(n):
        s = dataclasses.replace(Scale(n, (1,)), k=n + 1)
        ct.static_assert(s.rest == (1,))
        return s.k

    assert result(f, 4) == 5
    refused(
        cell("def k(): dataclasses.replace(S(1), z=2)", dataclasses=dataclasses, S=Scale)["k"], says="has no field `z`"
    )
    refused(
        cell("def k(): dataclasses.replace(1, z=2)", dataclasses=dataclasses)["k"],
        says="needs a frozen dataclass instance",
    )
    for name in ("asdict", "astuple", "fields"):
        refused(
            cell(f"def k(): dataclasses.{name}(S(1))", dataclasses=dataclasses, S=Scale)["k"], cls=UnsupportedCallError
        )


def test_instantiation_errors():  # DC-1
    @dataclasses.dataclass
    class Melted:
        a: int

    @dataclasses.dataclass(frozen=True)
    class Custom:
        a: int

        def __init__(self, z):
            pass

    @dataclasses.dataclass(frozen=True)
    class Factory:
        a: tuple = dataclasses.field(default_factory=tuple)

    @dataclasses.dataclass(frozen=True)
    class NoInit:
        a: int = dataclasses.field(default=1, init=False)

    class Sub(Scale):
        pass

    @dataclasses.dataclass(frozen=True, init=False)
    class Without:
        a: int = 0

    @dataclasses.dataclass(frozen=True)
    class Base:
        a: int = 0

    @dataclasses.dataclass(frozen=True, init=False)
    class Inherited(Base):
        b: int = 1

    for cls, says in ((Melted, "is not frozen"), (Custom, "must keep the __init__"), (Factory, "default_factory"),
                      (NoInit, "init=False"), (Sub, "must keep"), (Without, "must keep"), (Inherited, "must keep")):
        refused(cell("def k(): T(1)", T=cls)["k"], at="T(1)", says=says)
    refused(cell("def k(): T()", T=Scale)["k"], says="Scale(): missing a required argument: 'k'")
    refused(cell("def k(): T(1, 2, 3)", T=Scale)["k"], says="too many positional")


def test_captured_melted_dataclass():  # OBJ-5
    @dataclasses.dataclass
    class Melted:
        a: int

    refused(cell("def k(): m.a", m=Melted(1))["k"], at="m", says="`m` is a", help="frozen=True")


def test_kernels_of_closures_and_methods():
    class Maker:
        def __init__(self, n):
            self.n = n

        def kernel(self):
            n = self.n

            @ct.kernel
            def k(out):
                ct.scatter(out, 0, n)
            return k

    out = np.zeros(1, np.int32)
    for n in (3, 4):
        ct.launch(None, (1,), Maker(n).kernel(), (out,))
        assert out[0] == n


def test_methods_of_plain_objects_are_refused():
    class Plain:
        def f(self):
            return 1

    refused(cell("def k(): p.f()", p=Plain())["k"], at="p")
    assert isinstance(Plain().f, MethodType)
    refused(cell("def k(): f()", f=Plain().f)["k"], says="`self` is a")


class Kind(enum.Enum):
    A = 1


def test_enum_argument_of_a_helper():  # CALL-2
    def f(kind, n):
        return n if kind == Kind.A else nothing

    assert result(lambda n: f(Kind.A, n), 4) == 4


def test_annotations_of_helpers_mean_nothing():  # ANN-7
    def f(n: ct.Constant[int], m: "nonsense" = 1) -> "more nonsense":
        return n + m

    assert result(f, 4) == 5


@pytest.mark.parametrize("call", ["f(T, 2)", "f(b=2, a=T)", "g(a=T)", "(lambda a: 1)(T)", "P(1).m(T)"])
def test_an_unused_parameter_may_have_two_types(call):  # JOIN-2
    k = cell(f"""
        def f(a, b=0): return b
        def g(*, a): return f(1)
        @dataclasses.dataclass(frozen=True)
        class P:
            x: int
            def m(self, a): return self.x
        def k(n):
            y = {call.replace("T", "1 if n > 0 else 1.5")}
    """, dataclasses=dataclasses)["k"]
    typed(k, I32)


@pytest.mark.parametrize(
    "call", ["f(T)", "g(T)", "h(T)", "k1(a=T)", "ct.exp(T)", "int(T)", "f(*(T, 1))", "P(T)", "P(1).m(T)"])
def test_a_used_parameter_has_one_type(call):  # JOIN-2
    k = cell(f"""
        def f(a, b=0): return a
        def g(a): return f(1, a + 1)
        def h(*a): return 1
        def k1(**more): return 1
        @dataclasses.dataclass(frozen=True)
        class P:
            x: int
            def m(self, a): return -a
        def k(n):
            y = {call.replace("T", "(1 if n > 0 else 1.5)")}
    """, dataclasses=dataclasses)["k"]
    refused(k, I32, says="int32 scalar vs. float32 scalar")


def test_the_limit_of_nested_calls_is_exact(monkeypatch):  # CALL-4
    monkeypatch.setattr(functions, "CALL_LIMIT", 5)

    def down(n):
        return n if n == 1 else down(n - 1)

    def k(N):
        down(N)

    typed(k, C(5))
    refused(k, C(6), cls=ct.TileRecursionError, says="more than 5 deep")
