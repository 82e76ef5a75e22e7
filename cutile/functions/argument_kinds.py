"""Arguments of the wrong kind: what a parameter takes, and what to write instead [JIT-6, JIT-16]."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cutile.dtypes import DType
from cutile.errors import refusal
from cutile.functions import libraries
from cutile.runtime.arrays import is_traced, type_name

if TYPE_CHECKING:
    from cutile.front.sizes import Sizes
    from cutile.functions.tile_function import TileFunction

# ------------------------------------------------------------------ constants


def constant_kinds(f: TileFunction) -> Mapping[str, Any]:
    """T of each parameter that is annotated ct.Constant[T]; those whose annotations cannot be read are left out."""
    try:
        hints = typing.get_type_hints(f.kernel.function, include_extras=True)
    except Exception:  # text that is no Python type
        hints = f.kernel.function.__annotations__
    return {n: getattr(hints[n], "__origin__", Any) for n in f.parameters if f.specs[n].constant and n in hints}


def check_constant(f: TileFunction, name: str, value: Any, computed: bool = False) -> None:
    """TypeError for a constant that is an array, or no value of T in ct.Constant[T].

    computed   whether a default of ct.jit gave it
    """
    kind, expected = f._constant_kinds.get(name, Any), f.parameters[name].default
    if is_array(value):
        raise refusal(TypeError(f"{f.__name__}(): `{name}` is a constant of the kernel, got {_array(value)}; "
                                f"{_one_value(name, value, kind)}"))
    if _fits(value, kind) or value is None and expected is None:
        return
    said = "its default gives" if computed else "got"
    raise refusal(TypeError(f"{f.__name__}(): `{name}` is a constant of the kernel, annotated as {_words(kind)}, "
                            f"{said} {_shown(value)}{_instead(value, kind, computed)}"))


def is_array(value: Any) -> bool:
    """Whether a value has elements and a dtype, also where it has no axes. Scalars of NumPy are none."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic)


def _fits(value: Any, kind: Any) -> bool:
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return any(_fits(value, k) for k in typing.get_args(kind))
    if kind is types.NoneType:
        return value is None
    if kind is int or kind is bool:
        return hasattr(type(value), "__index__") or isinstance(value, np.bool_)
    if kind is float:
        return hasattr(type(value), "__float__")
    return isinstance(value, str) if kind is str else True


def _one_value(name: str, value: Any, kind: Any) -> str:
    if is_traced(value):
        return f"numbers that jax.jit traces are arrays: name `{name}` in static_argnames of jax.jit"
    if all(n == 1 for n in value.shape):
        plain = kind.__name__ if kind in (int, float, bool) else "int"
        return f"pass {plain}({name})"
    return "a constant is one value, which is known when the kernel is compiled"


def _instead(value: Any, kind: Any, computed: bool) -> str:
    """The value of the right kind that another stands for, if there is one."""
    if kind is int and computed and isinstance(value, float | np.floating):
        return "; write // for division, or int(...)"
    if isinstance(value, tuple | list) and len(value) == 1:
        value = value[0]
        if _fits(value, kind):
            return f"; write {value!r:.100}"
    try:
        plain = kind(value) if kind in (int, float) and isinstance(value, float | np.floating | str) else None
    except (ValueError, OverflowError):
        plain = None
    return "" if plain is None or not isinstance(value, str) and plain != value else f"; write {plain!r}"


def _words(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind)


def _shown(value: Any) -> str:
    return f"the dtype {value.name}" if isinstance(value, DType) else f"{value!r:.100}"


def _array(value: Any) -> str:
    shape = tuple(value.shape)
    if is_traced(value):
        return f"an array of shape {shape} that JAX traces"
    axes = f"an array of shape {shape}" if shape else "an array without axes"
    return f"{axes} ({type_name(value).removeprefix('an object of type ')})"


# ------------------------------------------------------------------ numbers


def no_number(f: TileFunction, name: str, value: Any) -> TypeError:
    """The error of an array for a parameter that is annotated as a number."""
    if is_traced(value):
        how = (f"numbers that jax.jit traces are arrays: name `{name}` in static_argnames of jax.jit, or annotate "
               f"`{name}` as ct.Array[\"\"] and load it, ct.load({name}, (), ())")
    else:
        how = f"pass {name}.item() of one element, or annotate an array as ct.Array"
    return refusal(TypeError(f"{f.__name__}(): `{name}` is annotated as a number, got an array of shape "
                             f"{tuple(value.shape)}; {how}"))


# ------------------------------------------------------------------ arrays


def no_array(f: TileFunction, name: str, value: Any, others: Iterable[Any] = ()) -> TypeError:
    """The error of something else for a parameter that must be an array. `others`: the arguments of the call."""
    number = isinstance(value, bool | int | float | np.generic)
    output = next((o for o in f.outputs if o.name == name), None)
    got = f"got {f'the number {value}' if number else type_name(value)}"
    if output is not None:
        return refusal(TypeError(f"{f.__name__}(): out= must give an array for `{name}`, {got}; without out= the call "
                                 f"makes {'its outputs' if len(f.outputs) > 1 else 'it'}"))
    return refusal(TypeError(f"{f.__name__}(): `{name}` must be an array, {got}"
                             f"{_as_array(name, value, number, f.specs[name].sizes, others)}"))


def _as_array(name: str, value: Any, number: bool, sizes: Sizes | None, others: Iterable[Any]) -> str:
    library = _library(others)
    if number:
        given, of = (name, "without axes") if sizes is not None and not sizes.axes else (f"[{name}]", "of one element")
        made = f"torch.tensor({given}, dtype=...)" if library == "torch" else f"{library}.asarray({given}, dtype)"
        kind = "int" if isinstance(value, int | np.integer) and not isinstance(value, bool) else "float"
        return f"; {made} makes one {of}, or annotate the parameter as a number, {name}: {kind}"
    if isinstance(value, list | tuple | range) and len(value) and not isinstance(value[0], str):
        return f"; {'torch.tensor' if library == 'torch' else f'{library}.asarray'}(...) makes an array of it"
    if type(value).__name__ in ("ArraySpec", "ShapeDtypeStruct"):
        return ", which has no elements: compile() takes a ct.ArraySpec in the place of an array"
    return ""


def _library(others: Iterable[Any]) -> str:
    torch = sys.modules.get("torch")
    for value in others:
        if libraries.is_jax(value):
            return "jax.numpy"
        if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
            return "torch"
    return "np"


def other_rank(name: str, shape: Sequence[int], wanted: int) -> str:
    """How an array gets another number of axes, or its parameter another annotation."""
    rank = len(shape)
    annotate = f"annotate {rank} ax{'i' if rank == 1 else 'e'}s and load tiles of rank {rank}" if rank else ""
    if rank > wanted:
        kept = {0: "", 1: "", 2: f", {name}.shape[-1]"}.get(wanted, f", *{name}.shape[{1 - wanted}:]")
        if sum(n != 1 for n in shape) == wanted:
            how = f"{name}.squeeze() drops its axes of size 1"
        elif wanted:
            how = f"{name}.reshape(-1{kept}) joins its first axes"
        else:
            how = f"{name}[{', '.join(['0'] * rank)}] is one element"
        return f"; {how}; or {annotate}"
    if rank == 0:
        return f"; {name}.reshape({', '.join(['1'] * wanted)}) gives it {wanted} of size 1"
    if (rank, wanted) == (1, 2):
        return f"; {name}[None, :] makes a row of it, {name}[:, None] a column; or {annotate}"
    return f"; {name}[{', '.join(['None'] * (wanted - rank))}] adds axes of size 1 in front; or {annotate}"
