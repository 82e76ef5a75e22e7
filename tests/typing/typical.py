"""Typical kernels and host code with annotations, which a type checker must accept and the interpreter must run."""

import dataclasses
import enum
import math
from collections.abc import Callable
from typing import assert_type

import numpy as np

import cutile as ct

ConstInt = ct.Constant[int]
ZERO = ct.PaddingMode.ZERO


class Activation(enum.Enum):
    RELU = "relu"
    GELU = "gelu"


@dataclasses.dataclass(frozen=True)
class Block:
    rows: int
    cols: int


def gelu(x: ct.Tile) -> ct.Tile:
    return 0.5 * x * (1 + ct.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))


def row_mean(x: ct.Tile, n: ct.Scalar) -> ct.Tile:
    return ct.sum(x, axis=1, keepdims=True) / n


def address(row: int, col: int, width: int) -> int:
    return row * width + col


def apply(x: ct.Tile, activation: Activation) -> ct.Tile:
    if activation == Activation.RELU:
        return ct.maximum(x, 0)
    return gelu(x)


def through_memory(raw: ct.RawArrayMemory, x: ct.Array, n: int) -> None:
    raw.store_offset(ct.bid(0).astype(ct.int64) * x.strides[0], raw.load_offset(0, mask=n > 3, padding_value=1.0))
    ct.RawArrayMemory.atomic_add_offset(raw, offset=0, update=1, mask=ct.full((), True, ct.bool_))


# ------------------------------------------------------------------ kernels


@ct.kernel
def elementwise(x: ct.Array, y: ct.Array, N: ct.Constant[int], M: ConstInt, ACT: ct.Constant[Activation]) -> None:
    i = ct.bid(0)
    t = ct.load(x, (i, 0), shape=(1, N), padding_mode=ZERO)
    u = apply(t.astype(ct.float32), ACT).reshape((N,))
    w = t + u[None, :]
    inside = i * N + ct.arange(N, dtype=ct.int32) < x.shape[1]
    w = ct.where(inside[None, :], w, -math.inf)
    if i > 3 and x.shape[0] % 2 == 0:
        w += 1
    for j in range(x.shape[0]):
        w *= j
    for j in range(i, ct.num_tiles(x, 0, (1, N)), ct.num_blocks(0)):
        w -= j
    w = w if t.dtype == ct.float32 else w.astype(t.dtype, rounding_mode=ct.RoundingMode.RN)
    ct.store(y, index=(i, address(i, 0, M)), tile=w.astype(y.dtype), latency=3)


@ct.kernel(num_ctas=2, occupancy=ct.ByTarget(sm_90=2, default=1))
def matmul(a: ct.Array, b: ct.Array, c: ct.Array, TM: ConstInt, TN: ConstInt, TK: ConstInt) -> None:
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float32)
    steps = min(ct.num_tiles(a, axis=1, shape=(TM, TK)), ct.cdiv((i + 1) * TM, TK))
    for k in range(steps):
        x = ct.load(a, index=(i, k), shape=(TM, TK), padding_mode="ZERO")
        y = ct.load(b, index=(k, j), shape=(TK, TN), order="C", allow_tma=False)
        acc = ct.mma(x, y, acc)
        acc = acc + x.transpose() @ y
    acc = acc / ct.maximum(ct.max(ct.abs(acc)), 1e-6)
    ct.store(c, index=(i, j), tile=acc.astype(c.dtype))


@ct.kernel()
def views(x: ct.IndexedWithInt64[ct.Array], out: ct.Array, n: ct.ScalarInt64[int], scale: float) -> None:
    v = x.tiled_view((4, 8), padding_mode=ct.PaddingMode.NAN)
    w = out.tiled_view((4, 8))
    at = (ct.bid(0), 0)
    t = v.load(at, latency=2) * scale
    w.store(at, t.astype(w.dtype), check_bounds=False)
    w.atomic_store_add(at, t)
    part = x.slice(0, n, n + 4).slice(axis=1, start=0, stop=x.shape[1] // 2)
    ct.print("tiles", v.num_tiles(0), v.tile_shape[0], part.shape[0], sep=" ")
    print(f"{x.strides[0]} {t}")
    through_memory(x.get_raw_memory(), x, n)


@ct.kernel
def atomics(x: ct.Array, counts: ct.Array, locks: list[ct.Array], N: ConstInt) -> None:
    i = ct.atomic_add(counts, 0, 1, memory_order=ct.MemoryOrder.RELAXED, memory_scope="DEVICE")
    level = ct.gather(x, (i, ct.arange(N, dtype=ct.int32)), mask=None, padding_value=0)
    ct.atomic_add(counts, level, ct.where(level >= 0, 1, 0))
    while ct.atomic_cas(locks[0], 0, 0, 1) != 0:
        pass
    ct.scatter(x, (i, ct.arange(N, dtype=ct.int32)), level << 1)
    ct.atomic_xchg(locks[len(locks) - 1], 0, 0)
    rows = ct.load_advanced_indexing(x, (level, ct.Slice(0, 16)), padding_mode=ZERO)
    ct.store_advanced_indexing(x, (level, ct.Slice(0, 16)), ~rows & 255 | -rows ^ 1)
    ct.assert_(level[None] >= 0, "negative")


@ct.kernel
def reductions(x: ct.Array, out: ct.Array, SIZE: ct.Constant[tuple[int, int]]) -> None:
    block = Block(*SIZE)
    t = ct.load(x, (0, 0), (block.rows, block.cols))
    mean = row_mean(t, x.shape[1])
    total: ct.Scalar = 0
    for i in ct.static_iter(range(4)):
        total += ct.extract(t, (i, 0), shape=()).item()
    low, high = ct.min(t, axis=(0, 1)), ct.argmax(t)
    best = ct.reduce(t, 0, lambda a, b: ct.maximum(a, b), -math.inf, keepdims=True)
    first, second = ct.scan((t, t), axis=1, func=lambda a, b, c, d: (a + c, b * d), identity=(0, 1), reverse=True)
    q, r = divmod(ct.cumsum(t, axis=1).astype(ct.int32), 3)
    both = ct.cat((q, r.insert((0, 0), ct.int32(1))), 0)
    ct.static_assert(t.shape[0] == block.rows and t.ndim == 2, "shape")
    size = ct.static_eval(2 ** math.ceil(math.log2(block.cols)))
    if block.rows > 1024:
        raise ct.static_exception(ValueError("too large"))
    ones = ct.broadcast_to(ct.ones(1, np.float32), (size,))
    pair = ct.Tile.reshape(ct.astile((1, total), dtype=ct.float32), (-1,)).permute((0,))
    ones += ct.extract(both, (0, 0), (1, size)).reshape((size,)) + ct.sum(pair)
    ct.store(out, (0, 0), -mean + low + high + best + first + second + ct.expand_dims(ones, 0))


@ct.function
def helper(x: ct.Tile) -> ct.Tile:
    return +x


@ct.function(host=True)
def anywhere(x: int) -> int:
    return x + 1


# ------------------------------------------------------------------ what comes out


def types_of(x: ct.Array, t: ct.Tile, k: Callable[[ct.Tile], ct.Tile]) -> None:
    assert_type(t + 1, ct.Tile)
    assert_type(1 - t, ct.Tile)
    assert_type(2.0 ** t, ct.Tile)
    assert_type(1 << t, ct.Tile)
    assert_type(t @ t, ct.Tile)
    assert_type(t < 1, ct.Tile)
    assert_type(1 < t, ct.Tile)
    assert_type(t == t, ct.Tile)
    assert_type(-t, ct.Tile)
    assert_type(abs(t), ct.Tile)
    assert_type(t[:, None], ct.Tile)
    assert_type(t[..., None], ct.Tile)
    assert_type(t.shape, tuple[int, ...])
    assert_type(ct.bid(0) + t, ct.Tile)
    assert_type(ct.bid(0) * 1.5, ct.Tile)
    assert_type(t & (ct.bid(0) < 3), ct.Tile)
    assert_type(ct.exp2(t, flush_to_zero=True), ct.Tile)
    assert_type(ct.atomic_add(x, 0, t), ct.Tile)
    assert_type(x.tiled_view(16), ct.TiledView)
    assert_type(x.get_raw_memory(), ct.RawArrayMemory)
    assert_type(ct.TiledView.load(x.tiled_view(16), 0), ct.Tile)
    assert_type(x.slice(0, 0, 4), ct.Array)
    assert_type(ct.Array.from_foreign(x.foreign_pointer, (4,), (1,)), ct.Array)
    assert_type(ct.reduce(t, 0, max, 0), ct.Tile)
    assert_type(ct.reduce((t, t), 0, max, (0, 0)), tuple[ct.Tile, ...])
    assert_type(x.dtype, ct.DType)
    assert_type(x.dtype.bitwidth, int)
    assert_type(helper(t), ct.Tile)
    assert_type(anywhere(1), int)
    assert_type(k(t), ct.Tile)
    assert_type(elementwise, ct.kernel)
    assert_type(elementwise.__name__ + elementwise.__qualname__ + elementwise.__module__, str)
    assert_type(elementwise.__doc__, str | None)
    assert_type(matmul, ct.kernel)
    assert_type(views, ct.kernel)
    number: int = ct.bid(0) * 4 + x.shape[0] // ct.num_blocks(0)
    number += ct.cdiv(number, 4)


# ------------------------------------------------------------------ the host


def main(stream: object = None) -> None:
    """Run every kernel, so that the checked code is right."""
    x, y = np.ones((2, 8, 16), np.float32)
    counts, lock = np.zeros((2, 1), np.int32)
    grid = (ct.cdiv(x.shape[0], 1), 1)
    ct.launch(stream, grid, elementwise, (x, y, 16, 4, Activation.GELU))
    ct.launch(stream, (2, 2), matmul.replace_hints(occupancy=2), (x[:, :8], x[:, :8], y, 4, 4, 4),
              programmatic_dependent_launch=True)
    ct.launch(stream, (1,), views, (x, y, 2, 1.5))
    ct.launch(stream, (1,), atomics, (np.zeros((16, 16), np.int32), counts, [lock], 16))
    with ct.compiler_timeout(10.0):
        try:
            ct.launch(stream, (1,), reductions, (x, y, (4, 16)))
        except (ct.TileTypeError, ct.TileValueError) as error:
            raise SystemExit(f"{error} at {error.loc}") from error
    pointer = ct.foreign_pointer_dtype(ct.float32)
    annotation = ct.ArrayAnnotation(index_dtype=ct.int64, static_shape_dims=(0,))
    print(pointer.name, annotation.index_dtype, elementwise.options.num_ctas, ct.PaddingMode.ZERO.name)
    result = ct.tune.exhaustive_search([4, 8], None, lambda n: (n,), elementwise,
                                       lambda n: (x, y, 16, n, Activation.RELU), quiet=True)
    print(result.best.config)
    signature = ct.compilation.KernelSignature.from_kernel_args(
        elementwise, (x, y, 16, 4, 1), ct.compilation.CallingConvention.cutile_python_v1())
    print(signature.with_mangled_symbol("elementwise").symbol)
