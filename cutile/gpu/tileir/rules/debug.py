"""Lowering of print and assertions."""

from __future__ import annotations

from cutile._support.structs import replace
from cutile.dtypes import float64, info
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.access import is_signed, resized
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.operations import OPS
from cutile.gpu.tileir.rules._rule import rule
from cutile.gpu.tileir.rules.convert import float_to
from cutile.ops import debug
from cutile.ops._format import Conversion, from_text


@rule(debug.emit_text)
def _emit(l, n):
    text, values = "", []
    for part in n.attrs["parts"]:
        if isinstance(part, str):
            text += part.replace("%", "%%")
            continue
        v, conversion = n.operands[part[0]], from_text(part[1])
        given, conversion = _as_c_takes_it(l, v, conversion)
        text += str(conversion)
        values.append(given)
    token = OPS["print_tko"].operand("token")
    write = l.memory if l.version >= token.since else l.op  # older versions do not order what is printed
    write("print_tko", [values], str=text)


def _as_c_takes_it(l, v, c: Conversion) -> tuple[Value, Conversion]:
    """A number as an argument of C's printf, and its conversion: an integer as int or long long, extended by its sign;
    a float as float or double."""
    dtype, x = v.type.dtype, l.get(v)
    if info(dtype).floating:
        return x if dtype is float64 else float_to(l, x, ty.f32), c
    wide = dtype.bitwidth == 64 and c.length in ("", "l", "ll") or c.length in ("l", "ll")
    x = resized(l, x, ty.i64 if wide else ty.i32, signed=is_signed(dtype))
    return x, replace(c, length="ll") if wide else c


@rule(debug.assert_)
def _assert(l, n):
    l.op("assert", [l.get(n.operands[0])], message=n.attrs["message"] or "")


@rule(debug.breakpoint)
def _breakpoint(l, n):
    """No operation: debuggers stop only in the interpreter."""
