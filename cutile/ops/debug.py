"""Output and assertions of a running kernel: print, printf, assert_, breakpoint.

Everything that prints is one op of the IR, `emit_text`: text, and fields that are operands with a C conversion.
Constants are formatted while the kernel is typed.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType

from cutile.dtypes import DType, bool_, info
from cutile.ir.build import Builder
from cutile.ir.nodes import Value
from cutile.ir.terms import (
    NONE,
    Bound,
    Closure,
    Const,
    Dict,
    FString,
    Leaf,
    PySlice,
    Range,
    Record,
    Static,
    Term,
    Tuple,
    View,
    call_help,
    describe,
    is_tile,
    phrase,
)
from cutile.ops import _format
from cutile.ops._arguments import const_str, invalid, is_none, refuse, tile_arg
from cutile.ops._constants import encode
from cutile.ops._format import Conversion, FormatError
from cutile.ops._op import HOST, OpDef, Sig, made_elsewhere, op
from cutile.ops._promotion import value_of
from cutile.types import TileType

# ------------------------------------------------------------------ terms as text


def text_of(b: Builder, t: Term) -> FString:
    """The text that print shows for an argument, and str() returns [PRINT-2]. Run-time tiles become fields."""
    return FString(tuple(_merged(_parts(b, t, quoted=False))))


def repr_of(b: Builder, t: Term) -> FString:
    """The text that repr() returns, and print shows inside tuples: strings are quoted."""
    return FString(tuple(_merged(_parts(b, t, quoted=True))))


Parts = Iterable["str | tuple[Term, str]"]


def _parts(b: Builder, t: Term, quoted: bool) -> Parts:
    match t:
        case FString():
            return _quoted(_fields(b, t)) if quoted else t.parts
        case Static(obj):
            return [obj.name if isinstance(obj, DType) else _python_text(b, repr if quoted else str, obj)]
        case Const():
            return [str(t.value) if t.member is None else _python_text(b, repr if quoted else str, t.member)]
        case Leaf() if is_tile(t):
            return [(t, "")]
        case Tuple(cls=cls) if cls is not tuple:
            return _named_parts(b, t, quoted)
        case Tuple():
            return ["(", *_joined(b, ", ", [("", i) for i in t.items]), ",)" if len(t.items) == 1 else ")"]
        case Dict():
            return ["{", *_joined(b, ", ", [(f"{k!r}: ", i) for k, i in t.items.items()]), "}"]
        case Record():
            return _record_parts(b, t, quoted)
        case Bound():
            refuse(f"{phrase(t)} cannot be printed", help=call_help(t))
        case Closure():
            return [f"<function {getattr(t.definition, 'name', '<lambda>')}>"]
        case _:
            return [f"<object of type {_kind(t)}>"]


def _python_text(b: Builder, show: Callable[[object], str], obj) -> str:
    """The text that Python shows for a compile-time object. Methods of an enum may read more for it."""
    if isinstance(obj, enum.Enum):
        b.reach(obj)
    try:
        return show(obj)
    except Exception as e:
        refuse(f"{show.__name__}() of {describe(Static(obj))} raised {type(e).__name__}: {e}")


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
    """A dataclass by its own __str__ or __repr__, if it has one; else as P(x=1, y=2), or as <… object>."""
    if not quoted and (show := b.special_method(t.cls, "__str__")) is not object.__str__:
        return _own_text(b, t, show)
    show = b.special_method(t.cls, "__repr__")
    if show is object.__repr__:
        return [f"<{t.cls.__module__}.{t.cls.__qualname__} object>"]
    made = getattr(getattr(show, "__wrapped__", None), "__code__", None)
    if made is None or not made.co_qualname.startswith("__create_fn__."):  # where dataclass makes it
        return _own_text(b, t, show)
    owner = next(k for k in t.cls.__mro__ if "__repr__" in vars(k))
    fields = [(f"{f.name}=", t.fields[f.name]) for f in dataclasses.fields(owner) if f.repr]
    return [f"{t.cls.__qualname__}(", *_joined(b, ", ", fields), ")"]


def _named_parts(b: Builder, t: Tuple, quoted: bool) -> Parts:
    """A named tuple by its own __str__ or __repr__, if it has one, else as P(x=1, y=2)."""
    for name in ("__repr__",) if quoted else ("__str__", "__repr__"):
        show = b.special_method(t.cls, name)
        if isinstance(show, FunctionType) and show.__code__.co_filename != collections.__file__:
            return _own_text(b, t, show)
    fields = [(f"{n}=", i) for n, i in zip(t.cls._fields, t.items, strict=True)]
    return [f"{t.cls.__name__}(", *_joined(b, ", ", fields), ")"]


def _own_text(b: Builder, t: Record | Tuple, show) -> Parts:
    """The text that the user's __str__ or __repr__ returns."""
    result = b.call(Static(show), [t])
    if not _is_text(result):
        refuse(f"{t.cls.__name__}.{show.__name__}() must return a string, it returned {describe(result)}")
    return _parts(b, result, quoted=False)


def _fields(b: Builder, t: FString) -> Parts:
    """A formatted string as text and fields that are numbers or tiles, with their specs [PRINT-4]."""
    for part in t.parts:
        if isinstance(part, str) or is_tile(part[0]) and not _shown_as_member(part[0]):
            yield part
            continue
        value, spec = part
        if isinstance(value, Record) and b.special_method(value.cls, "__format__") is not object.__format__:
            refuse(f"a {value.cls.__name__} has a __format__ of its own, which formatted strings do not call",
                   help="call a method of another name that returns the text, or put str(…) around the object")
        if spec:
            refuse(f"a format spec ({spec!r}) needs a tile or a number, got {describe(value)}",
                   help="leave the spec out, or format its elements one by one")
        if isinstance(value, Const):
            yield _python_text(b, format, value.member)
        elif isinstance(value, Static) and isinstance(value.obj, str | enum.Enum):
            yield _python_text(b, format, value.obj)
        else:
            yield from _fields(b, text_of(b, value))


def _shown_as_member(t: Term) -> bool:
    """Whether format() shows a constant as a member of an enum, unlike members of IntEnum."""
    return isinstance(t, Const) and t.member is not None and type(t.member).__format__ is not int.__format__


def is_empty(b: Builder, t: FString) -> bool:
    """Whether a formatted string has no characters. What is known only at run time has some."""
    return not any(_fields(b, t))


def _quoted(parts: Parts) -> Parts:
    """Quote and escape as repr does. Numbers and tiles need no escapes, so the texts decide on the quotes."""
    parts = list(parts)
    text = "".join(p for p in parts if isinstance(p, str))
    quote = repr(text)[0]
    yield quote
    for p in parts:
        # repr uses double quotes only if the text has single quotes and no double ones
        yield p if not isinstance(p, str) else repr(f"\"'{p}")[4:-1] if quote == "'" else repr(f"'{p}")[2:-1]
    yield quote


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

    def text(self, t: Term) -> None:
        for p in _fields(self.b, text_of(self.b, t)):
            if isinstance(p, str):
                self.parts.append(p)
                continue
            try:
                self.number(p[0], _format.parse_spec(p[1], p[0].type.dtype))
            except FormatError as e:
                refuse(f"invalid format of {phrase(p[0])}: {e}")

    def number(self, t: Const | Leaf, conversion: Conversion) -> None:
        if isinstance(t, Const):
            value = t.value if t.loose and info(t.dtype).floating else encode(t.value, t.dtype)
            self.parts.append(conversion.formatter(t.dtype)(value))
        else:
            if t.value not in self.values:
                self.values.append(t.value)
            self.parts.append((self.values.index(t.value), str(conversion)))

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
            text.parts.append(p)
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


# ------------------------------------------------------------------ the ops


@op(made_elsewhere, operands="*values", public=False, effect=HOST)
def emit_text(values, /, *, parts, sig: Sig, ctx):
    """Write `parts`, one after the other: text, or (operand number, C conversion)."""
    fields = [p if isinstance(p, str) else (p[0], _element(p[1], sig.operands[p[0]])) for p in parts]
    ctx.write(["".join(p if isinstance(p, str) else _format.show(tiles[p[0]], p[1]) for p in fields)
               for tiles in ctx.each(sig, values)])


def _element(conversion: str, t: TileType):
    return _format.from_text(conversion).formatter(t.dtype)


@op(_print_rule, effect=HOST, signature=lambda *args, sep=" ", end="\n": None, operands="")
def print(*args):
    """Write the arguments, separated by `sep` and followed by `end`, once per block. In the IR it is emit_text.

    `args` are tiles, scalars, strings, formatted strings, and any other compile-time value. The interpreter writes
    to sys.stdout, block after block in grid order.

    [PRINT-1.once]  it prints once per block that executes it
    [PRINT-1.sep]  sep stands between the arguments, end after the last
    [PRINT-1.default]  sep is one space, end a new line where they are not given
    [PRINT-1.strings]  sep and end are strings or formatted strings
    [PRINT-1.refused]  None or anything else as sep or end is refused (TileTypeError)
    [PRINT-1.file]  there are no parameters file and flush (TileTypeError)
    [PRINT-1.builtin]  Python's print in tile code is the same
    [PRINT-1.none]  it returns None
    [PRINT-2.string]  strings are shown as they are
    [PRINT-2.formatted]  formatted strings are shown with their fields filled in
    [PRINT-2.percent]  a percent sign in text is literal
    [PRINT-2.tile]  a tile of any rank is shown as nested lists: [[1, 2], [3, 4]]
    [PRINT-2.const]  a scalar constant is shown as Python's str() does: 5, 2.5, True, nan, 10000000000.0
    [PRINT-2.none]  None is shown as None
    [PRINT-2.tuple]  a tuple is shown as Python does, strings in it quoted: (1, 'b', None), (1,), ()
    [PRINT-2.nested]  run-time values in tuples and dataclasses are shown as they are alone
    [PRINT-2.record]  a dataclass is shown as P(x=1, y=2)
    [PRINT-2.record.str]  a dataclass with a __str__ of its own is shown by that
    [PRINT-2.dtype]  a dtype is shown by its name
    [PRINT-2.enum]  an enum member is shown as RoundingMode.RN
    [PRINT-2.function]  a function is shown by its Python repr
    [PRINT-2.other]  arrays, views and ranges are shown as <object of type …>
    [PRINT-3.b1]  run-time values of this dtype are shown as %d
    [PRINT-3.i8]  run-time values of this dtype are shown as %d
    [PRINT-3.i16]  run-time values of this dtype are shown as %d
    [PRINT-3.i32]  run-time values of this dtype are shown as %d
    [PRINT-3.i64]  run-time values of this dtype are shown as %lld
    [PRINT-3.u8]  run-time values of this dtype are shown as %u
    [PRINT-3.u16]  run-time values of this dtype are shown as %u
    [PRINT-3.u32]  run-time values of this dtype are shown as %u
    [PRINT-3.u64]  run-time values of this dtype are shown as %llu
    [PRINT-3.f16]  run-time values of this dtype are shown as %f
    [PRINT-3.bf16]  run-time values of this dtype are shown as %f
    [PRINT-3.f32]  run-time values of this dtype are shown as %f
    [PRINT-3.f64]  run-time values of this dtype are shown as %lf
    [PRINT-3.restricted]  those of restricted float formats are shown as %f
    [PRINT-4.default]  a field of a formatted string without a spec is shown as print shows a run-time value
    [PRINT-4.order]  a spec is [<>^][+ -][#][0][width][.precision][type]; its parts may be combined
    [PRINT-4.d]  type d shows an integer as a signed decimal number
    [PRINT-4.i]  type i shows an integer like d
    [PRINT-4.o]  type o shows an integer in octal
    [PRINT-4.u]  type u shows an integer as an unsigned decimal number: negative ones modulo 2^32 (2^64 for 64 bits)
    [PRINT-4.x]  type x shows an integer in hexadecimal, small letters
    [PRINT-4.X.capital]  type X shows an integer in hexadecimal, capitals
    [PRINT-4.e]  type e shows a float as d.dddddde±dd
    [PRINT-4.E.capital]  type E shows a float as d.ddddddE±dd
    [PRINT-4.f]  type f shows a float with 6 decimals
    [PRINT-4.F.capital]  type F shows a float like f
    [PRINT-4.g]  type g shows a float as %e or %f, whichever is shorter, without trailing zeros
    [PRINT-4.G.capital]  type G shows a float as %E or %F, likewise
    [PRINT-4.a]  type a shows a float as 0xh.hhhp±d
    [PRINT-4.A.capital]  type A shows a float as 0XH.HHHP±D
    [PRINT-4.plus]  + puts a plus sign before what is not negative
    [PRINT-4.space]  a space puts a space before what is not negative
    [PRINT-4.minus]  - as a sign changes nothing
    [PRINT-4.alt]  # puts 0, 0x or 0X before octal and hexadecimal integers, and keeps the point of floats
    [PRINT-4.zero]  0 fills up to the width with zeros, after the sign and after 0x
    [PRINT-4.width]  the width is the least number of characters, aligned to the right
    [PRINT-4.precision]  the precision is the number of decimals, of digits for g, the least number of digits for
        integers
    [PRINT-4.left]  < aligns to the left
    [PRINT-4.right]  > and ^ align to the right
    [PRINT-4.nonfinite]  inf and nan are shown as inf and nan, capitals for a capital type, and not filled with zeros
    [PRINT-4.kind]  an integer type letter on a float, or the other way round, is refused (TileTypeError)
    [PRINT-4.unknown]  any other spec is refused (TileTypeError)
    [PRINT-4.const]  constants in formatted strings are shown as run-time values are: 1 for True, 2.500000 for 2.5
    [PRINT-4.wide]  a spec with a type letter shows all 64 bits of a 64-bit integer
    [PRINT-4.tuple]  a spec on a tuple is refused (TileTypeError)
    """


@op(_printf_rule, effect=HOST, signature=lambda format, *args: None, operands="")
def printf(format, *args):
    """Write the arguments by a C format string, once per block. In the IR it is emit_text.

    Conversions are %[flag][width][.precision][hh, h, l or ll]type with at most one of the flags 0 # + - and space;
    a width may begin with a zero, which pads with zeros as the flag does;
    types d i u o x X take booleans and integers, e E f F g G a A take floats.

    [PRINT-5.text]  text is written as it stands, conversions as C writes the arguments, in order
    [PRINT-5.end]  nothing is added at the end
    [PRINT-5.format]  a format that is no string constant is refused (TileTypeError)
    [PRINT-5.flag]  at most one of the flags 0 # + - and space stands in a conversion (TileTypeError)
    [PRINT-5.width]  width and precision are decimal numbers; * is refused (TileTypeError)
    [PRINT-5.width.zero]  a width may begin with a zero after another flag: %+04d
    [PRINT-5.grammar]  any other conversion is refused: c s p n, L, a lone % (TileTypeError)
    [PRINT-5.int]  d i u o x X take bool and integers
    [PRINT-5.int.kind]  d i u o x X refuse floats (TileTypeError)
    [PRINT-5.float]  e E f F g G a A take floats
    [PRINT-5.float.kind]  e E f F g G a A refuse integers (TileTypeError)
    [PRINT-5.percent]  %% is a percent sign
    [PRINT-5.count]  another number of arguments than of conversions is refused (TileTypeError)
    [PRINT-5.args]  arguments that are no tiles or scalars are refused (TileTypeError)
    [PRINT-5.tile]  a tile is written as nested lists, each element by the conversion
    [PRINT-5.length]  length modifiers hh h l ll are allowed for every dtype
    [PRINT-5.once]  it prints once per block that executes it
    """


@op(_assert_rule, operands="cond", effect=HOST)
def assert_(cond, /, message=None, *, sig: Sig, ctx):
    """Stop the launch with TileAssertionError if any element of `cond` is False.

    The error names the first failing block in grid order. Stores made before it stay.

    [ASSERT-1.fail]  a False element makes the launch end with an error that carries the message
    [ASSERT-1.element]  one False element among True ones is enough
    [ASSERT-1.hold]  where all elements are True nothing happens
    [ASSERT-1.dtype]  a cond of a dtype other than bool_ is refused (TileTypeError)
    [ASSERT-1.kind]  a cond that is no tile is refused (TileTypeError)
    [ASSERT-1.const]  constants are allowed: False compiles, and fails when it runs
    [ASSERT-1.message]  message is a string constant or None, and may be given by name
    [ASSERT-1.message.kind]  any other message is refused, a formatted string included (TileTypeError)
    [ASSERT-1.cond]  cond is positional only (TileTypeError)
    [ASSERT-1.block]  the error names the first failing block in grid order
    [ASSERT-1.stores]  stores made before the failure stay
    [ASSERT-1.none]  the result is None
    """
    ctx.fail(sig, cond, message)


@op(_breakpoint_rule, public=False, effect=HOST)
def breakpoint(*, kind="breakpoint"):
    """Stop in the debugger, in the frame of the kernel: `kind` is "breakpoint" or "set_trace" (of pdb).

    The emitter puts a native call at the user's line. Without one, as when the kernel is compiled for a GPU, it does
    nothing.
    """
