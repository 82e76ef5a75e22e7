"""Operators that give the larger or smaller of two numbers, however they say it: `a if a > b else b` is `max(a, b)` of
integers, and of floats that differ and of which none is NaN.
"""

from __future__ import annotations

from typing import Any

from cutile.ir.nodes import Bind, Frame, If, Op, Region, Return, Value, Yield

_PICKS = {"greater": "maximum", "greater_equal": "maximum", "less": "minimum", "less_equal": "minimum"}
_OTHER = {"maximum": "minimum", "minimum": "maximum"}


def extreme(region: Region) -> str:
    """The name of the op, "maximum" or "minimum", that a region of two numbers is: it compares them, and gives one of
    them by what it finds. "" if it is none.
    """
    found = _extreme(region) if len(region.params) == 2 else None
    return "" if found is None else found[0]


def extreme_with(region: Region) -> tuple[str, Any] | None:
    """Of a region of one number, which it compares with a constant: the name of the op, and the constant."""
    found = _extreme(region) if len(region.params) == 1 else None
    return None if found is None else (found[0], next(iter(found[1])))


def _extreme(region: Region) -> tuple[str, dict[Any, Value]] | None:
    """The op that gives one of two, the parameters or the only one and a constant; and the constants, by their numbers.
    """
    found = [_Way(truth, region) for truth in (True, False)]
    first, second = (way.through(region) for way in found)
    compared, constants = found[0].compared, found[0].constants
    if compared is None or first is None or second is None or {*first, *second} != {*compared.operands}:
        return None
    op = _PICKS[compared.op.name]
    return (op if first[0] is compared.operands[0] else _OTHER[op]), constants


class _Way:
    """What a region does where its only comparison, of its two parameters, or of the only one and the only constant, is
    true, or false. Equal constants are one.
    """

    def __init__(self, truth: bool, region: Region):
        self.truth, self._numbers = truth, 2 - len(region.params)
        self.compared: Op | None = None
        self.constants: dict[Any, Value] = {}
        self._same: dict[Value, Value] = {}
        self._returned: list[Value] | None = None

    def through(self, region: Region) -> list[Value] | None:
        """The value that a region yields, alone in a list; None if it does anything else."""
        found = self._run(region, frozenset(region.params))
        return found if found is not None and len(found) == 1 else None

    def _run(self, region: Region, params: frozenset[Value]) -> list[Value] | None:
        for n in region.nodes:
            match n:
                case Yield():
                    return self._values(n.operands)
                case Return():
                    self._returned = self._values(n.operands)
                    return self._returned
                case Op() if n.op.name == "constant" and self._numbers:
                    known = self.constants.setdefault(n.attrs["value"], n.results[0])
                    self._same[n.results[0]] = known
                case Op():
                    if not self._takes(n, params):
                        return None
                case Frame():
                    results, self._returned = self._run(n.body, params), None
                    if not self._name(n.results, results):
                        return None
                case If():
                    if self.compared is None or self._same.get(n.cond, n.cond) is not self.compared.results[0]:
                        return None
                    results = self._run(n.then if self.truth else n.orelse, params)
                    if self._returned is not None:
                        return self._returned
                    if not self._name(n.results, results):
                        return None
                case Bind():
                    pass
                case _:
                    return None
        return None

    def _values(self, operands: tuple[Value, ...]) -> list[Value]:
        return [self._same.get(v, v) for v in operands]

    def _name(self, results: tuple[Value, ...], values: list[Value] | None) -> bool:
        if values is None or len(values) != len(results):
            return False
        self._same.update(zip(results, values, strict=True))
        return True

    def _takes(self, n: Op, params: frozenset[Value]) -> bool:
        """Whether an op is the comparison."""
        operands = self._values(n.operands)
        if self.compared is not None or n.op.name not in _PICKS or len(self.constants) != self._numbers \
                or {*operands} != {*params, *self.constants.values()}:
            return False
        self.compared = Op(n.op, tuple(operands), n.attrs, n.results, n.span)
        return True
