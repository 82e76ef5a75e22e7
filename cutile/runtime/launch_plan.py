"""A launch plan: for arguments with one launch key, the program, where it runs, and the prepared launch of a back end.

The arguments decide where it runs: arrays in CPU memory mean the interpreter, arrays in GPU memory their GPU. Without
arrays the stream decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from cutile import settings
from cutile._support import opaque
from cutile.analysis.aliasing import written_params
from cutile.dtypes import INFO
from cutile.errors import refusal
from cutile.front.program import Embedded
from cutile.runtime.arguments import Argument, classify_read
from cutile.runtime.array_ref import ArrayRef
from cutile.runtime.autograd import Written, before_writing, written_tensors
from cutile.runtime.float4_packing import PackedArray, PackedLaunch
from cutile.runtime.kernel import Kernel, TypedProgram
from cutile.runtime.launch_key import read

Grid = tuple[int, int, int]


class PreparedLaunch(Protocol):
    """A launch as a back end has prepared it: a program on arguments of one kind, with arrays of one layout."""

    def run(self, grid: Grid, stream: Any, values: Sequence[Any], dependent: bool) -> None:
        """Run it on a stream. `values` are launch values, as launch_key.read gives them; `dependent` lets it start
        before the kernel that was queued before it has ended.
        """

    def still_valid(self) -> bool:
        """Whether it may run under the current settings; if not, it has to be prepared anew."""


class LaunchPlan:
    """What launches of a kernel with arguments of one launch key do.

    program     the typed program
    prepare     makes the prepared launch from the stream: at the first run, and again when it is no longer valid
    prepared    that launch; None before the first run
    ordinal     of the GPU that it is for; None for the interpreter. `dims`: sizes and strides of its arrays there
    repeatable  whether later launches with this key use it
    in_c        whether C code may run its launches in CPU memory; unknown until it was asked (launch_cache.py)
    written     the tensors of PyTorch that must be told that they are written to
    """

    __slots__ = ("program", "ordinal", "dims", "repeatable", "in_c", "written", "prepare", "prepared", "used")

    def __init__(self, program: TypedProgram, prepare: Callable[[Any], PreparedLaunch], ordinal: int | None,
                 dims: list[Any], repeatable: bool, written: tuple[Written, ...]):
        self.program, self.prepare, self.ordinal, self.dims = program, prepare, ordinal, dims
        self.repeatable, self.in_c, self.written = repeatable, True, written
        self.prepared: PreparedLaunch | None = None
        self.used = False  # by a launch since LruDict last looked


def run(kernel: Kernel, grid: Grid, values: tuple, stream: Any, dependent: bool) -> LaunchPlan:
    """Launch a kernel; returns the plan."""
    plan, launch_values = find(kernel, values, stream)
    if plan.ordinal is None:
        check_on_host(stream)
    if plan.written:
        before_writing(plan.written, values)
    prepared = plan.prepared
    if prepared is None or not prepared.still_valid():
        prepared = plan.prepared = plan.prepare(stream)
    prepared.run(grid, stream, launch_values, dependent)
    return plan


def check_on_host(stream: Any) -> None:
    """TypeError for what is no stream, though a launch in CPU memory has no need of one."""
    if stream is not None:
        from cutile.gpu import streams  # back ends are loaded when they are needed

        streams.check_on_host(stream)


def find(kernel: Kernel, values: tuple, stream: Any) -> tuple[LaunchPlan, list]:
    """The plan for a launch with these arguments, and its launch values; errors name the parameter."""
    key: list = []
    launch_values: list = []
    try:
        read(values, kernel.specs, key, launch_values)
        plan = kernel.plans.get(tuple(key))
    except Exception:  # an argument that cannot be read: `_make` says what is wrong with it
        return _make(kernel, values, stream, None, [])
    if plan is not None and (program := plan.program).dependencies.unchanged():
        plan.used = program.used = True
        return plan, launch_values
    return _make(kernel, values, stream, tuple(key), launch_values)


def _make(kernel: Kernel, values: tuple, stream: Any, key: tuple | None,
          launch_values: list) -> tuple[LaunchPlan, list]:
    opaque.tell()
    try:
        arguments, key = _classify(kernel, values, key, launch_values)
        decided, ordinal = place(arguments, kernel.names, stream)
    except (TypeError, ValueError, OverflowError, RecursionError) as e:
        refusal(e)
        raise
    program = kernel.program(arguments)
    flat_args = [x for a in arguments for x in a.flat_args]
    # Where no array decides, each launch asks the stream again.
    repeatable = decided and key is not None
    if ordinal is None:
        given, launch_values = launch_values, list(map(_host_value, flat_args))
        repeatable = repeatable and all(map(_same, given, launch_values))
        prepare, dims = _prepare_on_host(program, flat_args, repeatable), []
    else:
        check_writable(program, flat_args)
        launch_values = list(map(_device_value, flat_args))
        dims = list(map(dims_of, flat_args))
        prepare = _prepare_on_gpu(kernel, program, arguments, ordinal, dims)
    written = written_tensors(program.kernel, values, [a.arg_type for a in arguments])
    plan = LaunchPlan(program, prepare, ordinal, dims, repeatable, written)
    if repeatable:
        kernel.plans.keep(key, plan)
    return plan, launch_values


def _classify(kernel: Kernel, values: tuple, key: tuple | None, launch_values: list) -> tuple[list[Argument], Any]:
    """The arguments of a launch as they have been read, and their key.

    If one cannot be read or classified, all are read again, one after another, for the error that names the first that
    is wrong. If the second reading succeeds, arguments read differently each time, so they have no reliable key: None.
    """
    if key is not None:
        try:
            return classify_read(kernel.names, kernel.specs, values, key, launch_values), key
        except Exception:
            pass
    return kernel.classify(values), None


def _host_value(x: Any) -> Any:
    """A flat argument as the interpreter takes it. An empty array without a place counts as in CPU memory."""
    if isinstance(x, list):
        return list(map(_host_value, x))
    if not isinstance(x, ArrayRef):
        return x
    return x.owner if x.owner is not None else np.empty(x.shape, INFO[x.dtype].storage)


def _same(given: Any, value: Any) -> bool:
    """Whether the launch value as read can go to the interpreter unchanged, now and at later launches."""
    if isinstance(value, list):
        return all(map(_same, given, value))
    return value is given or not isinstance(value, np.ndarray)


def _device_value(x: Any) -> Any:
    """A flat argument as a GPU takes it."""
    if isinstance(x, list):
        return list(map(_device_value, x))
    return x.pointer if isinstance(x, ArrayRef) else x


def dims_of(x: Any) -> Any:
    """Sizes and strides of an array, of each array of a list; None for a number."""
    if isinstance(x, list):
        return list(map(dims_of, x))
    return (x.shape, x.strides) if isinstance(x, ArrayRef) else None


# ------------------------------------------------------------------ how back ends prepare it


def _prepare_on_host(program: TypedProgram, flat_args: Sequence[Any],
                     repeatable: bool) -> Callable[[Any], PreparedLaunch]:
    packed = any(isinstance(a.owner, PackedArray) for a in _arrays(flat_args))

    def prepare(stream: Any) -> PreparedLaunch:
        from cutile.interp import HostLaunch  # back ends are loaded when they are needed

        if packed:
            return PackedLaunch(HostLaunch(compiled(program), repeatable=False))
        return HostLaunch(compiled(program), repeatable)

    return prepare


def compiled(program: TypedProgram) -> Any:
    """What the interpreter derives from a program, kept with it."""
    if program.compiled is None:
        from cutile.interp import CompiledKernel

        program.compiled = CompiledKernel(program.kernel, program.elements)
    return program.compiled


def _prepare_on_gpu(kernel: Kernel, program: TypedProgram, arguments: Sequence[Argument], ordinal: int,
                    dims: list[Any]) -> Callable[[Any], PreparedLaunch]:
    """A function that makes the prepared launch, on the GPU or, under CUTILE_BACKEND=interp, on copies. GPU code is
    made when that is first called for the GPU.
    """

    def prepare(stream: Any) -> PreparedLaunch:
        from cutile.gpu import device_launch, streams  # back ends are loaded when they are needed

        streams.handle(stream)  # refuses a wrong stream before anything is compiled
        if settings.on_host():
            from cutile.interp import HostLaunch
            from cutile.runtime.host_copies import HostCopyLaunch

            return HostCopyLaunch(HostLaunch(compiled(program), repeatable=False), ordinal, dims)
        from cutile.compilation.launch_signature import of_launch

        constraints, symbol = of_launch(kernel, arguments)
        return device_launch.prepare(program.kernel, kernel.__name__, constraints, symbol, kernel.options, ordinal,
                                     dims, program.loaded)

    return prepare


def _arrays(flat_args: Sequence[Any]) -> list[ArrayRef]:
    return [a for x in flat_args for a in (x if isinstance(x, list) else [x]) if isinstance(a, ArrayRef)]


def _named_arrays(arg_type: Any, flat_args: Iterator[Any], name: str) -> Iterator[tuple[ArrayRef, str]]:
    """The arrays of an argument, with the names that they have in it: `x`, or `x[0][1]` in tuples and lists."""
    if type(arg_type) is tuple:
        for i, t in enumerate(arg_type):
            yield from _named_arrays(t, flat_args, f"{name}[{i}]")
    elif type(arg_type) is not Embedded:
        x = next(flat_args)
        for a, of in ((a, f"{name}[{i}]") for i, a in enumerate(x)) if isinstance(x, list) else ((x, name),):
            if isinstance(a, ArrayRef):
                yield a, of


# ------------------------------------------------------------------ where it runs


def place(arguments: Sequence[Argument], names: Sequence[str], stream: Any) -> tuple[bool, int | None]:
    """Whether the arrays decide, and the ordinal of the GPU that the launch is for; None for the interpreter.

    TypeError for arrays in different places, and for an object that is no stream where the stream decides.
    """
    arrays = [x for a, name in zip(arguments, names, strict=True)
              for x in _named_arrays(a.arg_type, iter(a.flat_args), name)]
    sides: dict[str, str] = {}
    for array, name in arrays:  # which needs no driver
        if array.owner is not None or array.pointer:
            sides.setdefault("GPU" if array.owner is None else "CPU", name)
    _one_place(sides, "{} memory")
    homes: dict[Any, str] = {"CPU": sides["CPU"]} if "CPU" in sides else {}
    for array, name in arrays:
        if array.owner is None:
            homes.setdefault(_home(array), name)
    unknown = homes.pop(None, None)  # an empty array may be anywhere
    _one_place(homes, "the memory of GPU {}")
    if homes:
        (home,) = homes
        return True, None if home == "CPU" else home
    if unknown is None and (stream is None or settings.on_host()):
        return False, None
    from cutile.gpu.driver import driver
    from cutile.gpu.streams import handle

    number = handle(stream)
    return False, driver().device_of_stream(number)


def _home(a: ArrayRef) -> int | None:
    """The GPU of an array in GPU memory; None for an empty array whose GPU is not known."""
    if a.device is None and a.pointer:
        from cutile.gpu.driver import driver

        return driver().device_of_pointer(a.pointer)
    return a.device


def _one_place(places: dict[Any, str], called: str) -> None:
    if len(places) > 1:
        (one, first), (other, second), *_ = places.items()
        raise TypeError(f"the arrays of a launch must be in one place: `{first}` is in {called.format(one)}, "
                        f"`{second}` in {called.format(other)}; copy one of them to where the other is")


def check_writable(program: TypedProgram, flat_args: Sequence[Any]) -> None:
    """TypeError if the kernel stores to an array in GPU memory that is read-only."""
    stored = written_params(program.kernel)
    for p, name, x in zip(program.kernel.params, program.kernel.param_names, flat_args, strict=True):
        if p in stored and not all(a.writable or a.owner is not None for a in _arrays([x])):
            raise refusal(TypeError(f"the kernel stores to parameter `{name}`, but the array given for it is "
                                    "read-only; JAX's all are: cutile.jax.cutile_call() returns new ones"))
