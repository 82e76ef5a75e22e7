"""Elements at indices: the compiled forms against the NumPy forms that define them, on every op and dtype."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from cutile import dtypes as dt
from cutile import settings
from cutile.interp.memory.array_view import ArrayView, wrap
from cutile.ops import _numeric, _rounding
from tests.compiled.numpy_forms import ATOMICS, built

SHAPES = [(), (7,), (5, 6), (3, 4, 2)]
INDICES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
BATCH, TILE = (3, 1, 2), (4, 8)
LAYOUTS = ("packed", "reversed", "transposed", "unaligned")
DTYPES = [d for d, i in dt.INFO.items() if i.storage is not None]


def numbers(dtype: dt.DType, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Carriers of a dtype, from a few values, among them zeros of both signs, infinities and the ends of the range."""
    i = dt.info(dtype)
    if i.kind == "f":
        values = np.array([0.0, -0.0, 1, 1.5, -3, 2.0**-9, 448, 0.1, np.inf, -np.inf], i.carrier)
        values = values if dtype in (dt.float32, dt.float64) else _rounding.round_to(dtype, values)
    else:
        low, high = (0, 1) if i.carrier == np.bool_ else dt.int_range(dtype)
        values = np.array([0, 1, high, low, high // 3], i.carrier)
    return rng.choice(values, shape)


def in_memory(dtype: dt.DType, shape: tuple[int, ...], layout: str, rng: np.random.Generator) -> np.ndarray:
    """An array as it is stored, with memory around it and between its elements that nothing may change."""
    wide = numbers(dtype, tuple(2 * n + 1 for n in shape), rng)
    stored = _numeric.to_storage(wide, dtype)
    if layout == "packed":
        return np.ascontiguousarray(stored[tuple(slice(n) for n in shape)])
    if layout == "unaligned":
        raw = np.zeros(stored.nbytes + 1, np.uint8)[1:].view(stored.dtype).reshape(stored.shape)
        raw[...] = stored
        stored = raw
    part = stored[tuple(slice(1, 2 * n, 2) for n in shape)]
    return part.T if layout == "transposed" else part[(slice(None, None, -1),) * part.ndim]


def view_of(a: np.ndarray, dtype: dt.DType, start: int) -> ArrayView:
    """All of an array, or its part from `start` on along each axis, to which fewer elements than its end belong."""
    v = wrap(a, dtype)
    for k, n in enumerate(a.shape if start else ()):
        v = v.slice(k, np.asarray(start), np.asarray(n + 1))
    return v


def indices_into(shape: tuple[int, ...], rng: np.random.Generator) -> list[np.ndarray]:
    """Indices of all dtypes and of many shapes that broadcast. Some lie outside, near and far."""
    found = []
    for n in shape:
        form = tuple(m if rng.random() < 0.7 else 1 for m in (*BATCH, *TILE))[rng.integers(0, 4):]
        i = rng.integers(0 if rng.random() < 0.3 else -2, n if rng.random() < 0.3 else n + 2, form)
        i = np.where(rng.random(form) < 0.02, rng.choice([-(1 << 31), 1 << 31, 1 << 62, -(1 << 62)]), i)
        found.append(i.astype(INDICES[rng.integers(len(INDICES))]))
    return found


Run = Callable[[ArrayView, list[np.ndarray], np.ndarray | None], object]  # of view, indices, mask


def compare(run: Run, dtype: dt.DType, seed: int) -> None:
    """Run both forms for arrays of all shapes and layouts, and compare results and memory."""
    for shape, layout, start in itertools.product(SHAPES, LAYOUTS, (0, -1, 2)):
        rng = np.random.default_rng((seed, len(shape), LAYOUTS.index(layout), start + 1))
        a = in_memory(dtype, shape, layout, rng)
        indices = indices_into(a.shape, rng)
        mask = rng.random((*BATCH, *TILE)) < 0.8 if rng.random() < 0.5 else None
        found = []
        for with_forms in (False, True):
            memory, there = _copy_of(a)
            with settings.override(COMPILED=with_forms), np.errstate(all="ignore"):
                result = run(view_of(memory, dtype, start), indices, mask)
            found.append((_bits(result), there.tobytes()))
        assert found[0] == found[1], (shape, layout, start)


def _copy_of(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A copy with the same layout, and the copy of all the memory around it."""
    whole = a
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    there = np.frombuffer(bytearray(whole.tobytes()), np.uint8)
    first = a.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return np.ndarray(a.shape, a.dtype, there, first, a.strides), there


def _bits(x: object) -> object:
    if isinstance(x, tuple):
        return tuple(map(_bits, x))
    return x if x is None else (x.dtype, x.shape, np.ascontiguousarray(x).tobytes())


def full(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x, (*BATCH, *TILE))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_gather(dtype):
    built()
    fill = numbers(dtype, TILE, np.random.default_rng(3))

    def run(v, indices, mask):
        v.buffer.may_change = mask is None  # a buffer that does not change may be converted as a whole
        return tuple(full(v.gather(indices, mask, f, TILE)) for f in (fill, fill[0, 0]) for _ in range(2))

    compare(run, dtype, 1)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_gather_into_an_array(dtype):
    built()

    def run(v, indices, mask):
        v.buffer.may_change = False
        out = np.zeros((*BATCH, *TILE), v.buffer.carrier)
        return full(v.gather(indices, mask, np.zeros((), v.buffer.carrier), TILE, out))

    compare(run, dtype, 2)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_scatter(dtype):
    built()
    value = numbers(dtype, (*BATCH, *TILE), np.random.default_rng(4))

    def run(v, indices, mask):
        v.scatter(indices, value, mask, TILE)
        v.scatter(indices, value[0, 0, 0, 0], mask, TILE)
        v.scatter(indices, value[..., :1], mask, TILE)

    compare(run, dtype, 3)


@pytest.mark.parametrize("name", ATOMICS)
def test_atomics(name):
    assert name in built()
    kind, dtype = ATOMICS[name]
    operands = [numbers(dtype, (*BATCH, *TILE), np.random.default_rng(5 + k)) for k in range(2)]

    def run(v, indices, mask):
        if kind != "cas":
            done, _ = v.update(kind, indices, (operands[0][:1, ..., :1],), mask, TILE, BATCH, False)
            return full(done), *v.update(kind, indices, operands[:1], mask, TILE, BATCH)
        now = np.zeros((), v.buffer.carrier)
        return v.update(kind, indices, operands, mask, TILE, BATCH), \
            v.update(kind, indices, (now, operands[1]), mask, TILE, BATCH)

    compare(run, dtype, 4)


def test_what_does_not_fit_is_refused():
    forms, a, i = built(), np.zeros(4, np.float32), np.zeros(3, np.int32)
    for gather in (lambda *given: forms["gather"](a, *given), lambda *given: forms["gather"](a, *given, None)):
        with pytest.raises(ValueError, match="an access takes"):
            gather((0, 4, 0, 4), (i, i), None, a[0])
        with pytest.raises(ValueError, match="broadcast"):
            gather((0, 4), (i,), np.ones(2, bool), a[0])
        with pytest.raises(TypeError, match="expected an array"):
            gather((0, 4), (a,), None, a[0])
        with pytest.raises(TypeError, match="expected an array"):
            gather((0, 4), (i,), None, np.float64(0))
    with pytest.raises(TypeError, match="takes"):
        forms["scatter"](a, (0, 4), (i,))
    with pytest.raises(TypeError, match="takes"):
        forms["atomic add float32"](a, (0, 4), (i,), None, a, a)
    with pytest.raises(TypeError, match="array of type"):
        forms["atomic add float32"](i, (0, 4), (i,), None, a, a, (3,))
    read_only = a.copy()
    read_only.flags.writeable = False
    with pytest.raises((ValueError, BufferError), match="read-only|not writable"):
        forms["scatter"](read_only, (0, 4), (i,), None, a[:3])
