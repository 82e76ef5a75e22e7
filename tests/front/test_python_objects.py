"""Captured objects and attributes [OBJ-*, EX-5, ARR-4, TILE-4, TV-4]."""

import collections
import enum
import math

import numpy as np
import pytest

import cutile as ct
from tests.front.compiling import A1, A2, ARRAYS, I32, cell, constant, refused, typed


class Color(enum.Enum):
    RED = 1


Pair = collections.namedtuple("Pair", "a b")


class Sizes(tuple):
    pass


def test_subclasses_of_tuple():  # OBJ-5
    """Both are tuples; the fields of a named tuple are attributes, in tile code and in static code."""
    pair, sizes = Pair(2, Pair(3, "x")), Sizes((4, 5))
    assert constant(lambda: pair) == (2, (3, "x"))
    assert constant(lambda: (sizes[1], len(sizes), sizes + (1,))) == (5, 2, (4, 5, 1))
    assert constant(lambda: pair.a + pair.b.a) == 5
    assert constant(lambda: ct.static_eval(pair.b.b + str(type(pair) is Pair))) == "xTrue"
    assert constant(lambda: ct.static_eval(pair.b)) == (3, "x")
    assert constant(lambda: ct.static_eval(Pair(7, 8)).b) == 8

    def kept(flag):
        p, s = pair, 0
        for _ in range(3):
            s += p.a
            if flag:
                p = ct.static_eval(Pair(2, pair.b))
        f = lambda: p
        s += f().b.a

    typed(kept, I32)
    refused(cell("def k(): v.c", v=pair)["k"], at="v.c", says="a Pair has no attribute `c`", help="fields are a, b")


def test_what_can_be_captured():  # OBJ-5
    values = (True, 3, 2.5, "a", None, ..., Color.RED, (1, ("x", None)), ct.int8, np.float32, math, len, Color, int,
              ct.RoundingMode.RZ, ct.PaddingMode)
    for value in values:
        got = constant(lambda: value)
        assert got is value or got == value


def test_numpy_scalars():  # OBJ-5
    for value in (np.int16(3), np.float64(0.1), np.bool_(True), np.float16(1.5), np.uint8(200)):
        assert constant(lambda: value) == value
        assert constant(lambda: value.dtype).name.rstrip("_") == value.dtype.name.rstrip("_")
    refused(cell("def k(): z", z=np.complex64(1))["k"], says="NumPy complex64 scalar")


@pytest.mark.parametrize(
    "value,says,help",
    [
        ([1], "`v` is a list", "tuple"),
        (Pair(1, [2]), "`v[1]` is a list", ""),
        ({}, "`v` is a dict", "static_eval"),
        ({1}, "`v` is a set", ""),
        (np.zeros(3), "host array (numpy.ndarray of shape (3,))", "add a parameter for `v`"),
        (object(), "`v` is an object", ""),
        (1j, "`v` is a complex", ""),
        (b"", "`v` is a bytes", ""),
        ((1, [2]), "`v[1]` is a list", ""),
    ],
)
def test_what_cannot(value, says, help):  # OBJ-4
    refused(cell("def k(): v", v=value)["k"], at="v", says=says, help=help)


def test_captured_arrays_run_none_of_their_code():
    class Loud(np.ndarray):
        __array_interface__ = shape = dtype = __dlpack__ = property(lambda self: 1 / 0)

    class Other:
        __array_interface__ = shape = property(lambda self: 1 / 0)

    refused(cell("def k(): v", v=np.zeros(3).view(Loud))["k"], at="v", says="Loud of shape (3,))", help="add a parameter")
    refused(cell("def k(): v", v=Other())["k"], at="v", says="Other)", help="add a parameter for `v`")


def test_big_captured_integer():  # LOOSE-2
    refused(cell("def k(): v", v=2**70)["k"], at="v", cls=ct.TileValueError)


def test_unused_captures_are_not_looked_at():
    big = [1]
    typed(lambda: None if True else big)  # EX-14: only the taken side


def test_tile_attributes():  # TILE-2, TILE-3
    def f():
        t = ct.zeros((2, 4), ct.float16)
        return t.dtype, t.shape, t.ndim, (5).dtype, (5).shape, (2.5).ndim

    assert constant(f) == (ct.float16, (2, 4), 2, ct.int32, (), 0)


@pytest.mark.parametrize(
    "name,help",
    [
        ("T", "ct.transpose(x)"),
        ("sum", "ct.sum(x, axis)"),
        ("mean", "ct.lib.mean(x, axis)"),
        ("reshap", "did you mean `reshape`?"),
        ("__add__", ""),
        ("size", "x.shape"),
    ],
)
def test_unknown_tile_attributes(name, help):  # TILE-4
    k = cell(f"def k():\n    t = ct.zeros((4,), ct.int32)\n    t.{name}")["k"]
    refused(k, at=f"t.{name}", says=f"an int32 tile of shape (4,) has no attribute `{name}`", help=help)


def test_array_attributes():  # ARR-3, ARR-4
    def k(x):
        d, n, s = x.dtype, x.ndim, len(x.strides)
        ct.static_assert((d, n, s) == (ct.float32, 2, 2))
        a, b = x.shape
        ct.assert_(a > b)

    typed(k, A2)
    for name in ("T", "size", "reshape", "sum", "copy", "flat", "dtyp"):
        refused(
            cell(f"def k(x): x.{name}")["k"],
            A2,
            at=f"x.{name}",
            says=f"a float32 array of rank 2 has no attribute `{name}`",
        )


def test_array_sizes_are_run_time_values():  # ARR-3
    def k(x):
        ct.zeros((x.shape[0],), ct.int32)

    refused(k, A1, says="not constant")


def test_static_sizes_are_constants():  # ARR-3, ANN-3
    from cutile.types import ArrayType

    def k(x):
        ct.zeros((x.shape[0],), ct.int32)
        n = x.strides[1]
        ct.static_assert(n == 1)

    typed(k, ArrayType(ct.float32, 2, static_shape=(8, None), static_strides=(None, 1)))


def test_view_and_memory_attributes():  # TV-4, RAWMEM-1
    def k(x):
        v, m = x.tiled_view((2, 4)), x.get_raw_memory()
        a, b, c, d = v.dtype, v.tile_shape, v.traversal_steps, m.dtype
        ct.static_assert((a, b, c, d) == (ct.float32, (2, 4), (2, 4), ct.float32))

    typed(k, A2)
    for source in ("x.tiled_view((2, 4)).shape", "x.tiled_view((2, 4)).padding_mode", "x.get_raw_memory().shape"):
        refused(cell(f"def k(x): {source}")["k"], A2, at=source, says="has no attribute")


@pytest.mark.parametrize(
    "source",
    [
        "xs.shape",
        "ct.int8.name",
        "ct.int8.bitwidth",
        "(1, 2).index",
        "'a'.upper",
        "None.x",
        "(lambda: 1).x",
        "range(3).start",
        "slice(1, 2, None).start",
        "ct.Slice(0, 4).start",
        "len.x",
        "make(a=1).items",
        "Color.RED.x",
        "int.from_bytes",
        "ct.Tile.sum",
        "ct.Array.load",
    ],
)
def test_no_such_attribute(source):  # EX-5, DT-1, CV-5, ADV-2
    k = cell(f"def make(**d): return d\ndef k(xs): {source}", Color=Color)["k"]
    refused(k, ARRAYS, at=source)


def test_missing_name_in_ct_offers_the_idiom():
    for name, idiom in (
        ("sigmoid", "ct.lib.sigmoid(x)"),
        ("mean", "ct.lib.mean(x, axis)"),
        ("zeros_like", "ct.zeros(x.shape, x.dtype)"),
        ("var", "ct.lib.var(x, axis)"),
        ("program_id", "ct.bid(axis)"),
        ("trans", "ct.transpose(x)"),
        ("logical_and", "x & y"),  # not atomic_and, the nearest name
        ("fmax", "ct.maximum(x, y)"),  # the second argument of ct.max is the axis
        ("maxium", "did you mean `maximum`?"),
    ):
        refused(
            cell(f"def k(n): ct.{name}(n)")["k"], I32, at=f"ct.{name}", says=f"has no attribute `{name}`", help=idiom
        )


def test_poisoned_receiver_is_silent():
    refused(cell("def k(): nothing.a.b(1)[2] + 3")["k"], cls=ct.TileSyntaxError, at="nothing")


def test_parameters():
    def k(n):
        ct.static_assert(ct.static_eval(n.dtype) == ct.int32)

    refused(k, I32, cls=ct.TileStaticEvalError, says="static_eval() cannot be used inside static_assert()")
