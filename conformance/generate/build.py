"""A program from a seed: which productions there are, how often each is taken, and the shape of a kernel."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from conformance.generate import casts, control, elementwise, forms, idioms, loads, narrow, stores, structural
from conformance.generate.core import Gen, Options, T
from conformance.generate.dtypes import FLOATS, INTS
from conformance.generate.tree import Expr, Let, Program

# Expressions of tiles alone, by weight, for helpers and kernels.
PURE: dict[Callable, int] = {
    elementwise.arithmetic: 12, elementwise.multiply_add: 5, elementwise.divide: 4, elementwise.whole_division: 5,
    elementwise.extremes: 4,
    elementwise.sign: 4, elementwise.function: 14, elementwise.whole: 3, elementwise.is_nan: 2, elementwise.angle: 2,
    elementwise.powers: 4, elementwise.bits: 4, elementwise.invert: 3, elementwise.shift: 4, elementwise.comparison: 6,
    elementwise.choice: 4, elementwise.mixed: 3, casts.cast: 6, casts.bitcast: 4, casts.packing: 5,
    structural.reshaped: 2, structural.broadcasted: 2, structural.expanded: 3, structural.permuted: 4,
    structural.joined: 3,
    structural.extracted: 3, structural.inserted: 3, structural.item: 2, structural.stacked: 2, structural.ramp: 2,
    structural.folded: 10, structural.reduced: 6, structural.running: 4, structural.product: 7,
    structural.twice: 4, structural.chosen: 2, narrow.moving: 9, narrow.created: 3,
}
# Expressions that only a kernel can have.
IN_KERNEL: dict[Callable, int] = {
    control.ternary: 3, control.connective: 3, loads.sizes: 9, control.scalars: 2, structural.scaled_product: 2,
    idioms.idiom: 20, forms.parameter: 3,
}
STATEMENTS: dict[Callable, int] = {
    stores.atomic: 20, control.always: 2, control.dependency: 2, control.nothing: 1, forms.assigned: 17, forms.said: 3,
    forms.static_assert: 2, forms.untaken: 2, forms.idle: 1,
}
NESTED: dict[Callable, int] = {control.branch: 5, control.for_loop: 5, control.while_loop: 3, control.unrolled: 1,
                               forms.with_block: 2}


def chosen(g: Gen, table: dict[Callable, int]) -> Callable:
    names, weights = list(table), list(itertools.accumulate(table.values()))
    return g.rng.choices(names, cum_weights=weights)[0]


def expression(g: Gen) -> Expr | None:
    return chosen(g, PURE)(g)


def in_kernel(g: Gen) -> Expr | None:
    return chosen(g, PURE if g.chance(0.84) else IN_KERNEL)(g)


def step(g: Gen) -> None:
    """One statement, or a nest of them."""
    roll = g.rng.random()
    if roll < 0.12 and g.depth < 2 and g.trips <= 8:
        chosen(g, NESTED)(g, inner)
    elif roll < 0.24:
        chosen(g, STATEMENTS)(g)
    elif roll < 0.3 and g.depth == 0:
        control.helper(g, expression, nested=g.chance(0.4))
    elif (e := in_kernel(g)) is not None:
        g.let(e)


def inner(g: Gen) -> None:
    """The body of a branch or loop, before its variables get their new values."""
    for _ in range(g.pick((1, 1, 1, 2))):
        step(g)
    if g.chance(0.3) and g.scope:
        stores.store(g, g.use(g.pick(g.scope)))


def generate(seed: int | Random, options: Options | None = None) -> Program:
    """A program; the same for the same seed and options. A `random.Random` may stand for the seed."""
    options = options or Options()
    rng, name = (seed, seed.getrandbits(32)) if isinstance(seed, Random) else (Random(seed), seed)
    g = begun(rng, options)
    for _ in range(2):
        g.let(g.want(g.pick((*FLOATS, *INTS)), g.shape(1)))
    nested = False
    for k in range(g.rng.randrange(options.statements - 1, options.statements + 3)):
        if not nested and k >= 1 and g.chance(0.4):
            chosen(g, NESTED)(g, inner)
            nested = True
        step(g)
    if g.blocks > 1 and g.chance(0.06):
        control.leave_early(g)
    return ended(g, name)


def begun(rng: Random, options: Options) -> Gen:
    """A kernel that has the number of its block, and nothing else."""
    g = Gen(rng, options)
    block_number(g)
    return g


def ended(g: Gen, name: Any) -> Program:
    """The program, with stores of the values that nothing has used."""
    stores.remaining(g, 4)
    return Program(name, g.params, g.helpers, g.out, g.grid, g.features)


def block_number(g: Gen) -> None:
    """`b = …`: the number of the block in the grid."""
    axes = len(g.grid)
    text = {1: "ct.bid(0)", 2: "ct.bid(0) * ct.num_blocks(1) + ct.bid(1)",
            3: "(ct.bid(0) * ct.num_blocks(1) + ct.bid(1)) * ct.num_blocks(2) + ct.bid(2)"}[axes]

    def fn(ctx: Any) -> np.ndarray:
        n = 0
        for i, m in zip(ctx.bid[:axes], ctx.grid[:axes], strict=True):
            n = n * m + i
        return np.asarray(n, np.int32)

    ops = (("bid", "i32"),) * axes + (("num_blocks", "i32"), ("mul", "i32"), ("add", "i32")) * (axes - 1)
    g.out.append(Let(("b",), Expr(text, (), T("i32"), fn, ops)))
    g.scope.append(g.block)
