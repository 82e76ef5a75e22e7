"""The cases of benchmarks/gpu.py: kernels, sizes, tiles, hints. Imports nothing, so that any Python can read it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One row of the table. `arrays` are (dtype, shape) in the order of the kernel's parameters; its constants follow.

    `amount` is the work of a launch, in `unit`: bytes moved ("GB/s") or floating-point operations ("TFLOP/s").
    `check`: the name of the reference (_gpu_reference.py). The kernel writes the arrays from `outputs` on.
    """

    name: str
    source: str
    kernel: str
    arrays: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: int
    constants: tuple
    grid: tuple[int, ...]
    check: str
    amount: float
    unit: str = "GB/s"
    hints: dict = field(default_factory=dict)

    @property
    def file(self) -> str:
        return "".join(c if c.isalnum() else "_" for c in self.name)


PLAIN = "benchmarks/_gpu_kernels.py"
BYTES = {"f32": 4, "f16": 2, "bf16": 2}


def _bytes(arrays) -> int:
    return sum(BYTES[d] * math.prod(s) for d, s in arrays)


def _rows(name: str, kernel: str, dtype: str, m: int, n: int, rows: int, check: str = "softmax", **more) -> Case:
    arrays = ((dtype, (m, n)),) * 2
    return Case(f"{name} {dtype} {m}x{n}", more.pop("source", PLAIN), kernel, arrays, 1, (rows, n),
                (math.ceil(m / rows),), check, _bytes(arrays), **more)


def _tiles(name: str, kernel: str, dtype: str, m: int, n: int, tile: tuple[int, int], inputs: int, check: str,
           source: str = PLAIN) -> Case:
    """Inputs and an output of that size, a block for each tile."""
    turned = check == "transpose"
    arrays = (*((dtype, (m, n)),) * inputs, (dtype, (n, m) if turned else (m, n)))
    return Case(f"{name} {dtype} {m}x{n}", source, kernel, arrays, inputs, tile,
                (math.ceil(m / tile[0]), math.ceil(n / tile[1])), check, _bytes(arrays))


def _sums(name: str, kernel: str, m: int, n: int, tile: tuple[int, int], grid: int, left: int, check: str) -> Case:
    arrays = (("f32", (m, n)), ("f32", (left,)))
    return Case(f"{name} f32 {m}x{n}", PLAIN, kernel, arrays, 1, tile, (grid,), check, _bytes(arrays))


def _norm(name: str, kernel: str, dtype: str, m: int, n: int, rows: int) -> Case:
    arrays = ((dtype, (m, n)), (dtype, (n,)), (dtype, (n,)), (dtype, (m, n)))
    return Case(f"{name} {dtype} {m}x{n}", PLAIN, kernel, arrays, 3, (1e-5, rows, n), (math.ceil(m / rows),),
                "layer_norm", _bytes(arrays))


def _example_norm(m: int, n: int, rows: int) -> Case:
    arrays = (("f32", (m, n)), *(("f32", (n,)),) * 2, ("f32", (m, n)), *(("f32", (m,)),) * 2)
    return Case(f"example layer_norm f32 {m}x{n}", "examples/layer_norm.py", "forward", arrays, 3, (1e-5, rows, n),
                (math.ceil(m / rows),), "layer_norm", _bytes(arrays))


def _matmul(dtype: str, n: int, tile: tuple[int, int, int], **hints) -> Case:
    grid = (math.ceil(n / tile[0]) * math.ceil(n / tile[1]),)
    return Case(f"matmul {dtype} {n}", PLAIN, "matmul", ((dtype, (n, n)),) * 3, 2, (*tile, 8), grid, "matmul",
                2 * n**3, "TFLOP/s", hints)


def _example_matmul(dtype: str, n: int, tile: tuple[int, int, int]) -> Case:
    grid = (math.ceil(n / tile[0]), math.ceil(n / tile[1]))
    return Case(f"example matmul {dtype} {n}", "examples/matmul.py", "matmul", ((dtype, (n, n)),) * 3, 2, tile, grid,
                "matmul", 2 * n**3, "TFLOP/s")


def _attention(d: int, causal: bool, example: bool = False, tile: tuple[int, int] = (64, 128), **hints) -> Case:
    b, h, n = 4, 16, 4096
    scale = 1 / math.sqrt(d)
    constants = (scale, h, 1, *tile, d, causal) if example else (scale, h, d, *tile, causal)
    name = f"{'example ' if example else ''}attention {'causal' if causal else 'full'} D={d}"
    return Case(name, "examples/attention.py" if example else PLAIN, "attention", (("f16", (b, h, n, d)),) * 4, 3,
                constants, (math.ceil(n / tile[0]), b * h), "attention_causal" if causal else "attention",
                4 * b * h * n * n * d * (0.5 if causal else 1), "TFLOP/s", hints)


_N = 2**28
CASES = (
    Case("vector add f32 2^28", PLAIN, "vector_add", (("f32", (_N,)),) * 3, 2, (1024,), (_N // 1024,), "add", 12 * _N),
    _rows("copy rows", "copy_rows", "f16", 32768, 1024, 1, "copy"),
    _rows("softmax", "softmax", "f16", 32768, 1024, 1),
    _rows("softmax", "softmax", "f16", 8192, 4096, 1),
    _rows("softmax", "softmax", "f16", 4096, 16384, 1),
    _rows("softmax, 4 rows", "softmax", "f16", 32768, 1024, 4),
    _rows("softmax", "softmax", "f32", 16384, 2048, 1),
    _rows("softmax tuned", "softmax_tuned", "f16", 32768, 1024, 1, hints={"occupancy": 16}),
    _rows("softmax by gather", "softmax_gather", "f16", 32768, 1024, 1),
    _rows("example softmax", "softmax_rows", "f32", 16384, 1024, 4, source="examples/softmax.py"),
    _rows("example softmax, 1 row", "softmax_rows", "f32", 16384, 4096, 1, source="examples/softmax.py"),
    Case("example softmax online f32 2048x16384", "examples/softmax.py", "softmax_online",
         (("f32", (2048, 16384)),) * 2, 1, (8, 1024), (256,), "softmax", 3 * 4 * 2048 * 16384),
    _tiles("add 2d", "add_2d", "f32", 8192, 8192, (64, 64), 2, "add"),
    _tiles("example transpose", "transpose", "f32", 8192, 8192, (64, 64), 1, "transpose", "examples/transpose.py"),
    _tiles("example transpose by order", "transpose_by_order", "f32", 8192, 8192, (64, 64), 1, "transpose",
           "examples/transpose.py"),
    _sums("sum of rows", "sum_rows", 32768, 2048, (4, 2048), 8192, 32768, "sum_rows"),
    _sums("sum of columns", "sum_columns", 8192, 32768, (32, 64), 512, 32768, "sum_columns"),
    _norm("layer norm", "layer_norm", "f16", 32768, 1024, 1),
    _norm("layer norm", "layer_norm", "f16", 8192, 4096, 1),
    _norm("layer norm", "layer_norm", "f32", 16384, 2048, 1),
    _norm("layer norm, 4 rows", "layer_norm", "f32", 32768, 1024, 4),
    _example_norm(32768, 1024, 4),
    _matmul("f16", 1024, (64, 256, 64), num_ctas=2, occupancy=1),
    _matmul("f16", 4096, (256, 128, 64), num_ctas=2, occupancy=2),
    _matmul("f16", 8192, (128, 128, 64), num_ctas=1, occupancy=1),
    _matmul("bf16", 4096, (256, 128, 64), num_ctas=2, occupancy=2),
    _example_matmul("f16", 4096, (128, 128, 64)),
    *(_attention(d, causal, occupancy=2) for causal in (False, True) for d in (64, 128)),
    *(_attention(d, causal, example=True) for causal in (False, True) for d in (64, 128)),
)
