"""Exported cubins on a GPU: compile examples here, run them there, compare with NumPy in float64.

python benchmarks/gpu_cubins.py export FOLDER [sm_90]     needs cutile with the gpu extra, no GPU
python benchmarks/gpu_cubins.py run FOLDER                needs a GPU, CuPy and NumPy, but not cutile

Kernels are launched through CuPy's driver API calls with the arguments of calling convention v1: pointer, sizes,
strides of each array.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np

# name: (example, kernel, shapes and dtypes of the arrays, constants, grid). The last array is the output.
ROWS, COLS, M, N, K = 1000, 1000, 517, 389, 643
HEADS, LENGTH, D = 4, 333, 64
SCALE = 1 / math.sqrt(D)
CASES = {
    "vector_add": ("vector_add", "vector_add", [(100_003,)] * 3, "f4", [1024], (math.ceil(100_003 / 1024),)),
    "softmax": ("softmax", "softmax_rows", [(ROWS, COLS)] * 2, "f4", [1, 1024], (ROWS,)),
    "matmul": ("matmul", "matmul", [(M, K), (K, N), (M, N)], "f2", [64, 64, 32],
               (math.ceil(M / 64), math.ceil(N / 64))),
    "matmul_persistent": ("matmul", "matmul_persistent", [(M, K), (K, N), (M, N)], "f2", [64, 64, 32], (16,)),
    "attention": ("attention", "attention", [(1, HEADS, LENGTH, D)] * 4, "f2",
                  [SCALE, HEADS, 1, 64, 64, D, False], (math.ceil(LENGTH / 64), HEADS)),
    "attention_causal": ("attention", "attention", [(1, HEADS, LENGTH, D)] * 4, "f2",
                         [SCALE, HEADS, 1, 64, 64, D, True], (math.ceil(LENGTH / 64), HEADS)),
}


def export(folder: Path, target: str) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
    import importlib

    import cutile as ct
    from cutile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

    folder.mkdir(parents=True, exist_ok=True)
    symbols = {}
    for name, (module, kernel, shapes, kind, constants, _) in CASES.items():
        dtype = {"f4": ct.float32, "f2": ct.float16}[kind]
        arrays = [ArrayConstraint(dtype, len(s), index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(),
                                  may_alias_internally=False, stride_constant=(None,) * (len(s) - 1) + (1,),
                                  base_addr_divisible_by=16) for s in shapes]
        signature = KernelSignature([*arrays, *constants], CallingConvention.cutile_python_v1(), symbol=name)
        function = getattr(importlib.import_module(module), kernel)
        export_kernel(function, [signature], folder / f"{name}.cubin", gpu_code=target, output_format="cubin")
        symbols[name] = (folder / f"{name}.cubin").stat().st_size
        print(name, symbols[name], "bytes")
    (folder / "sizes.json").write_text(json.dumps(symbols))


def reference(name: str, x: list[np.ndarray]) -> np.ndarray:
    x = [a.astype(np.float64) for a in x]
    if name == "vector_add":
        return x[0] + x[1]
    if name == "softmax":
        e = np.exp(x[0] - x[0].max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    if name.startswith("matmul"):
        return x[0] @ x[1]
    s = x[0] @ x[1].swapaxes(-1, -2) * SCALE
    if name.endswith("causal"):
        s = np.where(np.tri(LENGTH, dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ x[2]


def run(folder: Path) -> int:
    import cupy

    print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    bad = 0
    for name, (_, _, shapes, kind, _, grid) in CASES.items():
        rng = np.random.default_rng(0)
        host = [rng.standard_normal(s).astype(kind) for s in shapes[:-1]]
        device = [*map(cupy.asarray, host), cupy.full(shapes[-1], np.nan, kind)]
        args: list = []
        for a in device:
            args += [a.data.ptr, *map(np.int32, a.shape), *(np.int32(s // a.itemsize) for s in a.strides)]
        args = [np.uint64(v) if isinstance(v, int) else v for v in args]
        function = cupy.RawModule(path=str(folder / f"{name}.cubin")).get_function(name)
        function((*grid, 1, 1)[:3], (1, 1, 1), tuple(args))
        cupy.cuda.runtime.deviceSynchronize()
        want = reference(name, host)
        error = float(np.abs(device[-1].get().astype(np.float64) - want).max())
        allowed = {"f4": 1e-5, "f2": 4e-3 * max(1.0, np.abs(want).max())}[kind]
        ok = error <= allowed
        bad += not ok
        print(f"{name:20} largest error {error:.2e} (allowed {allowed:.2e}) {'ok' if ok else 'WRONG'}")
    return bad


if __name__ == "__main__":
    verb, where, *rest = sys.argv[1:]
    sys.exit(export(Path(where), *(rest or ["sm_90"])) if verb == "export" else run(Path(where)))
