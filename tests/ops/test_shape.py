"""Shape operations against an element-by-element oracle on Python's nested indices."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutile import dtypes as d
from cutile.errors import TileTypeError
from cutile.ir.terms import NONE, Const, PySlice, Static
from cutile.ops import shape as sh
from tests.ops.ruling import Bench, constant_of, term

FULL = PySlice(NONE, NONE, NONE)
DOTS = Static(Ellipsis)
LEADS = [(), (3,), (2, 1, 3)]


def counted(k, shape, dtype=d.int32, lead=()):
    return k.tile(np.arange(math.prod(lead) * math.prod(shape)).reshape(lead + shape), dtype, shape)


def spots(shape):
    return itertools.product(*map(range, shape))


# ------------------------------------------------------------------ reshape, broadcast_to, expand_dims, item


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("shape, to, result", [
    ((2, 4), (8,), (8,)), ((2, 4), (4, -1), (4, 2)), ((2, 4), (-1,), (8,)), ((1,), (), ()), ((), (1, 1), (1, 1)),
    ((), (-1,), (1,)), ((2, 4), (1, 2, -1, 2), (1, 2, 2, 2)),
])
def test_reshape_keeps_row_major_order(shape, to, result, lead):
    k = Bench()
    x = counted(k, shape, lead=lead)
    r = k.call(sh.reshape, x, to)
    assert r.type.shape == result
    assert k.value(r).reshape(-1).tolist() == list(range(math.prod(lead) * math.prod(shape)))


def test_reshape_to_the_same_shape_is_x():
    k = Bench()
    x = counted(k, (2, 4))
    assert k.call(sh.reshape, x, (2, 4)) is x and k.call(sh.reshape, x, (-1, 4)) is x
    c = k.call(sh.reshape, 5, ())
    assert isinstance(c, Const) and c.loose


@pytest.mark.parametrize("to", [8, (3,), (0, 8), (-1, -1), (-2, 4), (3, -1), (2.0, 4), (True, 8), None, ()])
def test_reshape_refuses(to):
    k = Bench()
    with pytest.raises(TileTypeError, match='Invalid argument "shape" of reshape'):
        k.call(sh.reshape, counted(k, (2, 4)), to)


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("shape, to", [((), (2, 4)), ((4,), (2, 4)), ((2, 1), (2, 4)), ((1,), (1, 1, 8)),
                                       ((2, 4), (2, 4))])
def test_broadcast_to(shape, to, lead):
    k = Bench()
    x = counted(k, shape, lead=lead)
    r = k.call(sh.broadcast_to, x, to)
    got, source = k.value(r), k.value(x)
    assert r.type.shape == to and got.shape == lead + to
    for at in spots(to):
        own = [0 if s == 1 else i for s, i in zip(shape, at[len(at) - len(shape):])]
        assert (got[(..., *at)] == source[(..., *own)]).all()


@pytest.mark.parametrize("to", [(4,), (2, 8), (3, 2, 4), 4, (2, 4, 1)])
def test_broadcast_to_refuses(to):
    k = Bench()
    with pytest.raises(TileTypeError, match='"shape" of broadcast_to'):
        k.call(sh.broadcast_to, counted(k, (2, 4)), to)


@pytest.mark.parametrize("axis, want", [(0, (1, 2, 4)), (1, (2, 1, 4)), (2, (2, 4, 1)), (-1, (2, 4, 1)),
                                        (-3, (1, 2, 4))])
def test_expand_dims(axis, want):
    k = Bench()
    r = k.call(sh.expand_dims, counted(k, (2, 4)), axis)
    assert r.type.shape == want and k.value(r).reshape(-1).tolist() == list(range(8))


@pytest.mark.parametrize("axis", [3, -4, 1.0, None, (0,)])
def test_expand_dims_refuses(axis):
    k = Bench()
    with pytest.raises(TileTypeError, match='"axis" of expand_dims'):
        k.call(sh.expand_dims, counted(k, (2, 4)), axis)


def test_item():
    k = Bench()
    r = k.call(sh.item, k.tile([[7]], d.int16))
    assert r.type.shape == () and k.value(r) == 7
    with pytest.raises(TileTypeError, match="exactly one element") as e:
        k.call(sh.item, counted(k, (2,)))
    assert "ct.extract" in e.value.help


# ------------------------------------------------------------------ permute, transpose, cat


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("axes", [*itertools.permutations(range(3)), (-1, 0, -2)])
def test_permute(axes, lead):
    k = Bench()
    shape = (2, 4, 8)
    x = counted(k, shape, lead=lead)
    r = k.call(sh.permute, x, axes)
    assert r.type.shape == tuple(shape[a] for a in axes)
    got, source = k.value(r), k.value(x)
    for at in spots(r.type.shape):
        own = [0, 0, 0]
        for i, a in enumerate(axes):
            own[a] = at[i]
        assert (got[(..., *at)] == source[(..., *own)]).all()


@pytest.mark.parametrize("axes", [(0, 0), (0, -2), (0,), (0, 1, 2), (0, 2), (0, 1.0), 0])
def test_permute_refuses(axes):
    k = Bench()
    with pytest.raises(TileTypeError, match='"axes" of permute'):
        k.call(sh.permute, counted(k, (2, 4)), axes)


def test_transpose():
    k = Bench()
    assert k(sh.transpose, k.tile([[1, 2], [3, 4]], d.int8)).tolist() == [[1, 3], [2, 4]]
    x = counted(k, (2, 4, 8))
    assert k.call(sh.transpose, x, 0, -1).type.shape == (8, 4, 2)
    assert k.call(sh.transpose, x, axis0=-2, axis1=-1).type.shape == (2, 8, 4)
    for args in ((), (0,), (None, 1), (0, 3)):
        with pytest.raises(TileTypeError, match="of transpose"):
            k.call(sh.transpose, x, *args)
    with pytest.raises(TileTypeError, match="rank 2 or more"):
        k.call(sh.transpose, counted(k, (2,)))


@pytest.mark.parametrize("lead, other", [((), ()), ((3,), ()), ((), (2, 1, 3)), ((2, 1, 1), (1, 1, 3))])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cat(axis, lead, other):
    k = Bench()
    x, y = counted(k, (2, 4), lead=lead), counted(k, (2, 4), lead=other)
    r = k.call(sh.cat, (x, y), axis)
    shape = (4, 4) if axis == 0 else (2, 8)
    assert r.type.shape == shape
    got = k.value(r)
    assert got.shape == np.broadcast_shapes(lead, other) + shape
    first, second = (got[..., :2, :], got[..., 2:, :]) if axis == 0 else (got[..., :4], got[..., 4:])
    assert (first == k.value(x)).all() and (second == k.value(y)).all()


def test_cat_of_one_and_refusals():
    k = Bench()
    x = counted(k, (2, 4))
    assert k.call(sh.cat, (x,), 0) is x
    for tiles, axis, message in (
        ((), 0, "one or two tiles, got 0"), ((x, x, x), 0, "got 3"),
        ((x, counted(k, (2, 4), d.int8)), 0, "int32 and int8"),
        ((x, counted(k, (4, 4))), 0, "equal shapes"), ((x, counted(k, (4,))), 0, "same rank"),
        ((1, 2), 0, "rank 1 or more"),
        ((x, x), 2, "out of range"), ((x, None), 0, "got None"), (x, 0, "expected a tuple"),
    ):
        with pytest.raises(TileTypeError, match=message):
            k.call(sh.cat, tiles, axis)


# ------------------------------------------------------------------ extract, insert


def part_of(x, index, part):
    return x[tuple(slice(i * p, i * p + p) for i, p in zip(index, part))]


@st.composite
def parts(draw):
    shape = tuple(2 ** draw(st.integers(0, 3)) for _ in range(draw(st.integers(1, 3))))
    part = tuple(2 ** draw(st.integers(0, int(math.log2(s)))) for s in shape)
    lead = draw(st.sampled_from([(), (1,), (3,), (2, 1, 3), (1, 1, 1), (2, 2, 1)]))
    kinds = [draw(st.sampled_from(["const", "same", "vary"])) for _ in shape]
    own = draw(st.booleans())  # whether the tile itself varies by block
    return shape, part, lead, kinds, own, draw(st.integers(0, 2**32 - 1))


def indices(k, shape, part, lead, kinds, seed):
    """Terms, and the plain index of every block."""
    rng = np.random.default_rng(seed)
    terms, plain = [], []
    for s, p, kind in zip(shape, part, kinds):
        n = s // p
        v = rng.integers(0, n, size=lead if kind == "vary" else ())
        terms.append(int(v) if kind == "const" else k.tile(v, d.int16, ()))
        plain.append(np.broadcast_to(v, lead))
    return tuple(terms), plain


@given(parts())
def test_extract_takes_each_blocks_own_part(given):
    shape, part, lead, kinds, own, seed = given
    k = Bench()
    x = counted(k, shape, lead=lead if own else ())
    index, plain = indices(k, shape, part, lead, kinds, seed)
    r = k.call(sh.extract, x, index, part)
    got = np.broadcast_to(k.value(r), lead + part)
    source = np.broadcast_to(k.value(x), lead + shape)
    for at in spots(lead):
        assert (got[at] == part_of(source[at], [v[at] for v in plain], part)).all()


@given(parts())
def test_insert_replaces_each_blocks_own_part(given):
    shape, part, lead, kinds, own, seed = given
    k = Bench()
    x = counted(k, shape, lead=lead if own else ())
    before = k.value(x).copy()
    fresh = -1 - np.arange(math.prod(lead) * math.prod(part)).reshape(lead + part)
    value = k.tile(fresh, d.int32, part) if seed % 2 else k.tile(fresh.reshape(-1, *part)[0], d.int32)
    index, plain = indices(k, shape, part, lead, kinds, seed)
    r = k.call(sh.insert, x, index, value)
    got = np.broadcast_to(k.value(r), lead + shape)
    new = np.broadcast_to(k.value(value), lead + part)
    for at in spots(lead):
        want = np.broadcast_to(before, lead + shape)[at].copy()
        part_of(want, [v[at] for v in plain], part)[...] = new[at]
        assert (got[at] == want).all()
    assert (k.value(x) == before).all()


def test_extract_of_one_element_is_a_scalar():
    k = Bench()
    x = counted(k, (2, 4))
    r = k.call(sh.extract, x, (1, 2), ())
    assert r.type.shape == () and k.value(r) == 6
    assert k(sh.extract, k.tile([1, 2, 3, 4], d.int8), 1, 2).tolist() == [3, 4]
    rows = k.tile([0, 1], d.int64, ())
    assert k(sh.extract, x, (rows, 3), ()).tolist() == [3, 7]


def test_insert_of_a_scalar_replaces_one_element():
    k = Bench()
    x = k.tile([1, 2, 3, 4], d.int8)
    assert k(sh.insert, x, 2, k.tile(9, d.int8)).tolist() == [1, 2, 9, 4]
    assert k(sh.insert, x, (2,), constant_of(9, d.int8)).tolist() == [1, 2, 9, 4]
    assert k(sh.insert, k.tile([[1, 2]], d.int32), (0, 1), 7).tolist() == [[1, 7]]
    assert k(sh.insert, k.tile(1, d.int32), (), 7) == 7


def test_a_run_time_index_out_of_range_is_clamped():
    k = Bench()
    x = k.tile([1, 2, 3, 4], d.int32)
    for i, want in ((-1, [1, 2]), (2, [3, 4]), (-128, [1, 2]), (127, [3, 4])):
        assert k(sh.extract, x, k.tile(i, d.int8), 2).tolist() == want
    assert k(sh.extract, x, k.tile([-5, 9], d.int32, ()), 2).tolist() == [[1, 2], [3, 4]]
    assert k(sh.insert, x, k.tile(9, d.int32), k.tile([0, 0], d.int32)).tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize("index, shape, message", [
    ((0, 4), (1, 1), "index 4 on axis 1 is out of range"), ((-1, 0), (1, 1), "index -1"),
    ((0,), (1, 1), "expected 2 indices"),
    (0, (1, 1), "expected 2 indices"), ((0, 0), (4, 4), "does not divide"), ((0, 0), (2,), "rank"),
    ((0, 1.0), (1, 1), "signed integer"), ((0, True), (1, 1), "signed integer"), ((0, 0), (1, 3), "power of two"),
    ((0, (1,)), (1, 1), "signed integer"), (None, (1, 1), "expected a tuple"),
])
def test_extract_refuses(index, shape, message):
    k = Bench()
    with pytest.raises(TileTypeError, match=message):
        k.call(sh.extract, counted(k, (2, 4)), index, shape)


def test_indices_are_signed_scalars():
    k = Bench()
    x = counted(k, (4,))
    for bad in (k.tile(0, d.uint32), k.tile([0], d.int32), k.tile(0.0, d.float32)):
        with pytest.raises(TileTypeError, match='"index" of extract'):
            k.call(sh.extract, x, (bad,), 1)


@pytest.mark.parametrize("index, value, message", [
    ((0, 0), 1.0, "expected dtype int32"), ((0, 0), constant_of(1, d.int8), "expected dtype int32"),
    ((0, 4), 1, "out of range"), ((0, 0), "a", "string"),
])
def test_insert_refuses(index, value, message):
    k = Bench()
    with pytest.raises(TileTypeError, match=message):
        k.call(sh.insert, counted(k, (2, 4)), index, value)


def test_insert_refuses_other_shapes():
    k = Bench()
    x = counted(k, (2, 4))
    for shape, message in (((4,), "rank"), ((4, 4), "does not divide"), ((1, 1, 1), "rank")):
        with pytest.raises(TileTypeError, match=message):
            k.call(sh.insert, x, (0, 0), counted(k, shape))


# ------------------------------------------------------------------ subscripts


@pytest.mark.parametrize("key, want", [
    (NONE, (1, 2, 4)), ((NONE,), (1, 2, 4)), ((FULL, NONE), (2, 1, 4)), ((FULL, FULL, NONE), (2, 4, 1)), ((), (2, 4)),
    ((DOTS,), (2, 4)), ((DOTS, NONE), (2, 4, 1)), ((NONE, DOTS, NONE), (1, 2, 4, 1)), ((DOTS, NONE, FULL), (2, 1, 4)),
    ((NONE, FULL, NONE, DOTS, FULL, NONE), (1, 2, 1, 4, 1)), ((DOTS, NONE, FULL, FULL), (1, 2, 4)), ((FULL,), (2, 4)),
    ((NONE, NONE), (1, 1, 2, 4)),
])
def test_subscript_inserts_axes(key, want):
    k = Bench()
    r = sh.index_tile(k.b, counted(k, (2, 4)), term(key))
    assert r.type.shape == want and k.value(r).reshape(-1).tolist() == list(range(8))


@pytest.mark.parametrize("key, message", [
    (FULL, "slice"), (DOTS, "Ellipsis"), (0, "constant 0"), ((0, FULL), "constant 0"), ((DOTS, DOTS), "one `...`"),
    ((FULL, FULL, FULL), "too many"), ((PySlice(term(0), NONE, NONE),), "slice"), ("a", "string"),
    ((DOTS, FULL, FULL, FULL), "too many"),
])
def test_subscript_refuses(key, message):
    k = Bench()
    with pytest.raises(TileTypeError, match=message):
        sh.index_tile(k.b, counted(k, (2, 4)), term(key))


def test_an_integer_subscript_says_what_to_write():
    k = Bench()
    with pytest.raises(TileTypeError) as e:
        sh.index_tile(k.b, counted(k, (2, 4)), term(0))
    assert "ct.extract" in e.value.help and "ct.gather" in e.value.help


def test_methods_are_named():
    from cutile.ops._op import methods

    for name, op in (("reshape", sh.reshape), ("permute", sh.permute), ("transpose", sh.transpose),
                     ("extract", sh.extract), ("insert", sh.insert), ("item", sh.item)):
        assert methods()["tile", name] is op
