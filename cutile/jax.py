"""Kernels inside jax.jit [JAX-1…9]: on GPUs they run on XLA's stream, on CPUs in the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cutile.dtypes import from_foreign
from cutile.errors import TileError, for_users
from cutile.runtime.annotations import ParameterSpec
from cutile.runtime.kernel import Kernel
from cutile.runtime.launch import launch
from cutile.runtime.launch_plan import check_writable

__all__ = ["InputOutput", "OutputPlaceholder", "cutile_call"]


@dataclass
class OutputPlaceholder:
    """An output buffer to allocate, by shape and dtype. Elements that the kernel does not store are undefined."""

    shape: tuple[int, ...]
    dtype: Any


@dataclass
class InputOutput:
    """An input array that is also an output: the result is the array after the kernel; `array` itself is unchanged."""

    array: Any


def cutile_call(grid: tuple[int, ...], kernel: Kernel, args: tuple[Any, ...]) -> Any:
    """Call a kernel from JAX, inside of jax.jit or outside [JAX-2…7].

    grid     tuple of up to three non-negative ints
    kernel   a function decorated with @cutile.kernel
    args     one for each parameter: jax.Array (an input, which the kernel must not store to), OutputPlaceholder,
             InputOutput, bool, int or float (a bool is passed as int32), anything for a Constant parameter, or a tuple
    Returns the output array, or a tuple of them in the order of the arguments. Arrays are packed, with the last axis
    fastest. It runs where its inputs are; without inputs, on JAX's default device. It has no derivative and no
    batching rule.
    TypeError, ValueError or OverflowError for wrong arguments, a TileError for a kernel that cannot be compiled, both
    while JAX traces the call; NotImplementedError for a symbolic dimension.
    """
    try:
        import jax
        from jax.experimental.buffer_callback import buffer_callback
    except ImportError as e:
        raise ImportError(f"cutile_call() needs JAX 0.7 or newer ({e}); pip install jax") from None
    if not isinstance(kernel, Kernel):
        raise TypeError(f"the second argument of cutile_call() must be a kernel, got {type(kernel).__name__}")
    call = _Call(jax)
    values = call.described(kernel, args)
    _check(kernel, values)
    run = buffer_callback(call.runner(grid, kernel, values), call.outputs, input_output_aliases=call.aliases,
                          has_side_effect=not call.outputs)
    results = run(*call.inputs)
    return results[0] if len(results) == 1 else tuple(results)


# ------------------------------------------------------------------ arguments


@dataclass(frozen=True)
class _Array:
    """An array argument, by its position among XLA's buffers. While typing it stands for the array, in GPU memory."""

    shape: tuple[int, ...]
    dtype: np.dtype
    input: int | None
    output: int | None

    @property
    def __cuda_array_interface__(self) -> dict:
        return {"shape": self.shape, "typestr": f"|V{self.dtype.itemsize}", "version": 3,
                "data": (ALIGNMENT, self.output is None)}


ALIGNMENT = 256  # of all buffers of XLA, in bytes [JAX-6]


@dataclass
class _Call:
    """The description of a call for XLA."""

    jax: Any
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    aliases: dict[int, int] = field(default_factory=dict)  # input number → output number

    def described(self, kernel: Kernel, args: Sequence[Any]) -> tuple:
        """The arguments with _Array in the place of arrays."""
        specs = kernel.parameters
        if not isinstance(args, tuple | list) or len(args) != len(specs):
            got = len(args) if isinstance(args, tuple | list) else type(args).__name__
            raise TypeError(f"cutile_call() takes a tuple with one argument for each of the {len(specs)} parameters of "
                            f"{kernel.__name__}, got {got}")
        return tuple(self._value(v, s, f"parameter `{n}`") for v, (n, s) in zip(args, specs.items(), strict=True))

    def _value(self, value: Any, spec: ParameterSpec, where: str) -> Any:
        if isinstance(value, tuple):
            if spec.listed is not None and len(spec.listed) != len(value):
                raise TypeError(f"{where}: its annotation asks for a tuple of {len(spec.listed)} items, "
                                f"got {len(value)}")
            return tuple(self._value(v, s, f"{where}[{i}]")
                         for i, (v, s) in enumerate(zip(value, spec.items, strict=False)))
        if spec.is_tuple:
            raise TypeError(f"{where}: its annotation asks for a tuple, got {type(value).__name__}")
        if isinstance(value, self.jax.Array | OutputPlaceholder | InputOutput):
            if spec.constant:
                raise TypeError(f"{where} is Constant; it cannot be an array, got {type(value).__name__}")
            return self._array(value, where)
        if spec.constant:
            return value
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, int | float):
            return value
        raise TypeError(f"{where}: cutile_call() takes jax.Array, OutputPlaceholder, InputOutput, numbers and tuples, "
                        f"got {type(value).__name__}")

    def _array(self, value: Any, where: str) -> _Array:
        buffer = value.array if isinstance(value, InputOutput) else value
        if buffer is not value and not isinstance(buffer, self.jax.Array):
            raise TypeError(f"{where}: InputOutput takes a jax.Array, got {type(buffer).__name__}")
        shape = tuple(buffer.shape)
        if not all(isinstance(n, int) for n in shape):
            raise NotImplementedError(f"{where}: the shape {shape} has a symbolic dimension; kernels need numbers")
        dtype = self.jax.numpy.dtype(buffer.dtype)
        known = from_foreign(dtype)
        if known is None or known.bitwidth < 8:
            raise TypeError(f"{where}: an array of dtype {dtype} cannot be passed to a kernel; convert it first")
        at = to = None
        if not isinstance(value, OutputPlaceholder):
            at = len(self.inputs)
            self.inputs.append(buffer)
        if not isinstance(value, self.jax.Array):
            to = len(self.outputs)
            self.outputs.append(self.jax.ShapeDtypeStruct(shape, dtype))
            if at is not None:
                self.aliases[at] = to
        return _Array(shape, dtype, at, to)

    def runner(self, grid: tuple[int, ...], kernel: Kernel, values: tuple) -> Any:
        """The function that XLA calls with the buffers of outputs and inputs."""

        def run(context: Any, outputs: Sequence[Any], *inputs: Any) -> None:
            buffers = [*outputs, *inputs]
            on_gpu = bool(buffers) and buffers[0].__dlpack_device__()[0] != CPU

            def given(v: Any) -> Any:
                if isinstance(v, tuple):
                    return tuple(map(given, v))
                if not isinstance(v, _Array):
                    return v
                buffer = outputs[v.output] if v.output is not None else inputs[v.input]
                return _Buffer(buffer) if on_gpu else np.asarray(buffer)

            launch(context.stream if on_gpu else None, grid, kernel, given(values))

        return run


CPU = 1  # DLPack's kDLCPU


class _Buffer:
    """A buffer of XLA as an array with DLPack. Nothing waits for it: the launch is queued on the stream that computes
    the buffer.
    """

    def __init__(self, buffer: Any):
        self.buffer = buffer

    def __dlpack__(self, **_: Any) -> Any:
        return self.buffer.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.buffer.__dlpack_device__()


def _check(kernel: Kernel, values: tuple) -> None:
    """Type the kernel while JAX traces, so that errors are those of a launch."""
    arguments = kernel.classify(values)
    try:
        program = kernel.program(arguments)
    except TileError as e:
        raise for_users(e) from e.__cause__
    check_writable(program, [x for a in arguments for x in a.flat_args])
