"""A launch prepared for a GPU: a loaded kernel, and the parameters that stay the same from launch to launch."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from cutile import settings
from cutile._support import trace
from cutile._support.lru import LruDict
from cutile.errors import refusal
from cutile.gpu.driver import Device, driver
from cutile.gpu.facts import of_parameters
from cutile.gpu.parameters import Packing, ParameterBuffer, packing
from cutile.gpu.streams import handle
from cutile.ir.nodes import Kernel

BUFFERS = 16  # idle buffers that are kept; more concurrent launches make new ones


def prepare(kernel: Kernel, name: str, constraints: Sequence[Any], symbol: str, options: Any, ordinal: int,
            dims: Sequence[Any], loaded: LruDict[tuple, Any]) -> DeviceLaunch:
    """A launch of a typed kernel on a GPU, for arrays with these sizes and strides (parameters.packing).

    constraints, symbol, options   what the kernel is compiled for, as gpu.cubin.build takes them
    loaded   of the program: handles of what was compiled of it and loaded; one that is missing is added
    """
    from cutile.gpu.cubin import build  # not needed if the code is loaded

    device = driver().device(ordinal)
    key = tuple(of_parameters(constraints)), options.key, device
    function = loaded.get(key)
    if function is None:
        function = device.function(build(kernel, constraints, device.target, options, symbol), symbol)
        loaded.keep(key, function)
    types = [p.type for p in kernel.params]
    return DeviceLaunch(name, device, function, packing(types, dims), traced=trace.on(trace.LAUNCHES))


class DeviceLaunch:
    """A launch of a loaded kernel, for arguments of one layout. Threads may run it at the same time.

    traced  whether it tells of each run, as CUTILE_DEBUG asks for
    """

    __slots__ = ("name", "device", "function", "packing", "traced", "_buffers", "_launch", "_record")

    def __init__(self, name: str, device: Device, function: Any, packing: Packing, traced: bool = False):
        self.name, self.device, self.function, self.packing, self.traced = name, device, function, packing, traced
        self._buffers: list[ParameterBuffer] = []
        self._record: bytes | None = None
        self._launch = device.driver.api.cuLaunchKernel

    def still_valid(self) -> bool:
        """Whether CUTILE_BACKEND and the tracing of CUTILE_DEBUG are as when this was prepared."""
        if settings.untouched("BACKEND", "DEBUG"):
            return not self.traced
        return settings.get("BACKEND") is None and trace.on(trace.LAUNCHES) == self.traced

    def run(self, grid: tuple[int, int, int], stream: Any, values: Sequence[Any], dependent: bool) -> None:
        """Queue a launch on a stream. `values` are addresses, numbers and lists of addresses.

        DriverError where the driver refuses; RuntimeError for a list of arrays while a graph is captured.
        """
        number = handle(stream)
        if self.traced:
            trace.say(trace.LAUNCHES, f"{self.name} grid {grid} runs on {self.device}")
        if 0 in grid:
            return
        device = self.device
        entered = device.enter()
        try:
            try:
                buffer = self._buffers.pop()
            except IndexError:
                buffer = self.packing.buffer()
            if self.packing.tables:
                self._with_tables(buffer, grid, number, list(values), dependent)
            else:
                self._queue(buffer.fill(values), grid, number, dependent)
            if len(self._buffers) < BUFFERS:
                self._buffers.append(buffer)
        finally:
            if entered:
                device.leave()

    def _queue(self, parameters: int, grid: tuple[int, int, int], stream: int, dependent: bool) -> None:
        if dependent:
            answer = self.device.driver.api.cuLaunchKernelEx(self._dependent(grid, stream), self.function, parameters,
                                                             0)
        else:
            answer = self._launch(self.function, *grid, 1, 1, 1, 0, stream, parameters, 0)
        if answer[0]:
            raise self.refused(answer[0], grid)

    def _dependent(self, grid: tuple[int, int, int], stream: int) -> Any:
        """The configuration of a launch that may start before the one queued before it has ended."""
        api = self.device.driver.api
        attribute = api.CUlaunchAttribute()
        attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        config = api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX = config.blockDimY = config.blockDimZ = 1
        config.sharedMemBytes, config.hStream = 0, stream
        config.attrs, config.numAttrs = [attribute], 1
        return config

    def _with_tables(self, buffer: ParameterBuffer, grid: tuple[int, int, int], stream: int, values: list,
                     dependent: bool) -> None:
        """A launch with lists of arrays: their tables are allocated, used and freed in the order of the stream."""
        api, ask = self.device.driver.api, self.device.driver.ask
        failed, status = api.cuStreamIsCapturing(stream)
        if failed or status:
            raise refusal(RuntimeError(f"kernel {self.name} takes a list of arrays, so it cannot be launched while a "
                                       f"CUDA graph is captured; pass the arrays one by one, or as a tuple"))
        made: list[Any] = []
        try:
            for t in self.packing.tables:
                host = t.filled(values[t.slot])
                n = ctypes.sizeof(host)
                doing = f"there is no memory for the list of arrays of kernel {self.name}"
                made.append(ask(doing, api.cuMemAllocAsync(n, stream)))
                ask(doing, api.cuMemcpyHtoDAsync(made[-1], ctypes.addressof(host), n, stream))
                values[t.slot] = int(made[-1])
            self._queue(buffer.fill(values), grid, stream, dependent)
        finally:
            for pointer in made:
                api.cuMemFreeAsync(pointer, stream)

    def record(self, c: Any) -> bytes | None:
        """The launch as gpu/_launcher.c, the module `c`, takes it; None for one that it does not know."""
        if self._record is None and (image := self.packing.image(c)) is not None:
            address = self.device.driver.address
            self._record = c.record(address("cuLaunchKernel"), address("cuCtxGetCurrent"), int(self.function),
                                    self.device.context_number, *image)
        return self._record

    def refused(self, code: Any, grid: tuple[int, ...]) -> Exception:
        """The error for a code of the driver."""
        return self.device.driver.error(f"kernel {self.name} cannot be launched on {self.device} with grid "
                                        f"{(*grid, 1, 1, 1)[:3]}", code)
