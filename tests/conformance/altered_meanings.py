"""Toys: cutile's interpreter with other meanings of some ops. Some are wrong on purpose, some use a freedom
differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from conformance.adapters.cutile_interp import Interp
from cutile.ops._op import lookup


class Toy(Interp):
    """Some ops mean something else: `ops` has for each name a function that gets the right meaning and its arguments.
    """

    own_kernels = True
    ops: dict[str, Callable] = {}

    def launch(self, grid, kernel, args) -> None:
        with ExitStack() as stack:
            for name, wrong in self.ops.items():
                stack.enter_context(meaning_changed(name, wrong))
            super().launch(grid, kernel, args)


@contextmanager
def meaning_changed(name: str, wrong: Callable) -> Iterator[None]:
    o = lookup(name)
    right = o.meaning

    def other(*args: Any, **options: Any) -> Any:
        return wrong(right, *args, **options)

    other.__kwdefaults__ = right.__kwdefaults__
    o.meaning = other
    try:
        yield
    finally:
        o.meaning = right


class Swapped(Toy):
    """The maximum of two numbers is the smaller one."""

    name, ops = "toy:swapped", {"maximum": lambda right, x, y, /, **options: np.minimum(x, y)}


def off_by(ulp: float) -> Callable:
    """A meaning whose float32 results are larger by this many units in the last place."""
    def wrong(right, *xs, out=None, **options):
        y = np.asarray(right(*xs, **options))
        return (y.astype(np.float64) * (1 + ulp * 2.0**-23)).astype(np.float32) if xs[0].dtype == np.float32 else y

    return wrong


class FarOff(Toy):
    """exp is a hundred units off."""

    name, ops = "toy:far off", {"exp": off_by(100)}


def backwards(right, x, /, *, axis, **options):
    return right(np.flip(x, axis), axis=axis, **options)


def from_the_last(right, x, y, acc, /, **options):
    """A matrix product that sums its terms in reverse order."""
    return right(np.flip(x, -1), np.flip(y, -2), acc, **options)


class Free(Toy):
    """Uses the freedoms of ops: rounds transcendentals differently, and sums in another order."""

    name = "toy:free"
    ops = {**dict.fromkeys(("exp", "exp2", "log", "log2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "rsqrt",
                            "atan2"),
                           off_by(1)), "sum": backwards, "prod": backwards, "mma": from_the_last}


class ByBlock(Interp):
    """The interpreter, one block after another."""

    name = "toy:block"

    def launch(self, grid, kernel, args) -> None:
        from cutile import settings

        with settings.override(SCHEDULE="block", PORTABLE=True):
            super().launch(grid, kernel, args)
