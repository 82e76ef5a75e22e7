"""The CUDA driver through cuda-python: GPUs, their contexts, loaded kernels, and what its errors mean.

Only `driver()` imports the bindings; tests put another driver in its place by `replace`. Nothing is imported or
called before the first launch on a GPU.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cutile.errors import TileError, TileUnsupportedFeatureError
from cutile.gpu.target import Target, of_device

MISSING = "launching on a GPU needs cuda-python, which is not installed"
GET_IT = "pip install 'cutile[gpu]', or pass arrays in host memory to run the kernel in the interpreter"


class DriverError(TileError, RuntimeError):
    """The CUDA driver refused a call [LAUNCH-6]. `code` is the name of its error."""

    code: str = ""


# What errors of the driver mean to users, and what to do. For other errors, the driver's own words are shown.
MEANINGS: dict[str, tuple[str, str | None]] = {
    "CUDA_ERROR_NO_DEVICE": ("there is no GPU", "pass arrays in host memory to run the kernel in the interpreter"),
    "CUDA_ERROR_NOT_INITIALIZED": (
        "the driver cannot be used in a process forked after CUDA was initialised",
        'start processes with multiprocessing.get_context("spawn")'),
    "CUDA_ERROR_INVALID_HANDLE": (
        "the stream belongs to another GPU than the arrays, or no longer exists",
        "give a stream of the arrays' GPU, or None for its default stream"),
    "CUDA_ERROR_INVALID_CONTEXT": (
        "the stream belongs to another GPU than the arrays, or no longer exists",
        "give a stream of the arrays' GPU, or None for its default stream"),
    "CUDA_ERROR_OUT_OF_MEMORY": ("the GPU's memory is used up", None),
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": (
        "the kernel needs more registers or shared memory than a multiprocessor has",
        "use smaller tiles, or a larger num_ctas"),
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": ("this GPU has no clusters of that size", "use a smaller num_ctas"),
    "CUDA_ERROR_NO_BINARY_FOR_GPU": ("the kernel was compiled for another GPU", None),
    "CUDA_ERROR_ASSERT": (
        "an assertion of a kernel that ran before failed; the process can use this GPU no more",
        "what failed was printed when it did; CUTILE_BACKEND=interp names line and block"),
    "CUDA_ERROR_ILLEGAL_ADDRESS": (
        "a kernel that ran before used an address outside its arrays; the process can use this GPU no more",
        "CUTILE_BACKEND=interp runs a kernel on the interpreter, which never leaves an array"),
    "CUDA_ERROR_LAUNCH_FAILED": (
        "a kernel that ran before failed, by a failed assertion or an access outside its arrays; the process can use "
        "this GPU no more", "CUTILE_BACKEND=interp runs a kernel on the interpreter, which names line and block"),
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": (
        "a kernel that ran before stopped, most likely by a failed assertion; the process can use this GPU no more",
        "CUTILE_BACKEND=interp runs a kernel on the interpreter, which names line and block"),
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": ("this cannot be captured in a CUDA graph", None),
    "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": (
        "another stream is being captured in a CUDA graph, and the default stream waits for it",
        "launch on the stream that is captured"),
}


class Driver:
    """The driver in this process. `api` is `cuda.bindings.driver` or a replacement."""

    def __init__(self, api: Any):
        self.api = api
        self._devices: dict[int, Device] = {}
        self._lock = threading.Lock()
        self.ask("CUDA cannot be initialised", api.cuInit(0))

    def ask(self, doing: str, answer: tuple) -> Any:
        """The value that a call returned. DriverError, saying what could not be done, if it returned an error."""
        if answer[0]:
            raise self.error(doing, answer[0])
        return answer[1] if len(answer) > 1 else None

    def error(self, doing: str, code: Any) -> DriverError:
        name = _text(self.api.cuGetErrorName(code)) or str(code)
        meaning, help = MEANINGS.get(name, (_text(self.api.cuGetErrorString(code)) or "no reason given", None))
        e = DriverError(f"{doing}: {meaning} ({name})", help=help)
        e.code = name
        return e

    def device(self, ordinal: int) -> Device:
        """The GPU of an ordinal, with its primary context."""
        found = self._devices.get(ordinal)
        if found is None:
            with self._lock:
                found = self._devices.get(ordinal) or self._devices.setdefault(ordinal, Device(self, ordinal))
        return found

    def count(self) -> int:
        return self.ask("GPUs cannot be counted", self.api.cuDeviceGetCount())

    def address(self, name: str) -> int:
        """The address of a function of the driver, that for per-thread streams if
        CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM is set.
        """
        per_thread = 2 if os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "0") != "0" else 0
        answer = self.api.cuGetProcAddress(name.encode(), 12000, per_thread)
        self.ask(f"the driver has no {name}", answer)
        return int(answer[1])

    def version(self) -> str:
        """The CUDA version that the driver supports, like 13.1."""
        number = self.ask("the driver has no version", self.api.cuDriverGetVersion())
        return f"{number // 1000}.{number % 1000 // 10}"

    def handle(self, ordinal: int) -> Any:
        return self.ask(f"there is no GPU {ordinal}", self.api.cuDeviceGet(ordinal))

    def name(self, ordinal: int) -> str:
        """The product name of a GPU."""
        answer = self.ask("the GPU has no name", self.api.cuDeviceGetName(256, self.handle(ordinal)))
        return answer.partition(b"\0")[0].decode()  # what follows is whatever was in memory

    def capability(self, ordinal: int) -> tuple[int, int]:
        """The compute capability of a GPU."""
        attribute, handle = self.api.CUdevice_attribute, self.handle(ordinal)
        major, minor = (self.ask("the GPU does not say what it can do", self.api.cuDeviceGetAttribute(a, handle))
                        for a in (attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                  attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))
        return major, minor

    def device_of_pointer(self, pointer: int) -> int:
        """The ordinal of the GPU that an address of GPU memory belongs to."""
        attribute = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(self.ask(f"the array at address {pointer:#x} is in no GPU's memory",
                            self.api.cuPointerGetAttribute(attribute, pointer)))

    def device_of_stream(self, stream: int) -> int:
        """The ordinal of the GPU that a stream belongs to; for a default stream, the one of the current context."""
        found, context = self.api.cuCtxGetCurrent()
        if stream <= PER_THREAD_STREAM and (found or not int(context)):
            return 0
        if stream > PER_THREAD_STREAM:
            context = self.ask("the stream does not exist", self.api.cuStreamGetCtx(stream))
        self.ask("the stream's context cannot be used", self.api.cuCtxPushCurrent(context))
        try:
            return int(self.ask("the stream has no GPU", self.api.cuCtxGetDevice()))
        finally:
            self.api.cuCtxPopCurrent()


PER_THREAD_STREAM = 2  # handles 0, 1 and 2 are default streams


class Device:
    """One GPU: its target, its primary context, the kernels loaded there."""

    def __init__(self, driver: Driver, ordinal: int):
        self.driver, self.ordinal = driver, ordinal
        self.target: Target = of_device(*driver.capability(ordinal))
        self.context = driver.ask(f"GPU {ordinal} cannot be used",
                                  driver.api.cuDevicePrimaryCtxRetain(driver.handle(ordinal)))
        self.context_number = int(self.context)
        self._modules: dict[bytes, Any] = {}  # by hash of the code; never unloaded: a CUDA graph may hold their kernels
        self._lock = threading.Lock()

    def __str__(self) -> str:
        return f"GPU {self.ordinal} ({self.target})"

    def enter(self) -> bool:
        """Make the GPU's context current in this thread; returns whether `leave` must be called."""
        found, current = self.driver.api.cuCtxGetCurrent()
        if not found and int(current) == self.context_number:
            return False
        self.driver.ask(f"GPU {self.ordinal} cannot be used", self.driver.api.cuCtxPushCurrent(self.context))
        return True

    def leave(self) -> None:
        self.driver.api.cuCtxPopCurrent()

    @contextmanager
    def current(self) -> Iterator[Any]:
        """The functions of the driver, with the GPU's context current."""
        entered = self.enter()
        try:
            yield self.driver.api
        finally:
            if entered:
                self.leave()

    def function(self, cubin: bytes, symbol: str) -> Any:
        """The handle of a kernel; its module is loaded only once. May be called while a CUDA graph is captured."""
        ask = self.driver.ask
        with self._lock, self.current() as api, _relaxed(self.driver):
            key = hashlib.sha256(cubin).digest()
            module = self._modules.get(key)
            if module is None:
                module = self._modules[key] = ask(f"kernel {symbol} cannot be loaded on {self}",
                                                  api.cuModuleLoadData(cubin))
            return ask(f"the module has no kernel {symbol}", api.cuModuleGetFunction(module, symbol.encode()))


@contextmanager
def _relaxed(driver: Driver) -> Iterator[None]:
    """Within the `with` block, calls that a stream capture forbids, such as loading a module, are allowed in this
    thread.
    """
    api = driver.api
    mode = driver.ask("the capture mode cannot be changed", api.cuThreadExchangeStreamCaptureMode(
        api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    try:
        yield
    finally:
        api.cuThreadExchangeStreamCaptureMode(mode)


def _text(answer: tuple) -> str:
    return "" if answer[0] or not answer[1] else answer[1].decode()


# ------------------------------------------------------------------ the driver of this process

_lock = threading.Lock()
_driver: Driver | None = None


def driver() -> Driver:
    """The driver. TileUnsupportedFeatureError if cuda-python or the driver itself is missing, DriverError if it does
    not start.
    """
    global _driver
    if _driver is None:
        with _lock:
            if _driver is None:
                _driver = _start()
    return _driver


def replace(new: Driver | None) -> None:
    """Use another driver; None: start the real one anew at the next launch."""
    global _driver
    _driver = new


def _start() -> Driver:
    try:
        from cuda.bindings import driver as api
    except ImportError:
        raise TileUnsupportedFeatureError(MISSING, help=GET_IT) from None
    try:
        return Driver(api)
    except DriverError:
        raise
    except Exception as e:  # the bindings load the driver's library at the first call, and fail in many ways
        raise TileUnsupportedFeatureError(
            f"launching on a GPU needs NVIDIA's driver, which this machine does not have ({type(e).__name__})",
            help="pass arrays in host memory to run the kernel in the interpreter") from None


def _after_fork() -> None:
    """Start anew in a forked child: handles of the parent are invalid there, and its lock may be held for ever."""
    global _lock
    _lock = threading.Lock()
    replace(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
