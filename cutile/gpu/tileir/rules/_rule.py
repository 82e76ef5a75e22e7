"""The table of lowering rules, and how to write one.

An elementwise op that is one operation of Tile IR needs no rule; its `tileir=` names the operation. Any other op has a
rule, which appends the operations for one IR node to the module and returns the results: a Tile IR value for each tile,
an `Array` or `List` record (arrays.py) for each array or list; one of them, a tuple of several, or None for no results.

    @rule(math.isnan)
    def _isnan(l, n):
        x = l.get(n.operands[0])
        return compare(l, "not_equal", x, x, floating=True)

The head of lower.py lists what `l`, the lowering, offers. Signed and unsigned integers are one type in Tile IR, and
bool is i1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cutile.errors import TileInternalError
from cutile.ops._op import OpDef

Rule = Callable[[Any, Any], Any]

RULES: dict[OpDef, Rule] = {}


def rule(*ops: OpDef) -> Callable[[Rule], Rule]:
    """Make a function the rule of these ops. A module may do so again: Python runs it anew after an interrupt."""

    def define(fn: Rule) -> Rule:
        for op in ops:
            if op in RULES and _place(RULES[op]) != _place(fn):
                raise TileInternalError(f"op {op.name} has two lowering rules")
            RULES[op] = fn
        return fn

    return define


def _place(fn: Rule) -> tuple[str, str]:
    return fn.__module__, fn.__qualname__
