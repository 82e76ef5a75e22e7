"""Which Python callables tile code may call, and the advice in errors for all others."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

from cutile.front.advice import call_of, hint
from cutile.front.foreign_names import CAUTIONS, OTHER_MEANINGS
from cutile.front.python_objects import declaration
from cutile.ir.terms import Bound, Closure, Static, Term


def inlines(func: Term) -> bool:
    """Whether a call of this object types a Python body. An argument that the body does not use may be `Unusable`."""
    match func:
        case Closure():
            return True
        case Bound():
            return inlines(func.func)
        case Static(obj):
            space = declaration(obj)
            fn = obj if space is None else space.fn
            return isinstance(fn, types.FunctionType) and root_package(fn) != "contextlib" and not of_the_host(fn)
    return False


def name_of(obj: Any) -> str:
    """The name of an object in messages."""
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if name is None:
        return f"an object of type `{type(obj).__module__}.{type(obj).__qualname__}`"
    module = getattr(obj, "__module__", None) or ""
    return f"`{name}`" if module in ("", "builtins", "__main__") else f"`{module}.{name}`"


# What errors advise instead of builtins.
_REPLACEMENTS = {
    "enumerate": "for i in range(…), or ct.static_iter(enumerate(…))",
    "zip": "ct.static_iter(zip(…))",
    "sum": "ct.sum(tile, axis)",
    "pow": "x ** y",
    "map": "a loop over ct.static_iter(…)",
    "list": "a tuple",
    **{name: f"ct.static_eval({name}(…))" for name in ("isinstance", "hasattr", "callable", "type")},
    **{name: f"ct.static_iter({name}(…))" for name in ("reversed", "filter")},
    "sorted": "ct.static_eval(tuple(sorted(…))), of constants",
    "set": "a tuple",
}


# Packages whose Python functions are for the host, so that they are not compiled.
_HOST_PACKAGES = frozenset({"cutile", "dataclasses", "functools", "numpy", "torch", "jax", "cupy", "scipy", "triton",
                           "numba"})
_TILE_CODE = ("cutile.lib.", "cutile.compute.", "cutile.front.element_math")  # modules that are tile code


def of_the_host(fn: types.FunctionType) -> bool:
    """Whether a function is for the host: from one of these packages, or a functools wrapper.

    A wrapper is recognised by the file of its code, since its `__module__` is that of the wrapped function.
    """
    if (fn.__module__ or "").startswith(_TILE_CODE):
        return False
    return root_package(fn) in _HOST_PACKAGES or fn.__code__.co_filename == functools.__file__


def root_package(obj: Any) -> str:
    """The top-level package of an object's module; "" if it has none."""
    return (getattr(obj, "__module__", None) or "").split(".")[0]


def from_a_library(obj: Any) -> bool:
    """Whether an object belongs to Python's standard library or to a package that is for the host."""
    return root_package(obj) in _HOST_PACKAGES or root_package(obj) in sys.stdlib_module_names


def call_help(obj: Any) -> str | None:
    """What to write instead of a call that tile code does not have; None if nothing is known."""
    name, module = getattr(obj, "__name__", ""), root_package(obj)
    if module == "cutile":
        return "it is for code that runs on the host"
    if module == "builtins":
        return f"write {_REPLACEMENTS[name]}" if name in _REPLACEMENTS else hint(name)
    if isinstance(obj, functools.partial) or obj is functools.partial:
        return "write a lambda: lambda x: f(x, 2)"
    if from_a_library(obj) and module != "__main__":
        known = name not in OTHER_MEANINGS and f"{module}.{name}" not in OTHER_MEANINGS
        if known and (op := call_of(name)) is not None:
            return f"use {op}" + (f" ({CAUTIONS[name]})" if name in CAUTIONS and module != "math" else "")
        return known and hint(name) or (
            f"{module} functions run on the host; inside ct.static_eval(...) they can compute constants")
    if hasattr(obj, "cache_info"):
        return (f"a cache is for the host: leave it out, since a kernel's calls are compiled in place; or compute a "
                f"constant with ct.static_eval({name}(...))")
    if isinstance(getattr(obj, "__wrapped__", None), types.FunctionType):
        return (f"what wraps {name} runs on the host: call the plain function; or compute a constant with "
                f"ct.static_eval({name}(...))")
    return None
