import ast

from cutile.front.closures import free_names


def free(source: str) -> set[str]:
    return set(free_names(ast.parse(source).body[0]))


def test_free_names():
    assert free("def f(a, b=x): return a + c") == {"c"}
    assert free("def f():\n    c = 1\n    return c + d") == {"d"}
    assert free("def f():\n    def g(h=i): return j + k\n    k = 1") == {"i", "j"}
    assert free("def f(): return lambda a: a + b") == {"b"}


def test_own_name_of_a_recursive_function_is_free():
    assert free("def f(n): return f(n - 1)") == {"f"}
