"""What errors advise instead of functions of other libraries: all advice is run and compared with NumPy."""

import itertools
import math

import numpy as np
import pytest

import cutile as ct
from cutile.dtypes import of_storage
from cutile.front import foreign_names
from cutile.front.advice import call_of, hint, nearest
from tests.front.compiling import A1, cell, refused

f32, i32, u32 = np.float32, np.int32, np.uint32
RNG = np.random.default_rng(0)
X, Y, Z = (RNG.uniform(-3, 3, 16).astype(f32) for _ in range(3))
X2, Y2 = (RNG.uniform(-3, 3, (4, 8)).astype(f32) for _ in range(2))
SQUARE = RNG.uniform(-3, 3, (8, 8)).astype(f32)
POSITIVE = RNG.uniform(0.1, 50, 16).astype(f32)
UNIT = np.linspace(-0.99, 0.99, 16, dtype=f32)
SMALL = np.array([*np.geomspace(1e-30, 0.9, 8), *-np.geomspace(1e-30, 0.9, 8)], f32)
TIES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, -0.49999997, 3.2, -3.7, 8388609, -8388609, 1e30, -1e30,
                 np.inf, np.nan], f32)
SPECIAL = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 2.5, -2.5, 1e38, -1e38, 3, 4, 5], f32)
COUNTS = RNG.integers(0, 8, 16).astype(i32)
BITS = RNG.integers(0, 2**32, 16, dtype=u32)
MASK, MASK2 = X > 0, Y > 0
EDGES = np.sort(RNG.uniform(-3, 3, 8)).astype(f32)
ORDER = np.array([3, 1, 2, 0], i32)


def erf(x):
    return np.vectorize(math.erf)(x)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def added(counts, x):
    np.add.at(counts, x, 1)
    return counts


# Relative tolerances other than 2e-6: those that the hint states, or those of float32 ops.
NEAR, ABSOLUTE = {"rtol": 1e-5}, {"rtol": 0, "atol": 1e-6}
# For the first name of each row: values of its variables, and NumPy's function of them.
# The function returns the value of the last expression or, if that has none, the contents of `array` after it.
Case = tuple
CASES: dict[str, Case] = {
    "square": ({"x": X}, lambda x: x * x), "reciprocal": ({"x": X}, np.reciprocal),
    "fma": ({"x": X, "y": Y, "z": Z}, lambda x, y, z: (x.astype(float) * y + z)),
    "addcmul": ({"x": X, "y": Y, "z": Z, "value": 2.0}, lambda x, y, z, value: x + value * y * z, ABSOLUTE),
    "lerp": ({"x": X, "y": Y, "weight": 0.25}, lambda x, y, weight: x + weight * (y - x), ABSOLUTE),
    "rsub": ({"x": X, "y": Y}, lambda x, y: y - x), "rint": ({"x": TIES}, np.rint), "trunc": ({"x": TIES}, np.trunc),
    "frac": ({"x": TIES[:8]}, lambda x: x - np.trunc(x)), "modf": ({"x": TIES[:8]}, np.modf),
    "fmod": ({"x": X * 10, "y": Y}, np.fmod), "sign": ({"x": SPECIAL}, np.sign),
    "signbit": ({"x": np.nan_to_num(SPECIAL)}, np.signbit),
    "copysign": ({"x": SPECIAL[[0, 2, 3, 4, 5, 9, 10, 11]], "y": SPECIAL[[0, 1, 2, 3, 4, 5, 9, 10]]}, np.copysign),
    "heaviside": ({"x": SPECIAL[:4], "y": Y[:4]}, np.heaviside),
    "clip": ({"x": X, "lo": -1, "hi": 2}, np.clip),
    "nan_to_num": ({"x": SPECIAL}, lambda x: np.where(np.isnan(x), 0, x)), "isinf": ({"x": SPECIAL}, np.isinf),
    "isfinite": ({"x": SPECIAL}, np.isfinite), "isposinf": ({"x": SPECIAL}, np.isposinf),
    "isneginf": ({"x": SPECIAL}, np.isneginf), "logical_and": ({"x": MASK, "y": MASK2}, np.logical_and),
    "logical_or": ({"x": MASK, "y": MASK2}, np.logical_or), "logical_not": ({"mask": MASK}, np.logical_not),
    "logical_xor": ({"x": MASK, "y": MASK2}, np.logical_xor), "hypot": ({"x": X, "y": Y}, np.hypot),
    "positive": ({"x": X}, np.positive), "saturate": ({"x": X}, lambda x: np.clip(x, 0, 1)),
    "shift_right_logical": ({"x": BITS.view(i32), "y": COUNTS.astype(u32)}, lambda x, y: x.view(u32) >> y),
    "shift_right_arithmetic": ({"x": BITS.view(i32), "y": COUNTS}, lambda x, y: x >> y),
    "float_as_int": ({"x": X}, lambda x: x.view(i32)), "int_as_float": ({"x": X.view(i32)}, lambda x: x.view(f32)),
    "float2half": ({"x": X}, lambda x: x.astype(np.float16)),
    "half2float": ({"x": X.astype(np.float16)}, lambda x: x.astype(f32)),
    "deg2rad": ({"x": X}, np.deg2rad), "rad2deg": ({"x": X}, np.rad2deg),
    "log1p": ({"x": SMALL}, lambda x: np.log1p(x.astype(float))),
    "expm1": ({"x": np.concatenate([SMALL, X * 5])}, lambda x: np.expm1(x.astype(float))),
    "log10": ({"x": POSITIVE}, np.log10), "exp10": ({"x": X * 12}, lambda x: 10 ** x.astype(float), NEAR),
    "cbrt": ({"x": np.append(X, X * 1e30)}, np.cbrt, NEAR), "logaddexp": ({"x": X, "y": Y * 9}, np.logaddexp, ABSOLUTE),
    "logaddexp2": ({"x": X, "y": Y * 9}, np.logaddexp2, ABSOLUTE), "arcsin": ({"x": UNIT}, np.arcsin),
    "arccos": ({"x": UNIT}, np.arccos), "arctan": ({"x": X * 9}, np.arctan), "sinc": ({"x": SPECIAL[:4]}, np.sinc, ABSOLUTE),
    "arcsinh": ({"x": X * 9}, np.arcsinh, ABSOLUTE), "arccosh": ({"x": POSITIVE + 1}, np.arccosh, ABSOLUTE),
    "arctanh": ({"x": UNIT}, np.arctanh, ABSOLUTE), "erf": ({"x": np.append(X, SMALL)}, erf, NEAR),
    "sigmoid": ({"x": X * 9}, lambda x: 1 / (1 + np.exp(-x.astype(float)))),
    "silu": ({"x": X * 9}, lambda x: x / (1 + np.exp(-x.astype(float)))), "relu": ({"x": X}, lambda x: np.maximum(x, 0)),
    "relu6": ({"x": X * 3}, lambda x: np.clip(x, 0, 6)),
    "leaky_relu": ({"x": X, "slope": 0.1}, lambda x, slope: np.where(x > 0, x, slope * x)),
    "elu": ({"x": X, "alpha": 0.5}, lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)), ABSOLUTE),
    "gelu": ({"x": X}, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, ABSOLUTE),
    "softplus": ({"x": X * 9}, lambda x: np.logaddexp(x.astype(float), 0)),
    "softsign": ({"x": X}, lambda x: x / (1 + np.abs(x))),
    "mish": ({"x": X}, lambda x: x * np.tanh(np.logaddexp(x, 0)), ABSOLUTE),
    "logsigmoid": ({"x": X * 9}, lambda x: -np.logaddexp(-x.astype(float), 0)),
    "tanhshrink": ({"x": X}, lambda x: x - np.tanh(x), ABSOLUTE), "ldexp": ({"x": X, "y": COUNTS}, np.ldexp),
    "popcount": ({"x": BITS}, lambda x: np.array([int(v).bit_count() for v in x], u32)),
    "integer_pow": ({"x": X, "y": COUNTS}, lambda x, y: x.astype(float) ** y),
    "umulhi": ({"x": BITS, "y": BITS[::-1]}, lambda x, y: (x.astype(np.uint64) * y.astype(np.uint64) >> 32).astype(u32)),
    "mean": ({"x": X2, "axis": 1}, lambda x, axis: x.mean(axis), ABSOLUTE),
    "var": ({"x": X2, "axis": 1}, lambda x, axis: x.var(axis), NEAR),
    "std": ({"x": X2, "axis": 1}, lambda x, axis: x.std(axis), NEAR), "softmax": ({"x": X2, "axis": 1}, softmax),
    "log_softmax": ({"x": X2, "axis": 1}, lambda x, axis: np.log(softmax(x.astype(float), axis)), ABSOLUTE),
    "logsumexp": ({"x": X2, "axis": 1}, lambda x, axis: np.log(np.exp(x.astype(float)).sum(axis)), ABSOLUTE),
    "any": ({"mask": X2 > 2, "axis": 1}, np.any), "all": ({"mask": X2 > -2.5, "axis": 1}, np.all),
    "amax": ({"x": np.where(X2 > 2.5, np.nan, X2), "axis": 1}, np.amax),
    "amin": ({"x": np.where(X2 > 2.5, np.nan, X2), "axis": 1}, np.amin),
    "nansum": ({"x": np.where(X2 > 2, np.nan, X2), "axis": 1}, np.nansum, ABSOLUTE),
    "nanprod": ({"x": np.where(X2 > 2, np.nan, X2), "axis": 1}, np.nanprod, NEAR),
    "rms_norm": ({"x": X2, "axis": 1, "n": 8, "eps": 1e-5},
                 lambda x, axis, n, eps: x / np.sqrt((x * x).mean(axis, keepdims=True) + eps)),
    "layer_norm": ({"x": X2, "axis": 1, "n": 8, "eps": 1e-5}, lambda x, axis, n, eps: (
        x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps), NEAR),
    "count_nonzero": ({"x": np.where(X2 > 0, X2, 0), "axis": 1}, np.count_nonzero), "ptp": ({"x": X2, "axis": 1}, np.ptp),
    "norm": ({"x": X2, "axis": 1}, lambda x, axis: np.linalg.norm(x, axis=axis)),
    "xor_sum": ({"x": BITS, "axis": 0}, lambda x, axis: np.bitwise_xor.reduce(x)),
    "cummax": ({"x": X, "axis": 0}, lambda x, axis: np.maximum.accumulate(x)),
    "cummin": ({"x": X, "axis": 0}, lambda x, axis: np.minimum.accumulate(x)),
    "logcumsumexp": ({"x": X}, lambda x: np.log(np.cumsum(np.exp(x.astype(float)))), ABSOLUTE),
    "associative_scan": ({"x": X, "axis": 0, "func": lambda a, b: a + b, "identity": 0},
                         lambda x, axis, func, identity: np.cumsum(x.astype(float)), ABSOLUTE),
    "topk": ({"x": X2, "k": 4}, lambda x, k: (-np.sort(-x)[:, :k], np.argsort(-x)[:, :k].astype(i32))),
    "sort": ({"a": X, "b": Y}, np.maximum),
    "argsort": ({"a": X, "b": Y, "i": COUNTS, "j": COUNTS + 8}, lambda a, b, i, j: np.where(a < b, j, i)),
    "bincount": ({"counts": np.zeros(8, i32), "x": COUNTS}, lambda counts, x: {"counts": np.bincount(x, minlength=8)}),
    "dot": ({"x": SQUARE, "y": SQUARE.T.copy(), "acc": SQUARE}, lambda x, y, acc: x @ y + acc, NEAR),
    "inner": ({"x": X, "y": Y}, np.inner, ABSOLUTE), "vecdot": ({"x": X2, "y": Y2}, lambda x, y: (x * y).sum(-1), NEAR),
    "mv": ({"x": X2, "y": X[:8]}, lambda x, y: x @ y, ABSOLUTE), "outer": ({"x": X[:4], "y": Y[:8]}, np.outer),
    "zeros_like": ({"x": X2}, np.zeros_like), "ones_like": ({"x": X2}, np.ones_like),
    "full_like": ({"x": X2, "value": 2}, np.full_like), "empty": ({"shape": (4, 2), "dtype": ct.int32}, lambda shape, dtype:
                                                                   np.zeros(shape, i32)),
    "fill": ({"shape": (4, 2), "value": 3, "dtype": ct.int32}, lambda shape, value, dtype: np.full(shape, value, i32)),
    "array": ({}, lambda: np.array((1, 2), i32)), "iota": ({"n": 16}, lambda n: np.arange(n, dtype=i32)),
    "linspace": ({"n": 16, "start": 1.0, "stop": 2.5}, lambda n, start, stop: np.linspace(start, stop, n)),
    "eye": ({"n": 8}, np.eye), "diagonal": ({"n": 8, "x": SQUARE}, lambda n, x: np.diagonal(x)),
    "trace": ({"n": 8, "x": SQUARE}, lambda n, x: np.trace(x), ABSOLUTE),
    "diagflat": ({"n": 16, "x": X}, lambda n, x: np.diagflat(x)), "diag": ({"n": 16, "x": X}, lambda n, x: np.diag(x)),
    "tril": ({"n": 8, "x": SQUARE}, lambda n, x: np.tril(x)), "triu": ({"n": 8, "x": SQUARE}, lambda n, x: np.triu(x)),
    "tri": ({"n": 8}, np.tri), "one_hot": ({"x": COUNTS, "n": 8}, lambda x, n: np.eye(n, dtype=f32)[x]),
    "shape": ({"x": X2}, np.shape), "ndim": ({"x": X2}, np.ndim), "size": ({"x": X2}, np.size),
    "swapaxes": ({"x": X2, "axis0": 0, "axis1": 1}, np.swapaxes), "matrix_transpose": ({"x": X2}, np.transpose),
    "ravel": ({"x": X2}, np.ravel), "squeeze": ({"x": X2[None], "shape": (4, 8)}, lambda x, shape: np.squeeze(x)),
    "view": ({"x": X, "shape": (4, 4)}, np.reshape), "reshape_as": ({"x": X, "y": X.reshape(4, 4)}, lambda x, y:
                                                                     x.reshape(y.shape)),
    "expand_as": ({"x": X[:8], "y": X2}, np.broadcast_arrays, {"item": 0}),
    "concatenate": ({"a": X2, "b": Y2, "axis": 1}, lambda a, b, axis: np.concatenate((a, b), axis)),
    "vstack": ({"a": X2, "b": Y2}, lambda a, b: np.vstack((a, b))),
    "hstack": ({"a": X2, "b": Y2}, lambda a, b: np.hstack((a, b))),
    "stack": ({"a": X2, "b": Y2}, lambda a, b: np.stack((a, b))),
    "join": ({"x": X2, "y": Y2}, lambda x, y: np.stack((x, y), -1)),
    "interleave": ({"x": X2, "y": Y2}, lambda x, y: np.stack((x, y), -1).reshape(4, 16)),
    "split": ({"x": X2, "index": (0, 1), "shape": (4, 4)}, lambda x, index, shape: np.split(x, 2, axis=1)[1]),
    "dynamic_update_slice": ({"x": X2, "index": (1, 0), "value": Y2[:2]}, lambda x, index, value:
                             np.concatenate((x[:2], value))),
    "meshgrid": ({"x": X, "y": Y}, lambda x, y: (x[:, None], y[None])),
    "tile": ({"x": X, "n": 16, "k": 4}, lambda x, n, k: np.tile(x, k)),
    "repeat": ({"x": X, "n": 16, "k": 4}, lambda x, n, k: np.repeat(x, k)),
    "flip": ({"x": X2, "axis": 1}, np.flip),
    "roll": ({"x": X2, "shift": 3, "axis": 1}, np.roll),
    "pad": ({"array": X[:5], "index": 0, "shape": 8}, lambda array, index, shape: np.pad(array, (0, 3))),
    "take": ({"array": X, "indices": COUNTS}, np.take),
    "put": ({"array": X, "indices": ORDER, "values": Y[:4]}, lambda array, indices, values: {
        "array": np.r_[Y[ORDER], array[4:]] if np.put(array, indices, values) is None else None}),
    "scatter_add": ({"array": X, "indices": ORDER, "values": Y[:4]}, lambda array, indices, values: {
        "array": array + np.bincount(indices, values, minlength=16).astype(f32)}),
    "searchsorted": ({"edges": EDGES, "x": np.append(X[:8], EDGES)}, np.searchsorted),
    "digitize": ({"edges": EDGES, "x": np.append(X[:8], EDGES)}, lambda edges, x: np.digitize(x, edges)),
    "masked_fill": ({"x": X, "mask": MASK, "value": 7}, lambda x, mask, value: np.where(mask, value, x)),
    "choose": ({"x": X, "y": Y, "mask": MASK}, lambda x, y, mask: np.where(mask, x, y)),
    "isin": ({"x": COUNTS, "values": ORDER}, np.isin), "isclose": ({"x": X, "y": X * f32(1.000005)}, np.isclose),
    "cast": ({"x": X, "dtype": ct.float16}, lambda x, dtype: x.astype(np.float16)),
    "load_tile": ({"array": X, "index": 1, "shape": 4}, lambda array, index, shape: array[4:8]),
    "store_tile": ({"array": X, "index": 1, "tile": 5}, lambda array, index, tile: {"array": np.r_[X[:1], f32(5), X[2:]]}),
    "make_block_ptr": ({"array": X, "tile_shape": (4,)}, None), "atomic_inc": (
        {"array": np.zeros(8, i32), "indices": ORDER}, lambda array, indices: {"array": added(array, indices)}),
    "atomic_dec": ({"array": np.zeros(8, i32), "indices": ORDER}, lambda array, indices: {"array": -added(array, indices)}),
    "atomic_sub": ({"array": X, "indices": 3, "x": 2.0}, lambda array, indices, x: {
        "array": np.r_[array[:3], array[3] - f32(x), array[4:]]}),
    "multiple_of": ({"x": 16, "divisor": 8}, lambda x, divisor: np.int32(16)),
    "block_id": ({"axis": 0}, lambda axis: np.int32(0)), "blockIdx": ({"axis": 0}, lambda axis: np.int32(0)),
    "gridDim": ({"axis": 0}, lambda axis: np.int32(1)), "grid_dim": ({"axis": 0}, lambda axis: np.int32(1)),
    "static_range": ({"n": 4}, None), "range": ({"start": 0, "stop": 4, "step": 1}, None), "static_print": ({"x": X}, None),
    "next_power_of_2": ({"n": 100}, lambda n: np.int32(128)),
}
ROWS = {names.split()[0]: code for names, code, *_ in foreign_names._IDIOMS}


def test_every_idiom_has_a_case():
    assert CASES.keys() == ROWS.keys()


def given(name):
    """Copies of the values; arrays become contiguous."""
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in CASES[name][0].items()}


@pytest.mark.parametrize("name", ROWS)
def test_what_an_idiom_gives(name):
    _, reference, *more = CASES[name]
    values, tolerance = given(name), {"rtol": 2e-6, **(more[0] if more else {})}
    in_memory = {"array", "counts"}
    arrays = {n: v for n, v in values.items() if isinstance(v, np.ndarray)}
    lines = [f"{n} = ct.load({n}, {(0,) * v.ndim}, {v.shape})" for n, v in arrays.items() if n not in in_memory]
    *statements, last = ROWS[name].split("; ")
    if reference is None:  # it is no value
        last = {"static_range": f"for _ in {last}: pass", "range": f"for _ in {last}: pass"}.get(name, last)
        _run([*lines, *statements, last], values, arrays, [])
        return
    with np.errstate(all="ignore"):
        want = reference(*given(name).values())
    if isinstance(want, dict):
        _run([*lines, *statements, last], values, arrays, [])
        [(n, want)] = want.items()
        np.testing.assert_array_equal(arrays[n], want)
        return
    want = [want[tolerance.pop("item")]] if "item" in tolerance else [*want] if isinstance(want, tuple) else [want]
    want = [np.asarray(w) for w in want]
    found = [np.zeros(w.shape, f32 if w.dtype == np.float64 else i32 if w.dtype == np.int64 else w.dtype) for w in want]
    stores = [f"ct.store(out{k}, {(0,) * w.ndim}, {'result' if len(want) == 1 else f'result[{k}]'})"
              for k, w in enumerate(want)]
    _run([*lines, *statements, f"result = {last}", *stores], values, arrays, found)
    for f, w in zip(found, want, strict=True):
        if w.dtype.kind == "f":
            np.testing.assert_allclose(f, w, **{"atol": 0, **tolerance})
        else:
            np.testing.assert_array_equal(f, w)


def _run(lines, values, arrays, out):
    parameters = [*arrays, *(f"out{k}" for k in range(len(out)))]
    body = "".join(f"    {line}\n" for line in lines)
    space = cell(f"def kernel_({', '.join(parameters)}):\n{body}", math=math,
                 **{n: v for n, v in values.items() if n not in arrays})
    ct.launch(None, (1,), ct.kernel(space["kernel_"]), (*arrays.values(), *out))


# ------------------------------------------------------------------ the same op under another name

ALIASES = {"neg": np.negative, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
           "ge": np.greater_equal, "div": np.divide, "fdiv": np.divide, "shift_left": np.left_shift,
           "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift, "bitwise_invert": np.invert,
           "xor": np.bitwise_xor, "sqrt_rn": np.sqrt, "div_rn": np.divide, "reduce_sum": np.sum, "reduce_prod": np.prod,
           "cumulative_sum": np.cumsum, "cumulative_prod": np.cumprod}
INTEGERS = {"bitwise_lshift", "bitwise_rshift", "bitwise_not", "bitwise_xor"}
ELEMENTWISE = [(alias, op, getattr(np, alias, None) or ALIASES.get(alias)) for alias, op in foreign_names.SAME.items()]
NOT_ELEMENTWISE = {"permute", "transpose", "expand_dims", "broadcast_to", "where", "bitcast", "cdiv", "mma_scaled", "print",
                   "assert_", "bid", "num_blocks", "atomic_xchg", "atomic_cas"}


def test_every_alias_is_compared_or_of_no_function_of_values():
    assert {op for _, op, f in ELEMENTWISE if f is None} <= NOT_ELEMENTWISE
    assert all(getattr(ct, op) for _, op, _ in ELEMENTWISE)


@pytest.mark.parametrize(("alias", "op", "reference"), [e for e in ELEMENTWISE if e[2] and e[1] not in NOT_ELEMENTWISE])
def test_an_alias_means_the_same(alias, op, reference):
    x, y = (COUNTS, ORDER[COUNTS % 4]) if op in INTEGERS else (np.append(X, SPECIAL), np.append(Y, SPECIAL[::-1]))
    if op in ("sum", "prod", "cumsum", "cumprod"):
        x = X
    if op in ("mod", "floordiv"):  # another clause is about infinities
        x, y = X, Y
    if op == "pow":
        x = np.abs(x)
    with np.errstate(all="ignore"):
        want = np.asarray(reference(*([x] if call_of(alias).count(",") == 0 or "axis" in call_of(alias) else [x, y])))
    found = np.zeros(want.shape, i32 if want.dtype == np.int64 else want.dtype)
    arguments = "x, y" if ", " in call_of(alias) and "axis" not in call_of(alias) else "x"
    _run([f"x = ct.load(x, 0, {x.size})", f"y = ct.load(y, 0, {y.size})", f"ct.store(out0, {(0,) * want.ndim}, "
          f"ct.{op}({arguments}))"], {}, {"x": x, "y": y}, [found])
    np.testing.assert_allclose(found, want, rtol=4e-6, atol=0)


WIDTHS = {"int": 32, "int1": 8, "int_": 64, "float": 32, "float_": 64, "char": 8, "float8e5": 8, "float8e4nv": 8}


@pytest.mark.parametrize("name", foreign_names.DTYPES)
def test_dtypes_by_other_names(name):
    d = getattr(ct, foreign_names.DTYPES[name])
    if isinstance(found := getattr(np, name, None), type) and issubclass(found, np.generic):
        assert of_storage(np.dtype(found)) is d
    else:
        width = WIDTHS.get(name) or int("".join(ch for ch in name if ch.isdigit()))
        assert d.bitwidth == width and d.name[0] == {"char": "i", "int1": "b"}.get(name, name[0])


# ------------------------------------------------------------------ names of other libraries

TRITON = """program_id num_programs arange cat full zeros zeros_like cast broadcast broadcast_to expand_dims interleave join
    permute ravel reshape split trans view dot dot_scaled load store make_block_ptr advance make_tensor_descriptor
    load_tensor_descriptor store_tensor_descriptor flip where swizzle2d abs cdiv ceil clamp cos div_rn erf exp exp2 fdiv
    floor fma log log2 maximum minimum rsqrt sigmoid sin softmax sqrt sqrt_rn umulhi argmax argmin max min reduce sum
    xor_sum associative_scan cumprod cumsum histogram sort topk gather atomic_add atomic_and atomic_cas atomic_max
    atomic_min atomic_or atomic_xchg atomic_xor randint4x randint rand randn range static_range inline_asm_elementwise
    assume debug_barrier max_constancy max_contiguous multiple_of static_print static_assert device_print device_assert
    constexpr tensor float8e5 float8e4nv float8e4b15 float16 bfloat16 float32 float64 int1 int8 int16 int32 int64 uint8
    uint16 uint32 uint64 pointer_type void block_type to philox squeeze unsqueeze condition reduce_or"""
JAX = """acos acosh approx_max_k asin asinh atan atanh bitcast_convert_type broadcast broadcast_in_dim broadcasted_iota cbrt
    clamp collapse complex concatenate cond conj conv convert_element_type cummax cummin cumlogsumexp digamma dot_general
    dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_update_slice eq erf erf_inv erfc expm1 fori_loop ge gt
    igamma imag index_in_dim integer_pow iota is_finite le lgamma log1p logistic lt map ne neg nextafter pad polygamma
    population_count psum real reciprocal reduce_and reduce_max reduce_min reduce_or reduce_precision reduce_prod reduce_sum
    reduce_window rem rev rng_uniform round select select_n shift_left shift_right_arithmetic shift_right_logical sign
    slice slice_in_dim sort sort_key_val square squeeze stop_gradient switch top_k while_loop xor zeros_like_array relu
    relu6 sigmoid softplus silu swish leaky_relu elu celu selu gelu glu log_sigmoid log_softmax softmax standardize
    logsumexp one_hot normalize hard_tanh swap when dslice ds run_scoped einsum vmap"""
TORCH = """abs_ absolute acos_ add_ addbmm addcdiv addcmul addmm addr allclose amax amin aminmax angle arccos argsort argwhere
    as_strided as_tensor baddbmm bernoulli bincount bitwise_left_shift bmm broadcast_tensors bucketize cdist chunk clamp_max
    clamp_min clone combinations conj contiguous copysign count_nonzero cross cummax cummin deg2rad detach diag diff dist
    div dot dropout dsplit einsum empty_like erf erfc erfinv exp_ expm1 eye fill_ flatten flip float_power fmax fmin fmod
    frac frexp functional gcd ger heaviside histc hypot index_add index_select inner isclose isin isneginf kron kthvalue
    layer_norm lcm ldexp lerp lgamma linspace log1p logaddexp logcumsumexp logdet logit logspace lu masked_fill
    masked_select matrix_power median meshgrid mode moveaxis movedim msort multinomial mv mvlgamma nan_to_num narrow norm
    nonzero numel ones_like outer permute pinverse polar positive put quantile rad2deg rand randperm ravel
    repeat_interleave rms_norm roll rot90 rsub scatter_add searchsorted sgn sigmoid signbit sinc softmax split squeeze
    stack std take tensordot tile topk trace trapezoid tril triu trunc type unbind unfold unique unsqueeze vander var vdot
    view_as vsplit vstack xlogy zero_ int5 uint7 quint8 float8_e5m2fnuz"""
CUDA = """threadIdx blockIdx blockDim gridDim warpSize __syncthreads __syncwarp syncthreads __threadfence atomicAdd atomicSub
    atomicExch atomicMin atomicMax atomicInc atomicDec atomicCAS atomicAnd atomicOr atomicXor __shfl_sync __shfl_down_sync
    __ballot_sync __ldg expf exp2f logf log2f log1pf sqrtf rsqrtf fabsf fmaxf fminf fmodf powf sinf cosf tanf tanhf floorf
    ceilf roundf truncf rintf fmaf __fmaf_rn erff erfcf cbrtf __expf __logf __sinf __popc __clz __ffs __brev __mul24 float2
    float4 int4 make_float4 dim3 half __half2float __float2half __float_as_int __int_as_float clock64 thread_id block_id
    lane_id warp_id shared_array syncwarp __saturatef gemm make_tensor"""
MODULES = (np, np.linalg, np.fft, np.random, np.ndarray)
ELSEWHERE = sorted({*itertools.chain(*(text.split() for text in (TRITON, JAX, TORCH, CUDA))),
                    *(n for m in MODULES for n in dir(m) if not n.startswith("_") and n.islower())} - {*dir(ct)})


def test_no_name_of_another_library_is_taken_for_a_misspelling():
    """A name that means nothing here gets no advice."""
    unknown = [n for n in ELSEWHERE if hint(n) is None and n not in foreign_names.NOT_MISSPELT]
    assert {n: close for n in unknown if (close := nearest(n, ct.__all__))} == {}
    assert len(unknown) < len(ELSEWHERE) * 0.6


def test_tables_hold_no_name_twice_and_none_that_is_there():
    tables = (foreign_names.SAME, foreign_names.DTYPES, foreign_names.IDIOMS, foreign_names.NOTES)
    names = [*itertools.chain(*tables)]
    assert len(names) == len({*names})
    assert [n for n in names if n in ct.__all__] == ["view"]  # x.view of a tile; ct.view draws a launch
    rows = [*foreign_names._SAME, *foreign_names._DTYPES, *((code, names) for names, code, *_ in foreign_names._IDIOMS)]
    spelt = [n for _, names in rows for n in names.split()]
    assert len(spelt) == len({*spelt})


@pytest.mark.parametrize(("name", "close"), [
    ("maxium", "maximum"), ("tahn", "tanh"), ("laod", "load"), ("Float32", "float32"), ("flaot32", "float32"),
    ("exapnd_dims", "expand_dims"), ("num_block", "num_blocks"), ("wher", "where"), ("brodcast_to", "broadcast_to"),
    ("thread_id", None), ("linspace", None), ("nonzero", None), ("int5", None), ("logg", "log"), ("sim", None), ("ln", None),
])
def test_misspellings(name, close):
    assert nearest(name, ct.__all__) == close


@pytest.mark.parametrize(("name", "says"), [
    ("expf", "write ct.exp(x)"), ("__syncthreads", "leave it out"), ("atomicCAS", "write ct.atomic_cas(array, indices, "),
    ("add_", "write ct.add(x, y)"), ("tiled_view", "write array.tiled_view(tile_shape)"),
    ("load_offset", "write array.get_raw_memory().load_offset(offset)"), ("double", "write ct.float64"),
    ("amax", "write ct.max(x, axis, propagate_nan=True)"), ("isscalar", ""), ("lgamma", "no op computes it: ct.static_eval(math.gamma(2.5))"),
    ("polygamma", ""),
])
def test_hints_in_tile_code(name, says):
    e = refused(cell(f"def k(a): ct.{name}(ct.load(a, 0, 4))")["k"], A1, says=f"module `cutile` has no attribute `{name}`")
    assert says in e.help if says else e.help is None


def test_numbers_that_a_replacement_would_change_are_named():
    """Advice that does less than NumPy's function says so."""
    for name, word in {"rint": "even", "mean": "padding", "var": "unbiased", "gelu": "gelu_tanh", "clip": "NaN",
                       "log10": "ten"}.items():
        assert word in foreign_names.IDIOMS[name][1], name
