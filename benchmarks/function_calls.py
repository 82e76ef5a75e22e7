"""What a call of a function made by ct.jit costs the host: python benchmarks/function_calls.py

Beside `ct.launch` of the same kernel, in the same process, for 1, 3, 8 and 16 input arrays with named sizes: a call
with `out=`, and a call that allocates, beside the library's own `empty`. Microseconds; the last columns are what `out=`
takes beyond `ct.launch`, and what allocating takes beyond `out=` and `empty` together. Arrays are those of PyTorch and
CuPy on a GPU, where there is one, else NumPy's; then `ct.launch` includes the work of the interpreter. Figures are
medians of rounds in which all take turns.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cutile as ct

ROUNDS, CALLS = 15, 200  # calls of a round stay below the length of the driver's queue
ROW = "{:8} {:>7}  {:>9} {:>9} {:>9} {:>9}  {:>7} {:>7}"


@ct.kernel
def of_1(a: ct.Array["N"], y):
    ct.store(y, 0, ct.load(a, 0, 16))


@ct.kernel
def of_3(a: ct.Array["N"], b: ct.Array["N"], c: ct.Array["N"], y):
    ct.store(y, 0, ct.load(a, 0, 16))


@ct.kernel
def of_8(a: ct.Array["N"], b: ct.Array["N"], c: ct.Array["N"], d: ct.Array["N"], e: ct.Array["N"], f: ct.Array["N"],
         g: ct.Array["N"], h: ct.Array["N"], y):
    ct.store(y, 0, ct.load(a, 0, 16))


@ct.kernel
def of_16(a: ct.Array["N"], b: ct.Array["N"], c: ct.Array["N"], d: ct.Array["N"], e: ct.Array["N"], f: ct.Array["N"],
          g: ct.Array["N"], h: ct.Array["N"], i: ct.Array["N"], j: ct.Array["N"], k: ct.Array["N"], m: ct.Array["N"],
          n: ct.Array["N"], o: ct.Array["N"], p: ct.Array["N"], q: ct.Array["N"], y):
    ct.store(y, 0, ct.load(a, 0, 16))


def libraries() -> dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any], Callable[[], Any]]]:
    """For each library: what makes an array, what `empty` is, its current stream, and how to wait for the GPU."""
    found: dict[str, Any] = {}
    try:
        import torch

        if torch.cuda.is_available():
            found["PyTorch"] = (lambda: torch.ones(16, device="cuda"), lambda: torch.empty(16, device="cuda"),
                                torch.cuda.current_stream, torch.cuda.synchronize)
    except ImportError:
        pass
    try:
        import cupy

        found["CuPy"] = (lambda: cupy.ones(16, np.float32), lambda: cupy.empty(16, np.float32),
                         cupy.cuda.get_current_stream, cupy.cuda.runtime.deviceSynchronize)
    except ImportError:
        pass
    return found or {"NumPy": (lambda: np.ones(16, np.float32), lambda: np.empty(16, np.float32), lambda: None,
                               lambda: None)}


def microseconds(ways: dict[str, Callable[[], Any]], wait: Callable[[], Any]) -> dict[str, float]:
    """The median time of a call of each, which take turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            way()
            wait()
            start = time.perf_counter()
            for _ in range(CALLS):
                way()
            times[name].append((time.perf_counter() - start) / CALLS * 1e6)
            wait()
    return {name: statistics.median(t) for name, t in times.items()}


def main() -> None:
    print(ROW.format("arrays of", "inputs", "launch", "out=", "allocates", "empty", "out=", "alloc."), flush=True)
    for library, (ones, empty, current, wait) in libraries().items():
        for kernel, count in ((of_1, 1), (of_3, 3), (of_8, 8), (of_16, 16)):
            f = ct.jit(kernel, grid=(1,), out=ct.Out("N"))
            xs, y, stream = tuple(ones() for _ in range(count)), ones(), current()
            assert bool((f(*xs) == xs[0]).all()) and f(*xs, out=y) is y
            us = microseconds({"launch": lambda k=kernel, a=(*xs, y), s=stream: ct.launch(s, (1,), k, a),
                               "out": lambda f=f, xs=xs, y=y: f(*xs, out=y), "allocates": lambda f=f, xs=xs: f(*xs),
                               "empty": empty}, wait)
            print(ROW.format(library, count, *(f"{us[n]:.2f}" for n in ("launch", "out", "allocates", "empty")),
                             f"{us['out'] - us['launch']:+.2f}",
                             f"{us['allocates'] - us['out'] - us['empty']:+.2f}"), flush=True)


if __name__ == "__main__":
    main()
