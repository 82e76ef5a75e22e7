"""Device-wide algorithms beside cuda.compute, in one run on a GPU: python benchmarks/compute_peers.py GROUP…

A group is rows of `_compute_peers.py` and dtypes: reduce:int32,float64. Each is one process, and all compile at a time;
then one after the other has the GPU for itself. `--all` runs those of GROUPS. For each row: the first call of each
package in a process that has called another algorithm of both before, and whether results are equal; at 2^16 and 2^20,
where what a call costs the host counts, microseconds of a one-shot call in a loop of them, what it costs the host
alone, and the same of objects; at 2^28 milliseconds of a call. Beside them stands what is asked of them, and MISSED.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]

SMALL, LARGE = (16, 20), 28
QUEUED = 20  # calls, the launches of which the GPU's queue holds
CALLS, ROUNDS, LOOP = 60, 5, 0.02
GROUPS = ("transform:int8,int32,int64,float32,float64 transform_pairs:int32,float32",
          "reduce:int8,int32,int64,float32,float64 reduce_function:int32,float64",
          "scan:int8,int32,int64,float32,float64", "scan_before:int32,float64 histogram:int8,int32,float32",
          "select:int8,int32,int64,float32,float64", "partition:int8,int32,int64,float32",
          "unique:int8,int32,int64,float32", "segments:int8,int32,int64,float32,float64 uneven:int8,int64,float32",
          "search:int32,int64,float32,float64",
          "radix:int32,int8", "radix:int64,float32,float64", "radix_pairs:int32,float64 merge_pairs:int32,float64",
          "merge:int8,int32,int64,float32,float64", "segmented_sort:int32", "segmented_sort:int64,float32")
QUICK = ("transform", "reduce", "scan", "select")  # first calls of which are 0.3 of theirs at most


def seconds(f: Callable) -> float:
    import cupy as cp

    start = time.perf_counter()
    f()
    cp.cuda.Device().synchronize()
    return time.perf_counter() - start


def in_turn(calls: dict[str, Callable], inner: int, rounds: int = ROUNDS) -> dict[str, tuple[float, float]]:
    """Least seconds of a call, and of what it costs the host, measured in turn."""
    import cupy as cp

    wait, found = cp.cuda.Device().synchronize, dict.fromkeys(calls, (9e9, 9e9))
    for _ in range(rounds):
        for name, f in calls.items():
            wait()
            start = time.perf_counter()
            for _ in range(inner):
                f()
            host = time.perf_counter() - start
            wait()
            whole = time.perf_counter() - start
            found[name] = min(found[name][0], whole / inner), min(found[name][1], host / inner)
    return found


def called(package: Any, row: Any) -> Callable:
    f, arguments = getattr(package, row.name), row.arguments(package)
    return lambda: f(**arguments)


def by_object(package: Any, row: Any, ours: Any) -> Callable:
    """A call of an object, in temporary storage that is there."""
    import inspect

    import cupy as cp
    import numpy as np

    given = row.arguments(package)
    if row.name == "histogram_even":
        given = {"h_num_output_levels": np.array([given.pop("num_output_levels")], np.int32),
                 "h_lower_level": np.array([given.pop("lower_level")]),
                 "h_upper_level": np.array([given.pop("upper_level")]), **given}
    if row.name == "lower_bound":
        given["comp"] = None
    make = getattr(package, "make_" + row.name)
    taken = inspect.signature(getattr(ours, "make_" + row.name)).parameters
    made = make(**{k: v for k, v in given.items() if k in taken})
    if row.name in ("merge_sort", "radix_sort", "segmented_sort"):
        given.pop("order", None)
    if "transform" in row.name or row.name == "lower_bound":
        return lambda: made(**given)
    storage = cp.empty(made(temp_storage=None, **given), np.uint8)
    return lambda: made(temp_storage=storage, **given)


def differs(a: list, b: list) -> bool:
    import cupy as cp

    return any(x.shape != y.shape or not bool(cp.allclose(x, y, rtol=1e-4)) for x, y in zip(a, b, strict=True))


class Process:
    """One process of the comparison, of which one at a time has the GPU for itself."""

    def __init__(self, lock: str):
        self.lock = Path(lock).open("a")
        fcntl.flock(self.lock, fcntl.LOCK_SH)

    def say(self, what: str) -> None:
        print(what, flush=True)

    def run(self, groups: list[str]) -> None:
        import cupy as cp
        import numpy as np
        import torch
        from _compute_peers import ROWS

        from cutile import compute
        from cutile.gpu import background

        torch.zeros(1, device="cuda")
        try:
            import cuda.compute as theirs
        except Exception as e:
            theirs = None
            self.say(f"without cuda.compute: {type(e).__name__}: {str(e)[:300]}")
        self.compute, self.theirs, self.background = compute, theirs, background
        x = cp.zeros(8, np.int16)
        for m in (compute, theirs) if theirs else (compute,):
            self.quietly("begin", lambda m=m: m.reduce_into(d_in=x, d_out=x, num_items=8, op=m.OpKind.MAXIMUM,
                                                            h_init=np.zeros(1, np.int16)))
        rows = [(g.split(":")[0], d) for g in groups for d in g.split(":")[1].split(",")]
        works = [(name, d) for name, d in rows if self.first(name, ROWS[name](1 << 20, np.dtype(d).type), d)]
        background.wait()
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        for exponent in (*SMALL, LARGE):
            for name, d in works:
                self.quietly(f"{name} {d} 2^{exponent}", lambda name=name, d=d, exponent=exponent: self.measure(
                    name, d, exponent, ROWS[name]))
                cp.get_default_memory_pool().free_all_blocks()
                torch.cuda.empty_cache()

    def quietly(self, name: str, f: Callable) -> Any:
        try:
            return f()
        except Exception as e:
            self.say(f"{name}: {type(e).__name__}: {str(e)[:250]}")
            return None

    def contenders(self, row: Any) -> dict[str, Callable]:
        found = {"own": called(self.compute, row)}
        if self.theirs:
            found["cuda.compute"] = called(self.theirs, row)
        return found

    def first(self, name: str, row: Any, d: str) -> bool:
        """Whether the first calls of both give equal results."""
        self.compute.backend("own")
        own, theirs, mine = None, None, None
        for who, f in self.contenders(row).items():
            for x in row.outputs():
                x.fill(0)
            took = self.quietly(f"{name} {d} of {who}", lambda f=f: seconds(f))
            if took is None:
                continue
            result = [x.copy() for x in row.outputs()]
            own, mine, theirs = (took, result, theirs) if who == "own" else (own, mine, (took, result))
        if own is None:
            return False
        if theirs is None:
            self.say(f"first  {name:16} {d:8} own {own:6.2f} s")
            return True
        limit = 0.3 if name.split("_")[0] in QUICK else 1.0
        wrong = " WRONG: results differ" * differs(mine, theirs[1])
        self.say(f"first  {name:16} {d:8} own {own:6.2f} s  cuda.compute {theirs[0]:6.2f} s  {own / theirs[0]:5.2f} of "
                 f"theirs ({limit}){' MISSED' * (own > limit * theirs[0])}{wrong}")
        return not wrong

    def measure(self, name: str, d: str, exponent: int, make: Callable) -> None:
        import numpy as np

        row = make(1 << exponent, np.dtype(d).type)
        self.compute.backend("own")
        calls = self.contenders(row)
        small = exponent < LARGE
        if small and self.theirs:
            for who, package in (("own object", self.compute), ("their object", self.theirs)):
                made = self.quietly(f"{name} {d} {who}", lambda package=package: by_object(package, row, self.compute))
                if made:
                    calls[who] = made
        for f in calls.values():
            f()
            self.background.wait()
            f()
        calls |= row.others
        if self.theirs and (row.name == "radix_sort" or row.name == "segmented_sort" and d.startswith("int")):
            self.compute.backend("auto")  # calls look at the choice each time: these have their own loops
            through = {"delegated": calls["own"], "cuda.compute": calls["cuda.compute"]}
            if small and "their object" in calls:
                through["delegated object"] = by_object(self.compute, row, self.compute)
                through["their object"] = calls["their object"]
            for f in through.values():
                f()
            self.show_through(name, d, exponent, in_turn(through, QUEUED if small else 2), small)
            self.compute.backend("own")
        each = max(seconds(f) for f in calls.values())
        inner = max(1, min(CALLS if small else 5, int(LOOP / each)))
        found = in_turn(calls, inner, ROUNDS if each < 0.05 else 2)
        ours, them = found.pop("own"), found.get("cuda.compute")
        best = min((n for n in found if "object" not in n), key=lambda n: found[n][0], default=None)
        unit, scale = ("us", 1e6) if small else ("ms", 1e3)
        text = f"2^{exponent}   {name:16} {d:8} own {ours[0] * scale:8.3f} {unit}"
        to_them, to_best = (them[0] / ours[0] if them else 9.0), (found[best][0] / ours[0] if best else 9.0)
        text += "".join(f"  {n} {v[0] * scale:8.3f}" for n, v in found.items())
        text += f" | {to_them:5.2f} of cuda.compute, {to_best:5.2f} of the best ({best})"
        if small:
            missed = to_them < 1.5 and not row.sorts
            text += f" | host: own {ours[1] * 1e6:5.1f}" + "".join(f", {n} {found[n][1] * 1e6:5.1f}" for n in (
                "own object", "cuda.compute", "their object") if n in found)
        else:
            missed = (to_them if row.of == "cuda.compute" else to_best) < row.bar
            text += f" (asked: {row.bar} of {row.of})"
        self.say(text + " MISSED" * missed)

    def show_through(self, name: str, d: str, exponent: int, found: dict, small: bool) -> None:
        for mine, theirs in (("delegated", "cuda.compute"), ("delegated object", "their object")):
            if mine in found:
                more = (found[mine][1] - found[theirs][1]) * 1e6
                missed = " MISSED" * (small and more > 5)
                self.say(f"2^{exponent}   {name:16} {d:8} {mine} {found[mine][0] * 1e6:9.1f} us, {theirs} "
                         f"{found[theirs][0] * 1e6:9.1f}; host {more:+.1f} us{missed}")


def run_all(groups: tuple[str, ...]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        started = [subprocess.Popen([sys.executable, __file__, *g.split()], env={
            **os.environ, "CUTILE_PEERS_LOCK": f"{folder}/lock", "CUTILE_CACHE_DIR": f"{folder}/{i}"})
            for i, g in enumerate(groups)]
        for p in started:
            p.wait()


if __name__ == "__main__":
    named = sys.argv[1:]
    if named == ["--all"]:
        run_all(GROUPS)
    else:
        Process(os.environ.get("CUTILE_PEERS_LOCK", os.devnull)).run(named)
