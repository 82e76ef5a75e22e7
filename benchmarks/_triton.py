"""The same kernels for Triton's interpreter. Import it only after TRITON_INTERPRET=1 is in the environment."""

from __future__ import annotations

import math

import numpy as np
import triton
import triton.language as tl
from _cases import COLS, COUNT, EPS, HEADS, LENGTH, LOG2_E, ROWS, TK, TM, D, M, N, T


class HostArray:
    """A NumPy array with the few methods of a tensor that Triton's interpreter needs. Nothing is copied."""

    def __init__(self, array: np.ndarray):
        self.array, self.dtype = array, array.dtype.name

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def untyped_storage(self) -> HostArray:
        return self

    def cpu(self) -> HostArray:
        return self

    def new_empty(self, *_, **__) -> HostArray:
        return HostArray(self.array)

    def set_(self, storage: HostArray, *_) -> None:
        self.array = storage.array

    def copy_(self, other: HostArray) -> None:
        assert other.data_ptr() == self.data_ptr()

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)


@triton.jit
def add(a, b, c, T: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    tl.store(c + at, tl.load(a + at) + tl.load(b + at))


@triton.jit
def softmax(x, y, COLS: tl.constexpr):
    at = tl.program_id(0) * COLS + tl.arange(0, COLS)
    t = tl.load(x + at)
    e = tl.exp(t - tl.max(t, axis=0))
    tl.store(y + at, e / tl.sum(e, axis=0))


@triton.jit
def layer_norm(x, w, b, y, eps, COLS: tl.constexpr):
    col = tl.arange(0, COLS)
    at = tl.program_id(0) * COLS + col
    t = tl.load(x + at)
    d = t - tl.sum(t, axis=0) / COLS
    r = tl.rsqrt(tl.sum(d * d, axis=0) / COLS + eps)
    tl.store(y + at, d * r * tl.load(w + col) + tl.load(b + col))


@triton.jit
def matmul(a, b, c, SIZE: tl.constexpr, TM: tl.constexpr, TK: tl.constexpr):
    row = (tl.program_id(0) * TM + tl.arange(0, TM))[:, None]
    col = (tl.program_id(1) * TM + tl.arange(0, TM))[None, :]
    k = tl.arange(0, TK)
    acc = tl.zeros((TM, TM), tl.float32)
    for start in range(0, SIZE, TK):
        x = tl.load(a + row * SIZE + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * SIZE + col)
        acc = tl.dot(x, y, acc)
    tl.store(c + row * SIZE + col, acc)


@triton.jit
def attention(q, k, v, out, scale, LENGTH: tl.constexpr, TM: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(1) * LENGTH * D
    d = tl.arange(0, D)
    at = head + (tl.program_id(0) * TM + tl.arange(0, TM))[:, None] * D + d[None, :]
    query = tl.load(q + at)
    top = tl.full((TM, 1), float("-inf"), tl.float32)
    total = tl.zeros((TM, 1), tl.float32)
    acc = tl.zeros((TM, D), tl.float32)
    for start in range(0, LENGTH, TM):
        n = start + tl.arange(0, TM)
        s = tl.dot(query, tl.load(k + head + n[None, :] * D + d[:, None])) * scale
        new_top = tl.maximum(top, tl.max(s, axis=1)[:, None])
        p = tl.exp2(s - new_top)
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)[:, None]
        values = tl.load(v + head + n[:, None] * D + d[None, :])
        acc = tl.dot(p.to(tl.float16), values, acc * shrink)
        top = new_top
    tl.store(out + at, (acc / total).to(tl.float16))


@triton.jit
def histogram(x, counts, T: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    tl.atomic_add(counts + tl.load(x + at), 1)


@triton.jit
def gather(x, index, y, T: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    tl.store(y + at, tl.load(x + tl.load(index + at)))


# name of the case -> kernel, grid, arguments after the arrays
LAUNCHES = {
    "vector add": (add, (N // T,), (T,)),
    "softmax": (softmax, (ROWS,), (COLS,)),
    "layer norm": (layer_norm, (ROWS,), (float(EPS), COLS)),
    "matmul f16": (matmul, (M // TM, M // TM), (M, TM, TK)),
    "attention f16": (attention, (LENGTH // TM, HEADS), (LOG2_E / math.sqrt(D), LENGTH, TM, D)),
    "histogram": (histogram, (COUNT // T,), (T,)),
    "gather": (gather, (COUNT // T,), (T,)),
}


def run(name: str, *arrays: np.ndarray) -> None:
    kernel, grid, constants = LAUNCHES[name]
    kernel[grid](*map(HostArray, arrays), *constants)
