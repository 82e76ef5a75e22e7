"""Constants, what moves elements around or reads their bits differently, pointers as numbers, and assumptions."""

from __future__ import annotations

import numpy as np

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.module import Bounded, DivBy, Operation
from cutile.ops import _numeric
from tests.tileir_eval import formats
from tests.tileir_eval.registry import pure, require

# ------------------------------------------------------------------ making


@pure("constant", elementwise=True)
def _constant(o):
    value = formats.constant(o.attrs["value"], o.results[0].type)
    value.flags.writeable = False
    return lambda: value


@pure("iota")
def _iota(o):
    t = o.results[0].type
    require(len(t.shape) == 1, f"gives a tile of rank 1, not {t}", o)
    value = formats.wrapped(np.arange(t.size), t.element)
    return lambda: value


# ------------------------------------------------------------------ moving


@pure("reshape")
def _reshape(o):
    shape = o.results[0].type.shape
    return lambda x: np.reshape(x, shape)


@pure("broadcast")
def _broadcast(o):
    shape = o.results[0].type.shape
    return lambda x: np.broadcast_to(x, shape)


@pure("permute")
def _permute(o):
    order = o.attrs["permutation"]
    return lambda x: np.transpose(x, order)


@pure("cat")
def _cat(o):
    dim = o.attrs["dim"]
    return lambda x, y: np.concatenate((x, y), axis=dim)


@pure("select", elementwise=True)
def _select(o):
    return np.where


def _slices(o: Operation, whole: ty.Tile, part: ty.Tile, index) -> tuple[slice, ...]:
    """The slice of that number along each dimension. Numbers are unsigned."""
    out = []
    for k, n, size in zip(index, part.shape, whole.shape, strict=True):
        k = int(k) & 0xFFFFFFFF
        require(size % n == 0, f"{part} does not divide {whole}", o)
        require(k < size // n, f"there is no slice {k} of {size // n}", o)
        out.append(slice(k * n, (k + 1) * n))
    return tuple(out)


@pure("extract")
def _extract(o):
    whole, part = o.operands[0].type, o.results[0].type
    return lambda x, *index: x[_slices(o, whole, part, index)]


@pure("insert")
def _insert(o):
    part, whole = o.operands[0].type, o.results[0].type

    def insert(new, x, *index):
        out = np.array(x)
        out[_slices(o, whole, part, index)] = new
        return out

    return insert


# ------------------------------------------------------------------ bits


@pure("bitcast", elementwise=True)
def _bitcast(o):
    src, dst = o.operands[0].type.element, o.results[0].type.element
    require(src.bits == dst.bits, f"{src} and {dst} differ in width", o)
    return lambda x: formats.from_words(formats.to_words(x, src), dst)


def _whole_bytes(o: Operation, t: ty.Tile) -> bool:
    require(len(t.shape) == 1 and t.element.bits in (4, 16, 32, 64), f"{t} is not evaluated", o)
    return t.element.bits > 4


@pure("pack")
def _pack(o):
    t = o.operands[0].type
    if not _whole_bytes(o, t):
        return lambda x: _numeric.pack_f4(x).view(np.int8)
    return lambda x: np.ascontiguousarray(formats.to_words(x, t.element)).view(np.int8)


@pure("unpack")
def _unpack(o):
    t = o.results[0].type
    if not _whole_bytes(o, t):
        return lambda x: _numeric.unpack_f4(x.view(np.uint8))
    return lambda x: formats.from_words(np.ascontiguousarray(x).view(formats.word(t.element)), t.element)


# ------------------------------------------------------------------ pointers


def half_bytes(element: ty.Scalar) -> int:
    """From one element in memory to the next."""
    return 1 if element.bits == 4 else 2 * formats.word(element).itemsize


@pure("offset", elementwise=True)
def _offset(o):
    width, index = half_bytes(o.results[0].type.element.pointee), o.operands[1].type.element
    return lambda p, i: p + formats.signed(i, index).astype(np.int64) * width


pure("ptr_to_int", elementwise=True)(lambda o: lambda p: np.asarray(p) >> 1)
pure("int_to_ptr", elementwise=True)(lambda o: lambda i: np.asarray(i, np.int64) << 1)
pure("ptr_to_ptr", elementwise=True)(lambda o: np.positive)


# ------------------------------------------------------------------ assumptions


@pure("assume", elementwise=True)
def _assume(o):
    predicate, t = o.attrs["predicate"], o.results[0].type
    if isinstance(t, ty.TensorView):
        return lambda view: _checked(o, view.base % (2 * predicate.divisor) == 0, view)
    match predicate:
        case DivBy(divisor, None):
            unit = 2 * divisor if isinstance(t.element, ty.Pointer) else divisor
            return lambda x: _checked(o, not (np.asarray(x) % unit).any(), x)
        case DivBy(divisor, every, along):
            return lambda x: _checked(o, _rises(x, t, divisor, every, along), x)
        case Bounded(lower, upper):
            low, high = -(1 << 63) if lower is None else lower, (1 << 63) - 1 if upper is None else upper

            def bounded(x):
                numbers = formats.signed(x, t.element)
                return _checked(o, int(numbers.min()) >= low and int(numbers.max()) <= high, x)

            return bounded
    return lambda x: _checked(o, _same(x, predicate.sizes), x)


def _checked(o: Operation, holds: bool, x):
    if not holds:
        require(False, f"{o.attrs['predicate']} does not hold", o)
    return x


def _rises(x: np.ndarray, t: ty.Tile, divisor: int, every: int, along: int) -> bool:
    """The first of each `every` elements along a dimension is divisible, the others follow one by one."""
    pointers = isinstance(t.element, ty.Pointer)
    step = half_bytes(t.element.pointee) if pointers else 1
    x = np.moveaxis(np.asarray(x).astype(np.int64), along, -1)
    place = np.arange(x.shape[-1]) % every
    first = x - place * step
    starts = first[..., ::every]
    if (starts % (2 * divisor if pointers else divisor)).any():
        return False
    return bool((first == np.repeat(starts, every, axis=-1)[..., :x.shape[-1]]).all())


def _same(x: np.ndarray, sizes: tuple[int, ...]) -> bool:
    """Elements are equal in groups of these sizes."""
    group = np.asarray(x)
    for axis, size in enumerate(sizes):
        group = np.repeat(np.take(group, range(0, group.shape[axis], size), axis), size, axis)
        group = np.take(group, range(x.shape[axis]), axis)
    return bool((group == x).all())
