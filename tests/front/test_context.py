import dataclasses

from cutile.dtypes import int32
from cutile.front.context import template_of
from cutile.ir.nodes import Group, Known, Shown, Value
from cutile.ir.terms import Dict, Leaf, Record, Static, Tuple
from cutile.ops._constants import loose
from cutile.types import TileType


@dataclasses.dataclass(frozen=True)
class P:
    x: int
    y: int


def test_what_debuggers_show_of_terms():
    x = Leaf(Value(TileType(int32)))
    assert template_of(x) is x.value
    assert template_of(Tuple((loose(1), Static("a"), Static(None)))) == Group(
        "tuple", (), (Known(1), Known("a"), Known(None))
    )
    assert template_of(Record(P, {"x": x, "y": loose(2)})) == Group("P", ("x", "y"), (x.value, Known(2)))
    assert template_of(Static(int32)) == Shown("int32")
    assert template_of(Dict({"a": loose(1)})) == Group("dict", ("a",), (Known(1),))
    assert isinstance(template_of(Static(len)), Shown)
