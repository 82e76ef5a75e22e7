"""Work shared out among forked processes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any


def shared_out(items: list, jobs: int, work: Callable[[Any], None]) -> list[int]:
    """Begin `work` on the items in `jobs` forked processes; a process takes the next item when it has finished one.

    At most 16000 items. Returns the processes: `finish` them.
    """
    sys.stdout.flush()
    read, write = os.pipe()
    os.write(write, b"".join(i.to_bytes(4) for i in range(len(items))))
    os.close(write)
    pids = []
    for _ in range(min(jobs, len(items))):
        if pid := os.fork():
            pids.append(pid)
            continue
        try:
            while number := os.read(read, 4):
                work(items[int.from_bytes(number)])
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(read)
    return pids


def finish(pids: list[int]) -> None:
    statuses = [os.waitpid(pid, 0)[1] for pid in pids]
    if any(statuses):
        raise RuntimeError("a process of the tool failed, see above")


def apart(work: Callable[[], None]) -> None:
    """Run in a forked process, which changes nothing in this one."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return finish([pid])
    try:
        work()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
