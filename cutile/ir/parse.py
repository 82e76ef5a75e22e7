"""Parses the text form of the IR, which text.py describes: kernels and nodes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from cutile.ir.nodes import (
    Bind,
    Break,
    Continue,
    For,
    Frame,
    If,
    Kernel,
    Node,
    Op,
    Region,
    Return,
    Value,
    While,
    Yield,
)
from cutile.ir.reader import Reader, Token
from cutile.ir.walk import run_recursive
from cutile.spans import Span
from cutile.types import LeafType

if TYPE_CHECKING:
    from cutile.ops._op import OpDef

TERMINATORS = {"yield": Yield, "break": Break, "continue": Continue, "return": Return}
STRUCTURED = ("if", "for", "while", "frame")
Parsing = Generator[Any, Any, Any]  # run by `walk.run_recursive`: regions nest deeper than Python's stack allows


def parse(text: str) -> Kernel:
    """The kernel that a text denotes. IRSyntaxError if the text is wrong."""
    return _Parser(text).kernel()


class _Parser(Reader):
    def kernel(self) -> Kernel:
        self.expect("kernel")
        name = self.function = self.name()
        self.expect("(")
        params = self.items(self.param, ")")
        span = self.span(0)
        body = run_recursive(self.region())
        if self.tokens[self.i].kind != "end":
            self.expected("the end or a table of spans")
        return Kernel(name, tuple(v for v, _ in params), tuple(n for _, n in params), body, span)

    def param(self) -> tuple[Value, str]:
        v = self.typed()
        return v, self.name() if self.accept("of") else v.name or ""

    def region(self, params: tuple[Value, ...] = ()) -> Parsing:
        self.expect("{")
        nodes: list[Node] = []
        while not self.accept("}"):
            if self.tokens[self.i].kind == "end":
                self.expected("'}' or a node")
            nodes.append((yield self.node()))
        return Region(nodes, params)

    def node(self) -> Parsing:
        start = self.i
        if self.tokens[start].kind == "word":
            word = self.tokens[start].text
            if word in ("bind", "free"):
                return self.bind()
            if word in TERMINATORS:
                self.i += 1
                operands = self.uses()
                return TERMINATORS[word](operands, self.span(start))
        names = self.result_names()
        t = self.tokens[self.i]
        if t.kind == "word" and t.text in STRUCTURED:
            self.i += 1
            n, types = yield getattr(self, t.text + "_")(start)
        else:
            n, types = yield self.op(start)
        n.results = self.results(names, types)
        return n

    def result_names(self) -> list[Token]:
        names: list[Token] = []
        while self.tokens[self.i].kind == "value":
            names.append(self.tokens[self.i])
            self.i += 1
            if not self.accept(","):
                self.expect("=")
                break
        return names

    def results(self, names: Sequence[Token], types: Sequence[LeafType]) -> tuple[Value, ...]:
        if len(names) != len(types):
            at = names[0].start if names else None
            self.fail(f"{len(names)} results and {len(types)} types", at)
        return tuple(self.define(name, t) for name, t in zip(names, types, strict=True))

    def types(self) -> list[LeafType]:
        found: list[LeafType] = []
        if self.accept(":"):
            found.append(self.leaf_type())
            while self.accept(","):
                found.append(self.leaf_type())
        return found

    def op(self, start: int) -> Parsing:
        op = self.op_name()
        self.expect("(")
        at = self.tokens[self.i].start
        groups = self.items(self.operand, ")")
        if len(groups) != len(op.operands) or not all(map(_takes, op.operands, groups)):
            self.fail(f"{op.name} takes the operands ({', '.join(op.operands)})", at)
        operands, layout = op.flatten(groups)
        attrs = self.attrs() if self.accept("{") else {}
        types, span, region = self.types(), self.span(start), None
        if self.accept("region"):
            self.expect("(")
            region = yield self.region(tuple(self.items(self.typed, ")")))
        return Op(op, operands, attrs, (), span, layout, region), types

    def op_name(self) -> OpDef:
        from cutile.ops._op import registry

        at = self.tokens[self.i].start
        name = self.name()
        if name not in registry():
            import cutile.ops  # noqa: F401  fills the registry
        if name not in registry():
            self.fail(f"there is no op {name}", at)
        return registry()[name]

    def operand(self) -> Value | tuple[Value, ...] | None:
        if self.accept("_"):
            return None
        return tuple(self.items(self.use, "]")) if self.accept("[") else self.use()

    def attrs(self) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def attr() -> None:
            at, name = self.tokens[self.i].start, self.name()
            if name in found:
                self.fail(f"attribute {name} stands twice", at)
            self.expect("=")
            found[name] = self.literal()

        self.items(attr, "}")
        return found

    def if_(self, start: int) -> Parsing:
        cond, types, span = self.use(), self.types(), self.span(start)
        then = yield self.region()
        self.expect("else")
        orelse = yield self.region()
        return If(cond, then, orelse, (), span), types

    def for_(self, start: int) -> Parsing:
        iv = self.typed()
        self.expect("in")
        self.expect("(")
        bounds = self.items(self.use, ")")
        if len(bounds) != 3:
            self.fail(f"a for takes start, stop and step, found {len(bounds)} bounds", self.tokens[start].start)
        params, inits = self.carry()
        types, span = self.types(), self.span(start)
        body = yield self.region()
        return For(iv, *bounds, inits, params, body, (), span), types

    def while_(self, start: int) -> Parsing:
        forever = self.accept("true")
        params, inits = self.carry()
        types, span, cond = self.types(), self.span(start), None
        if not forever:
            cond = yield self.region()
            self.expect("do")
        body = yield self.region()
        return While(cond, inits, params, body, (), span), types

    def carry(self) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        if not self.accept("carry"):
            return (), ()
        self.expect("(")
        pairs = self.items(self.carried, ")")
        return tuple(p for p, _ in pairs), tuple(i for _, i in pairs)

    def carried(self) -> tuple[Value, Value]:
        param = self.typed()
        self.expect("=")
        return param, self.use()

    def frame_(self, start: int) -> Parsing:
        function = self.name()
        def_span = self.defined(start)
        types, span = self.types(), self.span(start)
        body = yield self.region()
        return Frame(function, def_span, body, (), span), types

    def defined(self, start: int) -> Span:
        if self.accept("defined"):
            return self.span_reference(self.spans)
        return self.span(start)

    def bind(self) -> Bind:
        start = self.i
        free = self.accept("free")
        if not free:
            self.expect("bind")
        name = self.name()
        self.expect("=")
        template = self.template()
        return Bind(name, template, self.span(start), free)


def _takes(name: str, group: Value | tuple[Value, ...] | None) -> bool:
    """Whether `group` fits the operand `name` that an op declares: None fits `name?`, a tuple `*name`."""
    if group is None:
        return name[-1] == "?"
    return isinstance(group, tuple) == (name[0] == "*")
