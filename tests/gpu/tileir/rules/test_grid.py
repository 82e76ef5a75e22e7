"""Numbers of tiles: asked of the view that loads use, computed where there is none."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.types import ArrayType
from tests.gpu.tileir.lowering import assemble, ops
from tests.gpu.tileir.tool import needs_tool

X, Y = ArrayType(ct.float32, 2), ArrayType(ct.float32, 1)


def total(x, y, n, shape=(4, 8), order="C"):
    t = ct.zeros((4, 8), ct.float32)
    for i in range(n):
        t += ct.load(x, (0, i), shape, order=order)
    ct.store(y, 0, ct.sum(t, axis=1))


def of_the_load(x, y):
    total(x, y, ct.num_tiles(x, 1, (4, 8)))


def of_the_load_in_order(x, y):
    total(x, y, ct.num_tiles(x, 1, (4, 8), order="F"), order="F")


def of_another_shape(x, y):
    total(x, y, ct.num_tiles(x, 1, (4, 4)))


def in_another_order(x, y):
    total(x, y, ct.num_tiles(x, 1, (4, 8), order="F"))


@pytest.mark.parametrize("code", [of_the_load, of_the_load_in_order], ids=lambda f: f.__name__)
def test_asked_of_the_view(code):
    found = ops(code, X, Y)
    assert "get_index_space_shape" in found and "divi" not in found
    assert found.count("make_partition_view") == 2  # those of the load and the store


@pytest.mark.parametrize("code", [of_another_shape, in_another_order], ids=lambda f: f.__name__)
def test_divided_without_such_a_view(code):
    found = ops(code, X, Y)
    assert "get_index_space_shape" not in found and "divi" in found


@pytest.mark.parametrize("index", [ct.uint32, ct.int64])
def test_divided_with_other_sizes(index):
    assert "get_index_space_shape" not in ops(of_the_load, ArrayType(ct.float32, 2, index_dtype=index), Y)


def far(x, y):
    ct.store(y, ct.bid(0), ct.full((1,), x.tiled_view((4, 8), traversal_steps=(1, 2**31)).num_tiles(1), ct.float32))


@pytest.mark.parametrize("index, wide", [(ct.int32, True), (ct.uint32, True), (ct.int64, False)])
def test_steps_beyond_the_sizes(index, wide):
    """A step that no 32 bits hold divides 64."""
    assert ("exti" in ops(far, ArrayType(ct.float32, 2, index_dtype=index), Y)) is wide


@needs_tool
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_assembled(target):
    assemble(of_the_load_in_order, X, Y, target=target)
