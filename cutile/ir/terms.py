"""Terms: what expressions denote while a kernel is being typed.

A term is a run-time value of the IR (`Leaf`), a constant scalar (`Const`), or a compile-time structure of terms. The
front end makes and joins terms; typing rules of ops take and give terms. No term outlives the front end: the IR holds
values, attributes and templates.

No code changes a term. The classes are not frozen nevertheless, since frozen ones take twice the time to make.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from cutile._support.structs import field, structure
from cutile.dtypes import DType
from cutile.errors import TileError
from cutile.ir.nodes import Value
from cutile.spans import Span
from cutile.types import ArrayType, ListType, PaddingMode, TileType, tile_type


class Term:
    """Base of all terms."""

    __slots__ = ()


@structure(slots=True, eq=False)
class Leaf(Term):
    """A run-time tile (scalars included), array or list."""

    value: Value

    @property
    def type(self) -> TileType | ArrayType | ListType:
        return self.value.type


def to_builtin(value: Any) -> Any:
    """A number or text as an int, float, bool or str of Python.

    Instances of subclasses of int, float and str, such as np.float64 and members of enums, are converted without
    running code of the subclass. Anything else is returned unchanged.
    """
    cls = type(value)
    if issubclass(cls, int):
        return value if cls is bool else int.__index__(value)
    if issubclass(cls, float):
        return float.__float__(value)
    return str.__str__(value) if issubclass(cls, str) else value


def digits(n: int) -> str:
    """An integer for messages; a huge one is shortened, since Python refuses to print thousands of digits."""
    return str(n) if n.bit_length() <= 256 else f"{'-' * (n < 0)}2^{n.bit_length() - 1} and more"


def number_key(value: bool | int | float) -> Hashable:
    """A key that is equal for numbers of one type with the same bits: 1, True and 1.0 differ, and so do 0.0 and -0.0,
    and NaNs of different signs [SPEC-1].
    """
    return type(value), struct.pack("<d", value) if isinstance(value, float) else value


@structure(slots=True, eq=False)
class Const(Term):
    """A constant scalar. A loosely typed one holds the exact Python value; its dtype is only a default [LOOSE-1].

    `member`: the member of an int enum that it is, which acts as a number but is shown as a member [CV-3].
    """

    value: bool | int | float
    dtype: DType
    loose: bool
    member: Any = None

    @property
    def type(self) -> TileType:
        return tile_type(self.dtype)

    def same(self, other: Const) -> bool:
        """Whether two constants are equal, with the same typing and the same bits [SPEC-1]."""
        return (self.dtype is other.dtype and self.loose == other.loose
                and number_key(self.value) == number_key(other.value))


@structure(slots=True, eq=False)
class Static(Term):
    """A compile-time object: None, Ellipsis, str, dtype, enum member, module, class, op, Python function."""

    obj: Any


@structure(slots=True, eq=False)
class Tuple(Term):
    """A tuple, or a named tuple of class `cls`."""

    items: tuple[Term, ...]
    cls: type = tuple
    clean: bool = False  # whether it is known to hold no poison


@structure(slots=True, eq=False)
class Record(Term):
    """An instance of a frozen dataclass [DC-1]; `fields` are in the order of the class."""

    cls: type
    fields: dict[str, Term]
    clean: bool = False


@structure(slots=True, eq=False)
class Dict(Term):
    """The value of **kwargs [CV-7]."""

    items: dict[str, Term]


@structure(slots=True, eq=False)
class FString(Term):
    """A formatted string: its texts and its (term, format spec) fields, in order [EX-15]."""

    parts: tuple[str | tuple[Term, str], ...]


@structure(slots=True, eq=False)
class Bound(Term):
    """A method of an object: a call of it calls `func` with `receiver` as the first argument."""

    func: Term
    receiver: Term


@structure(slots=True, eq=False)
class Range(Term):
    """range(start, stop, step): int scalars of the induction dtype [LOOP-1]."""

    start: Term
    stop: Term
    step: Term
    dtype: DType


@structure(slots=True, eq=False)
class View(Term):
    """A tiled view [TV-1]. `tile_shape` is what the user wrote: `()` if the user wrote that."""

    array: Leaf
    tile_shape: tuple[int, ...]
    steps: tuple[int, ...]
    padding_mode: PaddingMode


@structure(slots=True, eq=False)
class RawMemory(Term):
    """The memory of an array, addressed by offsets in elements [RAWMEM-1]."""

    array: Leaf


@structure(slots=True, eq=False)
class IndexSlice(Term):
    """ct.Slice(start, length) [ADV-2]."""

    start: Term
    length: Term


@structure(slots=True, eq=False)
class PySlice(Term):
    """slice(start, stop, step), or a:b:c in a subscript [EX-17]."""

    start: Term
    stop: Term
    step: Term


@structure(slots=True, eq=False)
class Closure(Term):
    """A function or lambda that tile code defines: its definition, and the live scope in which it looks up names.

    If that scope has ended, `captured` holds its last state and that of its parents, as a table of levels, and `scope`
    is the number of a level [CALL-5]. Closures inside a table share it: they have a level number but no table.
    """

    definition: Any  # a Definition of front/definition.py
    scope: Any  # a Scope of front/scope.py, or the number of a level
    defaults: dict[str, Term] = field(default_factory=dict)
    captured: Any = None  # a Captured of front/closures.py, or None


@structure(slots=True, eq=False)
class Use:
    """The one use that a context manager is good for. `entered`: the last `with` statement that was typed for it."""

    made: int  # in the order in which managers are made
    entered: Span | None = None


@structure(slots=True, eq=False)
class Manager(Term):
    """A context manager, from a call of a @contextlib.contextmanager function; it can be used once [CM-3].

    `uses` has its own use; where paths meet, those of all managers that it may be.
    """

    func: Term
    args: tuple[Term, ...]
    kwargs: dict[str, Term]
    span: Span
    uses: frozenset[Use]

    @property
    def entered(self) -> bool:
        """Whether it is used on some path."""
        return any(u.entered for u in self.uses)


@structure(slots=True, eq=False)
class Unusable(Term):
    """The term of a variable that is undefined, or has another type, on some path: `error(span)` makes the error about
    a use.
    """

    error: Callable[[Span], TileError]


@structure(slots=True, eq=False)
class Poison(Term):
    """The value of an expression with an error. Expressions that use it report no further error."""


POISON = Poison()
NONE = Static(None)


def parts_of(t: Term) -> Iterable[Term]:
    """The terms directly inside a term."""
    match t:
        case Tuple():
            return t.items
        case Record():
            return t.fields.values()
        case Dict():
            return t.items.values()
        case FString():
            return [p[0] for p in t.parts if not isinstance(p, str)]
        case Bound():
            return (t.func, t.receiver)
        case Range() | PySlice():
            return (t.start, t.stop, t.step)
        case View() | RawMemory():
            return (t.array,)
        case IndexSlice():
            return (t.start, t.length)
        case Closure():
            return [*t.defaults.values(), *(t.captured.terms() if t.captured else ())]
        case Manager():
            return [*t.args, *t.kwargs.values()]
        case _:
            return ()


def is_poisoned(t: Term) -> bool:
    """Whether a term is poison, or has a part that is."""
    if type(t) in _WITHOUT_PARTS:
        return False
    pending, whole = [t], []
    for part in pending:  # no recursion, since closures hold each other to any depth
        if isinstance(part, Poison):
            return True
        if type(part) in _WITHOUT_PARTS:
            continue
        if type(part) in _REMEMBERING:  # of many parts, perhaps, which are read one by one
            if part.clean:
                continue
            whole.append(part)
        elif type(part) is Closure and part.captured is not None:
            if part.captured.clean:
                pending += part.defaults.values()
                continue
            whole.append(part.captured)
        pending += parts_of(part)
    for part in whole:
        part.clean = True
    return False


_WITHOUT_PARTS = frozenset({Leaf, Const, Static})  # the most frequent terms
_REMEMBERING = frozenset({Tuple, Record})


def any_poisoned(terms: Iterable[Term]) -> bool:
    """Whether one of these terms is poison, or has a part that is."""
    for t in terms:
        if type(t) not in _WITHOUT_PARTS and is_poisoned(t):
            return True
    return False


def is_tile(t: Term) -> bool:
    """Whether a term is a tile or a scalar, at run time or constant."""
    kind = type(t)
    return kind is Const or kind is Leaf and type(t.value.type) is TileType


def is_scalar(t: Term) -> bool:
    return is_tile(t) and t.type.shape == ()


def is_array(t: Term) -> bool:
    return isinstance(t, Leaf) and isinstance(t.value.type, ArrayType)


def describe(t: Term) -> str:
    """What a term is, in the words of error messages."""
    match t:
        case Const():
            return f"constant {t.value!r}" if t.loose else f"{t.dtype.name} constant {t.value!r}"
        case Leaf():
            return t.value.type.describe()
        case Static(None):
            return "None"
        case Static(str() as s):
            return f"string {s!r}"
        case Static(DType() as d):
            return f"dtype {d.name}"
        case Static(obj):
            name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
            kind = "class" if isinstance(obj, type) else "function" if callable(obj) else type(obj).__name__
            return f"{kind} {name}" if name else repr(obj)
        case Tuple():
            return "tuple (" + ", ".join(map(describe, t.items)) + ("," if len(t.items) == 1 else "") + ")"
        case Record():
            return f"{t.cls.__name__} instance"
        case Dict():
            return "dict of keyword arguments"
        case FString():
            return "formatted string"
        case View():
            return f"tiled view of a {t.array.type.describe()} with tile shape {t.tile_shape}"
        case RawMemory():
            return f"raw memory of {t.array.type.dtype.name}"
        case IndexSlice():
            return "ct.Slice"
        case PySlice():
            return "slice"
        case Range():
            return "range"
        case Closure():
            return f"function {t.definition.name} (line {t.definition.node.lineno})"
        case Bound():
            return f"method {_call_of(t)} of {phrase(t.receiver)}"
        case Manager():
            return "used context manager" if t.entered else "context manager"
        case _:
            return type(t).__name__.lower()


def call_help(t: Term) -> str | None:
    """The advice where a term is an op or a method that is not called; else None."""
    if isinstance(t, Bound) or isinstance(t, Static) and hasattr(t.obj, "spelling"):
        return f"call it: {_call_of(t)}"
    return None


def _call_of(t: Bound | Static) -> str:
    """The name of a method or op, and the arguments that a call of it needs."""
    obj = t.obj if isinstance(t, Static) else getattr(t.func, "obj", None)
    name = getattr(obj, "spelling", None) or getattr(obj, "__name__", "")
    signature = getattr(obj, "__signature__", None)
    needed = [p.name for p in signature.parameters.values() if p.default is p.empty] if signature else ["…"]
    if isinstance(t, Static):
        return f"ct.{name}({', '.join(needed)})"
    return f"{name}({', '.join(needed[1:] if signature else needed)})"


def phrase(t: Term) -> str:
    """What a term is, with an article: "an int32 scalar", "a tuple (…)", "None"."""
    return article(describe(t))


def article(text: str) -> str:
    return text if text == "None" else f"{'an' if text[0] in 'aeio' else 'a'} {text}"
