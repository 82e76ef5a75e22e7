"""The checker accepts valid IR, and names the node that breaks a rule."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile.dtypes import int32
from cutile.errors import TileInternalError
from cutile.ir.check import check
from cutile.ir.nodes import Bind, For, Frame, Group, If, Known, Op, Region, Return, Value, While, Yield
from cutile.ir.text import parse
from cutile.ir.walk import free_values, regions, walk
from cutile.types import TileType
from tests.ir.random_kernels import random_kernel

PROGRAM = """
kernel k(%n: i32[], %x: f32[4], %c: b1[]) {
  %one = constant() {value=1} : i32[]
  %r = if %c : i32[] {
    %two = add(%one, %one) {rounding_mode=None, flush_to_zero=False} : i32[]
    yield %two
  } else {
    yield %one
  }
  %f = for %i: i32[] in (%one, %n, %one) carry (%p: i32[] = %r) : i32[] {
    %e = equal(%i, %p) : b1[]
    if %e {
      break %i
    } else {
      yield
    }
    continue %p
  }
  %w = while carry (%q: i32[] = %f) : i32[] {
    %l = less(%q, %n) : b1[]
    yield %l
  } do {
    %q1 = add(%q, %one) {rounding_mode=None, flush_to_zero=False} : i32[]
    continue %q1
  }
  %u, %t = while true carry (%s: i32[] = %w) : i32[], f32[4] {
    break %s, %x
  }
  %g = frame helper : i32[] {
    bind a = (%u, Point(x=1, y=shown 'f'))
    return %u
  }
  %m = reduce([%t]) {axis=-1, identity=(0.0,)} : f32[] region (%a: f32[], %b: f32[]) {
    %ab = add(%a, %b) {rounding_mode=None, flush_to_zero=False} : f32[]
    yield %ab
  }
  %z = cat([%x, %x]) {axis=-1} : f32[8]
  return
}
"""


def test_accepts_a_program_with_every_kind_of_node():
    check(parse(PROGRAM))


@settings(max_examples=80, deadline=None)
@given(st.randoms(use_true_random=False))
def test_accepts_random_valid_programs(rng):
    check(random_kernel(rng))


def refused(text_or_kernel, *messages: str) -> None:
    k = parse(text_or_kernel) if isinstance(text_or_kernel, str) else text_or_kernel
    with pytest.raises(TileInternalError) as e:
        check(k)
    assert type(e.value) is TileInternalError
    for m in messages:
        assert m in e.value.message, e.value.message
    assert f"the IR of {k.name}:\nkernel" in str(e.value)


@pytest.mark.parametrize("old, new, messages", [
    ("if %c : i32[]", "if %n : i32[]", ("condition: (i32[]) where (b1[])", "in: %r = if %n : i32[]")),
    ("%one = constant() {value=1} : i32[]", "%one = constant() {value=1} : i32[4]", ("a constant is a scalar",)),
    ("yield %two", "yield %x", ("yield of the branch of if: (f32[4]) where (i32[])", "in: yield %x")),
    ("yield %two", "yield", ("yield of the branch of if: () where (i32[])",)),
    ("yield %two", "", ("the branch of if does not end in a terminator", "in: %two = add(%one, %one)")),
    ("yield %two", "break %two", ("break outside a loop", "in: break %two")),
    ("yield %two", "continue %two", ("continue outside a loop",)),
    ("yield %two", "return %two", ("return: (i32[]) where ()",)),
    ("yield %two", "yield %two yield %two", ("a terminator stands before the end", "in: yield %two")),
    ("in (%one, %n, %one)", "in (%one, %x, %one)", ("bounds: (i32[], f32[4], i32[]) where (i32[], i32[], i32[])",)),
    ("carry (%p: i32[] = %r) : i32[]", "carry (%p: i32[] = %x) : i32[]", ("values before the loop: (f32[4])",)),
    ("carry (%p: i32[] = %r) : i32[]", "carry (%p: i32[] = %r) : f32[4]", ("results: (f32[4]) where (i32[])",)),
    ("break %i", "break", ("break: () where (i32[])",)),
    ("continue %p", "continue %e", ("continue: (b1[]) where (i32[])",)),
    ("continue %p", "yield %p", ("the body of for cannot end in yield",)),
    ("continue %q1", "continue %q1, %q1", ("continue: (i32[], i32[]) where (i32[])",)),
    ("carry (%q: i32[] = %f) : i32[]", "carry (%q: i32[] = %f) : f32[4]", ("results: (f32[4]) where (i32[])",)),
    ("yield %l", "yield %q", ("yield of the condition of while: (i32[]) where (b1[])",)),
    ("yield %l", "break %q", ("break outside a loop, or across a condition",)),
    ("yield %l", "return", ("return outside a frame, or across a condition",)),
    ("break %s, %x", "break %s", ("break: (i32[]) where (i32[], f32[4])",)),
    ("carry (%s: i32[] = %w) : i32[], f32[4]", "carry (%s: i32[] = %w) : f32[4], f32[4]", ("results: (f32[4])",)),
    ("return %u", "return", ("return: () where (i32[])",)),
    ("return %u", "break %u", ("break outside a loop",)),
    ("yield %ab", "yield %ab, %a", ("yield of the combine body: (f32[], f32[]) where (f32[])",)),
    ("yield %ab", "return %ab", ("return outside a frame, or across a condition or combine body",)),
    ("(%a: f32[], %b: f32[])", "(%a: f32[], %b: f32[], %d: f32[])", ("parameters of the combine body",)),
    ("(%a: f32[], %b: f32[]) {", "(%a: f32[], %b: f32[]) { if %c { yield } else { yield }", ("holds control flow",)),
    ("(%a: f32[], %b: f32[]) {", "(%a: f32[], %b: f32[]) { %mm = sum(%x) {axis=-1, rounding_mode=None, "
     "flush_to_zero=False} : f32[]", ()),
    ("{axis=-1} : f32[8]", ": f32[8]", ("attribute axis of cat is missing", "in: %z = cat([%x, %x])")),
    ("{axis=-1} : f32[8]", "{axis=-1, order=2} : f32[8]", ("cat has no attribute order",)),
    ("%z = cat([%x, %x]) {axis=-1} : f32[8]\n  return", "%z = cat([%x, %x]) {axis=-1} : f32[8]\n  return %z",
     ("return: (f32[8]) where ()",)),
])
def test_refuses(old, new, messages):
    assert PROGRAM.count(old) == 1
    text = PROGRAM.replace(old, new)
    if not messages:  # still valid: a pure op in a combine body
        check(parse(text))
    else:
        refused(text, *messages)


def nodes(k, kind):
    return [n for n in walk(k.body) if isinstance(n, kind)]


def node(k, kind, i=0):
    return nodes(k, kind)[i]


def fresh():
    return parse(PROGRAM)


def test_use_of_a_value_of_the_other_branch():
    k = fresh()
    n = node(k, If)
    n.orelse.nodes[-1] = replace(n.orelse.nodes[-1], operands=n.then.nodes[0].results)
    refused(k, "value two of type i32[] is not visible here", "in: yield %two")


def test_use_after_the_block_of_its_definition():
    k = fresh()
    k.body.nodes.insert(-1, replace(node(k, Bind), template=Group("tuple", (), (node(k, For).iv,))))
    refused(k, "value i of type i32[] is not visible here", "in: bind a = (%i,)")


def test_use_before_definition_and_of_a_value_from_nowhere():
    k = fresh()
    k.body.nodes[0], k.body.nodes[1] = k.body.nodes[1], k.body.nodes[0]
    refused(k, "value one of type i32[] is used before its definition")
    k = fresh()
    k.body.nodes.insert(0, replace(node(k, Bind), template=Value(TileType(int32))))
    refused(k, "value (unnamed) of type i32[] is used before its definition")


def test_a_node_does_not_see_its_own_results():
    k = fresh()
    n = node(k, Frame)
    n.body.nodes[-1] = replace(n.body.nodes[-1], operands=n.results)
    refused(k, "value g of type i32[] is used before its definition", "in: return %g")


def test_definition_twice():
    k = fresh()
    n = node(k, Op)
    k.body.nodes.insert(1, replace(n))
    refused(k, "value one of type i32[] is defined twice", "in: %one = constant()")


def test_node_in_two_places():
    k = fresh()
    n = node(k, Bind)
    node(k, Frame).body.nodes.insert(0, n)
    refused(k, "stands in two places", "in: bind a")


def test_empty_block():
    k = fresh()
    node(k, If).then.nodes.clear()
    refused(k, "the branch of if does not end in a terminator")


@pytest.mark.parametrize("unreachable, reachable", [
    ("if %c { break } else { continue }", "if %c { break } else { yield }"),
    ("while true { while true { break } continue }", "while true { break }"),
    ("while true carry (%p: b1[] = %c) { continue %p }", "for %i: i32[] in (%n, %n, %n) { continue }"),
    ("frame f { while true { continue } }", "frame f { return }"),
    ("if %c { if %c { break } else { continue } } else { while true { continue } bind x = 1 }",
     "if %c { if %c { break } else { continue } } else { yield }"),
])
def test_a_block_whose_end_cannot_be_reached_has_no_terminator(unreachable, reachable):
    def program(body):
        return f"kernel k(%c: b1[], %n: i32[]) {{ while true {{ {body} }} return }}"

    check(parse(program(unreachable)))
    check(parse(program(unreachable + " bind x = 1")))
    refused(program(unreachable + " %t = logical_not(%c) : b1[]"), "the body of while does not end in a terminator")
    refused(program(reachable), "the body of while does not end in a terminator")
    check(parse(program(reachable + " continue")))


def test_operand_counts_and_layout():
    k = fresh()
    n = node(k, If).then.nodes[0]
    n.operands = n.operands[:1]
    refused(k, "1 operands for (x y)", "in: %two = add(%one)")
    k = fresh()
    n = next(n for n in nodes(k, Op) if n.op.name == "cat")
    n.layout = (3,)
    refused(k, "2 operands for layout (3,)")
    n.layout = None
    refused(k, "operand layout None for (*tiles)")
    n.layout = (None,)
    refused(k, "operand *tiles occurs None times")


@pytest.mark.parametrize("value", [[1], {1: 2}, object(), 1j, (1, [2])])
def test_attributes_of_no_allowed_kind(value):
    k = fresh()
    node(k, Op).attrs["value"] = value
    refused(k, "attribute value cannot hold", "in: %one = constant() {value=<")


def test_templates_of_no_allowed_kind():
    k = fresh()
    n = node(k, Bind)
    n.template = Known([1])
    refused(k, "a template cannot hold [1]")
    n.template = 5
    refused(k, "a template cannot hold 5")
    n.template = Group("Point", ("x",), (Known(1), Known(2)))
    refused(k, "1 names for 2 items")


def test_parameters_only_in_combine_bodies():
    k = fresh()
    node(k, Frame).body.params = (Value(TileType(int32)),)
    refused(k, "the body of a frame has parameters")


def test_a_combine_body_takes_scalars():
    k = parse("""kernel k(%x: f32[4, 4]) {
      %m = reduce([%x]) {axis=-1, identity=(0.0,)} : f32[4] region (%a: f32[4], %b: f32[4]) { yield %a }
      return }""")
    refused(k, "a combine body takes scalars")


def test_spans_and_types_are_demanded():
    k = fresh()
    node(k, Return, 0).span = None
    with pytest.raises(TileInternalError, match="a node without a span: return"):
        check(k)
    k = fresh()
    node(k, Op).results[0].type = "i32"
    refused(k, "has 'i32' for a type")
    k = fresh()
    with pytest.raises(TileInternalError, match="3 params and 1 names"):
        check(replace(k, param_names=("n",)))


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_random_program_without_one_definition_is_refused(rng):
    """If a node is removed whose result is used, the checker finds the use."""
    k = random_kernel(rng)
    needed = {v for b, _ in regions(k.body) for n in b.nodes for v in free_values(Region([n]))}
    found = [(b, n) for b, _ in regions(k.body) for n in b.nodes
             if isinstance(n, Op) and needed.intersection(n.results)]
    if found:
        b, n = rng.choice(found)
        b.nodes.remove(n)
        refused(k, "is used before its definition")


def test_calls_nested_deeper_than_the_stack():
    body = Region([Return((), (k := fresh()).span)])
    for _ in range(2000):
        body = Region([Frame("f", k.span, body, (), k.span), Return((), k.span)])
    check(replace(k, body=body))
    assert isinstance(node(k, While), While) and isinstance(node(k, Yield), Yield)
