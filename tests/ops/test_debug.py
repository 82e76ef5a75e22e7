import enum
import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from cutile.dtypes import bool_, float16, float32, float64, int8, int32, int64, uint8, uint64
from cutile.errors import TileTypeError
from cutile.ir.terms import Const, Dict, FString, Leaf, Record, Static, Tuple
from cutile.ops import debug
from cutile.ops._constants import const_term, loose, strict
from cutile.types import RoundingMode
from tests.ops.combining import Calling
from tests.ops.ruling import SPAN, Bench, term


class Blocks:
    """Running blocks for printing and failing: `count` blocks along one batch axis, or one block."""

    def __init__(self, count=None):
        self.count, self.out, self.failures = count, [], []

    def each(self, sig, operands):
        if self.count is None:
            return iter([tuple(operands)])
        cores = [t.ndim for t in sig.operands]
        wide = [x if x.ndim > n else np.broadcast_to(x, (self.count, *x.shape))
                for x, n in zip(operands, cores, strict=True)]
        return iter([tuple(x[k] for x in wide) for k in range(self.count)])

    def write(self, texts):
        self.out.append(list(texts))

    def fail(self, sig, cond, message):
        self.failures.append((np.asarray(cond).tolist(), message))


def bench(count=None):
    w = Bench(Blocks(count))
    w.b = Calling(SPAN)
    return w


def printed(w, op, *args, **kwargs):
    result = w.call(op, *args, **kwargs)
    assert isinstance(result, Static) and result.obj is None
    w._run()
    texts = [t for texts in w.ctx.out for t in texts]
    w.ctx.out.clear()
    return "".join(texts)


def fields(*parts):
    return FString(tuple((term(p[0]), p[1]) if isinstance(p, tuple) else p for p in parts))


# ------------------------------------------------------------------ print


@dataclass(frozen=True)
class Point:
    x: int
    y: int = field(default=2, repr=True)


@dataclass(frozen=True)
class Named:
    x: int

    def __str__(self):
        return FString(("Named ", (self.fields["x"], "")))


@dataclass(frozen=True)
class Shown:
    x: int

    def __repr__(self):
        return const_term("shown!")


class Color(enum.Enum):
    RED = 1


def as_method(cls, name):
    """Combine benches call functions with the builder first; methods get the record after it."""
    f = cls.__dict__[name]
    setattr(cls, name, lambda b, self: f(self))


as_method(Named, "__str__")
as_method(Shown, "__repr__")


def test_constants_by_python_and_separators():
    w = bench()
    assert printed(w, debug.print, 5, 2.5, True, "a%d") == "5 2.5 True a%d\n"
    assert printed(w, debug.print, math.nan, 1e10, None) == "nan 10000000000.0 None\n"
    assert printed(w, debug.print, strict(300, int8), strict(0.1, float32)) == "44 0.10000000149011612\n"
    assert printed(w, debug.print, 1, 2, 3, sep="-", end="!") == "1-2-3!"
    assert printed(w, debug.print) == "\n"
    assert printed(w, debug.print, end="") == ""


def test_formatted_separators():
    w = bench()
    x = w.tile(7, int32)
    assert printed(w, debug.print, 1, 2, sep=fields("<", (x, ""), ">"), end=fields((x, "03"))) == "1<7>2007"


def test_run_time_values_by_default_formats():
    w = bench()
    for values, dtype, want in (
            (-5, int32, "-5"), (True, bool_, "1"), (250, uint8, "250"), (2**63, uint64, str(2**63)),
            (-2**40, int64, str(-2**40)), (2.5, float32, "2.500000"), (0.1, float64, "0.100000"),
            (1.5, float16, "1.500000"), (math.inf, float32, "inf")):
        assert printed(w, debug.print, w.tile(values, dtype)) == want + "\n"
    assert printed(w, debug.print, "t =", w.tile([[1, 2], [3, 4]], int32)) == "t = [[1, 2], [3, 4]]\n"
    assert printed(w, debug.print, w.tile([1.0], float32)) == "[1.000000]\n"


def test_structures():
    w = bench()
    x = w.tile(3, int32)
    assert printed(w, debug.print, (x, "b", None)) == "(3, 'b', None)\n"
    assert printed(w, debug.print, (), (1,), ((2.5,), "it's")) == "() (1,) ((2.5,), \"it's\")\n"
    assert printed(w, debug.print, Record(Point, {"x": x, "y": loose(2)})) == "Point(x=3, y=2)\n"
    assert printed(w, debug.print, Record(Named, {"x": x})) == "Named 3\n"
    assert printed(w, debug.print, (Record(Named, {"x": x}),)) == "(Named(x=3),)\n"
    assert printed(w, debug.print, (Record(Shown, {"x": x}),), Record(Shown, {"x": x})) == "(shown!,) shown!\n"
    objects = [Static(float16), Static(RoundingMode.RN), Static(Color.RED)]
    assert printed(w, debug.print, *objects) == "float16 RoundingMode.RN Color.RED\n"
    assert printed(w, debug.print, Static(as_method)) == repr(as_method) + "\n"
    assert printed(w, debug.print, Dict({"k": x})) == "{'k': 3}\n"
    assert printed(w, debug.print, w.array(None, float32, 2)) == "<object of type float32 array of rank 2>\n"


def test_formatted_strings():
    w = bench()
    x, f = w.tile(42, int32), w.tile([0.5, -1.25], float32)
    text = fields("x=", (x, "5"), " ", (x, "<5"), "|", (x, "#x"), " f=", (f, ".2"), " %")
    assert printed(w, debug.print, text) == "x=   42 42   |0x2a f=[0.50, -1.25] %\n"
    text = fields((True, ""), " ", (2.5, ""), " ", (7, "03d"), " ", (2.5, "+.1e"))
    assert printed(w, debug.print, text) == "1 2.500000 007 +2.5e+00\n"
    assert printed(w, debug.print, fields((Static("s"), ""), " ", ((x, 1), ""))) == "s (42, 1)\n"
    assert printed(w, debug.print, fields((fields("in ", (x, "4")), ""), "|")) == "in   42|\n"


def test_each_value_is_one_operand():
    w = bench()
    x = w.tile(1, int32)
    w.call(debug.print, x, x, fields((x, "3")))
    n = w.b.region.nodes[-1]
    assert n.op is debug.emit_text and n.operands == (x.value,)
    assert n.attrs["parts"] == ((0, "%d"), " ", (0, "%d"), " ", (0, "%3d"), "\n")


def test_once_per_block_in_order():
    w = bench(3)
    x, y = w.tile([4, 5, 6], int32, ()), w.tile([[1, 2]], int32)
    w.call(debug.print, x, y)
    w.call(debug.print, "end")
    w._run()
    assert w.ctx.out == [["4 [[1, 2]]\n", "5 [[1, 2]]\n", "6 [[1, 2]]\n"], ["end\n"] * 3]


@pytest.mark.parametrize("spec", ["f", "s", "b", ",", "x>3"])
def test_refused_specs(spec):
    w = bench()
    with pytest.raises(TileTypeError, match="int32"):
        w.call(debug.print, fields((w.tile(1, int32), spec)))


def test_refused_prints():
    w = bench()
    for name in ("sep", "end"):
        for bad in (None, 1, w.tile(1, int32)):
            with pytest.raises(TileTypeError, match=name):
                w.call(debug.print, 1, **{name: bad})
    with pytest.raises(TileTypeError, match="format spec"):
        w.call(debug.print, fields(((1, 2), "3")))
    with pytest.raises(TileTypeError, match="format spec"):
        w.call(debug.print, fields((Static("s"), "3")))


def test_text_of_is_an_fstring_for_str():
    w = bench()
    x = w.tile(1, int32)
    assert debug.text_of(w.b, Tuple((loose(1), Static("a"), loose(2)))).parts == ("(1, 'a', 2)",)
    assert debug.text_of(w.b, Static("a")).parts == ("a",) and debug.repr_of(w.b, Static("a")).parts == ("'a'",)
    [(t, spec)] = debug.text_of(w.b, x).parts
    assert t is x and spec == ""


# ------------------------------------------------------------------ printf


def test_printf():
    w = bench()
    x, f = w.tile([1, -2], int32), w.tile(0.5, float64)
    got = printed(w, debug.printf, "%d%% %5.1f|%-6x|%e", x, f, 255, 1.0)
    assert got == "[1, -2]%   0.5|ff    |1.000000e+00"
    assert printed(w, debug.printf, "plain") == "plain"
    assert printed(w, debug.printf, "%lld %hhd", w.tile(2**40, int64), w.tile(300, int32)) == f"{2**40} 44"
    assert printed(w, debug.printf, "%d %u", True, w.tile(True, bool_)) == "1 1"


@pytest.mark.parametrize("args, match", [
    (("%d",), "1 conversions for 0"), (("x", 1), "0 conversions for 1"), (("%f", 1), "#2"), (("%d", 1.5), "#2"),
    (("%d %d", 1, None), "#3"), (("%s", 1), "no conversion"), ((1,), "format"), ((None,), "format"),
    (("%d", (1,)), "#2"),
])
def test_refused_printfs(args, match):
    with pytest.raises(TileTypeError, match=match):
        bench().call(debug.printf, *args)


# ------------------------------------------------------------------ assert_ and breakpoint


def test_assert_passes_its_condition_on():
    w = bench()
    assert w.call(debug.assert_, w.tile([True, False], bool_), "no").obj is None
    w.call(debug.assert_, False)
    w._run()
    assert w.ctx.failures == [([True, False], "no"), (False, None)]


@pytest.mark.parametrize("args, match", [
    ((1,), "bool_"), (([1, 2],), "bool_"), ((None,), "cond"), ((True, 5), "message"), ((True, fields("x")), "message"),
])
def test_refused_asserts(args, match):
    w = bench()
    args = [w.tile(a, int32) if isinstance(a, list) else a for a in args]
    with pytest.raises(TileTypeError, match=match):
        w.call(debug.assert_, *args)


def test_breakpoint_stays_in_the_program():
    w = bench()
    w.call(debug.breakpoint)
    w.call(debug.breakpoint, kind="set_trace")
    w._run()
    assert [n.attrs["kind"] for n in w.b.region.nodes] == ["breakpoint", "set_trace"]
    assert all(n.op.effect == "host" for n in w.b.region.nodes)


def test_nothing_is_printed_while_typing(capsys):
    w = bench()
    w.call(debug.print, 1)
    assert capsys.readouterr().out == "" and w.ctx.out == []
    assert not isinstance(w.call(debug.print, 1), Const | Leaf)
