"""Element functions: Python functions of elements, applied to every element of tiles.

The front end types the function on scalars. The node holds it as a region, which may branch and loop; the region has a
parameter for each operand and ends in a Yield of the results. `passes/lift.py` turns the node into ops on tiles.
"""

from __future__ import annotations

from cutile.errors import TileError, TileSyntaxError, TileTypeError
from cutile.ir.build import Builder
from cutile.ir.leaves import leaves, rebuild
from cutile.ir.nodes import Op, Region, Yield
from cutile.ir.terms import (
    POISON,
    Bound,
    Closure,
    Const,
    Leaf,
    Manager,
    Record,
    Static,
    Term,
    Tuple,
    describe,
    is_poisoned,
    is_scalar,
    is_tile,
)
from cutile.ir.walk import walk
from cutile.ops import debug
from cutile.ops._arguments import about_the_function, invalid, is_none, refuse
from cutile.ops._op import ATOMIC, ELEMENTS, OFFSETS, PURE, READ, OpDef, op
from cutile.ops._promotion import broadcast, broadcast_arg, common_shape, value_of
from cutile.ops.compare import as_bool
from cutile.types import TileType, tile_type


def _rule(b: Builder, op: OpDef, func: Term, x: Term, mask: Term) -> Term:
    if isinstance(func, Static) and not callable(func.obj) or not isinstance(func, Static | Closure | Bound | Manager):
        invalid(op, "func", f"expected a function, got {describe(func)}",
                help="pass a function of elements, for example lambda x: x if x > 0 else 0")
    if not x.items:
        return Bound(Static(op), func)
    if b.elements:  # an element function calls another one
        if not is_none(mask):
            invalid(op, "mask", "an element function cannot mask another one", help="call it in a branch of an if")
        return b.call(func, x.items)
    tiles = [t for t in leaves(Tuple(x.items)) if is_tile(t) and isinstance(t, Leaf)]
    common = common_shape("elementwise()", *tiles) if tiles else ()
    with b.element_body([tile_type(t.type.dtype) for t in tiles]) as region:
        params = iter(region.params)
        args = [_with_tiles(t, lambda t: Leaf(next(params))) for t in x.items]
        result = b.call(func, args)
        if is_poisoned(result):
            return POISON
        _check_body(region)
        with about_the_function(region):
            found = _results(result)
        b.append(Yield(tuple(value_of(b, t) for t in found), b.span))
    operands = tuple(value_of(b, broadcast(b, t, common)) for t in tiles)
    where = None
    if not is_none(mask):
        where = value_of(b, broadcast_arg(b, op, "mask", as_bool(b, mask, op=op, name="mask"), common))
    values = b.op(op, operands, where, results=[tile_type(t.type.dtype, common) for t in found], region=region)
    return rebuild(result, map(Leaf, values))


def _with_tiles(t: Term, new) -> Term:
    """A term with `new(leaf)` in place of each run-time tile."""
    return rebuild(t, iter([new(x) if isinstance(x, Leaf) and is_tile(x) else x for x in leaves(t)]))


def _results(result: Term) -> list[Const | Leaf]:
    """The scalars that an element function returned."""
    found = list(leaves(result))
    if not isinstance(result, Const | Leaf | Tuple | Record) or not found or not all(map(is_scalar, found)):
        refuse(f"an element function must return a number or a structure of numbers, got {describe(result)}",
               help="end every path with a return of a number")
    return found


def _check_body(region: Region) -> None:
    """Refuse what has no meaning for single elements."""
    for n in walk(region):
        if isinstance(n, Op) and (error := _refusal(n)) is not None:
            error.loc = n.span
            raise error


def _refusal(n: Op) -> TileError | None:
    name = "print" if n.op is debug.emit_text else n.op.spelling
    if n.op is debug.breakpoint:
        return None
    if n.op.effect not in (PURE, READ, ATOMIC):
        return TileSyntaxError(f"{name}() cannot be used inside an element function, which only computes",
                               help="return the value, and do this with the tile that ct.elementwise gives")
    if n.op.effect == READ and n.op.accesses.unit not in (ELEMENTS, OFFSETS):
        return TileSyntaxError(f"{name}() reads a tile, and an element function sees single elements",
                               help="ct.gather(array, index) reads one element")
    tiles = [v.type for v in (*n.operands, *n.results) if isinstance(v.type, TileType)]
    if (tile := next((t for t in tiles if t.shape), None)) is not None:
        return TileTypeError(f"an element function sees single elements, and {name}() works on a {tile.describe()} "
                             f"here", help="pass the tile as an argument of the element function")
    if not (n.op.effect in (READ, ATOMIC) or n.op.elementwise or _same_everywhere(n)):
        return TileSyntaxError(f"{name}() cannot be used inside an element function, which sees single elements",
                               help="do it before, and use the result in the function")
    return None


def _same_everywhere(n: Op) -> bool:
    """Whether the result cannot depend on the element."""
    return not any(isinstance(v.type, TileType) for v in n.operands) and all(
        isinstance(v.type, TileType) for v in n.results)


@op(_rule, operands="*x mask?", exact=True, language=False, signature=lambda func, /, *x, mask=None: None)
def elementwise(x, mask, *, combine):
    """The function of elements `func`, applied to every element of tiles, which broadcast.

    `ct.elementwise(func)(x, y)` and `ct.elementwise(func, x, y)` are the same. `func` is an ordinary Python function
    of numbers: it may branch, loop, call other functions, and functions of `math` and NumPy. `ct.reduce` and `ct.scan`
    take `ct.elementwise(func)` for a function that branches; a loop cannot be in that one.

    Each element has the values of the side of a branch that it takes. A loop ends when no element is in it. Where
    values meet after a branch, a return or an iteration, they have the dtype in which operands of + meet. What an
    element does not run has no effect for it: no division by zero, no index out of range.

    `func` has no stores or prints. It reads single elements of arrays by `array[i]` or `ct.gather`, and updates them
    by `ct.atomic_add` and its like, once for each element that gets there, in any order. It takes numbers, structures
    of numbers, constants and arrays, and returns a number or a structure of numbers; the result here is that structure,
    of tiles. With a `mask`, it runs only for elements where the mask is true; others give zero. A debugger shows it one
    element at a time, with the same bits.

    [ELT-1.scalar]  f is called with scalars of the dtypes of the tiles
    [ELT-1.broadcast]  the tiles broadcast, and the results have their common shape
    [ELT-1.mask]  with a mask, f runs for elements where it is true; others give zero
    [ELT-3.branch]  if, elif and else: each element has the values of the side that it takes
    [ELT-7.while]  while: each element leaves the loop by itself
    [ELT-10.effect]  a store, a print or an assertion in f is refused (TileSyntaxError)
    [ELT-21.loop]  a loop in a function for reduce or scan is refused (TileSyntaxError)
    """
    results = combine(x, mask)
    return results if len(results) > 1 else results[0]
