"""Operators: Python functions of items, and the well-known ones (well_known.py) [OPR-*].

A kernel is made for an `Operator`, which stands for all functions of equal code that capture equal values: a fresh
function runs what was compiled for the first one. Kernels see a copy of the function that keeps what was captured at
that time. Each call looks at what a function captures, so that this takes microseconds (function_key.py).
"""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from cutile._support.locks import Lock
from cutile._support.lru import LruDict
from cutile.compute.function_key import Kept, frozen, glance, holds_what_may_change
from cutile.compute.results import Result, result_of
from cutile.compute.value_types import ValueType
from cutile.compute.well_known import FUNCTIONS, OpKind
from cutile.errors import TileError, TileUnsupportedFeatureError
from cutile.front.callables import from_a_library
from cutile.front.context import Hidden
from cutile.front.python_objects import declaration


class Operator:
    """An operator as kernels take it. There is one for all equal ones that are in use, so identity tells them apart.

    function  what kernels call; it captures what the user's function captured
    watched   whether it captures something whose contents may change
    hidden    what stands in it for the arrays that the user's function captured
    """

    def __init__(self, function: Callable, watched: bool, hidden: tuple[Hidden, ...] = ()):
        self.function, self.watched, self.hidden = function, watched, hidden
        self.results: dict[tuple[ValueType, ...], Result] = {}
        self.given: Callable[[], Any] = lambda: None  # a weak reference to the user's function of the last new call

    def shown(self) -> Callable:
        """A function whose lines errors show: the user's, where it captures no arrays. `function` is a copy of the
        first equal one, which may stand elsewhere.
        """
        return (None if self.hidden else self.given()) or self.function

    def meaning(self) -> OperatorMeaning:
        """What it does, for those types of operands that it was asked for."""
        return OperatorMeaning({types: found.digest() for types, found in self.results.items()})

    @property
    def key(self) -> Operator:
        """Its part of the keys of kernels."""
        return self


class OperatorMeaning:
    """What an operator does, in any process: for types of operands, a digest of what it is there. It is equal to
    operators that do the same.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, digests: dict[tuple[ValueType, ...], str]):
        self.digests = digests

    def meaning(self) -> OperatorMeaning:
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operator):
            return isinstance(other, OperatorMeaning) and other.digests == self.digests
        try:
            return all(result_of(other, *types).digest() == digest for types, digest in self.digests.items())
        except (TileError, TypeError, ValueError):  # it cannot take these operands
            return False


_RECENT: LruDict[tuple, tuple[Operator, list]] = LruDict(1000)  # by `glance`, each with what it knows by identity
_OPERATORS: weakref.WeakValueDictionary[tuple, Operator] = weakref.WeakValueDictionary()  # by key
KNOWN = {kind.value: Operator(f, False) for kind, f in FUNCTIONS.items()}
_lock = Lock()


def operator(op: Any, argument: str = "op", arrays: dict[int, Any] | None = None) -> Operator:
    """The operator that an argument stands for; TypeError, naming the argument, if it is none. `arrays` gets the arrays
    that it captures, by their ids, in the order of `Operator.hidden`.
    """
    cls = type(op)
    if (space := declaration(op)) is not None:  # by ct.function
        return operator(space.fn, argument, arrays) if space.tile else _interned(("object", Kept(op)), op)
    if cls is types.FunctionType:
        kept: list[Any] = []
        captured: dict[int, Any] = {} if arrays is None else arrays
        seen = glance(op, kept, (), captured)
        found = _RECENT.get(seen)
        if found is None:
            hidden: dict[int, Hidden] = {}
            found = _interned(*frozen(op, {}, hidden), tuple(hidden.values())), kept
            _RECENT.keep(seen, found)
        return found[0]
    if cls is Operator:
        return op
    if cls is OpKind:
        if (known := KNOWN.get(op._value_)) is None:  # the hash of an enum is that of its name, computed in Python
            raise ValueError(f"argument `{argument}`: OpKind.{op.name} is no operator of its own; pass the function")
        return known
    if isinstance(op, RawOp):
        raise TileUnsupportedFeatureError(
            f"argument `{argument}`: LTO-IR cannot be linked into Tile IR, so RawOp `{op.name}` cannot run",
            help="write the operator as a Python function of items")
    if isinstance(getattr(op, "py_func", None), types.FunctionType):  # of @numba.cuda.jit
        return operator(op.py_func, argument, arrays)
    if isinstance(op, type):
        name = f"np.{op.__name__}" if issubclass(op, np.generic) else op.__name__
        raise TypeError(f"argument `{argument}`: expected a function of items or an OpKind, got the class {name}; "
                        f"write lambda a: {name}(a)")
    if isinstance(inspect.getattr_static(cls, "__call__", None), types.FunctionType) and not from_a_library(cls):
        op = op.__call__
    if isinstance(op, types.MethodType):  # each look-up of one makes another object
        return _interned(("method", Kept(op.__self__), Kept(op.__func__)), op)
    if callable(op):
        return _interned(("object", Kept(op)), op)
    raise TypeError(f"argument `{argument}`: expected a function of items or an OpKind, got {cls.__name__}")


def _interned(key: tuple, function: Callable, hidden: tuple[Hidden, ...] = ()) -> Operator:
    with _lock.here():
        found = _OPERATORS.get(key)
        if found is None:
            found = _OPERATORS[key] = Operator(function, holds_what_may_change(key), hidden)
    return found


class RawOp:
    """Device code of another compiler [OPR-9]. It can be made, and used nowhere here.

    Parameters
    ----------
    ltoir : bytes
        The code, in LTO-IR.
    name : str
        The name of its function.
    state : bytes, default b""
        What the function is given first.
    state_alignment : int, default 1
        In bytes.
    extra_ltoirs : list of bytes, optional
        Further code.

    Raises
    ------
    TileUnsupportedFeatureError
        Where one is passed as an operator: LTO-IR cannot be linked into Tile IR.

    Examples
    --------
    >>> ct.compute.RawOp(ltoir=b"", name="add").name
    'add'
    """

    def __init__(self, *, ltoir: bytes, name: str, state: bytes = b"", state_alignment: int = 1,
                 extra_ltoirs: list[bytes] | None = None):
        self.ltoir, self.name, self.state = ltoir, name, state
        self.state_alignment, self.extra_ltoirs = state_alignment, extra_ltoirs
