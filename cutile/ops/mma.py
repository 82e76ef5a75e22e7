"""Matrix products: mma and mma_scaled with an accumulator, and matmul (`@`) without.

Products of the narrow formats are exact in float32, so all of them are computed by BLAS in float32, of packed operands.
Integer products and their sums are exact. The last bits of a float sum depend on the CPU, which is a named freedom;
CUTILE_PORTABLE=1 sums exact products in float64 in k order instead.
"""

from __future__ import annotations

import numpy as np

from cutile import settings
from cutile.dtypes import (
    DType,
    bfloat16,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e5m2,
    float8_e5m3fnu,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    info,
    int8,
    int32,
    int_range,
    tfloat32,
    uint8,
)
from cutile.ir.build import Builder
from cutile.ir.terms import Const, Leaf, Term
from cutile.ops._arguments import const_bool, invalid, refuse, tile_arg
from cutile.ops._constants import strict
from cutile.ops._freedom import order
from cutile.ops._op import PRODUCT, OpDef, Sig, op, typing_rule
from cutile.ops._promotion import broadcast, broadcast_shapes, broadcastable_to, cast, common_dtype, value_of
from cutile.ops.shape import reshaped
from cutile.types import TileType

# Accumulator dtypes by operand dtype [MMA-2]; the first is the one matmul takes.
ACCUMULATORS: dict[DType, tuple[DType, ...]] = {
    float8_e4m3fn: (float16, float32), float8_e5m2: (float16, float32), float16: (float16, float32),
    bfloat16: (float32,), float32: (float32,), tfloat32: (float32,), float64: (float64,),
    int8: (int32,), uint8: (int32,),
}

# Elements that share a scale, by operand and scale dtype [MMA-8].
SCALE_BLOCKS: dict[tuple[DType, DType], tuple[int, ...]] = {
    (float8_e4m3fn, float8_e8m0fnu): (32,), (float8_e5m2, float8_e8m0fnu): (32,),
    (float4_e2m1fn, float8_e8m0fnu): (16, 32), (float4_e2m1fn, float8_e4m3fn): (16,),
    (float4_e2m1fn, float8_e5m3fnu): (16, 32),
}

# ------------------------------------------------------------------ typing rules


def _matrix_arg(op: OpDef, name: str, t: Term) -> Const | Leaf:
    t = tile_arg(op, name, t)
    if t.type.ndim not in (2, 3):
        hint = "give a vector a second axis: x[None, :] is a row, x[:, None] a column" if t.type.ndim == 1 else None
        invalid(op, name, f"expected a tile of rank 2 or 3, got shape {t.type.shape}", help=hint)
    return t


def _product_shape(op: OpDef, x: Const | Leaf, y: Const | Leaf) -> tuple[int, ...]:
    """[batch…, M, N] of x[batch…, M, K] @ y[batch…, K, N] [MMA-1]."""
    xs, ys = x.type.shape, y.type.shape
    if xs[-1] != ys[-2]:
        refuse(f"{op.name}() needs x of shape (…, M, K) and y of shape (…, K, N): K is {xs[-1]} in x {xs}, "
               f"but {ys[-2]} in y {ys}",
               help="transpose y first, for example ct.transpose(y)" if xs[-1] == ys[-1] and len(ys) == 2 else None)
    batch = broadcast_shapes(xs[:-2], ys[:-2])
    if batch is None:
        refuse(f"the batch dimensions of {op.name}() cannot be broadcast together: {xs[:-2]} in x {xs}, "
               f"{ys[:-2]} in y {ys}")
    return (*batch, xs[-2], ys[-1])


def _acc_arg(op: OpDef, t: Term, shape: tuple[int, ...], accepted: tuple[DType, ...], operands: str) -> Const | Leaf:
    acc = tile_arg(op, "acc", t)
    names = " or ".join(d.name for d in accepted)
    zeros = f"start from acc = ct.zeros({shape}, ct.{accepted[-1].name})"
    if acc.type.dtype not in accepted:
        invalid(op, "acc", f"{operands} operands accumulate in {names}, got {acc.type.dtype.name}", help=zeros)
    if acc.type.shape != shape:
        invalid(op, "acc", f"expected the shape of the product, {shape}, got {acc.type.shape}", help=zeros)
    return acc


def _check_pair(op: OpDef, dx: DType, dy: DType) -> None:
    """No promotion: the dtypes of the operands form a row of the table [MMA-2, MMA-3]."""
    for name, d in (("x", dx), ("y", dy)):
        if d not in ACCUMULATORS:
            invalid(op, name, f"there is no matrix product of {d.name}",
                    help="operands are " + ", ".join(k.name for k in ACCUMULATORS))
    if dx is not dy and not {dx, dy} <= {int8, uint8}:
        refuse(f"{op.name}() needs operands of one dtype, got {dx.name} and {dy.name}",
               help=f"convert one of them: x.astype(ct.{dy.name}) or y.astype(ct.{dx.name})")


@typing_rule(accumulates=PRODUCT)
def _mma_rule(b, op, x, y, acc, use_fast_acc):
    x, y = _matrix_arg(op, "x", x), _matrix_arg(op, "y", y)
    _check_pair(op, x.type.dtype, y.type.dtype)
    acc = _acc_arg(op, acc, _product_shape(op, x, y), ACCUMULATORS[x.type.dtype], x.type.dtype.name)
    fast = const_bool(op, "use_fast_acc", use_fast_acc)
    if fast and x.type.dtype not in (float8_e4m3fn, float8_e5m2):
        invalid(op, "use_fast_acc", f"fast accumulation is for float8_e4m3fn and float8_e5m2, got {x.type.dtype.name}",
                help="leave use_fast_acc out")
    values = (value_of(b, t) for t in (x, y, acc))
    return Leaf(b.op1(op, *values, result=acc.type, use_fast_acc=fast))


@typing_rule(accumulates=PRODUCT)
def _mma_scaled_rule(b, op, x, x_scale, y, y_scale, acc):
    x, y = _matrix_arg(op, "x", x), _matrix_arg(op, "y", y)
    sx, sy = tile_arg(op, "x_scale", x_scale), tile_arg(op, "y_scale", y_scale)
    for name, s, of, t in (("y", y, "x", x), ("y_scale", sy, "x_scale", sx)):
        if s.type.dtype is not t.type.dtype:
            invalid(op, name, f"expected the dtype of {of}, {t.type.dtype.name}, got {s.type.dtype.name}")
    blocks = SCALE_BLOCKS.get((x.type.dtype, sx.type.dtype))
    if blocks is None:
        refuse(f"mma_scaled() has no product of {x.type.dtype.name} with scales of {sx.type.dtype.name}",
               help="pairs are " + ", ".join(f"{d.name} with {s.name}" for d, s in SCALE_BLOCKS))
    shape = _product_shape(op, x, y)
    _check_scale(op, "x_scale", sx.type, x.type, -1, blocks)
    _check_scale(op, "y_scale", sy.type, y.type, -2, blocks)
    if sx.type.shape[-1] != sy.type.shape[-2]:
        refuse(f"mma_scaled() needs as many scales along K in x_scale {sx.type.shape} as in y_scale {sy.type.shape}")
    acc = _acc_arg(op, acc, shape, (float32,), x.type.dtype.name)
    values = (value_of(b, t) for t in (x, sx, y, sy, acc))
    return Leaf(b.op1(op, *values, result=acc.type))


def _check_scale(op: OpDef, name: str, s: TileType, x: TileType, axis: int, blocks: tuple[int, ...]) -> None:
    """A scale has the shape of its operand, but for one element in place of each block along K."""
    good = [x.shape[:x.ndim + axis] + (x.shape[axis] // n,) + x.shape[x.ndim + axis + 1:]
            for n in blocks if x.shape[axis] % n == 0]
    if s.shape not in good:
        per = " or ".join(map(str, blocks))
        invalid(op, name, f"expected one scale for each {per} elements along K"
                          + (f", a shape of {' or '.join(map(str, good))}" if good else f", but K is {x.shape[axis]}")
                          + f", got {s.shape}")


@typing_rule(accumulates=PRODUCT)
def _matmul_rule(b: Builder, op, x, y):
    x, y = tile_arg(op, "x", x), tile_arg(op, "y", y)
    for name, t in (("x", x), ("y", y)):
        if not 1 <= t.type.ndim <= 3:
            invalid(op, name, f"expected a tile of rank 1, 2 or 3, got shape {t.type.shape}",
                    help="multiply by a scalar with *" if t.type.ndim == 0 else None)
    dtype = common_dtype(x, y, what="matrix product")
    if dtype not in ACCUMULATORS:
        refuse(f"there is no matrix product of {x.type.dtype.name} and {y.type.dtype.name}"
               + ("" if x.type.dtype is y.type.dtype else f", which meet in {dtype.name}"),
               help="convert the operands, for example x.astype(ct.float32)")
    row, column = x.type.ndim == 1, y.type.ndim == 1
    x, y = cast(b, x, dtype), cast(b, y, dtype)
    x = reshaped(b, x, (1, *x.type.shape)) if row else x
    y = reshaped(b, y, (*y.type.shape, 1)) if column else y
    shape = _product_shape(op, x, y)
    acc = broadcast(b, strict(0, ACCUMULATORS[dtype][0]), shape)
    values = (value_of(b, t) for t in (x, y, acc))
    z = Leaf(b.op1(mma, *values, result=acc.type, use_fast_acc=False))
    if row or column:
        z = reshaped(b, z, shape[:-2] + (() if row else (shape[-2],)) + (() if column else (shape[-1],)))
    return cast(b, z, dtype)


# ------------------------------------------------------------------ the meanings


def _packed(x: np.ndarray, spaced: bool = False) -> np.ndarray:
    """The last two axes C-contiguous, so that the order in which BLAS sums depends on the shapes alone.

    NumPy calls arrays with any stride on axes of size 1 contiguous, yet picks a BLAS routine by those strides. With
    `spaced`, rows may have gaps between them.
    """
    strides, item = x.strides, x.itemsize
    if strides[-1] == item:
        row, packed = strides[-2], x.shape[-1] * item
        if row == packed or spaced and packed < row < 1 << 31 and row % item == 0:
            return x
    x = x[tuple(slice(0, 1) if s == 0 else slice(None) for s in x.strides[:-2])]  # same for all blocks: packed once
    return x.copy(order="C")


def _with_batch(x: np.ndarray, tx: TileType, y: np.ndarray, ty: TileType) -> tuple[np.ndarray, np.ndarray]:
    """x and y. If only one has a batch axis, the other gets one of size 1."""
    lacking = len(tx.shape) - len(ty.shape)
    return (x, y) if not lacking else (np.expand_dims(x, -3), y) if lacking < 0 else (x, np.expand_dims(y, -3))


def _float_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x @ y in the order of BLAS, or as exact products summed in float64 in k order."""
    if not settings.get("PORTABLE"):
        # BLAS copies panels of two matrices before it multiplies them, so gaps between rows do not matter. With a
        # vector among the operands it sums in an order that depends on their strides.
        spaced = x.shape[-2] > 1 and y.shape[-1] > 1 and x.shape[-1] > 1
        return np.matmul(_packed(x, spaced), _packed(y, spaced))
    x, y = x.astype(np.float64), y.astype(np.float64)
    total = x[..., :, :1] * y[..., :1, :]
    for k in range(1, x.shape[-1]):
        total = total + x[..., :, k:k + 1] * y[..., k:k + 1, :]
    return total


def _int_product(x: np.ndarray, y: np.ndarray, dx: DType, dy: DType) -> np.ndarray:
    """x @ y of 8-bit integers, exactly: in float32 while every partial sum fits its 24 bits, else in float64."""
    bound = x.shape[-1] * max(map(abs, int_range(dx))) * max(map(abs, int_range(dy)))
    kind = np.float32 if bound <= 1 << 24 else np.float64
    product = np.matmul(_packed(x.astype(kind)), _packed(y.astype(kind)))
    return product.astype(np.int64).astype(np.int32) if bound >= 1 << 31 else product.astype(np.int32)


def _plus(product: np.ndarray, acc: np.ndarray) -> np.ndarray:
    """The finished sum plus the accumulator [MMA-4], in the memory of the sum if that fits."""
    room = acc.shape == product.shape or broadcastable_to(acc.shape, product.shape)
    return np.add(product, acc, out=product) if room else np.add(product, acc, dtype=product.dtype)


@op(_mma_rule, operands="x y acc", freedom=order("mma"))
def mma(x, y, /, acc, *, use_fast_acc=False, sig: Sig):
    """Matrix product with accumulation: x @ y + acc, in the dtype and shape of acc.

    x has shape (…, M, K) and y (…, K, N), with at most one batch dimension each, which broadcast. Operands have the
    same dtype and are not promoted:

    float8_e4m3fn, float8_e5m2, float16   accumulate in float16 or float32
    bfloat16, float32, tfloat32           in float32
    float64                               in float64
    int8, uint8, in any mix               in int32

    The sum over k is formed first, in float32 for the narrow formats, then acc is added. The order of the sum is that
    of the CPU's BLAS on packed operands; with CUTILE_PORTABLE=1 it is exact products in float64 in k order. Freedom:
    on Hopper the tensor cores keep about 13 bits while they accumulate float8 products; a result that is zero may have
    either sign.

    [MMA-1.rank]  x and y have rank 2 or 3, else TileTypeError
    [MMA-1.k]  the last dimension of x is the last but one of y, else TileTypeError
    [MMA-1.batch]  batch dimensions broadcast, else TileTypeError
    [MMA-1.acc]  acc has exactly the shape of the product, else TileTypeError
    [MMA-1.result]  the result has the dtype and shape of acc
    [MMA-1.small]  there is no smallest size: 1×1 works
    [MMA-2.float8_e4m3fn.float16]  float8_e4m3fn accumulates in float16
    [MMA-2.float8_e4m3fn.float32]  float8_e4m3fn accumulates in float32
    [MMA-2.float8_e5m2.float16]  float8_e5m2 accumulates in float16
    [MMA-2.float8_e5m2.float32]  float8_e5m2 accumulates in float32
    [MMA-2.float16.float16]  float16 accumulates in float16
    [MMA-2.float16.float32]  float16 accumulates in float32
    [MMA-2.bfloat16.float32]  bfloat16 accumulates in float32
    [MMA-2.float32.float32]  float32 accumulates in float32
    [MMA-2.tfloat32.float32]  tfloat32 accumulates in float32
    [MMA-2.float64.float64]  float64 accumulates in float64
    [MMA-2.int8.int8]  int8 times int8 accumulates in int32
    [MMA-2.int8.uint8]  int8 times uint8 accumulates in int32
    [MMA-2.uint8.int8]  uint8 times int8 accumulates in int32
    [MMA-2.uint8.uint8]  uint8 times uint8 accumulates in int32
    [MMA-3.acc]  any other accumulator dtype: TileTypeError
    [MMA-3.mixed]  operands of different dtypes, other than int8 and uint8: TileTypeError
    [MMA-3.dtype]  operands of a dtype without a row: TileTypeError
    [MMA-4.int]  integer products are exact and int32 accumulation wraps
    [MMA-4.float]  float products are accumulated in unspecified order, within max(4, K/8) * 2**-24 (float64: 2**-53)
        of the sum of magnitudes
    [MMA-4.float16]  with a float16 accumulator within K/4 * 2**-11
    [MMA-4.float8]  float8 products too, but hardware may keep as few as 13 bits of the running sum
    [MMA-4.product]  the product of one element each is exact before it is added
    [MMA-4.float32]  float32 operands are not rounded to tfloat32
    [MMA-5.float8]  use_fast_acc=True is for float8_e4m3fn and float8_e5m2 operands, else TileTypeError
    [MMA-5.value]  it changes the result within the freedom of float8 only
    [MMA-5.const]  use_fast_acc is a bool constant, else TileTypeError
    """
    tx, ty, _ = sig.operands
    x, y = _with_batch(x, tx, y, ty)
    if info(tx.dtype).integral:
        return _plus(_int_product(x, y, tx.dtype, ty.dtype), acc)
    return _plus(_float_product(x, y), acc)


@op(_mma_scaled_rule, operands="x x_scale y y_scale acc", freedom=order("mma"))
def mma_scaled(x, x_scale, y, y_scale, /, acc, *, sig: Sig):
    """Matrix product of block-scaled operands, with accumulation in float32.

    result[m, n] = Σ_k x[m, k]·x_scale[m, k // B]·y[k, n]·y_scale[k // B, n] + acc[m, n], with B = K / scales along K.

    Products are exact and summed in float64; the result, acc included, is rounded once.

    [MMA-8.dtypes]  x and y have one dtype, else TileTypeError
    [MMA-8.scales]  the scales have one dtype, else TileTypeError
    [MMA-8.acc]  acc is float32, else TileTypeError
    [MMA-8.acc.shape]  acc has exactly the shape of the product, else TileTypeError
    [MMA-8.dims]  a scale has the shape of its operand, except along K, else TileTypeError
    [MMA-8.rank]  x and y have rank 2 or 3, else TileTypeError
    [MMA-8.batch]  batch dimensions broadcast between x and y
    [MMA-8.e4m3.e8m0]  float8_e4m3fn with float8_e8m0fnu: 32 elements a scale
    [MMA-8.e5m2.e8m0]  float8_e5m2 with float8_e8m0fnu: 32 elements a scale
    [MMA-8.e2m1.e8m0]  float4_e2m1fn with float8_e8m0fnu: 16 or 32 elements a scale
    [MMA-8.e2m1.e4m3]  float4_e2m1fn with float8_e4m3fn: 16 elements a scale
    [MMA-8.e2m1.e5m3]  float4_e2m1fn with float8_e5m3fnu: 16 or 32 elements a scale
    [MMA-8.pair]  any other pair of dtypes: TileTypeError
    [MMA-8.block]  any other block size: TileTypeError
    [MMA-8.value]  result = Σ_k x·sx[k//B]·y·sy[k//B] + acc
    """
    tx, tsx, ty, tsy, _ = sig.operands
    x = x.astype(np.float64) * np.repeat(x_scale.astype(np.float64), tx.shape[-1] // tsx.shape[-1], axis=-1)
    y = y.astype(np.float64) * np.repeat(y_scale.astype(np.float64), ty.shape[-2] // tsy.shape[-2], axis=-2)
    return _plus(_float_product(*_with_batch(x, tx, y, ty)), acc)


@op(_matmul_rule, operands="", freedom=order("mma"))
def matmul(x, y, /):
    """Matrix product; also written x @ y. Stands in the IR as casts, reshapes, and mma onto zeros.

    Operands of rank 1 to 3: a vector on the left is a row, on the right a column, and its unit dimension is dropped
    from the result. They are promoted to a common dtype, which must have a matrix product (see `mma`). The sum is
    accumulated in the first accumulator dtype of the table, so in float16 for float16 and float8, and converted to the
    common dtype.

    [MMA-6.row]  x of rank 1 counts as (1, K), and the result has no M dimension
    [MMA-6.column]  y of rank 1 counts as (K, 1), and the result has no N dimension
    [MMA-6.rank]  ranks are 1, 2 or 3, else TileTypeError
    [MMA-6.promote]  operands are promoted: int8 @ float16 gives float16, bool_ @ int8 gives int8
    [MMA-6.value]  element (i, j) is the sum over k of x[i, k] * y[k, j]
    [MMA-6.batch]  batch dimensions broadcast
    [MMA-6.k]  different K: TileTypeError
    [MMA-6.operator]  x @ y is the same
    [MMA-6.dtype]  a common dtype without a matrix product (int16, int32, bool_) is a TileTypeError
    [MMA-6.float16]  float16 @ float16 accumulates in float16
    [MMA-6.float8]  float8 @ float8 accumulates in float16 and saturates to the float8 dtype
    [MMA-6.bfloat16]  bfloat16 @ bfloat16 accumulates in float32 and gives bfloat16
    [MMA-6.int8]  int8 @ int8 accumulates in int32 and wraps to int8
    [MMA-7.scalar]  a scalar operand is a TileTypeError
    [MMA-7.array]  an array operand is a TileTypeError
    """
