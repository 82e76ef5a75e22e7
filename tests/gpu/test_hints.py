"""Hints chosen where a kernel leaves them open."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile import settings
from cutile.types import ArrayType
from tests.gpu.tileir.lowering import module

X, Y = ArrayType(ct.float32, 2), ArrayType(ct.float32, 1)


def kept(code, *kinds, target: str | None = "sm_90", **options) -> list[tuple[str, dict]]:
    """The accesses to tiles, those of nested blocks last, with the hints of each for the target."""
    pending, found = [module(code, *kinds, target=target, **options).contents.entries[0].block], []
    while pending:
        for o in pending.pop(0).ops:
            if o.spec.name in ("load_view_tko", "store_view_tko"):
                hints = o.attrs.get("optimization_hints") or {}
                found.append((o.spec.name.split("_")[0], hints.get(target or "default", {})))
            pending[:0] = o.regions
    return found


def rows(x, y):
    ct.store(y, ct.bid(0), ct.sum(ct.load(x, (ct.bid(0), 0), (1, 64)), axis=1))


def called(x, y):
    rows(x, y)


def in_a_loop(x, y):
    for i in range(4):
        rows(x.slice(0, i, 64), y)


def in_a_while(x, y):
    i = 0
    while i < ct.bid(1):
        if i < 5:
            rows(x.slice(0, i, 64), y)
        i += 1


def before_a_loop(x, y):
    t = ct.load(x, (0, 0), (1, 64))
    for i in range(4):
        t += ct.load(x, (i, 0), (1, 64))
    ct.store(y, 0, ct.sum(t, axis=1))


def asks_for_tma(x, y):
    ct.store(y, 0, ct.sum(ct.load(x, (0, 0), (1, 64), allow_tma=True), axis=1))


def without(x, y):
    ct.store(y, 0, ct.sum(ct.load(x, (0, 0), (1, 64), allow_tma=False, latency=3), axis=1))


def product(x, y):
    t = ct.load(x, (0, 0), (16, 16))
    ct.store(y, 0, ct.sum(ct.mma(t, t, ct.zeros((16, 16), ct.float32)), axis=1))


NO_TMA = {"allow_tma": False}


@pytest.mark.parametrize("code", [rows, called], ids=lambda f: f.__name__)
def test_no_tma_without_a_matrix_product(code):
    assert kept(code, X, Y) == [("load", NO_TMA), ("store", NO_TMA)]
    assert kept(code, X, Y, target=None) == [("load", NO_TMA), ("store", NO_TMA)]


@pytest.mark.parametrize("code", [in_a_loop, in_a_while], ids=lambda f: f.__name__)
def test_a_loop_may_fetch_ahead(code):
    assert kept(code, X, Y) == [("load", {}), ("store", NO_TMA)]


def test_beside_a_loop():
    assert kept(before_a_loop, X, Y) == [("load", NO_TMA), ("store", NO_TMA), ("load", {})]  # nested blocks last


def test_what_the_author_says_stays():
    assert kept(asks_for_tma, X, Y) == [("load", {"allow_tma": True}), ("store", {})]
    assert kept(without, X, Y) == [("load", {"allow_tma": False, "latency": 3}), ("store", NO_TMA)]


def test_matrix_products_keep_theirs():
    assert kept(product, X, Y) == [("load", {}), ("store", {})]


@pytest.mark.parametrize("target", ["sm_80", "sm_89"])
def test_targets_without_tma(target):
    assert kept(rows, X, Y, target=target) == [("load", {}), ("store", {})]


def test_turned_off():
    with settings.override(HINTS=False):
        assert kept(rows, X, Y) == [("load", {}), ("store", {})]


def test_nothing_else_changes():
    """The module is the same but for the hints."""
    with settings.override(HINTS=False):
        before = _operations(module(rows, X, Y))
    assert before == _operations(module(rows, X, Y))


def _operations(m) -> list:
    return [(o.spec.name, {k: v for k, v in o.attrs.items() if k != "optimization_hints"}, [r.type for r in o.results])
            for o in m.contents.entries[0].block.ops]
