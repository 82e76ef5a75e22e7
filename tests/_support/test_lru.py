"""Dictionaries of bounded size."""

import random
import threading
import types

from cutile._support.lru import LruDict


def value(used=False):
    return types.SimpleNamespace(used=used)


def test_the_oldest_go_first():
    recent = LruDict(2)
    for key in "abc":
        recent.keep(key, value())
    assert list(recent) == ["b", "c"]
    recent.keep("b", value())
    recent.keep("d", value())
    assert list(recent) == ["b", "d"]


def test_what_was_used_stays_a_round_longer():
    recent = LruDict(2)
    recent.keep("a", value())
    recent.keep("b", value())
    recent["a"].used = True
    recent.keep("c", value())
    assert list(recent) == ["c", "a"] and not recent["a"].used
    recent.keep("d", value())
    assert list(recent) == ["a", "d"]


def test_it_is_bounded_where_all_are_used_or_have_no_mark():
    for make in (lambda: value(True), lambda: (1, 2)):
        recent = LruDict(3)
        for key in range(10):
            recent.keep(key, make())
            assert len(recent) == min(key + 1, 3) and key in recent


def test_threads():
    recent, wrong = LruDict(8), []

    def work(seed):
        r = random.Random(seed)
        for _ in range(2000):
            key = r.randrange(20)
            found = recent.get(key)
            if found is None:
                recent.keep(key, types.SimpleNamespace(used=False, key=key))
            else:
                found.used = True
                wrong.extend([key] * (found.key != key))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    recent.keep("last", value())
    assert not wrong and len(recent) <= 8
