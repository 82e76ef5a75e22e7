"""Finds an order of blocks that changes what a launch does or shows a race, and the shortened list of steps for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

from cutile.cli import script
from cutile.cli.explore.outcomes import Outcome, Ran, Rerun
from cutile.errors import TileSanitizerError
from cutile.interp.exec.turn_order import Dim3, Drawn, Listed, Step

RUNS = 400  # most runs that shorten a list of steps


class Seeds(NamedTuple):
    """What the orders that seeds draw show.

    differing  the first seed whose order makes a difference
    racing     the first seed, no later than that, whose order shows a race that the usual order does not show
    """

    differing: int | None
    racing: int | None

    def first(self) -> int | None:
        return self.racing if self.differing is None else self.differing


class Found(NamedTuple):
    """An order that makes a difference or shows a race, beside the usual one.

    outcome  what the launch does in it
    steps    the fewest steps found that show it; then each block runs to its end
    races    those of the usual order, of this one, and of the seeds' orders
    """

    outcome: Outcome
    steps: list[Step]
    races: dict[Hashable, TileSanitizerError]


def usual(launch: Rerun) -> Ran:
    """What the launch does when each block runs to its end, or waits, before the next one begins."""
    return launch.run(Listed([]))


def try_seeds(launch: Rerun, seeds: Iterable[int], expected: Ran) -> Seeds:
    """Run orders up to the first that makes a difference."""
    racing = None
    for seed in seeds:
        ran = launch.run(Drawn(seed))
        if racing is None and not ran.races.keys() <= expected.races.keys():
            racing = seed
        if ran.outcome != expected.outcome:
            return Seeds(seed, racing)
    return Seeds(None, racing)


def try_seeds_of_script(file: str, name: str, arguments: Sequence[str], number: int, seeds: range) -> Seeds:
    """`try_seeds`, for worker processes, which must run the script first."""
    def tried(caught: script.Caught) -> Seeds:
        launch = Rerun(caught)
        return try_seeds(launch, seeds, usual(launch))

    return script.at_launch(file, name, arguments, number, tried)


def try_seeds_by(executor: Executor, parts: int, file: str, name: str, arguments: Sequence[str], number: int,
                 seeds: range) -> Seeds:
    """`try_seeds_of_script`, with the seeds distributed to the workers of an executor."""
    shares = [seeds[k::parts] for k in range(parts)]
    futures = [executor.submit(try_seeds_of_script, file, name, arguments, number, part) for part in shares if part]
    found = [f.result() for f in futures]
    differing = min((s.differing for s in found if s.differing is not None), default=None)
    racing = min((s.racing for s in found if s.racing is not None), default=None)
    late = differing is not None and racing is not None and racing > differing
    return Seeds(differing, None if late else racing)


def explain(launch: Rerun, seeds: Seeds, expected: Ran) -> Found:
    """The order that a seed draws, made as short as possible; without a seed, the usual order and its races."""
    seed = seeds.first()
    if seed is None:
        return Found(expected.outcome, [], expected.races)
    drawn = launch.run(Drawn(seed))
    wanted = next((key for key in drawn.races if key not in expected.races), None)

    def shows(blocks: Sequence[Dim3]) -> bool:
        ran = launch.run(Listed(blocks))
        return ran.outcome != expected.outcome if seeds.differing is not None else wanted in ran.races

    blocks = shortened([s.block for s in drawn.steps], shows, RUNS)
    ran = launch.run(Listed(blocks))
    earlier = launch.run(Drawn(seeds.racing)).races if seeds.racing not in (None, seed) else {}
    return Found(ran.outcome, ran.steps[:len(blocks)], {**expected.races, **ran.races, **drawn.races, **earlier})


def shortened(items: Sequence[Dim3], differs: Callable[[Sequence[Dim3]], bool], runs: int) -> list[Dim3]:
    """Leave parts out of a list as long as it still differs, with at most `runs` tries."""
    found, size = list(items), len(items)
    while size:
        before = len(found)
        for at in range(before, 0, -size):  # from the end, since what follows the last needed step is not needed
            if not runs:
                return found
            runs -= 1
            shorter = found[:max(at - size, 0)] + found[at:]
            if differs(shorter):
                found = shorter
        if size == 1 and len(found) == before:
            break
        size = max(size // 2, 1)
    return found
