"""Ops whose rule does not run again: the program is the one that running it for each application gives."""

import enum

import pytest

import cutile as ct
from cutile.front import repeated_ops
from cutile.front.program import type_kernel
from cutile.ir.check import check
from cutile.ir.nodes import Op
from cutile.ir.text import to_text
from cutile.ir.walk import walk
from tests.front.compiling import A1, A2, F32, I32, C, refused


@pytest.fixture
def copies(monkeypatch):
    """Counts the applications that were copied."""
    found = []
    real = repeated_ops._copy
    monkeypatch.setattr(repeated_ops, "_copy", lambda *of: found.append(of) or real(*of))
    return found


def described(kernel):
    """All that a program says, with spans."""
    return to_text(kernel), [(type(n).__name__, n.span, getattr(n, "layout", None)) for n in walk(kernel.body)]


def same(fn, *kinds):
    """Check that copying gives the program that running every rule gives. Returns the program."""
    kernel = type_kernel(fn, kinds).kernel
    check(kernel)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated_ops, "apply", lambda c, rule, terms, run: run())
        assert described(kernel) == described(type_kernel(fn, kinds).kernel)
    return kernel


# ------------------------------------------------------------------ what is copied


def test_operators_functions_and_methods(copies):
    def k(a):
        x = ct.load(a, 0, 8)
        for i in ct.static_iter(range(4)):
            x = x + x * 2 - i
            x = ct.where(x > 1, x, ct.exp(x))
            x = ct.maximum(x, 0.5).astype(ct.float16).astype(ct.float32)
            x = ct.sum(x.reshape((2, 4)), axis=0, keepdims=True)[:, :, None]
            x = ct.cat((x, x), 0).reshape((8,))
        ct.store(a, 0, x)

    same(k, A1)
    assert len(copies) > 20


def test_accesses_with_tuples_of_indices(copies):
    def k(a, n):
        i = ct.bid(0)
        for j in ct.static_iter(range(3)):
            t = ct.load(a, (i, n), (1, 8), padding_mode=ct.PaddingMode.ZERO)
            ct.store(a, (n, j), t)
            ct.store(a, (i, i), ct.load(a, (i, i), shape=(1, 8), padding_mode="ZERO"))
            i = i + 1

    same(k, A2, I32)
    assert len(copies) == 2  # the loads


def test_results_that_are_arguments(copies):
    def k(a, n):
        for _ in ct.static_iter(range(2)):
            q, r = divmod(n, 3)
            n = ct.abs(+q) + ct.abs(r)
            n = n.astype(ct.int32)
        ct.store(a, 0, n)

    same(k, A1, I32)
    assert len(copies) >= 4


def test_results_that_are_tuples(copies):
    def k(n):
        for _ in ct.static_iter(range(3)):
            q, r = divmod(n, 3)
            ct.printf("%d %d", q, r)

    same(k, I32)
    assert len(copies) == 2


def test_a_rule_runs_again_for_other_types_constants_and_options():
    def k(a, n, x):
        for c in ct.static_iter((1, True, 1.0, 0.0, -0.0, 2)):
            ct.printf("%f %f", x + c, (n + c) * 1.0)
            ct.printf("%f %d", ct.float32(c) + x, ct.int32(c) + n)
        for mode in ct.static_iter((ct.RoundingMode.RN, ct.RoundingMode.RZ, None, "RZ")):
            ct.printf("%f", ct.add(x, x, rounding_mode=mode))
            ct.printf("%f", ct.add(x, 1, rounding_mode=mode))
        t = ct.load(a, 0, 8, latency=3) + ct.load(a, 0, 8) + ct.load(a, 0, 8, latency=3)
        ct.store(a, 0, t.reshape((2, 4)).reshape((4, 2)).reshape((8,)))

    same(k, A1, I32, F32)


def test_folded_constants_differ_as_numbers_do():
    def k(a):
        for c in ct.static_iter((0.0, -0.0, 0, False, 1, True, 1.0)):
            ct.printf("%f %f", ct.float32(1) * c, ct.float32(c + c))
            ct.printf("%d", ct.int32(2 * c == c + c))

    same(k, A1)


def test_one_value_as_two_arguments():
    def k(x, y):
        ct.printf("%f", x * x)
        ct.printf("%f", x * y)
        ct.printf("%f", y * x)
        ct.printf("%f", y * y)

    muls = [n for n in walk(same(k, F32, F32).body) if isinstance(n, Op) and n.op.name == "mul"]
    assert [len({*n.operands}) for n in muls] == [1, 2, 2, 1]


def test_copies_have_values_and_spans_of_their_own(copies):
    def k(x, y):
        ct.printf("%f", x + y)
        ct.printf("%f", x + y)

    one, two = (n for n in walk(same(k, F32, F32).body) if isinstance(n, Op) and n.op.name == "add")
    assert len(copies) == 1 and one.results != two.results and two.span.line == one.span.line + 1


# ------------------------------------------------------------------ what is not


def test_functions_of_the_user_and_what_the_host_sees(copies):
    def k(x):
        for i in ct.static_iter(range(3)):
            t = ct.full((8,), i, ct.int32)
            x = x + ct.reduce(t, 0, lambda a, b: ct.maximum(a, b) + 1, 0)
            ct.assert_(x > 0, "positive")
            ct.printf("%d", x)

    same(k, I32)
    copied = {op.name for _, recipe, _ in copies for op, *_ in recipe.nodes}
    assert "add" in copied and copied.isdisjoint({"reduce", "assert_", "printf"})


def test_inside_combine_and_element_functions():
    def k(a, n):
        t = ct.load(a, 0, 8)
        for _ in ct.static_iter(range(2)):
            t = ct.scan(t, 0, lambda x, y: x * 2 + y * 2, 0)
            t = ct.elementwise(lambda x: x * 2 + x * 2)(t)
        ct.store(a, 0, t)

    same(k, A1, I32)


def test_members_of_enums_are_told_apart_without_code_of_their_class():
    class Mode(enum.Enum):
        A = 1
        B = 2

        def __hash__(self):
            raise AssertionError("called")

    def k(a, m):
        for _ in ct.static_iter(range(2)):
            ct.store(a, 0, ct.load(a, 0, 8) * (2 if m == Mode.A else 3))

    same(k, A1, C(Mode.B))


def test_an_error_after_copies_is_at_its_own_line():
    def k(a, x, y):
        z = x + y
        z = z + y
        z = z + a
        return z

    refused(k, A1, F32, F32, says="unsupported operands for +", at="z + a")


def test_an_error_is_not_kept():
    def k(x, n):
        y = n + 3000000000
        z = n + 3000000000
        ct.printf("%d %d", y, z)

    with pytest.raises(ct.TileError) as caught:
        type_kernel(k, (F32, I32))
    assert [e.loc.line for e in caught.value.errors] == [k.__code__.co_firstlineno + 1, k.__code__.co_firstlineno + 2]
