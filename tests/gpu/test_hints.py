"""Hints chosen where a kernel leaves them open."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile import settings
from cutile.front.program import Embedded
from cutile.gpu.hints import OWN, EntryHints, choose_entry_hints, may_have_more_warps
from cutile.gpu.target import parse_target
from cutile.runtime.options import ByTarget, Options
from cutile.types import ArrayType
from tests.gpu.tileir.lowering import module, typed

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


def moved(x, y):
    ct.store(y, ct.bid(0), 2 * ct.load(x, (ct.bid(0), 0), (1, 64)).reshape((64,)))


def in_a_loop(x, y):
    for i in range(ct.num_blocks(1)):
        moved(x.slice(0, i, 64), y)


def in_a_while(x, y):
    i = 0
    while i < ct.bid(1):
        if i < 5:
            moved(x.slice(0, i, 64), y)
        i += 1


def rows_in_a_loop(x, y):
    for i in range(4):
        rows(x.slice(0, i, 64), y)


def functions_in_a_loop(x, y):
    for i in range(4):
        ct.store(y, i, ct.exp(ct.load(x, (i, 0), (1, 64))).reshape((64,)))


def quotients_in_a_while(x, y):
    i = 0
    while i < ct.bid(1):
        ct.store(y, i, (1 / ct.load(x, (i, 0), (1, 64))).reshape((64,)))
        i += 1


def one_of_two_loops(x, y):
    for i in range(4):
        t = ct.zeros((1, 64), ct.float32)
        for k in range(ct.num_blocks(1)):
            t += ct.load(x, (k, i), (1, 64))
        ct.store(y, i, ct.exp(t + ct.load(x, (i, 0), (1, 64))).reshape((64,)))


def before_a_loop(x, y):
    t = ct.load(x, (0, 0), (1, 64))
    for i in range(ct.num_blocks(1)):
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


@pytest.mark.parametrize("code", [rows_in_a_loop, functions_in_a_loop, quotients_in_a_while],
                         ids=lambda f: f.__name__)
def test_a_loop_that_computes_much_does_not(code):
    assert kept(code, X, Y) == [("load", NO_TMA), ("store", NO_TMA)]


def test_a_small_loop_in_a_large_one_may():
    assert sorted(map(str, kept(one_of_two_loops, X, Y))) == sorted(map(str, [
        ("load", {}), ("load", NO_TMA), ("store", NO_TMA)]))


@pytest.mark.parametrize("start, stop, step, fetches", [
    (0, 127, 1, False), (0, 128, 1, True), (1, 128, 1, False), (0, 255, 2, True), (0, 254, 2, False)])
def test_a_loop_that_is_known_to_be_short_does_not(start, stop, step, fetches):
    def counted(x, y):
        for i in range(start, stop, step):
            moved(x.slice(0, i, 64), y)

    assert kept(counted, X, Y) == [("load", {} if fetches else NO_TMA), ("store", NO_TMA)]


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


# ------------------------------------------------------------------ hints of a whole kernel


SM_90 = parse_target("sm_90")


def chosen(code, *kinds, **options) -> tuple[EntryHints, str]:
    return choose_entry_hints(typed(code, *kinds), Options(**options), SM_90)


def row(x, y, rows, n, checked):
    t = ct.load(x, (ct.bid(0), 0), (rows, n), check_bounds=checked)
    ct.store(y, (ct.bid(0), 0), t / ct.sum(t, axis=1, keepdims=True), check_bounds=checked)


def plain(x, y, checked):
    ct.store(y, (ct.bid(0), 0), ct.load(x, (ct.bid(0), 0), (1, 1024), check_bounds=checked), check_bounds=checked)


def looped(x, y):
    for _ in range(4):
        plain(x, y, True)


def scanned(x, y):
    ct.store(y, (ct.bid(0), 0), ct.cumsum(ct.load(x, (ct.bid(0), 0), (1, 1024)), axis=1))


def gathered(x, y):
    plain(x, y, True)
    ct.scatter(y, (0, ct.arange(64, dtype=ct.int32)), 1.0)


def short_axis(x, y):
    t = ct.load(x, (ct.bid(0), 0), (64, 64))
    ct.store(y, (ct.bid(0), 0), t - ct.max(t, axis=1, keepdims=True))


@pytest.mark.parametrize("rows, n, warps, blocks", [
    (1, 128, 1, 32), (1, 1024, 1, 32), (1, 2048, 2, 16), (1, 4096, None, 8), (1, 8192, 8, 4), (1, 16384, 16, 2),
    (1, 65536, 16, 2), (2, 1024, 1, 32), (4, 1024, 2, 16), (8, 1024, None, 8), (16, 1024, 8, 4)])
@pytest.mark.parametrize("checked", [False, True])
def test_warps_of_rows(rows, n, warps, blocks, checked):
    found, why = chosen(row, X, X, *map(Embedded, (rows, n, checked)))
    assert found == EntryHints(warps, blocks) and f"a tile of {rows * n} elements" in why


def normalised(x, y, rows):
    """The sum of all elements first adds up the rows, which leaves a small tile for the long axis."""
    t = ct.load(x, (ct.bid(0), 0), (rows, 1024))
    ct.store(y, (ct.bid(0), 0), t / ct.sum(t))


def wider(x, y):
    t = ct.sum(ct.load(x, (ct.bid(0), 0), (1, 256)), axis=1, keepdims=True)
    ct.store(y, (ct.bid(0), 0), ct.broadcast_to(t, (1, 8192)) * 2)


def test_the_largest_tile_decides_how_many_warps():
    found, why = chosen(wider, X, X)
    assert found == EntryHints(None, 8) and "a tile of 8192 elements" in why


def two_running_sums(x, y, n):
    a, b = ct.zeros((1, n), ct.float32), ct.ones((1, n), ct.float32)
    for k in range(ct.num_tiles(x, 1, (1, n))):
        t = ct.load(x, (ct.bid(0), k), (1, n))
        a, b = ct.maximum(a, t), b + t
    ct.store(y, (ct.bid(0), 0), ct.sum(a + b, axis=1, keepdims=True))


def test_what_a_loop_carries_counts_together():
    found, why = chosen(two_running_sums, X, X, Embedded(4096))
    assert found == EntryHints(8, 4) and "in a loop that carries 8192 elements" in why


def test_kernels_that_reduce_short_axes_too_keep_the_usual_warps():
    found, why = chosen(normalised, X, X, Embedded(16))
    assert found == OWN and "short axes" in why
    assert chosen(normalised, X, X, Embedded(1))[0] == EntryHints(1, 32)


def test_plain_kernels_need_many_warps_only_for_checks():
    assert chosen(plain, X, X, Embedded(True))[0] == EntryHints(None, 8)
    found, why = chosen(plain, X, X, Embedded(False))
    assert found == OWN and "not checked" in why
    assert chosen(short_axis, X, X)[0] == EntryHints(None, 8)


@pytest.mark.parametrize("code, why", [(product, "multiplies matrices"), (looped, "loops"), (scanned, "scans"),
                                       (gathered, "places of their own")])
def test_what_keeps_the_assemblers_own_choices(code, why):
    found, said = chosen(code, X, Y if code is product else X)
    assert found == OWN and why in said


@pytest.mark.parametrize("option", [{"occupancy": 1}, {"num_ctas": 1}, {"num_worker_warps": 4},
                                    {"occupancy": ByTarget(sm_90=4)}])
def test_an_author_who_names_one_names_all(option):
    assert chosen(row, X, X, *map(Embedded, (1, 1024, True)), **option) == (OWN, "its author names some")
    assert not may_have_more_warps(typed(plain, X, X, Embedded(False)), Options(**option), SM_90)


def test_an_option_for_another_target_does_not_count():
    given = {"occupancy": ByTarget(sm_100=4)}
    assert chosen(row, X, X, *map(Embedded, (1, 1024, True)), **given)[0] == EntryHints(1, 32)


def test_turned_off_for_whole_kernels():
    with settings.override(HINTS=False):
        assert chosen(row, X, X, *map(Embedded, (1, 1024, True))) == (OWN, "CUTILE_HINTS is 0")


def test_more_warps_only_where_no_sum_depends_on_them():
    def may(code, *kinds):
        return may_have_more_warps(typed(code, *kinds), Options(), SM_90)

    assert may(plain, X, X, Embedded(False)) and may(plain, X, X, Embedded(True))
    assert not may(row, X, X, *map(Embedded, (1, 1024, True))) and not may(looped, X, X) and not may(scanned, X, X)


def test_words():
    assert str(OWN) == "the assembler's own choice" and str(EntryHints(2, 16)) == "num_worker_warps=2, occupancy=16"
