"""Work that no launch waits for: a thread of this module does jobs, one after another.

The thread begins with a job and ends when there is none left. It never keeps the process from ending: what it has not
finished is dropped, and a tool that it runs is stopped. A forked child begins without jobs.
"""

from __future__ import annotations

import atexit
import contextvars
import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Ended(BaseException):
    """Raised in a job when the process ends."""


PATIENCE = 0.5  # seconds that the end of the process waits for the clean-up after a tool that was stopped

_lock = threading.Lock()
_jobs: deque[Callable[[], None]] = deque()
_stops: list[Callable[[], None]] = []  # what to call so that the running job stops
_thread: threading.Thread | None = None
_idle = threading.Event()  # set while there is no thread
_idle.set()
_ending = False


def submit(job: Callable[[], None]) -> bool:
    """Queue a job, which runs under the settings of now. False if the process is about to end or can have no thread.

    A job raises nothing but Ended.
    """
    global _thread
    with _lock:
        if _ending:
            return False
        _jobs.append(functools.partial(contextvars.copy_context().run, job))
        if _thread is not None:
            return True
        _at_exit()
        _thread = threading.Thread(target=_work, name="cutile", daemon=True)
        _idle.clear()
        try:
            _thread.start()
        except RuntimeError:  # no more threads, or an interpreter that may have none of this kind
            _jobs.clear()
            _thread = None
            _idle.set()
            return False
    return True


def wait() -> None:
    """Wait until all jobs are done."""
    _idle.wait()


@contextmanager
def stopped_by(stop: Callable[[], None]) -> Iterator[None]:
    """Within the `with` block a job waits for something. If the process ends meanwhile, the exiting thread calls
    `stop`, and the block raises Ended.
    """
    if threading.current_thread() is not _thread:
        yield
        return
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)
        if _ending:
            raise Ended


def _work() -> None:
    global _thread
    while True:
        with _lock:
            if _ending or not _jobs:
                _thread = None
                _idle.set()
                return
            job = _jobs.popleft()
        with suppress(Ended):
            job()


@functools.cache
def _at_exit() -> None:
    atexit.register(_end)


def _end() -> None:
    """Stop the thread at the end of the process."""
    global _ending
    with _lock:
        _ending = True
        _jobs.clear()
        thread = _thread
    until = time.monotonic() + PATIENCE
    while thread is not None and thread.is_alive() and time.monotonic() < until:
        for stop in list(_stops):
            stop()
        thread.join(0.01)


def _after_fork() -> None:
    """Forget all jobs in a forked child: the thread that did them is not there."""
    global _lock, _thread, _idle
    _lock, _thread, _idle = threading.Lock(), None, threading.Event()
    _idle.set()
    _jobs.clear()
    _stops.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
