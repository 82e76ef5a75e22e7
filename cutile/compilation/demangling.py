"""Signatures out of the symbols of kernels [MNG-1…24]."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from typing import NoReturn

from cutile.compilation.calling_convention import CallingConvention
from cutile.compilation.constraints import (
    MAX_RANK,
    NESTING_LIMIT,
    ArrayConstraint,
    ConstantConstraint,
    ListConstraint,
    ParameterConstraint,
    ScalarConstraint,
    TupleConstraint,
)
from cutile.compilation.mangling import CODES, PREDICATES, mangle_kernel_name
from cutile.compilation.signature import KernelSignature
from cutile.dtypes import int32, int64, uint32

_DTYPES = {code: d for d, code in CODES.items()}


def demangle_kernel_name(symbol: str) -> tuple[str, KernelSignature]:
    """Read the symbol of a compiled kernel.

    Parameters
    ----------
    symbol : str
        The symbol.

    Returns
    -------
    tuple
        The name of the function, and the `KernelSignature`. Groups of aliases are called group0, group1, …

    Raises
    ------
    ValueError
        The symbol is none that `mangle_kernel_name` writes; the text names the position.

    Notes
    -----
    [MNG-1…24]

    Examples
    --------
    >>> name, signature = cutile.compilation.demangle_kernel_name("f_Kt1_Si32")
    >>> name, signature.parameters
    ('f', (ScalarConstraint(dtype=<DType 'int32'>),))
    """
    if not isinstance(symbol, str):
        raise TypeError(f"a kernel name is a string, not {type(symbol).__name__}")
    if len(symbol) > LONGEST:
        raise ValueError(f"{_shown(symbol)} is no mangled kernel name: it has more than {LONGEST} characters")
    name, mark, _ = symbol.rpartition("_K")
    if not mark:
        raise ValueError(f"{_shown(symbol)} is no mangled kernel name: it has no _K")
    signature = _signature(_Reader(symbol, len(name) + 2))
    usual = mangle_kernel_name(name, signature)
    if usual != symbol:
        at = len(os.path.commonprefix((usual, symbol)))
        raise ValueError(f"malformed kernel name {_shown(symbol)}: cutile writes this signature otherwise from offset "
                         f"{at} on, {_shown(usual)}")
    return name, signature


def _signature(r: _Reader) -> KernelSignature:
    """The signature of the symbol that begins at a calling convention."""
    convention = CallingConvention.from_code(r.take(r"t[12]", "a calling convention, t1 or t2"))
    parameters: list[ParameterConstraint] = []
    at = r.at
    try:
        while not r.done:
            r.take("_", "an underscore")
            at = r.at
            parameters.append(_parameter(r))
        at = len(r.text)
        return KernelSignature(parameters, convention, r.text)
    except ValueError as e:
        if r.failed:
            raise
        r.at = at
        r.fail(str(e))  # what the name says cannot hold of any parameter


def _shown(symbol: str) -> str:
    return repr(symbol if len(symbol) <= 200 else symbol[:200] + "…")


# Limits on the work that a hostile name can cause.
LONGEST = 1 << 16
_DIGITS = r"[0-9]{1,1000}(?![0-9])"


class _Reader:
    """A position in a symbol."""

    def __init__(self, text: str, at: int):
        self.text, self.at, self.depth = text, at, 0  # depth: how many tuples are open
        self.failed = False  # whether an error has said what is wrong, and where

    @property
    def done(self) -> bool:
        return self.at == len(self.text)

    def maybe(self, pattern: str) -> str | None:
        m = re.compile(pattern).match(self.text, self.at)
        if m is None:
            return None
        self.at = m.end()
        return m[0]

    def take(self, pattern: str, what: str) -> str:
        found = self.maybe(pattern)
        if found is None:
            self.fail(f"expected {what}")
        return found

    def fail(self, what: str) -> NoReturn:
        self.failed = True
        raise ValueError(f"malformed kernel name {_shown(self.text)}: {what} at offset {self.at}")

    def int(self) -> int:
        return _to_int(self.take(rf"_?{_DIGITS}", "an integer"))


def _to_int(text: str) -> int:
    return -int(text[1:]) if text[0] == "_" else int(text)


_DTYPE = "|".join(sorted(_DTYPES, key=len, reverse=True))


def _parameter(r: _Reader) -> ParameterConstraint:
    kind = r.take(r"[ALTSBIF]", "a parameter")
    return _PARAMETERS[kind](r)


def _read_scalar(r: _Reader) -> ScalarConstraint:
    return ScalarConstraint(_DTYPES[r.take(_DTYPE, "a dtype")])


def _read_tuple(r: _Reader) -> TupleConstraint:
    count = int(r.take(_DIGITS, "a number of items"))
    r.depth += 1
    if r.depth > NESTING_LIMIT:
        r.fail(f"tuples are nested more than {NESTING_LIMIT} deep")
    items = [_parameter(r) for _ in range(count)]
    r.depth -= 1
    return TupleConstraint(items)


def _read_list(r: _Reader) -> ListConstraint:
    groups = _read_groups(r)
    may_alias = r.maybe("i") is not None
    r.take("A", "an array")
    return ListConstraint(_read_array(r), alias_groups=groups, elements_may_alias=may_alias)


def _read_groups(r: _Reader) -> list[str]:
    out = []
    while (g := r.maybe(r"g[0-9a-f]{1,8}(?![0-9a-f])")) is not None:
        out.append(f"group{int(g[1:], 16)}")
    return out


_MASK = r"_(?=[0-9a-f]{1,16}[sitvl]_?[0-9])"
_EXTRAS = r"_(?=p[0-9]|g[0-9a-f]|[iuw])"


def _read_array(r: _Reader) -> ArrayConstraint:
    ndim = int(r.take(r"[0-9]{1,2}(?![0-9])", "a rank"))
    if ndim > MAX_RANK:
        r.fail(f"an array has at most {MAX_RANK} axes, not {ndim}")
    dtype = _DTYPES[r.take(_DTYPE, "a dtype")]
    fields: dict[str, list] = {field: [default] * ndim for field, _, default in PREDICATES}
    while r.maybe(_MASK) is not None:
        mask = int(r.take(r"[0-9a-f]{1,16}?(?=[sitvl]_?[0-9])", "a mask"), 16)
        if mask >> ndim:
            r.fail(f"mask {mask:x} beyond rank {ndim}")
        for field, letter, default in PREDICATES:
            if r.maybe(letter) is not None:
                value = r.int()
                if default == 1 and value < 2:
                    r.fail(f"a divisibility is above 1, not {value}")
                for k in range(ndim):
                    if mask >> k & 1:
                        if fields[field][k] != default:
                            r.fail(f"{field} of dimension {k} is given again")
                        fields[field][k] = value
    base, groups, internal, index = 1, [], False, int32
    if r.maybe(_EXTRAS) is not None:
        if r.maybe("p") is not None:
            base = r.int()
        groups = _read_groups(r)
        internal = r.maybe("i") is not None
        index = {"u": uint32, "w": int64, None: int32}[r.maybe("[uw]")]
    return ArrayConstraint(dtype, ndim, index_dtype=index, alias_groups=groups, may_alias_internally=internal,
                           base_addr_divisible_by=base, **fields)


def _read_bool(r: _Reader) -> ConstantConstraint:
    return ConstantConstraint(r.take("[01]", "0 or 1") == "1")


def _read_int(r: _Reader) -> ConstantConstraint:
    return ConstantConstraint(r.int())


def _read_float(r: _Reader) -> ConstantConstraint:
    return ConstantConstraint(struct.unpack(">d", bytes.fromhex(r.take(r"[0-9a-f]{16}", "16 hex digits")))[0])


_PARAMETERS: dict[str, Callable[[_Reader], ParameterConstraint]] = {
    "A": _read_array, "L": _read_list, "T": _read_tuple, "S": _read_scalar, "B": _read_bool, "I": _read_int,
    "F": _read_float,
}
