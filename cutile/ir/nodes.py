"""The whole IR on one screen: structured, typed, SSA.

A program is a `Kernel`: parameters and one region. A region is a list of nodes that ends in exactly one terminator:
`Yield`, `Continue`, `Break` or `Return`. It has no terminator if control cannot reach its end; its last node is then an
If without a Yield, a `while True` without a Break, or a Frame without a Return. Values are defined once. They are
visible in the rest of their region and in the regions nested there. Nodes compare by identity. Passes build new lists
of nodes and may share nodes with the old ones.

Names used throughout the package: `v` value, `n` node, `t` type, `b` builder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cutile._support.structs import field, structure
from cutile.spans import Span
from cutile.types import LeafType

if TYPE_CHECKING:
    from cutile.ops._op import OpDef


class Value:
    """The result of a node, or a parameter of a kernel, loop or region. `name` is only a hint for printing."""

    __slots__ = ("type", "name")

    def __init__(self, type: LeafType, name: str | None = None):
        self.type = type
        self.name = name

    def __repr__(self) -> str:
        return f"<Value {self.name or hex(id(self))}: {self.type}>"


@structure(eq=False, slots=True)
class Region:
    """A list of nodes; the last one is a terminator if control can reach it. Only a combine body has parameters."""

    nodes: list[Node] = field(default_factory=list)
    params: tuple[Value, ...] = ()

    @property
    def terminator(self) -> Node:
        return self.nodes[-1]


@structure(eq=False, slots=True)
class Op:
    """One application of an op. `operands` are flat; `layout` says how they group (see `OpDef.group`).

    `attrs` are compile-time arguments: ints, floats, bools, strings, None, dtypes, enum members and tuples of these.
    `region` is the user's combine function of a reduce or scan.
    """

    op: OpDef
    operands: tuple[Value, ...]
    attrs: dict[str, Any]
    results: tuple[Value, ...]
    span: Span
    layout: tuple[int | None, ...] | None = None
    region: Region | None = None

    @property
    def operand(self) -> Value:
        """The operand of an op that has one."""
        v, = self.operands
        return v

    @property
    def result(self) -> Value:
        """The result of an op that has one."""
        v, = self.results
        return v


@structure(eq=False, slots=True)
class If:
    """`cond` is a bool_ scalar. A branch ends in a Yield of the results, or in a Break, Continue or Return."""

    cond: Value
    then: Region
    orelse: Region
    results: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class For:
    """`for iv in range(start, stop, step)`: runs while iv < stop; bounds have the type of `iv` [LOOP-1].

    `params` are the carried values inside the body, `inits` their values before the loop. The body ends in
    `Continue(next values)`. The results are the carried values at the exit: the operands of Break, or the last ones.
    """

    iv: Value
    start: Value
    stop: Value
    step: Value
    inits: tuple[Value, ...]
    params: tuple[Value, ...]
    body: Region
    results: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class While:
    """`cond` ends in Yield(bool_ scalar) and sees `params`; the body ends in Continue(next values).

    `cond` is None for `while True:`, whose only exits are Break and Return. Its Breaks may have more operands than
    there are params: first the carried values, then locals of the body that are defined after the loop [LOOP-7].
    `results` match the operands of Break.
    """

    cond: Region | None
    inits: tuple[Value, ...]
    params: tuple[Value, ...]
    body: Region
    results: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Frame:
    """A call: the body of the callee, typed for this call, in the place of the call. `Return` leaves it.

    `span` is the call site. `function` and `def_span` are the callee's name and definition, for the debugger's stack.
    """

    function: str
    def_span: Span
    body: Region
    results: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Yield:
    """The end of a branch of If, of a While condition, or of a combine body. It hands its operands out."""

    operands: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Break:
    """Leaves the innermost loop with its results."""

    operands: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Continue:
    """Goes on with the next iteration of the innermost loop, with its carried values."""

    operands: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Return:
    """Leaves the innermost Frame with its results, or the kernel."""

    operands: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Bind:
    """Tells debuggers that the user's variable `name` denotes `template` from here on. It does not use the values.

    Without a name it only marks the line of a statement that has no other node, such as `pass`.
    A template is a `Value`, a `Known` (a compile-time value), a `Shown` (a text) or a `Group` of templates.
    `free` says that it is a free variable of a function, shown again in the frame of a call: nothing is assigned.
    """

    name: str
    template: Template
    span: Span
    free: bool = False


@structure(frozen=True, slots=True)
class Known:
    """A compile-time value in a template: an int, float, bool, str or None."""

    value: Any


@structure(frozen=True, slots=True)
class Shown:
    """Any other compile-time object in a template, such as a function or a module: the text that debuggers show."""

    text: str


@structure(frozen=True, slots=True)
class Group:
    """A structure in a template: `kind` is "tuple", or the name of a dataclass with the fields `names`."""

    kind: str
    names: tuple[str, ...]
    items: tuple[Template, ...]


Template = Value | Known | Shown | Group
Terminator = Yield | Break | Continue | Return
Node = Op | If | For | While | Frame | Bind | Yield | Break | Continue | Return
TERMINATORS = (Yield, Break, Continue, Return)
LOOPS = (For, While)
_DEFINING = frozenset({Op, If, For, While, Frame})


@structure(eq=False)
class Kernel:
    """A typed program. `param_names[i]` is the user's name of the parameter that `params[i]` belongs to."""

    name: str
    params: tuple[Value, ...]
    param_names: tuple[str, ...]
    body: Region
    span: Span


def regions_of(n: Node) -> tuple[Region, ...]:
    """The regions nested directly in a node."""
    if type(n) is Op:  # most are; this is quick
        return () if n.region is None else (n.region,)
    match n:
        case Bind():
            return ()
        case If():
            return (n.then, n.orelse)
        case For() | Frame():
            return (n.body,)
        case While():
            return (n.body,) if n.cond is None else (n.cond, n.body)
        case _:
            return ()


def uses_of(n: Node) -> tuple[Value, ...]:
    """The values that a node reads itself, not those that its nested regions read. A Bind reads none."""
    if type(n) is Op:  # most are; this is quick
        return n.operands
    match n:
        case Yield() | Break() | Continue() | Return():
            return n.operands
        case If():
            return (n.cond,)
        case For():
            return (n.start, n.stop, n.step, *n.inits)
        case While():
            return n.inits
        case _:
            return ()


def results_of(n: Node) -> tuple[Value, ...]:
    """The values that a node defines for the rest of its region."""
    return n.results if type(n) in _DEFINING else ()


def inner_of(n: Node) -> tuple[Value, ...]:
    """The values that a node defines inside its regions: induction variable, carried values, combine parameters."""
    if type(n) is Op:  # most are; this is quick
        return () if n.region is None else n.region.params
    match n:
        case For():
            return (n.iv, *n.params)
        case While():
            return n.params
        case _:
            return ()
