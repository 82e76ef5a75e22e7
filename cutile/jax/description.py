"""What a call of a kernel from JAX is: its arguments as they were given, and `Call`, which JAX keeps."""

from __future__ import annotations

import copy
import dis
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cutile.analysis.aliasing import all_writes, first_writes, only_updates
from cutile.dtypes import INFO, from_foreign
from cutile.errors import TileError, TileTypeError, refusal
from cutile.runtime.annotations import ParameterSpec
from cutile.runtime.arguments import Argument
from cutile.runtime.array_ref import ArrayRef
from cutile.runtime.arrays import is_traced
from cutile.runtime.kernel import Kernel, TypedProgram
from cutile.tracebacks import declares

ALIGNMENT = 16  # bytes: what the code relies on, and the handler tests


@dataclass
class OutputPlaceholder:
    """An output buffer to allocate, by shape and dtype. Elements that the kernel does not store are undetermined, on a
    CPU NaN or the lowest integer.

    Parameters
    ----------
    shape : tuple of int
        Its sizes.
    dtype : dtype
        A dtype of JAX, NumPy or cutile, or its name.

    Attributes
    ----------
    shape, dtype
        As above.

    Notes
    -----
    [JAX-1]

    Examples
    --------
    >>> cutile.jax.OutputPlaceholder((4,), "float32")
    OutputPlaceholder(shape=(4,), dtype='float32')
    """

    shape: tuple[int, ...]
    dtype: Any


@dataclass
class InputOutput:
    """An input array that is also an output: the result is the array after the kernel; `array` itself is unchanged.

    Parameters
    ----------
    array : array
        The input.

    Attributes
    ----------
    array
        As above.

    Notes
    -----
    [JAX-1]

    Examples
    --------
    >>> @ct.kernel
    ... def add_one(x):
    ...     ct.store(x, 0, ct.load(x, 0, 4) + 1)
    >>> x = jax.numpy.arange(4.0)
    >>> print(cutile.jax.cutile_call((1,), add_one, (cutile.jax.InputOutput(x),)), x)
    [1. 2. 3. 4.] [0. 1. 2. 3.]
    """

    array: Any


# ------------------------------------------------------------------ a call


@dataclass(frozen=True)
class Array:
    """An array argument, by its place among inputs and outputs. Where a kernel is typed it stands for the array, in
    GPU memory.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    input: int | None
    output: int | None
    address: int = ALIGNMENT

    @property
    def __cuda_array_interface__(self) -> dict:
        return {"shape": self.shape, "typestr": f"|V{self.dtype.itemsize}", "version": 3,
                "data": (self.address, self.output is None)}


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a kernel, which JAX keeps as a parameter of the primitive. Calls with equal keys do the same.

    values   the arguments, with an Array in the place of each array
    outputs  shape and dtype of each, of one item of a batch
    aliases  pairs of an input and the output that begins as it
    target   the GPU architectures to compile for, with commas between; None: those of CUTILE_TARGET, or of JAX's GPUs
    batch    sizes of the axes of a batch; `batched` says for each input which of them it has, before its own axes
    """

    kernel: Kernel
    grid: tuple[int, int, int]
    values: tuple
    program: TypedProgram
    outputs: tuple[tuple[tuple[int, ...], np.dtype], ...]
    aliases: tuple[tuple[int, int], ...]
    target: str | None
    batch: tuple[int, ...] = ()
    batched: tuple[tuple[bool, ...], ...] = ()
    key: tuple = field(init=False, repr=False)

    def __post_init__(self):
        numbers = tuple(np.float64(x).tobytes() if isinstance(x, float) else x for x in self.flat()
                        if not isinstance(x, ArrayRef))
        object.__setattr__(self, "key", (
            id(self.program), self.kernel.options.key, self.grid, tuple(self.arrays()), numbers, self.outputs,
            self.aliases, self.target, self.batch, self.batched))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Call) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        """What shows in jaxprs."""
        return f"{self.kernel.__qualname__} grid={self.grid}" + (f" batch={self.batch}" if self.batch else "")

    def arguments(self) -> list[Argument]:
        """The arguments, classified; the addresses of arrays say how far they are aligned in each item of a batch."""
        return self.kernel.classify(_replaced(self.values, self._as_aligned))

    def flat(self) -> list[Any]:
        """An ArrayRef or a number for each parameter of the kernel's IR."""
        return [x for a in self.arguments() for x in a.flat_args]

    def arrays(self) -> list[Array]:
        """The arrays among the parameters of the IR, in order."""
        return list(_arrays(self.values))

    def steps(self, a: Array) -> tuple[int, ...]:
        """Bytes from item to item of an array, along each axis of the batch."""
        has = (True,) * len(self.batch) if a.output is not None else self.batched[a.input]
        step, out = int(np.prod(a.shape, dtype=np.int64)) * a.dtype.itemsize, []
        for n, varies in zip(reversed(self.batch), reversed(has), strict=True):
            out.append(step if varies else 0)
            step *= n if varies else 1
        return tuple(reversed(out))

    def _as_aligned(self, a: Array) -> Array:
        address = ALIGNMENT
        for step in self.steps(a):
            address |= step
        return replace(a, address=address & -address)

    def buffer(self, a: Array) -> int:
        """The number of an array among the buffers: inputs first, then outputs. One that is both is an output."""
        return a.input if a.output is None else len(self.batched) + a.output


def _arrays(value: Any) -> Iterator[Array]:
    if isinstance(value, Array):
        yield value
    elif isinstance(value, tuple):
        for v in value:
            yield from _arrays(v)


def _replaced(value: Any, change: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_replaced(v, change) for v in value)
    return change(value) if isinstance(value, Array) else value


def typed(kernel: Kernel, values: tuple, returned: Callable[[str], str] | None = None) -> TypedProgram:
    """The typed program, made while JAX traces so that errors are those of a launch.

    returned   the call, in words, that returns a parameter which the kernel stores to (None: one of cutile_call)
    """
    arguments = kernel.classify(values)
    try:
        program = kernel.program(arguments)
    except TileError as e:
        raise _with_notes(e, kernel, values) from e.__cause__
    stored = first_writes(program.kernel)
    flat = [x for a in arguments for x in a.flat_args]
    for p, name, x in zip(program.kernel.params, program.kernel.param_names, flat, strict=True):
        if p in stored and isinstance(x, ArrayRef) and not x.writable:
            how = returned(name) if returned else f"a call with InputOutput({name})"
            raise refusal(TypeError(f"kernel {kernel.__name__} stores to `{name}`, but arrays of JAX do not change; "
                                    f"{how} returns what it is after the kernel\n"
                                    f"{stored[p].span.render_calls()}"))
    return program


def check_outputs(call: Call) -> None:
    """TileTypeError for outputs whose elements nobody gives a value: the kernel stores to none of them, its code does
    not use one, or it only updates one. An InputOutput has the values of its array.
    """
    program = call.program.kernel
    found = {program.param_names[program.params.index(p)].partition("[")[0]: accesses
             for p, accesses in all_writes(program).items()}
    fresh = [n for n, v in zip(call.kernel.names, call.values, strict=True)
             if isinstance(v, Array) and v.input is None]
    missed = [n for n in fresh if n not in found]
    none = bool(call.outputs) and not found
    used = _used(call.kernel.function)
    for n in missed:
        if none or n not in used:
            raise refusal(TileTypeError(
                f"the kernel never stores to `{n}`, an output of this call of {call.kernel.__name__}, so that its "
                f"elements are undetermined", program.span, help=f"write ct.store({n}, index, tile), or pass an array"))
    for n in fresh:
        if (op := only_updates(found.get(n, ()))) is not None:
            raise refusal(TileTypeError(
                f"{op.op.name}() updates `{n}`, an output of this call of {call.kernel.__name__}, whose elements are "
                f"undetermined before", op.span,
                help="pass what it begins with, InputOutput(jax.numpy.zeros(shape, dtype))"))


def _used(function: Callable) -> set[str]:
    """The parameters that the code of a function reads, or that functions in it do."""
    names: set[str] = set(function.__code__.co_cellvars)
    for i in dis.get_instructions(function):
        if i.opname.startswith("LOAD"):
            names.update(i.argval if isinstance(i.argval, tuple) else (str(i.argval),))
    return names


def _with_notes(e: TileError, kernel: Kernel, values: tuple) -> TileError:
    """The error, which others may be shown as well, with what it may be about: numbers that are arrays here."""
    notes = [(f"`{name}` is an array of JAX without axes, as all numbers are that jax.jit traces: load it, "
              f"ct.load({name}, (), ()), or pass a number of Python, by static_argnames of jax.jit", None)
             for (name, spec), v in zip(kernel.parameters.items(), values, strict=True)
             if isinstance(v, Array) and v.shape == () and v.output is None and spec.array is None]
    if notes:
        e = copy.copy(e)
        e.notes += tuple(notes)
    return e


# ------------------------------------------------------------------ reading arguments


class Reading:
    """Arguments as they are read."""

    def __init__(self) -> None:
        import jax

        self.jax = jax
        self.inputs: list[Any] = []
        self.outputs: list[tuple[tuple[int, ...], np.dtype]] = []
        self.aliases: list[tuple[int, int]] = []

    @declares
    def values(self, kernel: Kernel, args: Sequence[Any]) -> tuple:
        """The arguments with an Array in the place of each array."""
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
        if isinstance(value, self.jax.ShapeDtypeStruct):
            value = OutputPlaceholder(value.shape, value.dtype)
        if isinstance(value, np.bool_ | np.integer | np.floating) and not spec.constant:
            value = value.item()
        if isinstance(value, self.jax.Array | np.ndarray | OutputPlaceholder | InputOutput):
            if spec.constant:
                hint = ("numbers that jax.jit traces are arrays; name it in static_argnames of jax.jit"
                        if is_traced(value) else "pass a number of Python, such as int(x)")
                raise TypeError(f"{where} is Constant; it cannot be an array, got {type(value).__name__}: {hint}")
            return self._array(value, where)
        if spec.constant:
            return value
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, int | float):
            return value
        got = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        hint = {OutputPlaceholder: "; write OutputPlaceholder(shape, dtype)", InputOutput: "; write InputOutput(x)"}
        raise TypeError(f"{where}: cutile_call() takes arrays of JAX and NumPy, OutputPlaceholder, InputOutput, "
                        f"numbers and tuples, got {got}{hint.get(value, '') if isinstance(value, type) else ''}")

    def _array(self, value: Any, where: str) -> Array:
        buffer = value.array if isinstance(value, InputOutput) else value
        if buffer is not value and not isinstance(buffer, self.jax.Array | np.ndarray):
            raise TypeError(f"{where}: InputOutput takes an array of JAX or NumPy, got {type(buffer).__name__}")
        shape, dtype = sizes(buffer.shape, where), self._dtype(buffer.dtype, where)
        at = to = None
        if not isinstance(value, OutputPlaceholder):
            at = len(self.inputs)
            self.inputs.append(self.jax.numpy.asarray(buffer) if isinstance(buffer, np.ndarray) else buffer)
        if buffer is not value or isinstance(value, OutputPlaceholder):
            to = len(self.outputs)
            self.outputs.append((shape, dtype))
            if at is not None:
                self.aliases.append((at, to))
        return Array(shape, dtype, at, to)

    def _dtype(self, given: Any, where: str) -> np.dtype:
        try:
            known = from_foreign(given) or from_foreign(np.dtype(given))
        except TypeError:
            known = None
            if isinstance(given, str):
                raise TypeError(f"{where}: {given!r:.40} is no dtype") from None
        if known is None or known.bitwidth < 8:
            raise TypeError(f"{where}: an array of dtype {given} cannot be passed to a kernel; convert it first")
        dtype = INFO[known].storage
        if (has := self.jax.dtypes.canonicalize_dtype(dtype)) != dtype:
            raise TypeError(f"{where}: JAX has no arrays of dtype {dtype} unless jax_enable_x64 is set; write {has}")
        return dtype


def sizes(shape: Any, where: str) -> tuple[int, ...]:
    """The shape of an array or placeholder as ints. TypeError, ValueError or NotImplementedError for what is none."""
    if not isinstance(shape, tuple | list):
        raise TypeError(f"{where}: OutputPlaceholder takes a tuple of sizes, got {shape!r:.100}")
    for n in shape:
        if isinstance(n, int | np.integer):
            continue
        if is_traced(n):
            raise TypeError(f"{where}: a size depends on the value of an array, but programs have fixed ones; compute "
                            f"it from shapes, or name what it depends on in static_argnames of jax.jit")
        if isinstance(n, float | np.floating | str | None):
            raise TypeError(f"{where}: sizes are ints, got {shape!r:.100}")
        raise NotImplementedError(f"{where}: the shape {shape} has a symbolic dimension, but kernels in programs of "
                                  f"JAX need numbers; export one program for each size")
    if any(n < 0 for n in shape):
        raise ValueError(f"{where}: sizes are not negative, got {shape}")
    return tuple(map(int, shape))
