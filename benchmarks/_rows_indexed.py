"""Rows led by indices: gathers, scatters, slices, loaded tile indices, segments, atomics."""

from __future__ import annotations

import numpy as np
from _row import F16, F32, F64, I32, Row, blocks, integers, normal

import cutile as ct

# ------------------------------------------------------------------ images, a tile of TY × TX pixels a block

SIDE, TY, TX = 512, 16, 64


def convolve_plain(x, w, y):
    padded = np.pad(x, 1)
    y[...] = sum(w[a, b] * padded[a:a + SIDE, b:b + SIDE] for a in range(3) for b in range(3))


def convolve_loop(x, w, y):
    padded = np.pad(x, 1)
    for i in range(0, SIDE, TY):
        for j in range(0, SIDE, TX):
            y[i:i + TY, j:j + TX] = sum(w[a, b] * padded[i + a:i + a + TY, j + b:j + b + TX]
                                        for a in range(3) for b in range(3))


@ct.kernel
def convolve(x, w, y, TY: ct.Constant[int], TX: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    row = i * TY + ct.arange(TY, dtype=ct.int32)[:, None]
    col = j * TX + ct.arange(TX, dtype=ct.int32)[None, :]
    acc = ct.zeros((TY, TX), ct.float32)
    for a in ct.static_iter(range(3)):
        for b in ct.static_iter(range(3)):
            acc = acc + ct.load(w, (a, b), (1, 1)) * ct.gather(x, (row + (a - 1), col + (b - 1)))
    ct.store(y, (i, j), acc)


def life_plain(x, y):
    n = sum(np.roll(x, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)
    y[...] = (n == 3) | (x == 1) & (n == 2)


def life_loop(x, y):
    for i in range(0, SIDE, TY):
        for j in range(0, SIDE, TX):
            part = x[np.arange(i - 1, i + TY + 1) % SIDE][:, np.arange(j - 1, j + TX + 1) % SIDE]
            n = sum(part[a:a + TY, b:b + TX] for a in range(3) for b in range(3)) - part[1:-1, 1:-1]
            y[i:i + TY, j:j + TX] = (n == 3) | (part[1:-1, 1:-1] == 1) & (n == 2)


@ct.kernel
def life(x, y, N: ct.Constant[int], TY: ct.Constant[int], TX: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    row = i * TY + ct.arange(TY, dtype=ct.int32)[:, None]
    col = j * TX + ct.arange(TX, dtype=ct.int32)[None, :]
    n = ct.zeros((TY, TX), ct.int32)
    for a in ct.static_iter((-1, 0, 1)):
        for b in ct.static_iter((-1, 0, 1)):
            if a != 0 or b != 0:
                n = n + ct.gather(x, ((row + a + N) % N, (col + b + N) % N))
    alive = ct.load(x, (i, j), (TY, TX))
    ct.store(y, (i, j), ct.where((n == 3) | ((alive == 1) & (n == 2)), 1, 0))


def heat_plain(x, y):
    y[...] = x[1:-1, 1:-1] + F32(0.1) * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1])


def heat_loop(x, y):
    for i in range(0, SIDE, TY):
        for j in range(0, SIDE, TX):
            heat_plain(x[i:i + TY + 2, j:j + TX + 2], y[i:i + TY, j:j + TX])


@ct.kernel
def heat(x, y, N: ct.Constant[int], TY: ct.Constant[int], TX: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    inner, lower, upper = x.slice(0, 1, N + 1), x.slice(0, 0, N), x.slice(0, 2, N + 2)
    here = ct.load(inner.slice(1, 1, N + 1), (i, j), (TY, TX))
    beside = ct.load(inner.slice(1, 0, N), (i, j), (TY, TX)) + ct.load(inner.slice(1, 2, N + 2), (i, j), (TY, TX))
    above = ct.load(lower.slice(1, 1, N + 1), (i, j), (TY, TX)) + ct.load(upper.slice(1, 1, N + 1), (i, j), (TY, TX))
    ct.store(y, (i, j), here + 0.1 * (beside + above - 4 * here))


def warp_inputs():
    y, x = np.mgrid[:SIDE, :SIDE].astype(F32)
    angle = F32(0.3)
    return normal(SIDE, SIDE), x * np.cos(angle) - y * np.sin(angle) + 100, x * np.sin(angle) + y * np.cos(angle) - 40


def warp_plain(image, px, py, out):
    x0, y0 = np.floor(px), np.floor(py)
    fx, fy = px - x0, py - y0
    xi, yi = x0.astype(I32) + 1, y0.astype(I32) + 1
    padded = np.pad(image, 1)
    last = SIDE + 1

    def at(y, x):
        return padded[np.clip(y, 0, last), np.clip(x, 0, last)]

    top = at(yi, xi) + fx * (at(yi, xi + 1) - at(yi, xi))
    bottom = at(yi + 1, xi) + fx * (at(yi + 1, xi + 1) - at(yi + 1, xi))
    out[...] = top + fy * (bottom - top)


def warp_loop(image, px, py, out):
    for i in range(0, SIDE, TY):
        for j in range(0, SIDE, TX):
            part = slice(i, i + TY), slice(j, j + TX)
            warp_plain(image, px[part], py[part], out[part])


@ct.kernel
def warp(image, px, py, out, TY: ct.Constant[int], TX: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    x, y = ct.load(px, (i, j), (TY, TX)), ct.load(py, (i, j), (TY, TX))
    x0, y0 = ct.floor(x), ct.floor(y)
    xi, yi = x0.astype(ct.int32), y0.astype(ct.int32)
    a, b = ct.gather(image, (yi, xi)), ct.gather(image, (yi, xi + 1))
    c, d = ct.gather(image, (yi + 1, xi)), ct.gather(image, (yi + 1, xi + 1))
    top, bottom = a + (x - x0) * (b - a), c + (x - x0) * (d - c)
    ct.store(out, (i, j), top + (y - y0) * (bottom - top))


# ------------------------------------------------------------------ FFT of 64 points by gathers, 16 signals a block

POINTS, SIGNALS, TOGETHER = 64, 4096, 16


def reversed_bits(n):
    bits = n.bit_length() - 1
    return np.array([int(f"{i:0{bits}b}"[::-1], 2) for i in range(n)], I32)


def twiddles():
    angle = -2 * np.pi * np.arange(POINTS // 2) / POINTS
    return np.cos(angle).astype(F32), np.sin(angle).astype(F32)


def fft_plain(re, im, order, cos, sin, out):
    a = re[:, order] + 1j * im[:, order]
    w = cos + 1j * sin
    half = 1
    while half < POINTS:
        pairs = a.reshape(len(a), -1, 2, half)
        odd = pairs[:, :, 1] * w[::POINTS // (2 * half)]
        a = np.stack([pairs[:, :, 0] + odd, pairs[:, :, 0] - odd], axis=2).reshape(a.shape)
        half *= 2
    out[0], out[1] = a.real, a.imag


def fft_loop(re, im, order, cos, sin, out):
    for i in range(0, SIGNALS, TOGETHER):
        fft_plain(re[i:i + TOGETHER], im[i:i + TOGETHER], order, cos, sin, out[:, i:i + TOGETHER])


@ct.kernel
def fft(re, im, order, cos, sin, out, R: ct.Constant[int], N: ct.Constant[int]):
    i = ct.bid(0)
    row = i * R + ct.arange(R, dtype=ct.int32)[:, None]
    at = ct.load(order, 0, N)[None, :]
    x, y = ct.gather(re, (row, at)), ct.gather(im, (row, at))
    for half in ct.static_iter((1, 2, 4, 8, 16, 32)):
        x, y = x.reshape((R, N // (2 * half), 2, half)), y.reshape((R, N // (2 * half), 2, half))
        part = (R, N // (2 * half), 1, half)
        k = ct.arange(half, dtype=ct.int32) * (N // (2 * half))
        c, s = ct.gather(cos, k), ct.gather(sin, k)
        x0, x1 = ct.extract(x, (0, 0, 0, 0), part), ct.extract(x, (0, 0, 1, 0), part)
        y0, y1 = ct.extract(y, (0, 0, 0, 0), part), ct.extract(y, (0, 0, 1, 0), part)
        tx, ty = x1 * c - y1 * s, x1 * s + y1 * c
        x, y = ct.cat((x0 + tx, x0 - tx), 2).reshape((R, N)), ct.cat((y0 + ty, y0 - ty), 2).reshape((R, N))
    ct.store(out, (0, i, 0), x.reshape((1, R, N)))
    ct.store(out, (1, i, 0), y.reshape((1, R, N)))


def fft_exact(re, im, *_):
    z = np.fft.fft(re.astype(F64) + 1j * im)
    return np.stack([z.real, z.imag])


# ------------------------------------------------------------------ segments, one a block; a sparse matrix; a search

SEGMENTS, ITEMS, PIECE = 2048, 1 << 18, 64


def segments():
    cuts = np.sort(integers(0, ITEMS, SEGMENTS - 1))
    return normal(ITEMS), np.concatenate([[0], cuts, [ITEMS]]).astype(I32)


def sums_plain(x, ends, y):
    sums = np.concatenate([[0], np.cumsum(x, dtype=F64)])
    y[...] = sums[ends[1:]] - sums[ends[:-1]]


def sums_loop(x, ends, y):
    for i in range(SEGMENTS):
        y[i] = x[ends[i]:ends[i + 1]].sum()


@ct.kernel
def sums(x, ends, y, T: ct.Constant[int]):
    i = ct.bid(0)
    first, last = ct.gather(ends, i), ct.gather(ends, i + 1)
    acc = ct.zeros((T,), ct.float32)
    for at in range(first, last, T):
        k = at + ct.arange(T, dtype=ct.int32)
        acc = acc + ct.gather(x, k, mask=k < last)
    ct.scatter(y, i, ct.sum(acc))


WIDTH, SPARSE = 32, 8192


def sparse_plain(values, columns, x, y):
    y[...] = (values * x[columns]).sum(axis=1)


@ct.kernel
def sparse(values, columns, x, y, T: ct.Constant[int], W: ct.Constant[int]):
    i = ct.bid(0)
    xs = ct.gather(x, ct.load(columns, (i, 0), (T, W)))
    ct.store(y, i, ct.sum(ct.load(values, (i, 0), (T, W)) * xs, axis=1))


TABLE, SOUGHT, SEEKERS = 4096, 1 << 17, 256


def search_plain(table, x, y):
    low, high = np.zeros(x.shape, I32), np.full(x.shape, TABLE, I32)
    for _ in range(13):
        middle = (low + high) >> 1
        less = (low < high) & (table[np.minimum(middle, TABLE - 1)] < x)
        low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
    y[...] = low


def search_loop(table, x, y):
    for i in range(0, SOUGHT, SEEKERS):
        search_plain(table, x[i:i + SEEKERS], y[i:i + SEEKERS])


@ct.kernel
def search(table, x, y, T: ct.Constant[int], N: ct.Constant[int]):
    i = ct.bid(0)
    sought = ct.load(x, i, T)
    low, high = ct.zeros((T,), ct.int32), ct.full((T,), N, ct.int32)
    for _ in range(13):
        middle = (low + high) >> 1
        less = (low < high) & (ct.gather(table, middle) < sought)
        low, high = ct.where(less, middle + 1, low), ct.where(less, high, middle)
    ct.store(y, i, low)


# ------------------------------------------------------------------ loaded tile indices: an embedding, experts

WORDS, TEXT, FEATURES = 4096, 2048, 768


def embed_plain(table, words, y):
    y[...] = table[words]


def embed_loop(table, words, y):
    for i in range(TEXT):
        y[i] = table[words[i]]


@ct.kernel
def embed(table, words, y, T: ct.Constant[int]):
    i = ct.bid(0)
    word = ct.load(words, i, 1).item()
    ct.store(y, (i, 0), ct.load(table, (word, 0), (1, T), padding_mode=ct.PaddingMode.ZERO))


EXPERTS, GROUPS, TM, INNER, OUTER, TK, TN = 8, 64, 16, 160, 96, 64, 64


def grouped_inputs():
    return normal(GROUPS * TM, INNER), normal(EXPERTS, INNER, OUTER, seed=1), integers(0, EXPERTS, GROUPS)


def grouped_plain(x, w, expert, y):
    y[...] = (x.reshape(GROUPS, TM, INNER) @ w[expert]).reshape(y.shape)


def grouped_loop(x, w, expert, y):
    for i in range(GROUPS):
        for j in range(0, OUTER, TN):
            y[i * TM:(i + 1) * TM, j:j + TN] = x[i * TM:(i + 1) * TM] @ w[expert[i], :, j:j + TN]


@ct.kernel
def grouped(x, w, expert, y, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    e = ct.load(expert, i, 1).item()
    zero = ct.PaddingMode.ZERO
    acc = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.num_tiles(x, 1, (TM, TK))):
        rows = ct.load(x, (i, k), (TM, TK), padding_mode=zero)
        weights = ct.load(w, (e, k, j), (1, TK, TN), padding_mode=zero).reshape((TK, TN))
        acc = ct.mma(rows, weights, acc)
    ct.store(y, (i, j), acc)


# ------------------------------------------------------------------ atomics, scatters

UPDATES, CELLS, T = 1 << 17, 4096, 256


def largest_plain(keys, x, y):
    np.maximum.at(y, keys, x)


@ct.kernel
def largest(keys, x, y, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.atomic_max(y, ct.load(keys, i, T), ct.load(x, i, T))


def largest_loop(keys, x, y):
    for i in range(0, UPDATES, T):
        largest_plain(keys[i:i + T], x[i:i + T], y)


def ranks_plain(keys, counts, y):
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    y[order] = np.arange(UPDATES) - np.repeat(starts, np.diff(np.append(starts, UPDATES)))
    counts += np.bincount(keys, minlength=CELLS)


def ranks_loop(keys, counts, y):
    for i in range(0, UPDATES, T):
        for e, k in enumerate(keys[i:i + T].tolist(), i):
            y[e] = counts[k]
            counts[k] += 1


@ct.kernel
def ranks(keys, counts, y, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(y, i, ct.atomic_add(counts, ct.load(keys, i, T), 1))


def scatter_plain(x, at, y):
    y[at] = x


def scatter_loop(x, at, y):
    for i in range(0, UPDATES, T):
        y[at[i:i + T]] = x[i:i + T]


@ct.kernel
def scatter(x, at, y, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.scatter(y, ct.load(at, i, T), ct.load(x, i, T))


IMAGE = (SIDE // TY, SIDE // TX)
ROWS = (
    Row("convolution 3×3 by gathers", lambda: (normal(SIDE, SIDE), normal(3, 3, seed=1)),
        lambda: np.empty((SIDE, SIDE), F32), convolve_plain, convolve_loop, convolve, IMAGE, (TY, TX), 1e-5),
    Row("cellular automaton", lambda: (integers(0, 2, SIDE, SIDE),), lambda: np.empty((SIDE, SIDE), I32), life_plain,
        life_loop, life, IMAGE, (SIDE, TY, TX)),
    Row("heat, five slices", lambda: (normal(SIDE + 2, SIDE + 2),), lambda: np.empty((SIDE, SIDE), F32), heat_plain,
        heat_loop, heat, IMAGE, (SIDE, TY, TX), 1e-5),
    Row("bilinear warp", warp_inputs, lambda: np.empty((SIDE, SIDE), F32), warp_plain, warp_loop, warp, IMAGE, (TY, TX),
        1e-5),
    Row("FFT of 64 by gathers", lambda: (normal(SIGNALS, POINTS), normal(SIGNALS, POINTS, seed=1),
                                         reversed_bits(POINTS), *twiddles()),
        lambda: np.empty((2, SIGNALS, POINTS), F32), fft_plain, fft_loop, fft, (SIGNALS // TOGETHER,),
        (TOGETHER, POINTS), 1e-4, fft_exact),
    Row("sums of segments", segments, lambda: np.empty(SEGMENTS, F32), sums_plain, sums_loop, sums, (SEGMENTS,),
        (PIECE,), 1e-3),
    Row("sparse matrix by vector", lambda: (normal(SPARSE, WIDTH), integers(0, 4096, SPARSE, WIDTH), normal(4096)),
        lambda: np.empty(SPARSE, F32), sparse_plain, blocks(sparse_plain, 64, whole=1), sparse, (SPARSE // 64,),
        (64, WIDTH), 1e-5),
    Row("binary search", lambda: (np.sort(normal(TABLE)), normal(SOUGHT, seed=1)), lambda: np.empty(SOUGHT, I32),
        search_plain, search_loop, search, (SOUGHT // SEEKERS,), (SEEKERS, TABLE), 0,
        lambda table, x: np.searchsorted(table, x)),
    Row("embedding, clipped tiles", lambda: (normal(WORDS, FEATURES, dtype=F16), integers(0, WORDS, TEXT)),
        lambda: np.empty((TEXT, FEATURES), F16), embed_plain, embed_loop, embed, (TEXT,), (1024,)),
    Row("grouped matmul", grouped_inputs, lambda: np.empty((GROUPS * TM, OUTER), F32), grouped_plain, grouped_loop,
        grouped, (GROUPS, 2), (TM, TN, TK), 1e-3),
    Row("largest by key, atomics", lambda: (integers(0, CELLS, UPDATES), integers(0, 1 << 20, UPDATES, seed=1)),
        lambda: np.zeros(CELLS, I32), largest_plain, largest_loop, largest, (UPDATES // T,), (T,)),
    Row("ranks by key, old values", lambda: (integers(0, CELLS, UPDATES), np.zeros(CELLS, I32)),
        lambda: np.empty(UPDATES, I32), ranks_plain, ranks_loop, ranks, (UPDATES // T,), (T,)),
    Row("scatter, a permutation", lambda: (normal(UPDATES), np.random.default_rng(0).permutation(UPDATES).astype(I32)),
        lambda: np.empty(UPDATES, F32), scatter_plain, scatter_loop, scatter, (UPDATES // T,), (T,)),
)
