"""What a launch costs the host: python benchmarks/gpu_launch.py [--python]

Queues a vector add of 1,024 elements without waiting for it, and prints microseconds a call, beside the bare driver
call with as many arrays in the same process: cutile on arrays of PyTorch and CuPy, by `ct.launch` and by launches that
`ct.prepare` made, with 3, 8 and 16 arrays; the libraries' own addition; `cuda.tile` where it is installed. A launch
tells PyTorch which tensor is written; what that takes is shown apart. --python switches off cutile's C extension. Needs
a GPU, cutile's gpu extra, and PyTorch or CuPy. The figures are medians of rounds in which all take turns.
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

ROUNDS, CALLS = 15, 300  # calls of a round stay below the length of the driver's queue
ARRAYS = 3, 8, 16
BARE = "bare driver call"


def kernels_of(ct: Any) -> dict[int, Any]:
    """The same addition with 3, 8 and 16 arrays, of which the last is written."""

    def add(a, b, out, TILE):
        i = ct.bid(0)
        ct.store(out, (i,), ct.load(a, (i,), (TILE,)) + ct.load(b, (i,), (TILE,)))

    @ct.kernel
    def add_3(a, b, c, TILE: ct.Constant[int]):
        add(a, b, c, TILE)

    @ct.kernel
    def add_8(a, b, c, d, e, f, g, h, TILE: ct.Constant[int]):
        add(a, b, h, TILE)

    @ct.kernel
    def add_16(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q, TILE: ct.Constant[int]):
        add(a, b, q, TILE)

    return {3: add_3, 8: add_8, 16: add_16}


Calls = dict[tuple[str, int], Callable[[], None]]  # by name and number of arrays


def candidates() -> tuple[Calls, Callable[[], None]]:
    """The calls that take turns, and how to wait for the GPU."""
    found: Calls = {}
    libs = libraries()
    if not libs:
        raise SystemExit("neither torch nor CuPy sees a GPU")
    sides = {"cutile": ours}
    try:
        import cuda.tile as official
    except ImportError:
        pass
    else:
        sides["cuda.tile"] = official
    kernels = {side: kernels_of(ct) for side, ct in sides.items()}
    for lib in libs:
        stream = lib.current()
        arrays = [lib.to_device(np.arange(1024, dtype=np.float32)) for _ in range(max(ARRAYS))]
        for n in ARRAYS:
            args = (*arrays[:n], 1024)
            for side, ct in sides.items():
                _add(found, lib, f"{side}, {lib.name}", n, args,
                     lambda ct=ct, k=kernels[side][n], args=args, s=stream: ct.launch(s, (1,), k, args))
            step = ours.prepare(kernels["cutile"][n], (1,), args)
            _add(found, lib, f"cutile prepared, {lib.name}", n, args, lambda step=step, s=stream: step(s))
        found[f"add(out=), {lib.name}", 3] = _own(lib, *arrays[:3])
        if lib.name == "torch":
            written, bump = [arrays[2]], lib.torch._C._increment_version
            found["telling torch of 1 tensor", 0] = lambda bump=bump, written=written: bump(written)
    for n in ARRAYS:
        found[BARE, n] = _bare(kernels["cutile"][n])
    return found, libs[0].synchronize


def _add(found: Calls, lib: Any, name: str, n: int, args: tuple, call: Callable[[], None]) -> None:
    """Add a call whose result is right."""
    out = args[n - 1]
    out[:] = 0
    call()
    lib.synchronize()
    if not np.array_equal(lib.to_host(out), 2 * np.arange(1024, dtype=np.float32)):
        raise AssertionError(f"{name} with {n} arrays: wrong result")
    found[name, n] = call


def _own(lib: Any, a: Any, b: Any, c: Any) -> Callable[[], None]:
    add = lib.torch.add if lib.name == "torch" else lib.cupy.add
    return lambda: add(a, b, out=c)


def _bare(kernel: Any) -> Callable[[], None]:
    """The driver call at the end of cutile's launch, with everything else done before."""
    prepared = next(iter(kernel.plans.values())).prepared
    api = prepared.device.driver.api
    prepared.device.enter()
    buffer = prepared.packing.buffer()
    memory = prepared.device.driver.ask("no memory", api.cuMemAlloc(len(buffer.slots) * 4096))
    parameters = buffer.fill([int(memory) + 4096 * k for k in range(len(buffer.slots))])
    function, call = prepared.function, api.cuLaunchKernel

    def launch(buffer=buffer) -> None:  # the buffer keeps the parameters alive
        call(function, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 0)

    return launch


def measured(found: Calls, wait: Callable[[], None]) -> dict[tuple[str, int], float]:
    """Microseconds a call."""
    times: dict[tuple[str, int], list[float]] = {name: [] for name in found}
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
    return {name: statistics.median(us) for name, us in times.items()}


def main() -> None:
    if "--python" in sys.argv[1:]:
        launch_cache.extension = lambda: None
    print("cutile launches in", "Python" if launch_cache.extension() is None else "C")
    us = measured(*candidates())
    print(f"{'':28} {'arrays':>6} {'us a call':>10} {'x bare':>8} {'+ us':>7}")
    for (name, n), median in sorted(us.items(), key=lambda item: (item[0][1], item[1])):
        bare = us.get((BARE, n))
        more = "" if bare is None else f" {median / bare:8.2f} {median - bare:7.2f}"
        print(f"{name:28} {n or '':>6} {median:10.2f}{more}")
    for name in dict.fromkeys(name for name, n in us if n == ARRAYS[-1]):
        each = (us[name, ARRAYS[-1]] - us[name, ARRAYS[0]]) / (ARRAYS[-1] - ARRAYS[0])
        print(f"{name:28} {1e3 * each:6.0f} ns for each further array")


if __name__ == "__main__":
    main()
