"""The kernels of benchmarks/membound.py, as one writes them first: no hints, one block a tile or a row.

They are the source for every implementation: `_gpu_export.load` puts another module in the place of cutile.
"""

from __future__ import annotations

import cutile as ct

Int = ct.Constant[int]
f32, i32 = ct.float32, ct.int32


# ------------------------------------------------------------------ elementwise


@ct.kernel
def copy(x, out, T: Int):
    i = ct.bid(0)
    ct.store(out, (i,), ct.load(x, (i,), (T,)))


@ct.kernel
def add(x, y, out, T: Int):
    i = ct.bid(0)
    ct.store(out, (i,), ct.load(x, (i,), (T,)) + ct.load(y, (i,), (T,)))


@ct.kernel
def swiglu(gate, up, out, T: Int):
    i = ct.bid(0)
    g = ct.load(gate, (i,), (T,)).astype(f32)
    u = ct.load(up, (i,), (T,)).astype(f32)
    ct.store(out, (i,), (g / (1 + ct.exp(-g)) * u).astype(out.dtype))


@ct.kernel
def dropout(x, out, seed: int, keep: float, T: Int):
    """Keeps an element if a hash of its position, as a number from 0 to 1, is less than `keep`."""
    i = ct.bid(0)
    h = (i * T + ct.arange(T, dtype=i32) + seed).astype(ct.uint32)
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    u = ((h ^ (h >> 16)) >> 8).astype(f32) * (1.0 / (1 << 24))
    x_i = ct.load(x, (i,), (T,)).astype(f32)
    ct.store(out, (i,), ct.where(u < keep, x_i / keep, 0.0).astype(out.dtype))


@ct.kernel
def bias_gelu(x, bias, out, R: Int, C: Int):
    i, j = ct.bid(0), ct.bid(1)
    v = ct.load(x, (i, j), (R, C)).astype(f32) + ct.load(bias, (j,), (C,)).astype(f32)
    inner = 0.7978845608028654 * (v + 0.044715 * v * v * v)
    ct.store(out, (i, j), (0.5 * v * (1 + ct.tanh(inner))).astype(out.dtype))


@ct.kernel
def batch_norm(x, mean, var, weight, bias, out, C: Int, T: Int):
    """x: (images, channels, pixels); one block per tile of a channel."""
    n, c, k = ct.bid(0), ct.bid(1), ct.bid(2)
    a = ct.load(weight, (c,), (1,)) * ct.rsqrt(ct.load(var, (c,), (1,)) + 1e-5)
    b = ct.load(bias, (c,), (1,)) - ct.load(mean, (c,), (1,)) * a
    t = ct.load(x, (n, c, k), (1, C, T)).astype(f32)
    ct.store(out, (n, c, k), (t * a + b).astype(out.dtype))


@ct.kernel
def masked_fill(x, mask, out, value: float, T: Int):
    i = ct.bid(0)
    t = ct.load(x, (i,), (T,))
    ct.store(out, (i,), ct.where(ct.load(mask, (i,), (T,)) != 0, value, t).astype(out.dtype))


@ct.kernel
def clip_cast(x, out, low: float, high: float, T: Int):
    i = ct.bid(0)
    t = ct.minimum(ct.maximum(ct.load(x, (i,), (T,)), low), high)
    ct.store(out, (i,), t.astype(out.dtype))


@ct.kernel
def adam(p, g, m, v, rate: float, T: Int):
    i = ct.bid(0)
    grad = ct.load(g, (i,), (T,)).astype(f32)
    first = 0.9 * ct.load(m, (i,), (T,)) + 0.1 * grad
    second = 0.999 * ct.load(v, (i,), (T,)) + 0.001 * grad * grad
    ct.store(m, (i,), first)
    ct.store(v, (i,), second)
    ct.store(p, (i,), ct.load(p, (i,), (T,)) - rate * first / (ct.sqrt(second) + 1e-8))


@ct.kernel
def dequantise(q, scale, out, T: Int):
    i = ct.bid(0)
    t = ct.load(q, (i, 0), (1, T)).astype(f32) * ct.load(scale, (i,), (1,))
    ct.store(out, (i, 0), t.astype(out.dtype))


@ct.kernel
def unpack4(q, scale, out, G: Int, T: Int):
    """Two 4-bit numbers a byte, less 8, times a scale per group of G; they alternate in the result."""
    i, j = ct.bid(0), ct.bid(1)
    b = ct.load(q, (i, j), (1, T // 2)).astype(i32)
    both = ct.cat(((b & 15).reshape((T // 2, 1)), ((b >> 4) & 15).reshape((T // 2, 1))), 1)
    s = ct.load(scale, (i, j), (1, T // G)).reshape((T // G, 1)).astype(f32)
    t = (both.reshape((T // G, G)) - 8).astype(f32) * s
    ct.store(out, (i, j), t.reshape((1, T)).astype(out.dtype))


@ct.kernel
def one_hot(index, out, T: Int):
    i = ct.bid(0)
    ct.store(out, (i, 0), (ct.arange(T, dtype=i32) == ct.load(index, (i,), (1,))).astype(out.dtype).reshape((1, T)))


# ------------------------------------------------------------------ moving


@ct.kernel
def transpose(x, out, T: Int):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(out, (j, i), ct.load(x, (i, j), (T, T)).transpose())


@ct.kernel
def rotary(x, cos, sin, out, H: Int, D: Int):
    """x: (positions, heads, 2 D); the halves of each head are turned."""
    i = ct.bid(0)
    c = ct.load(cos, (i, 0), (1, D)).reshape((1, 1, D))
    s = ct.load(sin, (i, 0), (1, D)).reshape((1, 1, D))
    a = ct.load(x, (i, 0, 0), (1, H, D)).astype(f32)
    b = ct.load(x, (i, 0, 1), (1, H, D)).astype(f32)
    ct.store(out, (i, 0, 0), (a * c - b * s).astype(out.dtype))
    ct.store(out, (i, 0, 1), (b * c + a * s).astype(out.dtype))


@ct.kernel
def pad(x, out, P: Int, R: Int, C: Int):
    """A border of P zeros on each side."""
    i, j = ct.bid(0), ct.bid(1)
    rows = (i * R + ct.arange(R, dtype=i32) - P).reshape((R, 1))
    columns = (j * C + ct.arange(C, dtype=i32) - P).reshape((1, C))
    ct.store(out, (i, j), ct.gather(x, (rows, columns), padding_value=0))


@ct.kernel
def crop(x, out, top: int, left: int, R: Int, C: Int):
    i, j = ct.bid(0), ct.bid(1)
    part = x.slice(0, top, top + out.shape[0]).slice(1, left, left + out.shape[1])
    ct.store(out, (i, j), ct.load(part, (i, j), (R, C)))


@ct.kernel
def interleave(x, y, out, T: Int):
    i = ct.bid(0)
    a = ct.load(x, (i,), (T,)).reshape((T, 1))
    b = ct.load(y, (i,), (T,)).reshape((T, 1))
    ct.store(out, (i,), ct.cat((a, b), 1).reshape((2 * T,)))


@ct.kernel
def pixel_shuffle(x, out, W: Int):
    """x: (images, 4 channels, rows, W) to (images, channels, 2 rows, 2 W); one block per row of x."""
    n, c, r = ct.bid(0), ct.bid(1), ct.bid(2)
    t = ct.load(x, (n, c, r, 0), (1, 4, 1, W)).reshape((2, 2, W))
    ct.store(out, (n, c, r, 0), t.permute((0, 2, 1)).reshape((1, 1, 2, 2 * W)))


@ct.kernel
def embedding(table, index, out, T: Int):
    i = ct.bid(0)
    ct.store(out, (i, 0), ct.load(table, (ct.load(index, (i,), (1,)).item(), 0), (1, T)))


@ct.kernel
def gather(x, index, out, T: Int):
    i = ct.bid(0)
    ct.store(out, (i,), ct.gather(x, ct.load(index, (i,), (T,))))


@ct.kernel
def gather_add(x, index, out, T: Int):
    """out[i] = sum of the rows index[i, 0…3] of x."""
    i = ct.bid(0)
    total = ct.zeros((1, T), f32)
    for k in range(4):
        row = ct.load(index, (i, k), (1, 1)).item()
        total += ct.load(x, (row, 0), (1, T)).astype(f32)
    ct.store(out, (i, 0), total.astype(out.dtype))


@ct.kernel
def scatter_add(x, index, out, T: Int):
    """out[index[i]] += x[i]"""
    i = ct.bid(0)
    row = ct.load(index, (i,), (1,)).reshape((1, 1))
    ct.atomic_add(out, (row, ct.arange(T, dtype=i32).reshape((1, T))), ct.load(x, (i, 0), (1, T)))


@ct.kernel
def histogram(x, count, T: Int):
    i = ct.bid(0)
    ct.atomic_add(count, ct.load(x, (i,), (T,)), 1)


@ct.kernel
def histogram_copies(x, count, COPIES: Int, T: Int):
    i = ct.bid(0)
    ct.atomic_add(count, (i % COPIES, ct.load(x, (i,), (T,))), 1)


# ------------------------------------------------------------------ neighbours


@ct.kernel
def box_filter(x, out, R: Int, C: Int):
    """The mean of 3 x 3 elements; beyond the edge is 0."""
    i, j = ct.bid(0), ct.bid(1)
    rows = (i * R + ct.arange(R, dtype=i32)).reshape((R, 1))
    columns = (j * C + ct.arange(C, dtype=i32)).reshape((1, C))
    total = ct.zeros((R, C), f32)
    for a in ct.static_iter(range(-1, 2)):
        for b in ct.static_iter(range(-1, 2)):
            total += ct.gather(x, (rows + a, columns + b), padding_value=0.0)
    ct.store(out, (i, j), total / 9.0)


@ct.kernel
def max_pool(x, out, R: Int, C: Int):
    """The largest of 2 x 2 elements."""
    i, j = ct.bid(0), ct.bid(1)
    t = ct.load(x, (i, j), (2 * R, 2 * C)).reshape((R, 2, C, 2))
    ct.store(out, (i, j), ct.max(ct.max(t, axis=3), axis=1))
