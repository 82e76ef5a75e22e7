"""ct.prepare: a launch whose arguments are read and checked once. Running it costs little more than the driver's call.

Its addresses and numbers may be replaced; all else, such as dtypes, sizes and constants, is part of what was prepared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

from cutile import settings
from cutile._support import float_mode
from cutile._support.opaque import opaque
from cutile.analysis.aliasing import written_params
from cutile.dtypes import int32, int64
from cutile.errors import is_for_users
from cutile.runtime import autograd, launch_cache, launch_plan
from cutile.runtime.annotations import ParameterSpec
from cutile.runtime.array_ref import ADDRESS, ArrayRef, ref_of
from cutile.runtime.arrays import type_name
from cutile.runtime.kernel import Kernel
from cutile.runtime.launch import no_kernel, padded_grid
from cutile.runtime.launch_key import read
from cutile.tracebacks import for_users, hidden

_WHY = ("a prepared launch runs a kernel on the memory of its arguments, and traced tensors have none; import "
        "cutile.torch and call ct.launch or a function by ct.jit, which become operators of the graph")
ALIGNMENT = 16  # bytes; code gains nothing from more

__tracebackhide__ = hidden


@opaque(_WHY)
def prepare(kernel: Kernel, grid: tuple[SupportsIndex, ...], kernel_args: tuple[Any, ...], /, *,
            stream: Any = None) -> Prepared:
    """Check, type and compile a launch, without running it.

    The prepared launch holds its arguments. It stays as it was prepared: later changes of globals or settings do not
    count, apart from CUTILE_SANITIZE, which counts when it runs. CUDA graphs can capture it; a captured launch keeps
    the arguments that it had.

    Parameters
    ----------
    kernel : kernel
        As for `ct.launch`.
    grid : tuple of int
        As for `ct.launch`.
    kernel_args : tuple
        As for `ct.launch`.
    stream : stream, int or None, default None
        Matters only without arrays, where it decides which GPU the launch is for.

    Returns
    -------
    Prepared
        `step(stream)` runs it. `step.replace(x=other, scale=2)` puts another array of the same layout, or another
        number, in the place of the one that it has.

    Raises
    ------
    TypeError, ValueError, OverflowError, RuntimeError, TileError
        What `ct.launch` raises.

    Examples
    --------
    >>> @ct.kernel
    ... def double(x, out):
    ...     i = ct.bid(0)
    ...     ct.store(out, i, 2 * ct.load(x, i, 4))
    >>> x, out = np.arange(8), np.zeros(8, int)
    >>> step = ct.prepare(double, (2,), (x, out))
    >>> step(None)
    >>> step.replace(x=out)
    >>> step(None)
    >>> print(out)
    [ 0  4  8 12 16 20 24 28]
    """
    made = _made(kernel, grid, kernel_args, stream)
    if isinstance(made, Exception):
        raise made from made.__cause__
    return made


def _made(kernel: Any, grid: Any, kernel_args: Any, stream: Any) -> Prepared | Exception:
    """The prepared launch, or the error to raise, for users."""
    if not float_mode.usual():
        return float_mode.run(_made, kernel, grid, kernel_args, stream)
    if not isinstance(kernel, Kernel):
        return TypeError(no_kernel(kernel, "first argument of prepare()"))
    if not isinstance(kernel_args, tuple):
        return TypeError(f"kernel_args must be a tuple, got {type(kernel_args).__name__}")
    try:
        dims, values = padded_grid(grid), tuple(tuple.__iter__(kernel_args))
        plan, launch_values = launch_plan.find(kernel, values, stream)
        if plan.ordinal is None:
            launch_plan.check_on_host(stream)
        launch: Any = plan.prepare(stream)
        if hasattr(launch, "make_variants"):  # all code that may run for this grid, so that none is made later
            launch.make_variants(dims)
        return Prepared(kernel, dims, values, plan, launch_values, launch)
    except Exception as e:
        if settings.get("DEBUG") or not is_for_users(e):
            raise
        return for_users(e)


class Prepared:
    """A launch that `ct.prepare` made. Calling it with a stream runs it. One thread at a time may use it.

    Attributes
    ----------
    kernel : kernel
        What runs.
    grid : tuple of int
        Over which blocks: three ints.
    arguments : tuple
        With which.
    """

    __slots__ = ("kernel", "grid", "_values", "_parts", "_plan", "_stored", "_launch", "_launch_values", "_in_c",
                 "_checks", "_other")

    def __init__(self, kernel: Kernel, grid: tuple[int, int, int], values: tuple, plan: launch_plan.LaunchPlan,
                 launch_values: list, launch: launch_plan.PreparedLaunch):
        self.kernel, self.grid = kernel, grid
        self._values, self._plan, self._launch = list(values), plan, launch
        self._parts = list(map(_read, values, kernel.specs))
        self._launch_values = launch_values
        program = plan.program.kernel
        stored = written_params(program)
        self._stored = {n for p, n in zip(program.params, program.param_names, strict=True) if p in stored}
        self._checks = settings.get("SANITIZE")
        self._other: tuple[frozenset, launch_plan.PreparedLaunch] | None = None
        self._in_c = _in_c(launch, plan, grid)
        self._pass_on()

    @property
    def arguments(self) -> tuple:
        """Those with which it runs, for all parameters of the kernel."""
        return tuple(self._values)

    @opaque(_WHY)
    def __call__(self, stream: Any = None) -> None:
        """Run it: on a GPU, queue it on the stream; on CPU arrays, run it before this returns."""
        if self._in_c is not None:
            code = self._in_c.launch(stream)
            if code is None:
                return None
            if code is not NotImplemented:
                raise launch_cache.refused((code, self._launch), self.grid)
        if not float_mode.usual():
            return float_mode.run(self, stream)
        if self._plan.ordinal is None:
            launch_plan.check_on_host(stream)
        if self._plan.written:
            autograd.before_writing(self._plan.written, self._values)
        self._launch_now(stream).run(self.grid, stream, self._launch_values, False)

    def _launch_now(self, stream: Any) -> launch_plan.PreparedLaunch:
        """What was prepared, or on a GPU another launch while CUTILE_SANITIZE has another value than then."""
        if self._plan.ordinal is None or (checks := settings.get("SANITIZE")) == self._checks:
            return self._launch  # the interpreter itself looks at the setting
        if self._other is None or self._other[0] != checks:
            self._other = checks, self._plan.prepare(stream)
        return self._other[1]

    def replace(self, /, **arguments: Any) -> None:
        """Use other arguments from now on. If one does not fit, none is replaced.

        Parameters
        ----------
        **arguments
            By the names of parameters: arrays of the same place, dtype, sizes and strides, and numbers of the same
            kind.

        Raises
        ------
        TypeError
            An unknown name, a constant, or an argument of another kind, dtype or place.
        ValueError
            An array of other sizes or strides, or one that is less aligned.
        OverflowError
            An int that does not fit.
        """
        fresh = {}
        for name, value in arguments.items():
            if name not in self.kernel.names:
                raise TypeError(f"kernel {self.kernel.__name__} has no parameter `{name}`; its parameters are "
                                f"{', '.join(self.kernel.names)}")
            i = self.kernel.names.index(name)
            fresh[i] = value, _fitting(name, self.kernel.specs[i], self._parts[i], value)
            if name in self._stored and (a := _array(fresh[i][1])) is not None and not a.writable:
                raise TypeError(f"`{name}`: the array is read-only, but the kernel stores to it")
        for i, (value, part) in fresh.items():
            self._values[i] = value
            self._parts[i] = self._parts[i][0], part[1]
        if self._plan.repeatable:
            self._launch_values = [x for _, values in self._parts for x in values]
        else:  # the launch values differ from those that `_read` gave
            _, self._launch_values = launch_plan.find(self.kernel, tuple(self._values), None)
        self._pass_on()

    def _pass_on(self) -> None:
        if self._in_c is not None:
            self._in_c.set(tuple(self._values), tuple(self._launch_values))

    def __repr__(self) -> str:
        return f"<prepared launch of {self.kernel.__name__} over {self.grid}>"


def _in_c(launch: Any, plan: launch_plan.LaunchPlan, grid: tuple[int, int, int]) -> Any:
    """The launch for C code (runtime/_prepared.c); None where Python has to run it."""
    if plan.ordinal is None or 0 in grid or getattr(launch, "traced", True) or any(len(w.path) > 1
                                                                                  for w in plan.written):
        return None
    c, watch = launch_cache.chosen(), settings.watch("SANITIZE") if settings.untouched("SANITIZE") else None
    record = None if c is None or watch is None else launch.record(c)
    if record is None:
        return None
    from cutile.gpu.streams import by_type

    return c.Prepared(record, by_type, autograd.for_c(plan.written), launch.choices, watch, grid)


Read = tuple[list, list]  # the parts of an argument in a launch key, and its launch values


def _read(value: Any, spec: ParameterSpec) -> Read:
    key: list = []
    values: list = []
    read((value,), (spec,), key, values)
    return key, values


# ------------------------------------------------------------------ what may be replaced by what


def _fitting(name: str, spec: ParameterSpec, old: Read, value: Any) -> Read:
    """A new argument, read; an error if it does not fit."""
    if spec.constant:
        raise TypeError(f"`{name}` is a constant, which is part of the compiled code; prepare a launch for each value")
    try:
        new = _read(value, spec)
    except OverflowError:
        raise OverflowError(f"`{name}`: {value} does not fit 64 bits") from None
    except Exception:
        raise TypeError(f"`{name}`: {type_name(value)} cannot take the place of {_kind(old)}") from None
    if new[0] == old[0]:
        return new
    before, after = _array(old), _array(new)
    if before is not None and after is not None:
        _check_array(name, before, after, old[0][0], new[0][0])
    elif not _is_number(old) or not _is_number(new):
        raise TypeError(f"`{name}`: {_kind(new)} cannot take the place of {_kind(old)}"
                        + (" of another layout" if _kind(new) == _kind(old) else ""))
    else:
        _check_number(name, spec, old[0][0], new[0][0], value)
    return new


def _array(x: Read) -> ArrayRef | None:
    return ref_of(x[0][0], x[1][0]) if len(x[0]) == len(x[1]) == 1 else None


def _is_number(x: Read) -> bool:
    return len(x[0]) == 1 and x[0][0] in (bool, float, 32, 64)


def _kind(x: Read) -> str:
    if _array(x) is not None:
        return "an array"
    first = x[0][0]
    if first in (32, 64):
        return "an int"
    of = first if isinstance(first, type) else first[0]
    return f"a {of.__name__ if isinstance(of, type) else of}"


def _check_number(name: str, spec: ParameterSpec, old: Any, new: Any, value: Any) -> None:
    dtype = spec.scalar.dtype if spec.scalar else int32
    if old in (32, 64) and new in (32, 64):
        if new == 64 and dtype is not int64:
            raise OverflowError(f"`{name}`: {value} does not fit {dtype.name}; annotate the parameter with "
                                f"ct.ScalarInt64")
        return
    raise TypeError(f"`{name}`: {_kind(([new], [0]))} cannot take the place of {_kind(([old], [0]))}")


def _check_array(name: str, old: ArrayRef, new: ArrayRef, old_part: Sequence, new_part: Sequence) -> None:
    """An error for an array that cannot take the place of another."""
    for what, was, is_ in (("in", _place(old), _place(new)), ("of", old.dtype.name, new.dtype.name),
                           ("of", _library(old_part), _library(new_part))):
        if was != is_:
            raise TypeError(f"`{name}` is an array {what} {is_}, but the launch was prepared for one {what} {was}")
    for what, was, is_ in (("sizes", old.shape, new.shape), ("strides", old.strides, new.strides)):
        if was != is_:
            raise ValueError(f"`{name}` has {what} {is_}, but the launch was prepared for {was}")
    if old.owner is None and (is_ := _alignment(new_part)) < (was := _alignment(old_part)):
        raise ValueError(f"`{name}` begins at a multiple of {is_} bytes, but the launch was prepared for a multiple of "
                         f"{was}")


def _place(a: ArrayRef) -> str:
    return "CPU memory" if a.owner is not None else f"the memory of GPU {a.device}"


def _library(part: Sequence) -> str:
    return {"torch": "PyTorch", "cupy": "CuPy", "numpy": "NumPy"}.get(part[0], "another library")


def _alignment(part: Sequence) -> int:
    """The largest power of two, up to ALIGNMENT, that divides the address of an array in GPU memory."""
    rest = part[ADDRESS] | ALIGNMENT
    return rest & -rest
