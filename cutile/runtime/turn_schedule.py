"""ct.schedule: the order in which the blocks of a launch take turns in the interpreter."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cutile import settings

VERSION = 1  # of replay files


@contextmanager
def schedule(*, seed: int | None = None, replay: str | os.PathLike | None = None) -> Iterator[None]:
    """Within the `with` block, the blocks of launches on CPU arrays take turns in an order that can be repeated.

    Blocks run under the schedule "interleave": a block pauses before each access to global memory.

    seed     draws the block that goes on: an int, 0 or more
    replay   a file that `cutile explore` has written: its steps come first; then each block runs to its end
    TypeError unless exactly one of them is given; ValueError for a negative seed, and for a file that is no such one.
    """
    if (seed is None) == (replay is None):
        raise TypeError("schedule() takes a seed, or replay= with the name of a file that `cutile explore` has written")
    steps = None if replay is None else read_steps(replay)
    with settings.override(SCHEDULE="interleave", SEED=0 if seed is None else seed):
        if steps is None:
            yield
            return
        from cutile.interp.exec.turn_order import Listed, chosen  # loaded when it is needed

        before = chosen.get()
        try:  # not with a token: an interrupt could lose it
            chosen.set(Listed(steps))
            yield
        finally:
            chosen.set(before)


def write_steps(path: str | os.PathLike, kernel: str, steps: Sequence[tuple[int, int, int]]) -> None:
    """Write a replay file. `steps`: the blocks that take the first turns, in order."""
    content = {"cutile replay": VERSION, "kernel": kernel, "steps": steps}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(content, f, indent=1)


def read_steps(path: str | os.PathLike) -> list[tuple[int, int, int]]:
    """The blocks that a replay file lists. ValueError if it is none."""
    with open(path, encoding="utf-8") as f:
        try:
            content: Any = json.load(f)
            if content["cutile replay"] != VERSION:
                raise ValueError
            return [(int(x), int(y), int(z)) for x, y, z in content["steps"]]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{os.fspath(path)} is no replay file of this version of cutile") from None
