"""How the time and the memory to prepare a kernel grow with its size: what doubling a kernel costs.

    python benchmarks/growth.py                       # all kinds and stages, a table; a few minutes
    python benchmarks/growth.py lines calls --to 4000

Each kind is a kernel of one shape at doubling sizes. For each size, processes of its own prepare the kernel once, and
the least processor time counts. The stages `batch` and `block` are a first launch in that schedule, `export` is making
the bytecode for sm_90. A row shows seconds and MB at each size, and the cost of each doubling as ratios. The script
fails if a ratio is more than `BAR`, except for seconds and MB below `SMALLEST`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable

BAR = 2.3  # the largest allowed cost of a doubling
RUNS = 3
SMALLEST = 0.2, 20.0  # seconds and MB below which a ratio says little
STAGES = ("batch", "block", "export")


def lines(n: int) -> str:
    return _kernel("o", "x = ct.load(o, 0, (8,))", *(f"x = x * {i % 7} + ct.bid(0)" for i in range(n)),
                   "ct.store(o, 0, x)")


def terms(n: int) -> str:
    return _kernel("o, c", "r = 0", "if " + " and ".join(f"c != {i + 10}" for i in range(n)) + ":", "    r = 9",
                   "ct.store(o, 0, r)")


def choices(n: int) -> str:
    return _kernel("o, c", "if c == -1:", "    r = 0",
                   *(s for i in range(n) for s in (f"elif c == {i}:", f"    r = {i * 3}")),
                   "else:", "    r = -1", "ct.store(o, 0, r)")


def calls(n: int) -> str:
    return ("def down(x, n):\n    if n == 0:\n        return x\n    return down(x + 1, n - 1)\n\n"
            + _kernel("o, c", f"ct.store(o, 0, down(c, {n}))"))


def closures(n: int) -> str:
    """Each closure wraps the one before it."""
    return ("def wrapped(f, i):\n    def g(x):\n        return f(x) + i\n    return g\n\n"
            + _kernel("o, c", "f = lambda x: x", *(f"f = wrapped(f, {i})" for i in range(n)), "ct.store(o, 0, f(c))"))


def captures(n: int) -> str:
    """Each closure captures a number that only the launch knows, and wraps the one before it."""
    return ("def wrapped(f, i):\n    def g(x):\n        return f(x) + i\n    return g\n\n"
            + _kernel("o, c", "f = lambda x: x", *(f"f = wrapped(f, c * {i})" for i in range(n)),
                      "ct.store(o, 0, f(c))"))


def returns(n: int) -> str:
    return ("def pick(c):\n" + "".join(f"    if c == {i}:\n        return {i * 3}\n" for i in range(n))
            + "    return -1\n\n" + _kernel("o, c", "ct.store(o, 0, pick(c))"))


def helpers(n: int) -> str:
    return ("".join(f"def h{i}(x):\n    return x + {i}\n\n" for i in range(n))
            + _kernel("o, c", *(f"c = h{i}(c)" for i in range(n)), "ct.store(o, 0, c)"))


def branches(n: int) -> str:
    return _kernel("o, c", "r = 0", *(s for i in range(n) for s in (f"if c > {i}:", f"    r = r + {i}")),
                   "ct.store(o, 0, r)")


def mixed(n: int) -> str:
    """Equally many variables and branches."""
    return _kernel("o, c", "a0 = c", "r = 0", *(s for i in range(n) for s in (
        f"a{i + 1} = a{i} + 1", f"if c > {i}:", f"    r = r + a{i}")), "ct.store(o, 0, r)")


def loops(n: int) -> str:
    return _kernel("o, c", "r = 0", *(s for i in range(n) for s in ("for j in range(c):", f"    r = r + j * {i}")),
                   "ct.store(o, 0, r)")


def parameters(n: int) -> str:
    names = [f"p{i}" for i in range(n)]
    return _kernel(", ".join(["o", *names]), "r = 0", *(f"r = r + {p}" for p in names), "ct.store(o, 0, r)")


def names(n: int) -> str:
    return _kernel("o, c", "a0 = c", *(f"a{i + 1} = a{i} + 1" for i in range(n)),
                   "r = " + " + ".join(f"a{i}" for i in range(0, n, 10)), "ct.store(o, 0, r)")


def tables(n: int) -> str:
    """Static code reads an array in each line."""
    arrays = "import numpy\n" + "".join(f"t{i} = numpy.array([{i}])\n" for i in range(n))
    return arrays + _kernel("o, c", "r = c", *(f"r = r + ct.static_eval(int(t{i}[0]))" for i in range(n)),
                            "ct.store(o, 0, r)")


#: by kind: the source for a size, and the sizes; all but `lines` stay below what Python's own compiler bears
KINDS: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "lines": (lines, (1250, 2500, 5000, 10000)),
    "names": (names, (625, 1250, 2500, 5000)),
    "terms": (terms, (125, 250, 500, 1000)),
    "choices": (choices, (125, 250, 500, 900)),
    "calls": (calls, (112, 225, 450, 900)),
    "closures": (closures, (112, 225, 450, 900)),
    "captures": (captures, (112, 225, 450, 900)),
    "returns": (returns, (75, 150, 300, 600)),
    "helpers": (helpers, (250, 500, 1000, 2000)),
    "mixed": (mixed, (250, 500, 1000, 2000)),
    "branches": (branches, (250, 500, 1000, 2000)),
    "loops": (loops, (125, 250, 500, 1000)),
    "parameters": (parameters, (125, 250, 500, 1000)),
    "tables": (tables, (100, 200, 400, 800)),
}


def _kernel(params: str, *body: str) -> str:
    return f"@ct.kernel\ndef k({params}):\n" + "".join(f"    {s}\n" for s in body)


def prepare(kind: str, n: int, stage: str) -> dict[str, float]:
    """Seconds of processor time and MB that this process takes to prepare one kernel."""
    import io
    import linecache
    import resource
    import time

    import numpy as np

    import cutile as ct
    from cutile.compilation import CallingConvention, KernelSignature, export_kernel

    def make(text: str, name: str):
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        space = {"ct": ct}
        exec(compile(text, name, "exec"), space)
        return space["k"]

    def run(text: str, name: str, n: int) -> float:
        k = make(text, name)
        out = np.zeros(8, np.int32)
        args = (out, *[3] * (len(k.parameters) - 1))
        t = time.process_time()
        if stage == "export":
            signature = KernelSignature.from_kernel_args(k, args, CallingConvention.cutile_python_v2())
            export_kernel(k, [signature.with_symbol("k")], io.BytesIO(), gpu_code="sm_90",
                          output_format="tileir_bytecode", bytecode_version="13.1")
        else:
            ct.launch(None, (2,), k, args)
        return time.process_time() - t

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    source, sizes = KINDS[kind]
    run(source(3), "<small>", 3)  # imports, tables
    base = peak()
    seconds = run(source(n), "<made>", n)
    return {"seconds": seconds, "mb": peak() - base}


def measure(kind: str, n: int, stage: str, timeout: float) -> dict[str, float] | str:
    """The result of `prepare` in a new process, or what went wrong."""
    command = [sys.executable, os.path.abspath(__file__), "--one", kind, str(n), stage]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    if stage != "export":
        env["CUTILE_SCHEDULE"] = stage
    try:
        p = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"more than {timeout:.0f} s"
    return json.loads(p.stdout.splitlines()[-1]) if p.returncode == 0 else p.stderr.strip().splitlines()[-1][:60]


def row(kind: str, stage: str, to: int, timeout: float, times: int) -> bool:
    """Measure and print one row. Gives whether no doubling costs too much."""
    sizes = [n for n in KINDS[kind][1] if n <= to]
    cells, found, good = [], [], True
    rounds = [[measure(kind, n, stage, timeout) for n in sizes] for _ in range(times)]  # so that noise meets all sizes
    for n, runs in zip(sizes, zip(*rounds, strict=True), strict=True):
        if wrong := [r for r in runs if isinstance(r, str)]:
            cells.append(f"{n}: {wrong[0]}")
            good = False
            break
        m = {q: min(r[q] for r in runs) for q in runs[0]}
        cells.append(f"{n}: {m['seconds']:6.2f} s {m['mb']:6.1f} MB")
        found.append(m)
    ratio = ""
    for before, after, small, large in zip(found, found[1:], sizes, sizes[1:], strict=False):
        grown = [after[q] / max(before[q], least) for q, least in zip(("seconds", "mb"), SMALLEST, strict=True)]
        good = good and all(g <= BAR * large / small / 2 for g in grown)
        ratio += "  x " + " ".join(f"{g:.2f}" for g in grown)
    print(f"{kind:11}{stage:7}" + "   ".join(cells) + ratio + ("" if good else "  too much"), flush=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], default=[], metavar="KIND")
    parser.add_argument("--stage", choices=STAGES, action="append")
    parser.add_argument("--to", type=int, default=1 << 30, help="the largest size")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each size; the least counts")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        kind, n, stage = given.one
        print(json.dumps(prepare(kind, int(n), stage)))
        return 0
    rows = [row(kind, stage, given.to, given.timeout, given.runs)
            for kind in given.kinds or KINDS for stage in given.stage or STAGES]
    return 0 if all(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
