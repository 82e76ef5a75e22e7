"""Python's cyclic garbage collector rests while a kernel is compiled.

Compiling makes many objects and hardly any garbage; looking through them again and again took a tenth of a first
launch. What is garbage all the same is found after.
"""

from __future__ import annotations

import gc
import threading

_lock = threading.Lock()
_users = 0
_before = False


class at_rest:  # used like a function
    """Keep the collector from starting by itself for a while: `with at_rest():`.

    It is the whole process's, so the last of the threads inside starts it again, if the first one found it running.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        global _users, _before
        with _lock:
            if _users == 0:
                _before = gc.isenabled()
                gc.disable()
            _users += 1

    def __exit__(self, *_: object) -> None:
        global _users
        with _lock:
            _users -= 1
            if _users == 0 and _before:
                gc.enable()
