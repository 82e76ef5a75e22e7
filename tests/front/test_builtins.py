"""Builtins and functions of `operator` [FN-6, CV-9]."""

import operator
import pdb
import re

import numpy as np
import pytest

import cutile as ct
from tests.front.compiling import A1, ARRAYS, I32, C, cell, constant, refused, result, text, typed


def test_conversions():  # CV-9
    def f():
        return (int(3.7), int("5"), int(True), int(), float("2.5"), float(3), float(), bool(0.0), bool("a"), bool(),
                str(3), str("a"), repr("a"), str(), str((1, "a")), tuple((1, 2)), tuple())

    assert constant(f) == (3, 5, 1, 0, 2.5, 3.0, 0.0, False, True, False, "3", "a", "'a'", "", "(1, 'a')", (1, 2), ())


def test_conversions_of_run_time_values():  # CV-9
    def k(n):
        b = bool(n)
        d = b.dtype
        ct.static_assert(d == ct.bool_)
        print(str(n), repr(n))

    typed(k, I32)
    for source in ("int(n)", "float(n)", "tuple(n)", "int(1, 2)", "bool(1, 2)", "str(1, 2)", "int(x)", "float('a')"):
        with pytest.raises(ct.TileError) as e:
            typed(cell(f"def k(x, n): {source}")["k"], A1, I32)
        assert type(e.value) in (ct.TileTypeError, ct.TileValueError)


def test_len():  # CV-1, ARG-7
    assert constant(lambda: len((1, 2, 3))) == 3

    def k(arrays):
        n = len(arrays)
        ct.assert_(n > 0)

    assert "list_len" in text(k, ARRAYS)
    for source in ("len(n)", "len(x)", "len('a')", "len()", "len((), ())"):
        refused(cell(f"def k(x, n): {source}")["k"], A1, I32, at=source)


def test_min_max_abs_divmod():  # LOOSE-4, TILE-4
    assert constant(lambda: (min(1, 2.5), max(1.0, 2), abs(-3), divmod(-7, 2), min(2, 1))) == (1, 2, 3, (-4, 1), 1)
    assert [type(v) for v in constant(lambda: (min(1, 2.5), max(1.0, 2)))] == [int, int]

    def f(n):
        q, r = divmod(n, 4)
        return min(n, 3) * 1000 + max(n, 3) * 100 + abs(-n) * 10 + q + r

    assert result(f, 6) == 3000 + 600 + 60 + 3
    for source in ("min(1, 2, 3)", "max((1, 2))", "max(n)", "abs(1, 2)", "divmod(1)"):
        refused(cell(f"def k(n): {source}")["k"], I32, at=source)


def test_getattr_and_slice():  # FN-6
    def f(n):
        name = "dty" + "pe"
        return getattr(n, name), (1, 2, 3)[slice(0, None, 2)]

    assert constant(f, 1) == (ct.int32, (1, 3))
    for source in ("getattr(n, 'dtype', 3)", "getattr(n, n)", "slice(1)", "slice(1, 2)", "getattr(n)"):
        refused(cell(f"def k(n): {source}")["k"], I32, at=source)


def test_functions_of_texts_and_dictionaries():  # FN-6
    def f(**d):
        return "-".join(("a", "b")), "+".join(("a",)), d.get("n"), d.get("m", 3)

    assert constant(lambda: f(n=1)) == ("a-b", "a", 1, 3)
    for source in ("'a'.join()", "'a'.join(n)", "'a'.join((1, n))"):
        refused(cell(f"def k(n): {source}")["k"], I32)


def test_breakpoints():
    def k(n):
        breakpoint()
        pdb.set_trace()

    assert re.findall("kind='(.*)'", text(k, I32)) == ["breakpoint", "set_trace"]


def test_keyword_arguments_of_builtins():
    refused(cell("def k(): min(1, 2, key=abs)")["k"], says="takes no keyword arguments in tile code: key")


BINARY = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
]


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_of_operator(name):  # FN-6
    fn = getattr(operator, name)
    assert constant(lambda: fn(7, 2)) == fn(7, 2)


def test_other_functions_of_operator():  # FN-6
    def f():
        return (operator.neg(3), operator.pos(3), operator.invert(5), operator.not_(3), operator.is_(None, None),
                operator.is_not(1, None), operator.getitem((1, 2), 1))

    assert constant(f) == (-3, 3, -6, False, True, True, 2)
    assert result(lambda n: operator.matmul(ct.full((2, 2), n, ct.float32), ct.ones((2, 2), ct.float32)).extract(
        (0, 0), ()), 3, dtype=np.float32) == 6
    for name in ("contains", "concat", "truth", "index", "iadd", "abs"):
        from cutile.errors import UnsupportedCallError
        refused(cell(f"def k(): operator.{name}(1, 2)", operator=operator)["k"], cls=UnsupportedCallError)


def test_operator_wrong_counts():
    for source in ("operator.add(1)", "operator.neg(1, 2)", "operator.is_(1, 2)", "operator.getitem((1,))"):
        refused(cell(f"def k(): {source}", operator=operator)["k"], at=source)


def test_print_takes_its_keywords():  # PRINT
    def k(n):
        print(n, "a", 2.5, sep="-", end="")

    assert "emit_text" in text(k, I32)


def test_constant_parameter_through_builtins():
    def k(n):
        ct.zeros((max(n, 4),), ct.float32)

    typed(k, C(2))
