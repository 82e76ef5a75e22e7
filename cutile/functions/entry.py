"""What a call of a tile function goes through: C code, and behind it a Python function, both for its parameters.

C code (runtime/_functions.c) runs the calls that it knows. All others come to the Python function. There a call whose
arrays have dtypes and sizes that were met before finds what was worked out then: the grid, what makes the outputs, and
how to ask for the current stream. The rest goes to `TileFunction.slow`.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from cutile._support.opaque import opaque
from cutile._support.structs import structure
from cutile.functions import libraries
from cutile.functions.binding import REQUIRED
from cutile.runtime import launch as launching
from cutile.runtime import launch_cache
from cutile.tracebacks import hidden

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction

_WHY = ("a function made by ct.jit launches a kernel on the memory of its arguments, and traced tensors have none; "
        "import cutile.torch, and the call becomes an operator of the graph")

OUTSIDE = "this runs or compiles kernels, and what it returns is no tensor; call it outside of what is compiled"


@structure(frozen=True)
class Tracer:
    """What a compiler that traces Python is to follow in the place of a call.

    asked   says whether one traces; the compiler knows the answer
    call    is followed: it takes the tile function, the arguments by parameter, and by keyword `out` and `stream`
    refused gives the error of calls that it cannot follow, of functions and tuned ones, or None: where they met tensors
            that have no memory
    """

    asked: Callable[[], bool]
    call: Callable[..., Any]
    refused: Callable[[Any], Exception | None]


_OWN = {"_self", "_more", "_outcome", "_error", "_grid", "_stream", "_on", "_at", "_launching", "_kernel", "_plans",
        "_given_plans", "_type", "_tuple", "_missing", "_Exception", "_required", "_elsewhere", "_asked", "_traced",
        "_plain", "_written", "_other"}


def uses_itself(name: str) -> bool:
    """Whether the code of entries has a name of its own like this, so that no parameter can have it."""
    return name in _OWN or name.startswith(("__", "_out_", "_make_", "_computed_", "_default_"))


def entry(f: TileFunction, first: str | None) -> types.FunctionType:
    """The Python function, which takes the tile function and the arguments. `first`: the parameter of the first array.

    Its plans are tuples: grid, function for the stream, one function for each output, which makes it or fills the one
    that is given, and the computed arguments.
    """
    computed = [n for n in f.parameters if n in f.computed]
    filled = [i for i, o in enumerate(f.outputs) if o.out.fill is not None]
    source = _source(list(f.parameters.values()), f.kernel.names, [o.name for o in f.outputs], filled, computed,
                     f.keyed, first, [n for n in f.kernel.names if n in f.returned],
                     _arrays(f))
    scope = {"_launching": launching, "_kernel": f.launched, "_plans": f.plans, "_given_plans": f.given_plans,
             "_on": libraries.on, "_type": type, "_tuple": tuple, "_missing": f.missing, "_Exception": Exception,
             "_elsewhere": ValueError(), "__builtins__": {}, "__tracebackhide__": hidden, **_defaults(f)}
    return opaque(_WHY)(_made(f, source, scope))


def entry_in_c(f: TileFunction, written: types.FunctionType) -> Any:
    """The same in C: it is called with the arguments, and calls `written` for what it does not know. None where the
    compiled module is not there.
    """
    c, names = launch_cache.extension(), f.kernel.names
    if c is None:
        return None
    defaults = {p.name: REQUIRED if p.default is p.empty else p.default for p in f.parameters.values()}
    return c.Entry(
        calls=f.calls, python=written.__get__(f), failed=launching.failed, names=tuple(map(sys.intern, f.parameters)),
        positional=sum(p.kind is not p.KEYWORD_ONLY for p in f.parameters.values()),
        defaults=tuple(defaults.get(n) for n in names), places=tuple(names.index(n) for n in f.parameters),
        outputs=tuple(names.index(o.name) for o in f.outputs),
        returned=tuple(i for i, n in enumerate(names) if n in f.returned),
        arrays=tuple(names.index(n) for n in _arrays(f)))


def _arrays(f: TileFunction) -> list[str]:
    """The arguments that may be arrays."""
    return [n for n in f.parameters if not (f.specs[n].constant or f.specs[n].scalar or f.specs[n].number)]


def traced_entry(f: TileFunction, written: types.FunctionType, tracer: Tracer) -> types.FunctionType:
    """A Python function for a compiler that traces Python: it follows the tracer's function. All other calls are
    those that the function has without tracer, which are opaque to it.
    """
    inputs, positional = list(f.parameters), [p.name for p in f.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    named = [n for n in inputs if n not in positional]
    more = ", ".join(f"{n}={n}" for n in [*named, *_options(f.outputs)])
    source = "\n".join([
        f"def __call__({', '.join(_head(list(f.parameters.values()), f.outputs))}):",
        "    if _more:",
        f"        return _written({', '.join(['_self', *positional, '*_more', more])})",
        "    if _asked():",
        f"        return _traced(_self, {{{', '.join(f'{n!r}: {n}' for n in inputs)}}}, "
        f"{', '.join(f'{n}={n}' for n in _options(f.outputs))})",
        f"    return _plain({', '.join([*positional, more])})"])
    scope = {"_asked": tracer.asked, "_traced": tracer.call, "_plain": f.plain, "_written": written, **_defaults(f),
             "__tracebackhide__": hidden}
    return _made(f, source, scope)


def _made(f: TileFunction, source: str, scope: dict[str, Any]) -> types.FunctionType:
    """The function of a source text. help() and inspect show the parameters that callers know."""
    made: dict[str, Any] = {}
    exec(_compiled(source, f.__name__), scope, made)
    function = made["__call__"]
    function.__qualname__ = f.__qualname__
    own = Parameter("self", Parameter.POSITIONAL_ONLY)
    function.__signature__ = inspect.Signature([own, *f.__signature__.parameters.values()])
    return function


def _defaults(f: TileFunction) -> dict[str, Any]:
    return {"_required": REQUIRED,
            **{f"_default_{p.name}": p.default for p in f.parameters.values() if p.default is not p.empty}}


@functools.lru_cache(1000)
def _compiled(source: str, name: str) -> types.CodeType:
    return compile(source, f"<function {name}>", "exec")


def _source(parameters: Sequence[Parameter], names: Sequence[str], outputs: Sequence[str], filled: Sequence[int],
            computed: Sequence[str], keyed: Sequence[tuple[str, bool]], first: str | None, returned: Sequence[str],
            arrays: Sequence[str]) -> str:
    """The source text.

    parameters  those that callers pass;  names: all parameters of the kernel;  computed: those with computed defaults
    filled      the indices of outputs that have a fill: arrays that are given for them are filled here
    keyed       what plans depend on: the name of an argument, and whether it is an array
    arrays      the arguments that may be arrays: where one is given for an output, too, the slow way says so
    """
    inputs = [p.name for p in parameters]
    made = [f"_make_{i}" for i, _ in enumerate(outputs)]
    passed = f"({''.join(f'{n}, ' for n in inputs)}), {'out' if outputs else 'None'}"
    slow = f"_self.slow({passed}, stream)"
    plan = ", ".join(["_grid", "_stream", *made, *(f"_computed_{n}" for n in computed)])
    key = [f"_type({first})"] * (first is not None)
    for name, is_array in keyed:
        key += [f"{name}.shape", f"{name}.dtype"] if is_array else [name, f"_type({name})"]  # 1 is equal to 1.0
    arguments = [f"_computed_{n} if {n} is _missing else {n}" if n in computed else _value(n, outputs) for n in names]
    asked = first if first is not None else _value(outputs[0], outputs) if outputs else "None"
    result = ", ".join(_value(n, outputs) for n in returned)
    making = [f"_out_{i} = {m}({first})" for i, m in enumerate(made)]
    lines = [f"def __call__({', '.join([*_head(parameters, outputs), '**_other'])}):",
             "    if _more or _other:",
             "        raise _self._unfit(_more, _other)",
             "    try:",
             *(["        if out is None:",
                f"            {plan} = _plans[{_tuple(key)}]",
                "            if stream is None:",
                *(f"                {line}" for line in making),
                "            else:",  # outputs are made where they are used
                *([f"                with _on({first}, stream):", *(f"                    {line}" for line in making)]
                  if first is not None else ["                raise _elsewhere"]),
                "        else:",
                *_given(outputs, arrays),
                f"            {plan} = _given_plans[{_tuple([*key, *_given_key(outputs)])}]",
                *([f"            _at = _stream({asked}) if stream is None else stream"] if filled else []),
                *(line for i in filled for line in (f"            with _on(_out_{i}, _at):",
                                                    f"                _make_{i}(_out_{i})"))] if outputs else
               [f"        {plan} = _plans[{_tuple(key)}]"]),
             "    except _Exception:",
             "        _grid = None",
             "    if _grid is None:",
             f"        _outcome = {slow}",
             "        if _type(_outcome) is _tuple:",
             "            return _outcome[0]",
             "        raise _outcome from _outcome.__cause__",  # here, so that the traceback ends here
             "    try:",
             "        _launching.launch("
             f"_stream({asked}) if stream is None else stream, _grid, _kernel, {_tuple(arguments)})",
             "    except _Exception as _error:",
             f"        _error = _self.explained(_error, {passed})",
             "        raise _error from _error.__cause__",
             f"    return {result or 'None'}"]
    return "\n".join(lines)


def _head(parameters: Sequence[Parameter], outputs: Sequence[Any]) -> list[str]:
    """The parameters of the function, as its source has them."""
    head, keyword_only = ["_self"], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            head.append("*")
        # What is left out is found where arguments are bound, whose errors say what could be done.
        head.append(f"{p.name}={'_required' if p.default is p.empty else f'_default_{p.name}'}")
    if "*" in head:
        head[head.index("*")] = "*_more"
    else:
        head.append("*_more")
    return head + [f"{n}=None" for n in _options(outputs)]


def _options(outputs: Sequence[Any]) -> list[str]:
    """The keywords of all functions."""
    return ["out", "stream"] if outputs else ["stream"]


def _value(name: str, outputs: Sequence[str]) -> str:
    return f"_out_{list(outputs).index(name)}" if name in outputs else name


def _tuple(items: Sequence[str]) -> str:
    return f"({''.join(f'{i}, ' for i in items)})"


def _given(outputs: Sequence[str], arrays: Sequence[str]) -> list[str]:
    """The lines that take the arrays that the caller gives for outputs; with an exception where one is given twice."""
    outs = [f"_out_{i}" for i, _ in enumerate(outputs)]
    twice = " or ".join(f"{o} is {other}" for i, o in enumerate(outs) for other in (*outs[:i], *arrays))
    taken = f"            {', '.join(outs)} = out"
    return [taken] if not twice else [taken, f"            if {twice}:", "                raise _elsewhere"]


def _given_key(outputs: Sequence[str]) -> list[str]:
    return [x for i in range(len(outputs)) for x in (f"_out_{i}.shape", f"_out_{i}.dtype")]
