"""Matrix product with float32 accumulation, for f16, bf16 and tf32 operands; one tile per block, and persistent."""

import ml_dtypes
import numpy as np
from _report import check, show, timed

import cutile as ct

ZERO = ct.PaddingMode.ZERO


def operand(t):
    """float32 tiles are multiplied as tfloat32. A condition on a dtype is decided when the kernel is compiled."""
    return t.astype(ct.tfloat32) if t.dtype == ct.float32 else t


def multiply_tile(a, b, c, i, j, TM, TN, TK):
    """Tile (i, j) of c = a @ b. A plain Python function: kernels may call it."""
    acc = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(TM, TK))):
        # zeros beyond the edges of a and b add nothing to the sum
        x = operand(ct.load(a, index=(i, k), shape=(TM, TK), padding_mode=ZERO))
        y = operand(ct.load(b, index=(k, j), shape=(TK, TN), padding_mode=ZERO))
        acc = ct.mma(x, y, acc)
    ct.store(c, index=(i, j), tile=acc.astype(c.dtype))


@ct.kernel
def matmul(a, b, c, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    multiply_tile(a, b, c, ct.bid(0), ct.bid(1), TM, TN, TK)


@ct.kernel
def matmul_persistent(a, b, c, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    """As many blocks as the machine has room for; each takes every num_blocks-th tile."""
    columns = ct.num_tiles(c, axis=1, shape=(TM, TN))
    tiles = ct.num_tiles(c, axis=0, shape=(TM, TN)) * columns
    for t in range(ct.bid(0), tiles, ct.num_blocks(0)):
        multiply_tile(a, b, c, t // columns, t % columns, TM, TN, TK)


def main():
    m, n, k = 517, 389, 643  # no multiple of a tile in any direction
    tile = (64, 64, 32)
    rng = np.random.default_rng(3)
    rows = []
    for name, dtype, operand_error in (
        ("f16", np.float16, 0.0),
        ("bf16", ml_dtypes.bfloat16, 0.0),
        ("tf32", np.float32, 2 * 2**-11),  # both operands are rounded to 11 bits
    ):
        a = rng.standard_normal((m, k)).astype(dtype)
        b = rng.standard_normal((k, n)).astype(dtype)
        a64, b64 = a.astype(np.float64), b.astype(np.float64)
        want = a64 @ b64
        # in float32 each product passes through a sum of TK terms, then through a sum of k / TK of those
        allowed = (operand_error + (tile[2] + ct.cdiv(k, tile[2])) * 2**-24) * (np.abs(a64) @ np.abs(b64))
        for kind, kernel, grid in (
            ("", matmul, (ct.cdiv(m, tile[0]), ct.cdiv(n, tile[1]))),
            (", persistent", matmul_persistent, (8,)),
        ):
            c = np.empty((m, n), np.float32)
            with timed() as watch:
                ct.launch(None, grid, kernel, (a, b, c, *tile))
            rows.append(check(f"matmul {name}{kind}", grid, tile, watch, (c, want, allowed)))
    return rows


if __name__ == "__main__":
    show(main())
