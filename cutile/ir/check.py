"""The checker of the IR: `check(kernel)` raises TileInternalError at the first node that breaks a rule.

A failure is a bug of the pass or the front end that made the node, never of the user. Besides types, it checks:

* A value is defined once, and used only after its definition, in the same region or in a region nested there.
* A region ends in its only terminator:

      body of a kernel or frame                        Return
      branch of If, While condition, combine body      Yield
      body of a loop                                   Continue

  Break, Continue and Return may also end any region inside the loop, frame or kernel that they leave, but not across a
  condition or a combine body.
* A region whose end cannot be reached has no terminator. Its last node that is no Bind is an If without a Yield, a
  `while True` without Break, or a Frame without Return.
* A combine body takes 2n scalars and yields n. It holds only ops without memory effects, frames and Binds.
* The body of an element function takes a scalar for each operand of its op and yields one for each result. It may
  branch and loop, also in a combine body.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from cutile._support.structs import field, structure
from cutile.dtypes import DType, bool_
from cutile.errors import TileInternalError
from cutile.ir.nodes import (
    TERMINATORS,
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
    Value,
    While,
    Yield,
    inner_of,
    results_of,
    uses_of,
)
from cutile.ir.text import node_text, to_text
from cutile.ir.walk import returns, shown_values, walk
from cutile.spans import Span
from cutile.types import ArrayType, LeafType, ListType, TileType, TokenType

if TYPE_CHECKING:
    from cutile.ops._op import OpDef

CONDITION = TileType(bool_)
ATTRS = (bool, int, float, str, type(None), DType)
MEMORY = ("read", "write", "atomic")
# Tests of classes that each node or value goes through: made once, which is quicker.
LEAVES = (TileType, ArrayType, ListType, TokenType)
OF_COMBINE_BODIES = (Op, Frame, Bind, Yield, Return)
WITH_REGIONS = (Op, If, For, While, Frame)


def check(kernel: Kernel) -> None:
    """Raise TileInternalError, which names the node, if the kernel is not valid IR."""
    _Checker(kernel).run()


@structure(slots=True)
class _Checked:
    """A region that is being checked, with what its terminators may leave."""

    role: str  # "body of the kernel", "branch of if", ...
    region: Region
    owner: Node | None
    yields: Sequence[LeafType] | None = None  # the types that Yield gives; None: it may not end in Yield
    loop: For | While | None = None  # the loop that Break and Continue leave, if they may
    leaves: Frame | Kernel | None = None  # what Return leaves, if it may
    combine: bool = False  # whether it is in a combine body
    elements: bool = False  # whether it is in the body of an element function, which may branch
    defined: list[Value] = field(default_factory=list)  # values that are visible only here
    rest: Iterator[Node] = iter(())  # nodes that are not checked yet


class _Checker:
    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.visible: set[Value] = set()
        self.defined: set[Value] = set()
        self.nodes: set[Node] = set()

    def fail(self, n: Node | None, what: str) -> NoReturn:
        k = self.kernel
        text = f"{what}, in: {node_text(n, k)}" if n is not None else what
        notes = [(f"the IR of {k.name}:\n" + to_text(k, spans=False, lenient=True), None)]
        raise TileInternalError(text, n.span if n is not None else k.span, notes=notes)

    def run(self) -> None:
        k = self.kernel
        if len(k.params) != len(k.param_names):
            raise TileInternalError(f"kernel {k.name}: {len(k.params)} params and {len(k.param_names)} names", k.span)
        self.define(None, k.params, None)
        stack = [self.enter(_Checked("body of the kernel", k.body, None, leaves=k))]
        while stack:
            checked = stack[-1]
            n = next(checked.rest, None)
            if n is None:
                self.visible.difference_update(checked.defined)
                stack.pop()
                continue
            self.node(n, checked)
            if type(n) in WITH_REGIONS and (type(n) is not Op or n.region is not None):
                stack += [self.enter(p) for p in reversed(nested_regions(n, checked))]

    # -------------------------------------------------------------- values

    def enter(self, checked: _Checked) -> _Checked:
        nodes = checked.region.nodes
        if not nodes or not isinstance(nodes[-1], TERMINATORS):
            last = next((n for n in reversed(nodes) if not isinstance(n, Bind)), checked.owner)
            if last is checked.owner or falls_through(last):
                self.fail(nodes[-1] if nodes else checked.owner, f"the {checked.role} does not end in a terminator")
        checked.rest = self.region(checked)
        return checked

    def region(self, checked: _Checked) -> Iterator[Node]:
        """Yields a region's nodes; defines the owner's values first, then each node's results after it.

        So branches do not see each other's values.
        """
        n = checked.owner
        if isinstance(n, While) and n.cond is not None and checked.region is n.body:
            self.show(n.params, checked)  # the condition has defined them
        else:
            self.define(n, inner_of(n) if n is not None else (), checked)
        if checked.region.params and not isinstance(n, Op):
            self.fail(n, f"the {checked.role} has parameters")
        for n in checked.region.nodes:
            yield n
            if results := results_of(n):
                self.define(n, results, checked)

    def define(self, n: Node | None, values: Sequence[Value], checked: _Checked | None) -> None:
        for v in values:
            if v in self.defined:
                self.fail(n, f"{_show(v)} is defined twice")
            if not isinstance(v.type, LEAVES):
                self.fail(n, f"{_show(v)} has {v.type!r} for a type")
            self.defined.add(v)
        self.show(values, checked)

    def show(self, values: Sequence[Value], checked: _Checked | None) -> None:
        self.visible.update(values)
        if checked is not None:
            checked.defined += values

    def node(self, n: Node, checked: _Checked) -> None:
        if n in self.nodes:
            self.fail(n, "this node stands in two places")
        self.nodes.add(n)
        if not isinstance(n.span, Span):
            raise TileInternalError(f"a node without a span: {node_text(n, self.kernel)}")
        read = shown_values(n.template) if type(n) is Bind else uses_of(n)  # a Bind uses none
        for v in read:
            if v not in self.visible:
                why = "is not visible here" if v in self.defined else "is used before its definition"
                self.fail(n, f"{_show(v)} {why}")
        if isinstance(n, TERMINATORS) and n is not checked.region.nodes[-1]:
            self.fail(n, "a terminator stands before the end of its region")
        if checked.combine and not checked.elements and not isinstance(n, OF_COMBINE_BODIES):
            self.fail(n, "a combine body holds control flow")
        _RULES[type(n)](self, n, checked)

    def same_types(self, n: Node, what: str, got: Sequence[Value], want: Sequence[LeafType]) -> None:
        have = [v.type for v in got]
        if have != list(want):
            self.fail(n, f"{what}: ({_types(have)}) where ({_types(want)}) is expected")

    # -------------------------------------------------------------- nodes

    def op(self, n: Op, checked: _Checked) -> None:
        self.operands(n)
        attr_names, required, open_ended = attr_parameters(n.op)
        if not n.attrs.keys() >= required:
            missing = required - n.attrs.keys()
            self.fail(n, f"attribute {', '.join(sorted(missing))} of {n.op.name} is missing")
        if not (open_ended or n.attrs.keys() <= attr_names):
            extra = n.attrs.keys() - attr_names
            self.fail(n, f"{n.op.name} has no attribute {', '.join(sorted(extra))}")
        for name, value in n.attrs.items():
            if not is_attr(value):
                self.fail(n, f"attribute {name} cannot hold {value!r}")
        if n.op.scalar and getattr(n.results[0].type, "shape", ()):
            self.fail(n, f"a {n.op.name} is a scalar")
        if checked.combine and (n.op.effect in MEMORY or n.region is not None and n.op.accumulates):
            self.fail(n, f"{n.op.name} stands in a combine body")

        if n.region is not None:
            params = n.region.params
            if any(not isinstance(v.type, TileType) or v.type.shape for v in params):
                self.fail(n, "a combine body takes scalars")
            if n.op.accumulates:
                half = params[:len(params) // 2]
                self.same_types(n, "parameters of the combine body", params, _of(half) * 2)
            else:
                x = n.op.named(n.operands, n.layout)["x"]
                self.same_types(n, "parameters of the element function", params, _scalars(x))

    def operands(self, n: Op) -> None:
        names, layout = n.op.operands, n.layout
        if not n.op.variadic:
            if layout is not None or len(n.operands) != len(names):
                self.fail(n, f"{len(n.operands)} operands for ({' '.join(names)})")
            return
        if layout is None or len(layout) != len(names):
            self.fail(n, f"operand layout {layout} for ({' '.join(names)})")
        for name, count in zip(names, layout, strict=True):
            if not (name[0] == "*" and count is not None or count == 1 or name[-1] == "?" and count is None):
                self.fail(n, f"operand {name} occurs {count} times")
        if sum(c or 0 for c in layout) != len(n.operands):
            self.fail(n, f"{len(n.operands)} operands for layout {layout}")

    def if_(self, n: If, checked: _Checked) -> None:
        self.same_types(n, "condition", (n.cond,), (CONDITION,))

    def for_(self, n: For, checked: _Checked) -> None:
        self.same_types(n, "bounds", (n.start, n.stop, n.step), (n.iv.type,) * 3)
        self.carried(n)
        self.same_types(n, "results", n.results, _of(n.params))

    def while_(self, n: While, checked: _Checked) -> None:
        self.carried(n)
        if falls_through(n):  # without an exit, a `while True` needs no results
            results = n.results if n.cond is not None else n.results[:len(n.params)]
            self.same_types(n, "results", results, _of(n.params))

    def carried(self, n: For | While) -> None:
        self.same_types(n, "values before the loop", n.inits, _of(n.params))

    def frame(self, n: Frame, checked: _Checked) -> None:
        if not isinstance(n.def_span, Span):
            self.fail(n, "a frame without the span of its function")

    def bind(self, n: Bind, checked: _Checked) -> None:
        stack = [n.template]
        while stack:
            match stack.pop():
                case Group() as g:
                    if g.names and len(g.names) != len(g.items):
                        self.fail(n, f"{len(g.names)} names for {len(g.items)} items")
                    stack += g.items
                case Known(value) if not is_attr(value):
                    self.fail(n, f"a template cannot hold {value!r}")
                case Value() | Known() | Shown():
                    pass
                case other:
                    self.fail(n, f"a template cannot hold {other!r}")

    # -------------------------------------------------------------- terminators

    def yield_(self, n: Yield, checked: _Checked) -> None:
        if checked.yields is None:
            self.fail(n, f"the {checked.role} cannot end in yield")
        self.same_types(n, f"yield of the {checked.role}", n.operands, checked.yields)

    def break_(self, n: Break, checked: _Checked) -> None:
        if checked.loop is None:
            self.fail(n, "break outside a loop, or across a condition or combine body")
        self.same_types(n, "break", n.operands, _of(checked.loop.results))

    def continue_(self, n: Continue, checked: _Checked) -> None:
        if checked.loop is None:
            self.fail(n, "continue outside a loop, or across a condition or combine body")
        self.same_types(n, "continue", n.operands, _of(checked.loop.params))

    def return_(self, n: Return, checked: _Checked) -> None:
        if checked.leaves is None:
            self.fail(n, "return outside a frame, or across a condition or combine body")
        want = _of(checked.leaves.results) if isinstance(checked.leaves, Frame) else ()
        self.same_types(n, "return", n.operands, want)


_RULES = {
    Op: _Checker.op, If: _Checker.if_, For: _Checker.for_, While: _Checker.while_, Frame: _Checker.frame,
    Bind: _Checker.bind, Yield: _Checker.yield_, Break: _Checker.break_, Continue: _Checker.continue_,
    Return: _Checker.return_,
}


def nested_regions(n: Node, outer: _Checked) -> list[_Checked]:
    """The nested regions of a node, each with what its terminators may leave."""
    loop, leaves, combine, elements = outer.loop, outer.leaves, outer.combine, outer.elements
    match n:
        case Op(region=Region() as region) if n.op.accumulates:
            return [_Checked("combine body", region, n, _of(region.params[:len(region.params) // 2]), combine=True)]
        case Op(region=Region() as region):
            return [_Checked("body of an element function", region, n, _scalars(n.results), combine=combine,
                             elements=True)]
        case If():
            return [_Checked("branch of if", side, n, _of(n.results), loop, leaves, combine, elements)
                    for side in (n.then, n.orelse)]
        case For():
            return [_Checked("body of for", n.body, n, None, n, leaves, combine, elements)]
        case While():
            body = _Checked("body of while", n.body, n, None, n, leaves, combine, elements)
            cond = [] if n.cond is None else [_Checked("condition of while", n.cond, n, (CONDITION,))]
            return [*cond, body]
        case Frame():
            return [_Checked("body of a frame", n.body, n, None, None, n, combine, elements)]
        case _:
            return []


def falls_through(n: Node) -> bool:
    """Whether control may go on to the node after this one."""
    match n:
        case If():
            return any(side.nodes and isinstance(side.nodes[-1], Yield) for side in (n.then, n.orelse))
        case While(cond=None):
            own = walk(n.body, lambda inner: not isinstance(inner, For | While | Frame))
            return any(isinstance(inner, Break) for inner in own)
        case Frame():
            return bool(returns(n.body))
        case _:
            return not isinstance(n, TERMINATORS)


@functools.cache
def attr_parameters(op: OpDef) -> tuple[set[str], set[str], bool]:
    """The names of the attributes of an op, of those without a default, and whether it takes any other attributes.

    They are the parameters of its meaning after the operands, without those that the framework fills.
    """
    given = list(inspect.signature(op.meaning).parameters.values())[len(op.operands):]
    params = {p.name: p for p in given if p.name not in op.given and p.kind is not p.VAR_KEYWORD}
    required = {n for n, p in params.items() if p.default is p.empty}
    return set(params), required, any(p.kind is p.VAR_KEYWORD for p in given)


def is_attr(value: Any) -> bool:
    """Whether an attribute of an op may have a value."""
    if isinstance(value, tuple):
        return type(value) is tuple and all(map(is_attr, value))
    return type(value) in ATTRS or isinstance(value, enum.Enum) and type(value).__module__ == "cutile.types"


def _of(values: Sequence[Value]) -> tuple[LeafType, ...]:
    return tuple(v.type for v in values)


def _scalars(values: Sequence[Value]) -> tuple[LeafType, ...]:
    """The types of single elements of tiles."""
    return tuple(TileType(v.type.dtype) for v in values)


def _types(types: Sequence[LeafType]) -> str:
    return ", ".join(map(str, types))


def _show(v: Value) -> str:
    return f"value {v.name or '(unnamed)'} of type {v.type}"
