"""C's printf conversions, exactly: what print, printf and formatted strings show.

A `Conversion` formats one number; `parse_printf` and `parse_spec` make them from what users write. Python's own % is
used where it agrees with C. For floats it agrees, except for inf, nan and %a.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np

from cutile._support.structs import structure
from cutile.dtypes import DType, info

INT_TYPES, FLOAT_TYPES = "diouxX", "eEfFgGaA"
_LENGTH_BITS = {"hh": 8, "h": 16, "": 32, "l": 64, "ll": 64}


class FormatError(ValueError):
    """A format that C, or the language, does not have; the text says why."""


@structure(frozen=True, slots=True)
class Conversion:
    """One `%` conversion. `flags` holds those of `-+ #0` that were given."""

    flags: str
    width: int
    precision: int | None
    length: str
    type: str

    def __str__(self) -> str:
        precision = "" if self.precision is None else f".{self.precision}"
        return f"%{self.flags}{self.width or ''}{precision}{self.length}{self.type}"

    def suits(self, dtype: DType) -> bool:
        """Integers and booleans take integer conversions, floats take float conversions."""
        return self.type in (FLOAT_TYPES if info(dtype).floating else INT_TYPES)

    def formatter(self, dtype: DType) -> Callable[[object], str]:
        """Format one element of `dtype`."""
        if self.type in INT_TYPES:
            return lambda v: self._integer(int(v), dtype)
        return lambda v: self._float(float(v))

    def _integer(self, v: int, dtype: DType) -> str:
        # C passes narrow integers as int; what %d does with a 64-bit one is undefined, here it shows all of it.
        bits = max(_LENGTH_BITS[self.length], dtype.bitwidth if self.length in ("", "l", "ll") else 8)
        v &= (1 << bits) - 1
        if self.type in "di" and v >> (bits - 1):
            v -= 1 << bits
        digits = {"o": "o", "x": "x", "X": "X"}.get(self.type, "d")
        body = format(abs(v), digits)
        if self.precision is not None:
            body = "" if v == 0 and self.precision == 0 else body.rjust(self.precision, "0")
        prefix = self._sign(v < 0) if self.type in "di" else ""
        if "#" in self.flags:
            if self.type == "o" and not body.startswith("0"):
                body = "0" + body
            elif self.type in "xX" and v:
                prefix = "0" + self.type
        return self._pad(prefix, body, zeros=self.precision is None)

    def _float(self, v: float) -> str:
        upper = self.type.isupper()
        # A NaN is shown without its sign, which depends on the machine.
        sign = self._sign(math.copysign(1, v) < 0 and not math.isnan(v))
        if math.isnan(v) or math.isinf(v):
            body = "nan" if math.isnan(v) else "inf"
            return self._pad(sign, body.upper() if upper else body, zeros=False)
        v = abs(v)
        if self.type in "aA":
            body = _hex_digits(v, self.precision, "#" in self.flags)
            return self._pad(sign + ("0X" if upper else "0x"), body.upper() if upper else body, zeros=True)
        precision = "" if self.precision is None else f".{self.precision}"
        body = f"%{'#' if '#' in self.flags else ''}{precision}{self.type}" % v
        return self._pad(sign, body, zeros=True)

    def _sign(self, negative: bool) -> str:
        if negative:
            return "-"
        return "+" if "+" in self.flags else " " if " " in self.flags else ""

    def _pad(self, prefix: str, body: str, *, zeros: bool) -> str:
        if "-" in self.flags:
            return (prefix + body).ljust(self.width)
        if zeros and "0" in self.flags:
            return prefix + body.rjust(self.width - len(prefix), "0")
        return (prefix + body).rjust(self.width)


def _hex_digits(v: float, precision: int | None, point: bool) -> str:
    """%a of a number that is not negative, without the 0x: one digit, the fraction in base 16, the exponent of two."""
    mantissa, exponent = math.frexp(v)
    exponent -= 1
    if v == 0:
        exponent = 0
    elif exponent < -1022:
        mantissa, exponent = math.ldexp(mantissa, exponent + 1022), -1022
    significand = int(mantissa * (1 << 53))  # one digit and 52 bits of fraction
    nibbles = 13
    if precision is not None and precision < 13:
        drop = 4 * (13 - precision)
        half, rest = 1 << (drop - 1), significand & ((1 << drop) - 1)
        significand >>= drop
        significand += rest > half or rest == half and significand & 1
        nibbles = precision
    lead, fraction = significand >> (4 * nibbles), significand & ((1 << 4 * nibbles) - 1)
    digits = f"{fraction:0{nibbles}x}" if nibbles else ""
    digits = digits.rstrip("0") if precision is None else digits.ljust(precision, "0")
    return f"{lead:x}{'.' if digits or point else ''}{digits}p{exponent:+d}"


# ------------------------------------------------------------------ from what users write


def default(dtype: DType) -> Conversion:
    """The conversion of a number without a format spec [PRINT-3]."""
    i = info(dtype)
    return Conversion("", 0, None, "", "f" if i.floating else "u" if i.kind in "up" else "d")


_SPEC = re.compile(r"(?P<align>[<>^])?(?P<sign>[+\- ])?(?P<alt>#)?(?P<zero>0)?(?P<width>\d+)?(?:\.(?P<prec>\d+))?"
                   r"(?P<type>[diouxXeEfFgGaA])?")


def parse_spec(spec: str, dtype: DType) -> Conversion:
    """The format spec of a field in a formatted string [PRINT-4]."""
    m = _SPEC.fullmatch(spec)
    if m is None:
        raise FormatError(f"{spec!r} is no format spec of tile code, which has "
                          f"[<>^][+ -][#][0][width][.precision][one of {INT_TYPES}{FLOAT_TYPES}]")
    flags = ("-" if m["align"] == "<" else "") + (m["sign"] or "").strip("-") + (m["alt"] or "") + (m["zero"] or "")
    found = Conversion(flags, int(m["width"] or 0), None if m["prec"] is None else int(m["prec"]), "",
                       m["type"] or default(dtype).type)
    check_suits(found, dtype)
    return found


def _mismatch(letter: str, dtype: DType) -> str:
    kind, letters = ("a float", FLOAT_TYPES) if info(dtype).floating else ("an integer", INT_TYPES)
    return f"%{letter} does not format {dtype.name}: {kind} takes one of {letters}"


_PRINTF = re.compile(r"%(?:(?P<percent>%)|(?P<flag>[0#+\- ])?(?P<width>\d+)?(?:\.(?P<prec>\d*))?"
                     r"(?P<length>hh|h|ll|l)?(?P<type>[diouxXeEfFgGaA]))")


def parse_printf(format: str) -> list[str | Conversion]:
    """The text and the conversions of a printf format [PRINT-5]."""
    out: list[str | Conversion] = []
    at = 0
    while (start := format.find("%", at)) >= 0:
        m = _PRINTF.match(format, start)
        if m is None:
            raise FormatError(f"there is no conversion {format[start:start + 6]!r}: printf has "
                              f"%[one of 0#+- and space][width][.precision][hh, h, l or ll]"
                              f"[one of {INT_TYPES}{FLOAT_TYPES}], and %% for a percent sign")
        out.append(format[at:start])
        if m["percent"]:
            out.append("%")
        else:
            precision = None if m["prec"] is None else int(m["prec"] or 0)
            flags, width = m["flag"] or "", m["width"] or ""
            if width.startswith("0") and "0" not in flags:
                flags += "0"  # C sees a second flag in %+04d; the language reads 04 as a width
            out.append(Conversion(flags, int(width or 0), precision, m["length"] or "", m["type"]))
        at = m.end()
    return [*out, format[at:]]


_CONVERSION = re.compile(r"%([0#+\- ]*)(\d*)(?:\.(\d+))?(hh|h|ll|l)?([diouxXeEfFgGaA])")


def from_text(text: str) -> Conversion:
    """The inverse of str(): unlike those of printf, a conversion of a format spec may have several flags."""
    flags, width, precision, length, type = _CONVERSION.fullmatch(text).groups()
    return Conversion(flags, int(width or 0), None if precision is None else int(precision), length or "", type)


def check_suits(conversion: Conversion, dtype: DType) -> None:
    if not conversion.suits(dtype):
        raise FormatError(_mismatch(conversion.type, dtype))


# ------------------------------------------------------------------ tiles


def show(x: np.ndarray, each: Callable[[object], str]) -> str:
    """A tile as text, in nested lists; a scalar without brackets. `each` makes the text of an element [PRINT-2]."""
    return _nested(x.tolist(), each)


def _nested(x, each: Callable[[object], str]) -> str:
    return "[" + ", ".join(_nested(v, each) for v in x) + "]" if isinstance(x, list) else each(x)
