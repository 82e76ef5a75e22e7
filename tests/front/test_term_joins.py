import dataclasses

import pytest

from cutile.dtypes import float32, int8, int32
from cutile.front.closures import Captured, Level
from cutile.front.source_text import definition_of
from cutile.front.term_joins import Join, conflict, meets, same_structure, type_text, versus
from cutile.ir.build import Builder
from cutile.ir.leaves import leaves, rebuild
from cutile.ir.nodes import Value
from cutile.ir.terms import (
    POISON,
    Bound,
    Closure,
    Const,
    Dict,
    FString,
    IndexSlice,
    Leaf,
    PySlice,
    Range,
    RawMemory,
    Record,
    Static,
    Term,
    Tuple,
    View,
)
from cutile.ops._constants import loose, strict
from cutile.spans import Span
from cutile.types import ArrayType, PaddingMode, TileType

SPAN = Span("k.py", 1, 0, 1, 1, "k")


@dataclasses.dataclass(frozen=True)
class P:
    x: int
    y: int


def leaf(dtype=int32) -> Leaf:
    return Leaf(Value(TileType(dtype)))


def array() -> Leaf:
    return Leaf(Value(ArrayType(float32, 1)))


STRUCTURES = [
    lambda: leaf(),
    lambda: Tuple((leaf(), Tuple((leaf(float32),)))),
    lambda: Record(P, {"x": leaf(), "y": leaf()}),
    lambda: Dict({"a": leaf()}),
    lambda: FString(("n = ", (leaf(), "d"))),
    lambda: Bound(Static(len), leaf()),
    lambda: Range(leaf(), leaf(), leaf(), int32),
    lambda: PySlice(leaf(), Static(None), loose(1)),
    lambda: View(array(), (4,), (4,), PaddingMode.ZERO),
    lambda: RawMemory(array()),
    lambda: IndexSlice(leaf(), loose(4)),
]


@pytest.mark.parametrize("make", STRUCTURES)
def test_rebuild_puts_leaves_back_in_order(make):
    t = make()
    same = rebuild(t, leaves(t))
    assert [id(a) for a in leaves(same)] == [id(a) for a in leaves(t)]
    assert same_structure(t, same)


@pytest.mark.parametrize("make", STRUCTURES)
def test_joining_two_of_a_kind(make):  # JOIN-5, JOIN-6
    b, a, c = Builder(SPAN), make(), make()
    join = Join(2)
    t = join.merge([a, c])
    varying = [(x, y) for x, y in zip(leaves(a), leaves(c), strict=True) if not isinstance(x, Const)]
    assert same_structure(t, a)
    assert join.types == [x.type for x, _ in varying]
    assert join.operands(b, 0) == tuple(x.value for x, _ in varying)
    assert join.operands(b, 1) == tuple(y.value for _, y in varying)


@pytest.mark.parametrize("i", range(len(STRUCTURES)))
def test_different_kinds_do_not_join(i):  # JOIN-2
    for j, other in enumerate(STRUCTURES):
        assert same_structure(STRUCTURES[i](), other()) == (i == j)


DIFFERENT = [
    (leaf(), leaf(float32)), (loose(1), loose(1.0)), (loose(1), loose(2**40)), (Static("a"), Static("b")),
    (Static(int32), Static(float32)), (Static(None), leaf()), (Tuple((leaf(),)), Tuple((leaf(), leaf()))),
    (Dict({"a": leaf()}), Dict({"b": leaf()})), (FString(("a",)), FString(("b",))),
    (View(array(), (4,), (4,), PaddingMode.ZERO), View(array(), (2,), (2,), PaddingMode.ZERO)),
    (Static(True), Static(1)),
]


@pytest.mark.parametrize("a,b", DIFFERENT)
def test_conflicts(a, b):  # JOIN-2
    assert Join(2).merge([a, b]) is None
    assert Join(2).merge([a, a]) is not None


def test_equal_constants_stay():  # JOIN-1
    join = Join(2)
    assert join.merge([loose(4), loose(4)]).value == 4
    assert join.merge([strict(4, int32), strict(4, int32)]).loose is False
    assert join.results == []


@pytest.mark.parametrize("a,b", [(loose(1), loose(2)), (loose(0.0), loose(-0.0)), (loose(1), strict(1, int32))])
def test_unequal_constants_of_one_dtype_become_values(a, b):  # JOIN-1
    join = Join(2)
    assert isinstance(join.merge([a, b]), Leaf)
    assert len(join.results) == 1


def test_not_a_number_equals_itself():  # SPEC-1
    assert isinstance(Join(2).merge([loose(float("nan")), loose(float("nan"))]), Const)


def test_one_value_on_all_paths_needs_no_result():
    x = leaf()
    assert Join(2).merge([x, Leaf(x.value)]).value is x.value
    handed_out = Join(2, inside=True)
    assert handed_out.merge([x, Leaf(x.value)]).value is not x.value


@pytest.mark.parametrize("t", [POISON, Tuple((POISON, Static(None)))])
def test_poison_wins(t: Term):
    assert Join(2).merge([leaf(), t]) is POISON


def test_conflict_shows_both_lines_in_order():
    later = Span("k.py", 9, 0, 9, 1, "k")
    e = conflict("y", [loose(1.0), loose(1)], [later, SPAN]).error(later)
    assert e.message == "Type of `y` depends on path taken: int32 scalar vs. float32 scalar"
    assert [s.line for _, s in e.notes] == [1, 9]
    assert "ct.float32(…)" in e.help


def test_conflict_of_a_scalar_and_a_tile_says_how_to_begin():
    tile = Leaf(Value(TileType(float32, (16, 1))))
    for first in (loose(0), loose(0.0)):
        assert "ct.full((16, 1), …, ct.float32)" in conflict("y", [first, tile], [SPAN, SPAN]).error(SPAN).help


def test_texts():
    assert type_text(Tuple((loose(1), leaf(float32)))) == "tuple (int32 scalar, float32 scalar)"
    assert versus([loose(1), leaf(float32), leaf()]) == "int32 scalar vs. float32 scalar"


def view(padding_mode=PaddingMode.ZERO) -> View:
    return View(array(), (4,), (4,), padding_mode)


def closure(**captured: Term) -> Closure:
    definition = definition_of(view)
    level = Level(definition, {}, {}, None, frozenset(captured), captured)
    return Closure(definition, 0, {}, Captured((level,)))


def of(dtype, **fields: Term) -> Record:
    return Record(P, {"x": leaf(dtype), "y": leaf(), **fields})


@pytest.mark.parametrize("a,b,where", [
    (of(int32), of(float32), ".x is int32 scalar vs. float32 scalar"),
    (of(int32, y=Tuple((leaf(), of(int32)))), of(int32, y=Tuple((leaf(), of(float32)))),
     ".y[1].x is int32 scalar vs. float32 scalar"),
    (of(int32, y=Static("a")), of(int32, y=Static("b")), ".y is string 'a' vs. string 'b'"),
    (of(int32, y=view()), of(int32, y=view(PaddingMode.NAN)), "its padding mode of .y is ZERO vs. NAN"),
    (view(), view(PaddingMode.NAN), "its padding mode is ZERO vs. NAN"),
    (Dict({"k": of(int32)}), Dict({"k": of(float32)}), "['k'].x is int32 scalar vs. float32 scalar"),
    (FString(("n ", (leaf(), "d"))), FString(("n ", (leaf(), "4d"))), "its text is 'n {:d}' vs. 'n {:4d}'"),
    (FString(((leaf(), ""),)), FString(((leaf(float32), ""),)), "field 0 is int32 scalar vs. float32 scalar"),
    (Bound(Static(len), of(int32)), Bound(Static(len), of(float32)), ".x is int32 scalar vs. float32 scalar"),
    (Range(leaf(), leaf(), leaf(), int32), Range(leaf(int8), leaf(int8), leaf(int8), int8),
     "its dtype is int32 vs. int8"),
    (PySlice(leaf(), leaf(), Static(None)), PySlice(leaf(), leaf(int8), Static(None)),
     ".stop is int32 scalar vs. int8 scalar"),
    (closure(c=leaf()), closure(c=leaf(int8)), "its variable c is int32 scalar vs. int8 scalar"),
    (of(int32, y=closure(c=of(int32))), of(int32, y=closure(c=of(float32))),
     ".y, its variable c.x is int32 scalar vs. float32 scalar"),
    (Closure(definition_of(view), None, {"n": leaf()}), Closure(definition_of(view), None, {"n": leaf(int8)}),
     "the default of n is int32 scalar vs. int8 scalar"),
    (of(int32), Record(dataclasses.make_dataclass("P", ["x", "y"]), of(int32).fields), "its class is "),
])
def test_terms_that_read_alike_say_where_they_differ(a, b, where):  # JOIN-2
    assert not same_structure(a, b)
    text = type_text(a)
    assert versus([a, a, b]).startswith(f"{text} vs. {text} vs. {text}, where {where}")


def test_two_functions_in_one_line_read_alike():
    f, g = (Closure(definition_of(h), None) for h in (lambda: 1, lambda: 2))
    assert versus([f, g]) == f"{type_text(f)} vs. {type_text(g)}"


def test_conflicts_of_parts_say_how_to_convert_them():
    e = conflict("z", [of(int32), of(float32)], [SPAN, SPAN]).error(SPAN)
    assert "where .x is int32 scalar vs. float32 scalar" in e.message and "ct.float32(…)" in e.help


def test_scalars_meet_scalars_alone():  # ELT-4
    tile = Leaf(Value(TileType(int32, (4,))))
    assert meets(leaf(), leaf(float32)) and meets(loose(1), leaf(float32)) and meets(tile, tile)
    for x, y in ((tile, leaf()), (tile, leaf(float32)), (tile, loose(1)), (array(), leaf()), (array(), loose(1.0))):
        assert not meets(x, y) and not meets(y, x)


def test_closures_whose_scopes_have_ended():  # JOIN-6
    d = definition_of(lambda: None)

    def table(*names):
        level = Level(d, {}, {}, None, frozenset(names), {n: leaf() for n in names})
        return Captured((level, level))

    one, other = table("a"), table("b")
    shared = Captured(one.levels)
    at = {  # scope, table
        "first level": (0, one), "the same": (0, shared), "second level": (1, one), "another table": (0, other),
        "inside a table": (0, None), "second inside a table": (1, None),
    }
    closures = {name: Closure(d, scope, {}, captured) for name, (scope, captured) in at.items()}
    equal = {("first level", "the same"), ("the same", "first level")}
    for a, x in closures.items():
        for b, y in closures.items():
            assert bool(same_structure(x, y)) == (a == b or (a, b) in equal), (a, b)
    assert same_structure(Closure(d, 0), Closure(d, 0))
