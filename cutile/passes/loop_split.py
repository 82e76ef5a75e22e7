"""Split a loop where a condition on its counter changes [LOOP-12].

    for j in range(start, stop):          for j in range(start, mid):
        if j < x: A                  →        A; rest
        else: B                           for j in range(mid, stop):
        rest                                  B; rest

Neither half has the branch: in causal attention, for example, only the second half applies the mask. Conditions: the
step is 1, the If is in the body itself, x is the same in every iteration, and the loop has no Break, no Return and
no loop inside.
"""

from __future__ import annotations

from cutile._support.structs import replace
from cutile.ir.nodes import For, If, Kernel, Node, Op, Region, Value, While, Yield, regions_of, results_of
from cutile.ir.recursion import recursive
from cutile.ir.walk import definitions, returns, rewrite, substitute, walk, with_regions
from cutile.ops import arithmetic, compare, create
from cutile.passes.structured_exits import has_break

# For `counter op x`: (whether the condition holds in the first half, whether x itself belongs to the first half).
CONDITIONS = {
    compare.less: (True, False), compare.less_equal: (True, True),
    compare.greater_equal: (False, False), compare.greater: (False, True),
}
MIRRORED = {compare.less: compare.greater, compare.greater: compare.less,
            compare.less_equal: compare.greater_equal, compare.greater_equal: compare.less_equal}


def loop_split(kernel: Kernel) -> Kernel:
    """The kernel with such loops split, each at most once."""
    source = definitions(kernel.body)
    return rewrite(kernel, lambda old, n: _split(n, source) if isinstance(n, For) else None)


def _split(n: For, source: dict[Value, Node]) -> list[Node] | None:
    step = source.get(n.step)
    if not (isinstance(step, Op) and step.op is create.constant and step.attrs["value"] == 1):
        return None
    if any(isinstance(inner, For | While) for inner in walk(n.body)) or has_break(n.body) or returns(n.body):
        return None
    inside = definitions(n.body)
    for inner in n.body.nodes:
        if isinstance(inner, If) and (found := _condition(inside.get(inner.cond), n, inside)):
            return _halves(n, inner.cond, *found)
    return None


def _condition(comparison: Node | None, n: For, inside: dict[Value, Node]) -> tuple[Value, bool, bool] | None:
    """What the counter is compared with, and the entry of the comparison in CONDITIONS."""
    if not isinstance(comparison, Op) or comparison.op not in CONDITIONS:
        return None
    x, y = comparison.operands
    op = comparison.op if x is n.iv else MIRRORED[comparison.op]
    bound = y if x is n.iv else x
    if n.iv not in (x, y) or bound in inside or bound in n.params or bound is n.iv:
        return None
    return bound, *CONDITIONS[op]


def _halves(n: For, cond: Value, bound: Value, first: bool, inclusive: bool) -> list[Node]:
    nodes: list[Node] = []

    def make(op, *operands: Value, **attrs) -> Value:
        v = Value(n.iv.type)
        nodes.append(Op(op, operands, attrs, (v,), n.span))
        return v

    options = {"rounding_mode": None, "flush_to_zero": False}
    if inclusive:  # min(bound, stop - 1) + 1, because bound + 1 may overflow
        one = make(create.constant, value=1)
        last = make(arithmetic.minimum, bound, make(arithmetic.sub, n.stop, one, **options), **_choice())
        bound = make(arithmetic.add, last, one, **options)
    mid = make(arithmetic.maximum, n.start, bound, **_choice())
    mid = make(arithmetic.minimum, mid, n.stop, **_choice())
    carried = tuple(Value(v.type) for v in n.results)
    for side, start, stop, inits, results in ((first, n.start, mid, n.inits, carried),
                                              (not first, mid, n.stop, carried, n.results)):
        new: dict[Value, Value] = {}
        iv, *params = (_fresh(v, new) for v in (n.iv, *n.params))
        body = Region(_copied(n.body.nodes, new, {cond: side}))
        nodes.append(replace(n, iv=iv, start=start, stop=stop, inits=inits, params=tuple(params), body=body,
                             results=results))
    return nodes


def _choice() -> dict:
    return {"propagate_nan": False, "flush_to_zero": False}


def _fresh(v: Value, new: dict[Value, Value]) -> Value:
    new[v] = Value(v.type, v.name)
    return new[v]


@recursive
def _copied(nodes: list[Node], new: dict[Value, Value], known: dict[Value, bool]) -> list[Node]:
    """Copies of nodes with values of their own; an If whose condition is known becomes the branch that is taken."""
    out: list[Node] = []
    for n in nodes:
        if isinstance(n, If) and n.cond in known:
            taken = (n.then if known[n.cond] else n.orelse).nodes
            out += _copied(taken, new, known)
            if isinstance(out[-1], Yield):
                new.update(zip(n.results, out.pop().operands, strict=True))
                continue
            return out  # the branch ends by Continue: control does not reach the nodes after the If
        n = substitute(n, new)
        out.append(_own(n, new, known))
    return out


def _own(n: Node, new: dict[Value, Value], known: dict[Value, bool]) -> Node:
    """The node, its operands already substituted, with new results and copies of its regions."""
    inner = [Region(_copied(region.nodes, _params(region, new), known), tuple(new[v] for v in region.params))
             for region in regions_of(n)]
    n = with_regions(n, inner) if inner else replace(n)  # a copy, because a node may be in one region only
    results = results_of(n)
    return replace(n, results=tuple(_fresh(v, new) for v in results)) if results else n


def _params(region: Region, new: dict[Value, Value]) -> dict[Value, Value]:
    """`new`, with new values for the params of a region."""
    for v in region.params:
        _fresh(v, new)
    return new
