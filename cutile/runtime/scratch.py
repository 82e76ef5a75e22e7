"""Memory on a GPU for the time of some launches, allocated and freed in the order of their stream."""

from __future__ import annotations

import functools
import struct
from typing import Any


class Scratch:
    """`with Scratch(ordinal, nbytes, stream) as address:` memory on a GPU; the driver's error where there is none.
    `pointer`: of memory that was allocated already.
    """

    __slots__ = ("_device", "_nbytes", "_stream", "_pointer", "_entered")

    def __init__(self, ordinal: int, nbytes: int, stream: Any, pointer: int | None = None):
        driver, handle = _gpu()
        self._device, self._nbytes, self._stream = driver().device(ordinal), nbytes, handle(stream)
        self._pointer: Any = pointer

    def __enter__(self) -> int:
        device = self._device
        self._entered = device.enter()
        try:
            if self._pointer is None:
                self._allocate()
        except BaseException:
            if self._entered:
                device.leave()
            raise
        return int(self._pointer)

    def _allocate(self) -> None:
        driver = self._device.driver
        _keep_memory(self._device)
        failed, self._pointer = driver.api.cuMemAllocAsync(self._nbytes, self._stream)
        if failed:
            raise driver.error(f"there is no memory for {self._nbytes} bytes of temporary storage", failed)

    def __exit__(self, *_: object) -> None:
        try:
            self._device.driver.api.cuMemFreeAsync(self._pointer, self._stream)
        finally:
            if self._entered:
                self._device.leave()


def for_c(ordinal: int, nbytes: int) -> bytes:
    """How C code allocates so many bytes (`run_steps` in runtime/_algorithms.c), as `Scratch` has done before."""
    device = gpu(ordinal)
    functions = map(device.driver.address, ("cuMemAllocAsync", "cuMemFreeAsync", "cuCtxGetCurrent"))
    return struct.pack("5Q", *functions, device.context_number, nbytes)


def stream_readers() -> dict[type, Any]:
    """What reads a stream, by class."""
    from cutile.gpu.streams import by_type

    return by_type


@functools.cache
def _gpu() -> tuple[Any, Any]:
    """What is needed of the back end, which is loaded when it is needed: statements that import cost time."""
    from cutile.gpu.driver import driver
    from cutile.gpu.streams import handle

    return driver, handle


@functools.cache
def _keep_memory(device: Any) -> None:
    """Have the driver keep freed memory of a GPU for later allocations, instead of giving it back at each wait."""
    api = device.driver.api
    threshold = getattr(getattr(api, "CUmemPool_attribute", None), "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD", None)
    if threshold is not None:
        failed, pool = api.cuDeviceGetDefaultMemPool(device.ordinal)
        if not failed:
            api.cuMemPoolSetAttribute(pool, threshold, api.cuuint64_t(2**64 - 1))


def gpu(ordinal: int) -> Any:
    """A GPU of the driver: `enter()` makes it the current one, and says whether `leave()` must be called."""
    return _gpu()[0]().device(ordinal)


def stream_handle(stream: Any) -> int:
    """The handle of what `ct.launch` takes as a stream."""
    return _gpu()[1](stream)


def capability(ordinal: int) -> tuple[int, int]:
    """The compute capability of a GPU."""
    return _gpu()[0]().capability(ordinal)
