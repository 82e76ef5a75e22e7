"""Measures how long launches take on a GPU, as the time between two events on the stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cutile.gpu.driver import Device

FLUSH = 256 << 20  # bytes that are written before a launch: more than fit into any L2 cache


class EventClock:
    """Times launches on one stream of a GPU.

    flush  overwrite the L2 cache before each launch. Overwriting also keeps the GPU busy until the launch is queued;
           without it, the time of a short kernel includes the time to launch it
    """

    def __init__(self, device: Device, stream: int, flush: bool):
        self.device, self.stream = device, stream
        self._buffer: Any = None
        self._events: list[Any] = []
        ask = device.driver.ask
        try:
            with device.current() as api:
                for _ in range(2):
                    self._events.append(ask("there is no event to time launches with", api.cuEventCreate(0)))
                if flush:
                    self._buffer = ask(f"there are no {FLUSH >> 20} MiB of GPU memory to flush the L2 cache with; "
                                       f"flush_l2=False does without", api.cuMemAlloc(FLUSH))
        except BaseException:
            self.close()
            raise

    def __call__(self, launch: Callable[[], Any]) -> float:
        """Call `launch`, which queues a launch on the stream, and wait for it; returns its microseconds on the GPU."""
        ask, stream = self.device.driver.ask, self.stream
        start, end = self._events
        with self.device.current() as api:
            if self._buffer is not None:
                ask("the L2 cache cannot be flushed", api.cuMemsetD8Async(self._buffer, 0, FLUSH, stream))
            ask("the launch cannot be timed", api.cuEventRecord(start, stream))
            launch()
            ask("the launch cannot be timed", api.cuEventRecord(end, stream))
            ask("the launch failed", api.cuEventSynchronize(end))
            return 1000 * ask("the launch cannot be timed", api.cuEventElapsedTime(start, end))

    def close(self) -> None:
        with self.device.current() as api:
            for event in self._events:
                api.cuEventDestroy(event)
            if self._buffer is not None:
                api.cuMemFree(self._buffer)
        self._events, self._buffer = [], None
