"""Whole programs against their definitions. Errors are bounded by those of the operations, to first order, times two.

u is the unit roundoff of float32. A sum of n terms in any order is within n·u·Σ|terms|; exp is within 2 ulp, which is
4·u relative.
"""

import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, run

U = 2.0**-24
ACQUIRE, RELEASE = ct.MemoryOrder.ACQUIRE, ct.MemoryOrder.RELEASE
DEVICE, ZERO = ct.MemoryScope.DEVICE, ct.PaddingMode.ZERO


def random(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def within(got, want, bound):
    error = np.abs(got.astype(np.float64) - want)
    assert np.isfinite(got).all() and (error <= 2 * bound).all(), f"worst {np.max(error / np.maximum(bound, 1e-300))}"


@ct.kernel
def matmul(a, b, c, m: ct.Constant, n: ct.Constant, k: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((m, n), ct.float32)
    for t in range(ct.cdiv(a.shape[1], k)):
        x = ct.load(a, (i, t), (m, k), padding_mode=ZERO)
        y = ct.load(b, (t, j), (k, n), padding_mode=ZERO)
        acc = ct.mma(x, y, acc)
    ct.store(c, (i, j), acc.astype(c.dtype))


@clause("PROG-1.matmul")
@pytest.mark.parametrize("shape", [(16, 16, 16), (33, 20, 45), (5, 7, 3)], ids=str)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_matmul(shape, dtype):
    m, n, k = shape
    rng = np.random.default_rng(1)
    a, b = rng.integers(-8, 9, (m, k)).astype(dtype), rng.integers(-8, 9, (k, n)).astype(dtype)  # exact in any order
    c = run(matmul, a, b, np.zeros((m, n), np.float32), 16, 8, 16, grid=(-(-m // 16), -(-n // 8)))
    want = [[sum(int(a[i, t]) * int(b[t, j]) for t in range(k)) for j in range(n)] for i in range(m)]
    assert c.tolist() == want


@clause("PROG-1.matmul")
def test_matmul_of_halves():
    a, b = random(32, 64).astype(np.float16), random(64, 32, seed=1).astype(np.float16)
    c = run(matmul, a, b, np.zeros((32, 32), np.float32), 16, 16, 32, grid=(2, 2))
    x, y = a.astype(np.float64), b.astype(np.float64)
    within(c, x @ y, 64 * 2 * U * (np.abs(x) @ np.abs(y)))


@clause("PROG-1.split_k")
def test_split_k():
    @ct.kernel
    def k(a, b, c):
        i, t = ct.bid(0), ct.bid(1)
        part = ct.load(a, (i, t), (8, 16)) @ ct.load(b, (t, 0), (16, 8))
        rows = ct.arange(8, dtype=ct.int32)[:, None] + i * 8
        cols = ct.arange(8, dtype=ct.int32)[None, :]
        ct.atomic_add(c, (rows, cols), part)

    rng = np.random.default_rng(2)
    a, b = (rng.integers(-9, 10, s).astype(np.float32) for s in ((16, 64), (64, 8)))
    c = run(k, a, b, np.zeros((16, 8), np.float32), grid=(2, 4))
    assert c.tolist() == (a.astype(np.int64) @ b.astype(np.int64)).tolist()


@clause("PROG-1.softmax")
@pytest.mark.parametrize("columns", [1, 13, 32])
def test_softmax(columns):
    @ct.kernel
    def k(x, out, size: ct.Constant):
        row = ct.bid(0)
        t = ct.load(x, (row, 0), (1, size), padding_mode=ct.PaddingMode.NEG_INF)
        e = ct.exp(t - ct.max(t, 1, keepdims=True))
        ct.store(out, (row, 0), e / ct.sum(e, 1, keepdims=True))

    x = random(9, columns, scale=3)
    got = run(k, x, np.zeros_like(x), 32, grid=(9,))
    d = x.astype(np.float64) - x.max(1, keepdims=True)
    want = np.exp(d) / np.exp(d).sum(1, keepdims=True)
    # exp: 4u, and u·|d| for its argument, in the numerator and at most once more in the sum; 32 additions; a division
    each = (4 + np.abs(d)) * U
    within(got, want, want * (each + each.max(1, keepdims=True) + 33 * U) + 2.0**-149)


@clause("PROG-1.layer_norm")
def test_layer_norm():
    @ct.kernel
    def k(x, w, b, out, n: ct.Constant):
        row = ct.bid(0)
        cols = ct.arange(64, dtype=ct.int32)
        t = ct.load(x, (row, 0), (1, 64), padding_mode=ZERO).reshape((64,))
        d = ct.where(cols < n, t - ct.sum(t) / n, 0.0)
        y = d * ct.rsqrt(ct.sum(d * d) / n + 1e-5)
        y = y * ct.load(w, 0, 64, padding_mode=ZERO) + ct.load(b, 0, 64, padding_mode=ZERO)
        ct.store(out, (row, 0), y.reshape((1, 64)))

    x, w, b = random(6, 50), random(50, seed=1), random(50, seed=2)
    got = run(k, x, w, b, np.zeros_like(x), 50, grid=(6,))
    x, w, b = (v.astype(np.float64) for v in (x, w, b))
    mean, size = x.mean(1, keepdims=True), np.abs(x).mean(1, keepdims=True)
    sd = np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-5)
    want = (x - mean) / sd * w + b
    of_d = 64 * U * size + U * np.abs(x - mean)  # absolute error of a deviation
    relative = (64 + 2) * U / 2 + (of_d.max(1, keepdims=True) / sd) + 6 * U  # of 1 / sd
    within(got, want, np.abs(w) / sd * (of_d + np.abs(x - mean) * relative) + 2 * U * np.abs(want) + U * np.abs(b))


@clause("PROG-1.attention")
@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    @ct.kernel
    def k(q, key, value, out, scale, causal: ct.Constant):
        i = ct.bid(0)
        x = ct.load(q, (i, 0), (8, 16))
        top = ct.full((8, 1), -math.inf, ct.float32)
        total = ct.zeros((8, 1), ct.float32)
        acc = ct.zeros((8, 16), ct.float32)
        end = i + 1 if causal else key.shape[0] // 8
        for j in range(end):
            s = (x @ ct.transpose(ct.load(key, (j, 0), (8, 16)))) * scale
            if causal:
                rows = ct.arange(8, dtype=ct.int32)[:, None] + i * 8
                cols = ct.arange(8, dtype=ct.int32)[None, :] + j * 8
                s = ct.where(rows >= cols, s, -math.inf)
            new = ct.maximum(top, ct.max(s, 1, keepdims=True))
            p, fix = ct.exp(s - new), ct.exp(top - new)
            total = total * fix + ct.sum(p, 1, keepdims=True)
            acc = acc * fix + p @ ct.load(value, (j, 0), (8, 16))
            top = new
        ct.store(out, (i, 0), acc / total)

    q, key, value = (random(32, 16, seed=s).round(1) for s in range(3))
    got = run(k, q, key, value, np.zeros_like(q), 0.25, causal, grid=(4,))
    x, y, v = (t.astype(np.float64) for t in (q, key, value))
    s = x @ y.T * 0.25
    size = np.abs(x) @ np.abs(y).T * 0.25
    if causal:
        s = np.where(np.tri(32, dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    # scores: 16 products and additions; then exp twice a round and its argument; 32 additions and 4 corrections
    span = np.where(np.isfinite(s), s.max(1, keepdims=True) - s, 0).max()
    each = 18 * U * size.max() + (4 + span) * U + 4 * (4 + span) * U + 18 * U * size.max() + 40 * U
    tf32 = 2.0**-11 * (size.max() * 2 + 2)  # an implementation may round the operands of float32 products to tfloat32
    within(got, p @ v, (2 * each + tf32) * (p @ np.abs(v)))


@clause("PROG-1.histogram")
def test_histogram():
    @ct.kernel
    def k(x, bins):
        t = ct.load(x, ct.bid(0), 64, padding_mode=ZERO)
        inside = ct.arange(64, dtype=ct.int32) + ct.bid(0) * 64 < x.shape[0]
        ct.atomic_add(bins, ct.where(inside, t, bins.shape[0]), 1)

    x = np.random.default_rng(3).integers(0, 10, 1000).astype(np.int32)
    bins = run(k, x, np.zeros(10, np.int32), grid=(16,))
    assert bins.tolist() == [x.tolist().count(v) for v in range(10)]


@clause("PROG-1.scan")
def test_scan_with_look_back():
    @ct.kernel
    def k(ticket, x, state, out):
        b = ct.atomic_add(ticket, 0, 1)  # in the order in which blocks start
        s = ct.cumsum(ct.load(x, b, 32, padding_mode=ZERO), 0)
        before = ct.int64(0)
        if b > 0:
            while ct.atomic_add(state, (b - 1, 0), 0, memory_order=ACQUIRE, memory_scope=DEVICE) == 0:
                pass
            before = ct.load(state, (b - 1, 1), (1, 1)).item()
        ct.store(state, (b, 1), before + ct.extract(s, 31, 1).item())
        ct.atomic_xchg(state, (b, 0), 1, memory_order=RELEASE, memory_scope=DEVICE)
        ct.store(out, b, s + before)

    x = np.random.default_rng(4).integers(-(1 << 40), 1 << 40, 300)
    out = run(k, np.zeros(1, np.int32), x, np.zeros((10, 2), np.int64), np.zeros(300, np.int64), grid=(10,))
    total, want = 0, []
    for v in x.tolist():
        total += v
        want.append(total)
    assert out.tolist() == want


@clause("PROG-1.transpose")
def test_transpose():
    @ct.kernel
    def k(x, out):
        i, j = ct.bid(0), ct.bid(1)
        ct.store(out, (j, i), ct.transpose(ct.load(x, (i, j), (8, 4), padding_mode=ZERO)))

    x = np.arange(19 * 13, dtype=np.int16).reshape(19, 13)
    out = run(k, x, np.zeros((13, 19), np.int16), grid=(3, 4))
    assert all(out[j, i] == 13 * i + j for i in range(19) for j in range(13))


@clause("PROG-1.convolution")
def test_convolution():
    @ct.kernel
    def k(x, w, out):
        at = ct.arange(16, dtype=ct.int32) + ct.bid(0) * 16
        acc = ct.zeros((16,), ct.int32)
        for t in range(w.shape[0]):
            acc = acc + ct.gather(x, at + t - w.shape[0] // 2, padding_value=0) * ct.gather(w, t)
        ct.scatter(out, at, acc)

    rng = np.random.default_rng(5)
    x, w = rng.integers(-99, 99, 50).astype(np.int32), rng.integers(-9, 9, 5).astype(np.int32)
    out = run(k, x, w, np.zeros(50, np.int32), grid=(4,))
    at = lambda i: int(x[i]) if 0 <= i < 50 else 0
    assert out.tolist() == [sum(at(i + t - 2) * int(w[t]) for t in range(5)) for i in range(50)]


@clause("PROG-1.escape")
def test_mandelbrot():
    @ct.kernel
    def k(out):
        cx, cy = ct.bid(0) * 256 - 2048, ct.bid(1) * 256 - 1024  # in units of 1/1024
        x = y = n = 0
        while x * x + y * y <= 4 << 20 and n < 40:
            x, y = (x * x - y * y >> 10) + cx, (x * y >> 9) + cy
            n += 1
        ct.store(out, (ct.bid(0), ct.bid(1)), n)

    def steps(cx, cy):
        x, y, n = 0, 0, 0
        while x * x + y * y <= 4 << 20 and n < 40:
            x, y, n = (x * x - y * y >> 10) + cx, (x * y >> 9) + cy, n + 1
        return n

    out = run(k, np.zeros((12, 9), np.int32), grid=(12, 9))
    want = [[steps(i * 256 - 2048, j * 256 - 1024) for j in range(9)] for i in range(12)]
    assert out.tolist() == want and len({n for row in want for n in row}) > 5


@clause("PROG-1.gcd")
def test_gcd():
    @ct.kernel
    def k(pairs, out):
        b = ct.bid(0)
        x, y = ct.load(pairs, (b, 0), (1, 1)).item(), ct.load(pairs, (b, 1), (1, 1)).item()
        while y != 0:
            x, y = y, x % y
        ct.store(out, b, x)

    pairs = np.random.default_rng(6).integers(1, 10**6, (40, 2)).astype(np.int32)
    pairs[:5] *= 12
    out = run(k, pairs, np.zeros(40, np.int32), grid=(40,))
    assert out.tolist() == [math.gcd(int(a), int(b)) for a, b in pairs]


@clause("PROG-1.nearest")
def test_nearest():
    @ct.kernel
    def k(points, centres, out):
        p = ct.load(points, (ct.bid(0), 0), (16, 2))
        c = ct.load(centres, (0, 0), (8, 2))
        d = p[:, None, :] - c[None, :, :]
        ct.store(out, ct.bid(0), ct.argmin(ct.sum(d * d, 2), 1))

    rng = np.random.default_rng(7)
    points, centres = rng.integers(0, 50, (64, 2)).astype(np.int32), rng.integers(0, 50, (8, 2)).astype(np.int32)
    out = run(k, points, centres, np.zeros(64, np.int32), grid=(4,))
    for p, i in zip(points.tolist(), out.tolist(), strict=True):
        d = [(p[0] - c[0]) ** 2 + (p[1] - c[1]) ** 2 for c in centres.tolist()]
        assert d.index(min(d)) == i


@clause("PROG-1.sort")
def test_sort():
    @ct.kernel
    def k(x, n: ct.Constant):
        for step in range(n):
            left = ct.arange(n // 2, dtype=ct.int32) * 2 + step % 2
            a, b = ct.gather(x, left), ct.gather(x, left + 1, padding_value=2**31 - 1)
            ct.scatter(x, left, ct.minimum(a, b))
            ct.scatter(x, left + 1, ct.maximum(a, b))

    x = np.random.default_rng(8).integers(-1000, 1000, 32).astype(np.int32)
    want = sorted(x.tolist())
    assert run(k, x, 32).tolist() == want


@clause("PROG-1.life")
def test_life():
    @ct.kernel
    def k(x, out):
        rows = ct.arange(8, dtype=ct.int32)[:, None] + ct.bid(0) * 8
        cols = ct.arange(8, dtype=ct.int32)[None, :] + ct.bid(1) * 8
        n = ct.zeros((8, 8), ct.int32)
        for i, j in ct.static_iter([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]):
            n = n + ct.gather(x, (rows + i, cols + j), padding_value=0)
        alive = ct.load(x, (ct.bid(0), ct.bid(1)), (8, 8))
        ct.store(out, (ct.bid(0), ct.bid(1)), ((n == 3) | ((n == 2) & (alive == 1))).astype(ct.int32))

    def step(cells):
        near = lambda c: {(c[0] + i, c[1] + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} - {c}
        board = {(i, j) for i in range(16) for j in range(16)}
        return {c for c in board if len(near(c) & cells) == 3 or len(near(c) & cells) == 2 and c in cells}

    cells = {(1, 2), (2, 3), (3, 1), (3, 2), (3, 3), (9, 9), (9, 10), (9, 11), (0, 15), (15, 15), (14, 15), (15, 14)}
    x = np.zeros((16, 16), np.int32)
    x[tuple(zip(*cells, strict=True))] = 1
    for _ in range(6):
        out = np.zeros_like(x)
        launch(k, x, out, grid=(2, 2))
        x, cells = out, step(cells)
        assert set(zip(*(v.tolist() for v in np.nonzero(x)), strict=True)) == cells
