"""The back ends that `diff` compares: schedules of the interpreter, and a GPU. Each changes NumPy arrays in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from cutile import settings
from cutile._support.float_mode import in_usual_mode
from cutile.dtypes import INFO, DType
from cutile.errors import TileUnsupportedFeatureError
from cutile.ir.nodes import Kernel
from cutile.runtime.array_ref import ArrayRef
from cutile.types import ArrayType, ListType

Backend = Callable[[Kernel, tuple[int, int, int], list], None]


def _interpreter(schedule: str | None) -> Backend:
    @in_usual_mode
    def run(program: Kernel, grid: tuple[int, int, int], values: list) -> None:
        from cutile import interp

        with settings.override(SCHEDULE=schedule) if schedule else ExitStack(), settings.steady():
            interp.launch(program, grid, values)

    return run


def _gpu(program: Kernel, grid: tuple[int, int, int], values: list) -> None:
    """Run on GPU 0; the arrays are copied there and back."""
    from cutile.gpu.cubin import build
    from cutile.gpu.device_launch import DeviceLaunch
    from cutile.gpu.parameters import packing
    from cutile.runtime.options import Options

    device = _gpu_0()
    with device.current(), ExitStack() as stack:
        types = [p.type for p in program.params]
        moved = [_copied_to_gpu(stack, device, t, x) for t, x in zip(types, values, strict=True)]
        symbol = "compared"
        cubin = build(program, list(map(_constraint, types, moved)), device.target, Options(), symbol)
        values = [[a.pointer for a in m] if isinstance(m, list) else getattr(m, "pointer", m) for m in moved]
        dims = [[(a.shape, a.strides) for a in m] if isinstance(m, list)
                else (m.shape, m.strides) if isinstance(m, ArrayRef) else None for m in moved]
        function = device.function(cubin, symbol)
        DeviceLaunch(program.name, device, function, packing(types, dims)).run(grid, 0, values, False)
        device.driver.ask("the kernel failed", device.driver.api.cuCtxSynchronize())


def _gpu_0() -> Any:
    from cutile.gpu.driver import driver

    try:
        return driver().device(0)
    except TileUnsupportedFeatureError as e:
        e.help = "without a GPU: --backends batch,block. With one: NVIDIA's driver, and pip install 'cutile[gpu]'"
        raise


BACKENDS: dict[str, Backend] = {
    "interp": _interpreter(None), "batch": _interpreter("batch"), "block": _interpreter("block"), "gpu": _gpu,
}


def _constraint(t: Any, x: Any) -> Any:
    """What a launch assumes of an argument."""
    from cutile.compilation.calling_convention import CallingConvention
    from cutile.compilation.constraints import ListConstraint, ScalarConstraint
    from cutile.compilation.derive import array_constraint
    from cutile.runtime.annotations import ArrayAnnotation

    convention = CallingConvention.cutile_python_v1()
    if isinstance(t, ArrayType):
        return array_constraint(t, [x], ArrayAnnotation(), convention)
    if isinstance(t, ListType):
        element = array_constraint(t.element, x, ArrayAnnotation(), convention)
        return ListConstraint(element, alias_groups=(), elements_may_alias=True)
    return ScalarConstraint(t.dtype)


# ------------------------------------------------------------------ copies


def _copied_to_gpu(stack: ExitStack, device: Any, t: Any, x: Any) -> Any:
    """A copy of an array on the GPU; when the stack closes, its contents are copied back."""
    if isinstance(x, list):
        return [_copied_to_gpu(stack, device, t.element, a) for a in x]
    return stack.enter_context(_on_device(device, t.dtype, x)) if isinstance(x, np.ndarray) else x


@contextmanager
def _on_device(device: Any, dtype: DType, x: np.ndarray) -> Iterator[ArrayRef]:
    _refuse_packed(dtype)
    ask, api = device.driver.ask, device.driver.api
    low, high = np.lib.array_utils.byte_bounds(x)
    size, doing = max(high - low, 1), "an array cannot be copied to the GPU"
    memory = int(ask(doing, api.cuMemAlloc(size)))
    try:
        if high > low:
            ask(doing, api.cuMemcpyHtoD(memory, low, high - low))
        address = memory + x.__array_interface__["data"][0] - low
        yield ArrayRef(address, x.shape, tuple(s // x.itemsize for s in x.strides), dtype, device.ordinal)
        if high > low:
            ask("an array cannot be copied from the GPU", api.cuMemcpyDtoH(low, memory, high - low))
    finally:
        api.cuMemFree(memory)


def on_host(x: Any) -> Any:
    """A flat argument in CPU memory: arrays in a GPU's memory are copied."""
    if isinstance(x, list):
        return list(map(on_host, x))
    if not isinstance(x, ArrayRef):
        return x
    from cutile.gpu.driver import driver

    _refuse_packed(x.dtype)
    d = driver()
    ordinal = x.device if x.device is not None else d.device_of_pointer(x.pointer)
    storage = INFO[x.dtype].storage
    reach = [s * (n - 1) * storage.itemsize for s, n in zip(x.strides, x.shape, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + storage.itemsize
    memory = np.empty(high - low, np.uint8)
    if 0 not in x.shape:
        with d.device(ordinal).current():
            d.ask("an array cannot be copied from the GPU", d.api.cuMemcpyDtoH(memory.ctypes.data, x.pointer + low,
                                                                               memory.nbytes))
    return np.ndarray(x.shape, storage, memory, -low, tuple(s * storage.itemsize for s in x.strides))


def _refuse_packed(dtype: DType) -> None:
    """TileUnsupportedFeatureError for an array whose bytes in CPU memory and in GPU memory are not the same."""
    if dtype.bitwidth < 8:
        raise TileUnsupportedFeatureError(
            f"an array of {dtype.name} cannot be compared on a GPU: it has two elements a byte there, one in NumPy",
            help="compare with --backends batch,block, or give the array as int8 and unpack it in the kernel")
