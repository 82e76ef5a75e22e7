"""The whole IR on one screen: structured, typed, SSA.

A program is a `Kernel`: parameters and one region. A region is a list of nodes that ends in exactly one terminator
(`Yield`, `Continue`, `Break` or `Return`); it has none where control cannot reach its end, which is then an If without
a Yield, a `while True` without a Break, or a Frame without a Return. Values are defined once and are visible in the
rest of their region and in the regions nested there. Nodes compare by identity; passes build new lists of nodes and may
share old ones.

Names used throughout the package: `v` value, `n` node, `t` type, `b` builder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cutile._support.structs import field, structure
from cutile.errors import Span
from cutile.types import LeafType

if TYPE_CHECKING:
    from cutile.ops._op import OpDef


class Value:
    """The result of a node or the parameter of a region. `name` is only a hint for printing."""

    __slots__ = ("type", "name")

    def __init__(self, type: LeafType, name: str | None = None):
        self.type = type
        self.name = name

    def __repr__(self) -> str:
        return f"<Value {self.name or hex(id(self))}: {self.type}>"


@structure(eq=False, slots=True)
class Region:
    """A list of nodes; the last is a terminator if the end can be reached. Only a combine body has parameters."""

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


@structure(eq=False, slots=True)
class If:
    """`cond` is a bool_ scalar. A branch that reaches its end yields the results; others leave by Break and so on."""

    cond: Value
    then: Region
    orelse: Region
    results: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class For:
    """`for iv in range(start, stop, step)`: runs while iv < stop; bounds have the type of `iv` [LOOP-1].

    `params` are the carried values inside the body, `inits` their values before it. Falling off the body is a
    `Continue(next values)`. The results are the carried values on exit: what Break carries, or the last ones.
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

    `cond` is None for `while True:`, whose only exits are Break and Return; then a Break may carry more operands than
    there are params: the first len(params) are the carried values, the rest locals of the body that are defined
    after the loop [LOOP-7]. `results` match what Break carries.
    """

    cond: Region | None
    inits: tuple[Value, ...]
    params: tuple[Value, ...]
    body: Region
    results: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Frame:
    """A call: the callee's body, typed for this call, standing where it is called. `Return` leaves it.

    `span` is the call site; `function` and `def_span` name the callee for the debugger's stack.
    """

    function: str
    def_span: Span
    body: Region
    results: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Yield:
    """End of a branch of If, of a While condition, or of a reduce body."""

    operands: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Break:
    operands: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Continue:
    operands: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Return:
    operands: tuple[Value, ...]
    span: Span


@structure(eq=False, slots=True)
class Bind:
    """From here on the user's variable `name` denotes `template`: for the debugger only, never a use.

    Without a name it tells only that control came here: at a statement that leaves nothing else, such as `pass`.
    A template is a `Value`, a `Known` (compile-time value, shown by its repr), or a `Group` of templates.
    """

    name: str
    template: Template
    span: Span


@structure(frozen=True, slots=True)
class Known:
    """A compile-time value in a template. `value` is an int, float, bool, str or None; other things come as `Shown`."""

    value: Any


@structure(frozen=True, slots=True)
class Shown:
    """A compile-time thing that a debugger can only show: a function, a module, a view."""

    text: str


@structure(frozen=True, slots=True)
class Group:
    """Structure in a template: `kind` is "tuple", or the name of a dataclass whose fields are `names`."""

    kind: str
    names: tuple[str, ...]
    items: tuple[Template, ...]


Template = Value | Known | Shown | Group
Terminator = Yield | Break | Continue | Return
Node = Op | If | For | While | Frame | Bind | Yield | Break | Continue | Return
TERMINATORS = (Yield, Break, Continue, Return)
_DEFINING = (Op, If, For, While, Frame)


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
    match n:
        case Op():
            return () if n.region is None else (n.region,)
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
    """The values that a node itself reads, nested regions apart. A Bind reads none."""
    match n:
        case Op() | Yield() | Break() | Continue() | Return():
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
    return n.results if isinstance(n, _DEFINING) else ()


def inner_of(n: Node) -> tuple[Value, ...]:
    """The values that a node defines inside its regions: induction variable, carried values, combine parameters."""
    match n:
        case For():
            return (n.iv, *n.params)
        case While():
            return n.params
        case Op(region=Region() as r):
            return r.params
        case _:
            return ()
