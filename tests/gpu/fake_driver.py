"""A driver that writes down what it is told, in place of cuda.bindings.driver, also when C code calls it.

Its GPU memory is host memory.
"""

from __future__ import annotations

import ctypes
import enum
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cutile.dtypes import int64
from cutile.gpu import background
from cutile.gpu import cubin as building
from cutile.gpu import driver as drivers
from cutile.gpu.driver import Driver
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.types import ArrayType, ListType

CODES = {0: "CUDA_SUCCESS", 3: "CUDA_ERROR_NOT_INITIALIZED", 100: "CUDA_ERROR_NO_DEVICE",
         400: "CUDA_ERROR_INVALID_HANDLE", 700: "CUDA_ERROR_ILLEGAL_ADDRESS", 710: "CUDA_ERROR_ASSERT",
         719: "CUDA_ERROR_LAUNCH_FAILED", 999: "CUDA_ERROR_UNKNOWN"}


class Attribute(enum.IntEnum):
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76


class Handle(int):
    """A handle of the bindings: an int in a class of its own."""


def sizes_of(types: Iterable[Any]) -> list[int]:
    """How many bytes each parameter of a kernel has, by the calling conventions [CC-3…8]."""
    sizes: list[int] = []
    for t in types:
        if isinstance(t, ArrayType):
            sizes += [8, *[8 if t.index_dtype is int64 else 4] * (2 * t.ndim)]
        elif isinstance(t, ListType):
            sizes += [8, 4]
        else:
            sizes.append(8 if t.dtype.bitwidth == 64 else 4)
    return sizes


def installed(monkeypatch: Any) -> FakeDriver:
    """A new driver in the place of the real one, which builds what it launches."""
    fake = FakeDriver()
    monkeypatch.setattr(drivers, "_driver", fake.start())
    monkeypatch.setattr(building, "build", fake.build)
    monkeypatch.setattr(building, "cached", lambda *what: None)
    monkeypatch.setattr(background, "submit", fake.submit)
    return fake


# Types of the calls that are made past the bindings.
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)
CURRENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t, ctypes.c_void_p)
FREE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p)


class FakeDriver:
    """The calls that cutile makes, by name, in `calls`; `launches` has the bytes of every parameter.

    built     what `build`, which stands in for the compiler, was asked for
    unchecked_lines   the lines of accesses without checks, by image
    later     jobs that were given to the background; `work` does them
    sizes     of the parameters of kernels, in bytes, by image or function
    fails     code of the error that a call answers, by its name
    homes     ordinals of GPUs by address
    runs      what a launch does, given the bytes of its parameters
    takes     milliseconds of a launch, by grid;  now: its clock, in milliseconds;  events: when they were recorded
    """

    CUpointer_attribute = types.SimpleNamespace(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL=9)
    CUstreamCaptureMode = types.SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)
    CUdevice_attribute = Attribute
    CUresult = int
    CUlaunchAttributeID = types.SimpleNamespace(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION=6)

    def __init__(self, capability: tuple[int, int] = (9, 0), devices: int = 2):
        self.capability, self.devices = capability, devices
        self.calls: list[tuple] = []
        self.launches: list[dict[str, Any]] = []
        self.built: list[dict[str, Any]] = []
        self.unchecked_lines: dict[bytes, set[int]] = {}
        self.later: list[Callable[[], None]] = []
        self.sizes: dict[Any, list[int]] = {}
        self.fails: dict[str, int] = {}
        self.homes: dict[int, int] = {}
        self.takes: dict[tuple, float] = {}
        self.runs: Callable[..., Any] = lambda *parameters: None
        self.capturing = 0
        self.contexts: list[int] = [0]
        self.mode = 0
        self.allocated: dict[int, Any] = {}
        self.functions: dict[int, tuple] = {}
        self.events: dict[int, float] = {}
        self.now = 0.0
        self.entries = {b"cuLaunchKernel": LAUNCH(self._launch_in_c), b"cuCtxGetCurrent": CURRENT(self._current_in_c),
                        b"cuMemAllocAsync": ALLOCATE(self._allocate_in_c), b"cuMemFreeAsync": FREE(self._free_in_c)}

    def names(self) -> list[str]:
        return [c[0] for c in self.calls]

    def start(self) -> Driver:
        return Driver(self)

    def build(self, program: Any, constraints: Sequence[Any], target: Any, options: Any, symbol: str) -> bytes:
        """In the place of gpu.cubin.build: an image that says which it is, of a kernel with known parameters."""
        self.built.append({"constraints": list(constraints), "target": str(target), "options": options,
                           "symbol": symbol})
        image = f"cubin {len(self.built)}".encode()
        accesses = [n for n in walk(program.body) if isinstance(n, Op) and n.op.accesses and "check_bounds" in n.attrs]
        self.unchecked_lines[image] = {n.span.line for n in accesses if not n.attrs["check_bounds"]}
        self.sizes[image] = sizes_of(p.type for p in program.params)
        return image

    def submit(self, job: Callable[[], None]) -> bool:
        """In the place of gpu.background.submit."""
        self.later.append(job)
        return True

    def work(self) -> None:
        while self.later:
            self.later.pop(0)()

    def _answer(self, name: str, *arguments: Any, value: Any = None) -> tuple:
        self.calls.append((name, *arguments))
        code = self.fails.get(name, 0)
        return (code, None) if code else (0,) if value is None else (0, value)

    def CUlaunchAttribute(self):
        return types.SimpleNamespace(id=None, value=types.SimpleNamespace())

    def CUlaunchConfig(self):
        return types.SimpleNamespace()

    def cuInit(self, flags):
        return self._answer("cuInit", flags)

    def cuDeviceGetCount(self):
        return self._answer("cuDeviceGetCount", value=self.devices)

    def cuDeviceGet(self, ordinal):
        return self._answer("cuDeviceGet", ordinal, value=Handle(ordinal))

    def cuDriverGetVersion(self):
        return self._answer("cuDriverGetVersion", value=13010)

    def cuDeviceGetName(self, n, device):
        return self._answer("cuDeviceGetName", n, device, value=b"Fake 9000\0\0 \xff\0 ")  # then, what was in memory

    def cuDeviceGetAttribute(self, attribute, device):
        value = 132 if attribute == 16 else self.capability[attribute - 75]
        return self._answer("cuDeviceGetAttribute", attribute, value=value)

    def cuDevicePrimaryCtxRetain(self, device):
        return self._answer("cuDevicePrimaryCtxRetain", device, value=Handle(0x1000 + device))

    def cuCtxGetCurrent(self):
        code = self.fails.get("cuCtxGetCurrent", 0)
        return code, Handle(self.contexts[-1])

    def cuCtxPushCurrent(self, context):
        self.contexts.append(int(context))
        return self._answer("cuCtxPushCurrent", int(context))

    def cuCtxPopCurrent(self):
        return self._answer("cuCtxPopCurrent", value=Handle(self.contexts.pop()))

    def cuCtxGetDevice(self):
        return self._answer("cuCtxGetDevice", value=Handle(self.contexts[-1] - 0x1000))

    def cuStreamGetCtx(self, stream):
        return self._answer("cuStreamGetCtx", stream, value=Handle(0x1000 + (stream >> 8)))

    def cuStreamIsCapturing(self, stream):
        return self._answer("cuStreamIsCapturing", stream, value=self.capturing)

    def cuStreamSynchronize(self, stream):
        return self._answer("cuStreamSynchronize", stream)

    def cuPointerGetAttribute(self, attribute, pointer):
        return self._answer("cuPointerGetAttribute", attribute, pointer, value=self.homes.get(pointer, 0))

    def cuThreadExchangeStreamCaptureMode(self, mode):
        before, self.mode = self.mode, mode
        return 0, before

    def cuModuleLoadData(self, image):
        assert self.mode == 2, "loading would spoil a capture"
        return self._answer("cuModuleLoadData", image, self.contexts[-1], value=("module", image))

    def cuModuleGetFunction(self, module, name):
        found = ("function", module[1], name.decode())
        handle = next((h for h, f in self.functions.items() if f == found), Handle(0x8000 + len(self.functions)))
        self.functions[handle] = found
        return self._answer("cuModuleGetFunction", name, value=handle)

    def cuGetProcAddress(self, name, version, flags):
        return 0, ctypes.cast(self.entries[name], ctypes.c_void_p).value, 0

    def _current_in_c(self, out):
        out[0] = self.contexts[-1]
        return self.fails.get("cuCtxGetCurrent", 0)

    def _launch_in_c(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        assert (bx, by, bz, shared, extra) == (1, 1, 1, 0, None)
        return self._launch("cuLaunchKernel in C", function, (gx, gy, gz), stream or 0, parameters, [])[0]

    def cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        assert (bx, by, bz, shared, extra) == (1, 1, 1, 0, 0)
        return self._launch("cuLaunchKernel", function, (gx, gy, gz), stream, parameters, [])

    def cuLaunchKernelEx(self, config, function, parameters, extra):
        assert (config.blockDimX, config.blockDimY, config.blockDimZ, config.sharedMemBytes, extra) == (1, 1, 1, 0, 0)
        assert config.numAttrs == len(config.attrs)
        return self._launch("cuLaunchKernelEx", function, (config.gridDimX, config.gridDimY, config.gridDimZ),
                            config.hStream, parameters, [(a.id, vars(a.value)) for a in config.attrs])

    def _launch(self, name, function, grid, stream, parameters, attributes):
        known = self.functions.get(function, function)
        sizes = self.sizes.get(known[1] if isinstance(known, tuple) else known, [])
        pointers = (ctypes.c_void_p * len(sizes)).from_address(parameters)
        values = [ctypes.string_at(p, n) for p, n in zip(pointers, sizes)]
        self.launches.append({"function": known, "grid": grid, "stream": stream,
                              "parameters": values, "attributes": attributes, "context": self.contexts[-1]})
        self.now += self.takes.get(grid, 0)
        self.runs(*values)
        return self._answer(name)

    def cuMemAllocAsync(self, n, stream):
        memory = ctypes.create_string_buffer(n)
        self.allocated[ctypes.addressof(memory)] = memory
        return self._answer("cuMemAllocAsync", n, stream, value=Handle(ctypes.addressof(memory)))

    def cuMemFreeAsync(self, pointer, stream):
        return self._answer("cuMemFreeAsync", int(pointer), stream)

    def _allocate_in_c(self, out, n, stream):
        code, pointer = self.cuMemAllocAsync(n, stream or 0)
        out[0] = int(pointer or 0)
        return code

    def _free_in_c(self, pointer, stream):
        return self.cuMemFreeAsync(pointer, stream or 0)[0]

    def cuMemcpyHtoDAsync(self, to, host, n, stream):
        ctypes.memmove(int(to), host, n)
        return self._answer("cuMemcpyHtoDAsync", n, stream)

    def cuMemcpyDtoDAsync(self, to, pointer, n, stream):
        ctypes.memmove(to, pointer, n)
        return self._answer("cuMemcpyDtoDAsync", to, pointer, n, stream)

    def cuMemcpyDtoH(self, host, pointer, n):
        ctypes.memmove(host, pointer, n)
        return self._answer("cuMemcpyDtoH", pointer, n)

    def cuMemcpyHtoD(self, pointer, host, n):
        ctypes.memmove(pointer, host, n)
        return self._answer("cuMemcpyHtoD", pointer, n)

    def cuEventCreate(self, flags):
        self.events[number := len(self.events) + 1] = 0.0
        return self._answer("cuEventCreate", flags, value=Handle(number))

    def cuEventRecord(self, event, stream):
        self.events[event] = self.now
        return self._answer("cuEventRecord", int(event), stream)

    def cuEventSynchronize(self, event):
        return self._answer("cuEventSynchronize", int(event))

    def cuEventElapsedTime(self, start, end):
        return self._answer("cuEventElapsedTime", value=self.events[end] - self.events[start])

    def cuEventDestroy(self, event):
        del self.events[event]
        return self._answer("cuEventDestroy", int(event))

    def cuMemAlloc(self, n):
        return self._answer("cuMemAlloc", n, value=Handle(1 << 40))

    def cuMemFree(self, pointer):
        return self._answer("cuMemFree", int(pointer))

    def cuMemsetD8Async(self, pointer, value, n, stream):
        self.now += 0.08
        return self._answer("cuMemsetD8Async", int(pointer), value, n, stream)

    def cuGetErrorName(self, code):
        return 0, CODES[code].encode()

    def cuGetErrorString(self, code):
        return 0, b"something or other"
