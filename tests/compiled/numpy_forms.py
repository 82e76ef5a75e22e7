"""For each compiled form, the NumPy form that defines it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from cutile import compiled
from cutile.dtypes import INFO, DType, bfloat16, float16, float32, float64
from cutile.ops import _encoding, _exact, _hyperbolic, _numeric, _rounding, atomics, reduce, scan
from cutile.ops._op import Sig
from cutile.types import TileType


def _fma(dtype) -> Callable:
    return lambda x, y, z: _exact._fma(x, y, z, dtype, None)


def _round(dtype) -> Callable:
    return lambda x: _rounding._round(dtype, x)


def _function(fn, dtype) -> Callable:
    def numpy_form(x):
        y = fn(x.astype(np.float64))
        return y.astype(np.float32) if dtype is float32 else _rounding._round(dtype, y)

    return numpy_form


_ROUNDED = [d for d, i in INFO.items() if i.kind == "f" and d not in (float32, float64)]
ROUNDING = {f"round {t} to {d.name}": _round(d) for d in _ROUNDED for t in "fd"}
ENCODING = {f"{way} {d.name}": functools.partial(form, d) for d in (float16, bfloat16)
            for way, form in (("decode", _encoding._decode), ("encode", _encoding._encode))}
FUNCTIONS = {name: _function(fn, d) for (fn, d), name in _numeric._FUNCTIONS.items()}
ELEMENTWISE = {f"fma {d.name}": _fma(d) for d in (float16, bfloat16, float32, float64)}
EXTREMES = {f"{name}{' or nan' * nan} {d.name}": functools.partial(_numeric._extreme_of_floats, name, propagate_nan=nan)
            for name in ("maximum", "minimum") for nan in (False, True) for d in (float32, float64)}
_INTEGERS = {n: np.dtype(n).char for n in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")}
_INTEGERS |= {"int64": "q", "uint64": "Q"}
OF_INTEGERS = {f"{f.__name__} {n}": f for f in (np.maximum, np.minimum) for n in _INTEGERS}
CHOICES = dict.fromkeys([f"where {n}" for n in ("bool", *_INTEGERS, "float32", "float64")], np.where)
ELEMENTWISE |= {**EXTREMES, **OF_INTEGERS, **CHOICES, **ROUNDING, **ENCODING, **FUNCTIONS,
                "rsqrt float64": _exact._rsqrt, "sinh float64": _hyperbolic._sinh, "tanh float64": _hyperbolic._tanh}
ATOMICS = {f"atomic {kind} {d.name}": (kind, d) for kind, k in {**atomics.KINDS, "cas": atomics.CAS}.items()
           for d in k.dtypes}
ELEMENTS = ("gather", "scatter", *ATOMICS)  # `tests/compiled/test_elements.py` compares these


def _extremum(x, d, axis, _, *, sign, nan):
    return reduce._extreme(x, d, axis, sign, False, nan)


def _place(x, d, axis, _, *, pick, worst, nan):
    return reduce._arg(x, d, axis, pick, worst, nan)


def _fold(x, d, axis, _, *, name):
    return reduce._fold(name, x, TileType(d, x.shape), axis, None, False)


def _prefixes(x, d, axis, backwards, *, name):
    return scan._accumulated(name, x, Sig((TileType(d, x.shape),), ()), axis, backwards, None, False)


def _along() -> dict[str, tuple[DType, Callable]]:
    """Forms along an axis: a dtype of the elements, and f(x, dtype, axis, backwards)."""
    found = {}
    for d in (d for d, i in INFO.items() if i.arithmetic and i.carrier != np.bool_):
        carrier, floating = INFO[d].carrier.name, INFO[d].kind == "f"
        for nan in (False, True)[:1 + floating]:
            end = f"{' or nan' * nan} {carrier}"
            if d.name == carrier:
                found |= {f"max{end}": (d, partial(_extremum, sign=1, nan=nan)),
                          f"min{end}": (d, partial(_extremum, sign=-1, nan=nan)),
                          f"argmax{end}": (d, partial(_place, pick=np.argmax, worst=-np.inf, nan=nan)),
                          f"argmin{end}": (d, partial(_place, pick=np.argmin, worst=np.inf, nan=nan))}
        for name in ("add", "mul"):
            found |= {f"{name} halves {d.name}": (d, partial(_fold, name=name)),
                      f"{name} prefixes {d.name}": (d, partial(_prefixes, name=name))}
    return found | {f"sum {d.name}": (d, partial(_fold, name="add")) for d in (float32, float64)}


ALONG = _along()  # `tests/compiled/test_along.py` compares these
OPERANDS = {**dict.fromkeys(ELEMENTWISE, "fff"), **{name: name[6] for name in ROUNDING},  # dtypes, as characters
            **{name: "H" if name.startswith("decode") else "f" for name in ENCODING},
            **dict.fromkeys(FUNCTIONS, "f"), **{name: ("d" if name.endswith("64") else "f") * 2 for name in EXTREMES},
            **{name: _INTEGERS[name[8:]] * 2 for name in OF_INTEGERS},
            **{name: "?" + np.dtype(name[6:]).char * 2 for name in CHOICES}, "fma float64": "ddd",
            **{f"{name} float64": "d" for name in ("rsqrt", "sinh", "tanh")}}
_MEND = {name: functools.partial(_numeric._mend, *key) for key, name in _numeric._FUNCTIONS.items()}


def compute(name: str, *operands: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The result of a compiled form, as the meanings of ops get it."""
    return built()[name](*operands, out, _MEND.get(name))


@functools.cache
def built() -> dict[str, Callable]:
    """The forms; a test that asks for them is skipped where they were not built or the CPU has none."""
    forms = compiled._loaded()
    if not forms:
        pytest.skip("needs the compiled forms: a C compiler, and pip install -e .")
    return forms
