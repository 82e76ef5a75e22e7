"""Builds regions of nodes, each node with the span of its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cutile.ir.nodes import Node, Op, Region, Value
from cutile.ir.terms import Term
from cutile.spans import Span
from cutile.types import LeafType

if TYPE_CHECKING:
    from cutile.ops._op import OpDef


class Builder:
    """Appends nodes to `region`; they get the span `span`."""

    def __init__(self, span: Span):
        self.region = Region()
        self.span = span

    def append(self, node: Node) -> None:
        self.region.nodes.append(node)

    def op(self, op: OpDef, *operands: Value | None | Sequence[Value], results: Sequence[LeafType],
           region: Region | None = None, **attrs: Any) -> tuple[Value, ...]:
        """Append an op; its results.

        There is one argument for each operand that the op declares: a Value, a sequence for `*name`, None for an absent
        `name?`.
        """
        flat, layout = op.flatten(operands)
        values = tuple(Value(t) for t in results)
        self.append(Op(op, flat, attrs, values, self.span, layout, region))
        return values

    def op1(self, op: OpDef, *operands: Value | None | Sequence[Value], result: LeafType,
            region: Region | None = None, **attrs: Any) -> Value:
        """Append an op with one result; the result. It does not call `op`, since most nodes are made here."""
        flat, layout = op.flatten(operands)
        value = Value(result)
        self.append(Op(op, flat, attrs, (value,), self.span, layout, region))
        return value

    def call(self, func: Term, args: Sequence[Term], kwargs: Mapping[str, Term] | None = None) -> Term:
        """The term that a call of a term gives, as in tile code. Only the front end's builder can do that."""
        raise NotImplementedError("this builder knows no Python")

    def special_method(self, cls: type, name: str) -> Any:
        """The special method that instances of a class use, or None; from now on the program depends on it, or on
        there being none. No code of the metaclass runs. Only the front end's builder can do that.
        """
        raise NotImplementedError("this builder knows no Python")

    def reach(self, obj: Any) -> None:
        """Python code is about to read an object: from now on the program depends on all that it holds. Only the front
        end's builder can do that.
        """
        raise NotImplementedError("this builder knows no Python")

    @contextmanager
    def combine_body(self, op: OpDef, types: Sequence[LeafType]):
        """Build the body of a user's combine function: a Region with one parameter per type.

        It may hold only pure code without run-time branches [RED-11]. The caller ends it with a Yield.
        """
        region = Region(params=tuple(Value(t) for t in types))
        with self.into(region):
            yield region

    @contextmanager
    def element_body(self, types: Sequence[LeafType]):
        """Build the body of an element function: a Region with one scalar parameter per type, which may branch and
        loop. The caller ends it with a Yield.
        """
        region = Region(params=tuple(Value(t) for t in types))
        with self.into(region):
            yield region

    def into(self, region: Region) -> _TemporaryAttribute:
        """Within the `with` block, append to another region: `with b.into(Region()) as region:`."""
        return _TemporaryAttribute(self, "region", region)

    def at(self, span: Span) -> _TemporaryAttribute:
        """Within the `with` block, give nodes this span."""
        return _TemporaryAttribute(self, "span", span)


class _TemporaryAttribute:
    """A context manager: within its `with` block, an attribute of a builder has another value."""

    __slots__ = ("builder", "name", "value", "outer")

    def __init__(self, builder: Builder, name: str, value: Any):
        self.builder, self.name, self.value = builder, name, value

    def __enter__(self) -> Any:
        self.outer = getattr(self.builder, self.name)
        setattr(self.builder, self.name, self.value)
        return self.value

    def __exit__(self, *_) -> None:
        setattr(self.builder, self.name, self.outer)
