"""Walking, uses, definitions, free values, rewriting."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile.dtypes import int32
from cutile.ir.check import check
from cutile.ir.nodes import Frame, Group, Kernel, Known, Op, Region, Return, Value, regions_of, uses_of
from cutile.ir.text import parse, to_text
from cutile.ir.walk import (
    bound_values,
    definitions,
    free_values,
    homes,
    nodes_of,
    only_op,
    regions,
    returns,
    rewrite,
    run_recursive,
    shown_values,
    substitute,
    uses,
    walk,
)
from cutile.ops import arithmetic
from cutile.types import TileType
from tests.ir.random_kernels import random_kernel

K = """
kernel k(%n: i32[], %x: f32[4], %c: b1[]) {
  %one = constant() {value=1} : i32[]
  %f = for %i: i32[] in (%one, %n, %one) carry (%p: i32[] = %n) : i32[] {
    %g = frame helper : i32[] {
      bind a = (%p, %i, Pair(x=%one, y=2))
      if %c {
        return %p
      } else {
        yield
      }
      %s = add(%p, %p) {rounding_mode=None, flush_to_zero=False} : i32[]
      %inner = frame deeper : i32[] {
        return %s
      }
      return %inner
    }
    continue %g
  }
  %m = reduce([%x]) {axis=-1, identity=(0.0,)} : f32[] region (%a: f32[], %b: f32[]) {
    %ab = add(%a, %b) {rounding_mode=None, flush_to_zero=False} : f32[]
    yield %ab
  }
  return
}
"""


def names(values):
    return [v.name for v in values]


def heads(nodes):
    return [n.op.name if isinstance(n, Op) else type(n).__name__ for n in nodes]


@given(st.randoms())
@settings(max_examples=50)
def test_nodes_and_regions_are_those_of_a_walk(random):
    kernel = random_kernel(random)
    assert nodes_of(kernel) == list(walk(kernel.body)) and nodes_of(kernel) is nodes_of(kernel)
    found = list(regions(kernel.body))
    assert found[0] == (kernel.body, None)
    assert found[1:] == [(inner, n) for n in walk(kernel.body) for inner in regions_of(n)]


def test_walk_is_program_order_parents_first():
    k = parse(K)
    assert heads(walk(k.body)) == [
        "constant", "For", "Frame", "Bind", "If", "Return", "Yield", "add", "Frame", "Return", "Return", "Continue",
        "reduce", "add", "Yield", "Return"]
    assert heads(walk(k.body, lambda n: not isinstance(n, Frame))) == [
        "constant", "For", "Frame", "Continue", "reduce", "add", "Yield", "Return"]


def test_free_values_without_binds_and_block_parameters():
    k = parse(K)
    loop, reduction = k.body.nodes[1], k.body.nodes[2]
    assert names(free_values(k.body)) == ["n", "c", "x"]
    assert names(free_values(loop.body)) == ["c", "p"]
    assert names(free_values(loop.body.nodes[0].body)) == ["c", "p"]
    assert names(free_values(reduction.region)) == []


def test_uses_definitions_homes_bound():
    k = parse(K)
    loop = k.body.nodes[1]
    frame = loop.body.nodes[0]
    value = {v.name: v for n in walk(k.body) for v in uses_of(n)}
    assert heads(uses(k.body)[value["p"]]) == ["Return", "add", "add"]
    assert heads(uses(k.body)[value["one"]]) == ["For", "For"]
    d = definitions(k.body)
    assert d[value["p"]] is loop and d[loop.iv] is loop and d[value["g"]] is frame
    assert value["n"] not in d
    h = homes(k.body)
    assert h[value["s"]] is frame.body and h[value["g"]] is loop.body and value["p"] not in h
    assert {v.name for v in bound_values(k.body)} == {"p", "i", "one"}
    assert names(shown_values(frame.body.nodes[0].template)) == ["p", "i", "one"]
    assert shown_values(Known(1)) == ()


def test_returns_are_those_of_the_frame_itself():
    frame = parse(K).body.nodes[1].body.nodes[0]
    assert [names(r.operands) for r in returns(frame.body)] == [["p"], ["inner"]]


def test_blocks_with_their_nodes():
    k = parse(K)
    assert [None if n is None else heads([n])[0] for _, n in regions(k.body)] == [
        None, "For", "Frame", "If", "If", "Frame", "reduce"]


def test_substitute_changes_uses_and_shown_values_only():
    k = parse(K)
    loop = k.body.nodes[1]
    one, new = loop.start, Value(loop.start.type, "new")
    changed = substitute(loop, {one: new})
    assert names((changed.start, changed.stop, changed.step)) == ["new", "n", "new"]
    assert changed.body is loop.body and loop.start is one
    bind = loop.body.nodes[0].body.nodes[0]
    assert names(shown_values(substitute(bind, {one: new}).template)) == ["p", "i", "new"]
    assert substitute(bind, {new: one}) is bind and substitute(loop, {new: one}) is loop


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_rewrite_without_change_is_the_same_kernel(rng):
    k = random_kernel(rng)
    assert rewrite(k, lambda old, n: None) is k


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_free_values_agree_with_their_definition(rng):
    k = random_kernel(rng)
    for b, _ in regions(k.body):
        inside = set(b.params) | set(definitions(b))
        for region, n in regions(b):
            inside |= set(region.params) if isinstance(n, Op) else set()
        used = {v for n in walk(b) for v in uses_of(n)}
        assert set(free_values(b)) == used - inside
        assert len(free_values(b)) == len(set(free_values(b)))


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_rewrite_replaces_everywhere_and_leaves_the_old_kernel_alone(rng):
    """Each op is replaced by one with a new result: the program stays valid, and its text changes only in names."""
    k = random_kernel(rng)
    before = to_text(k)
    new: dict[Value, Value] = {}

    def change(old, n):
        if not isinstance(n, Op):
            return None
        results = tuple(Value(v.type, v.name) for v in n.results)
        new.update(zip(n.results, results, strict=True))
        return [replace(n, results=results)]

    changed = rewrite(k, change, new)
    assert to_text(k) == before == to_text(changed)
    check(changed)
    old_values = {v for n in walk(k.body) if isinstance(n, Op) for v in n.results}
    assert old_values.isdisjoint(v for n in walk(changed.body) for v in uses_of(n))
    assert old_values.isdisjoint(bound_values(changed.body))


def test_rewrite_removes_inserts_and_shares_what_stays():
    k = parse(K)

    def change(old, n):
        if isinstance(n, Op) and n.op is arithmetic.add and n.operands[0].name == "p":
            twice = Op(arithmetic.add, n.operands, n.attrs, (Value(n.results[0].type, "t"),), n.span)
            return [twice, replace(n, operands=(twice.results[0], n.operands[0]))]
        return [] if heads([n]) == ["Bind"] else None

    changed = rewrite(k, change)
    check(changed)
    text = to_text(changed, spans=False)
    assert "bind" not in text and "%s = add(%t, %p)" in text
    assert changed.body.nodes[2] is k.body.nodes[2]


def test_change_sees_the_old_node_and_the_new_one_after_its_blocks():
    k = parse(K)
    seen = []

    def change(old, n):
        seen.append((old, n))
        return [replace(n, operands=())] if isinstance(n, Return) and not n.operands else None

    changed = rewrite(k, change)
    assert heads(old for old, _ in seen) == ["constant", "Bind", "Return", "Yield", "If", "add", "Return", "Frame",
                                             "Return", "Frame", "Continue", "For", "add", "Yield", "reduce", "Return"]
    assert changed.body.nodes[-1] is not k.body.nodes[-1]


def test_nothing_recurses_along_nested_calls():
    k = parse(K)
    span = k.span
    body = Region([k.body.nodes[0], Return((), span)])
    for _ in range(5000):
        body = Region([Frame("f", span, body, (), span), Return((), span)])
    deep = Kernel("deep", (), (), body, span)
    assert sum(isinstance(n, Frame) for n in walk(body)) == 5000
    assert free_values(body) == ()
    gone = rewrite(deep, lambda old, n: [] if isinstance(n, Op) else None)
    assert not any(isinstance(n, Op) for n in walk(gone.body))


def test_unrolled_recursion_gives_results():
    def total(n):
        return 0 if n == 0 else n + (yield total(n - 1))

    assert run_recursive(total(10_000)) == 50_005_000


def test_values_of_a_template_as_deep_as_may_be():
    v = t = Value(TileType(int32))
    for _ in range(5000):
        t = Group("tuple", ("0", "1"), (t, Known(1)))
    assert shown_values(Group("tuple", ("0", "1"), (v, t))) == (v, v)


@pytest.mark.parametrize("body, found", [
    ("%3 = add(%1, %2) {rounding_mode=None, flush_to_zero=False} : i32[]\n    yield %3", "add"),
    ("%4 = frame f : i32[] {\n      %3 = add(%1, %2) {rounding_mode=None, flush_to_zero=False} : i32[]\n"
     "      return %3\n    }\n    yield %4", "add"),
    ("%4 = frame f : i32[] {\n      return %2\n    }\n    %3 = add(%1, %4) {rounding_mode=None, flush_to_zero=False}"
     " : i32[]\n    yield %3", "add"),
    ("%3 = add(%1, %2) {rounding_mode=None, flush_to_zero=False} : i32[]\n    yield %1", None),
    ("%3 = add(%1, %2) {rounding_mode=None, flush_to_zero=False} : i32[]\n"
     "    %4 = add(%3, %2) {rounding_mode=None, flush_to_zero=False} : i32[]\n    yield %4", None),
    ("yield %1", None),
])
def test_the_only_op_of_a_region(body, found):
    k = parse(f"""kernel k(%0: i32[8]) {{
  %9 = reduce([%0]) {{axis=-1, identity=(0,)}} : i32[] region (%1: i32[], %2: i32[]) {{
    {body}
  }}
  return
}}
""")
    region = k.body.nodes[0].region
    n = only_op(region)
    assert (n and n.op.name) == found and (n is None or list(n.operands) == list(region.params))
