"""Binds the arguments of a call: reads the arrays, binds named sizes, checks, and evaluates rules [JIT-4…18]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cutile._support.structs import field, structure
from cutile.dtypes import DType, from_foreign
from cutile.errors import refusal
from cutile.front.sizes import Axis, Sizes
from cutile.functions import libraries
from cutile.functions.argument_kinds import check_constant, no_array, no_number, other_rank
from cutile.functions.out import LAST, Output, check_fill
from cutile.functions.rules import Rule
from cutile.runtime.arguments import array_of
from cutile.runtime.array_ref import ArrayRef
from cutile.runtime.arrays import type_name
from cutile.runtime.launch import GRID_LIMIT

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction

YZ_LIMIT = 65535  # blocks of a grid along the second and third axis [JIT-18]


class Missing:
    """The default of parameters whose values follow from others."""

    def __repr__(self) -> str:
        return "<computed>"


MISSING: Any = Missing()
REQUIRED: Any = object()  # in the place of constants without default that a call does not give


@structure(frozen=True)
class Read:
    """An array argument, or an item of a list: where it is, and what is known of it."""

    name: str
    value: Any
    shape: tuple[int, ...]
    dtype: DType
    ref: ArrayRef | None  # None for arrays of JAX


@structure
class Bound:
    """The arguments of a call, bound.

    values   by parameter, without outputs
    arrays   those among them, items of lists too
    names    named sizes, and all arguments: what rules read
    origins  of each named size, in words
    open     named sizes whose value only stands for others, where specs stand for arrays
    """

    function: TileFunction
    values: dict[str, Any]
    arrays: list[Read]
    names: dict[str, Any]
    origins: dict[str, str]
    open: set[str] = field(default_factory=set)

    @property
    def first(self) -> Read | None:
        return self.arrays[0] if self.arrays else None

    @property
    def traced(self) -> bool:
        """Whether it is JAX's."""
        return any(a.ref is None for a in self.arrays)

    def array(self, parameter: str) -> Read:
        found = next((a for a in self.arrays if a.name == parameter), None)
        if found is None:
            raise refusal(TypeError(f"{self.function.__name__}(): `{parameter}` must be an array, got "
                                    f"{type_name(self.values[parameter])}"))
        return found

    def evaluate(self, rule: Rule) -> Any:
        """The value of a rule. ValueError or TypeError that name it, and the sizes that it read."""
        try:
            return rule.value(self.names)
        except Exception as e:
            empty = [a.name for a in self.arrays if 0 in a.shape]
            read = ", ".join(f"{n} = {self.names[n]}" for n in sorted(rule.reads) if isinstance(self.names.get(n), int))
            why = str(e) if isinstance(e, TypeError | ValueError) else f"{type(e).__name__}: {e}"
            kind = TypeError if isinstance(e, TypeError) else ValueError
            raise refusal(kind(f"{self.function.__name__}(): {_beginning(rule.what, why)}{f', for {read}' * bool(read)}"
                               f"{f'; `{empty[0]}` is empty' if empty else ''}")) from e

    def grid(self) -> tuple[int, int, int]:
        """The grid, padded with ones; ValueError for one that GPUs do not have [JIT-18]."""
        rule = self.function.grid
        return padded(self.function.__name__, self.evaluate(rule))


def _beginning(what: str, why: str) -> str:
    return why if why.startswith(what) else f"{what} cannot be computed: {why}"


def padded(name: str, grid: tuple[int, ...]) -> tuple[int, int, int]:
    """A grid of three ints."""
    if len(grid) > 3:
        raise refusal(ValueError(f"{name}(): a grid has at most three axes, got {grid}"))
    for axis, n in enumerate(grid):
        limit = YZ_LIMIT if axis else GRID_LIMIT
        if n > limit:
            raise refusal(ValueError(f"{name}(): the grid must be at most {limit} along axis {axis}, got {n} in "
                                     f"{grid}"))
    x, y, z = (*grid, 1, 1, 1)[:3]
    return x, y, z


def bind(function: TileFunction, values: Mapping[str, Any], open: Callable[[Bound], None] | None = None) -> Bound:
    """Read the arrays of a call, bind names, check them, and compute arguments that were left out.

    open   is called before these are computed, to refuse what cannot be
    """
    if missing := [n for n, v in values.items() if v is REQUIRED]:
        hint = _of_constant(function, missing[0]) if function.specs[missing[0]].constant else ""
        if any(function.specs[n].sizes is None and not _is_number(function.specs[n]) for n in missing):
            hint = _unnamed(function)
        raise refusal(TypeError(f"{function.__name__}() needs the argument{'s' * (len(missing) > 1)} "
                                f"{' and '.join(f'`{n}`' for n in missing)}"
                                f"{hint if len(missing) == 1 or 'output' in hint else ''}"))
    bound = Bound(function, dict(values), [], {}, {})
    for name, value in values.items():
        if value is MISSING:
            continue
        if function.specs[name].constant:
            check_constant(function, name, value)
            continue
        needed = function.specs[name].array is not None
        for item, x in [(name, value)] if needed else libraries.arrays_in(value, name):
            if (read := _read(function, item, x, needed, values.values())) is not None:
                if function.specs[name].number:
                    raise no_number(function, name, x)
                bound.arrays.append(read)
    _one_place(function, bound.arrays)
    bound.names.update((n, _plain(v)) for n, v in values.items() if v is not MISSING)
    sized = [(read, spec.sizes) for read in bound.arrays
             if (spec := function.specs.get(read.name)) is not None and spec.sizes is not None]
    expressions = [e for read, sizes in sized for e in _bind_sizes(bound, read, sizes)]
    if function.checks:
        for read, axis, position in expressions:
            _check_size(bound, read, axis, position)
    _compare_with_arguments(bound)
    if open is not None:
        open(bound)
    for name, value in values.items():
        if value is MISSING:
            rule = function.defaults.get(name)
            found = bound.names[name] if rule is None else bound.evaluate(rule)
            if function.specs[name].constant:
                check_constant(function, name, found, computed=True)
            bound.values[name] = bound.names[name] = found
    return bound


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python, so that rules compute with it as with others."""
    return value.item() if isinstance(value, np.integer | np.bool_) else value


def _is_number(spec: Any) -> bool:
    return bool(spec.constant or spec.scalar or spec.number)


def _unnamed(function: TileFunction) -> str:
    """Which parameters are outputs, where their position says so: the one that is missing may be meant for one."""
    names = " and ".join(f"`{o.name}`" for o in function.outputs if o.out.name is None)
    return f"; {names} {'is its output' if ' and ' not in names else 'are its outputs'}, since {LAST}" if names else ""


def _of_constant(function: TileFunction, name: str) -> str:
    kind = getattr(function.kernel.function.__annotations__.get(name), "__origin__", int)  # T of ct.Constant[T]
    if kind is not int:
        value = _EXAMPLES.get(kind, "...")
        return (f", a constant of the kernel: give it in the call, or let ct.jit do so, by defaults={{\"{name}\": "
                f"{value}}}")
    size = [*function.named, "N"][len(function.named) - 1]
    return (f", a constant of the kernel: give it in the call, or let ct.jit do so, by defaults={{\"{name}\": 128}} or "
            f"a function of named sizes, defaults={{\"{name}\": lambda {size}: 1 << ({size} - 1).bit_length()}}")


_EXAMPLES = {float: "1e-6", bool: "True", str: '"..."'}


def _read(function: TileFunction, name: str, value: Any, needed: bool, others: Iterable[Any] = ()) -> Read | None:
    """An argument as an array; None if it is none. TypeError if it must be one, or is one that cannot be used.

    others   all arguments of the call
    """
    if libraries.is_jax(value):
        dtype = from_foreign(getattr(value.dtype, "dtype", value.dtype))
        if dtype is None:
            raise refusal(TypeError(f"{function.__name__}(): `{name}` has dtype {value.dtype}, which kernels do not "
                                    f"have; convert it first"))
        from cutile.jax.description import sizes

        return Read(name, value, sizes(value.shape, f"{function.__name__}(): `{name}`"), dtype, None)
    if value is None or isinstance(value, bool | int | float | str):
        found = None
    else:
        try:
            found = array_of(value)
        except TypeError as e:
            raise refusal(TypeError(f"{function.__name__}(): `{name}`: {e}")) from None
    if found is None:
        if needed:
            raise no_array(function, name, value, others)
        return None
    return Read(name, value, tuple(found.shape), found.dtype, found)


def read_array(value: Any) -> tuple[tuple[int, ...], str, int | None] | None:
    """Sizes, dtype and GPU (None: CPU memory) of an array; None for what is none."""
    if value is None or isinstance(value, bool | int | float | str) or libraries.is_jax(value):
        return None
    ref = array_of(value)
    if ref is None:
        return None
    place = place_of(Read("", value, tuple(ref.shape), ref.dtype, ref))
    return tuple(ref.shape), ref.dtype.name, place if isinstance(place, int) else None


# ------------------------------------------------------------------ places


def _one_place(function: TileFunction, arrays: Sequence[Read]) -> None:
    """TypeError for arrays of a CPU and a GPU, or of JAX and others; ValueError for two GPUs [JIT-15]."""
    first: Read | None = None
    home: Any = None
    for a in arrays:
        place = place_of(a)
        if place is None:
            continue
        if first is None:
            first, home = a, place
        elif place != home:
            raise two_places(function.__name__, first.name, home, a.name, place)


def two_places(function: str, first: str, home: Any, other: str, place: Any) -> Exception:
    """The error for two arrays of a call at different places, which are named as by place_of, or "meta"."""
    outside = other if home == "jax" else first
    how = (f"make `{outside}` an array of JAX, jax.numpy.asarray({outside})" if "jax" in (place, home) else
           "copy one of them to where the other is")
    kind = ValueError if isinstance(place, int) and isinstance(home, int) else TypeError
    return refusal(kind(f"{function}(): the arrays of a call must be on one device, but `{first}` is in "
                        f"{_called(home)} and `{other}` is in {_called(place)}; {how}"))


def place_of(a: Read) -> Any:
    """Where an array is: "cpu", the number of its GPU, or "jax"; None for an empty one that does not say."""
    if a.ref is None:
        return "jax"
    if a.ref.owner is not None:
        return "cpu"
    if a.ref.device is None and a.ref.pointer:
        from cutile.gpu.driver import driver

        return driver().device_of_pointer(a.ref.pointer)
    return a.ref.device


def _called(place: Any) -> str:
    known = {"cpu": "CPU memory", "jax": "an array of JAX", "meta": "no memory (a meta tensor)"}
    return known.get(place, f"the memory of GPU {place}")


# ------------------------------------------------------------------ named sizes


def _bind_sizes(bound: Bound, a: Read, sizes: Sizes) -> list[tuple[Read, Axis, int]]:
    """Check the dtype and rank of an array, and bind the names of its annotation [JIT-4].

    Returns the axes whose sizes are numbers or expressions, to be checked when all names are bound.
    """
    where = f"{bound.function.__name__}(): `{a.name}`"
    if sizes.dtype is not None and a.dtype is not sizes.dtype:
        raise refusal(TypeError(f"{where} must have dtype {sizes.dtype.name}, got {a.dtype.name}"))
    axes, n = sizes.axes, len(a.shape)
    check_rank(bound.function, a.name, a.shape, sizes)
    position, rest = 0, []
    for axis in axes:
        if axis.rest:
            length = n - len(axes) + 1
            _bind_name(bound, a, axis, position, a.shape[position:position + length])
            position += length
        else:
            if axis.name is not None:
                _bind_name(bound, a, axis, position, a.shape[position])
            elif axis.size is not None:
                rest.append((a, axis, position))
            position += 1
    return rest


def check_rank(function: TileFunction, name: str, shape: Sequence[Any], sizes: Sizes) -> None:
    """ValueError for an array that has not as many axes as its annotation names."""
    rest = any(x.rest for x in sizes.axes)
    least = len(sizes.axes) - rest
    if len(shape) < least if rest else len(shape) != least:
        raise refusal(ValueError(f"{function.__name__}(): `{name}` must have {'at least ' * rest}{least} "
                                 f"{'axis' if least == 1 else 'axes'} ({sizes.text}), got the shape {tuple(shape)}"
                                 f"{'' if rest else other_rank(name, shape, least)}"))


def _bind_name(bound: Bound, a: Read, axis: Axis, position: int, size: Any) -> None:
    name = axis.name
    assert name is not None
    is_open = position in getattr(a.value, "open", ())
    if name not in bound.origins:
        bound.names[name], bound.origins[name] = size, _origin(a.name, axis, position)
        if is_open:
            bound.open.add(name)
    elif bound.names[name] != size and bound.function.checks:
        here, there = ("left open" if o else n for o, n in ((is_open, size), (name in bound.open, bound.names[name])))
        raise refusal(ValueError(f"{bound.function.__name__}(): {_origin(a.name, axis, position)} is {here}, but "
                                 f"{name} is {there}, {bound.origins[name]}{_one_name(here, there, name)}"))


def _one_name(here: Any, there: Any, name: str) -> str:
    """What to write where specs leave one size open and say another, or leave both open under two names."""
    return "; let both specs give it one number or name" if "left open" in (here, there) else ""


def _origin(parameter: str, axis: Axis, position: int) -> str:
    if axis.rest:
        return f"the sizes {axis.text} of `{parameter}`"
    return f"the size of `{parameter}` along axis {position}"


def _check_size(bound: Bound, a: Read, axis: Axis, position: int) -> None:
    """Check a size that is given by a number or an expression of names."""
    assert axis.size is not None
    where = _origin(a.name, axis, position)
    try:
        wanted = axis.size(bound.names)
    except (TypeError, ZeroDivisionError) as e:
        raise refusal(ValueError(f"{bound.function.__name__}(): {where} must be {axis.text}, which cannot be computed: "
                                 f"{e}")) from None
    if a.shape[position] != wanted:
        is_open = not bound.open.isdisjoint(axis.size.names)
        of = axis.text if is_open or not axis.size.names else f"{axis.text} = {wanted}"
        known = "".join(f", {n}{', left open, is' if n in bound.open else f' = {bound.names[n]} is'} "
                        f"{bound.origins.get(n, f'the argument `{n}`')}" for n in sorted(axis.size.names))
        got = "an open size" if position in getattr(a.value, "open", ()) else a.shape[position]
        raise refusal(ValueError(f"{bound.function.__name__}(): {where} must be {of}, got {got}{known}"))


def _compare_with_arguments(bound: Bound) -> None:
    """A named size that is also a parameter has one value [JIT-4]."""
    for name, origin in bound.origins.items():
        given = bound.values.get(name, MISSING)
        if any(a.name == name for a in bound.arrays):
            raise refusal(TypeError(f"{bound.function.__name__}(): {name} is {origin}, and the argument `{name}` is "
                                    f"{type_name(given)}; give the size another name"))
        if given is not MISSING and given != bound.names[name] and bound.function.checks:
            raise refusal(ValueError(f"{bound.function.__name__}(): {origin} is {bound.names[name]}, but the argument "
                                     f"`{name}` is {given}"))


# ------------------------------------------------------------------ outputs


@structure(frozen=True)
class Planned:
    """An output of one call: what is to be allocated."""

    output: Output
    shape: tuple[int, ...]
    dtype: DType


def planned(bound: Bound, output: Output) -> Planned:
    """The shape and dtype of an output, which are those of its parameter's annotation, if that has sizes [JIT-7]."""
    wanted = _planned(bound, output)
    try:
        check_fill(output.out.fill, wanted.dtype, f"output `{output.name}`")
    except ValueError as e:
        raise refusal(ValueError(f"{bound.function.__name__}(): {e}")) from None
    sizes = bound.function.specs[output.name].sizes
    if sizes is not None:
        alone = Bound(bound.function, bound.values, [], dict(bound.names), dict(bound.origins), set(bound.open))
        read = Read(output.name, None, wanted.shape, wanted.dtype, None)
        for _, axis, position in _bind_sizes(alone, read, sizes):
            if bound.function.checks:
                _check_size(alone, read, axis, position)
    return wanted


def _planned(bound: Bound, output: Output) -> Planned:
    shape = bound.array(output.out.like).shape if output.shape is None else bound.evaluate(output.shape)
    if output.dtype_like is not None:
        dtype = bound.array(output.dtype_like).dtype
    elif output.dtype is not None:
        given = bound.evaluate(output.dtype)
        dtype = from_foreign(given)
        if dtype is None:
            raise refusal(TypeError(f"{bound.function.__name__}(): {output.dtype.what} must be a dtype, got "
                                    f"{given!r:.100}"))
    elif (sizes := bound.function.specs[output.name].sizes) is not None and sizes.dtype is not None:
        dtype = sizes.dtype
    elif bound.first is not None:
        dtype = bound.first.dtype
    else:
        raise refusal(TypeError(f"{bound.function.__name__}(): there is no array whose dtype output `{output.name}` "
                                f"could have; give it one by ct.Out(..., dtype=...)"))
    return Planned(output, shape, dtype)


def check_given(bound: Bound, wanted: Planned, value: Any) -> Read:
    """An array that the caller gives for an output, checked [JIT-10]."""
    name, where = wanted.output.name, f"{bound.function.__name__}(): the array for output `{wanted.output.name}`"
    if libraries.is_jax(value) or bound.traced:
        raise refusal(TypeError(f"{where} cannot be given: arrays of JAX cannot be written to"))
    read = _read(bound.function, name, value, needed=True)
    assert read is not None and read.ref is not None
    if read.dtype is not wanted.dtype:
        raise refusal(TypeError(f"{where} must have dtype {wanted.dtype.name}, got {read.dtype.name}"))
    if read.shape != wanted.shape:
        axis = next((i for i, (m, n) in enumerate(zip(read.shape, wanted.shape)) if m != n), None)
        along = "" if axis is None or len(read.shape) != len(wanted.shape) else f" (axis {axis})"
        raise refusal(ValueError(f"{where} must have the shape {wanted.shape}, got {read.shape}{along}"))
    if not read.ref.writable:
        raise refusal(ValueError(f"{where} is read-only"))
    _one_place(bound.function, [*bound.arrays, read])
    return read
