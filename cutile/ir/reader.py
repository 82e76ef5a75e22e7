"""Reads the parts of the text form of the IR: tokens, names, spans, types, literals, values, templates."""

from __future__ import annotations

import ast
import enum
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

from cutile import types
from cutile._support.structs import structure
from cutile.dtypes import BY_SHORT, DType, foreign_pointer_dtype, int32
from cutile.ir.nodes import Group, Known, Shown, Template, Value
from cutile.spans import Span
from cutile.types import ArrayType, LeafType, ListType, TileType, TokenType

T = TypeVar("T")

_ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4})"  # the escapes that repr() writes
_STRING = rf"'(?:[^'\\\n]|{_ESCAPE})*'|\"(?:[^\"\\\n]|{_ESCAPE})*\""
_TOKEN = re.compile(rf"""
    (?P<skip>[ \t\r\n]+|\#[^\n]*)
  | (?P<value>%(?:[0-9]+|(?:[^\W\d]\w*|{_STRING})(?:\.[0-9]+)?))
  | (?P<span>@[0-9]+)
  | (?P<string>{_STRING})
  | (?P<number>-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|inf\b|nan\b))
  | (?P<word>[^\W\d]\w*)
  | (?P<sign>[()\[\]{{}}<>,:;=?.\-])
""", re.VERBOSE)
_ENUMS = {n: c for n, c in vars(types).items() if isinstance(c, type) and issubclass(c, enum.Enum)}


class IRSyntaxError(ValueError):
    """A text is not IR. The message gives line and column (both from 1), the line itself and a caret."""


@structure(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int


class Reader:
    """Reads tokens one by one; `i` is the index of the next. A method consumes what it returns, or fails."""

    def __init__(self, text: str):
        self.text = text
        self.i = 0
        self.tokens = list(self.tokenise())
        self.values: dict[str, Value] = {}
        self.function = ""
        self.spans = self.span_table()

    # -------------------------------------------------------------- tokens

    def tokenise(self) -> Iterator[Token]:
        at = 0
        while at < len(self.text):
            m = _TOKEN.match(self.text, at)
            if m is None:
                self.fail(f"unexpected character {self.text[at]!r}", at)
            if m.lastgroup != "skip":
                yield Token(m.lastgroup, m[0], at)
            at = m.end()
        yield Token("end", "", len(self.text))

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        at = self.tokens[self.i].start if at is None else at
        line, col = self.place(at)
        source = self.text.split("\n")[line - 1]
        raise IRSyntaxError(f"line {line}, column {col + 1}: {message}\n    {source}\n    {' ' * col}^")

    def place(self, at: int) -> tuple[int, int]:
        return self.text.count("\n", 0, at) + 1, at - (self.text.rfind("\n", 0, at) + 1)

    def expected(self, what: str) -> NoReturn:
        found = self.tokens[self.i]
        self.fail(f"expected {what}, found {'the end' if found.kind == 'end' else found.text}")

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of some words or signs."""
        t = self.tokens[self.i]
        return t.text in texts and t.kind in ("word", "sign", "number")

    def accept(self, text: str) -> bool:
        found = self.at(text)
        self.i += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.expected(repr(text))

    def take(self, kind: str, what: str) -> str:
        """The text of the next token, which must be of a kind; `what` says in errors what is expected."""
        if self.tokens[self.i].kind != kind:
            self.expected(what)
        self.i += 1
        return self.tokens[self.i - 1].text

    def name(self) -> str:
        if self.tokens[self.i].kind == "string":
            return ast.literal_eval(self.take("string", "a name"))
        return self.take("word", "a name")

    def integer(self) -> int:
        text = self.take("number", "an integer")
        try:
            return int(text)
        except ValueError:
            self.i -= 1
            self.expected("an integer")

    def items(self, item: Callable[[], T], end: str) -> list[T]:
        """Comma-separated items up to `end`, which is consumed. There may be a comma before `end`."""
        found: list[T] = []
        while not self.accept(end):
            found.append(item())
            if not self.accept(","):
                self.expect(end)
                break
        return found

    # -------------------------------------------------------------- spans

    def span_table(self) -> dict[str, Span]:
        """Read the table of spans, which is at the end, after the word `spans` outside all braces."""
        depth, start, spans = 0, None, {}
        for i, t in enumerate(self.tokens):
            depth += (t.text == "{") - (t.text == "}") if t.kind == "sign" else 0
            if depth == 0 and t.kind == "word" and t.text == "spans" and self.tokens[i + 1].text == "{":
                start = i
        if start is None:
            return spans
        self.i = start + 2
        while not self.accept("}"):
            number, span = self.span_entry(spans)
            spans[number] = span
        if self.tokens[self.i].kind != "end":
            self.expected("the end")
        self.tokens[start:] = [Token("end", "", self.tokens[start].start)]
        self.i = 0
        return spans

    def span_entry(self, spans: dict[str, Span]) -> tuple[str, Span]:
        number = self.take("span", "a span such as @1 or '}'")
        if number in spans:
            self.i -= 1
            self.fail(f"span {number} stands twice")
        self.expect("=")
        filename = ast.literal_eval(self.take("string", "a file name in quotes"))
        line, col = self.position()
        self.expect("-")
        end_line, end_col = self.position()
        self.expect("in")
        function = self.name()
        site = self.span_reference(spans) if self.accept("from") else None
        return number, Span(filename, line, col, end_line, end_col, function, site)

    def position(self) -> tuple[int, int]:
        line = self.integer()
        self.expect(":")
        return line, self.integer()

    def span_reference(self, spans: dict[str, Span]) -> Span:
        number = self.take("span", "a span such as @1")
        if number not in spans:
            self.i -= 1
            self.fail(f"span {number} is not in the table")
        return spans[number]

    def span(self, start: int) -> Span:
        """The span that is written here; if there is none, the position of the text from token `start` to here."""
        if self.tokens[self.i].kind == "span":
            return self.span_reference(self.spans)
        first, last = self.tokens[start], self.tokens[max(start, self.i - 1)]
        return Span("<ir>", *self.place(first.start), *self.place(last.start + len(last.text)), self.function)

    # -------------------------------------------------------------- types and literals

    def leaf_type(self) -> LeafType:
        if self.accept("token"):
            return TokenType()
        if self.at("array", "list"):
            word = self.take("word", "a type")
            self.expect("<")
            t = self.array_type() if word == "array" else ListType(self.list_element())
            self.expect(">")
            return t
        dtype = self.dtype("a type such as f32[8]")
        self.expect("[")
        return TileType(dtype, tuple(self.items(self.integer, "]")))

    def list_element(self) -> ArrayType:
        self.expect("array")
        self.expect("<")
        t = self.array_type()
        self.expect(">")
        return t

    def array_type(self) -> ArrayType:
        dtype, index = self.dtype("an element type such as f32"), int32
        self.expect("[")
        shape = self.dims()
        strides = self.dims() if self.accept(":") else ()
        if self.accept(";"):
            index = self.dtype("an index type such as i64")
        if strides and len(strides) != len(shape):
            self.fail(f"{len(shape)} sizes and {len(strides)} strides")
        self.expect("]")
        return ArrayType(dtype, len(shape), index, shape, strides)

    def dims(self) -> tuple[int | None, ...]:
        found: list[int | None] = []
        while not self.at("]", ":", ";"):
            found.append(None if self.accept("?") else self.integer())
            if not self.accept(","):
                break
        return tuple(found)

    def dtype(self, what: str) -> DType:
        if self.accept("ptr"):
            self.expect("<")
            pointee = self.element_dtype("an element type such as f32")
            self.expect(">")
            return foreign_pointer_dtype(pointee)
        return self.element_dtype(what)

    def element_dtype(self, what: str) -> DType:
        text = self.tokens[self.i].text
        if text not in BY_SHORT:
            self.expected(what)
        self.i += 1
        return BY_SHORT[text]

    def literal(self) -> Any:
        t = self.tokens[self.i]
        if t.kind == "string":
            self.i += 1
            return ast.literal_eval(t.text)
        if t.kind == "number":
            self.i += 1
            return _number(t.text)
        if self.accept("("):
            return tuple(self.items(self.literal, ")"))
        for text, value in (("True", True), ("False", False), ("None", None)):
            if self.accept(text):
                return value
        if t.text in _ENUMS:
            return self.enum_member(_ENUMS[t.text])
        return self.dtype("a value")

    def enum_member(self, cls: type[enum.Enum]) -> enum.Enum:
        self.i += 1
        self.expect(".")
        name = self.take("word", f"a member of {cls.__name__}")
        if name not in cls.__members__:
            self.i -= 1
            self.expected("one of " + ", ".join(cls.__members__))
        return cls[name]

    # -------------------------------------------------------------- values

    def use(self) -> Value:
        text = self.take("value", "a value such as %x")
        if text not in self.values:
            self.i -= 1
            self.fail(f"{text} is not defined before")
        return self.values[text]

    def uses(self) -> tuple[Value, ...]:
        found = []
        while self.tokens[self.i].kind == "value":
            found.append(self.use())
            if not self.accept(","):
                break
        return tuple(found)

    def define(self, token: Token, type: LeafType) -> Value:
        if token.text in self.values:
            self.fail(f"{token.text} is defined twice", token.start)
        v = self.values[token.text] = Value(type, _hint(token.text))
        return v

    def typed(self) -> Value:
        token = self.tokens[self.i]
        self.take("value", "a value such as %x")
        self.expect(":")
        return self.define(token, self.leaf_type())

    def template(self) -> Template:
        if self.tokens[self.i].kind == "value":
            return self.use()
        if self.at("shown") and self.tokens[self.i + 1].kind == "string":
            self.i += 1
            return Shown(ast.literal_eval(self.take("string", "a text in quotes")))
        if self.accept("("):
            return Group("tuple", (), tuple(self.items(self.template, ")")))
        if self.tokens[self.i].kind in ("word", "string") and self.tokens[self.i + 1].text == "(":
            kind = self.name()
            self.expect("(")
            fields = self.items(self.template_field, ")")
            return Group(kind, tuple(n for n, _ in fields if n is not None), tuple(t for _, t in fields))
        return Known(self.literal())

    def template_field(self) -> tuple[str | None, Template]:
        if self.tokens[self.i + 1].text != "=":
            return None, self.template()
        name = self.name()
        self.expect("=")
        return name, self.template()


def _hint(text: str) -> str | None:
    """The name in the text of a value: None in %3, x in %x and %x.1, p.x in %'p.x'."""
    name = text[1:]
    if name[0] in "'\"":
        return ast.literal_eval(name[:name.rindex(name[0]) + 1])
    return None if name[0].isdecimal() else name.partition(".")[0]


def _number(text: str) -> int | float:
    if text in ("nan", "-nan"):
        return math.copysign(math.nan, -1.0 if text[0] == "-" else 1.0)
    return int(text) if text.removeprefix("-").isdigit() else float(text)
