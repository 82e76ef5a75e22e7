"""cutile's GPU back end."""

from typing import Any

from conformance.adapters.assembler import AHEAD_OF_TIME
from conformance.adapters.device import Device


class Gpu(Device):
    """cutile on a GPU."""

    name = "cutile:gpu"
    module = "cutile"
    features = AHEAD_OF_TIME | {"negative strides"}


class Prepared(Gpu):
    """cutile on a GPU by `ct.prepare`, which waits for all code that a launch may run; the launch runs the best."""

    name = "cutile:prepared"

    def queue(self, grid: tuple[int, ...], kernel: Any, args: tuple) -> None:
        self.ct.prepare(kernel, grid, args, stream=self.stream())(self.stream())
