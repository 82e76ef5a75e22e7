"""What a launch costs the host: python benchmarks/gpu_launch.py [--python]

Queues a vector add of 1,024 elements without waiting for it, and prints microseconds a call and ratios to the bare
driver call in the same process: cutile on arrays of PyTorch and CuPy, the libraries' own addition, and `cuda.tile`
where it is installed. --python switches off cutile's C extension. Needs a GPU, cutile's gpu extra, and PyTorch or
CuPy. The figures are medians of rounds in which all take turns.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from _gpu_arrays import libraries  # noqa: E402

import cutile as ours  # noqa: E402
from cutile.runtime import launch_cache  # noqa: E402

ROUNDS, CALLS = 15, 400  # calls of a round stay below the length of the driver's queue


def kernel_of(ct: Any) -> Any:
    @ct.kernel
    def vector_add(a, b, c, TILE: ct.Constant[int]):
        i = ct.bid(0)
        ct.store(c, (i,), ct.load(a, (i,), (TILE,)) + ct.load(b, (i,), (TILE,)))

    return vector_add


def candidates() -> tuple[dict[str, Callable[[], None]], Callable[[], None]]:
    """The calls that take turns, by name, and how to wait for the GPU."""
    found: dict[str, Callable[[], None]] = {}
    libs = libraries()
    if not libs:
        raise SystemExit("neither torch nor CuPy sees a GPU")
    for lib in libs:
        a, b, c = (lib.to_device(np.arange(1024, dtype=np.float32)) for _ in range(3))
        stream = lib.current()
        _add(found, lib, "cutile", ours, stream, (a, b, c, 1024))
        try:
            import cuda.tile as official
        except ImportError:
            pass
        else:
            _add(found, lib, "cuda.tile", official, stream, (a, b, c, 1024))
        found[f"add(out=), {lib.name}"] = _own(lib, a, b, c)
    found["bare driver call"] = _bare(found)
    return found, libs[0].synchronize


def _add(found: dict, lib: Any, name: str, ct: Any, stream: Any, args: tuple) -> None:
    kernel = kernel_of(ct)
    ct.launch(stream, (1,), kernel, args)
    lib.synchronize()
    want = 2 * np.arange(1024, dtype=np.float32)
    if not np.array_equal(lib.to_host(args[2]), want):
        raise AssertionError(f"{name} on {lib.name}: wrong result")
    found[f"{name}, {lib.name}"] = lambda: ct.launch(stream, (1,), kernel, args)
    if ct is ours:
        found.setdefault(".kernel", kernel)


def _own(lib: Any, a: Any, b: Any, c: Any) -> Callable[[], None]:
    add = lib.torch.add if lib.name == "torch" else lib.cupy.add
    return lambda: add(a, b, out=c)


def _bare(found: dict) -> Callable[[], None]:
    """The driver call at the end of cutile's launch, with everything else done before."""
    kernel = found.pop(".kernel")
    prepared = next(iter(kernel.plans.values())).prepared
    api = prepared.device.driver.api
    prepared.device.enter()
    buffer = prepared.packing.buffer()
    memory = prepared.device.driver.ask("no memory", api.cuMemAlloc(3 * 4096))
    parameters = buffer.fill([int(memory) + 4096 * k for k in range(3)])
    function, call = prepared.function, api.cuLaunchKernel

    def launch(buffer=buffer) -> None:  # the buffer keeps the parameters alive
        call(function, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 0)

    return launch


def main() -> None:
    if "--python" in sys.argv[1:]:
        launch_cache.extension = lambda: None
    print("cutile launches in", "Python" if launch_cache.extension() is None else "C")
    found, wait = candidates()
    times: dict[str, list[float]] = {name: [] for name in found}
    for f in found.values():
        for _ in range(CALLS):
            f()
        wait()
    for _ in range(ROUNDS):
        for name, f in found.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                f()
            times[name].append((time.perf_counter() - start) / CALLS * 1e6)
            wait()
    bare = statistics.median(times["bare driver call"])
    print(f"{'':24} {'us a call':>10} {'x bare':>8} {'+ us':>7}")
    for name, us in sorted(times.items(), key=lambda item: statistics.median(item[1])):
        median = statistics.median(us)
        print(f"{name:24} {median:10.2f} {median / bare:8.2f} {median - bare:7.2f}   (least {min(us):.2f})")


if __name__ == "__main__":
    main()
