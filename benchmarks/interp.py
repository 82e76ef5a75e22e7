"""The interpreter against plain NumPy, a loop over blocks, NumPy batched by hand, and Triton's interpreter.

The rows of `_cases.py` are measured closely, those of `_rows.py`, kernels of many kinds as users write them, in short.

    python benchmarks/interp.py [--rounds N] [--no-triton] [row ...]

Everything is measured in one process on one BLAS thread. The ways take turns, and every result is checked first.
Times are the processor's, of the thread that runs everything; the least of all rounds, and the least of five for a
first launch, because disturbances only add time.
Triton (`pip install triton`) runs only once a row. Peak memory is measured in a fresh process for each way.
"""

from __future__ import annotations

import os

# Before NumPy and Triton are imported: they read these once.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = os.environ["VECLIB_MAXIMUM_THREADS"] = "1"
os.environ["TRITON_INTERPRET"] = "1"

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _cases import CASES, Case, verify


@dataclass(frozen=True)
class Bar:
    """Bars for the batch schedule: at most these multiples of plain NumPy's time, at least this multiple of Triton's
    speed.
    """

    avx512: float
    elsewhere: float
    triton: float


BARS = {
    "vector add": Bar(3, 3, 300),
    "softmax": Bar(1.5, 2.5, 300),
    "layer norm": Bar(1.5, 2.5, 300),
    "matmul f16": Bar(2.5, 2.5, 300),
    "attention f16": Bar(2, 2.5, 50),
    "histogram": Bar(1.5, 1.5, 150),
    "gather": Bar(1.5, 1.5, 150),
}
BY_HAND, LOOP, DIVERGENT, FIRST_MS, MEMORY_MB = 1.1, 1.0, 1.5, 30, 32
LEAST_SECONDS = 2  # of all rounds of a row


# ------------------------------------------------------------------ the machine


def cpu_features() -> dict[str, bool]:
    core = getattr(np, "_core", None) or np.core
    return core._multiarray_umath.__cpu_features__


def simd() -> tuple[str, bool]:
    """The highest vector extension that NumPy uses here, and whether it is AVX-512."""
    features = cpu_features()
    for name in ("AVX512_SPR", "AVX512_ICL", "AVX512_SKX", "X86_V4", "AVX512F"):
        if features.get(name):
            return name, True
    for name in ("X86_V3", "AVX2", "X86_V2", "SSE42", "SVE", "ASIMD", "NEON", "VSX4", "VSX3", "VXE2", "RVV"):
        if features.get(name):
            return name, False
    return "baseline", False


def peak_bytes() -> int:
    """The most memory that this process has held. VmHWM starts anew with the program; ru_maxrss keeps the parent's."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


# ------------------------------------------------------------------ measuring


def timed(run: Callable[[], None]) -> float:
    start = time.thread_time()
    run()
    return time.thread_time() - start


def least(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Seconds of each way. The ways take turns, so that a slow second of the machine hits all of them. Short ways get
    more rounds, because more of their rounds are disturbed.
    """
    times = {way: [] for way in ways}
    start = time.perf_counter()
    while rounds > 0 or time.perf_counter() - start < LEAST_SECONDS:
        rounds -= 1
        for way, run in ways.items():
            times[way].append(timed(run))
    return {way: min(t) for way, t in times.items()}


def bound(case: Case, function: Callable, inputs: tuple, output: np.ndarray, exact: np.ndarray,
          way: str) -> Callable[[], None]:
    """The way as a function without arguments, after one checked run. All ways write to one output, because the place
    of an array in memory changes times by up to a third.
    """
    output[...] = 0
    function(*inputs, output)
    verify(case, way, output, exact)
    return lambda: function(*inputs, output)


@dataclass
class Result:
    seconds: dict[str, float]  # by way
    first: float  # a kernel's first launch, in a process that has run others
    first_of_process: float
    memory: int  # bytes above plain NumPy
    triton: float | None


def measure(name: str, rounds: int, with_triton: bool) -> Result:
    import _kernels

    case = CASES[name]
    memory = child(name, "cutile")["peak"] - child(name, "plain")["peak"]
    first_of_process = child(name, "first")["seconds"]
    inputs, output = case.inputs(), case.output()
    exact = case.exact(*inputs)
    functions = {
        "plain": case.plain,
        "loop": case.loop,
        "by hand": case.batched,
        "cutile": lambda *arrays: _kernels.launcher(name, arrays)(),
    }
    ways = {way: bound(case, f, inputs, output, exact, way) for way, f in functions.items()}
    seconds = least(ways, rounds)
    first = min(timed(_kernels.launcher(name, (*inputs, output), fresh=True)) for _ in range(5))
    triton = triton_seconds(case, inputs, exact) if with_triton else None
    return Result(seconds, first, first_of_process, memory, triton)


def triton_seconds(case: Case, inputs: tuple, exact: np.ndarray) -> float:
    import _triton

    output = case.output()
    seconds = timed(lambda: _triton.run(case.name, *inputs, output))
    verify(case, "Triton", output, exact)
    return seconds


def child(name: str, what: str) -> dict:
    """Run a part of a row in a process of its own."""
    out = subprocess.run([sys.executable, __file__, "--child", what, name], capture_output=True, text=True)
    if out.returncode:
        raise RuntimeError(f"{name}, {what}: {out.stderr}")
    return json.loads(out.stdout)


def child_main(name: str, what: str) -> None:
    case = CASES[name]
    arrays = (*case.inputs(), case.output())
    if what == "plain":
        run = lambda: case.plain(*arrays)
    else:
        import _kernels

        run = _kernels.launcher(name, arrays)
    seconds = timed(run)
    if what != "first":
        for _ in range(3):
            run()
    print(json.dumps({"seconds": seconds, "peak": peak_bytes()}))


# ------------------------------------------------------------------ showing


def judged(text: str, good: bool) -> str:
    return f"[green]{text}[/green]" if good else f"[red]{text} ![/red]"


def cells(name: str, r: Result, avx512: bool) -> list[str]:
    s, bar = r.seconds, BARS[name]
    plain, limit = s["cutile"] / s["plain"], bar.avx512 if avx512 else bar.elsewhere
    hand, loop = s["cutile"] / s["by hand"], s["loop"] / s["cutile"]
    triton = "–" if r.triton is None else judged(f"{r.triton / s['cutile']:.0f} (≥{bar.triton:g})",
                                                 r.triton / s["cutile"] >= bar.triton)
    return [name, *(f"{s[way] * 1e3:.2f}" for way in ("plain", "loop", "by hand", "cutile")),
            "–" if r.triton is None else f"{r.triton * 1e3:.0f}",
            judged(f"{plain:.2f} (≤{limit:g})", plain <= limit), judged(f"{hand:.2f}", hand <= BY_HAND),
            judged(f"{loop:.2f}", loop > LOOP), triton,
            judged(f"{r.first * 1e3:.0f}", r.first * 1e3 <= FIRST_MS), f"{r.first_of_process * 1e3:.0f}",
            judged(f"{r.memory / 2**20:+.0f}", r.memory <= MEMORY_MB * 2**20)]


def show_rows(console, results: dict[str, Result], avx512: bool) -> None:
    from rich.table import Table

    t = Table(title="batch schedule; milliseconds and ratios; ! marks a missed bar")
    t.add_column("", no_wrap=True)
    for head in ("plain NumPy", "loop", "by hand", "cutile", "Triton", "× plain", f"× by hand (≤{BY_HAND})",
                 f"loop / cutile (>{LOOP:g})", "Triton / cutile", f"first launch (≤{FIRST_MS})", "first of process",
                 f"MB above plain (≤{MEMORY_MB})"):
        t.add_column(head, justify="right")
    for name, r in results.items():
        t.add_row(*cells(name, r, avx512))
    console.print(t)


def show_schedules(console, rounds: int) -> None:
    """Kernels whose blocks take different branches: equal bits in both schedules, and the gain of batch."""
    import _kernels
    from rich.table import Table

    from cutile import settings

    def under(schedule: str, launch: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            with settings.override(SCHEDULE=schedule):
                launch()
        return run

    t = Table("", "block", "batch", f"block / batch (≥{DIVERGENT})", title="kernels whose blocks part, milliseconds")
    for name, (launch, output) in _kernels.divergent().items():
        ways, bits = {}, set()
        for schedule in ("block", "batch"):
            ways[schedule] = under(schedule, launch)
            ways[schedule]()
            bits.add(output.tobytes())
        if len(bits) != 1:
            raise AssertionError(f"{name}: batch and block differ")
        s = least(ways, max(3, rounds // 3))
        ratio = s["block"] / s["batch"]
        milliseconds = (f"{s[way] * 1e3:.1f}" for way in ("block", "batch"))
        t.add_row(name, *milliseconds, judged(f"{ratio:.1f}", ratio >= DIVERGENT))
    console.print(t)


def triton_version() -> str | None:
    try:
        import triton
    except ImportError:
        return None
    return triton.__version__


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="names of rows; default all")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--no-triton", action="store_true")
    parser.add_argument("--child", choices=("plain", "cutile", "first"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child_main(given.rows[0], given.child)
        return
    from _rows import ROWS, show_user_rows
    from rich.console import Console

    known = (*CASES, *ROWS)
    unknown = [name for name in given.rows if name not in known]
    if unknown:
        parser.error(f"no row is called {', '.join(unknown)}; there are {', '.join(known)}")

    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width of its own
        console = Console(width=190)
    level, avx512 = simd()
    version = None if given.no_triton else triton_version()
    console.print(f"NumPy {np.__version__}, SIMD {level}, {os.cpu_count()} cores, one BLAS thread, "
                  f"{given.rounds} rounds or more, {f'Triton {version}' if version else 'no Triton'}")
    results = {}
    chosen = given.rows or known
    for name in CASES:
        if name in chosen:
            with console.status(name):
                results[name] = measure(name, given.rounds, version is not None)
    if results:
        show_rows(console, results, avx512)
    show_user_rows(console, [ROWS[name] for name in chosen if name in ROWS], version is not None)
    if not given.rows:
        with console.status("schedules"):
            show_schedules(console, given.rounds)


if __name__ == "__main__":
    main()
