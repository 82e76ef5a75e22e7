"""What a tile function keeps of a call, so that calls like it go shorter ways: in C, or without checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cutile.functions import libraries
from cutile.functions.binding import Bound, Planned
from cutile.runtime import launch_cache

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction


def keep(f: TileFunction, bound: Bound, plan: tuple, inputs: Sequence[Any], given: Sequence[Any] | None) -> None:
    """Let the next calls like this one go the short way."""
    if bound.first is not None and bound.first.name != f._first:
        if bound.first.name in f.parameters:  # the first array is another parameter than supposed
            f._first = bound.first.name
            f.plans.clear()
            f.given_plans.clear()
            f._write_entry()
        return
    if bound.first is None and f._first is not None:
        return
    passed = dict(zip(f.parameters, inputs, strict=True))
    key = [] if f._first is None else [type(passed[f._first])]
    for name, is_array in f.keyed:
        key += [passed[name].shape, passed[name].dtype] if is_array else [passed[name], type(passed[name])]
    computed = [bound.values[n] for n in f.parameters if n in f.computed]
    plans = f.plans
    if given is not None:
        plans = f.given_plans
        key += [x for a in given for x in (a.shape, a.dtype)]
    try:
        plans.keep(tuple(key), (*plan, *computed))
    except TypeError:  # an argument that cannot be hashed
        pass


def keep_in_c(f: TileFunction, bound: Bound, grid: tuple, library: libraries.Library, inputs: Sequence[Any],
              values: Mapping[str, Any], made: Sequence[Planned], fills: Mapping[str, Callable]) -> None:
    """Let C code run the next calls like this one. Not where grid or outputs follow from numbers that are no
    constants, since these are not in a signature; and without arrays only calls that are given outputs.

    made   the outputs that the call made
    fills  what fills those that it was given, by name
    """
    cache, first = f.launched.plans.launch_cache, bound.first
    if cache is None or any(not is_array and not f.specs[n].constant for n, is_array in f.keyed):
        return
    filled = [] if made else [o for o in f.outputs if o.out.fill is not None]
    passed = {**values, **dict(zip(f.parameters, inputs, strict=True)), **{w.output.name: None for w in made}}
    names = f.kernel.names
    if first is not None:
        asked, array = first.name, first.value
    elif f.outputs and not made:
        asked, array = f.outputs[0].name, values[f.outputs[0].name]
    else:
        return
    if any(type(values[o.name]) is not type(array) for o in filled):
        return  # of another library, whose current stream C code does not ask for
    if asked in names and f._in_c is not None and f._in_c.use(cache):
        source = library.stream_in_c(launch_cache.extension(), array)
        recipes = tuple(library.recipe(w.shape, w.dtype, w.output.out.fill, None, array) for w in made)
        fillers = tuple(x for o in filled for x in (names.index(o.name), fills[o.name]))
        cache.keep_call(f.calls, tuple(passed[n] for n in names), tuple(values[n] for n in names), grid,
                        names.index(asked), *source, recipes, fillers)
