"""Elements of tiles of integers: those that are one number, and those that memory makes differ."""

from __future__ import annotations

import pytest

from cutile.analysis.elements import differs_by_memory, number_of
from cutile.ir.nodes import Op, Value
from cutile.ir.walk import definitions, walk
from cutile.ops import memory
from cutile.passes.flatten_frames import flatten_frames
from tests.front.compiling import AI, I32, cell, typed


def stored(*lines: str, **env) -> tuple[dict, Value]:
    """The definitions of a kernel that stores `v`, a tile of 8 integers made by these lines, and what it stores."""
    body = "".join(f"    {line}\n" for line in lines)
    f = cell(f"def kernel(a, n):\n    x = ct.load(a, 0, 8)\n{body}    ct.store(a, 0, v)\n", **env)["kernel"]
    kernel = flatten_frames(typed(f, AI, I32))
    (n,) = [n for n in walk(kernel.body) if isinstance(n, Op) and n.op is memory.store]
    return definitions(kernel.body), n.operands[-1]


@pytest.mark.parametrize("line, number", [
    ("v = ct.full((8,), 7, ct.int32)", 7),
    ("v = ct.zeros((8,), ct.int32)", 0),
    ("v = ct.full((1,), -7, ct.int32)", -7),
    ("v = ct.full((4, 2), 7, ct.int32).reshape((8,))", 7),
    ("v = ct.permute(ct.full((1, 8), 7, ct.int32), (1, 0)).reshape((8,))", 7),
    ("v = ct.full((8,), 300, ct.int32).astype(ct.uint8).astype(ct.int32)", 44),
    ("v = ct.full((8,), 200, ct.int32).astype(ct.int8).astype(ct.int32)", -56),
    ("v = ct.full((8,), -1, ct.int8).astype(ct.uint32).astype(ct.int32)", -1),
    ("v = ct.full((8,), -1, ct.int8).astype(ct.uint16).astype(ct.int32)", 65535),
    ("v = ct.full((8,), 7.5, ct.float32).astype(ct.int32)", None),
    ("v = ct.full((8,), 7, ct.int32).astype(ct.bool_).astype(ct.int32)", None),
    ("v = x", None), ("v = ct.full((8,), n, ct.int32)", None), ("v = ct.arange(8, dtype=ct.int32)", None),
    ("v = ct.full((8,), 7, ct.int32) + n", None)])
def test_one_number(line, number):
    assert number_of(*stored(line)) == number


PLACES = "i = ct.arange(8, dtype=ct.int32)"


@pytest.mark.parametrize("lines, differs", [
    (["v = x"], True), (["v = -x * 3 + n"], True), (["v = x.reshape((4, 2)).reshape((8,))"], True),
    ([PLACES, "v = x + i"], True), ([PLACES, "v = ct.gather(a, i)"], True), (["v = ct.cumsum(x)"], True),
    ([PLACES, "v = ct.where(x > 2, i, 0)"], True),
    (["v = ct.sum(ct.load(a, 0, 16).reshape((8, 2)), axis=1)"], True),
    (["v = x", "for k in range(n):", "    v = v // 2 if k > 3 else v + 1"], True),
    (["v = x", "k = n", "while k > 3:", "    v = v + 1", "    k = k - 1"], True),
    (["v = x", "while True:", "    v = v + 1", "    if n > 3:", "        break", "    n = n + 1"], True),
    ([PLACES, "if n > 3:", "    v = i", "else:", "    v = x + 1"], True),
    ([PLACES, "v = i", "while n > 3:", "    v = v + n", "    n = n - 1"], False),
    ([PLACES, "if n > 3:", "    v = i", "else:", "    v = i + n"], False),
    ([PLACES, "v = i"], False), ([PLACES, "v = n * 8 + i % 4"], False), (["v = ct.full((8,), n, ct.int32)"], False),
    ([PLACES, "v = i + ct.load(a, 3, 1)"], False), ([PLACES, "v = i + ct.gather(a, n)"], False),
    ([PLACES, "v = ct.broadcast_to(ct.sum(x), (8,)) + i"], False),
    ([PLACES, "v = i", "for k in range(n):", "    v = v + 8"], False)])
def test_what_memory_makes_differ(lines, differs):
    assert differs_by_memory(*stored(*lines)) is differs
