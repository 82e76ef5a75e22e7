"""What a launch does, prepared once for arguments of one kind: the program, where it runs, the loaded kernel.

The arguments decide where: with arrays in CPU memory in the interpreter, with arrays in GPU memory on their GPU;
without arrays the stream decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cutile import settings
from cutile._support import opaque, trace
from cutile.analysis.memory_effects import written_params
from cutile.dtypes import INFO
from cutile.errors import refusal
from cutile.runtime import float4_packing
from cutile.runtime.arguments import Argument, key_of
from cutile.runtime.arrays import DeviceArray, layout
from cutile.runtime.autograd import Written, written_tensors
from cutile.runtime.kernel import Kernel, TypedProgram
from cutile.runtime.launch_key import device_of, read

Grid = tuple[int, int, int]


class HostPlan:
    """A launch in the interpreter, on arrays in CPU memory."""

    repeatable, ordinal = False, None
    written: tuple[Written, ...] = ()  # tensors of PyTorch that launches must tell it of

    def __init__(self, program: TypedProgram, kept: bool):
        from cutile.interp import HostLaunch  # back ends are loaded when they are needed

        self.program = program
        self._launch = HostLaunch(program.on_host(), kept)

    def run(self, grid: Grid, stream: Any, words: Sequence[Any], dependent: bool) -> None:
        self._launch.run(grid, stream, words, dependent)


class PackedPlan:
    """A launch in the interpreter, with packed arrays in CPU memory."""

    repeatable, ordinal = False, None
    written: tuple[Written, ...] = ()

    def __init__(self, program: TypedProgram):
        from cutile.interp import HostLaunch  # back ends are loaded when they are needed

        self.program, self._launch = program, HostLaunch(program.on_host(), repeatable=False)

    def run(self, grid: Grid, stream: Any, words: Sequence[Any], dependent: bool) -> None:
        float4_packing.run(self._launch, grid, words)


class DevicePlan:
    """A launch on a GPU. Code is made when it first runs there: under CUTILE_BACKEND=interp none is needed."""

    written: tuple[Written, ...] = ()

    def __init__(self, kernel: Kernel, program: TypedProgram, arguments: Sequence[Argument], ordinal: int):
        from cutile.gpu import streams  # back ends are loaded when they are needed

        self.kernel, self.program, self.arguments, self.ordinal = kernel, program, arguments, ordinal
        self.dims = [_dims(leaf) for a in arguments for leaf in a.leaves]
        self.prepared: Any = None
        self.decided = False  # a like launch can be told by its arguments
        self._handle = streams.handle

    def run(self, grid: Grid, stream: Any, words: Sequence[Any], dependent: bool) -> None:
        number = self._handle(stream)
        prepared = self.prepared
        if prepared is None or not settings.untouched("BACKEND", "DEBUG"):
            if settings.get("BACKEND") == "interp":
                from cutile.runtime import gpu_emulation

                return gpu_emulation.run(self.program.on_host(), self.ordinal, grid, number, words, self.dims)
            prepared = prepared or self._prepare()
            if settings.get("DEBUG"):
                trace.say(trace.LAUNCHES, f"{prepared.name} grid {grid} runs on {prepared.device}")
        if 0 not in grid:
            prepared(grid, number, words, dependent)

    @property
    def repeatable(self) -> bool:
        """Whether launches like one before can do without the plan."""
        return self.decided and self.prepared is not None

    def _prepare(self) -> Any:
        from cutile.gpu.device_launch import Prepared
        from cutile.gpu.parameters import packing

        device, function = loaded(self.kernel, self.program, self.arguments, self.ordinal)
        types = [p.type for p in self.program.kernel.params]
        self.prepared = Prepared(self.kernel.__name__, device, function, packing(types, self.dims))
        return self.prepared


def _dims(leaf: Any) -> Any:
    """Sizes and strides of an array, of each array of a list; None for a number."""
    if isinstance(leaf, list):
        return list(map(_dims, leaf))
    return layout(leaf)[1:3] if isinstance(leaf, DeviceArray) else None


def loaded(kernel: Kernel, program: TypedProgram, arguments: Sequence[Argument], ordinal: int) -> tuple[Any, Any]:
    """The GPU, and the handle of the kernel compiled for these arguments and loaded there."""
    from cutile.compilation.derive import of_launch
    from cutile.gpu.assumptions import of_parameters
    from cutile.gpu.build import build
    from cutile.gpu.driver import driver

    device = driver().device(ordinal)
    constraints, symbol = of_launch(kernel, arguments)
    key = (key_of(arguments), tuple(of_parameters(constraints)), device)
    found = kernel.remembered.loaded.get(key)
    if found is None or found[0] is not program:
        cubin = build(program.kernel, constraints, device.target, kernel.options, symbol)
        found = program, device.function(cubin, symbol)
        kernel.remembered.loaded.keep(key, found)
    return device, found[1]


Plan = HostPlan | PackedPlan | DevicePlan


def find(kernel: Kernel, values: tuple, stream: Any) -> tuple[Plan, list]:
    """The plan for a launch with these arguments, and their words (keys.read); errors name the parameter."""
    key: list = []
    words: list = []
    try:
        read(values, kernel.specs, key, words)
        found = kernel.remembered.plans.get(tuple(key))
    except Exception:
        key, words, found = [], [], None
    if found is not None and (program := found.program).dependencies.unchanged():
        found.used = program.used = True
        return found, words
    return _make(kernel, values, stream, tuple(key), words)


def _make(kernel: Kernel, values: tuple, stream: Any, key: tuple, words: list) -> tuple[Plan, list]:
    opaque.tell()
    try:
        arguments = kernel.understand(values)
        leaves = [leaf for a in arguments for leaf in a.leaves]
        decided, ordinal = place(arguments, list(kernel.parameters), stream)
        if ordinal is None:
            leaves = list(map(_on_host, leaves))
    except (TypeError, ValueError, OverflowError, RecursionError) as e:
        refusal(e)
        raise
    program = kernel.program(arguments)
    # What the stream decides it decides at each launch. An object may say another time that it is another array.
    kept = decided and bool(key) and all(map(_alike, words, leaves))
    if ordinal is None:
        plan: Plan = PackedPlan(program) if any(map(float4_packing.is_packed, leaves)) else HostPlan(program, kept)
    else:
        check_writable(program, leaves)
        plan = DevicePlan(kernel, program, arguments, ordinal)
        plan.decided = kept
    plan.written = written_tensors(program.kernel, values, kernel.specs)
    if kept:
        kernel.remembered.plans.keep(key, plan)
    return plan, leaves if ordinal is None else list(map(_word, leaves))


def _alike(word: Any, leaf: Any) -> bool:
    """Whether a word of the key and a leaf are of one layout."""
    if isinstance(leaf, list):
        return isinstance(word, list) and len(word) == len(leaf) and all(map(_alike, word, leaf))
    if isinstance(leaf, DeviceArray):
        return isinstance(word, int) and word == leaf.pointer
    return not isinstance(leaf, np.ndarray) or isinstance(word, np.ndarray) and (
        word.dtype, word.shape, word.strides) == (leaf.dtype, leaf.shape, leaf.strides)


def _on_host(leaf: Any) -> Any:
    """A leaf for the interpreter: an empty array that may be anywhere is in CPU memory."""
    if isinstance(leaf, list):
        return list(map(_on_host, leaf))
    return np.empty(leaf.shape, INFO[leaf.dtype].storage) if isinstance(leaf, DeviceArray) else leaf


def _word(leaf: Any) -> Any:
    if isinstance(leaf, list):
        return list(map(_word, leaf))
    return leaf.pointer if isinstance(leaf, DeviceArray) else leaf


# ------------------------------------------------------------------ where it runs


def place(arguments: Sequence[Argument], names: Sequence[str], stream: Any) -> tuple[bool, int | None]:
    """Whether the arrays decide, and the ordinal of the GPU that the launch is for; None for the interpreter.

    TypeError for arrays in different places, and for a stream that is none where it decides.
    """
    arrays = [(array, name) for a, name in zip(arguments, names, strict=True) for leaf in a.leaves
              for array in (leaf if isinstance(leaf, list) else [leaf])]
    sides: dict[str, str] = {}
    for array, name in arrays:  # which takes no driver to say
        if isinstance(array, (np.ndarray, float4_packing.PackedArray)):
            sides.setdefault("CPU", name)
        elif isinstance(array, DeviceArray) and array.pointer:
            sides.setdefault("GPU", name)
    _one_place(sides, "{} memory")
    homes: dict[Any, str] = {"CPU": sides["CPU"]} if "CPU" in sides else {}
    for array, name in arrays:
        if isinstance(array, DeviceArray):
            homes.setdefault(device_of(array), name)
    unknown = homes.pop(None, None)  # an empty array may be anywhere
    _one_place(homes, "the memory of GPU {}")
    if homes:
        (home,) = homes
        return True, None if home == "CPU" else home
    if unknown is None and (stream is None or settings.get("BACKEND") == "interp"):
        return False, None
    from cutile.gpu.driver import driver
    from cutile.gpu.streams import handle

    number = handle(stream)
    return False, driver().device_of_stream(number)


def _one_place(places: dict[Any, str], called: str) -> None:
    if len(places) > 1:
        (one, first), (other, second), *_ = places.items()
        raise TypeError(f"the arrays of a launch must be in one place: `{first}` is in {called.format(one)}, "
                        f"`{second}` in {called.format(other)}; copy one of them to where the other is")


def check_writable(program: TypedProgram, leaves: Sequence[Any]) -> None:
    """TypeError if the kernel stores to an array that is read-only."""
    stored = written_params(program.kernel)
    for p, name, leaf in zip(program.kernel.params, program.kernel.param_names, leaves, strict=True):
        arrays = leaf if isinstance(leaf, list) else [leaf]
        if p in stored and not all(a.writable for a in arrays if isinstance(a, DeviceArray)):
            raise refusal(TypeError(f"the kernel stores to parameter `{name}`, but the array given for it is "
                                    "read-only. JAX's all are: cutile.jax.cutile_call() gives new ones"))
