"""The schema of an operator: what PyTorch is told of its parameters and results [PT-5].

It follows from the parameters' annotations and defaults, and which arguments are written from `inout`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from typing import Any

from cutile.dtypes import info
from cutile.functions.tile_function import TileFunction

_TYPES = {int: "SymInt", float: "float", bool: "bool", str: "str"}


def schema(function: TileFunction) -> str:
    """The schema of an operator, as PyTorch writes it: parameters in order, tensors for arrays."""
    hints = _annotations(function)
    parameters = [_parameter(function, n, hints.get(n)) for n in function.parameters]
    results = ["Tensor"] * len(function.outputs)
    return f"({', '.join(parameters)}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"


def _annotations(function: TileFunction) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(function.kernel.function, include_extras=True)
    except Exception:  # text that is no Python type
        return {}


def _parameter(function: TileFunction, name: str, hint: Any) -> str:
    spec, default = function.specs[name], function.parameters[name].default
    if name in function.computed:
        return f"{_number_type(function, name, hint, 0).replace('SymInt', 'int')}? {name}=None"
    if spec.list is not None:
        return f"Tensor{'(a!)' if name in function.returned else ''}[] {name}"
    plain = spec.array is None and (hint in _TYPES or default is not inspect.Parameter.empty)
    if not (spec.constant or spec.scalar is not None or plain):
        return f"Tensor{'(a!)' if name in function.returned else ''} {name}"
    kind = _number_type(function, name, hint, default)
    kind = "int" if spec.constant and kind == "SymInt" else kind
    return f"{kind} {name}" + ("" if default is inspect.Parameter.empty else f"={_text(default)}")


def _number_type(function: TileFunction, name: str, hint: Any, default: Any) -> str:
    scalar = function.specs[name].scalar
    if scalar is not None and scalar.dtype is not None:
        return "float" if info(scalar.dtype).floating else "SymInt"
    inner = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
    found = _TYPES.get(inner) or _TYPES.get(type(default))
    if found is None:
        raise TypeError(f"{function.__name__}: the type of parameter `{name}` is open; annotate it, as "
                        f"ct.Constant[int] or ct.Array")
    return found


def _text(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else str(default)


def is_tensor(function: TileFunction, name: str) -> bool:
    """Whether a parameter is a tensor in the schema."""
    return _parameter(function, name, _annotations(function).get(name)).startswith(("Tensor ", "Tensor("))
