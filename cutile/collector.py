"""Python's cyclic garbage collector rests while a kernel is compiled.

Compiling makes many objects and hardly any garbage; looking through them again and again took a tenth of a first
launch. What is garbage all the same is found after.
"""

from __future__ import annotations

import gc

from cutile.held import Held


def _stop() -> bool:
    running = gc.isenabled()
    gc.disable()
    return running


def _start(was_running: bool) -> None:
    if was_running:
        gc.enable()


at_rest = Held(_stop, _start)  # keeps the collector from starting by itself
