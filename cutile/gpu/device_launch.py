"""A launch prepared for a GPU: a loaded kernel, and the parameters that stay the same from launch to launch.

If the kernel has variants (variants.py), the launch decides once for each grid which code it runs, and again when more
code has been made.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cutile import settings
from cutile._support import trace
from cutile._support.locks import Lock
from cutile._support.lru import LruDict
from cutile._support.structs import structure
from cutile.errors import refusal
from cutile.gpu.driver import Device, driver
from cutile.gpu.facts import of_parameters
from cutile.gpu.grid_functions import GridFunctions
from cutile.gpu.parameters import Packing, ParameterBuffer, packing
from cutile.gpu.streams import handle
from cutile.ir.nodes import Kernel

if TYPE_CHECKING:
    from cutile.gpu.variants import Variant

BUFFERS = 16  # idle buffers that are kept; more concurrent launches make new ones
Grid = tuple[int, int, int]
Candidates = Sequence[tuple["Variant", Callable[[Grid], bool]]]
Conditional = tuple["Variant", Callable[[Sequence[Any]], Callable[[Grid], bool]]]

_lock = Lock()


def prepare(kernel: Kernel, name: str, constraints: Sequence[Any], symbol: str, options: Any, ordinal: int,
            dims: Sequence[Any], loaded: LruDict[tuple, Any]) -> DeviceLaunch:
    """A launch of a typed kernel on a GPU, for arrays with these sizes and strides (parameters.packing).

    constraints, symbol, options   what the kernel is compiled for, as gpu.cubin.build takes them
    loaded   the program's loaded functions by facts, options and GPU; what is missing is added
    """
    device = driver().device(ordinal)
    key = tuple(of_parameters(constraints)), options.key, device, *[settings.MEMCHECK] * settings.memcheck()
    found = loaded.get(key)
    if found is None:
        found = _load(kernel, constraints, symbol, options, device)
        loaded.keep(key, found)
    types = [p.type for p in kernel.params]
    return DeviceLaunch(name, device, found.function, packing(types, dims), traced=trace.on(trace.LAUNCHES),
                        memcheck=settings.memcheck(), variants=[(v, may_run(dims)) for v, may_run in found.variants])


@structure(eq=False, slots=True)
class Loaded:
    """The function of a kernel on a GPU, and its variants, the best first: each with a function that takes the `dims`
    of a launch and returns one that says for which grids the variant may run.
    """

    function: Any
    variants: Sequence[Conditional]


def _load(kernel: Kernel, constraints: Sequence[Any], symbol: str, options: Any, device: Device) -> Loaded:
    from cutile.gpu import carried, selection, unchecked  # these are not needed if the code is loaded

    code = carried.find(kernel, constraints, device.target, options)
    if code is not None:
        return Loaded(device.function(code.cubin, code.symbol), ())
    first = selection.for_first_launch(kernel, constraints, device.target, options, symbol)
    function = device.function(first.code, symbol)
    if settings.memcheck():  # a variant without checks of bounds would hide what is looked for
        return Loaded(function, ())
    variants: list[Conditional] = []
    try:
        found = unchecked.unchecked(kernel, first.uses_tma)
    except Exception as e:  # a variant is optional
        trace.say(trace.LAUNCHES, f"{kernel.name} has no variant: {type(e).__name__}: {e}")
        found = None
    if found is not None:
        variants.append((_selected("without checks of bounds", device, found.kernel, constraints, options, symbol),
                         found.for_arrays))
    if not first.settled:
        variants.append((_selected("with selected hints", device, kernel, constraints, options, symbol),
                         _where_none_may_run(variants[:])))
    return Loaded(function, variants)


def _selected(how: str, device: Device, kernel: Kernel, constraints: Sequence[Any], options: Any,
              symbol: str) -> Variant:
    """A variant that is the best code for a kernel."""
    from cutile.gpu import selection
    from cutile.gpu.variants import Variant

    wanted = kernel, constraints, device.target, options, symbol
    return Variant(kernel.name, how, lambda: selection.cached(*wanted), lambda: selection.build(*wanted),
                   lambda code: device.function(code, symbol))


def _where_none_may_run(better: Sequence[Conditional]) -> Callable[[Sequence[Any]], Callable[[Grid], bool]]:
    """The launches that no better variant may run: only for those is another one worth making."""
    def for_arrays(dims: Sequence[Any]) -> Callable[[Grid], bool]:
        tests = [(v, may_run(dims)) for v, may_run in better]
        return lambda grid: not any(not v.given_up and _may_run(v, may_run, grid) for v, may_run in tests)

    return for_arrays


class DeviceLaunch:
    """A launch of a loaded kernel, for arguments of one layout. Threads may run it at the same time.

    traced    whether it prints each run, as CUTILE_DEBUG asks for
    memcheck  whether its code has the checks that CUTILE_SANITIZE=memcheck asks for
    variants  code to run in the place of `function`, the best first: each with a function that says whether it may run
              for a grid
    """

    __slots__ = ("name", "device", "function", "packing", "traced", "memcheck", "variants", "_chosen", "_times_made",
                 "_buffers", "_launch", "_record")

    def __init__(self, name: str, device: Device, function: Any, packing: Packing, traced: bool = False,
                 memcheck: bool = False, variants: Candidates = ()):
        self.name, self.device, self.function, self.packing, self.traced = name, device, function, packing, traced
        self.memcheck, self.variants = memcheck, variants
        self._chosen = GridFunctions()  # the function that runs for a grid
        self._times_made = 0  # how often more code has been made
        self._buffers: list[ParameterBuffer] = []
        self._record: bytes | None = None
        self._launch = device.driver.api.cuLaunchKernel

    def still_valid(self) -> bool:
        """Whether CUTILE_BACKEND and CUTILE_SANITIZE still let it run on the GPU, with or without memcheck as it was
        prepared, and CUTILE_DEBUG asks for as much tracing as then.
        """
        if settings.untouched("BACKEND", "DEBUG", "SANITIZE"):
            return not self.traced and not self.memcheck
        return (not settings.on_host() and trace.on(trace.LAUNCHES) == self.traced
                and settings.memcheck() == self.memcheck)

    def run(self, grid: Grid, stream: Any, values: Sequence[Any], dependent: bool) -> None:
        """Queue a launch on a stream. `values` are addresses, numbers and lists of addresses.

        DriverError where the driver refuses; RuntimeError for a list of arrays while a graph is captured.
        """
        number = handle(stream)
        if 0 in grid:
            self._tell(grid, "")
            return
        device = self.device
        entered = device.enter()
        try:
            function = self.function
            if self.variants and (function := self._chosen.get(grid)) is None:
                function = self._choose(grid, number)
            if self.traced:
                self._tell(grid, next((f", {v.what}" for v, _ in self.variants if v.function is function), ""))
            try:
                buffer = self._buffers.pop()
            except IndexError:
                buffer = self.packing.buffer()
            if self.packing.tables:
                self._with_tables(buffer, function, grid, number, list(values), dependent)
            else:
                self._queue(function, buffer.fill(values), grid, number, dependent)
            if len(self._buffers) < BUFFERS:
                self._buffers.append(buffer)
        finally:
            if entered:
                device.leave()

    def _tell(self, grid: Grid, how: str) -> None:
        if self.traced:
            trace.say(trace.LAUNCHES, f"{self.name} grid {grid} runs on {self.device}{how}")

    def make_variants(self, grid: Grid) -> None:
        """Make and load all code that may run for a grid, before this returns."""
        with self.device.current():
            for variant, may_run in self.variants:
                if _may_run(variant, may_run, grid):
                    variant.make_now()
        self._more_code()

    def _choose(self, grid: Grid, stream: int) -> Any:
        """The function to run for a grid that has no entry: at its first launch, or its first after a variant was made.
        """
        before, undecided = self._times_made, False
        for variant, may_run in self.variants:
            if variant.given_up or not _may_run(variant, may_run, grid):
                continue
            if not variant.settled and self._is_captured(stream):
                return self.function  # during a capture nothing is made or loaded: a launch after it decides
            if (function := variant.function_or_start(self._more_code)) is not None:
                break
            undecided = undecided or not variant.wanted  # the next launch asks again
        else:
            function = self.function
        with _lock.here():
            if before == self._times_made and not undecided:
                self._chosen.keep(grid, function)
        return function

    def _more_code(self) -> None:
        """A variant has been made: decide anew."""
        with _lock.here():
            self._times_made += 1
            self._chosen.clear()

    @property
    def choices(self) -> list[bytes] | None:
        """Which function runs for a grid, as runtime/_launcher.c takes it; None where it is always the same."""
        return self._chosen.table if self.variants else None

    def _is_captured(self, stream: int) -> bool:
        """Whether a CUDA graph captures a stream. Also True if the driver refuses to say, as for the default stream
        while another stream is captured.
        """
        failed, status = self.device.driver.api.cuStreamIsCapturing(stream)
        return bool(failed or status)

    def _queue(self, function: Any, parameters: int, grid: Grid, stream: int, dependent: bool) -> None:
        if dependent:
            answer = self.device.driver.api.cuLaunchKernelEx(self._dependent(grid, stream), function, parameters, 0)
        else:
            answer = self._launch(function, *grid, 1, 1, 1, 0, stream, parameters, 0)
        if answer[0]:
            raise self.refused(answer[0], grid)

    def _dependent(self, grid: Grid, stream: int) -> Any:
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

    def _with_tables(self, buffer: ParameterBuffer, function: Any, grid: Grid, stream: int, values: list,
                     dependent: bool) -> None:
        """A launch with lists of arrays: their tables are allocated, used and freed in the order of the stream."""
        api, ask = self.device.driver.api, self.device.driver.ask
        if self._is_captured(stream):
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
            self._queue(function, buffer.fill(values), grid, stream, dependent)
        finally:
            for pointer in made:
                api.cuMemFreeAsync(pointer, stream)

    def record(self, c: Any) -> bytes | None:
        """The launch as runtime/_launcher.c, the module `c`, takes it; None for one that it does not know."""
        if self._record is None and (image := self.packing.image(c)) is not None:
            address = self.device.driver.address
            self._record = c.record(address("cuLaunchKernel"), address("cuCtxGetCurrent"), int(self.function),
                                    self.device.context_number, *image)
        return self._record

    def refused(self, code: Any, grid: tuple[int, ...]) -> Exception:
        """The error for a launch that the driver refused with this code."""
        return self.device.driver.error(f"kernel {self.name} cannot be launched on {self.device} with grid "
                                        f"{(*grid, 1, 1, 1)[:3]}", code)


def _may_run(variant: Variant, may_run: Callable[[Grid], bool], grid: Grid) -> bool:
    """Whether a variant may run for a grid. If that cannot be told, it is given up."""
    try:
        return may_run(grid)
    except Exception as e:
        variant.give_up(e)
        return False
