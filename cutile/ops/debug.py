"""What a kernel says while it runs: print, printf, assert_, breakpoint.

Everything that prints is one op of the IR, `emit_text`: text, and fields that are operands with a C conversion.
Constants are formatted while the kernel is typed.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Sequence

from cutile.dtypes import DType, bool_, info
from cutile.ir.build import Builder
from cutile.ir.nodes import Value
from cutile.ir.terms import (
    NONE, Closure, Const, Dict, FString, Leaf, PySlice, Range, Record, Static, Term, Tuple, View, describe,
    is_tile,
)
from cutile.ops import _format
from cutile.ops._format import Conversion, FormatError
from cutile.ops._op import HOST, OpDef, Sig, op
from cutile.ops._types import const_str, encode, invalid, is_none, refuse, tile_arg, value_of
from cutile.types import TileType

# ------------------------------------------------------------------ terms as text


def text_of(b: Builder, t: Term) -> FString:
    """What print shows for an argument, and str() gives [PRINT-2]. Run-time tiles become fields."""
    return FString(tuple(_merged(_parts(b, t, quoted=False))))


def repr_of(b: Builder, t: Term) -> FString:
    """What repr() gives, and print shows inside tuples: strings are quoted."""
    return FString(tuple(_merged(_parts(b, t, quoted=True))))


Parts = Iterable["str | tuple[Term, str]"]


def _parts(b: Builder, t: Term, quoted: bool) -> Parts:
    match t:
        case FString():
            return t.parts
        case Static(str() as s):
            return [repr(s) if quoted else s]
        case Static(obj):
            return [_object_text(obj)]
        case Const():
            return [str(t.value)]
        case Leaf() if is_tile(t):
            return [(t, "")]
        case Tuple():
            return ["(", *_joined(b, ", ", [("", i) for i in t.items]), ",)" if len(t.items) == 1 else ")"]
        case Dict():
            return ["{", *_joined(b, ", ", [(f"{k!r}: ", i) for k, i in t.items.items()]), "}"]
        case Record():
            return _record_parts(b, t, quoted)
        case Closure():
            return [f"<function {getattr(t.definition, 'name', '<lambda>')}>"]
        case _:
            return [f"<object of type {_kind(t)}>"]


def _object_text(obj) -> str:
    if isinstance(obj, DType):
        return obj.name
    if isinstance(obj, enum.Enum):
        return f"{type(obj).__name__}.{obj.name}"
    return repr(obj)


def _kind(t: Term) -> str:
    match t:
        case View():
            return f"tiled view of a {t.array.type.describe()}"
        case Range():
            return "range"
        case PySlice():
            return "slice"
        case _:
            return describe(t)


def _joined(b: Builder, sep: str, items: Sequence[tuple[str, Term]]) -> Parts:
    """The items' repr, each after its label."""
    for k, (label, t) in enumerate(items):
        yield (sep if k else "") + label
        yield from _parts(b, t, quoted=True)


def _record_parts(b: Builder, t: Record, quoted: bool) -> Parts:
    """A dataclass by its own __str__ or __repr__, if it defines one, else as P(x=1, y=2)."""
    own = None if quoted or t.cls.__str__ is object.__str__ else t.cls.__str__
    if own is None and not hasattr(t.cls.__repr__, "__wrapped__"):  # the generated one is a wrapper
        own = t.cls.__repr__
    if own is None or own is object.__repr__:
        fields = [(f"{f.name}=", t.fields[f.name]) for f in dataclasses.fields(t.cls) if f.repr]
        return [f"{t.cls.__qualname__}(", *_joined(b, ", ", fields), ")"]
    result = b.call(Static(own), [t])
    if not isinstance(result, FString) and not (isinstance(result, Static) and isinstance(result.obj, str)):
        refuse(f"{t.cls.__name__}.{own.__name__}() must return a string, it returned {describe(result)}")
    return _parts(b, result, quoted=False)


def _merged(parts: Parts) -> Iterable:
    """Neighbouring texts joined, empty ones dropped."""
    text = ""
    for p in parts:
        if isinstance(p, str):
            text += p
            continue
        if text:
            yield text
        yield p
        text = ""
    if text:
        yield text


# ------------------------------------------------------------------ typing rules


class _Text:
    """A text under construction: the parts and operands of one emit_text."""

    def __init__(self, b: Builder, op: OpDef):
        self.b, self.op = b, op
        self.parts: list[str | tuple[int, str]] = []
        self.values: list[Value] = []

    def add(self, part: str | tuple[Term, str]) -> None:
        """Text, or a field of a formatted string with its spec [PRINT-4]."""
        if isinstance(part, str):
            self.parts.append(part)
            return
        t, spec = part
        if is_tile(t):
            try:
                self.number(t, _format.parse_spec(spec, t.type.dtype))
            except FormatError as e:
                refuse(f"invalid format of a {describe(t)}: {e}")
        elif spec:
            refuse(f"a format spec ({spec!r}) needs a tile or a number, got {describe(t)}",
                   help="leave the spec out, or format its elements one by one")
        else:
            self.text(t)

    def text(self, t: Term) -> None:
        for p in text_of(self.b, t).parts:
            self.add(p)

    def number(self, t: Const | Leaf, c: Conversion) -> None:
        if isinstance(t, Const):
            value = t.value if t.loose and info(t.dtype).floating else encode(t.value, t.dtype)
            self.parts.append(c.formatter(t.dtype)(value))
        else:
            if t.value not in self.values:
                self.values.append(t.value)
            self.parts.append((self.values.index(t.value), str(c)))

    def emit(self) -> Term:
        parts = tuple(_merged(self.parts))
        if parts:
            self.b.op(emit_text, self.values, results=(), parts=parts)
        return NONE


def _is_text(t: Term) -> bool:
    return isinstance(t, FString) or isinstance(t, Static) and isinstance(t.obj, str)


def _print_rule(b, op, args, sep, end):
    for name, t in (("sep", sep), ("end", end)):
        if not _is_text(t):
            invalid(op, name, f"expected a string, got {describe(t)}", help=f"leave {name} out for the default")
    text = _Text(b, op)
    for k, t in enumerate(args.items):
        if k:
            text.text(sep)
        text.text(t)
    text.text(end)
    return text.emit()


def _printf_rule(b, op, format, args):
    try:
        parts = _format.parse_printf(const_str(op, "format", format))
    except FormatError as e:
        invalid(op, "format", str(e))
    wanted = [p for p in parts if isinstance(p, Conversion)]
    if len(wanted) != len(args.items):
        invalid(op, "format", f"it has {len(wanted)} conversions for {len(args.items)} arguments")
    text = _Text(b, op)
    numbers = iter(enumerate(args.items, 1))
    for p in parts:
        if isinstance(p, str):
            text.add(p)
            continue
        k, t = next(numbers)
        t = tile_arg(op, f"#{k + 1}", t)
        try:
            _format.check_suits(p, t.type.dtype)
        except FormatError as e:
            invalid(op, f"#{k + 1}", str(e))
        text.number(t, p)
    return text.emit()


def _assert_rule(b, op, cond, message):
    cond = tile_arg(op, "cond", cond)
    if cond.type.dtype is not bool_:
        invalid(op, "cond", f"expected a bool_ tile, got {describe(cond)}", help="compare first, for example x != 0")
    text = None if is_none(message) else const_str(op, "message", message)
    b.op(op, value_of(b, cond), results=(), message=text)
    return NONE


def _breakpoint_rule(b, op, kind):
    b.op(op, results=(), kind=const_str(op, "kind", kind))
    return NONE


def _text_rule(b, op, **_):
    refuse("emit_text() is made by print() and printf()", help="ct.printf(format, ...)")


# ------------------------------------------------------------------ the ops


@op(_text_rule, operands="*values", public=False, effect=HOST)
def emit_text(values, /, *, parts, sig: Sig, ctx):
    """Write `parts`, one after the other: text, or (operand number, C conversion)."""
    fields = [p if isinstance(p, str) else (p[0], _element(p[1], sig.operands[p[0]])) for p in parts]
    ctx.write(["".join(p if isinstance(p, str) else _format.show(tiles[p[0]], p[1]) for p in fields)
               for tiles in ctx.each(sig, values)])


def _element(conversion: str, t: TileType):
    return _format.from_text(conversion).formatter(t.dtype)


@op(_print_rule, effect=HOST, signature=lambda *args, sep=" ", end="\n": None, operands="")
def print(*args):
    """Write the arguments, separated by `sep` and followed by `end`, once per block. Stands in the IR as emit_text.

    `args` are tiles, scalars, strings, formatted strings, and any other compile-time value. The interpreter writes
    to sys.stdout, block after block in grid order.

    [PRINT-1.once]  it prints once per block that executes it
    [PRINT-1.sep]  sep stands between the arguments, end after the last
    [PRINT-1.strings]  sep and end are strings or formatted strings; None or anything else is a TileTypeError
    [PRINT-1.none]  it returns None
    [PRINT-2.string]  strings and formatted strings are shown as they are, % included
    [PRINT-2.tile]  a tile of any rank is shown as nested lists: [[1, 2], [3, 4]]
    [PRINT-2.const]  a scalar constant is shown as Python's str() does: 5, 2.5, True, nan, 10000000000.0
    [PRINT-2.none]  None is shown as None
    [PRINT-2.tuple]  a tuple is shown as Python does, strings in it quoted: (1, 'b', None), (1,), ()
    [PRINT-2.record]  a dataclass is shown as P(x=1, y=2), or by its __str__
    [PRINT-2.dtype]  a dtype is shown by its name
    [PRINT-2.enum]  an enum member is shown as RoundingMode.RN
    [PRINT-2.function]  a function is shown by its Python repr
    [PRINT-2.other]  arrays, views and ranges are shown as <object of type …>
    [PRINT-3.bool]  run-time booleans are shown as %d
    [PRINT-3.int]  run-time signed integers are shown as %d, 64-bit ones as %lld
    [PRINT-3.uint]  run-time unsigned integers are shown as %u, 64-bit ones as %llu
    [PRINT-3.float]  run-time floats of every format are shown as %f, with 6 decimals
    [PRINT-4.spec]  a field of a formatted string takes [<>^][+ -][#][0][width][.precision][type], as C has them
    [PRINT-4.left]  < aligns to the left, > and ^ to the right
    [PRINT-4.kind]  an integer type letter on a float, or the other way round, is a TileTypeError
    [PRINT-4.unknown]  any other spec is a TileTypeError
    [PRINT-4.const]  constants in formatted strings are shown as run-time values are: 1 for True, 2.500000 for 2.5
    [PRINT-4.wide]  a spec with a type letter shows all 64 bits of a 64-bit integer
    [PRINT-4.tuple]  a spec on a tuple is a TileTypeError
    """


@op(_printf_rule, effect=HOST, signature=lambda format, *args: None, operands="")
def printf(format, *args):
    """Write the arguments by a C format string, once per block. Stands in the IR as emit_text.

    Conversions are %[flag][width][.precision][hh, h, l or ll]type with at most one of the flags 0 # + - and space;
    types d i u o x X take booleans and integers, e E f F g G a A take floats.

    [PRINT-5.format]  format is a string constant, else TileTypeError
    [PRINT-5.grammar]  anything but %[flag][width][.prec][hh h l ll]type and %% is a TileTypeError
    [PRINT-5.int]  d i u o x X take bool and integers; a float is a TileTypeError
    [PRINT-5.float]  e E f F g G a A take floats; an integer is a TileTypeError
    [PRINT-5.percent]  %% is a percent sign
    [PRINT-5.count]  there are as many arguments as conversions, else TileTypeError
    [PRINT-5.args]  arguments are tiles and scalars, else TileTypeError
    [PRINT-5.length]  length modifiers are not checked against the dtype
    """


@op(_assert_rule, operands="cond", effect=HOST, tileir="assert")
def assert_(cond, /, message=None, *, sig: Sig, ctx):
    """Stop the launch with TileAssertionError if any element of `cond` is False.

    The error names the first failing block in grid order. Stores made before it stay.

    [ASSERT-1.fail]  a False element makes the launch end with an error that carries the message
    [ASSERT-1.hold]  where all elements are True nothing happens
    [ASSERT-1.dtype]  cond is a bool_ tile, else TileTypeError
    [ASSERT-1.const]  constants are allowed: False compiles, and fails when it runs
    [ASSERT-1.message]  message is a string constant or None, else TileTypeError
    """
    ctx.fail(sig, cond, message)


@op(_breakpoint_rule, public=False, effect=HOST)
def breakpoint(*, kind="breakpoint"):
    """Stop in the debugger, in the frame of the kernel: `kind` is "breakpoint" or "set_trace" (of pdb).

    The emitter puts a native call at the user's line. Without one, as when the kernel is compiled for a GPU, it does
    nothing.
    """
