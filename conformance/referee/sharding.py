"""Work on many seeds in processes of their own: one that crashes, hangs or loses its GPU costs one result, not the run.

Processes are forked, so this needs a system with fork. Each works on a few hundred seeds and ends, which bounds its
memory.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

CHUNK = 200
GRACE = 20  # seconds that unfinished seeds have when time is up


class Work(Protocol):
    """The work of a process, made once in each process. Results must pickle."""

    spoiled: bool  # this process can do nothing more

    def __call__(self, seed: int) -> Any:
        """The result for a seed."""

    def end(self) -> Any:
        """The result for all seeds of this process together."""


@dataclass(frozen=True)
class Done:
    """A seed with its result."""

    seed: int
    value: Any


@dataclass(frozen=True)
class Lost:
    """The process died on this seed, or took too long, and so did another process with this seed alone."""

    seed: int
    why: str


@dataclass(frozen=True)
class End:
    """A process has ended: the result of `end()`, and the most memory it used, in MiB."""

    value: Any
    memory: int


@dataclass
class _Shard:
    process: BaseProcess
    pipe: Connection
    seeds: deque[int]
    since: float = field(default_factory=time.monotonic)


def each(make: Callable[[], Work], seeds: Sequence[int], *, jobs: int = 1, chunk: int = CHUNK, limit: float = 60,
         seconds: float | None = None) -> Iterator[Done | Lost | End]:
    """Done or Lost for every seed, in order if there is one job, and End for every process that ended by itself.

    chunk    seeds of a process;  limit: seconds for one seed
    seconds for all: then no more seeds are begun, and unfinished ones are left out
    An error of the work itself is a RuntimeError with its traceback; its SystemExit is raised here. Leaving the
    iteration ends the processes.
    """
    pool = _Pool(make, limit, time.monotonic() + seconds if seconds is not None else float("inf"))
    chunk = max(1, min(chunk, -(-len(seeds) // jobs)))
    pool.waiting.extend(deque(seeds[i:i + chunk]) for i in range(0, len(seeds), chunk))
    try:
        while pool.busy(jobs):
            for pipe in wait(list(pool.running), timeout=1):
                yield from pool.heard(pipe)
            yield from pool.overdue()
    finally:
        for pipe in list(pool.running):
            pool.stop(pipe)


class _Pool:
    def __init__(self, make: Callable[[], Work], limit: float, deadline: float):
        self.make, self.limit, self.deadline = make, limit, deadline
        self.context = get_context("fork")
        self.waiting: deque[deque[int]] = deque()
        self.running: dict[Connection, _Shard] = {}
        self.again: set[int] = set()

    def busy(self, jobs: int) -> bool:
        """Start more processes if possible. Gives whether any runs."""
        if time.monotonic() > self.deadline:
            self.waiting.clear()
        while self.waiting and len(self.running) < jobs:
            seeds = self.waiting.popleft()
            mine, theirs = self.context.Pipe(duplex=False)
            process = self.context.Process(target=_work, args=(self.make, list(seeds), theirs, self.deadline))
            process.start()
            theirs.close()
            self.running[mine] = _Shard(process, mine, seeds)
        return bool(self.running)

    def heard(self, pipe: Connection) -> Iterator[Done | Lost | End]:
        shard = self.running[pipe]
        try:
            kind, *rest = pipe.recv()
        except EOFError:
            self.stop(pipe)
            yield from self.lost(shard, f"the process died: {_reason(shard.process.exitcode)}")
            return
        shard.since = time.monotonic()
        if kind == "done":
            shard.seeds.popleft()
            yield Done(*rest)
        elif kind == "end":
            self.stop(pipe)
            self.queue(shard.seeds)
            yield End(*rest)
        elif kind == "exit":
            raise SystemExit(rest[0])
        elif kind == "error":
            raise RuntimeError(f"seed {shard.seeds[0] if shard.seeds else 'none'}: {rest[0]}")

    def overdue(self) -> Iterator[Done | Lost | End]:
        now = time.monotonic()
        for pipe, shard in list(self.running.items()):
            if now > self.deadline + GRACE:
                self.stop(pipe)
            elif now - shard.since > self.limit:
                self.stop(pipe)
                yield from self.lost(shard, f"nothing came for {self.limit:g} s")

    def lost(self, shard: _Shard, why: str) -> Iterator[Lost]:
        """Try the unfinished seed again, alone; the rest go on in another process."""
        seed = shard.seeds.popleft()
        self.queue(shard.seeds)
        if seed in self.again:
            yield Lost(seed, why)
        else:
            self.again.add(seed)
            self.queue(deque([seed]))

    def queue(self, seeds: deque[int]) -> None:
        if seeds:
            self.waiting.appendleft(seeds)

    def stop(self, pipe: Connection) -> None:
        shard = self.running.pop(pipe)
        if not pipe.closed and shard.process.is_alive():
            shard.process.join(1)
            shard.process.kill()
        shard.process.join()
        pipe.close()


def _work(make: Callable[[], Work], seeds: list[int], pipe: Connection, deadline: float) -> None:
    """Runs in the process. Everything that programs print is dropped."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    sys.stdout = open(1, "w", closefd=False)
    try:
        work = make()
        pipe.send(("ready",))
        for seed in seeds:
            if time.monotonic() > deadline or work.spoiled:
                break
            pipe.send(("done", seed, work(seed)))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "linux" else 1 << 20)
        pipe.send(("end", work.end(), memory))
    except SystemExit as e:
        pipe.send(("exit", str(e)))
    except Exception:
        pipe.send(("error", traceback.format_exc()))
    finally:
        pipe.close()
        os._exit(0)  # must not run or flush anything of the parent's


def _reason(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit {code}"
