"""Quotients of rows by numbers that their elements share are rounded once, like any quotient.

Compilers replace such divisions by products with a reciprocal, and correct these, where they know enough of the
operands. Here each kernel stores what it divides, what it divides by, and the quotient.
"""

import ml_dtypes
import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, same_bits

COLUMNS = 64
F16, BF16, F32, F64 = ct.float16, ct.bfloat16, ct.float32, ct.float64
NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i8": np.int8,
         "i32": np.int32, "u8": np.uint8}


def total(x):
    return ct.sum(x, axis=1, keepdims=True)


def largest(x):
    return ct.max(x, axis=1, keepdims=True)


def single(t):
    return t.astype(F32)


def at_least_half(t):
    return t, ct.maximum(largest(abs(t)), 0.5)


def of_exponentials(base2):
    def powers(t):
        d = t - largest(t)
        e = ct.exp2(d * 1.5) if base2 else ct.exp(d)
        return e, total(e)

    return powers


def falling_powers(t):
    e = ct.exp2((t - largest(t)) * -0.5)
    return e, total(e)


def rising_powers(t):
    e = ct.exp2((t - largest(t)) * ct.maximum(abs(t), 0.5))
    return e, total(e)


def root_of_squares(t):
    return t, ct.sqrt(total(t * t) + 1e-6)


def root_of_fused_squares(t):
    return t, ct.sqrt(total(t * t + abs(t)))


def deviation(t):
    d = t - total(t) / COLUMNS
    return d, ct.sqrt(total(d * d) / COLUMNS + 1e-5)


def chosen(t):
    return ct.where(t > 0, t, ct.negative(t)), ct.minimum(largest(abs(t)) + 0.125, 2.0**20)


def scaled(t):
    return t * 3.0, largest(abs(t)) / 127.0 + 1e-3


def scaled_down(t):
    return t / -384.0, largest(abs(t)) * 2.0**-40


def of_columns(t):
    u = ct.permute(t.reshape((1, t.shape[0], COLUMNS)), (0, 2, 1)).reshape((t.shape[0], COLUMNS))
    return u, total(abs(u))


def all_of_them(t):
    a = abs(t)
    return a, ct.full((1, 1), 0, a.dtype) + ct.max(a, propagate_nan=True)


#: what is divided and by what, of a tile of rows
PAIRS = {
    "weights": lambda t: (abs(t), total(abs(t))),
    "signed weights": lambda t: (t, total(abs(t))),
    "sum": lambda t: (t, total(t)),
    "squares": lambda t: (t, total(t * t)),
    "sums of two": lambda t: (t + abs(t), total(abs(t) + abs(t) * 2)),
    "less than the sum": lambda t: (t - abs(t), total(abs(t))),
    "largest": lambda t: (t, largest(abs(t))),
    "largest of signed": lambda t: (t, largest(t)),
    "largest, NaN too": lambda t: (abs(t), ct.max(abs(t), axis=1, keepdims=True, propagate_nan=True)),
    "smallest": lambda t: (t, ct.min(abs(t), axis=1, keepdims=True)),
    "largest of all": all_of_them,
    "at least half": at_least_half,
    "natural powers": of_exponentials(False),
    "powers of two": of_exponentials(True),
    "falling powers": falling_powers,
    "rising powers": rising_powers,
    "root of squares": root_of_squares,
    "root of fused squares": root_of_fused_squares,
    "deviation": deviation,
    "chosen": chosen,
    "scaled": scaled,
    "scaled down": scaled_down,
    "of columns": of_columns,
    "constant": lambda t: (t, ct.full((t.shape[0], 1), 0.3, t.dtype)),
    "negative constant": lambda t: (t, ct.full((t.shape[0], 1), -3.0, t.dtype)),
    "small negative constant": lambda t: (t, ct.full((t.shape[0], 1), -0.3, t.dtype)),
    "power": lambda t: (t, ct.full((1, 1), -8.0, t.dtype)),
    "largest power": lambda t: (t, ct.full((t.shape[0], 1), 2.0**14, t.dtype)),
    "first": lambda t: (t, ct.extract(t, (0, 0), (t.shape[0], 1))),
}
WAYS = {  # dtypes: of the array, in which it is computed, of the quotient
    "f32": ("f32", F32, "f32"), "f32, two rows": ("f32", F32, "f32"), "f32 to f16": ("f32", F32, "f16"),
    "f16 as f32": ("f16", F32, "f32"), "f16 as f32 to f16": ("f16", F32, "f16"),
    "bf16 as f32 to bf16": ("bf16", F32, "bf16"), "f16": ("f16", F16, "f16"), "f64": ("f64", F64, "f64"),
    "i8 as f32": ("i8", F32, "f32"), "u8 as f32 to f16": ("u8", F32, "f16"), "i32 as f32": ("i32", F32, "f32"),
    "i32 as f64": ("i32", F64, "f64"),
}


def rows(name: str) -> np.ndarray:
    """Rows of numbers of one size, for sizes over the whole range of the dtype; rows of very different numbers; zeros,
    infinities, NaN.
    """
    dtype, random = NUMPY[name], np.random.default_rng(13)
    if np.dtype(dtype).kind in "iu":
        i = np.iinfo(dtype)
        wide = random.integers(i.min, i.max, (6, COLUMNS), np.int64, endpoint=True)
        small = random.integers(0, 3, (2, COLUMNS))
        return np.concatenate([wide, small, [[0] * COLUMNS], [[i.max] * COLUMNS], [[i.min] * COLUMNS]]).astype(dtype)
    f = ml_dtypes.finfo(dtype)
    low, high = f.minexp - f.nmant, f.maxexp
    sizes = np.linspace(low, high - 7, 24).astype(int)
    of_size = np.ldexp(random.uniform(-1, 1, (24, COLUMNS)), sizes[:, None] + random.integers(0, 3, (24, COLUMNS)))
    mixed = np.ldexp(random.uniform(-1, 1, (8, COLUMNS)), random.integers(low, high - 6, (8, COLUMNS)))
    near = np.ldexp(random.uniform(-1, 1, (8, COLUMNS)), random.integers(-24, 2, (8, COLUMNS)))
    special = np.zeros((8, COLUMNS))
    special[1:] = random.uniform(0.5, 1, (7, COLUMNS))
    special[1, 3:] = 0
    special[2] = -0.0
    special[3, 5], special[4, 6], special[5, 7], special[6, 8:10] = np.inf, -np.inf, np.nan, (np.inf, np.nan)
    special[7] = np.inf
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([of_size, mixed, near, special]).astype(dtype)


@clause("ARITH-4.float", "ARITH-4.zero", "ARITH-4.zeros")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pair", PAIRS)
def test_quotients(pair, way):
    f, (of, inside, to), together = PAIRS[pair], WAYS[way], 1 + ("two" in way)

    @ct.kernel
    def k(x, e, s, q):
        b = ct.bid(0)
        a, d = f(ct.load(x, (b, 0), (together, COLUMNS)).astype(inside))
        ct.store(e, (b, 0), a)
        ct.store(s, (b, 0), ct.broadcast_to(d, (together, 1)))
        ct.store(q, (b, 0), (a / d).astype(q.dtype))

    x, floats = rows(of), NUMPY[{F16: "f16", F32: "f32", F64: "f64"}[inside]]
    e, s, q = np.empty(x.shape, floats), np.empty((len(x), 1), floats), np.empty(x.shape, NUMPY[to])
    launch(k, x, e, s, q, grid=(len(x) // together,))
    with np.errstate(all="ignore"):
        same_bits(q, (e / s).astype(q.dtype))
