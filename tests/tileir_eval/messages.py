"""What a kernel tells its user: print_tko in C's format language, and assert."""

from __future__ import annotations

import ctypes
import functools
import math
import re

import numpy as np

from cutile.gpu.tileir.module import Operation
from tests.tileir_eval import formats
from tests.tileir_eval.registry import EvaluationError, of_world, require, where

_CONVERSION = re.compile(r"%(?:(%)|([-+ #0]*)(\d*)(?:\.(\d*))?(hh|h|ll|l|L|j|z|t)?([diouxXeEfFgGaAcsp]))")


class AssertionFailed(EvaluationError):
    """An assert of the program. `message` is its text, `block` where, `index` the first element that is false."""

    def __init__(self, message: str, block: tuple[int, int, int], index: tuple[int, ...]):
        super().__init__(f"assertion failed in block {block} at element {index}: {message}")
        self.message, self.block, self.index = message, block, index


@of_world("assert")
def _assert(o):
    def check(world, condition):
        false = np.argwhere(~np.asarray(condition))
        if len(false):
            raise AssertionFailed(o.attrs["message"], world.block, tuple(false[0].tolist()))

    return check


@of_world("print_tko")
def _print(o):
    parts = _parsed(o)
    sort = where(o)
    types = [v.type.element for v in o.operands[0]]
    wanted = sum(not isinstance(p, str) for p in parts)
    require(wanted == len(types), f"{wanted} conversions for {len(types)} values", o)

    def show(world, *row):
        values, *token = sort(row)
        rest = iter(zip(values, types, strict=True))
        text = "".join(p if isinstance(p, str) else _nested(*next(rest), p) for p in parts)
        world.printed.append(text)
        return token[0] if token and token[0] is not None else 0

    return show


def _parsed(o: Operation) -> list[str | re.Match]:
    text, out, at = o.attrs["str"], [], 0
    for m in _CONVERSION.finditer(text):
        out += [text[at:m.start()], "%" if m[1] else m]
        at = m.end()
    out.append(text[at:])
    require(not any("%" in p for p in out[::2] if isinstance(p, str)), f"no printf format: {text!r}", o)
    return out


def _nested(x, element, m: re.Match) -> str:
    x = np.asarray(x)
    if x.ndim:
        return "[" + ", ".join(_nested(row, element, m) for row in x) + "]"
    return _one(x, element, m)


def _one(x: np.ndarray, element, m: re.Match) -> str:
    """One number as C prints it."""
    _, flags, width, precision, length, kind = m.groups()
    form = f"%{flags}{width}{'' if precision is None else f'.{precision}'}"
    if kind in "diuoxX":
        n = int(formats.numbers(x, element, "signed" if kind in "di" else "unsigned"))
        return _c(f"{form}ll{kind}", ctypes.c_longlong(n))
    v = float(x)
    if math.isnan(v):  # whose sign is the machine's
        v, flags = math.nan, flags.replace("0", "")
    return _c(f"{form}{kind}", ctypes.c_double(v))


@functools.cache
def _libc():
    return ctypes.CDLL(None)


def _c(form: str, value) -> str:
    buffer = ctypes.create_string_buffer(4096)
    _libc().snprintf(buffer, ctypes.c_size_t(len(buffer)), form.encode(), value)
    return buffer.value.decode()
