"""How loops count in Tile IR: which loops stay as they are written, and that all go through the numbers of a range."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

import cutile as ct
from cutile.gpu.tileir import number_bits
from cutile.gpu.tileir.loops import AHEAD
from cutile.gpu.tileir.module import Block, Operation
from cutile.gpu.tileir.types import i32, tile
from cutile.types import ArrayType, TileType
from tests.gpu.tileir.lowering import module
from tests.tileir_eval.kernels import instead_of_interpreter

I32, I64 = TileType(ct.int32), TileType(ct.int64)
A1, WIDE = ArrayType(ct.int32, 1), ArrayType(ct.int32, 1, index_dtype=ct.int64)
MOST = (1 << 31) - 1


def operations(block: Block) -> Iterator[Operation]:
    for o in block.ops:
        yield o
        for r in o.regions:
            yield from operations(r)


def counting(bounds, kind: TileType = I32, array: ArrayType = A1) -> str:
    """What the `for` of a loop over range(*bounds(a, n)) counts."""
    def kernel(a, n):
        s = ct.int64(0)
        for i in range(*bounds(a, n)):
            s = s * 3 + i
        ct.store(a, 0, s.astype(ct.int32))

    made = list(operations(module(kernel, array, kind).contents.entries[0].block))
    made_by = {v: o.spec.name for o in made for v in o.results}
    (loop,) = (o for o in made if o.spec.name == "for")
    found = {"maxi": "to the start at least", "select": "rounds", "addi": "rounds from below zero"}
    return found.get(made_by.get(loop.operands[1]), "as written")


@pytest.mark.parametrize("bounds, kind, how", [
    pytest.param(lambda a, n: (7,), I32, "as written", id="constant"),
    pytest.param(lambda a, n: (0, MOST // 2, 4096), I32, "as written", id="constant step"),
    pytest.param(lambda a, n: (0, MOST - AHEAD * 64, 64), I32, "as written", id="as far as it may be"),
    pytest.param(lambda a, n: (0, MOST - AHEAD * 64 + 1, 64), I32, "rounds", id="one farther"),
    pytest.param(lambda a, n: (MOST - AHEAD, 3), I32, "as written", id="from as far as it may be"),
    pytest.param(lambda a, n: (MOST - AHEAD + 1, 3), I32, "rounds", id="from one farther"),
    pytest.param(lambda a, n: (a.shape[0],), I32, "as written", id="size"),
    pytest.param(lambda a, n: (0, a.shape[0], 64), I32, "rounds", id="size in steps"),
    pytest.param(lambda a, n: (ct.bid(0), ct.num_tiles(a, 0, 64), ct.num_blocks(0)), I32, "as written",
                 id="blocks that share tiles"),
    pytest.param(lambda a, n: (ct.bid(0), a.shape[0]), I32, "as written", id="from a block index"),
    pytest.param(lambda a, n: (n,), I32, "to the start at least", id="any end"),
    pytest.param(lambda a, n: (ct.bid(0), ct.minimum(n, 1 << 20), 64), I32, "to the start at least",
                 id="no high end"),
    pytest.param(lambda a, n: (0, n, 64), I32, "rounds", id="any end, in steps"),
    pytest.param(lambda a, n: (n, 64), I32, "rounds from below zero", id="any start"),
    pytest.param(lambda a, n: (0, 64, n), I32, "rounds", id="any step"),
    pytest.param(lambda a, n: (n,), I64, "to the start at least", id="int64, any end"),
    pytest.param(lambda a, n: (0, n, 64), I64, "rounds", id="int64, any end, in steps"),
    pytest.param(lambda a, n: (0, ct.minimum(ct.maximum(n, 0), 1 << 40), 64), I64, "as written",
                 id="int64, some end, in steps")])
def test_what_loops_count(bounds, kind, how):
    assert counting(bounds, kind) == how


def test_sizes_that_are_known():
    for array, how in ((ArrayType(ct.int32, 1, static_shape=(1 << 20,)), "as written"), (WIDE, "rounds")):
        assert counting(lambda a, n: (0, a.shape[0], 64), array=array) == how


def test_nothing_is_divided_by_zero():
    """The assembler moves a division out of a loop that may not run, and takes its divisor for other than zero."""
    def kernel(a, n, step):
        for _ in range(n):
            for i in range(0, n, step):
                ct.store(a, i, 1)

    made = list(operations(module(kernel, A1, I32, I32).contents.entries[0].block))
    (division,) = (o for o in made if o.spec.name == "divi")
    (divisor,) = (o for o in made if division.operands[1] in o.results)
    (least,) = (o for o in made if divisor.operands[1] in o.results)
    assert (divisor.spec.name, least.spec.name) == ("maxi", "constant")
    assert least.attrs["value"] == number_bits.constant(tile(i32), 1)


# ------------------------------------------------------------------ numbers


@ct.kernel
def numbers(bounds, out, most):
    start, stop, step = ct.load(bounds, 0, ()), ct.load(bounds, 1, ()), ct.load(bounds, 2, ())
    n = 0
    for i in range(start, stop, step):
        if n < most:
            ct.store(out, n, i)
        n = n + 1
    for i in range(start, stop, step):
        if i == ct.load(out, 1, ()):
            continue
        n = n + 1
        if n > 1 << 20:
            break
    ct.store(out, most, ct.astype(n, out.dtype))


def draw(random: Random, low: int, high: int) -> tuple[int, int, int]:
    """Bounds of which most lie at the ends of the dtype, and a step that makes few rounds of them."""
    def near() -> int:
        return max(low, min(high, random.choice((low, high, low, high, 0, random.randint(low, high)))
                            + random.randint(-20, 20)))

    start, stop = near(), near()
    few = max(1, (stop - start) // random.randint(1, 9))
    step = random.choice((few, few, high - random.randint(0, 9), max(few, random.randint(1, 40))))
    return start, stop, min(high, step)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_random_bounds_at_the_ends(dtype):
    """Both `for` and `loop`, which a loop with a break is lowered to."""
    random, info = Random(29), np.iinfo(dtype)
    for _ in range(150):
        bounds = draw(random, int(info.min), int(info.max))
        taken, out = list(range(*bounds)), np.full(41, 77, dtype)
        with instead_of_interpreter() as ran:
            ct.launch(None, (1,), numbers, (np.array(bounds, dtype), out, 40))
        second = [i for i in taken if i != (taken[1] if len(taken) > 1 else 77)]
        assert ran and out[:len(taken)].tolist() == taken and out[40] == len(taken) + len(second), bounds
