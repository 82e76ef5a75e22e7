"""Launching on a GPU, checked: python benchmarks/gpu_smoke.py [PART OF A CHECK'S NAME …]

Needs a GPU, cutile's gpu extra, and PyTorch or CuPy. Prints one line a check; the exit code is the number of failed
checks. The other checks go on when one fails. Checks that spoil the GPU for their process run in a process of their
own.
"""

from __future__ import annotations

import os
import sys
import time
import traceback

import _smoke_arguments  # noqa: F401  (declares checks)
import _smoke_streams  # noqa: F401
import numpy as np
from _gpu_arrays import libraries
from _smoke import CHECKS, ROOT, Skipped, needs
from _smoke_alone import ALONE, alone

import cutile as ct

EXAMPLES = sorted(p.stem for p in (ROOT / "examples").glob("[a-z]*.py") if p.stem not in ("demo",))


def example(name: str):
    def run(lib):
        module = needs(name)
        plain = ct.launch

        def moved(stream, grid, kernel, args):
            host = [a for a in args if isinstance(a, np.ndarray)]
            device = {id(a): lib.to_device(a) for a in host}
            plain(lib.current(), grid, kernel, tuple(device.get(id(a), a) for a in args))
            lib.synchronize()
            for a in host:
                a[...] = lib.to_host(device[id(a)])

        ct.launch = moved
        try:
            rows = module.main()
        except (TypeError, ValueError) as e:
            if lib.name == "cupy" and (lacking := next((d for d in ("bfloat16", "float8") if d in str(e)), None)):
                raise Skipped(f"CuPy has no {lacking}") from None
            raise
        finally:
            ct.launch = plain
        return "; ".join(f"{r.error:.1e} of {r.allowed:.1e}" for r in rows)

    return run


for _name in EXAMPLES:
    CHECKS[f"example {_name}"] = example(_name)


def run(name: str, f, *args) -> bool:
    start = time.perf_counter()
    try:
        said, verdict = f(*args), "ok"
    except Skipped as e:
        said, verdict = str(e), "skipped"
    except Exception as e:
        said, verdict = f"{type(e).__name__}: {e}", "FAILED"
        if os.environ.get("SMOKE_TRACE"):
            traceback.print_exc()
    print(f"{verdict:8} {name:45} {time.perf_counter() - start:6.2f} s  {said or ''}", flush=True)
    return verdict != "FAILED"


def main(parts: list[str]) -> int:
    libs = libraries()
    if not libs:
        print("neither torch nor CuPy sees a GPU")
        return 1
    jobs = [(f"{name} [{lib.name}]", f, (lib,)) for lib in libs for name, f in CHECKS.items()]
    jobs += [(name, alone, program) for name, program in ALONE.items()]
    chosen = [j for j in jobs if not parts or any(p in j[0] for p in parts)]
    failed = sum(not run(name, f, *args) for name, f, args in chosen)
    print(f"{len(chosen) - failed} of {len(chosen)} ok or skipped, {failed} failed")
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
