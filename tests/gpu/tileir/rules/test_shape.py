"""What only moves elements, for every dtype that a tile can have."""

from __future__ import annotations

import itertools

import pytest

import cutile as ct
from cutile.dtypes import NUMERIC
from cutile.gpu.tileir.rules.shape import _is_column_part
from tests.gpu.tileir.rules.small_kernels import (
    SINGLE,
    assemble,
    attributes,
    names,
    operations,
    refused,
    sampled,
    scalar,
    tile,
)
from tests.gpu.tileir.tool import needs_tool

F48, I64 = tile(ct.float32, 4, 8), scalar(ct.int64)


def moved(x):
    return (x.reshape((8, 4)), x[:, None, :], ct.broadcast_to(x[None, :, :], (2, 4, 8)), x.permute((1, 0)),
            ct.cat((x, x), 1), ct.cat((x, x), 0), x.extract((1, 0), (2, 4)))


def inserted(x):
    return x.insert((1, 0), x.extract((0, 1), (2, 4))), x.insert((3, 0), x.extract((0, 1), (1, 4)))


def single(x):
    return x.extract((3, 7), ()), x.insert((3, 7), x.extract((0, 0), ()))


CASES = [(f, (tile(d, 4, 8),)) for d in NUMERIC for f in (moved, inserted)]
CASES += [(single, (tile(d, 4, 8),)) for d in SINGLE]


@needs_tool
@sampled(CASES)
def test_every_dtype(target, cases):
    assemble(cases, target)


def test_operations():
    assert names(lambda x: x.reshape((32,)), F48) == ["reshape"]
    assert names(lambda x: ct.broadcast_to(x, (2, 4, 8)), F48) == ["reshape", "broadcast"]
    assert names(lambda x: ct.broadcast_to(x, (4, 8)), tile(ct.float32, 4, 1)) == ["broadcast"]
    assert attributes("permute", lambda x: x.permute((1, 0)), F48) == [{"permutation": (1, 0)}]
    assert attributes("cat", lambda x: ct.cat((x, x), -1), F48) == [{"dim": 1}]


@pytest.mark.parametrize("f, shape", [
    (lambda x: x.extract((1, 2), ()), (1,)),
    (lambda x: x.extract((1, 2), (1, 1)), (1,)),
    (lambda x: x.extract((1, 2), (2, 1)), (1, 2)),
    (lambda x: x.extract((1, 0), (1, 8)), (1, 8)),
    (lambda x: x.extract((1, 1), (2, 2)), (2, 2)),
    (lambda x: x.insert((1, 2), x.extract((0, 0), ())), (32,)),
    (lambda x: x.insert((1, 2), x.extract((0, 0), (2, 1))), (16, 2)),
    (lambda x: x.insert((1, 0), x.extract((0, 0), (1, 8))), (4, 8)),
])
def test_parts_of_columns_are_taken_as_rows(f, shape):
    """The assembler takes some of them from a wrong position."""
    made = [o for o in operations(f, F48) if o.spec.name in ("extract", "insert")]
    assert made[-1].results[0].type.shape == shape


def test_rows_of_parts():
    """Axes of numbers of parts come before those of parts, and go back in between."""
    there = {"permutation": (0, 2, 1, 3)}
    assert attributes("permute", lambda x: x.extract((1, 2), (2, 1)), F48) == [there]
    assert attributes("permute", lambda x: x.insert((1, 2), x.extract((0, 0), (2, 1))), F48) == [there] * 3
    assert attributes("permute", lambda x: x.extract((0, 0, 2), (2, 2, 1)), tile(ct.float32, 4, 2, 4)) == [
        {"permutation": (0, 2, 4, 1, 3, 5)}]
    (back,) = attributes("permute", lambda x, y: x.insert((0, 0, 2), y), tile(ct.float32, 4, 2, 4),
                         tile(ct.float32, 2, 2, 1))[1:]
    assert back == {"permutation": (0, 3, 1, 4, 2, 5)}


def test_parts_of_columns_by_rank():
    """A part is one of a column if it alone has one element in the last axis of more than one."""
    for rank in (1, 2, 3):
        for whole in itertools.product((1, 2, 4), repeat=rank):
            for part in itertools.product((1, 2, 4), repeat=rank):
                if all(p <= w for p, w in zip(part, whole, strict=True)):
                    assert _is_column_part(part, whole) == (rank > 1 and part[-1] == 1 < whole[-1]), (part, whole)


def test_indices_become_32_bits():
    (made,) = [o for o in operations(lambda x, i: x.extract((i, i), (2, 2)), F48, I64) if o.spec.name == "extract"]
    assert {str(v.type) for v in made.operands[1]} == {"tile<i32>"}


def test_inserting_needs_a_newer_version():
    refused("insert", "13.3", lambda x: x.insert((1, 0), x.extract((0, 1), (2, 4))), F48)


def test_one_element_of_four_bits_is_refused():
    with pytest.raises(ct.TileUnsupportedFeatureError, match="single float4_e2m1fn"):
        operations(single, tile(ct.float4_e2m1fn, 4, 8), target="sm_100")


@needs_tool
def test_scalars():
    def kept(x):
        return x.extract((), ()), x.insert((), x)

    assemble([(kept, (scalar(ct.float32),))])
