"""Control flow of the batch schedule: branches, loops and calls over sets of running blocks.

The emitted code has a Python function for every nested region of the IR. Its parameters are the running blocks, the
params of the region, and the values that the region captures. If every block reaches the end of the region, the
function returns the tuple of the region's results. Otherwise the function is `leaving`: it appends the blocks that
leave by Break, Continue or Return to the exit record of their loop or frame, and returns (blocks, results) of the
blocks that reach the end, or None if there are none.

As long as all blocks take the same branches, no set is split and no value is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat

import numpy as np

from cutile._support.structs import structure
from cutile.errors import TileStepLimitError, TileValueError
from cutile.interp.exec.block_set import BlockSet, Widened, widen
from cutile.interp.exec.merge import Part, Rank, merge, narrow
from cutile.ops._combine import InOneCall
from cutile.spans import Span


@structure(slots=True)
class RegionCode:
    """The emitted function of a region, the ranks of the values that it captures, and whether blocks may leave it
    early.
    """

    ranks: tuple[Rank, ...]
    leaving: bool
    function: Callable | None = None

    def run(self, ctx: BlockSet, values: tuple) -> Part | None:
        """Call the function. The result has the form of a leaving function's."""
        out = self.function(ctx, *values)
        return out if self.leaving else (ctx, out)


@structure(slots=True)
class MergePoint:
    """The end of a node, where paths meet: the ranks of the values that arrive, and the node's position in the user's
    source.
    """

    ranks: tuple[Rank, ...]
    span: Span
    dtype: np.dtype | None = None  # carrier of the induction variable of a For


# ------------------------------------------------------------------ branches and calls


def branch(ctx: BlockSet, cond: np.ndarray, then: RegionCode, then_values: tuple, orelse: RegionCode,
           else_values: tuple, point: MergePoint) -> Part | None:
    """Run an If. Returns the blocks that reach the end of their branch, with the results; None if there are none."""
    if cond.size == 1 or _uniform(cond):
        return then.run(ctx, then_values) if cond.flat[0] else orelse.run(ctx, else_values)
    yes, no = ctx.split(cond)
    parts = [then.run(yes, narrow(ctx, yes, then_values, then.ranks)),
             orelse.run(no, narrow(ctx, no, else_values, orelse.ranks))]
    return _meet(ctx, [p for p in parts if p is not None], point)


def branch_all(ctx: BlockSet, cond: np.ndarray, then: RegionCode, then_values: tuple, orelse: RegionCode,
               else_values: tuple, point: MergePoint) -> tuple:
    """Run an If of which every block reaches the end. Returns the results."""
    if cond.size == 1:
        return then.function(ctx, *then_values) if cond.flat[0] else orelse.function(ctx, *else_values)
    return branch(ctx, cond, then, then_values, orelse, else_values, point)[1]


def frame(ctx: BlockSet, body: RegionCode, values: tuple, point: MergePoint) -> tuple:
    """Run a call from which blocks return at several places. Returns the results."""
    returns: list[Part] = []
    out = body.run(ctx, (*values, returns))
    return _meet(ctx, returns + ([out] if out is not None else []), point)[1]


def _uniform(mask: np.ndarray) -> bool:
    return mask.all() or not mask.any()


def _meet(ctx: BlockSet, parts: Sequence[Part], point: MergePoint) -> Part | None:
    return merge(ctx, parts, point.ranks) if parts else None


# ------------------------------------------------------------------ loops


class _RunningLoop:
    """A running loop: the blocks still in it, their carried and captured values, and the exits so far."""

    def __init__(self, ctx: BlockSet, inits: tuple, point: MergePoint):
        self.outer, self.ctx, self.carried, self.point = ctx, ctx, inits, point
        self.exits: list[Part] = []
        self.captured: list[tuple[tuple, tuple[Rank, ...]]] = []  # (values, ranks)

    def capture(self, values: tuple, ranks: tuple[Rank, ...]) -> int:
        self.captured.append((values, ranks))
        return len(self.captured) - 1

    def restrict(self, ctx: BlockSet) -> None:
        """Go on with some of the blocks."""
        self.captured = [(narrow(self.ctx, ctx, v, r), r) for v, r in self.captured]
        self.ctx = ctx

    def exit(self) -> None:
        """Make all blocks that are still in the loop leave it."""
        self.exits.append((self.ctx, self.carried))
        self.ctx = None

    def exit_where(self, mask: np.ndarray) -> None:
        """Make the blocks where the mask is True leave the loop."""
        if not mask.any():
            return
        if mask.all():
            self.exit()
            return
        done, rest = self.ctx.split(mask)
        self.exits.append((done, narrow(self.ctx, done, self.carried, self.point.ranks)))
        self.carried = narrow(self.ctx, rest, self.carried, self.point.ranks)
        self.restrict(rest)

    def step(self, body: RegionCode, first: tuple, values: tuple) -> None:
        """Run the body once. Then `ctx` has the blocks that continue, and `carried` their values."""
        if self.ctx.launch.step_limit is not None:
            count_step(self.ctx, self.point.span)
        if not body.leaving:
            self.carried = body.function(self.ctx, *first, *self.carried, *values)
            return
        continues: list[Part] = []
        out = body.function(self.ctx, *first, *self.carried, *values, self.exits, continues)
        if out is not None:
            continues.append(out)
        if not continues:
            self.ctx = None
            return
        ctx, self.carried = merge(self.ctx, continues, self.point.ranks)
        if ctx is not self.ctx:
            self.restrict(ctx)

    def result(self, ranks: tuple[Rank, ...]) -> Part | None:
        return merge(self.outer, self.exits, ranks) if self.exits else None


def count_step(ctx: BlockSet, span: Span) -> None:
    """Count one iteration for each of the blocks. TileStepLimitError if the launch has made more than CUTILE_STEP_LIMIT
    in all its loops.
    """
    launch = ctx.launch
    launch.steps += ctx.count
    if launch.steps > launch.step_limit:
        raise TileStepLimitError(f"the loops of this launch ran more than {launch.step_limit} iterations "
                                 f"(CUTILE_STEP_LIMIT); block {ctx.blocks()[0]} was in this one", span)


def for_loop(ctx: BlockSet, bounds: tuple[np.ndarray, np.ndarray, np.ndarray], inits: tuple, body: RegionCode,
             values: tuple, point: MergePoint, loop_tiles: Sequence[Callable[[range], Iterable]] = ()) -> Part | None:
    """Run a For. Returns the blocks that leave it other than by Return, with the carried values; None without any.

    `loop_tiles`: for some loads in the body, what finds their tiles in all iterations. They are called if all blocks
    make the same iterations and none leaves early. The tiles are the last arguments of the body, which may be missing.
    """
    start, step, trips = _trips(*bounds, point.span)
    uniform = isinstance(trips, int)
    if uniform and not body.leaving:
        return ctx, _together(ctx, start, step, trips, inits, body.function, values, point, loop_tiles)
    loop = _RunningLoop(ctx, inits, point)
    loop.capture(values, body.ranks)
    if not uniform:
        loop.capture((start, step, trips), (0, 0, 0))
    k = 0
    while loop.ctx is not None:
        if not uniform:
            start, step, trips = loop.captured[1][0]
        until = trips if uniform else int(trips.min())
        while k < until and loop.ctx is not None:
            if not uniform:
                start, step, _ = loop.captured[1][0]
            iv = np.asarray(start + k * step, point.dtype) if uniform else (start + k * step).astype(point.dtype)
            loop.step(body, (iv,), loop.captured[0][0])
            k += 1
        if loop.ctx is not None:
            if uniform:
                loop.exit()
            else:
                loop.exit_where(loop.captured[1][0][2] <= k)
    return loop.result(point.ranks)


LEAST_TRIPS = 4  # iterations from which on loop tiles are faster [measured]
MOST_TRIPS = 1 << 31  # no array has as many tiles


def _together(ctx: BlockSet, start: int, step: int, count: int, carried: tuple, body: Callable, values: tuple,
              point: MergePoint, loop_tiles: Sequence[Callable[[range], Iterable]]) -> tuple:
    """Run a loop in which all blocks make the same iterations. Returns the carried values at its end."""
    trips = range(start, start + count * step, step)
    limited, dtype, rest = ctx.launch.step_limit is not None, point.dtype, repeat(())
    if loop_tiles and LEAST_TRIPS <= count <= MOST_TRIPS:
        rest = zip(*(find(trips) for find in loop_tiles), strict=False)
    for k, found in zip(trips, rest, strict=False):
        if limited:
            count_step(ctx, point.span)
        carried = body(ctx, np.asarray(k, dtype), *carried, *values, *found)
    return carried


def _trips(start: np.ndarray, stop: np.ndarray, step: np.ndarray, span: Span):
    """(start, step, number of iterations): ints where all blocks agree, else int64 arrays."""
    if start.size == stop.size == step.size == 1:
        a, z, s = start.item(), stop.item(), step.item()
        if s <= 0:
            bad_step(s, span)
        return a, s, max(-((a - z) // s), 0)
    if (step <= 0).any():
        bad_step(step.min(), span)
    a, z, s = (x.astype(np.int64) for x in (start, stop, step))
    a, z, s = np.broadcast_arrays(a, z, s)
    distance = z.astype(np.uint64) - a.astype(np.uint64)  # exact where z > a, also when it exceeds int64
    trips = (distance - np.uint64(1)) // s.astype(np.uint64) + np.uint64(1)
    trips = np.where(z > a, trips, np.uint64(0)).astype(np.int64)
    if a.size and _all_equal(a) and _all_equal(s) and _all_equal(trips):
        return int(a.flat[0]), int(s.flat[0]), int(trips.flat[0])
    return a, s, trips


def _all_equal(x: np.ndarray) -> bool:
    return bool((x == x.flat[0]).all())


def bad_step(step, span: Span):
    raise TileValueError(f"the step of range() must be positive, got {int(step)}", span)


def while_loop(ctx: BlockSet, inits: tuple, cond: RegionCode | None, cond_values: tuple, body: RegionCode,
               values: tuple, point: MergePoint, results: tuple[Rank, ...]) -> Part | None:
    """Run a While. Returns the blocks that leave it other than by Return, with the results; None if there are none."""
    loop = _RunningLoop(ctx, inits, point)
    loop.capture(values, body.ranks)
    if cond is not None:
        loop.capture(cond_values, cond.ranks)
    while loop.ctx is not None:
        if cond is not None:
            (holds,) = cond.function(loop.ctx, *loop.carried, *loop.captured[1][0])
            if holds.size > 1:
                loop.exit_where(~holds)
            elif not holds.flat[0]:
                loop.exit()
            if loop.ctx is None:
                break
        loop.step(body, (), loop.captured[0][0])
    return loop.result(results)


# ------------------------------------------------------------------ combine functions of reduce and scan


@structure(slots=True)
class Combine:
    """The user's function of a reduce or scan in the batch schedule, and the ufunc that it is, if it is one."""

    region: RegionCode
    ufunc: np.ufunc | None = None

    def bind(self, ctx: BlockSet, values: tuple) -> Callable[[tuple], tuple]:
        """The `combine` of a meaning: a function from carriers to carriers, which are scalars with batch axes only.

        `values`: those that the user's function captures.
        """
        function, ranks = self.region.function, self.region.ranks

        def combine(args: tuple) -> tuple:
            extra = max(x.ndim for x in args) - len(ctx.batch_shape)
            captured = (widen(v, r, extra) for v, r in zip(values, ranks, strict=True))
            return function(Widened(ctx, extra), *args, *captured)

        return combine if self.ufunc is None else InOneCall(combine, self.ufunc)
