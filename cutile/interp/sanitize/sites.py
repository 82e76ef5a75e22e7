"""Where a check is in the user's source, and what it is about, in words."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable

from cutile._support.structs import structure
from cutile.analysis.access import Access, Item, accesses, array_paths
from cutile.interp.exec.block_set import BlockSet
from cutile.interp.memory.array import Array
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.memory.foreign_view import ForeignView
from cutile.interp.memory.per_block_array import PerBlockArray
from cutile.ir.nodes import Bind, Group, Kernel, Op, Value
from cutile.ops._op import HOST, OpDef
from cutile.spans import Span, lines_of
from cutile.types import TileType

ITEM = "[…]"


@structure(frozen=True, eq=False, slots=True)
class Site:
    """An op of the user's program that is checked.

    call    how the user calls it, such as "load"
    name    of the parameter that its array comes from; `[…]` behind it stands for an item of a list
    sliced  the axes along which the array is sliced
    access  the description of the access, where it is one
    """

    span: Span
    call: str
    name: str = ""
    sliced: tuple[int, ...] = ()
    access: Access | None = None

    def array(self, array: Array, ctx: BlockSet, i: int) -> tuple[str, str]:
        """The name of the array that the i-th running block accesses, and the array in words."""
        name = self.name
        if not name or name.endswith(ITEM):  # only the run tells which item it is
            while isinstance(array, PerBlockArray):
                which = int(ctx.flat(array.which, 0)[i])
                array = array.views[which if 0 <= which < len(array.views) else 0]
            name = array.name if isinstance(array, ArrayView | ForeignView) else name
        axes = " and ".join(map(str, self.sliced))
        return name, f"a slice of `{name}` along axis {axes}" if axes else f"`{name}`"


def sites(kernel: Kernel) -> Callable[[Op], Site]:
    """Returns a function from each op of a program to its site."""
    described, path, names = accesses(kernel), array_paths(kernel), parameter_names(kernel)

    def of(n: Op) -> Site:
        if not n.operands or isinstance(n.operands[0].type, TileType):
            return Site(n.span, n.op.spelling)
        found = path(n.operands[0])
        items = sum(isinstance(s, Item) for s in found.steps)
        return Site(n.span, n.op.spelling, names.get(found.root, "") + ITEM * items,
                    tuple(s.axis for s in found.steps if not isinstance(s, Item)), described.get(n))

    return of


def parameter_names(kernel: Kernel) -> dict[Value, str]:
    """What users call each parameter of the IR: `x`, or `x[1]` for an item of a tuple, by the Binds at the head of the
    body.
    """
    names = dict(zip(kernel.params, kernel.param_names, strict=True))
    for n in kernel.body.nodes:
        if not isinstance(n, Bind) or n.span.line > kernel.span.line:
            break
        pending = [(n.name, n.template)]
        while pending:
            name, t = pending.pop()
            if isinstance(t, Value) and t in names:
                names[t] = name
            elif isinstance(t, Group):
                pending += ((f"{name}[{i}]", item) for i, item in enumerate(t.items))
    return names


def check_op(meaning: Callable, operands: str) -> OpDef:
    """An op that only the sanitizer and traces put into programs. It runs for its effect on the host, so that no pass
    and no emitter drops it. It is in no registry.
    """
    return OpDef(meaning, _no_rule, name=meaning.__name__.strip("_"), operands=operands, effect=HOST, exact=True,
                 public=False, language=False)


def _no_rule(*_: object) -> None:
    raise AssertionError("the sanitizer and traces put their ops into typed programs")


def names_keyword(span: Span, *keywords: str) -> bool:
    """Whether the call at a place in the source names one of these parameters."""
    lines = lines_of(span.filename)[span.line - 1:span.end_line]
    if not lines:
        return False
    lines = [*lines[:-1], lines[-1][:span.end_col]]
    lines[0] = " " * span.col + lines[0][span.col:]
    try:
        call = ast.parse(textwrap.dedent("".join(lines)).strip(), mode="eval").body
    except SyntaxError:
        return False
    return isinstance(call, ast.Call) and any(k.arg in keywords for k in call.keywords)
