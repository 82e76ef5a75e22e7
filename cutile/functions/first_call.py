"""The first call of a kind: it has all checks, and launches [JIT-7…18]. Calls like it then go shorter ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cutile import settings
from cutile.errors import is_for_users, refusal
from cutile.functions import libraries, stored
from cutile.functions.binding import Bound, Planned, bind, check_given, planned
from cutile.functions.kept_calls import keep, keep_in_c
from cutile.gpu.streams import check_on_host
from cutile.runtime import launch as launching
from cutile.tracebacks import for_users, hidden, warn

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction

MANY_FORMS = 8  # compiled forms of a kernel, above which a function warns [JIT-22]

__tracebackhide__ = hidden


def outcome(f: TileFunction, inputs: Sequence[Any], out: Any, stream: Any) -> tuple[Any] | Exception:
    """What the call returns, in a tuple, or an error for the caller to raise."""
    bound, wanted = None, []
    try:
        bound = bind(f, dict(zip(f.parameters, inputs, strict=True)))
        wanted += [planned(bound, o) for o in f.outputs]
        given = given_outputs(f, bound, wanted, out)
        if bound.traced:
            from cutile.functions import traced

            return (traced.call(bound, wanted),)
        return (_run(f, bound, wanted, given, inputs, stream),)
    except Exception as e:
        if settings.get("DEBUG") or not is_for_users(e):
            raise
        if f._tracer is not None and (refused := f._tracer.refused(f)) is not None:
            return for_users(refused)
        from cutile.functions.explanation import explained  # loaded when it is needed

        return for_users(explained(f, e, inputs, bound, wanted))


def given_outputs(f: TileFunction, bound: Bound, wanted: Sequence[Planned], out: Any) -> list[Any] | None:
    """The arrays that the caller gives for outputs; None if it gives none."""
    if out is None:
        return None
    arrays = out if isinstance(out, tuple | list) and len(wanted) > 1 else [out]
    if len(arrays) != len(wanted):
        raise refusal(TypeError(f"{f.__name__}(): out= takes {_as_outputs(wanted)}, got {len(arrays)} "
                                f"array{'s' * (len(arrays) != 1)}"))
    for w, a in zip(wanted, arrays):
        check_given(bound, w, a)
    stored.check_apart(bound, {w.output.name: a for w, a in zip(wanted, arrays)})
    return list(arrays)


def _run(f: TileFunction, bound: Bound, wanted: Sequence[Planned], given: list[Any] | None, inputs: Sequence[Any],
         stream: Any) -> Any:
    if stream is not None:
        check_on_host(stream)  # a GPU looks at it again
    nothing = bool(wanted) and not f._inout and all(0 in w.shape for w in wanted)
    grid = (0, 0, 0) if nothing else bound.grid()
    made = wanted if given is None else []
    makers, library = allocators(f, bound, made, given)
    first, stream_of = bound.first and bound.first.value, library.stream()
    if given is not None:
        outputs = given
    elif stream is None or not makers:
        outputs = [make(first) for make in makers]
    else:
        with libraries.on(first, stream, made[0].output.out.device):
            outputs = [make(first) for make in makers]
    values = {**bound.values, **{w.output.name: a for w, a in zip(wanted, outputs)}}
    fillers = [] if given is None else [_filler(w) for w in wanted]
    arguments = tuple(values[n] for n in f.kernel.names)
    if 0 not in grid:
        stored.check_call(bound, arguments, given is not None)
    asked = first if first is not None else outputs[0] if outputs else None
    at = stream_of(asked) if stream is None else stream
    for fill, w, a in zip(fillers, wanted, outputs):
        if w.output.out.fill is not None:
            with libraries.on(a, at):
                fill(a)
    if 0 not in grid:
        launching.launch(at, grid, f.launched, arguments)
        if library.lasts and f._lasts:
            keep_in_c(f, bound, grid, library, inputs, values, made,
                      {w.output.name: fill for w, fill in zip(wanted, fillers)})
            keep(f, bound, (grid, stream_of, *(makers if given is None else fillers)), inputs,
                 None if given is None else outputs)
        _count_forms(f, bound)
    returned = [values[n] for n in f.kernel.names if n in f.returned]
    return None if not returned else returned[0] if len(returned) == 1 else tuple(returned)


def allocators(f: TileFunction, bound: Bound, wanted: Sequence[Planned], given: Sequence[Any] | None = None,
               poisoned: bool = False) -> tuple[list[Callable], libraries.Library]:
    """For each output what makes it, and the library that has the current stream.

    given      the arrays that the caller gives for outputs
    poisoned   whether outputs without fill are NaN or the lowest integer wherever they are
    """
    first = bound.first
    if first is None:
        pairs = [libraries.of_device(w.output.out.device) for w in wanted]
        makers = [library.maker(w.shape, w.dtype, _fill(w, poisoned), device)
                  for w, (library, device) in zip(wanted, pairs)]
        return makers, pairs[0][0] if pairs else libraries.of_given(given)
    assert first.ref is not None
    library = libraries.of_array(first.value, first.ref, allocates=bool(wanted))
    for w in wanted:
        if w.output.out.device is not None:
            raise refusal(TypeError(f"{f.__name__}(): output `{w.output.name}` is where the arrays are, so its "
                                    f"ct.Out takes no device"))
    return [library.maker(w.shape, w.dtype, _fill(w, poisoned), None) for w in wanted], library


def _count_forms(f: TileFunction, bound: Bound) -> None:
    """Warn once of a constant, or a size that is one, that takes ever new values [JIT-22]."""
    for n, spec in f.specs.items():
        if spec.constant:
            f._forms.setdefault(n, set()).add(repr(bound.values.get(n)))
    for a in bound.arrays:
        if a.name in f.specs and (of := f.specs[a.name].array) is not None and of.static_shape_dims:
            f._forms.setdefault(a.name, set()).add(tuple(a.shape[d] for d in of.static_shape_dims))
    most = max(f._forms, key=lambda n: len(f._forms[n]), default=None)
    if most is None or len(f._forms[most]) <= MANY_FORMS:
        return
    kinds, f._forms = len(f._forms[most]), _Uncounted()
    warn(f"{f.__name__} was compiled for {kinds} values of `{most}`, each of which is other code; what varies "
         f"from call to call should be no constant")


class _Uncounted(dict):
    """In the place of counts, once there was a warning: it stays empty."""

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return default


def _fill(w: Planned, poisoned: bool) -> Any:
    return libraries.lowest(w.dtype) if poisoned and w.output.out.fill is None else w.output.out.fill


def _filler(w: Planned) -> Callable[[Any], None]:
    """What fills an output that the caller gives, in the place of what makes one."""
    return _as_given if w.output.out.fill is None else libraries.filler(w.output.out.fill, w.dtype)


def _as_given(a: Any) -> None:
    """For an output without fill: the array stays as the caller gives it."""


def _as_outputs(wanted: Sequence[Planned]) -> str:
    names = ", ".join(f"`{w.output.name}`" for w in wanted)
    return f"an array for {names}" if len(wanted) == 1 else f"a tuple of {len(wanted)} arrays, for {names}"
