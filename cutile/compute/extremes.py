"""Operators that give the larger or smaller of two numbers, however they say it: `a if a > b else b` is `max(a, b)` of
integers, and of floats that differ and of which none is NaN.
"""

from __future__ import annotations

from cutile.ir.nodes import Bind, Frame, If, Op, Region, Return, Value, Yield

_PICKS = {"greater": "maximum", "greater_equal": "maximum", "less": "minimum", "less_equal": "minimum"}
_OTHER = {"maximum": "minimum", "minimum": "maximum"}


def extreme(region: Region) -> str:
    """The name of the op, "maximum" or "minimum", that a region of two numbers is: it compares them, and gives one of
    them by what it finds. "" if it is none.
    """
    if len(region.params) != 2:
        return ""
    found = [_Way(truth) for truth in (True, False)]
    first, second = (way.through(region) for way in found)
    compared = found[0].compared
    if compared is None or first is None or second is None or {*first, *second} != {*region.params}:
        return ""
    op = _PICKS[compared.op.name]
    return op if first[0] is compared.operands[0] else _OTHER[op]


class _Way:
    """What a region does where its only comparison, of its two parameters, is true, or false."""

    def __init__(self, truth: bool):
        self.truth = truth
        self.compared: Op | None = None
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
        if self.compared is not None or n.op.name not in _PICKS or {*operands} != params:
            return False
        self.compared = Op(n.op, tuple(operands), n.attrs, n.results, n.span)
        return True
