"""Rows with short tile axes: small matrices, a sorting network, experts, 4-vectors."""

from __future__ import annotations

import numpy as np
from _row import F32, F64, Row, blocks, normal

import cutile as ct

# ------------------------------------------------------------------ small linear algebra, one matrix a block

MATRICES, N = 4096, 8


def positive(dtype):
    x = normal(MATRICES, N, N, dtype=dtype)
    return (x @ x.swapaxes(1, 2) + N * np.eye(N, dtype=dtype)).astype(dtype),


def cholesky_plain(a, factor):
    m, row = a.copy(), np.arange(N)
    for k in range(N):
        column = np.where(row >= k, m[:, :, k] / np.sqrt(m[:, k, k])[:, None], 0)
        factor[:, :, k] = column
        m -= column[:, :, None] * column[:, None, :]


@ct.kernel
def cholesky(a, factor, N: ct.Constant[int]):
    i = ct.bid(0)
    m = ct.load(a, (i, 0, 0), (1, N, N)).reshape((N, N))
    row = ct.arange(N, dtype=ct.int32)[:, None]
    out = ct.zeros((N, N), m.dtype)
    for k in range(N):
        pivot = ct.sqrt(ct.extract(m, (k, k), (1, 1)))
        column = ct.where(row >= k, ct.extract(m, (0, k), (N, 1)) / pivot, 0)
        out = ct.insert(out, (0, k), column)
        m = m - column * ct.transpose(column)
    ct.store(factor, (i, 0, 0), out.reshape((1, N, N)))


SYSTEMS, UNKNOWNS = 4096, 16


def systems():
    m = np.tril(normal(SYSTEMS, UNKNOWNS, UNKNOWNS)) / 4 + 2 * np.eye(UNKNOWNS, dtype=F32)
    return m, normal(SYSTEMS, UNKNOWNS, seed=1)


def solve_plain(m, b, x):
    rest = b.copy()
    for k in range(UNKNOWNS):
        x[:, k] = rest[:, k] / m[:, k, k]
        rest[:, k + 1:] -= m[:, k + 1:, k] * x[:, k, None]


@ct.kernel
def solve(m, b, x, N: ct.Constant[int]):
    i = ct.bid(0)
    rows = ct.load(m, (i, 0, 0), (1, N, N)).reshape((N, N))
    rest = ct.load(b, (i, 0), (1, N)).reshape((N,))
    for k in ct.static_iter(range(N)):
        found = ct.extract(rest, k, (1,)) / ct.extract(rows, (k, k), (1, 1)).reshape((1,))
        column = ct.extract(rows, (0, k), (N, 1)).reshape((N,))
        later = ct.arange(N, dtype=ct.int32) > k
        rest = ct.insert(ct.where(later, rest - column * found, rest), k, found)
    ct.store(x, (i, 0), rest.reshape((1, N)))


# ------------------------------------------------------------------ a sorting network, 64 keys a row, 8 rows a block

KEYS, SORTED, TOGETHER = 64, 4096, 8


def steps(n):
    return [(k, j) for k in (1 << s for s in range(1, n.bit_length())) for j in
            (k >> s for s in range(1, k.bit_length()))]


def sort_plain(x, y):
    y[...] = x
    for k, j in steps(KEYS):
        pairs = y.reshape(len(y), -1, 2, j)
        up = (np.arange(KEYS // (2 * j)) * 2 * j & k == 0)[:, None]
        low, high = np.minimum(pairs[:, :, 0], pairs[:, :, 1]), np.maximum(pairs[:, :, 0], pairs[:, :, 1])
        pairs[:, :, 0], pairs[:, :, 1] = np.where(up, low, high), np.where(up, high, low)


@ct.kernel
def sort(x, y, ROWS: ct.Constant[int], N: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (ROWS, N))
    for k, j in ct.static_iter(steps(N)):
        pairs = t.reshape((ROWS, N // (2 * j), 2, j))
        low, high = ct.min(pairs, axis=2, keepdims=True), ct.max(pairs, axis=2, keepdims=True)
        up = (ct.arange(N // (2 * j), dtype=ct.int32) * (2 * j) & k) == 0
        first = ct.arange(2, dtype=ct.int32) == 0
        t = ct.where(first[None, None, :, None] == up[None, :, None, None], low, high).reshape((ROWS, N))
    ct.store(y, (i, 0), t)


# ------------------------------------------------------------------ gates of 8 experts, 64 tokens a block

TOKENS, EXPERTS, GATED = 1 << 16, 8, 64


def gate_plain(scores, y):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    first = p.argmax(axis=1)[:, None]
    expert = np.arange(EXPERTS)
    rest = np.where(expert == first, F32(-1), p)
    second = rest.argmax(axis=1)[:, None]
    kept = np.where((expert == first) | (expert == second), p, F32(0))
    y[...] = kept / kept.sum(axis=1, keepdims=True)


@ct.kernel
def gate(scores, y, T: ct.Constant[int], EXPERTS: ct.Constant[int]):
    i = ct.bid(0)
    s = ct.load(scores, (i, 0), (T, EXPERTS))
    e = ct.exp(s - ct.max(s, axis=1, keepdims=True))
    p = e / ct.sum(e, axis=1, keepdims=True)
    expert = ct.arange(EXPERTS, dtype=ct.int32)[None, :]
    first = expert == ct.argmax(p, axis=1, keepdims=True)
    second = expert == ct.argmax(ct.where(first, -1, p), axis=1, keepdims=True)
    kept = ct.where(first | second, p, 0)
    ct.store(y, (i, 0), kept / ct.sum(kept, axis=1, keepdims=True))


# ------------------------------------------------------------------ points by a 4×4 matrix, 128 points a block

POINTS, MOVED = 1 << 17, 128


def move_plain(points, matrix, y):
    y[...] = points @ matrix


@ct.kernel
def move(points, matrix, y, T: ct.Constant[int]):
    i = ct.bid(0)
    p = ct.load(points, (i, 0), (T, 4))
    m = ct.load(matrix, (0, 0), (4, 4))
    ct.store(y, (i, 0), ct.sum(p[:, :, None] * m[None, :, :], axis=1))


ROWS = (
    Row("cholesky 8×8 f32", lambda: positive(F32), lambda: np.empty((MATRICES, N, N), F32), cholesky_plain,
        blocks(cholesky_plain, 1), cholesky, (MATRICES,), (N,), 1e-4, np.linalg.cholesky),
    Row("cholesky 8×8 f64", lambda: positive(F64), lambda: np.empty((MATRICES, N, N), F64), cholesky_plain,
        blocks(cholesky_plain, 1), cholesky, (MATRICES,), (N,), 1e-10, np.linalg.cholesky),
    Row("triangular solve 16×16", systems, lambda: np.empty((SYSTEMS, UNKNOWNS), F32), solve_plain,
        blocks(solve_plain, 1), solve, (SYSTEMS,), (UNKNOWNS,), 1e-3,
        lambda m, b: np.linalg.solve(m.astype(F64), b[..., None])[..., 0]),
    Row("sorting network 64", lambda: (normal(SORTED, KEYS),), lambda: np.empty((SORTED, KEYS), F32), sort_plain,
        blocks(sort_plain, TOGETHER), sort, (SORTED // TOGETHER,), (TOGETHER, KEYS), 0, lambda x: np.sort(x, axis=1)),
    Row("gates of 8 experts", lambda: (normal(TOKENS, EXPERTS),), lambda: np.empty((TOKENS, EXPERTS), F32), gate_plain,
        blocks(gate_plain, GATED), gate, (TOKENS // GATED,), (GATED, EXPERTS), 1e-5),
    Row("points by a 4×4 matrix", lambda: (normal(POINTS, 4), normal(4, 4, seed=1)), lambda: np.empty((POINTS, 4), F32),
        move_plain, blocks(move_plain, MOVED, whole=1), move, (POINTS // MOVED,), (MOVED,), 1e-5),
)
