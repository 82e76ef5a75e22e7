"""Variants. A variant is second machine code for a program. Launches run it instead of the usual code, once it exists.

No launch waits for a variant. The first launch that could use one takes it from the cache on disk. If it is not there,
the second such launch has it made in the background, and launches use the usual code until then: many kernels run only
once, as in tests, and their variants would only keep the processors busy. A variant that cannot be made or loaded is
given up; CUTILE_DEBUG=1 prints this. The module that defines a variant, such as unchecked.py, decides which launches
may use it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from cutile._support import trace
from cutile._support.locks import Lock
from cutile.gpu import background

LAUNCHES = 2  # that ask for a variant before it is made
_lock = Lock()


class Variant:
    """Other machine code of a program for one GPU.

    name  of the kernel;  what  says how it differs, both for messages
    find  returns the code if that takes hardly any time, as from the cache on disk; else None
    make  makes the code, which may take seconds
    load  loads it on the GPU and returns the handle of its function
    The three may raise any Exception. Threads may share a variant.
    """

    __slots__ = ("name", "what", "function", "given_up", "_find", "_make", "_load", "_cubin", "_launches", "_asked",
                 "_waiting")

    def __init__(self, name: str, what: str, find: Callable[[], bytes | None], make: Callable[[], bytes],
                 load: Callable[[bytes], Any]):
        self.name, self.what, self._find, self._make, self._load = name, what, find, make, load
        self.function: Any = None  # the handle, once it is loaded
        self.given_up = False
        self._cubin: bytes | None = None
        self._launches = 0  # that have asked for it, up to LAUNCHES
        self._asked: int | None = None  # id of the process that has it made
        self._waiting: list[Callable[[], None]] = []

    @property
    def settled(self) -> bool:
        """Whether it is loaded or given up: then `function_or_start` returns the same from now on."""
        return self.function is not None or self.given_up

    @property
    def wanted(self) -> bool:
        """Whether enough launches have asked for it."""
        return self._launches >= LAUNCHES

    def function_or_start(self, when_made: Callable[[], None]) -> Any:
        """The handle of its function; None if it was given up or is not ready. Once `wanted` it is being made, and
        `when_made` is called later, in another thread, when it can be loaded. Not to be called during the capture of a
        CUDA graph.
        """
        try:
            if not self.settled and self._is_there(when_made):
                self.function = self._load(self._cubin)
        except Exception as e:
            self.give_up(e)
        return self.function

    def make_now(self) -> None:
        """Make it and load it, unless it is loaded or given up."""
        try:
            if not self.settled:
                self._cubin = self._cubin or self._make()
                self.function = self._load(self._cubin)
        except Exception as e:
            self.give_up(e)

    def _is_there(self, when_made: Callable[[], None]) -> bool:
        process = os.getpid()
        if not self._launches:
            self._cubin = self._cubin or self._find()
        with _lock.here():
            self._launches = min(self._launches + 1, LAUNCHES)
            if self._cubin is not None or self.given_up:
                return not self.given_up
            if self.wanted and self._asked != process:  # a forked child lacks the parent's thread that was making it
                self._asked = process
                if not background.submit(self._make_in_background):
                    self._asked = None
                    return False
            self._waiting.append(when_made)
            return False

    def _make_in_background(self) -> None:
        try:
            cubin = self._make()
        except Exception as e:
            self.give_up(e)
            return
        with _lock.here():
            self._cubin, waiting, self._waiting = cubin, self._waiting, []
        trace.say(trace.LAUNCHES, f"{self.name} {self.what}: ready")
        for callback in waiting:
            callback()

    def give_up(self, why: Exception) -> None:
        """Never run it: something has failed."""
        with _lock.here():
            self.given_up, self._waiting = True, []
        trace.say(trace.LAUNCHES, f"{self.name} {self.what}: given up, {type(why).__name__}: {why}")
