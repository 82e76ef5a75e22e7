"""Small programs written for the evaluator's own tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.builder import Builder, Module, Value
from cutile.gpu.tileir.types import i8, i32, i64, ptr, tile
from tests.tileir_eval import Pointer, evaluate, formats

VERSION = "13.4"


def pointers(b: Builder, base: Value, t: ty.Tile) -> Value:
    """To as many elements from `base` on, in row-major order, as a tile of type `t` has."""
    p = tile(base.type.element, (t.size,))
    one = b.op("reshape", [base], result=tile(base.type.element, (1,)))
    at = b.op("offset", [b.op("broadcast", [one], result=p), b.op("iota", result=tile(i32, (t.size,)))])
    return b.op("reshape", [at], result=tile(base.type.element, t.shape))


def store(b: Builder, base: Value, x: Value) -> None:
    """All of a tile from `base` on; i1 as bytes."""
    if x.type.element is ty.i1:
        x = b.op("exti", [x], result=tile(i8, x.type.shape), signedness="unsigned")
    b.op("store_ptr_tko", [pointers(b, base, x.type), x])


def memory_of(element: ty.Scalar) -> ty.Scalar:
    return i8 if element is ty.i1 else element


def run(build: Callable[..., None], arguments: Sequence[ty.Tile], args: Sequence, grid=(1,), **options) -> list[str]:
    """Evaluate an entry that takes `arguments`, which `build(b, *values)` fills. What it printed."""
    module = Module(VERSION)
    entry = module.entry("k", arguments)
    build(entry.body, *entry.arguments)
    if not entry.body.block.terminated:
        entry.body.op("return")
    return evaluate(module.to_bytes(), "k", grid, args, **options)


def evaluated(build: Callable[[Builder], Value | Sequence[Value]], **options) -> list[np.ndarray]:
    """The tiles that `build(b)` makes, in the carriers of formats.py; i1 as 0 and 1, pointers as bytes."""

    def made(b: Builder) -> list[Value]:
        values = build(b)
        return [b.op("ptr_to_int", [v], result=tile(i64, v.type.shape)) if isinstance(v.type.element, ty.Pointer) else v
                for v in (values if isinstance(values, Sequence) else [values])]

    def whole(b: Builder, *bases: Value) -> None:
        for base, v in zip(bases, made(b), strict=True):
            store(b, base, v)

    types = [v.type for v in made(Module(VERSION).entry("k", []).body)]
    elements = [memory_of(t.element) for t in types]
    outs = [np.zeros(t.size, _storage(e)) for t, e in zip(types, elements, strict=True)]
    run(whole, [tile(ptr(e)) for e in elements], [Pointer(o) for o in outs], **options)
    words = [o.view(formats.word(e)) for o, e in zip(outs, elements, strict=True)]
    return [formats.from_words(w, e).reshape(t.shape) for w, t, e in zip(words, types, elements, strict=True)]


def _storage(element: ty.Scalar) -> np.dtype:
    """Of arrays with such elements. float4 is known by its name."""
    return np.dtype(ml_dtypes.float4_e2m1fn) if element is ty.e2m1 else formats.word(element)
