"""Which parameters of a kernel are the outputs of its function [JIT-7]."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from cutile.analysis.aliasing import first_writes
from cutile.dtypes import from_foreign
from cutile.functions import rules
from cutile.functions.binding import bind, planned
from cutile.functions.out import LAST, Out
from cutile.runtime.arrays import type_name
from cutile.runtime.kernel import Kernel

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction

MOST_TRIED = 20  # other placements that are tried for a message

RETURNS = "a kernel returns nothing, and stores to its outputs, which are parameters"


def placed(name: str, kernel: Kernel, given: Any, defaults: Mapping[str, Any]) -> dict[str, Out]:
    """The declared outputs by parameter. TypeError where it is not clear which is which, or one does not fit."""
    outs = [] if given is None else [given] if isinstance(given, Out) else list(given) if isinstance(
        given, tuple | list) else None
    if outs is None or not all(isinstance(o, Out) for o in outs):
        shown = type_name(given) if hasattr(given, "__array__") or hasattr(given, "__dlpack__") else f"{given!r:.100}"
        raise TypeError(f"{name}: out is a ct.Out, or a tuple of them, not {shown}{_as_out(given, kernel)}")
    found: dict[str, Out] = {}
    for o in outs:
        if o.name is not None:
            _check_named(name, kernel, o.name, found)
            found[o.name] = o
    for p in signature(kernel.function).parameters.values():
        if outs and p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TypeError(f"{name}: a kernel cannot take *args or **kwargs: `{p}`; name every parameter; a tuple can "
                            f"be passed as one argument")
    unnamed = [o for o in outs if o.name is None]
    found.update(zip(_for_unnamed(name, kernel, len(unnamed), found, defaults), unnamed))
    for n, o in found.items():
        _check_annotation(name, kernel, n, o)
    return found


def _as_out(given: Any, kernel: Kernel) -> str:
    """What to write in the place of something else."""
    if isinstance(given, str):
        return f'; write out=ct.Out(..., name="{given}")' if given in kernel.names else f'; write out=ct.Out("{given}")'
    if isinstance(given, dict):
        return '; write the parameter into it: ct.Out(..., name="y")'
    if hasattr(given, "__array__") or hasattr(given, "__dlpack__"):
        return "; an array of yours is given to a call, f(..., out=array)"
    if given is Out:
        return '; give it a shape, such as ct.Out("M N")'
    return ""


def _check_named(name: str, kernel: Kernel, output: str, found: Mapping[str, Out]) -> None:
    if output not in kernel.names:
        raise TypeError(f"{name}: output {output} is no parameter of the kernel{rules.nearest(output, kernel.names)}"
                        f"; it has {', '.join(kernel.names) or 'none'}. {_sentence(RETURNS)}")
    if output in found:
        raise TypeError(f"{name}: parameter `{output}` is declared as an output twice")
    spec = kernel.parameters[output]
    if spec.constant or spec.scalar or spec.number:
        raise TypeError(f"{name}: parameter `{output}` is annotated as a number, so it is no output")
    if spec.is_tuple or spec.list:
        raise TypeError(f"{name}: parameter `{output}` is annotated as a {'list' if spec.list else 'tuple'}, and an "
                        f"output is one array")


def _for_unnamed(name: str, kernel: Kernel, count: int, named: Mapping[str, Out],
                 defaults: Mapping[str, Any]) -> Sequence[str]:
    """The parameters of outputs without a name."""
    free = may_be_outputs(kernel, defaults, named)
    if count == 1 and "out" in free:
        return ["out"]
    if len(free) < count:
        raise TypeError(f"{name}: {count + len(named)} outputs are declared, but the kernel has "
                        f"{len(free) + len(named)} parameters that may be arrays. {_sentence(RETURNS)}")
    return free[len(free) - count:]


def may_be_outputs(kernel: Kernel, defaults: Mapping[str, Any], but: Mapping[str, Any] = {}) -> list[str]:
    """The parameters that an output without a name may be."""
    own = signature(kernel.function).parameters
    return [n for n, s in kernel.parameters.items()
            if not (n in but or s.constant or s.scalar or s.number or s.is_tuple or s.list or n in defaults
                    or own[n].default not in (Parameter.empty, None))]


def _check_annotation(name: str, kernel: Kernel, parameter: str, out: Out) -> None:
    """TypeError where the annotation of an output's parameter says another rank or dtype than the output."""
    sizes = kernel.parameters[parameter].sizes
    if sizes is None:
        return
    text = out.shape if isinstance(out.shape, str) else " ".join(map(str, out.shape)) if isinstance(
        out.shape, tuple | list) else None
    axes = None if text is None else rules.axes_in(f"the shape of output `{parameter}`", out.shape)
    rests = any(a.rest for a in (*(axes or ()), *sizes.axes))
    dtype = from_foreign(out.dtype)
    if axes is not None and not rests and len(axes) != len(sizes.axes):
        differs = f'the output has the sizes "{text}"'
    elif dtype is not None and sizes.dtype is not None and dtype is not sizes.dtype:
        differs = f"the output has dtype {dtype.name}"
    else:
        return
    shown = f'ct.Array["{sizes.text}"{f", ct.{sizes.dtype.name}" if sizes.dtype else ""}]'
    raise TypeError(f"{name}: {differs}, but its parameter `{parameter}` is annotated {shown}{why(parameter, out)}")


def why(parameter: str, out: Out) -> str:
    """Why a parameter is an output, where that was not said."""
    if out.name is not None:
        return ""
    return (f". `{parameter}` was taken for the output, since {LAST}: name another by ct.Out(..., name=\"y\"), or add "
            f"one, since {RETURNS}")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


# ------------------------------------------------------------------ names


def check_names(name: str, inputs: Sequence[str], outs: Mapping[str, Out], own: Sequence[str]) -> None:
    """TypeError for an input that has the name of a keyword of calls, and for names that calls use themselves."""
    if "self" in inputs:
        raise TypeError(f"{name}: kernels in classes take no self: leave it out, and write @staticmethod above @ct.jit")
    for n in own:
        raise TypeError(f"{name}: parameter `{n}` of the kernel has a name that its function uses itself; rename it, "
                        f"for example without the underscore")
    for taken in ("stream", "out"):
        if taken not in inputs or taken == "out" and not outs:
            continue
        what = f"{name}: parameter `{taken}` of the kernel has the name of a keyword of its function"
        if taken == "out" and all(o.name is None for o in outs.values()):
            others = " and ".join(f"`{n}`" for n in outs)
            raise TypeError(f"{what}, and is no output: that is {others}, since {LAST}. If `out` is the output, write "
                            f"ct.Out(..., name=\"out\"); otherwise rename it")
        raise TypeError(f"{what}; rename it")


def named_sizes(specs: Mapping[str, Any], parameters: Collection[str]) -> dict[str, str]:
    """The named sizes of some parameters, each with the parameter that binds it."""
    found: dict[str, str] = {}
    for p in parameters:
        for axis in specs[p].sizes.axes if specs[p].sizes is not None else ():
            if axis.name is not None:
                found.setdefault(axis.name, p)
    return found


def sizes_of_outputs(specs: Mapping[str, Any], outs: Mapping[str, Out], inputs: Sequence[str]) -> dict[str, str]:
    """The sizes that only outputs have, and why no rule can read them, in words."""
    arguments = ", ".join(f"`{p}`" for p in inputs if not specs[p].constant)
    there = named_sizes(specs, inputs)
    found = {}
    for n, p in named_sizes(specs, outs).items():
        if n not in there:
            other = "" if outs[p].name is not None else (f" {LAST}. If another is the output, name it by ct.Out(..., "
                                                         f"name=...); otherwise")
            found[n] = (f"a size of `{p}`, which is the output and not there yet;{other} write {n} into the annotation "
                        f"of an argument{f' ({arguments})' * bool(arguments)}")
    return found


# ------------------------------------------------------------------ after an error


def instead(f: TileFunction, inputs: Sequence[Any]) -> TypeError | None:
    """The error of a call whose unnamed outputs should be other parameters: with these the kernel can be typed for the
    caller's arguments, and stores to each output. None if there are no such parameters.
    """
    unnamed = [o for o in f.outputs if o.out.name is None]
    named = {o.name: o.out for o in f.outputs if o.out.name is not None}
    free = may_be_outputs(f.kernel, f.given.get("defaults") or {}, named)
    now = [o.name for o in unnamed]
    if _would_do(f, unnamed, now, named, inputs):
        return None  # something else is wrong
    for other in itertools.islice(itertools.permutations(free, len(unnamed)), MOST_TRIED):
        if list(other) != now and _would_do(f, unnamed, other, named, inputs):
            if set(other) == set(now):
                return TypeError(f"{f.__name__}(): the outputs were taken for {', '.join(f'`{n}`' for n in now)}, in "
                                 f"the order of the parameters; in another order they fit what the kernel stores: "
                                 f"write {decorator(f, dict(zip(now, other)))}")
            wrong, right = ", ".join(f"`{n}`" for n in now if n not in other), [n for n in other if n not in now]
            verb = "was" if "," not in wrong else "were"
            stored = ", ".join(f"`{n}`" for n in right)
            return TypeError(f"{f.__name__}(): {wrong} {verb} taken for the output, since {LAST}; but the kernel "
                             f"stores to {stored}: write {decorator(f, dict(zip(now, other)))}")
    return None


def decorator(f: TileFunction, names: Mapping[str, str]) -> str:
    """How `ct.jit` is written for a function whose outputs have other names, by the names that they have now."""
    outs = [renamed(o.out, names[o.name]) if o.name in names else o.out for o in f.outputs]
    given = {**f.given, "out": outs[0] if len(outs) == 1 else tuple(outs)}
    return f"@ct.jit({', '.join(f'{n}={_written(v)}' for n, v in given.items() if v is not None)})"


def _written(value: Any) -> str:
    """A value as source text; functions, whose text is not known, are dots."""
    if isinstance(value, Out):
        given = {n: v for n in Out.__slots__ if (v := getattr(value, n)) is not None}
        shape = [_written(given.pop("shape"))] if "shape" in given else []
        return f"ct.Out({', '.join([*shape, *(f'{n}={_written(v)}' for n, v in given.items())])})"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_written, value))}{',' * (len(value) == 1)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_written(k)}: {_written(v)}' for k, v in value.items())}}}"
    dtype = from_foreign(value)
    return f"ct.{dtype.name}" if dtype is not None else "..." if callable(value) else repr(value)


def _would_do(f: TileFunction, unnamed: Sequence[Any], other: Sequence[str], named: Mapping[str, Out],
              inputs: Sequence[Any]) -> bool:
    """Whether a function with these outputs could be called with the arguments, in their order."""
    outs = [*named.values(), *(renamed(o.out, n) for o, n in zip(unnamed, other))]
    from cutile.compilation.array_spec import Sample  # loaded when it is needed

    try:
        g = f._redeclared(out=outs)
        bound = bind(g, dict(zip(g.parameters, inputs, strict=True)))
        for o in g.outputs:
            p = planned(bound, o)
            bound.values[o.name] = Sample(p.shape, p.dtype)
        program = g.kernel.program(g.kernel.classify(tuple(bound.values[n] for n in g.kernel.names))).kernel
    except Exception:  # whatever it is, these are not the outputs
        return False
    written = {program.param_names[program.params.index(p)] for p in first_writes(program)}
    return written >= {o.name for o in g.outputs}


def renamed(out: Out, name: str) -> Out:
    return Out(out.shape, out.dtype, out.fill, out.like, out.device, name)
