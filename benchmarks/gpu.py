"""cutile's GPU code against that of the official implementation and of PyTorch's libraries: same kernels, same hints.

    python benchmarks/gpu.py export FOLDER [--official PYTHON] [--target sm_90]
    python benchmarks/gpu.py run FOLDER [PART OF A NAME ...]

`export` needs cutile with the gpu extra and no GPU. It writes a folder of cubins for each side:
    ours      compiled by cutile, with the kernel's own hints
    auto      with the hints that cutile chooses where the kernel leaves them open (if that changes something)
    official  compiled by `cuda.tile`, if the interpreter PYTHON has it; with the same assembler
`run` needs a GPU of that target and PyTorch, but not cutile. It measures all folders that it finds. Sides take turns
within one process, the cache is emptied before each launch, and figures are medians of CUDA event times. Each result
is checked against PyTorch first. The exit status is 1 if a result is wrong, or if cutile is below 0.97 of the
official implementation.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import subprocess
import sys
from pathlib import Path

from _gpu_cases import CASES, Case

HERE = Path(__file__).resolve().parent
BAR = 0.97
SIDES = ("ours", "auto", "official")


# ------------------------------------------------------------------ compiling


def export(folder: Path, official: str | None, target: str) -> None:
    from cutile.gpu.tileir import tileiras

    tools = str(tileiras.find_tool().path.parent)
    jobs = [("ours", sys.executable, "cutile", "0"), ("auto", sys.executable, "cutile", "1")]
    if official:
        jobs.append(("official", official, "cuda.tile", "0"))
    for side, python, module, hints in jobs:
        env = {**os.environ, "CUTILE_HINTS": hints, "PATH": os.pathsep.join((tools, os.environ.get("PATH", "")))}
        command = [python, str(HERE / "_gpu_export.py"), str(folder / side), module, target, "cubin"]
        subprocess.run(command, env=env, check=True)
        print(f"{side}: {len(list((folder / side).glob('*.cubin')))} cubins")
    for path in (folder / "auto").glob("*.cubin"):
        if filecmp.cmp(path, folder / "ours" / path.name, shallow=False):
            path.unlink()
    print("hints were chosen for", ", ".join(sorted(p.stem for p in (folder / "auto").glob("*.cubin"))) or "none")


# ------------------------------------------------------------------ running


def run(folder: Path, parts: list[str]) -> int:
    import torch
    from _gpu_reference import Problem
    from _gpu_timing import scratch

    torch.cuda.init()
    flushed = scratch()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    known = [s for s in SIDES if (folder / s).is_dir()]
    known += sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name not in SIDES)
    print(f"{'':34}{'':8}" + "".join(f"{s:>11}" for s in (*known, "library")) + "  ours/official  auto/official")
    bad = 0
    for case in CASES:
        if parts and not any(p in case.name for p in parts):
            continue
        try:
            bad += _row(case, Problem(case), folder, known, flushed)
        except Exception as e:  # a failing side must not hide the rows after it
            print(f"{case.name:34}{type(e).__name__}: {e}", flush=True)
            bad += 1
    return int(bad > 0)


def _row(case: Case, problem, folder: Path, known: list[str], flushed) -> bool:
    from _gpu_driver import Function
    from _gpu_timing import medians

    calls, wrong = {}, []
    for side in known:
        cubin = folder / side / f"{case.file}.cubin"
        if cubin.exists():
            function = Function(cubin, case.file, problem.arguments())
            calls[side] = lambda f=function: f(case.grid, problem.stream)
            if (error := problem.wrong(calls[side])) is not None:
                wrong.append(f"{side}: {error}")
    calls["library"] = problem.library
    times = medians(calls, flushed)
    scale = {"GB/s": 1e6, "TFLOP/s": 1e9}[case.unit]
    rates = {side: case.amount / ms / scale for side, ms in times.items()}
    ratios = [rates[s] / rates["official"] if s in rates and "official" in rates else None for s in ("ours", "auto")]
    best = max((r for r in ratios if r is not None), default=1.0)
    slow = best < BAR
    print(f"{case.name:34}{case.unit:8}" + "".join(f"{rates[s]:11.1f}" if s in rates else f"{'':11}"
                                                    for s in (*known, "library"))
          + "".join(f"{'' if r is None else f'{r:.3f}':>15}" for r in ratios)
          + ("  SLOW" if slow else "") + ("  WRONG " + "; ".join(wrong) if wrong else ""), flush=True)
    return bool(wrong) or slow


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    make, measure = verbs.add_parser("export"), verbs.add_parser("run")
    make.add_argument("folder", type=Path)
    make.add_argument("--official", metavar="PYTHON", help="a Python interpreter that has cuda.tile")
    make.add_argument("--target", default="sm_90")
    measure.add_argument("folder", type=Path)
    measure.add_argument("parts", nargs="*")
    given = parser.parse_args()
    if given.verb == "export":
        export(given.folder, given.official, given.target)
        return 0
    return run(given.folder, given.parts)


if __name__ == "__main__":
    sys.exit(main())
