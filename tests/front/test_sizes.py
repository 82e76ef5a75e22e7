"""Texts that name sizes: what they may say, and what they are worth."""

import pytest

import cutile as ct
from cutile.front.sizes import Expression, Sizes, axes_of, split
from tests.functions.shows import shows


@pytest.mark.parametrize("text, items", [
    ("M K", ["M", "K"]), ("  M   K ", ["M", "K"]), ("", []), ("cdiv(M, 128) N", ["cdiv(M, 128)", "N"]),
    ("max(M, (N + 1)*2) 3", ["max(M, (N + 1)*2)", "3"]), ("(M + 1)", ["(M + 1)"]),
])
def test_items(text, items):
    assert split(text) == items


@pytest.mark.parametrize("text, value", [
    ("M+1", 8), ("2*M", 14), ("M//2", 3), ("M%4", 3), ("-M+10", 3), ("cdiv(M,2)", 4), ("min(M,K,5)", 3), ("max(M,K)", 7),
    ("3", 3), ("(M-K)*K", 12),
])
def test_values(text, value):
    assert Expression(text)({"M": 7, "K": 3}) == value


def test_cdiv_is_that_of_the_language():
    assert all(Expression("cdiv(M,K)")({"M": m, "K": k}) == ct.cdiv(m, k) for m in range(20) for k in range(1, 9))


@shows("JIT-4.text")
@pytest.mark.parametrize("text", ["M/2", "M.x", "f(M)", "cdiv(M)", "cdiv(M,1,2)", "(M", "M)", "'M'", "1.5", "True", "lambda",
                                  "[M]", "=3", "**M", "*_", "=if", "M**2", "*a *b", "max(M)", "M if M else 1", "__import__('os')",
                                  "(M:=3)", "cdiv(M,d=2)", "9" * 2000, "(" * 900 + "M" + ")" * 900])
def test_what_is_no_size(text):
    with pytest.raises(ValueError):
        ct.Array[text]


@pytest.mark.parametrize("items, message", [
    (("M, N",), "spaces separate them, not commas; write 'M N'"), (("cdiv(M, 2),N",), r"write 'cdiv\(M, 2\) N'"),
    (("M", "N"), '"M N"'), (("M", 4), '"M 4"'), (("M", "N", "K"), r'ct.Array\["M N K"\]'),
    (("M", "N", ct.float32), r'ct.Array\["M N"\]'), ((32, 64), r'ct.Array\["32 64"\], not ct.Array\[\(32, 64\)\]'),
    ((32,), r'ct.Array\["32"\]'), (("M", "float32"), "write ct.float32, without quotes")])
def test_how_to_write_several_sizes(items, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ct.Array[items if len(items) > 1 else items[0]]


def test_axes():
    a, b, c, d, e = axes_of("*batch =N _ 3 M+1")
    assert (a.name, a.rest) == ("batch", True) and (b.name, b.rest) == ("N", False) and (c.name, c.size) == (None, None)
    assert d.size({}) == 3 and e.size.names == {"M"}


@pytest.mark.parametrize("text, constants", [("M =K", (1,)), ("=M =K", (0, 1)), ("*b =K", (-1,)), ("=M *b K", (0,)),
                                             ("=M *b =K L", (0, -2)), ("M K", ())])
def test_constants(text, constants):
    assert Sizes(text).constants == constants


def test_sizes_as_objects():
    assert Sizes("M", ct.float16) == ct.Array["M", ct.float16].__metadata__[0] != Sizes("M")
    assert hash(Sizes("M")) == hash(Sizes("M")) and "M" in repr(Sizes("M", ct.int8))
    for wrong in ((3,), ("M", 3), (None,)):
        with pytest.raises(TypeError):
            Sizes(*wrong)
