"""The compiled steps of elementwise ops: for each op a rule that says which forms give its bits, one after another.

A rule takes the steps so far, the node, and names of its operands. It returns the name of the result, or None where the
op has no such forms, as one that rounds to another direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cutile import compiled
from cutile.dtypes import DType, bool_, float32, float64, info
from cutile.ir.nodes import Op
from cutile.ops._op import is_plain
from cutile.types import RoundingMode

BETWEEN = 8  # arrays between steps that a chain has room for
FORMATS = {"bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
           "int64": "q", "uint64": "Q", "float32": "f", "float64": "d"}


def format_of(dtype: DType) -> str | None:
    """The format character of a dtype's carrier; None if steps do not know it."""
    return FORMATS.get(info(dtype).carrier.name)


class _Step(NamedTuple):
    form: str
    operands: tuple[int, ...]
    result: int


class Steps:
    """Steps that are put together. An array is known by a number: operands first, then the results of steps."""

    def __init__(self) -> None:
        self._formats: list[str] = []
        self._given = 0
        self._steps: list[_Step] = []

    def given(self, format: str) -> int:
        self._formats.append(format)
        self._given += 1
        return self._given - 1

    def add(self, form: str, *operands: int | None) -> int | None:
        """The number of the result of a further step; None if there is no such form, or an operand has none."""
        types = compiled.steps().get(form)
        if types is None or None in operands:
            return None
        assert [self._formats[x] for x in operands] == list(types[:-1]), form
        self._formats.append(types[-1])
        self._steps.append(_Step(form, operands, len(self._formats) - 1))
        return len(self._formats) - 1

    def made_by(self, y: int) -> tuple[str, tuple[int, ...]]:
        """The form whose result an array is, and its operands; "" for an operand of the chain."""
        return next(((form, x) for form, x, made in self._steps if made == y), ("", ()))

    def function(self, result: int, format: str) -> Callable | None:
        """The compiled chain of these steps; None if more arrays stand between them than there is room for."""
        assert self._formats[result] == format
        if not self._steps or self._steps[-1].result != result:
            result = self.add(f"copy {_NAMES[format]}", result)
        self._steps = self._needed(result)
        last = {x: i for i, step in enumerate(self._steps) for x in step.operands}
        places = {x: x for x in range(self._given)} | {result: self._given}
        free, made = list(range(self._given + BETWEEN, self._given, -1)), []
        for i, (form, operands, y) in enumerate(self._steps):
            if y not in places:
                if not free:
                    return None
                places[y] = free.pop()
            made.append((form, *[places[x] for x in operands], places[y]))
            free += [places[x] for x in {*operands, y} if places[x] > self._given and last.get(x, i) <= i]
        return compiled.chain_of("".join(self._formats[:self._given]) + format, tuple(made))


    def _needed(self, result: int) -> list[_Step]:
        """The steps on which the result depends."""
        needed, found = {result}, []
        for step in reversed(self._steps):
            if step.result in needed:
                needed.update(step.operands)
                found.append(step)
        return found[::-1]


_NAMES = {c: name for name, c in FORMATS.items()}


def _carrier(n: Op, k: int = 0) -> str:
    return info(n.operands[k].type.dtype).carrier.name


def _rounded(s: Steps, n: Op, y: int | None) -> int | None:
    """A result as the framework rounds it."""
    dtype = n.results[0].type.dtype
    return s.add(f"round f to {dtype.name}", y) if _is_short(dtype) else y


def _is_short(dtype: DType) -> bool:
    """Whether it is a format of floats of which carriers hold other values too."""
    return info(dtype).floating and dtype is not float32 and dtype is not float64


# ------------------------------------------------------------------ rules


def _named(s: Steps, n: Op, *x: int) -> int | None:
    """Of ops with the form of their own name."""
    return s.add(f"{n.op.name} {_carrier(n, -1)}", *x)


def _arithmetic(s: Steps, n: Op, *x: int) -> int | None:
    return _rounded(s, n, _named(s, n, *x)) if is_plain(n) else None


def _root(s: Steps, n: Op, x: int) -> int | None:
    nearest = n.attrs["rounding_mode"] in (None, RoundingMode.RN, RoundingMode.APPROX)
    return _rounded(s, n, _named(s, n, x)) if nearest and not n.attrs["flush_to_zero"] else None


def _exchanged(form: str) -> Callable:
    return lambda s, n, x, y: s.add(f"{form} {_carrier(n)}", y, x)


def _extreme(s: Steps, n: Op, x: int, y: int) -> int | None:
    nan = " or nan" if n.attrs["propagate_nan"] and info(n.operands[0].type.dtype).floating else ""
    if n.attrs["flush_to_zero"]:
        return None
    form, made_of = s.made_by(x)
    if n.op.name == "minimum" and form == f"maximum {_carrier(n)}" and info(n.operands[0].type.dtype).integral:
        return s.add(f"maximum, minimum {_carrier(n)}", *made_of, y)
    return s.add(f"{n.op.name}{nan} {_carrier(n)}", x, y)


def _abs(s: Steps, n: Op, x: int) -> int | None:
    return x if info(n.operands[0].type.dtype).kind == "u" else _named(s, n, x)


def _divided(s: Steps, n: Op, x: int, y: int) -> int | None:
    return _named(s, n, x, y) if info(n.operands[0].type.dtype).integral else None


def _fma(s: Steps, n: Op, *x: int) -> int | None:
    return s.add(f"fma {n.results[0].type.dtype.name}", *x) if is_plain(n) else None


def _not(s: Steps, n: Op, x: int) -> int | None:
    form, made_of = s.made_by(x)
    return s.add(form.replace("to bool", "is zero"), *made_of) if form.endswith("to bool") else _named(s, n, x)


def _short_root(s: Steps, x: int) -> int | None:
    """A root of float64 as float32, if it is of a number that float32 holds: rounded twice, it is what rounding once
    gives, since float64 has more than twice the bits. None for anything else.
    """
    form, roots = s.made_by(x)
    cast, made_of = s.made_by(roots[0]) if form == "sqrt float64" else ("", ())
    before = cast.removesuffix(" to float64")
    if before == "float32":
        return s.add("sqrt float32", *made_of)
    return s.add("sqrt float32", s.add(f"{before} to float32", *made_of)) if before in _SHORT else None


_SHORT = {"bool", "int8", "uint8", "int16", "uint16"}


def _cast(s: Steps, n: Op, x: int) -> int | None:
    src, dst = n.operands[0].type.dtype, n.results[0].type.dtype
    before, after = info(src).carrier.name, info(dst).carrier.name
    if src is dst or n.attrs["rounding_mode"] not in (None, RoundingMode.RN):
        return x if src is dst else None
    if dst is float32 and src is float64 and (root := _short_root(s, x)) is not None:
        return root
    if not _is_short(dst):
        return x if before == after and src is not bool_ and info(src).floating else s.add(f"{before} to {after}", x)
    if info(src).floating:
        return s.add(f"round {FORMATS[before]} to {dst.name}", x)
    if dst.bitwidth <= 8 or info(src).carrier.itemsize == 8:  # which goes through a format between
        return None
    return s.add(f"round d to {dst.name}", s.add(f"{before} to float64", x))


RULES: dict[str, Callable[..., int | None]] = {
    **dict.fromkeys(("add", "sub", "mul", "truediv"), _arithmetic),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_lshift", "bitwise_rshift",
                     "equal", "not_equal", "less", "less_equal", "negative", "floor", "ceil", "isnan",
                     "where"), _named),
    **dict.fromkeys(("minimum", "maximum"), _extreme), **dict.fromkeys(("floordiv", "mod"), _divided),
    "greater": _exchanged("less"), "greater_equal": _exchanged("less_equal"),
    "logical_not": _not, "abs": _abs, "fma": _fma, "sqrt": _root, "astype": _cast,
}
