"""A driver for programs that are Tile IR bytecode instead of machine code, so that what is launched also runs."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np

from cutile.gpu.tileir import types as ty
from tests.gpu.fake_driver import CODES, Attribute
from tests.tileir_eval import Pointer, evaluate
from tests.tileir_eval.bytecode_reader import decode


class EvaluatingDriver:
    """Calls of the driver by name: memory is host memory, machine code is bytecode, and a launch evaluates it.

    fails   code of the error that a call answers, by its name
    """

    CUdevice_attribute = Attribute
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)

    def __init__(self):
        self.memory: dict[int, np.ndarray] = {}
        self.modules: dict[int, bytes] = {}
        self.fails: dict[str, int] = {}

    def __getattr__(self, name):  # a call that has nothing to answer but 1, or the error that a test wants
        return lambda *_: (self.fails.get(name, 0), 1)

    def cuGetErrorName(self, code):
        return 0, CODES[code].encode()

    def cuGetErrorString(self, code):
        return 0, b"something or other"

    def cuDeviceGetAttribute(self, attribute, device):
        return 0, {Attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: 9}.get(attribute, 0)

    def cuMemAlloc(self, n):
        raw = np.zeros(n + 256, np.uint8)
        start = -raw.ctypes.data % 256
        made = raw[start:start + n]
        self.memory[made.ctypes.data] = made
        return self.fails.get("cuMemAlloc", 0), made.ctypes.data

    def cuMemFree(self, p):
        return 0, self.memory.pop(p)

    def cuMemcpyHtoD(self, to, host, n):
        ctypes.memmove(to, host, n)
        return 0,

    def cuMemcpyDtoH(self, host, pointer, n):
        ctypes.memmove(host, pointer, n)
        return 0,

    def cuModuleLoadData(self, image):
        self.modules[len(self.modules) + 1] = image
        return 0, len(self.modules)

    def cuModuleUnload(self, module):
        return 0, self.modules.pop(module)

    def cuModuleGetFunction(self, module, name):
        return 0, (self.modules[module], name.decode())

    def cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        code, symbol = function
        types = [v.type.element for e in decode(code).entries if e.name == symbol for v in e.arguments]
        words = (ctypes.c_void_p * len(types)).from_address(parameters)
        args = [self._argument(t, ctypes.string_at(w, 8)) for t, w in zip(types, words, strict=True)]
        evaluate(code, symbol, (gx, gy, gz), args)
        return self.fails.get("cuLaunchKernel", 0),

    def _argument(self, t, word):
        if not isinstance(t, ty.Pointer):
            return np.frombuffer(word, {"i1": np.bool_, "f32": np.float32, "f64": np.float64}.get(
                t.name, f"i{max(1, t.bits // 8)}"))[0]
        address = int.from_bytes(word, "little")
        start, memory = max((p, m) for p, m in self.memory.items() if p <= address)
        return Pointer(memory[address - start:])
