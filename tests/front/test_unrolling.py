"""ct.static_iter: loops that are unrolled while a kernel is typed [SEVAL-7]."""

import pytest

import cutile as ct
from tests.front.compiling import I32, cell, constant, refused, result, typed


def test_unrolled_items_of_many_types():  # SEVAL-7
    def f():
        out = ()
        for x in ct.static_iter((1, 2.5, "a", None, (1, 2), ct.float32, len)):
            out = (*out, x)
        return out

    assert constant(f) == (1, 2.5, "a", None, (1, 2), ct.float32, len)


def test_unrolled_loops_keep_constants_and_variables():  # SEVAL-7
    def f(n):
        total = 0
        for i in ct.static_iter(range(4)):
            total = total + i
            last = i
        ct.static_assert(total == 6 and last == 3 and i == 3)
        return n

    assert result(f, 1) == 1


def test_zero_items_leave_the_target_undefined():  # SEVAL-7
    def k():
        for i in ct.static_iter(()):
            pass
        return i

    refused(k, cls=ct.TileSyntaxError, at="i")


@pytest.mark.parametrize("body", ["break", "continue", "return", "if n > i: break"])
def test_leaving_an_unrolled_loop(body):  # SEVAL-7, ST-15
    k = cell(f"def k(n):\n    for i in ct.static_iter((1, 2)):\n        {body}")["k"]
    refused(k, I32, cls=ct.TileSyntaxError, says="cannot be used in the body of a static_iter loop")


def test_dynamic_loop_inside_an_unrolled_one():  # SEVAL-7
    def f(n):
        total = 0
        for i in ct.static_iter((1, 2)):
            for j in range(n):
                if j == 3:
                    break
                if j == 1:
                    continue
                total += i * j
        return total

    def returns(n):
        for i in ct.static_iter((1, 2)):
            for j in range(n):
                if i * j == 4:
                    return i * 10 + j
        return -1

    assert result(f, 9) == 6
    assert [int(result(returns, n)) for n in (2, 4, 9)] == [-1, 22, 14]


def test_unrolled_loop_inside_a_dynamic_one():  # SEVAL-7
    def k(n):
        for j in range(n):
            for i in ct.static_iter((1, 2)):
                break

    refused(k, I32, cls=ct.TileSyntaxError, at="break")


def test_item_limit_and_kinds():  # SEVAL-7
    def many():
        for i in ct.static_iter(range(1001)):
            pass

    def enough():
        n = 0
        for i in ct.static_iter(range(1000)):
            n = n + 1
        ct.static_assert(n == 1000)

    refused(many, cls=ct.TileStaticEvalError, says="at most 1000 items")
    refused(cell("def k():\n    for i in ct.static_iter(3): pass")["k"], says="needs an iterable, got 3")
    refused(
        cell("def k():\n    for i in ct.static_iter([[1], 2]): pass")["k"],
        cls=ct.TileStaticEvalError,
        says="gave a list",
    )
    typed(enough)


def test_generators_are_materialised_once():
    def f(values):
        return tuple(a * 10 for a in ct.static_iter(v + 1 for v in values))

    assert constant(f, (1, 2)) == (20, 30)
