"""Functions in place of lambdas mean the same."""

import ast

import pytest

import cutile as ct
from conformance.harness import lambdas


def test_a_lambda_becomes_a_function_with_the_same_meaning():
    source = "def make(n):\n    m = 2\n    return lambda a, /, b=3, *c, d, e=n, **f: (a + b + sum(c)) * d + e * m\n"
    space = {"_with_def": lambdas._with_def}
    exec(compile(ast.fix_missing_locations(lambdas._Lambdas().visit(ast.parse(source))), "s", "exec"), space)
    plain: dict = {}
    exec(source, plain)
    for args, kwargs in (((1,), {"d": 2}), ((1, 4, 5), {"d": 3, "e": 7, "z": 0})):
        assert space["make"](10)(*args, **kwargs) == plain["make"](10)(*args, **kwargs)

    @ct.kernel
    def k(n):
        ct.static_assert(f(n, d=1).dtype == ct.int32)

    f = space["make"](10)
    ct.launch(None, (1,), k, (1,))


@pytest.mark.parametrize("answer", [True, False])
def test_what_an_assert_statement_looks_at_is_computed_and_may_be_false(answer):
    source = "def test(ask):\n    assert ask(1), ask(2)\n    assert not ask(3) or 1 / 0\n    ask(4)\n"
    space: dict = {}
    exec(compile(ast.fix_missing_locations(lambdas._Asserts().visit(ast.parse(source))), "s", "exec"), space)
    asked: list[int] = []
    space["test"](lambda n: asked.append(n) or answer)
    assert asked == [1, 3, 4]
