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
    """Let the blocks of launches on CPU arrays take turns in an order that can be repeated, within a `with` block.

    Blocks run under the schedule "interleave": a block pauses before each access to global memory.

    Parameters
    ----------
    seed : int, default None
        The seed of the random choice of the next block, 0 or more.
    replay : path, default None
        A file that `cutile explore` has written: its steps come first; then each block runs to its end.

    Raises
    ------
    TypeError
        Not exactly one of them is given.
    ValueError
        A negative seed, or a file that `cutile explore` has not written.

    Examples
    --------
    >>> @ct.kernel
    ... def double(x, out):
    ...     i = ct.bid(0)
    ...     ct.store(out, i, 2 * ct.load(x, i, 4))
    >>> x, out = np.arange(8), np.zeros(8, int)
    >>> with ct.schedule(seed=7):
    ...     ct.launch(None, (2,), double, (x, out))
    >>> print(out)
    [ 0  2  4  6  8 10 12 14]
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
