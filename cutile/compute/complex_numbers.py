"""Complex numbers as items: structs of two floats with the arithmetic of complex numbers, which is tile code [OPR-4].

They lie in memory as NumPy's do. An operator reads `z.real` and `z.imag`, and computes with + - * / == and != on two of
them, or on one and a real number, with `abs(z)`, `z.conjugate()`, and `z ** n` for integers n that are constants.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

import cutile as ct
from cutile.compute.value_types import COMPLEX, Number, Struct, StructValue
from cutile.dtypes import DType


class ComplexValue(StructValue):
    """What operators compute with; as a value of the host it is what makes NumPy's."""

    def __add__(self, other):
        z = as_complex(self, other)
        return made(self, self.real + z.real, self.imag + z.imag)

    def __sub__(self, other):
        z = as_complex(self, other)
        return made(self, self.real - z.real, self.imag - z.imag)

    def __mul__(self, other):
        z = as_complex(self, other)
        return made(self, self.real * z.real - self.imag * z.imag, self.real * z.imag + self.imag * z.real)

    def __truediv__(self, other):
        """Scaled by the larger part of the divisor, so that its square is not needed."""
        z = as_complex(self, other)
        if abs(z.real) >= abs(z.imag):
            ratio = z.imag / z.real
            whole = z.real + z.imag * ratio
            return made(self, (self.real + self.imag * ratio) / whole, (self.imag - self.real * ratio) / whole)
        ratio = z.real / z.imag
        whole = z.real * ratio + z.imag
        return made(self, (self.real * ratio + self.imag) / whole, (self.imag * ratio - self.real) / whole)

    def __radd__(self, other):
        return as_complex(self, other) + self

    def __rsub__(self, other):
        return as_complex(self, other) - self

    def __rmul__(self, other):
        return as_complex(self, other) * self

    def __rtruediv__(self, other):
        return as_complex(self, other) / self

    def __neg__(self):
        return made(self, -self.real, -self.imag)

    def __pos__(self):
        return self

    def __abs__(self):
        """As math.hypot: without overflow where the result is finite, and infinite if a part is, even beside a NaN."""
        return math.hypot(self.real, self.imag)

    def __pow__(self, n):
        """Products, as Python computes powers by integers up to 100; by a negative one, 1 divided by them."""
        ct.static_assert(_is_exponent(n), "complex numbers have powers by integers from -100 to 100, by constants; "
                                          "compute others with z.real and z.imag")
        if ct.static_eval(n == 0):
            return made(self, 1, 0)
        if ct.static_eval(n < 0):
            return 1 / _power(self, -n)
        return _power(self, n)

    def __eq__(self, other):
        z = as_complex(self, other)
        return (self.real == z.real) & (self.imag == z.imag)

    def __ne__(self, other):
        z = as_complex(self, other)
        return (self.real != z.real) | (self.imag != z.imag)

    def conjugate(self):
        return made(self, self.real, -self.imag)


def _is_exponent(n: Any) -> bool:
    return type(n) is int and -100 <= n <= 100


def _power(z, n):
    """z to the power of a positive constant, squared for each bit but the first."""
    if ct.static_eval(n == 1):
        return z
    half = _power(z, ct.static_eval(n // 2))
    return half * half if ct.static_eval(n % 2 == 0) else half * half * z


def made(like, real, imag):
    """A complex number of the type of another one."""
    return like.value_type.cls(like.value_type.parts[0].cast(real), like.value_type.parts[0].cast(imag))


def as_complex(like, x):
    """x as it is if it is complex, otherwise with an imaginary part of zero."""
    if ct.static_eval(_is_complex(x)):
        return x
    return made(like, x, 0)


def _is_complex(x: Any) -> bool:
    return isinstance(x, ComplexValue)


@dataclasses.dataclass(frozen=True)
class Complex(Struct):
    """Complex numbers. A real number converts to one."""

    def cast(self, v):
        if ct.static_eval(_is_real(v)):
            return self.cls(self.parts[0].cast(v), ct.zeros(v.shape, self.parts[1].dtype))
        return self.cls(self.parts[0].cast(v[0]), self.parts[1].cast(v[1]))

    def __str__(self) -> str:
        return self.cls.__name__


def _is_real(v: Any) -> bool:
    return isinstance(getattr(v, "dtype", None), DType)


def _complex(name: str, part: DType) -> Complex:
    cls = dataclasses.make_dataclass(name, [("real", Any), ("imag", Any)], frozen=True, eq=False, bases=(ComplexValue,))
    cls.__module__, cls.dtype = __name__, np.dtype(name)
    cls.value_type = Complex(cls, (Number(part), Number(part)), (0, 1, 2))
    return cls.value_type


COMPLEX |= {np.dtype(name): _complex(name, part)
            for name, part in (("complex64", ct.float32), ("complex128", ct.float64))}


def fields_of(layout: np.dtype) -> np.dtype:
    """The layout of an item in memory, with the parts of complex numbers as fields."""
    if layout.kind != "c":
        return layout
    part = COMPLEX[layout].parts[0].dtype
    return np.dtype([("real", part.name), ("imag", part.name)])
