"""A prepared launch: a loaded kernel, and the parameters that stay the same from launch to launch."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any

from cutile.errors import refusal
from cutile.gpu.driver import Device
from cutile.gpu.parameters import Frame, Packing

FRAMES = 16  # kept for the next launches: as many as threads launch at once


class Prepared:
    """A kernel on a GPU, for arguments of one layout. Threads may call it at the same time."""

    __slots__ = ("name", "device", "function", "packing", "_frames", "_launch", "_record")

    def __init__(self, name: str, device: Device, function: Any, packing: Packing):
        self.name, self.device, self.function, self.packing = name, device, function, packing
        self._frames: list[Frame] = []
        self._record: bytes | None = None
        self._launch = device.driver.api.cuLaunchKernel

    def __call__(self, grid: tuple[int, int, int], stream: int, words: Sequence[Any], dependent: bool) -> None:
        """Queue a launch. `words` are the pointers, numbers and lists of pointers of the leaves.

        DriverError where the driver refuses; RuntimeError for a list of arrays while a graph is captured.
        """
        device = self.device
        entered = device.enter()
        try:
            try:
                frame = self._frames.pop()
            except IndexError:
                frame = self.packing.frame()
            if self.packing.tables:
                self._with_tables(frame, grid, stream, list(words), dependent)
            else:
                self._queue(frame.fill(words), grid, stream, dependent)
            if len(self._frames) < FRAMES:
                self._frames.append(frame)
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

    def _with_tables(self, frame: Frame, grid: tuple[int, int, int], stream: int, words: list, dependent: bool) -> None:
        """A launch with lists of arrays: their tables are made, used and given back in the order of the stream."""
        api, ask = self.device.driver.api, self.device.driver.ask
        failed, status = api.cuStreamIsCapturing(stream)
        if failed or status:
            raise refusal(RuntimeError(f"kernel {self.name} takes a list of arrays, so it cannot be launched while a "
                                       f"CUDA graph is captured; pass the arrays one by one, or as a tuple"))
        made: list[Any] = []
        try:
            for t in self.packing.tables:
                host = t.filled(words[t.slot])
                n = ctypes.sizeof(host)
                doing = f"there is no memory for the list of arrays of kernel {self.name}"
                made.append(ask(doing, api.cuMemAllocAsync(n, stream)))
                ask(doing, api.cuMemcpyHtoDAsync(made[-1], ctypes.addressof(host), n, stream))
                words[t.slot] = int(made[-1])
            self._queue(frame.fill(words), grid, stream, dependent)
        finally:
            for pointer in made:
                api.cuMemFreeAsync(pointer, stream)

    def record(self) -> bytes | None:
        """A launch as gpu/_launcher.c takes it; None for one that it does not know."""
        if self._record is None and (packed := self.packing.record()) is not None:
            driver = self.device.driver
            offsets, slots, image = packed
            head = (driver.address("cuLaunchKernel"), driver.address("cuCtxGetCurrent"), int(self.function),
                    self.device.context_number, len(offsets), len(slots), len(image), 0)
            layout = f"=4Q4I{len(offsets)}I{2 * len(slots)}I"
            self._record = struct.pack(layout, *head, *offsets, *chain.from_iterable(slots)) + image
        return self._record

    def refused(self, code: Any, grid: tuple[int, ...]) -> Exception:
        """The error for a code of the driver."""
        return self.device.driver.error(f"kernel {self.name} cannot be launched on {self.device} with grid "
                                        f"{(*grid, 1, 1, 1)[:3]}", code)
