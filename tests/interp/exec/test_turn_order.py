"""Orders in which blocks take turns."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

from cutile.interp.exec.turn_order import Drawn, Listed, Recorded

A, B, C = (0, 0, 0), (0, 1, 0), (1, 0, 0)


def ready(*blocks) -> list:
    return [SimpleNamespace(coordinates=b, at=None) for b in blocks]


def picks(order, *sets) -> list:
    return [s[order.pick(s)].coordinates for s in (ready(*blocks) for blocks in sets)]


def test_a_seed_draws_every_block_and_repeats_itself():
    sets = [(A, B, C)] * 300
    drawn = picks(Drawn(1), *sets)
    assert drawn == picks(Drawn(1), *sets) != picks(Drawn(2), *sets)
    assert min(Counter(drawn).values()) > 70


def test_listed_blocks_come_first():
    assert picks(Listed([C, A, B]), (A, B, C), (A, B, C), (A, B, C)) == [C, A, B]


def test_then_the_last_block_goes_on_and_the_first_follows():
    assert picks(Listed([B]), (C, B, A), (C, B, A), (C, A), (C, A), (C,)) == [B, B, A, A, C]
    assert picks(Listed([]), (C, B), (C, B, A), (C, A)) == [B, B, A]


def test_listed_blocks_that_cannot_go_on_are_left_out():
    assert picks(Listed([A, B, A]), (C, B), (C, B), (A, C)) == [B, B, A]


def test_steps_are_recorded():
    order = Recorded(Listed([C, A]))
    blocks = ready(A, C)
    blocks[0].at = "line 3"
    assert [order.pick(blocks) for _ in range(3)] == [1, 0, 0]
    assert order.steps == [(C, None), (A, "line 3"), (A, "line 3")]
