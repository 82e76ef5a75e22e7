"""The text form of the IR: `parse(to_text(k))` gives `k` again, with its spans.

    kernel scale(%x: array<f32[?]>, %out: array<f32[?]>) @0 {
      %i = bid() {axis=0} : i32[] @1
      %1 = load(%x, [%i]) {shape=(64,)} : f32[64] @2
      store(%out, [%i], %1) @3
      return @4
    }
    spans {
      @0 = "scale.py" 3:0 - 8:12 in scale
      ...

An op may declare an operand `*name`, any number of values, and `name?`, one value or none. The values of a `*name`
are in brackets; an absent `name?` is `_`. Values without a name are numbered in the order
of the text; a second value with the name x is `%x.1`. Spans are numbered in order of use; `from @n` is the call site.
A node without `@n` gets the position of its text as its span, so that tests can be written by hand. `#` begins a
comment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from cutile._support.structs import replace
from cutile.dtypes import INFO, DType
from cutile.ir.nodes import (
    Bind,
    Break,
    Continue,
    For,
    Frame,
    Group,
    If,
    Kernel,
    Known,
    Node,
    Op,
    Region,
    Return,
    Shown,
    Template,
    Value,
    While,
    Yield,
)
from cutile.ir.walk import rewrite
from cutile.spans import Span

BARE = re.compile(r"(?!(?:inf|nan)\Z)[^\W\d]\w*")  # a name that needs no quotes
TERMINATOR_NAMES = {Yield: "yield", Break: "break", Continue: "continue", Return: "return"}


def to_text(kernel: Kernel, spans: bool = True, lenient: bool = False, *, file: Callable[[str], str] = str) -> str:
    """The text of a kernel, a line per node.

    spans     whether to print the table of spans, and references to it
    lenient   print <repr> for values that have no text form, instead of raising TypeError; for error messages
    file      what to print for the name of a file
    """
    return "\n".join(_Printer(spans, lenient, file).kernel(kernel)) + "\n"


def anonymous_text(kernel: Kernel) -> str:
    """The text without spans, names of called functions and what debuggers are shown: what a kernel does, wherever it
    is written.
    """
    def change(old: Node, n: Node) -> list[Node] | None:
        if isinstance(n, Bind):
            return []
        return [replace(n, function="f")] if isinstance(n, Frame) else None

    return to_text(rewrite(kernel, change), False)


def parse(text: str) -> Kernel:
    """The kernel that a text denotes. `reader.IRSyntaxError` if the text is wrong."""
    from cutile.ir import parse as reading  # for developers and tests; no launch needs it

    return reading.parse(text)


def node_text(n: Node, kernel: Kernel | None = None) -> str:
    """The first line of a node, with the names that its values have in the text of `kernel`."""
    p = _Printer(False, lenient=True)
    if kernel is not None:
        p.kernel(kernel)
    return str(p.parts(n)[0])


class _Printer:
    def __init__(self, spans: bool, lenient: bool, file: Callable[[str], str] = str):
        self.spans = spans
        self.lenient = lenient
        self.file = file
        self.names: dict[Value, str] = {}
        self.taken: dict[str, int] = {}
        self.numbered = 0
        self.span_numbers: dict[tuple, int] = {}
        self.span_of: dict[int, tuple[Span, int]] = {}  # by id of a span, which it keeps alive

    def kernel(self, k: Kernel) -> list[str]:
        params = ", ".join(self.param(v, name) for v, name in zip(k.params, k.param_names, strict=True))
        lines = [f"kernel {_name(k.name)}({params}){self.at(k.span)} {{", *self.region(k.body), "}"]
        return lines + self.span_table() if self.spans else lines

    def param(self, v: Value, name: str) -> str:
        return f"{self.value(v)}: {v.type}" + ("" if v.name == name else f" of {_name(name)}")

    def region(self, region: Region) -> Iterator[str]:
        """The lines of a region, without recursion, since calls nest deeper than Python's stack allows."""
        stack: list[tuple[int, str | Node]] = [(1, n) for n in reversed(region.nodes)]
        while stack:
            depth, item = stack.pop()
            if isinstance(item, str):
                yield "  " * depth + item
                continue
            for part in reversed(self.parts(item)):
                if isinstance(part, Region):
                    stack += [(depth + 1, n) for n in reversed(part.nodes)]
                else:
                    stack.append((depth, part))

    def parts(self, n: Node) -> list[str | Region]:
        """A node as lines of text, with its nested regions between them."""
        match n:
            case Op():
                return self.op(n)
            case If():
                head = f"{self.results(n.results)}if {self.value(n.cond)}{self.types(n.results)}{self.at(n.span)} {{"
                return [head, n.then, "} else {", n.orelse, "}"]
            case For():
                bounds = self.values((n.start, n.stop, n.step))
                head = (f"{self.results(n.results)}for {self.typed(n.iv)} in ({bounds}){self.carry(n.params, n.inits)}"
                        f"{self.types(n.results)}{self.at(n.span)} {{")
                return [head, n.body, "}"]
            case While():
                head = (f"{self.results(n.results)}while{' true' if n.cond is None else ''}"
                        f"{self.carry(n.params, n.inits)}{self.types(n.results)}{self.at(n.span)} {{")
                return [head, n.body, "}"] if n.cond is None else [head, n.cond, "} do {", n.body, "}"]
            case Frame():
                head = (f"{self.results(n.results)}frame {_name(n.function)}{self.at(n.def_span, 'defined ')}"
                        f"{self.types(n.results)}{self.at(n.span)} {{")
                return [head, n.body, "}"]
            case Bind():
                word = "free" if n.free else "bind"
                return [f"{word} {_name(n.name)} = {self.template(n.template)}{self.at(n.span)}"]
            case _:
                operands = " " + self.values(n.operands) if n.operands else ""
                return [f"{TERMINATOR_NAMES[type(n)]}{operands}{self.at(n.span)}"]

    def op(self, n: Op) -> list[str | Region]:
        operands = ", ".join(map(self.group, self.groups(n)))
        attrs = " {" + ", ".join(f"{k}={self.literal(v)}" for k, v in n.attrs.items()) + "}" if n.attrs else ""
        line = f"{self.results(n.results)}{_name(n.op.name)}({operands}){attrs}{self.types(n.results)}{self.at(n.span)}"
        if n.region is None:
            return [line]
        return [f"{line} region ({', '.join(self.typed(v) for v in n.region.params)}) {{", n.region, "}"]

    def groups(self, n: Op) -> Sequence:
        try:
            return n.op.group(n.operands, n.layout)
        except (ValueError, IndexError):  # the layout does not fit the operands
            if self.lenient:
                return n.operands
            raise

    def literal(self, value: Any) -> str:
        try:
            return literal(value)
        except TypeError:
            if self.lenient:
                return f"<{value!r}>"
            raise

    def group(self, g: Value | tuple[Value, ...] | None) -> str:
        if g is None:
            return "_"
        return self.value(g) if isinstance(g, Value) else f"[{self.values(g)}]"

    def value(self, v: Value) -> str:
        if v not in self.names:
            self.names[v] = self.new_name(v.name)
        return self.names[v]

    def new_name(self, hint: str | None) -> str:
        if hint is None:
            self.numbered += 1
            return f"%{self.numbered - 1}"
        again = self.taken[hint] = self.taken.get(hint, -1) + 1
        return f"%{_name(hint)}" + (f".{again}" if again else "")

    def values(self, values: Sequence[Value]) -> str:
        return ", ".join(map(self.value, values))

    def results(self, values: Sequence[Value]) -> str:
        return self.values(values) + " = " if values else ""

    def types(self, values: Sequence[Value]) -> str:
        return " : " + ", ".join(str(v.type) for v in values) if values else ""

    def typed(self, v: Value) -> str:
        return f"{self.value(v)}: {v.type}"

    def carry(self, params: Sequence[Value], inits: Sequence[Value]) -> str:
        # The checker also prints malformed loops, so the lengths may differ.
        pairs = [f"{self.typed(p)} = {self.value(i)}" for p, i in zip(params, inits, strict=False)]
        pairs += [self.typed(p) for p in params[len(pairs):]] + [self.value(i) for i in inits[len(pairs):]]
        return f" carry ({', '.join(pairs)})" if pairs else ""

    def template(self, t: Template) -> str:
        match t:
            case Value():
                return self.value(t)
            case Known():
                return self.literal(t.value)
            case Shown():
                return f"shown {t.text!r}"
            case Group("tuple", ()):
                return _tuple(map(self.template, t.items))
            case Group():
                names = [f"{_name(name)}=" for name in t.names] or [""] * len(t.items)
                items = [name + self.template(i) for name, i in zip(names, t.items, strict=not self.lenient)]
                return f"{_name(t.kind)}({', '.join(items)})"
        return self.literal(t)  # not a template: <repr> or TypeError

    def at(self, span: Span, before: str = "") -> str:
        return f" {before}@{self.span_number(span)}" if self.spans else ""

    def span_number(self, span: Span) -> int:
        """The number of a span; equal spans have one number. Call sites are numbered first, without recursion."""
        chain: list[Span] = []
        s: Span | None = span
        while s is not None and id(s) not in self.span_of:
            chain.append(s)
            s = s.call_site
        number = -1 if s is None else self.span_of[id(s)][1]
        for s in reversed(chain):
            key = (s.filename, s.line, s.col, s.end_line, s.end_col, s.function, number)
            number = self.span_numbers.setdefault(key, len(self.span_numbers))
            self.span_of[id(s)] = s, number
        return number

    def span_table(self) -> list[str]:
        lines = ["spans {"]
        for (file, line, col, end_line, end_col, function, site), number in self.span_numbers.items():
            caller = f" from @{site}" if site >= 0 else ""
            place = f"{self.file(file)!r} {line}:{col} - {end_line}:{end_col}"
            lines.append(f"  @{number} = {place} in {_name(function)}{caller}")
        return [*lines, "}"]


def _name(name: str) -> str:
    """A name as the parser reads it: bare if it can be, else in quotes."""
    return name if BARE.fullmatch(name) else repr(name)


def _tuple(items: Iterable[str]) -> str:
    items = list(items)
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def literal(value: Any) -> str:
    """The text of an attribute: a bool, int, float, str, None, dtype, member of an enum of cutile.types, or a tuple."""
    if isinstance(value, tuple):
        return _tuple(map(literal, value))
    if isinstance(value, DType):
        return INFO[value].short
    if type(value) is float and math.isnan(value):
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    if type(value) in (bool, int, float, str, type(None)):
        return repr(value)
    if type(value).__module__ == "cutile.types" and hasattr(type(value), "__members__"):
        return f"{type(value).__name__}.{value.name}"
    raise TypeError(f"an attribute cannot hold {value!r}")
