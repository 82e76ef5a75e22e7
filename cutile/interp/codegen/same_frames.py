"""Which calls of a kernel run the same code: a helper that is called many times is emitted and compiled once.

Two frames run the same code if their bodies differ only in the values that they capture, and in call sites.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from cutile.interp.codegen.batch_analysis import BatchFacts, block_function
from cutile.interp.codegen.emit import Liveness
from cutile.ir.nodes import Bind, Frame, Node, Op, Region, Return, Value
from cutile.ir.terms import number_key
from cutile.ir.walk import regions
from cutile.ops._op import HOST
from cutile.spans import Span


def same_frames(root: Region, facts: BatchFacts, liveness: Liveness, threaded: Callable[[Region], bool]) -> dict[
        Frame, int]:
    """A number for each frame whose function may serve other frames: those with the same number, whose captured values
    (`liveness`) it takes in the same order. `threaded`: whether the function of a region may begin a new thread.

    Frames that are called once or linked, have control flow, or do what the host sees, have no number.
    """
    frames = [n for _, n in regions(root) if type(n) is Frame]
    calls = Counter(map(_callee, frames))
    repeated = [n for n in frames if calls[_callee(n)] > 1]
    bodies = _Bodies(facts, liveness)
    for n in reversed(repeated):  # inner frames first
        key = bodies.key(n)
        if key is not None:
            bodies.numbers[n] = bodies.known.setdefault((key, threaded(n.body)), len(bodies.known))
    return bodies.numbers


def _callee(n: Frame) -> tuple:
    return n.function, n.def_span.filename, n.def_span.line, n.def_span.col


class _Bodies:
    """Descriptions of bodies that are equal where the code is the same."""

    def __init__(self, facts: BatchFacts, liveness: Liveness):
        self.facts, self.liveness = facts, liveness
        self.numbers: dict[Frame, int] = {}
        self.known: dict[tuple, int] = {}  # of bodies
        self.types: dict[Any, int] = {}  # a number for each type
        self.by_id: dict[int, int] = {}  # the same by identity, since types are slow to compare

    def key(self, frame: Frame) -> Hashable | None:
        """The description of a frame's body; None if its function can serve no other frame."""
        filename = frame.def_span.filename
        if self.liveness.links[frame.body] is not None:
            return None  # keys of an environment belong to one frame
        local: dict[Value, int] = {}  # values in the order in which the body reads or defines them
        out: list[Hashable] = [_callee(frame), self.of_types(frame.results)]
        for n in frame.body.nodes:
            kind = type(n)
            if kind is Bind or n in self.facts.skipped:
                if n.span.filename == filename:  # code may cover its line
                    out += (kind, n.span.line)
                continue
            inner = self.inner(n)
            if inner is None:
                return None
            reads = self.liveness.reads(n)
            for v in reads:
                local.setdefault(v, len(local))
            results = () if kind is Return else n.results
            for v in results:
                local[v] = len(local)
            out += (kind, _place(n.span, filename), tuple([local[v] for v in reads]), inner, self.of_types(reads),
                    self.of_types(results))
        return tuple(out)

    def inner(self, n: Node) -> Hashable | None:
        """What a node does, apart from the values that it reads from locals."""
        kind = type(n)
        if kind is Op:
            return None if n.region is not None or n.op.effect == HOST else self.op(n)
        if kind is Frame:
            return self.numbers.get(n)
        return self.given(n) if kind is Return else None

    def op(self, n: Op) -> Hashable:
        facts = self.facts
        reusable = facts.reusable.get(n)
        return (n.op, n.layout, self.given(n), *n.attrs, *map(_attribute, n.attrs.values()),
                None if reusable is None else n.operands.index(reusable), n in facts.implicit, n in facts.stored_by,
                n in facts.stores, n in facts.as_stored, n in facts.moved, facts.unread(n))

    def given(self, n: Op | Return) -> tuple:
        """The operands that are no locals: constants, and functions of block indices."""
        if len(self.liveness.reads(n)) == len(n.operands):
            return ()
        found: list[Hashable] = []
        for i, v in enumerate(n.operands):
            constant, index = self.facts.constants.get(v), self.facts.indices.get((n, i))
            found.append(id(constant) if constant is not None else index and block_function(index))
        return (*found, self.of_types(n.operands))

    def of_types(self, values: Iterable[Value]) -> tuple[int, ...]:
        found = []
        for v in values:
            number = self.by_id.get(id(v.type))
            if number is None:
                number = self.by_id[id(v.type)] = self.types.setdefault(v.type, len(self.types))
            found.append(number)
        return tuple(found)


def _attribute(value: Any) -> Hashable:
    """Equal for equal attributes. Numbers are equal if they have one type and the same bits."""
    if isinstance(value, int | float):
        return number_key(value)
    return tuple(map(_attribute, value)) if isinstance(value, tuple) else value


def _place(span: Span | None, filename: str) -> tuple | None:
    """Where code of a file stands; what took the place of a call stands at the call."""
    while span is not None and span.filename != filename:
        span = span.call_site
    return span and (span.line, span.col, span.end_line, span.end_col)
