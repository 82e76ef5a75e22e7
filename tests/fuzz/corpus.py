"""Small kernels for the fuzzer to mutate. They use every family of ops and every statement.

`arguments` gives for each kernel a grid and arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import cutile as ct
from tests.fuzz import corpus_of_python


@dataclass(frozen=True)
class Point:
    x: object
    y: object


def twice(x, *, by=2):
    return x * by


def early(x, n):
    if n > 3:
        return x
    for i in range(n):
        if i == 2:
            return x + i
    return x - 1


def elementwise(a, b, out, T: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, index=i, shape=T, padding_mode=ct.PaddingMode.ZERO)
    y = ct.load(b, index=(i,), shape=(T,))
    z = ct.exp2(x) * y + ct.sqrt(abs(x)) - ct.sin(y) / (x + 2.0)
    z = ct.where(z > 0, z, -z).astype(ct.float16)
    ct.store(out, index=i, tile=z.astype(ct.float32))


def integers(a, b, out, T: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, i, shape=T).astype(ct.int32)
    y = ct.load(b, i, shape=T).astype(ct.int32)
    z = (x << 2) | (y & 7) ^ ~x
    z = z // (y * y + 1) % 5 + ct.bitcast(x.astype(ct.float32), ct.int32) * (x >= y)
    ct.store(out, i, ct.minimum(z, 100).astype(ct.float32))


def loops(a, b, out, n):
    total = ct.zeros((8,), ct.float32)
    for k in range(0, n, 2):
        x = ct.load(a, k % 4, shape=8)
        if k == 6:
            continue
        total += x * k
        if k > 10:
            break
    else_ = 0
    while else_ < 3:
        else_ += 1
        if ct.bid(0) == else_:
            total = total * 2
    ct.store(out, ct.bid(0), total)


def branches(a, b, out, n):
    i, j = ct.bid(0), ct.num_blocks(0)
    if i == 0 and n > 2:
        x = ct.load(a, 0, shape=4)
    elif i == 1 or j < 2:
        x = ct.full((4,), 1.5, ct.float32)
    else:
        x = ct.ones((4,), ct.float32)
    y = x if n > 1 else x + 1
    ct.assert_(y > -1e9, "far")
    ct.store(out, i, early(y, n))


def reductions(a, b, out, T: ct.Constant[int]):
    x = ct.load(a, 0, shape=T)
    m = ct.reshape(x, (2, T // 2))
    s = ct.sum(m, axis=1, keepdims=True)
    p = ct.prod(m, axis=0) + ct.max(m, axis=0) - ct.min(m, 0)
    c = ct.cumsum(m, axis=1, reverse=True)
    g = ct.argmax(m, axis=1)
    r = ct.reduce(m, axis=1, func=lambda u, v: u + v, identity=0.0)
    q = ct.scan(x, 0, lambda u, v: ct.maximum(u, v), -1000.0)
    ct.store(out, 0, ct.reshape(c + s + p + g[:, None] + r[:, None], (T,)) + q)


def shapes(a, b, out, T: ct.Constant[int]):
    x = ct.load(a, 0, shape=16).reshape((4, 4))
    y = ct.permute(x, (1, 0))
    z = ct.cat((x, y), axis=0)
    e = ct.extract(z, (1, 0), shape=(4, 4))
    t = ct.transpose(e) + ct.broadcast_to(ct.arange(4, dtype=ct.int32)[:, None], (4, 4))
    w = ct.expand_dims(t, 0)
    ct.store(out, 0, ct.reshape(w[0] if False else w, (16,)))


def products(a, b, out, T: ct.Constant[int]):
    x = ct.load(a, 0, shape=16).reshape((4, 4))
    y = ct.load(b, 0, shape=16).reshape((4, 4)).astype(ct.float32)
    acc = ct.zeros((4, 4), ct.float32)
    for _ in range(2):
        acc = ct.mma(x, y, acc)
    acc = acc + x @ y - ct.matmul(x.astype(ct.float16), y.astype(ct.float16))
    ct.store(out, 0, acc.reshape((16,)))


def indexed(a, b, out, T: ct.Constant[int]):
    i = ct.arange(T, dtype=ct.int32) + ct.bid(0) * T
    x = ct.gather(a, i, mask=i % 2 == 0, padding_value=-1)
    ct.scatter(out, (T - 1 - i,), x, check_bounds=True)
    ct.scatter(out, ct.bid(0), 3)


def atomics(a, b, out, T: ct.Constant[int]):
    i = ct.arange(T, dtype=ct.int32) % 4
    ct.atomic_add(out, i, 1.5)
    old = ct.atomic_xchg(out, 1, 2.5)
    ct.atomic_cas(b, (2,), 0, 7)
    ct.atomic_max(b, i, ct.bid(0), memory_order=ct.MemoryOrder.RELAXED)
    ct.atomic_and(b, i, 3)
    ct.store(a, 0, old)


def locked(a, b, out, n):
    while ct.atomic_cas(b, 0, 0, 1) != 0:
        pass
    v = ct.load(out, 0, ()) + 1
    ct.store(out, 0, v)
    ct.atomic_xchg(b, 0, 0)


def views(a, b, out, T: ct.Constant[int]):
    v = a.tiled_view((T,), padding_mode=ct.PaddingMode.NAN)
    o = out.tiled_view(T)
    s = a.slice(axis=0, start=2, stop=ct.bid(0) + 7)
    x = v.load(ct.bid(0)) + ct.load(s, 0, shape=T)
    o.store(ct.bid(0), x)
    ct.printf("%d %f\n", s.shape[0], ct.sum(x))
    print(f"{a.shape[0]} {ct.bid(0)}", x.shape, sep="-")


def structures(a, b, out, T: ct.Constant[int]):
    p = Point(ct.load(a, 0, shape=T), ct.bid(0))
    q = Point(p.y, p.x)
    t = (p, q, (1, 2.5, "text", None))
    (u, w), rest = (t[0].x, t[1].x), (t[2], 3)
    items = tuple(k * 2 for k in ct.static_iter(range(3)))
    total = u
    for k in ct.static_iter(items):
        total = twice(total, by=k + rest[1]) + w
    f = lambda x, y=1: x + y
    ct.static_assert(T > 2, "small")
    ct.store(out, ct.bid(0), f(total, y=ct.static_eval(T * 2)))


def dtypes(a, b, out, T: ct.Constant[int]):
    x = ct.load(a, 0, shape=T)
    h = x.astype(ct.float8_e4m3fn).astype(ct.bfloat16) + ct.astype(x, ct.float16).astype(ct.bfloat16)
    k = ct.astype(x, ct.uint8) + ct.full((T,), 200, ct.uint8)
    t = ct.bitcast(h, ct.int16).astype(ct.int64) ** 2
    u = ct.unpack_from_bytes(ct.pack_to_bytes(x), ct.float32)
    ct.store(out, 0, ct.add(h, 1, rounding_mode=ct.RoundingMode.RN).astype(ct.float32) + k + t + u)


def recursive(a, b, out, n):
    ct.store(out, ct.bid(0), climb(ct.load(a, 0, shape=2), 4))


def climb(x, n: ct.Constant[int]):
    if n == 0:
        return x
    return climb(x * 2, n - 1) + n


def conditions(a, b, out, n):
    x = ct.load(a, 0, shape=4)
    m = (x > 0) & (x < 2) | ~(x == 1)
    c = 0 < n <= 5 and not n == 3
    y = ct.where(m, x, ct.where(c, 1.0, 2.0))
    k = n if c else 7
    k += 1 if m.shape[0] == 4 else 2
    k **= 2
    k += max(n, 3) + min(k, n) + len((1, n)) + int("3") + float(2)
    ct.store(out, ct.bid(0), y + k - ct.cdiv(n, 3) + (n > 2) * 2)


def places(a, b, out, T: ct.Constant[int]):
    x = ct.load(a, 0, shape=T)
    at = ct.astile((3, 1, 0, 2), dtype=ct.int32) + ct.bid(0)
    y = ct.insert(x, (1,), ct.gather(a, at))
    m = out.get_raw_memory()
    m.store_offset(at, ct.extract(y, (0,), shape=(4,)), mask=at > 1)
    k = ct.assume_divisible_by(ct.bid(0) * 4, 4)
    s = out.slice(0, k, k + 4)
    ct.store(s, 0, m.load_offset(at, padding_value=0) + ct.num_tiles(s, 0, (2,)), order=(0,))


def rows(a, b, out, n):
    """`a` has two axes here."""
    at = (ct.arange(4, dtype=ct.int32) * n) % 8
    y = ct.load_advanced_indexing(a, (at, ct.Slice(ct.bid(0), 2)), padding_mode=ct.PaddingMode.ZERO)
    v = a.tiled_view((2, 2), padding_mode=ct.PaddingMode.NEG_INF)
    for k in range(v.num_tiles(0)):
        y = y + ct.max(v.load((k, 1)), axis=0, keepdims=True)
    ct.store_advanced_indexing(a, (ct.Slice(0, 4), ct.astile((2, 0), dtype=ct.int64)), y, latency=3)
    ct.store(out, ct.bid(0), ct.sum(y, axis=1) + a.shape[1] + a.strides[0])


def lists(arrays, b, out, n):
    """A list of arrays."""
    total = ct.load(arrays[0], 0, shape=4)
    for k in range(len(arrays)):
        x = arrays[k]
        total = total + ct.load(x, (ct.bid(0) + k) % 2, shape=4) * x.shape[0]
    ct.store(arrays[n % 2], 1, total)
    ct.store(out, ct.bid(0), total)


def scaled_products(a, b, out, T: ct.Constant[int]):
    x = ct.broadcast_to(ct.load(a, 0, shape=2)[:, None], (2, 32)).astype(ct.float8_e4m3fn)
    s = ct.full((2, 1), 4, ct.float8_e8m0fnu)
    y = ct.ones((32, 2), ct.float8_e4m3fn)
    z = ct.mma_scaled(x, s, y, ct.ones((1, 2), ct.float8_e8m0fnu), ct.zeros((2, 2), ct.float32))
    z = ct.mma(ct.ones((2, 4), ct.int8), ct.full((4, 2), -3, ct.int8), z.astype(ct.int32)).astype(ct.float32)
    t = ct.mma(ct.zeros((2, 4), ct.tfloat32), ct.ones((4, 2), ct.tfloat32), z)
    ct.store(out, 0, (z + t).reshape((4,)))


def library(a, b, out, T: ct.Constant[int]):
    x = ct.load(a, ct.bid(0), shape=T).reshape((2, T // 2))
    y = ct.lib.softmax(x, axis=1) + ct.lib.gelu(x) * ct.lib.mean(x, axis=0)
    r = ct.lib.uniform(7, ct.arange(T, dtype=ct.uint32)).reshape((2, T // 2))
    best = ct.lib.cummax(ct.lib.flip(x, axis=1), axis=1) if T > 2 else x
    ct.store(out, ct.bid(0), (y + r + best).reshape((T,)))


FUNCTIONS = (elementwise, integers, loops, branches, reductions, shapes, products, indexed, atomics, locked, views,
             structures, dtypes, recursive, conditions, places, rows, lists, scaled_products, library,
             *corpus_of_python.FUNCTIONS)
HELPERS = (twice, early, climb, *corpus_of_python.HELPERS)
USED = {"Point": Point, **corpus_of_python.USED}
# Kernels whose last argument is a run-time number.
NUMBER = (loops, branches, locked, recursive, conditions, rows, lists, *corpus_of_python.NUMBER)


def arguments(fn: Callable) -> tuple[tuple[int, ...], list]:
    """A grid and arguments for a kernel of this file."""
    a = np.arange(32, dtype=np.float32) / 4 - 2
    b = (np.arange(32) % 5 - 1).astype(np.int32) * (fn is not locked)
    first = a.reshape(8, 4) if fn is rows else [a, a[::-1].copy()] if fn is lists else a
    return (3,), [first, b, np.zeros(32, np.float32), 5 if fn in NUMBER else 8 if fn is not shapes else 16]
