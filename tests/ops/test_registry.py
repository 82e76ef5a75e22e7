"""Every op of the registry is complete: page, clauses, rule, and a meaning that fits its operands and attributes."""

from __future__ import annotations

import inspect
from collections import Counter

import pytest

import cutile as ct
import cutile.ops
from cutile.errors import TileError
from cutile.ops import math as math_ops
from cutile.ops._documentation import spelling
from cutile.ops._op import (
    ATOMIC,
    GIVEN,
    HOST,
    PURE,
    READ,
    WRITE,
    OpDef,
    lookup,
    meaning_doc,
    methods,
    op,
    registry,
    typing_rule,
)
from tests.ops.ruling import Bench
from tools.docgen.op_clauses import clauses, parse_clauses

OPS = list(registry().values())
every_op = pytest.mark.parametrize("o", OPS, ids=[o.name for o in OPS])
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def composite(o) -> bool:
    """Whether the rule makes other ops: no node of this one exists, and its function has a docstring only."""

    def empty():
        """A page."""

    return o.meaning.__code__.co_code == empty.__code__.co_code


def test_all_families_are_there():
    families = {m.__name__.rpartition(".")[2] for m in cutile.ops.FAMILIES}
    assert families == {o.family for o in OPS}


@every_op
def test_page(o):
    assert o.__doc__ and o.__doc__.strip(), f"{o.name} has no docstring"
    first = inspect.cleandoc(o.__doc__).splitlines()[0]
    assert first and not first.startswith("["), f"{o.name}: the page begins with no sentence"
    if o.public or o.method:
        assert first == spelling(o)
        assert clauses(o), f"{o.name} is the user's and states no clause"


@every_op
def test_every_line_that_looks_like_a_clause_is_one(o):
    """`[ID]`, two spaces, the text."""
    lines = inspect.cleandoc(meaning_doc(o)).splitlines()
    looks = [line for line in lines if line.startswith("[") and line[1:2].isupper() and "]" in line]
    assert len(looks) == len(clauses(o)), f"{o.name}: not read as a clause: " + "; ".join(
        line for line in looks if line[1:line.index("]")] not in clauses(o))
    assert all(text.strip() for text in clauses(o).values())


@every_op
def test_traits_fit_each_other(o):
    assert (o.accesses is not None) == (o.effect in (READ, WRITE, ATOMIC))
    assert not (o.elementwise and o.moves_data) and not (o.accumulates and (o.elementwise or o.moves_data))
    if o.elementwise or o.moves_data or o.accumulates:
        assert o.effect == PURE and o.operands or composite(o)
    assert not o.modes or "rounding_mode" in o.__signature__.parameters
    assert not o.divides or len(o.operands) == 2
    assert o.error_bound is None or o.elementwise


def call_on_literals(o: OpDef) -> None:
    """Without `loose=`, a kernel that calls an op whose rule folds ends in a TileInternalError."""
    for x in (True, 2, 0.5):
        try:
            Bench().call(o, *[x] * len(o.operands))
        except TileError:  # the literal is refused
            pass


def takes_numbers_alone(o: OpDef) -> bool:
    """Whether users call an elementwise op with its operands and nothing else."""
    given = [p.name for p in o.__signature__.parameters.values() if p.default is p.empty]
    return o.elementwise and (o.public or o.method is not None) and given == list(o.operands)


@pytest.mark.parametrize("o", list(filter(takes_numbers_alone, OPS)), ids=lambda o: o.name)
def test_an_op_whose_rule_folds_has_loose(o):
    call_on_literals(o)


def test_an_op_without_loose_is_found():
    def meaning(x, /):
        """A page."""

    incomplete = op(math_ops.float_unary, name="incomplete", language=False)(meaning)
    try:
        with pytest.raises(AssertionError, match="incomplete has no loose="):
            call_on_literals(incomplete)
    finally:
        del registry()["incomplete"]


@pytest.mark.parametrize("o", [o for o in OPS if o.accesses], ids=lambda o: o.name)
def test_an_access_names_every_operand_once(o):
    a = o.accesses
    names = ["array", *a.index, *a.values, *filter(None, (a.mask, a.padding))]
    assert sorted(names) == sorted(n.strip("*?") for n in o.operands) and o.operands[0] == "array"
    assert bool(a.values) == (o.effect in (WRITE, ATOMIC)) and a.index


def test_an_op_has_what_its_rule_contributes():
    @typing_rule(elementwise=True, exact=True)
    def rule(b, op, x):
        """A rule."""

    def meaning(x, /):
        """A page."""

    assert (o := op(rule, name="contributed")(meaning)).elementwise and o.exact
    assert not op(rule, name="overridden", elementwise=False)(meaning).elementwise
    for name in ("contributed", "overridden"):
        del registry()[name]


def test_clauses_of_a_family():
    text = "[MY-1.{name}.a]  {name} is {short}\n\n[MY-1.{short}]  b"

    @typing_rule(clauses=text)
    def rule(b, op, x):
        """A rule."""

    def own(x, /):
        """A page.

            [[1, 2]]

        [MY-1.t]  not b
        [MY-2.t]  c
            and more
        """

    def none(x, /):
        """A page."""

    first = op(rule, name="first", short="t")(own)
    without = op(rule, name="without", language=False)(none)
    assert not clauses(without)
    second = op(rule, name="second")(none)
    for name in ("first", "second", "without"):
        del registry()[name]
    assert list(clauses(first).items()) == [("MY-1.first.a", "first is t"), ("MY-1.t", "not b"),
                                            ("MY-2.t", "c and more")]
    assert clauses(second) == {"MY-1.second.a": "second is second", "MY-1.second": "b"}


@every_op
def test_the_rule_takes_the_builder_the_op_and_every_parameter(o):
    terms = dict.fromkeys(o.__signature__.parameters)
    try:
        inspect.signature(o.rule).bind(None, o, **terms)
    except TypeError as e:
        pytest.fail(f"the rule of {o.name} cannot be called as rule(b, op, {', '.join(terms)}): {e}")


@every_op
def test_the_meaning_takes_operands_first_then_attributes_by_name(o):
    if composite(o):
        return
    params = list(inspect.signature(o.meaning).parameters.values())
    operands, rest = params[:len(o.operands)], params[len(o.operands):]
    assert [p.name for p in operands] == [n.strip("*?") for n in o.operands], f"{o.name}: operands {o.operands}"
    assert all(p.kind in POSITIONAL for p in operands), f"{o.name}: operands are passed by position"
    for p in rest:
        assert p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL), f"{o.name}: attribute {p.name} comes by name"
        if p.name in GIVEN:
            assert p.kind is p.KEYWORD_ONLY and p.name not in o.__signature__.parameters


@every_op
def test_properties(o):
    assert not (composite(o) and (o.tileir or o.given)), f"{o.name} lacks a meaning"
    assert o.effect in (PURE, READ, WRITE, ATOMIC, HOST)
    assert lookup(o.name) is o
    assert o.__module__.startswith("cutile.ops.")
    assert o.loose is None or callable(o.loose)


@every_op
def test_public_ops_are_names_of_the_package(o):
    if o.public:
        assert getattr(ct, o.name, None) is o, f"ct.{o.name} is not the op"


@every_op
def test_on_the_host(o):
    if o.host is None:
        with pytest.raises(RuntimeError, match=rf"ct\.{o.name}\(\) works in tile code only"):
            o()


def test_clause_ids_are_unique():
    count = Counter(clause for o in OPS for clause in clauses(o))
    twice = {c: [o.name for o in OPS if c in clauses(o)] for c, n in count.items() if n > 1}
    assert not twice


def test_methods_are_registered_once_and_bound_to_what_has_methods():
    assert {kind for kind, _ in methods()} <= {"tile", "array", "view", "raw"}
    for key, o in methods().items():
        assert o.method == key and lookup(o.name) is o


# ------------------------------------------------------------------ the registry itself


def test_a_second_op_of_a_name_is_refused():
    assert "add" in registry()
    with pytest.raises(AssertionError, match="op add is defined twice"):
        op(lambda b, op: None, name="add")(lambda: None)


def test_flatten_and_group_are_inverse():
    o = OpDef(lambda array, index, mask=None: None, lambda b, op: None, name="o", operands="array *index mask?")
    for groups in (["a", ("i", "j"), "m"], ["a", (), None]):
        assert o.group(*o.flatten(groups)) == groups
    with pytest.raises(AssertionError, match="operand array is missing"):
        o.flatten([None, (), None])
    with pytest.raises(AssertionError, match="2 operands"):
        o.flatten(["a", ()])


def test_parse_clauses_reads_continued_lines_and_refuses_a_clause_twice():
    assert parse_clauses("""A page.

        [UN-4.exp2.ninf]  exp2(-inf) is
            +0
        [MEM-2]  text
        not continued
        """) == {"UN-4.exp2.ninf": "exp2(-inf) is +0", "MEM-2": "text"}
    with pytest.raises(AssertionError, match="stands twice"):
        parse_clauses("[A-1]  x\n[A-1]  y")
