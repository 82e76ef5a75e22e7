"""Kernels whose speed is that of memory, written without hints: cutile, `cuda.tile`, PyTorch and torch.compile.

    python benchmarks/membound.py [--json FILE] [--jobs N] [PART OF A NAME ...]     needs a GPU and PyTorch
    python benchmarks/membound.py --check [PART OF A NAME ...]                      small arrays, in the interpreter

The first cases are of usual kinds, those after them of two dozen others. All sides run in one process and take turns,
with the cache emptied before each launch; figures are medians, in GB/s of the bytes that the work has to move. A
result is compared with PyTorch's first. `cuda.tile` takes part if it is installed. cutile is measured as it is after
its first launches, when everything that it compiles in the background is there.

First, N processes (default: one for each two processors) compile everything; this fills the caches on disk of cutile
and torch.compile. FILE gets the rows and the machine as JSON. The exit status is 1 if a result is wrong or a side
fails, except that PyTorch's sides may lack an operation.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import torch  # noqa: E402
from _gpu_export import load  # noqa: E402
from _membound_cases import Case, Problem, cases  # noqa: E402

from cutile.gpu import background  # noqa: E402

SIDES = ("cutile", "cuda.tile", "torch", "compile")
SOURCES = ("benchmarks/_membound_kernels.py", "benchmarks/_membound_rows.py")
Row = dict[str, Any]


# ------------------------------------------------------------------ sides


class Tile:
    """An implementation of the language, with the kernels compiled by it."""

    def __init__(self, name: str, folder: Path):
        self.ct = importlib.import_module(name)
        self.files = [load(source, name, folder) for source in SOURCES]

    def call(self, p: Problem, stream: Any) -> Callable[[], None]:
        kernel = next(k for f in self.files if (k := getattr(f, p.kernel, None)) is not None)
        return lambda: self.ct.launch(stream, p.grid, kernel, p.arguments)


def tiles(folder: Path) -> dict[str, Tile]:
    found = {"cutile": Tile("cutile", folder)}
    try:
        found["cuda.tile"] = Tile("cuda.tile", folder)
    except ImportError:
        pass
    return found


def calls(p: Problem, implementations: dict[str, Tile], stream: Any) -> dict[str, Callable[[], Any]]:
    out: dict[str, Callable[[], Any]] = {name: t.call(p, stream) for name, t in implementations.items()}
    out["torch"] = p.library
    if p.compiled:
        out["compile"] = torch.compile(p.library, dynamic=False)
    return out


# ------------------------------------------------------------------ results


def error(p: Problem, call: Callable[[], Any]) -> float:
    """How far a kernel's results are from the library's: the largest norm of an error relative to the result's."""
    want = p.library()
    want = want if isinstance(want, tuple) else (want,)
    call()
    worst = 0.0
    for found, expected in zip(p.results, want, strict=False):
        found, expected = found.double(), expected.double()
        if found.dim() > expected.dim():  # copies of a histogram
            found = found.sum(0)
        worst = max(worst, ((found - expected).norm() / expected.norm().clamp_min(1e-30)).item())
    return math.inf if math.isnan(worst) else worst


# ------------------------------------------------------------------ one row


def row(case: Case, implementations: dict[str, Tile], scratch: torch.Tensor) -> Row:
    from _gpu_timing import medians

    p = case.make()
    before = [r.clone() for r in p.results]
    out: Row = {"case": case.name, "other": case.other}
    usable: dict[str, Callable[[], Any]] = {}
    for side, call in calls(p, implementations, torch.cuda.current_stream()).items():
        try:
            if side in implementations and p.checked:
                out[f"{side} error"] = e = error(p, call)
                if not e <= p.tolerance:
                    raise AssertionError(f"the result is wrong: relative error {e:.3g}")
            call()
            usable[side] = call
        except Exception as e:
            out[f"{side} failed"] = f"{type(e).__name__}: {e}"[:300]
        for r, b in zip(p.results, before, strict=True):  # kernels that add to what is there begin alike on each side
            r.copy_(b)
    _settle(usable.get("cutile"))
    for side, ms in medians(usable, scratch).items():
        out[side] = p.moved / 1e6 / ms
    peers = [out[s] for s in SIDES[1:] if s in out]
    if "cutile" in out and peers:
        out["cutile / best"] = out["cutile"] / max(peers)
        if "cuda.tile" in out:
            out["cutile / cuda.tile"] = out["cutile"] / out["cuda.tile"]
    return out


def _settle(call: Callable[[], Any] | None) -> None:
    """Launch until cutile runs what it will run from now on: repeated launches have code made in the background."""
    for _ in range(3 if call else 0):
        call()
        background.wait()


def text(r: Row) -> str:
    figures = "".join(f"{r[s]:>10.0f}" if s in r else f"{'':10}" for s in SIDES)
    ratios = "".join(f"{r[k]:>10.3f}" if k in r else f"{'':10}" for k in ("cutile / cuda.tile", "cutile / best"))
    failed = "".join(f"  {k.upper()}: {v}" for k, v in r.items() if k.endswith(" failed"))
    return f"{r['case']:44}{figures}{ratios}{failed}"


def summary(rows: list[Row]) -> dict[str, dict[str, float]]:
    out: dict[str, dict[str, float]] = {}
    for group, chosen in (("usual kinds", [r for r in rows if not r["other"]]), ("other kinds",
                          [r for r in rows if r["other"]])):
        for key in ("cutile / best", "cutile / cuda.tile"):
            values = [r[key] for r in chosen if key in r]
            if values:
                mean = math.exp(sum(map(math.log, values)) / len(values))
                out[f"{key}, {group}"] = {"rows": len(values), "geometric mean": mean, "least": min(values)}
    return out


# ------------------------------------------------------------------ all of it


def measure(parts: list[str], file: Path | None, jobs: int) -> int:
    from _gpu_timing import medians, scratch

    if jobs > 0:
        _compile_ahead(parts, jobs)
    with tempfile.TemporaryDirectory() as folder:
        implementations, flushed = tiles(Path(folder)), scratch()
        limit = 2 * flushed.numel() / 1e6 / medians({"copy": flushed.clone}, flushed)["copy"]
        machine = {"GPU": torch.cuda.get_device_name(), "PyTorch": torch.__version__, "copy limit, GB/s": limit,
                   **{n: getattr(t.ct, "__version__", "?") for n, t in implementations.items()}}
        print(", ".join(f"{k} {v:.0f}" if isinstance(v, float) else f"{k} {v}" for k, v in machine.items()))
        print(f"{'':44}" + "".join(f"{s:>10}" for s in (*SIDES, "/cuda.tile", "/best")))
        rows = []
        for case in _chosen(parts, "cuda", False):
            try:
                rows.append(row(case, implementations, flushed))
            except Exception as e:  # one case must not hide those after it
                rows.append({"case": case.name, "other": case.other, "case failed": f"{type(e).__name__}: {e}"[:300]})
            print(text(rows[-1]), flush=True)
            torch.compiler.reset()
    found = summary(rows)
    for name, values in found.items():
        print(f"{name}: " + ", ".join(f"{k} {v:.3g}" for k, v in values.items()))
    if file is not None:
        file.write_text(json.dumps({"machine": machine, "rows": rows, "summary": found}, indent=1))
    return int(any(f"{s} failed" in r for r in rows for s in ("cutile", "case")))


def _chosen(parts: list[str], device: str, small: bool) -> list[Case]:
    return [c for c in cases(device, small) if not parts or any(p in c.name for p in parts)]


def _compile_ahead(parts: list[str], jobs: int) -> None:
    """Let several processes compile everything once. What one of them cannot do is reported when it is measured."""
    command = [sys.executable, __file__, *parts, "--compile"]
    running = [subprocess.Popen([*command, f"{k}/{jobs}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for k in range(jobs)]
    for process in running:
        process.wait()


def compile_share(parts: list[str], share: str) -> int:
    """Launch each side of every n-th case once."""
    first, step = map(int, share.split("/"))
    with tempfile.TemporaryDirectory() as folder:
        implementations = {"cutile": Tile("cutile", Path(folder))}
        for case in _chosen(parts, "cuda", False)[first::step]:
            for call in calls(case.make(), implementations, torch.cuda.current_stream()).values():
                try:
                    call()
                except Exception:
                    continue
            background.wait()  # so that what repeated launches run is in the cache too
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
    return 0


def check(parts: list[str]) -> int:
    bad = 0
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        ours = Tile("cutile", Path(folder))
        for case in _chosen(parts, "cpu", True):
            p = case.make()
            e = error(p, ours.call(p, None)) if p.checked else 0.0
            bad += not e <= p.tolerance
            print(f"{case.name:44} relative error {e:.2e} {'ok' if e <= p.tolerance else 'WRONG'}")
    return int(bad > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--jobs", type=int, default=max((os.cpu_count() or 2) // 2, 1))
    parser.add_argument("--compile", metavar="K/N", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.check:
        return check(given.parts)
    if given.compile:
        return compile_share(given.parts, given.compile)
    return measure(given.parts, given.json, given.jobs)


if __name__ == "__main__":
    sys.exit(main())
