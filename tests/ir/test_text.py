"""The text form of the IR: how it looks, that it parses back to the same IR, and errors about wrong texts."""

import math
import re
from dataclasses import fields, is_dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cutile.dtypes import NUMERIC, float32, foreign_pointer_dtype, int64
from cutile.ir.nodes import Frame, Kernel, Op, Region, Return, Value
from cutile.ir.reader import IRSyntaxError
from cutile.ir.text import literal, parse, to_text
from cutile.ir.walk import walk
from cutile.ops import create
from cutile.spans import Span
from cutile.types import (
    ArrayType,
    ListType,
    MemoryOrder,
    MemoryScope,
    PaddingMode,
    RoundingMode,
    TileType,
    TokenType,
)
from tests.ir.random_kernels import random_kernel

SMALL = """\
kernel scale(%x: array<f32[?]>, %0: i32[] of n) @0 {
  %i = bid() {axis=0} : i32[] @1
  bind i = %i @1
  %1 = frame double defined @2 : i32[] @3 {
    %two = constant() {value=2} : i32[] @4
    %two.1 = mul(%i, %two) {rounding_mode=None, flush_to_zero=False} : i32[] @4
    return %two.1 @5
  }
  return @6
}
spans {
  @0 = 'scale.py' 3:0 - 8:12 in scale
  @1 = 'scale.py' 4:8 - 4:17 in scale
  @2 = 'scale.py' 11:0 - 12:16 in double
  @3 = 'scale.py' 5:8 - 5:17 in scale
  @4 = 'scale.py' 12:11 - 12:16 in double from @3
  @5 = 'scale.py' 12:4 - 12:16 in double from @3
  @6 = 'scale.py' 8:0 - 8:0 in scale
}
"""


def same(a, b, values: dict) -> bool:
    """Whether two kernels are equal, with values matched one to one by position."""
    if isinstance(a, Value) and isinstance(b, Value):
        return values.setdefault(a, b) is b and values.setdefault(b, a) is a and a.type == b.type and a.name == b.name
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y, values) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and same(list(a.values()), list(b.values()), values)
    if isinstance(a, float):
        return repr(a) == repr(b) and math.copysign(1, a) == math.copysign(1, b)
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name), values) for f in fields(a))
    return a == b


def test_the_small_program_reads_and_prints_as_documented():
    k = parse(SMALL)
    assert to_text(k) == SMALL
    frame = k.body.nodes[2]
    product = frame.body.nodes[1]
    assert [v.name for v in (*k.params, *frame.results, *product.results)] == ["x", None, None, "two"]
    assert k.param_names == ("x", "n")
    assert product.operands[0] is k.body.nodes[0].results[0]
    assert product.span == Span("scale.py", 12, 11, 12, 16, "double", Span("scale.py", 5, 8, 5, 17, "scale"))
    assert frame.def_span == Span("scale.py", 11, 0, 12, 16, "double")


@settings(max_examples=80, deadline=None)
@given(st.randoms(use_true_random=False))
def test_random_programs_come_back_the_same(rng):
    k = random_kernel(rng)
    text = to_text(k)
    back = parse(text)
    assert same(k, back, {})
    assert to_text(back) == text


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False))
def test_without_spans_everything_else_comes_back(rng):
    text = to_text(random_kernel(rng), spans=False)
    assert "@" not in text
    assert to_text(parse(text), spans=False) == text


def test_a_node_without_span_gets_its_place_in_the_text():
    k = parse("kernel k() {\n  return\n}")
    assert k.body.nodes[0].span == Span("<ir>", 2, 2, 2, 8, "k")
    assert same(k, parse(to_text(k)), {})


LITERALS = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text(), st.none(), st.sampled_from(NUMERIC),
              st.sampled_from([foreign_pointer_dtype(float32), *RoundingMode, *PaddingMode, *MemoryOrder,
                       *MemoryScope])),
    lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)
SPAN = Span("a.py", 1, 0, 1, 1, "k")


def kernel_with(attrs, result=None) -> Kernel:
    nodes = [Op(create.constant, (), attrs, (Value(result or TileType(float32)),), SPAN), Return((), SPAN)]
    return Kernel("k", (), (), Region(nodes), SPAN)


@settings(deadline=None)
@given(LITERALS)
@example(-math.nan)
@example(math.copysign(math.nan, -1.0))
@example(5e-324)
@example((math.inf, -math.inf, -0.0, (), ((),), "\ud800 \" ' \\ \n # %x @1"))
def test_attribute_values_come_back_the_same(value):
    k = kernel_with({"value": value})
    assert same(k, parse(to_text(k)), {})


DIMS = st.one_of(st.none(), st.integers(0, 2**40))
ARRAYS = st.integers(0, 4).flatmap(lambda n: st.builds(
    ArrayType, st.sampled_from(NUMERIC), st.just(n), st.sampled_from([NUMERIC[3], int64]),
    st.tuples(*[DIMS] * n), st.tuples(*[DIMS] * n)))


@settings(deadline=None)
@given(st.one_of(
    ARRAYS, st.builds(ListType, ARRAYS), st.just(TokenType()), st.just(TileType(foreign_pointer_dtype(int64), (2,))),
    st.builds(TileType, st.sampled_from(NUMERIC), st.lists(st.sampled_from([1, 2, 1024]), max_size=4).map(tuple))))
def test_types_come_back_the_same(t):
    k = kernel_with({"value": 1}, t)
    assert parse(to_text(k)).body.nodes[0].results[0].type == t


@settings(deadline=None)
@given(st.text(min_size=1), st.text(min_size=1), st.text())
@example("inf", "nan", "spans")
@example("¹", "٣", "")
@example("x.1", "%", "a'b\"c")
def test_names_come_back_the_same(value, function, file):
    span = Span(file, 1, 0, 2, 3, function, Span(file, 7, 0, 7, 1, value))
    k = Kernel(function, (Value(TileType(int64), value),), (function,), Region([Return((), span)]), span)
    assert same(k, parse(to_text(k)), {})


def test_what_the_text_cannot_hold_is_refused():
    for value in ([1], object(), 1j, {}):
        with pytest.raises(TypeError, match="an attribute cannot hold"):
            literal(value)
    k = kernel_with({"value": [1]})
    with pytest.raises(TypeError):
        to_text(k)
    assert "value=<[1]>" in to_text(k, lenient=True)


def test_equal_spans_are_one_entry_and_deep_call_chains_are_kept():
    site, depth = None, 1500
    body = Region([Return((), SPAN)])
    for _ in range(depth):
        site = Span("a.py", 1, 0, 1, 1, "f", site)
    body = Region([Return((), site)])
    for _ in range(depth):
        body = Region([Frame("f", SPAN, body, (), SPAN), Return((), SPAN)])
    k = Kernel("k", (), (), body, SPAN)
    text = to_text(k)
    assert text.count("@0 =") == 1 and text.count(" = 'a.py'") == depth + 1
    back = parse(text)
    assert to_text(back) == text
    innermost = next(n for n in walk(back.body) if isinstance(n, Return))
    assert len(innermost.span.frames()) == depth


@pytest.mark.parametrize("text, place, message", [
    ("", (1, 1), "expected 'kernel', found the end"),
    ("kernel k() {", (1, 13), "expected '}' or a node, found the end"),
    ("kernel k() {\n  %a = add(%b, %b) : f32[]\n}", (2, 12), "%b is not defined before"),
    ("kernel k(%b: f32[]) {\n  %b = negative(%b) : f32[]\n}", (2, 3), "%b is defined twice"),
    ("kernel k(%b: f32[]) {\n  %c = nonsense(%b) : f32[]\n}", (2, 8), "there is no op nonsense"),
    ("kernel k(%b: f32[]) {\n  %c = add(%b) : f32[]\n}", (2, 12), "add takes the operands (x, y)"),
    ("kernel k(%b: f32[]) {\n  %c = add(%b, [%b]) : f32[]\n}", (2, 12), "add takes the operands (x, y)"),
    ("kernel k(%b: f32[]) {\n  %c = cat(%b) {axis=0} : f32[]\n}", (2, 12), "cat takes the operands (*tiles)"),
    ("kernel k(%b: f32[]) {\n  %c, %d = negative(%b) : f32[]\n}", (2, 3), "2 results and 1 types"),
    ("kernel k(%b: f32) { return }", (1, 17), "expected '[', found )"),
    ("kernel k(%b: f33[]) { return }", (1, 14), "expected a type such as f32[8], found f33"),
    ("kernel k(%b: array<f32[?,?:1]>) { return }", (1, 29), "2 sizes and 1 strides"),
    ("kernel k() { %a = constant() {value=RoundingMode.XX} : f32[] }", (1, 50), "expected one of RN, RZ"),
    ("kernel k() { %a = constant() {value=what} : f32[] }", (1, 37), "expected a value, found what"),
    ("kernel k(%i: i32[]) { for %j: i32[] in (%i, %i) { continue } return }", (1, 23),
     "a for takes start, stop and step"),
    ("kernel k() { %a = constant() {value=1, value=2} : i32[] }", (1, 40), "attribute value stands twice"),
    ("kernel k(%b: ptr<ptr<f32>>[]) { return }", (1, 18), "expected an element type such as f32, found ptr"),
    ("kernel k() { return @1 }", (1, 21), "span @1 is not in the table"),
    ("kernel k() { return }\nspans {\n  @0 = 'a' 1:0 - 1:0 in f\n  @0 = 'a' 1:0 - 1:0 in f\n}", (4, 3),
     "span @0 stands twice"),
    ("kernel k() { return }\nspans {\n  @1 = 'a' 1:0 - 1:0 in f from @2\n}", (3, 32), "span @2 is not in the table"),
    ("kernel k() { return } more", (1, 23), "expected the end or a table of spans, found more"),
    ("kernel k() { return ! }", (1, 21), "unexpected character '!'"),
    ("kernel k() { bind x = 'abc }", (1, 23), "unexpected character \"'\""),
    ("kernel k() { bind x = f32[] return }", (1, 26), "expected"),
])
def test_a_bad_text_is_told_where_and_what(text, place, message):
    with pytest.raises(IRSyntaxError) as e:
        parse(text)
    first, source, caret = str(e.value).split("\n")
    assert first.startswith(f"line {place[0]}, column {place[1]}: {message}"), first
    assert source == "    " + text.split("\n")[place[0] - 1]
    assert caret == " " * (place[1] + 3) + "^"


@settings(max_examples=80, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_damaged_text_is_refused_or_read_but_never_crashes(rng):
    text = to_text(random_kernel(rng))
    at = rng.randrange(len(text))
    damaged = text[:at] + rng.choice(("", "(", "}", "%x", " 7 ", "@1", "'", "if ")) + text[at + rng.randrange(4):]
    try:
        parse(damaged)
    except IRSyntaxError:
        pass


def test_files_can_be_renamed_in_the_table():
    text = to_text(parse("kernel k() {\n  return\n}\n"))
    assert to_text(parse(text), file=lambda f: "other.py") == re.sub(r"= '[^']*'", "= 'other.py'", text) != text
