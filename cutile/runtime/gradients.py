"""Backward functions of functions by `ct.jit`: what they are given, and the gradients that they return.

Their parameters are named after inputs, outputs and grad_<output> of the function. A backward that is itself made by
`ct.jit` has outputs named grad_<input>; another one returns a dictionary of gradients by input.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from cutile.errors import refusal
from cutile.front.advice import nearest


def asked(function: Any, backward: Callable) -> list[str]:
    """The parameters of the backward function of a tile function, in order.

    TypeError for one that is neither an input, an output nor a gradient, and for an output that is no gradient.
    """
    if not callable(backward):
        raise refusal(TypeError(f"the backward function of {function.__name__} is made by ct.jit or a function of "
                                f"Python, not {backward!r:.100}"))
    inputs, outputs = list(function.parameters), [o.name for o in function.outputs]
    known = [*inputs, *outputs, *(f"grad_{o}" for o in outputs)]
    own = getattr(backward, "parameters", None) or inspect.signature(backward).parameters
    for p in own.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise refusal(TypeError(f"parameters of the backward function of {function.__name__} are names among "
                                    f"{', '.join(known)}, and `{p}` is none"))
    names = [n for n in own if n in known or n not in getattr(backward, "computed", ())]
    for n in names:
        if n not in known:
            raise refusal(TypeError(f"{_name(backward)} takes {n}, which is no parameter, output or gradient of "
                                    f"{function.__name__}{_meant(n, known)}; there are {', '.join(known)}"))
    for o in getattr(backward, "outputs", ()):
        if o.name.removeprefix("grad_") not in inputs or not o.name.startswith("grad_"):
            raise refusal(TypeError(f"output {o.name} of {_name(backward)} is no gradient; those of "
                                    f"{function.__name__} are named {', '.join(f'grad_{n}' for n in inputs)}"))
    return names


def by_input(function: Any, backward: Callable, found: Any, wanted: Collection[str],
             otherwise: str = "") -> dict[str, Any]:
    """The gradients that a backward function returned, by input. `wanted` are inputs that it must name; `otherwise` is
    another way to say that one has none.

    TypeError if it is no dictionary, has a key that is no input, or lacks one of those.
    """
    outputs = getattr(backward, "outputs", None)
    if outputs:
        results: Sequence[Any] = found if isinstance(found, tuple | list) else (found,)
        found = dict(zip((o.name.removeprefix("grad_") for o in outputs), results, strict=True))
    inputs = list(function.parameters)
    who = f"{_name(backward)}, the backward function of {function.__name__},"
    example = "{" + ", ".join(f'"{n}": ...' for n in wanted or inputs) + "}"
    if not isinstance(found, Mapping):
        raise refusal(TypeError(f"{who} must return a dictionary of gradients by input, such as {example}, not "
                                f"{type(found).__name__}"))
    for key in found:
        if key not in inputs:
            raise refusal(TypeError(f"{who} returned a gradient of {key!r:.100}, which is no input"
                                    f"{_meant(str(key).removeprefix('grad_'), inputs)}; write {example}"))
    missing = [n for n in wanted if n not in found]
    if missing:
        names = ", ".join(f"grad_{n}" for n in missing)
        how = f"declare outputs named {names}, or wrap it in a function that returns " if outputs else "write "
        raise refusal(TypeError(f"{who} returned no gradient of {', '.join(missing)}; {how}{example}, with None where "
                                f"it is 0{otherwise}"))
    return dict(found)


def check(function: Any, backward: Callable, found: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """TypeError for a gradient of what is no array or has another shape, and for one by a kernel that has another
    dtype than its input, where none was declared.

    found: the gradients, or None, by input;  arrays: the inputs that are arrays, or what has their shape and dtype
    """
    who = f"{_name(backward)}, the backward function of {function.__name__},"
    for n, gradient in found.items():
        if gradient is None:
            continue
        if isinstance(gradient, str | bytes | Mapping) or callable(gradient):
            raise refusal(TypeError(f"{who} returned a gradient of {n} that is no array, but of type "
                                    f"{type(gradient).__name__}"))
        if n not in arrays:
            raise refusal(TypeError(f"{who} returned a gradient of {n}, which is no array here; leave it out"))
        shape, wanted = tuple(np.shape(gradient)), tuple(arrays[n].shape)
        if shape != wanted:
            raise refusal(TypeError(f"{who} returned a gradient of {n} of shape {shape}, but {n} has {wanted}"
                                    f"{_how_to_fit(shape, wanted)}"))
    for o in getattr(backward, "outputs", ()):
        n = o.name.removeprefix("grad_")
        if o.dtype is None and o.dtype_like is None and n in arrays and arrays[n].dtype != found[n].dtype:
            raise refusal(TypeError(f"{o.name} of {_name(backward)} has the dtype of its first array, "
                                    f"{found[n].dtype}, but `{n}` of {function.__name__} has {arrays[n].dtype}: give "
                                    f"it one by ct.Out(..., dtype=...), or the kernel the parameter `{n}`, whose dtype "
                                    f"it then has"))


def names_of(given: Any, option: str, known: Sequence[str], what: str, function: Any) -> Sequence[str]:
    """Names that an option gives. TypeError for text in their place, ValueError for one that is not among the known.

    what   what these are, in words
    """
    if isinstance(given, str) or not all(isinstance(n, str) for n in given):
        example = given if isinstance(given, str) else known[0]
        raise refusal(TypeError(f"{option} is a tuple of names, such as ({example!r},), not {given!r:.100}"))
    for n in given:
        if n not in known:
            raise refusal(ValueError(f"{option} names {n!r:.100}, which is {what} of {function.__name__}"
                                     f"{_meant(n, known)}; there are {', '.join(known)}"))
    return given


def lost(function: Any, backward: Callable, output: str, read: bool, constant: bool, maker: str) -> TypeError:
    """The error of a gradient that comes to an output, and that the backward function does not take.

    read   whether it reads the output;  constant: whether non_differentiable names that
    maker  what was given the backward function
    """
    who = _name(backward)
    ways = [f"take grad_{output} in {who}"]
    if read:
        ways.append(f"for a derivative of a gradient, compute `{output}` in {who} from the inputs")
    if not constant:
        ways.append(f"say by non_differentiable=({output!r},) of {maker} that callers use `{output}` as a constant")
    return refusal(TypeError(f"a gradient comes to output `{output}` of {function.__name__}, but {who}, its backward "
                             f"function, takes no grad_{output}: {', or '.join(ways)}"))


def _how_to_fit(shape: tuple, wanted: tuple) -> str:
    if shape == ():
        return "; write None where it is 0"
    fits = len(shape) >= len(wanted) and all(a in (1, b) for a, b in zip(wanted[::-1], shape[::-1]))
    return "; sum over the other axes" if fits else ""


def _name(backward: Callable) -> str:
    return getattr(backward, "__name__", None) or f"{backward!r:.100}"


def _meant(name: str, known: Sequence[str]) -> str:
    close = name if name in known else nearest(name, known)
    return f"; did you mean {close}?" if close else ""
