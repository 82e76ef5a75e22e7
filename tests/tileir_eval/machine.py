"""Running a program: bytecode is decoded once, prepared as lists of steps, and run block after block.

Control flow is a generator, so that blocks that wait for each other can take turns: a program with an atomic or an
ordered access inside a `loop` hands over at each of them.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.module import Block, Operation
from tests.tileir_eval import combine, floats, formats, integers, memory, messages, shapes  # noqa: F401  fill tables
from tests.tileir_eval.ordering import READ, Order
from tests.tileir_eval.registry import ELEMENTWISE, OF_WORLD, PURE, EvaluationError, of_world, require
from tests.tileir_eval.space import Space

TURNS = 1_000_000  # iterations of loops in a block
AHEAD = 60  # steps that the assembler's code for a `for` computes beyond the bounds (docs/assembler-bugs.md)
Signal = tuple[str, list]  # the terminator that ended a block, and what it hands out


class World:
    """What a running block sees around it."""

    def __init__(self, grid: tuple[int, int, int], space: Space, variables: dict[str, int], *, poison: bool,
                 identities: bool):
        self.grid, self.space, self.variables = grid, space, variables
        self.printed: list[str] = []
        self.poison, self.identities = poison, identities
        self.turns: Counter = Counter()
        self.block = (0, 0, 0)
        self.order: Order | None = None

    def enter(self, block: tuple[int, int, int], order: Order | None) -> None:
        self.block, self.order = block, order

    def touch(self, kind: str, what: Callable[[], str], addresses: np.ndarray, token: int | None,
              semantics: str = "weak") -> int:
        """An access to memory: the token that stands for it. Nothing need order reads of what nothing writes."""
        if self.order is None:
            return 0
        if kind == READ and semantics == "weak" and self.space.is_constant(np.ravel(addresses)):
            return token or 0
        return self.order.access(kind, what, np.ravel(addresses), token, semantics)

    def undetermined(self, element: ty.Scalar) -> np.ndarray:
        """A value that may be anything: zero, or with `poison` NaN and the lowest integer."""
        dtype = formats.carrier(element)
        if not self.poison:
            return np.zeros((), dtype)
        if element in formats.FLOATS:
            return formats.nearest(np.asarray(np.nan, dtype), element)
        return np.asarray(True if dtype == np.bool_ else np.iinfo(dtype).min, dtype)

    def turn(self) -> None:
        self.turns[self.block] += 1
        if self.turns[self.block] > TURNS:
            raise EvaluationError(f"block {self.block} did not end within {TURNS} iterations")


@of_world("get_tile_block_id")
def _block_id(o):
    return lambda world: tuple(map(np.int32, world.block))


@of_world("get_num_tile_blocks")
def _num_blocks(o):
    return lambda world: tuple(map(np.int32, world.grid))


@of_world("make_token")
def _make_token(o):
    return lambda world: 0


@of_world("join_tokens", "gdc_wait_tko", "gdc_launch_dependents_tko")
def _join_tokens(o):
    return lambda world, *tokens: functools.reduce(int.__or__, tokens, 0)


# ------------------------------------------------------------------ steps

PURE_STEP, WORLD_STEP, CONTROL_STEP, END_STEP = range(4)
TERMINATORS = ("break", "continue", "return", "yield")
WAITS = {"atomic_cas_tko", "atomic_rmw_tko"}


class Prepared:
    """An entry as steps: (kind, function, positions of the operands, positions of the results)."""

    def __init__(self, block: Block):
        self._places: dict[Any, int] = {}
        self.arguments = [self._place(v) for v in block.args]
        self.takes_turns = False
        self.steps = self._block(block, False)
        self.size = len(self._places)

    def _place(self, v) -> int:
        return self._places.setdefault(v, len(self._places))

    def _block(self, block: Block, in_loop: bool) -> list[tuple]:
        return [self._step(o, in_loop) for o in block.ops]

    def _step(self, o: Operation, in_loop: bool) -> tuple:
        name = o.spec.name
        ins, outs = tuple(map(self._place, o.uses())), tuple(map(self._place, o.results))
        if name in TERMINATORS:
            return END_STEP, name, ins, ()
        if name in CONTROL:
            return CONTROL_STEP, CONTROL[name](self, o, in_loop), ins, outs
        single = outs[0] if len(outs) == 1 else outs
        if name in PURE:
            return PURE_STEP, PURE[name](o), ins, single
        if name not in OF_WORLD:
            raise NotImplementedError(f"operation {name} is not evaluated")
        ordered = o.attrs.get("memory_ordering_semantics", "weak") != "weak"
        self.takes_turns |= in_loop and (name in WAITS or ordered)
        return WORLD_STEP, OF_WORLD[name](o), ins, single


def finished(g: Iterator) -> Any:
    """What a generator returns after it has handed over any number of times."""
    while True:
        try:
            next(g)
        except StopIteration as e:
            return e.value


def run(steps: list[tuple], values: list, world: World | None) -> Iterator[None]:
    """Run steps to the terminator: which it was and what it hands out."""
    for kind, what, ins, outs in steps:
        given = [values[i] for i in ins]
        if kind == PURE_STEP:
            made = what(*given)
        elif kind == WORLD_STEP:
            made = what(world, *given)
        elif kind == END_STEP:
            return what, given
        else:
            signal, made = yield from what(values, world, given)
            if signal is not None:
                return signal, made
        if type(outs) is int:
            values[outs] = made
        elif outs:
            for place, v in zip(outs, made, strict=True):
                values[place] = v
    raise EvaluationError("a block ends without a terminator")


# ------------------------------------------------------------------ structured control flow


def _if(p: Prepared, o: Operation, in_loop: bool):
    then, orelse = (p._block(r, in_loop) for r in o.regions)

    def branch(values, world, given):
        signal, made = yield from run(then if given[0] else orelse, values, world)
        return (None, made) if signal == "yield" else (signal, made)

    return branch


def _set(values: list, places: Sequence[int], made: Sequence) -> None:
    for place, v in zip(places, made, strict=True):
        values[place] = v


def _for(p: Prepared, o: Operation, in_loop: bool):
    body, (region,) = p._block(o.regions[0], in_loop), o.regions
    places = [p._place(v) for v in region.args]
    element = o.operands[0].type.element
    kind = formats.UNSIGNED[element] if o.attrs["unsignedCmp"] else formats.SIGNED[element]

    def count(values, world, given):
        start, stop, step = (int(np.asarray(v).view(kind)) for v in given[:3])
        carried = given[3:]
        require(int(given[2]) > 0, "its step is not positive", o)
        require(_counts(start, stop, step, kind), "the assembler's code for it passes the ends of its dtype", o)
        for i in range(start, stop, step):
            world.turn()
            _set(values, places, [np.asarray(i, kind).view(formats.SIGNED[element]), *carried])
            signal, carried = yield from run(body, values, world)
            require(signal == "continue", "its body ends otherwise than by continue or break", o)
        return None, carried

    return count


def _counts(start: int, stop: int, step: int, kind: np.dtype) -> bool:
    """Whether a dtype has the number after the last of a range, and those some steps from its bounds."""
    numbers = range(start, stop, step)
    after = (numbers[-1] if numbers else start) + step
    return np.iinfo(kind).min <= stop - AHEAD * step and max(after, start + AHEAD * step) <= np.iinfo(kind).max


def _loop(p: Prepared, o: Operation, in_loop: bool):
    body = p._block(o.regions[0], True)
    places = [p._place(v) for v in o.regions[0].args]

    def repeat(values, world, given):
        while True:
            world.turn()
            _set(values, places, given)
            signal, given = yield from run(body, values, world)
            if signal == "break":
                return None, given
            require(signal == "continue", "its body ends otherwise than by continue or break", o)
            if p.takes_turns:
                yield

    return repeat


def _fold(p: Prepared, o: Operation, in_loop: bool):
    region = o.regions[0]
    body, places = p._block(region, False), [p._place(v) for v in region.args]
    at_once = all(x.spec.name in ELEMENTWISE or x.spec.terminator for x in region.ops)
    fold = combine.FOLDS[o.spec.name](o, at_once)

    def combined(values, world, given):
        def on(arguments: list) -> list:
            _set(values, places, arguments)
            return finished(run(body, values, world))[1]

        return None, fold(on, given, world.identities)
        yield  # a generator like the others

    return combined


CONTROL = {"if": _if, "for": _for, "loop": _loop, "reduce": _fold, "scan": _fold}
