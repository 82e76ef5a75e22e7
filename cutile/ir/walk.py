"""The one walk over the IR and the one way to rewrite it, and what they give: uses, definitions, free values.

Frames nest up to 1000 deep, the limit of calls, so no function here recurses on Python's stack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from cutile._support.structs import replace
from cutile.ir.nodes import (
    TERMINATORS,
    Bind,
    For,
    Frame,
    Group,
    If,
    Kernel,
    Node,
    Op,
    Region,
    Return,
    Template,
    Value,
    While,
    Yield,
    inner_of,
    regions_of,
    results_of,
    uses_of,
)
from cutile.types import TileType


def walk(region: Region, enter: Callable[[Node], bool] | None = None) -> Iterator[Node]:
    """Nodes in program order, each before the nodes nested in it. Those are left out if `enter(node)` is false."""
    stack = [iter(region.nodes)]
    while stack:
        for n in stack[-1]:
            yield n
            kind = type(n)
            if kind is Bind or kind is Op and n.region is None:  # most are; this is quick
                continue
            inner = regions_of(n)
            if inner and (enter is None or enter(n)):
                stack.extend(iter(nested.nodes) for nested in reversed(inner))
                break
        else:
            stack.pop()


_nodes: WeakKeyDictionary[Kernel, list[Node]] = WeakKeyDictionary()


def nodes_of(kernel: Kernel) -> Sequence[Node]:
    """The nodes of a kernel, as `walk` gives them. They are listed once: a first launch looks at them in many ways."""
    found = _nodes.get(kernel)
    if found is None:
        found = _nodes[kernel] = list(walk(kernel.body))
    return found


def regions(region: Region) -> Iterator[tuple[Region, Node | None]]:
    """This region and all nested ones, each with the node that holds it (None for this one)."""
    yield region, None
    stack = [iter(region.nodes)]
    while stack:
        for n in stack[-1]:
            kind = type(n)
            if kind is Bind or kind is Op and n.region is None:  # most are; this is quick
                continue
            inner = regions_of(n)
            if inner:
                yield from [(nested, n) for nested in inner]
                stack.extend(iter(nested.nodes) for nested in reversed(inner))
                break
        else:
            stack.pop()


def depths(region: Region) -> dict[Region, int]:
    """This region and all nested ones, each with the number of regions around it (0 for this one)."""
    found, pending = {region: 0}, [region]
    for outer in pending:
        inner = [nested for n in outer.nodes if type(n) is not Op or n.region is not None for nested in regions_of(n)]
        found.update(dict.fromkeys(inner, found[outer] + 1))
        pending += inner
    return found


def free_values(region: Region) -> tuple[Value, ...]:
    """The values that a region, or a region nested in it, reads but does not define, in order of first use.

    Binds do not read; `shown_values` gives the values that they show.
    """
    free: dict[Value, None] = {}
    defined: set[Value] = set(region.params)
    for n in walk(region):
        free.update(dict.fromkeys(v for v in uses_of(n) if v not in defined))
        defined.update(results_of(n), inner_of(n))
    return tuple(free)


def uses(region: Region) -> dict[Value, list[Node]]:
    """The nodes that read each value, in program order; a node that reads a value twice is listed twice."""
    found: dict[Value, list[Node]] = defaultdict(list)
    for n in walk(region):
        for v in uses_of(n):
            found[v].append(n)
    return dict(found)


def definitions(region: Region) -> dict[Value, Node]:
    """The node that defines each value, as a result or for its nested regions."""
    return {v: n for n in walk(region) for v in (*results_of(n), *inner_of(n))}


def homes(region: Region) -> dict[Value, Region]:
    """The region that holds the node of which a value is a result. Parameters of loops and regions are not listed."""
    return {v: home for home, _ in regions(region) for n in home.nodes for v in results_of(n)}


def shown_values(t: Template) -> tuple[Value, ...]:
    """The values in a Bind's template, in order."""
    if isinstance(t, Value):
        return (t,)
    found, pending = [], [t]
    while pending:
        t = pending.pop()
        if isinstance(t, Value):
            found.append(t)
        elif isinstance(t, Group):
            pending += reversed(t.items)
    return tuple(found)


def named_tiles(name: str, t: Template) -> Iterator[tuple[str, Value]]:
    """The tiles that a variable denotes by its template, each with its name: `x`, `x[0]` in a tuple, `x.field` in a
    dataclass.
    """
    if isinstance(t, Value):
        if isinstance(t.type, TileType):
            yield name, t
    elif isinstance(t, Group):
        for i, item in enumerate(t.items):
            yield from named_tiles(f"{name}[{i}]" if t.kind == "tuple" else f"{name}.{t.names[i]}", item)


def bound_values(region: Region) -> set[Value]:
    """Every value that some Bind shows."""
    return {v for n in walk(region) if isinstance(n, Bind) for v in shown_values(n.template)}


def returns(body: Region) -> list[Return]:
    """The Returns that leave this body of a frame or kernel, without those that leave nested frames."""
    return [n for n in walk(body, lambda n: not isinstance(n, Frame)) if isinstance(n, Return)]


def holders(body: Region, *kinds: type[Node]) -> set[Node]:
    """The nodes in the body of a frame, loop or kernel that hold a node of these kinds, at any depth.

    Nodes inside nested frames do not count.
    """
    found: set[Node] = set()
    outer = [(body, None), *((region, n) for n in walk(body, lambda n: not isinstance(n, Frame))
                             if not isinstance(n, Frame) for region in regions_of(n))]
    for region, holder in reversed(outer):  # inner regions first
        if holder is not None and any(isinstance(n, kinds) or n in found for n in region.nodes):
            found.add(holder)
    return found


def only_op(region: Region) -> Op | None:
    """The op that is all that a region does, functions that it calls included, if it yields the op's results. Its
    operands are parameters of the region, or come from outside.
    """
    found, values = only_ops(region)
    return found[0] if len(found) == 1 and values == list(found[0].results) else None


def only_ops(region: Region) -> tuple[list[Op], list[Value] | None]:
    """The ops of a region that does nothing else, functions that it calls included, and what it yields. None in place
    of that if it has other nodes; some of its ops may be missing then.
    """
    found: list[Op] = []
    values = _only_ops(region, found, {})
    return found, values


def _only_ops(region: Region, found: list[Op], same: dict[Value, Value], calls: int = 16) -> list[Value] | None:
    """Collect the ops of a region. Returns what it yields; None if it has other nodes, or that many calls in calls.

    `same` gets what results of calls are.
    """
    for n in region.nodes:
        if isinstance(n, Yield | Return):
            return [same.get(v, v) for v in n.operands]
        if isinstance(n, Op):
            found.append(replace(n, operands=tuple(same.get(v, v) for v in n.operands)))
        elif isinstance(n, Frame) and calls:
            results = _only_ops(n.body, found, same, calls - 1)
            if results is None:
                return None
            same.update(zip(n.results, results, strict=True))
        elif not isinstance(n, Bind):
            return None
    return None


# ------------------------------------------------------------------ rewriting


def substitute(n: Node, new: Mapping[Value, Value]) -> Node:
    """`n` with other values in place of those that it reads or shows itself; `n` if none changes."""
    if not new:
        return n

    def sub(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(new.get(v, v) for v in values)

    if isinstance(n, Bind):
        changed = not new.keys().isdisjoint(shown_values(n.template))
        return replace(n, template=_sub_template(n.template, new)) if changed else n
    if new.keys().isdisjoint(uses_of(n)):
        return n
    match n:
        case If():
            return replace(n, cond=new.get(n.cond, n.cond))
        case For():
            start, stop, step = sub((n.start, n.stop, n.step))
            return replace(n, start=start, stop=stop, step=step, inits=sub(n.inits))
        case While():
            return replace(n, inits=sub(n.inits))
        case _:
            return replace(n, operands=sub(n.operands))


def _sub_template(t: Template, new: Mapping[Value, Value]) -> Template:
    if isinstance(t, Value):
        return new.get(t, t)
    return replace(t, items=tuple(_sub_template(i, new) for i in t.items)) if isinstance(t, Group) else t


def with_regions(n: Node, new: Sequence[Region]) -> Node:
    """A copy of `n` with other nested regions, in the order of `regions_of`."""
    match n:
        case Op():
            return replace(n, region=new[0])
        case If():
            return replace(n, then=new[0], orelse=new[1])
        case For() | Frame():
            return replace(n, body=new[0])
        case While():
            return replace(n, cond=new[0] if n.cond is not None else None, body=new[-1])
        case _:
            raise TypeError(f"{type(n).__name__} has no nested regions")


Change = Callable[[Node, Node], Sequence[Node] | None]


def rewrite(kernel: Kernel, change: Change, new: dict[Value, Value] | None = None) -> Kernel:
    """The kernel with some nodes replaced.

    `change(old, node)` is called for each node in program order, after the nodes nested in it. `old` is the node of the
    given kernel, `node` is `old` with its values substituted and its regions rewritten. `change` returns the nodes that
    replace it, or None to put `node` there. `new` maps values to those that replace them in later nodes; `change` may
    add to it. The given kernel does not change, and the result shares with it all that is not rewritten.
    """
    body = run_recursive(_rewrite(kernel.body, change, {} if new is None else new))
    return kernel if body is kernel.body else replace(kernel, body=body)


def _rewrite(region: Region, change: Change, new: dict[Value, Value]) -> Generator[Any, Any, Region]:
    nodes: list[Node] = []
    for old in region.nodes:
        n = substitute(old, new) if new else old
        if type(n) is not Op or n.region is not None:  # most have no regions
            before, after = tuple(regions_of(n)), []
            for inner in before:
                after.append((yield _rewrite(inner, change, new)))
            if any(a is not b for a, b in zip(after, before, strict=True)):
                n = with_regions(n, after)
        replaced = change(old, n)
        nodes += (n,) if replaced is None else replaced
    return region if nodes == region.nodes else replace(region, nodes=nodes)  # nodes compare by identity


def mapped(region: Region, change: Callable[[Node], Node]) -> Region:
    """The region with `change` applied to its terminators, also in branches of Ifs, but not in loops and frames."""
    return run_recursive(_mapped(region, change))


def _mapped(region: Region, change: Callable[[Node], Node]) -> Generator[Any, Any, Region]:
    nodes: list[Node] = []
    for n in region.nodes:
        if isinstance(n, If):
            then = yield _mapped(n.then, change)
            orelse = yield _mapped(n.orelse, change)
            n = replace(n, then=then, orelse=orelse)
        nodes.append(change(n) if isinstance(n, TERMINATORS) else n)
    return replace(region, nodes=nodes)


def run_recursive(function: Generator[Generator, Any, Any]) -> Any:
    """Run a recursive function without Python's stack. `function` is a generator that recurses by `yield f(x)`."""
    stack, result = [function], None
    while stack:
        try:
            call = stack[-1].send(result)
        except StopIteration as e:
            stack.pop()
            result = e.value
        else:
            stack.append(call)
            result = None
    return result
