"""A launch that runs again and again with other addresses and numbers, over one grid, for arrays of one layout.

Unlike `ct.prepare`, any number of threads may run it at a time, it compiles no more than a first launch needs, and it
follows the settings: who makes it checks its arguments, and brings the launch values of each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutile import settings
from cutile._support import float_mode
from cutile._support.float_mode import LESS, MORE, TINY
from cutile.runtime import launch_cache, launch_plan
from cutile.runtime.kernel import Kernel


class Repeated:
    """A kernel over a grid (three ints), for arguments like those that it is made with.

    watched  whether something that the kernel reads from outside may change, so that each run has to look
    values   the launch values of the arguments that it was made with
    """

    __slots__ = ("kernel", "grid", "values", "repeatable", "_plan", "_watched", "_in_c", "_prepared")

    def __init__(self, kernel: Kernel, grid: tuple[int, int, int], args: tuple, stream: Any, watched: bool):
        self.kernel, self.grid, self._watched = kernel, grid, watched
        self._plan, self.values = launch_plan.find(kernel, args, stream)
        self.repeatable = self._plan.repeatable
        self._in_c: Any = None  # the launch of `_prepared` for C code
        self._prepared: Any = None

    def unchanged(self) -> bool:
        """Whether what the kernel reads from outside is what it was."""
        return not self._watched or self._plan.program.dependencies.unchanged()

    def run(self, stream: Any, values: Sequence[Any]) -> None:
        """Launch it. `values`: addresses, or arrays in CPU memory, and numbers, as launch_key.read gives them."""
        if (TINY * MORE == 0.0 or TINY * LESS != 0.0) and not float_mode.usual():
            return float_mode.run(self.run, stream, values)
        plan = self._plan
        if plan.ordinal is None:
            launch_plan.check_on_host(stream)
        prepared = plan.prepared
        if prepared is None or not prepared.still_valid():
            prepared = plan.prepared = plan.prepare(stream)
        prepared.run(self.grid, stream, values, False)

    def run_in_c(self, stream: Any, roots: list, sources: bytes) -> bool:
        """Launch it by C code on a GPU, which makes the launch values of `roots` as `sources` says (`prepared_run` in
        runtime/_prepared.c). Whether it did: what is unusual is left to `run`.
        """
        launch = self.in_c()
        if launch is None:
            return False
        code = launch.run(stream, roots, sources)
        if code is None:
            return True
        if code is not NotImplemented:
            raise launch_cache.refused((code, self._prepared), self.grid)
        return False

    def in_c(self) -> Any:
        """The launch for C code, as it is prepared now; None where Python has to run it."""
        prepared = self._plan.prepared
        if prepared is not None and prepared is not self._prepared:
            self._in_c = self._for_c(prepared)
            self._prepared = None if self._in_c is None else prepared
        return self._in_c if prepared is not None else None

    def _for_c(self, prepared: Any) -> Any:
        """The launch for C code (runtime/_prepared.c); None where Python has to run it."""
        if 0 in self.grid or getattr(prepared, "traced", True):
            return None
        c, watch = launch_cache.chosen(), settings.watch("BACKEND", "DEBUG", "SANITIZE")
        record = None if c is None or watch is None else prepared.record(c)
        if record is None:
            return None
        from cutile.gpu.streams import by_type

        return c.Prepared(record, by_type, None, prepared.choices, watch, self.grid)
