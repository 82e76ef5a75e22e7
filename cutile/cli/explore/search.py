"""Finds an order of blocks that changes what a launch does, and the shortest list of steps that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

from cutile.cli import script
from cutile.cli.explore.outcomes import Outcome, Rerun
from cutile.interp.exec.turn_order import Dim3, Drawn, Listed, Step

RUNS = 400  # most runs that shorten a list of steps


class Found(NamedTuple):
    """An order that makes a difference.

    seed      that drew it
    usual     what the launch does when each block runs to its end before the next one begins
    other     what it does in this order
    steps     the fewest steps found that show a difference; then each block runs to its end
    """

    seed: int
    usual: Outcome
    other: Outcome
    steps: list[Step]


def usual(launch: Rerun) -> Outcome:
    """What the launch does when each block runs to its end, or waits, before the next one begins."""
    return launch.run(Listed([]))[0]


def first_seed(launch: Rerun, seeds: Iterable[int]) -> int | None:
    """The first of some seeds whose order makes a difference."""
    expected = usual(launch)
    return next((seed for seed in seeds if launch.run(Drawn(seed))[0] != expected), None)


def first_seed_of_script(file: str, name: str, arguments: Sequence[str], number: int, seeds: range) -> int | None:
    """`first_seed`, for a launch of a script: what a worker process can do, which has no launch yet."""
    return script.at_launch(file, name, arguments, number, lambda caught: first_seed(Rerun(caught), seeds))


def first_seed_by(executor: Executor, parts: int, file: str, name: str, arguments: Sequence[str], number: int,
                  seeds: range) -> int | None:
    """`first_seed_of_script`, with the seeds dealt out to the workers of an executor."""
    dealt = [seeds[k::parts] for k in range(parts)]
    futures = [executor.submit(first_seed_of_script, file, name, arguments, number, part) for part in dealt if part]
    return min((seed for f in futures if (seed := f.result()) is not None), default=None)


def explain(launch: Rerun, seed: int) -> Found:
    """The order that a seed draws, made as short as possible."""
    expected = usual(launch)
    _, steps = launch.run(Drawn(seed))

    def differs(blocks: Sequence[Dim3]) -> bool:
        return launch.run(Listed(blocks))[0] != expected

    blocks = shortest([s.block for s in steps], differs, RUNS)
    other, taken = launch.run(Listed(blocks))
    return Found(seed, expected, other, taken[:len(blocks)])


def shortest(items: Sequence[Dim3], fails: Callable[[Sequence[Dim3]], bool], runs: int) -> list[Dim3]:
    """A short list that fails, made from one that fails by leaving parts out, with at most `runs` tries."""
    found, size = list(items), len(items)
    while size:
        before = len(found)
        for at in range(before, 0, -size):  # from the end, since what follows the last needed step is not needed
            if not runs:
                return found
            runs -= 1
            shorter = found[:max(at - size, 0)] + found[at:]
            if fails(shorter):
                found = shorter
        if size == 1 and len(found) == before:
            break
        size = max(size // 2, 1)
    return found
