"""evaluate(): from bytecode and arguments to arrays that the program has written."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.module import Entry, Global, TileModule
from tests.tileir_eval import formats
from tests.tileir_eval.bytecode_reader import decode
from tests.tileir_eval.machine import Prepared, World, finished, run
from tests.tileir_eval.ordering import Order
from tests.tileir_eval.registry import EvaluationError
from tests.tileir_eval.space import Space


@dataclass(frozen=True)
class Pointer:
    """The address of an array's first element, as an argument."""

    array: np.ndarray


def evaluate(bytecode: bytes, entry: str, grid: Sequence[int], args: Sequence[Any], *, poison: bool = False,
             ordered: bool = False, identities: bool = False) -> list[str]:
    """Run an entry of a program over a grid of blocks; arrays are changed in place. What was printed, in order.

    args        one for each Python parameter that is no constant, or one for each entry parameter, in any mix: an array
                stands for its pointer, sizes and strides, a list of arrays for the table of these and its length, a
                Pointer for the pointer alone
    poison      what Tile IR leaves undetermined reads as NaN or the lowest integer, not as zero
    ordered     accesses of one block that meet in memory must be ordered by tokens
    identities  reductions and scans begin with their identity
    EvaluationError where the program does what Tile IR leaves undefined, AssertionFailed where its assert fails.
    """
    found, prepared = _entry(bytecode, entry)
    space = Space()
    with np.errstate(all="ignore"):
        values = _arguments([v.type for v in found.arguments], args, space)
        variables = {g.name: _variable(g, space) for g in _program(bytecode).globals}
        dims = tuple(int(n) for n in (*grid, 1, 1, 1)[:3])
        world = World(dims, space, variables, poison=poison, identities=identities)
        blocks = [_block(prepared, values, world, block, ordered) for block in itertools.product(*map(range, dims))]
        _turns(blocks) if prepared.takes_turns else [finished(b) for b in blocks]
    return world.printed


@functools.lru_cache(maxsize=1024)
def _program(bytecode: bytes) -> TileModule:
    return decode(bytecode)


@functools.lru_cache(maxsize=1024)
def _entry(bytecode: bytes, name: str) -> tuple[Entry, Prepared]:
    for e in _program(bytecode).entries:
        if e.name == name:
            return e, Prepared(e.block)
    raise ValueError(f"the bytecode has no entry {name!r}, but {[e.name for e in _program(bytecode).entries]}")


def _block(p: Prepared, arguments: list, world: World, block: tuple[int, int, int], ordered: bool) -> Iterator[None]:
    """One block, as a generator that hands over where it may wait."""
    values: list = [None] * p.size
    for place, v in zip(p.arguments, arguments, strict=True):
        values[place] = v
    order = Order() if ordered else None
    world.enter(block, order)
    for _ in run(p.steps, values, world):
        yield
        world.enter(block, order)


def _turns(blocks: list[Iterator[None]]) -> None:
    """Each block runs until it hands over, round and round."""
    waiting = list(blocks)
    while waiting:
        waiting = [b for b in waiting if next(b, "done") is None]


# ------------------------------------------------------------------ arguments


def _arguments(types: Sequence[ty.Tile], args: Sequence[Any], space: Space) -> list[np.ndarray]:
    addresses = iter(space.map([a for x in args for a in _arrays(x)]))
    wanted, out = iter(types), []
    for x in args:
        words = _words(x, addresses, space)
        for w in words:
            t = next(wanted, None)
            if t is None:
                raise EvaluationError(f"the arguments are more than the {len(types)} parameters of the entry")
            out.append(_scalar(w, t.element))
    if len(out) != len(types):
        raise EvaluationError(f"{len(out)} arguments for an entry of {len(types)} parameters")
    return out


def _arrays(x: Any) -> list[np.ndarray]:
    return x if isinstance(x, list) else [x] if isinstance(x, np.ndarray) else [x.array] if isinstance(
        x, Pointer) else []


def _words(x: Any, addresses: Iterator[int], space: Space) -> list[Any]:
    """The entry arguments that an argument becomes [calling convention v1]."""
    if isinstance(x, np.ndarray):
        return [next(addresses), *x.shape, *(s // x.itemsize for s in x.strides)]
    if isinstance(x, Pointer):
        return [next(addresses)]
    if isinstance(x, list):
        rows = [_words(a, addresses, space) for a in x]
        table = np.array([[base >> 1, *rest] for base, *rest in rows], np.int64)
        return [space.constant(table.tobytes()), len(x)]
    return [x]


def _scalar(x: Any, element: ty.Scalar | ty.Pointer) -> np.ndarray:
    if isinstance(element, ty.Pointer):
        return np.asarray(x, formats.ADDRESS)
    if element in formats.FLOATS:
        return formats.nearest(np.asarray(x, np.float64), element)
    return formats.wrapped(np.asarray(x), element)


def _variable(g: Global, space: Space) -> int:
    words = formats.to_words(formats.constant(g.value, g.type), g.type.element)
    return space.allocate(words.nbytes, max(g.alignment, 16), words.tobytes())
