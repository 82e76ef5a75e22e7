"""Every op on every dtype, in batch, on tiles of 64 x 64: nanoseconds an element.

    python benchmarks/ops.py [op ...]

Each cell is the difference of two kernels in processor time: both load and store the operands; one also applies the
op and stores its result. A dash means that the op does not take the dtype. `!` marks more than 50 ns without a reason
in REASONS.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import functools
import itertools
import linecache
import re
import time

import numpy as np

import cutile as ct
from cutile import settings
from cutile.dtypes import INFO
from cutile.ops._op import registry

TILE, BLOCKS, LIMIT, ROUNDS = 64, 32, 50, 5
ELEMENTS = TILE * TILE * BLOCKS
DTYPES = tuple(d for d in INFO if INFO[d].pointee is None)
NO_ARRAYS = (ct.tfloat32, ct.float8_e5m3fnu, ct.float4_e2m1fn)  # ops whose operands come from float32

# Result dtypes by letter: S the operand's, F that or float32, A that or int32 (bool), N an integer of that width.
BINARY_S = "add sub mul floordiv cdiv mod minimum maximum atan2 pow bitwise_and bitwise_or bitwise_xor " \
           "bitwise_lshift bitwise_rshift"
UNARY_F = "exp exp2 log log2 sin cos tan sinh cosh tanh sqrt rsqrt"
COMPARE = "equal not_equal less less_equal greater greater_equal"
AT = "(row, col)"
SCALE = "ct.full({}, 1.0, ct.float8_e8m0fnu)"

# op, or op and a word -> expression, result dtype. `x` and `y` are tiles of the dtype D, `m` of bools, `index` of int32
# and `more` is an array for effects. A trailing ";" makes it a statement.
EXPRESSIONS: dict[str, tuple[str, str]] = {
    **{op: (f"ct.{op}(x, y)", "S") for op in BINARY_S.split()},
    **{op: (f"ct.{op}(x)", "F") for op in UNARY_F.split()},
    **{op: (f"ct.{op}(x, y)", "bool_") for op in COMPARE.split()},
    **{op: (f"ct.{op}(x)", "S") for op in ("abs", "floor", "ceil", "bitwise_not")},
    "truediv": ("ct.truediv(x, y)", "F"),
    "divmod": ("ct.divmod(x, y)[0]", "S"),
    "negative": ("ct.negative(x)", "A"),
    "pow 3": ("ct.pow(x, 3)", "S"),
    "add, mul (fma)": ("x * y + x", "S"),
    "isnan": ("ct.isnan(x)", "bool_"),
    "where": ("ct.where(m, x, y)", "S"),
    **{f"astype {to}": (f"ct.astype(x, ct.{to})", to) for to in
       ("bool_", "int8", "int32", "uint64", "float16", "bfloat16", "float32", "float64", "float8_e4m3fn",
        "float8_e5m2")},
    "bitcast": ("ct.bitcast(x, N)", "N"),
    "pack_to_bytes": ("ct.pack_to_bytes(x).reshape((64, -1))", "uint8"),
    "unpack_from_bytes": ("ct.unpack_from_bytes(ct.reshape(x, (4096,)), ct.float32).reshape((64, 16))", "float32"),
    "full": ("ct.full((64, 64), 3, D)", "S"),
    "ones": ("ct.ones((64, 64), D)", "S"),
    "zeros": ("ct.zeros((64, 64), D)", "S"),
    "arange": ("ct.arange(64, dtype=D)[None, :]", "S"),
    "reshape": ("ct.reshape(x, (32, 128))", "S"),
    "broadcast_to": ("ct.broadcast_to(ct.load(a, (i, 0), (1, 64)).astype(D), (64, 64))", "S"),
    "expand_dims": ("ct.expand_dims(x, 0).reshape((64, 64))", "S"),
    "permute": ("ct.permute(x, (1, 0))", "S"),
    "transpose": ("ct.transpose(x)", "S"),
    "cat": ("ct.cat((x, y), 0)", "S"),
    "extract": ("ct.extract(x, (1, 1), (32, 32))", "S"),
    "insert": ("ct.insert(x, (1, 1), ct.extract(y, (0, 0), (32, 32)))", "S"),
    **{op: (f"ct.{op}(x, axis=1, keepdims=True)", "A") for op in ("sum", "prod", "max", "min")},
    "sum axis 0": ("ct.sum(x, axis=0, keepdims=True)", "A"),
    **{op: (f"ct.{op}(x, axis=1, keepdims=True)", "int32") for op in ("argmax", "argmin")},
    "reduce": ("ct.reduce(x, 1, lambda p, q: ct.where(p < q, q, p), 0, keepdims=True)", "S"),
    **{op: (f"ct.{op}(x, axis=1)", "A") for op in ("cumsum", "cumprod")},
    "scan": ("ct.scan(x, 1, lambda p, q: ct.where(p < q, q, p), 0)", "S"),
    "mma": ("ct.mma(x, y, ct.zeros((64, 64), ACC))", "ACC"),
    "matmul": ("ct.matmul(x, y)", "S"),
    "mma_scaled": (f"ct.mma_scaled(x, {SCALE.format('(64, 2)')}, y, {SCALE.format('(2, 64)')}, "
                   "ct.zeros((64, 64), ct.float32))", "float32"),
    "load": ("ct.load(b, (i, 0), (64, 64)).astype(D)", "S"),
    "store": ("ct.store(more, (i, 0), x.astype(more.dtype));", ""),
    "gather": ("ct.gather(b, (index, index & 63)).astype(D)", "S"),
    "scatter": ("ct.scatter(more, (index, index & 63), x.astype(more.dtype));", ""),
    "load_advanced_indexing": ("ct.load_advanced_indexing(b, (row.reshape((64,)), ct.Slice(0, 64))).astype(D)", "S"),
    "store_advanced_indexing":
        ("ct.store_advanced_indexing(more, (row.reshape((64,)), ct.Slice(0, 64)), x.astype(more.dtype));", ""),
    "atomic_cas": (f"ct.atomic_cas(more, {AT}, x, y)", "S"),
    **{f"atomic_{op}": (f"ct.atomic_{op}(more, {AT}, x)", "S") for op in "xchg add max min and or xor".split()},
}
COMPUTE_NO_TILE = {
    "bid", "num_blocks", "num_tiles", "assume_divisible_by", "grid_dependency_control_wait",
    "grid_dependency_control_launch_dependents", "print", "printf", "assert_", "astile", "Slice"}
_PAIRS = "float64 has no wider format to be computed in: exp(x) - 1 is carried as the sum of two numbers"
# row -> why it may cost more than LIMIT
REASONS: dict[str, str] = {"sinh": _PAIRS, "tanh": _PAIRS}

TEMPLATE = """
@ct.kernel
def kernel(a, b, mask, indices, out, more, rest_x, rest_y, rest_m, rest_index, rest):
    i = ct.bid(0)
    row = (i * 64 + ct.arange(64, dtype=ct.int32))[:, None]
    col = ct.arange(64, dtype=ct.int32)[None, :]
    {pin}
    {loads}
    {apply}
"""
STORE = "; ct.store(out, (i, 0), r.astype(out.dtype))"
LOADS = {
    "x": "x = ct.load(a, (i, 0), (64, 64)).astype(D); ct.store(rest_x, (i, 0), x.astype(rest_x.dtype))",
    "y": "y = ct.load(b, (i, 0), (64, 64)).astype(D); ct.store(rest_y, (i, 0), y.astype(rest_y.dtype))",
    "m": "m = ct.load(mask, (i, 0), (64, 64)); ct.store(rest_m, (i, 0), m)",
    "index": "index = ct.load(indices, (i, 0), (64, 64)); ct.store(rest_index, (i, 0), index)",
}
# How many blocks run at once depends on the families of a kernel's ops: both kernels get a small op of the family.
ROW_PIN = "ct.store(rest, (i, 0), ct.sum(ct.zeros((1, 1), ct.float32), axis=0, keepdims=True))"
ONE = "ct.zeros((1, 1), ct.float32)"
PINS = {"reduce": ROW_PIN, "scan": ROW_PIN, "mma": f"ct.store(rest, (i, 0), ct.mma({ONE}, {ONE}, {ONE}))"}
_numbers = itertools.count()


def make(pin: str, apply: str, operands: tuple[str, ...], dtype: ct.DType):
    """A kernel from source text; linecache holds the text, so that the front end finds it."""
    names = {"ct": ct, "D": dtype, "N": integer_of(dtype), "ACC": accumulator(dtype)}
    file = f"<op {next(_numbers)}>"
    text = TEMPLATE.format(pin=pin, loads="\n    ".join(LOADS[o] for o in operands), apply=apply)
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), names)
    return names["kernel"]


def integer_of(dtype: ct.DType) -> ct.DType:
    return {8: ct.int8, 16: ct.int16, 32: ct.int32, 64: ct.int64}.get(dtype.bitwidth, ct.int8)


def accumulator(dtype: ct.DType) -> ct.DType:
    return ct.int32 if INFO[dtype].kind in "iu" else ct.float64 if dtype is ct.float64 else ct.float32


def result_dtype(letter: str, dtype: ct.DType) -> ct.DType:
    kind = INFO[dtype].kind
    return {"S": dtype, "": dtype, "F": dtype if kind == "f" else ct.float32, "ACC": accumulator(dtype),
            "A": ct.int32 if kind == "b" else dtype, "N": integer_of(dtype)}.get(letter) or getattr(ct, letter)


def storage(dtype: ct.DType) -> np.dtype:
    return np.dtype(np.float32) if dtype in NO_ARRAYS else INFO[dtype].storage


def random(dtype: ct.DType, low: float, high: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, (TILE * BLOCKS, TILE)).astype(storage(dtype))


def zeros(dtype: ct.DType, columns: int = TILE) -> np.ndarray:
    return np.zeros((TILE * BLOCKS, columns), storage(dtype))


@functools.cache
def arguments(dtype: ct.DType, result: ct.DType) -> tuple:
    indices = np.random.default_rng(3).permutation(ELEMENTS).reshape(-1, TILE).astype(np.int32) // TILE
    return (random(dtype, 1, 6, 0), random(dtype, 1, 6, 1), random(ct.bool_, 0, 2, 2), indices,
            zeros(result, columns=8 * TILE), random(dtype, 1, 6, 4), zeros(dtype), zeros(dtype), zeros(ct.bool_),
            zeros(ct.int32), zeros(ct.float32))


def seconds(*runs: tuple) -> list[float]:
    """The least processor time of each kernel, with the kernels taking turns. The first launch, which compiles, is
    left out.
    """
    best = [float("inf")] * len(runs)
    for n in range(ROUNDS + 1):
        for k, (kernel, args) in enumerate(runs):
            start = time.thread_time()
            ct.launch(None, (BLOCKS,), kernel, args)
            if n:
                best[k] = min(best[k], time.thread_time() - start)
    return best


def cell(family: str, expression: str, letter: str, dtype: ct.DType) -> float | None:
    """Nanoseconds an element; None if the op does not take the dtype."""
    operands = tuple(name for name in LOADS if re.search(rf"\b{name}\b", expression))
    apply = expression if expression.endswith(";") else f"r = {expression}{STORE}"
    pin, args = PINS.get(family, ""), arguments(dtype, result_dtype(letter, dtype))
    try:
        times = seconds((make(pin, apply, operands, dtype), args), (make(pin, "", operands, dtype), args))
    except (ct.TileTypeError, ct.TileValueError, ct.TileUnsupportedFeatureError):
        return None
    return max(0.0, (times[0] - times[1]) * 1e9 / ELEMENTS)


def op_of(name: str) -> str:
    return name.split()[0].rstrip(",")


def shown(name: str, ns: float | None) -> str:
    if ns is None:
        return "–"
    return f"{ns:.1f}!" if ns > LIMIT and name not in REASONS else f"{ns:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", help="names of ops; default all")
    chosen = parser.parse_args().ops
    known = {op_of(name) for name in EXPRESSIONS}
    missing = {name for name, op in registry().items() if op.public} - known - COMPUTE_NO_TILE
    if wrong := set(chosen) - known:
        raise SystemExit(f"no row is called {', '.join(sorted(wrong))}")
    if missing:
        raise SystemExit(f"no expression for the ops {', '.join(sorted(missing))}")
    print(f"{'':24}" + "".join(f"{INFO[d].short:>7}" for d in DTYPES), flush=True)
    slow, excused = [], set()
    for name, (expression, letter) in EXPRESSIONS.items():
        if chosen and op_of(name) not in chosen:
            continue
        family = registry()[op_of(name)].family
        with settings.override(SCHEDULE="batch"):
            cells = [cell(family, expression, letter, d) for d in DTYPES]
        row = [shown(name, ns) for ns in cells]
        excused |= {name for ns in cells if name in REASONS and ns is not None and ns > LIMIT}
        slow += [f"{name} {INFO[d].short}" for d, text in zip(DTYPES, row) if text.endswith("!")]
        print(f"{name:24}" + "".join(f"{text:>7}" for text in row), flush=True)
    for name, why in REASONS.items():
        if name in excused:
            print(f"{name} may be slower than {LIMIT} ns: {why}")
        elif not chosen or op_of(name) in chosen:
            print(f"{name} needs its reason no more")
    print(f"above {LIMIT} ns without a reason: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
