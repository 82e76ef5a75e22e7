"""How long a new process takes: to import cutile, to lower a kernel, to launch one whose code is in the cache or not.

python benchmarks/startup.py [RUNS]

Each figure is the least of RUNS new processes (12), in milliseconds beside its bar; the exit status says whether all
hold. The launches need a GPU and PyTorch or CuPy; their time is that of the first `ct.launch`, with context and arrays
made before. The kernel is causal attention, from examples/. A vector add is launched with no code in any cache, by
cutile and, where it is installed, by `cuda.tile`, in turn; the bar is half of its time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

IMPORT = """
import time
start = time.perf_counter()
import cutile
print(1e3 * (time.perf_counter() - start))
"""

LOWERING = """
import time
import cutile as ct
from attention import attention
from cutile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel
array = ArrayConstraint(ct.float16, 4, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(),
                        may_alias_internally=False, stride_constant=(None, None, None, 1), base_addr_divisible_by=16)
signature = KernelSignature([array] * 4 + [0.125, 4, 1, 64, 64, 64, True], CallingConvention.cutile_python_v1())
class Nowhere:
    write = staticmethod(len)
start = time.perf_counter()
export_kernel(attention, [signature], Nowhere, gpu_code="sm_90", output_format="tileir_bytecode",
              bytecode_version="13.4")
print(1e3 * (time.perf_counter() - start))
"""

LAUNCH = """
import time
try:
    import torch
    q, k, v, out = (torch.randn((1, 4, 320, 64), device="cuda").half() for _ in range(4))
    torch.cuda.synchronize()
except ImportError:
    import cupy
    q, k, v, out = (cupy.random.standard_normal((1, 4, 320, 64)).astype("f2") for _ in range(4))
    cupy.cuda.runtime.deviceSynchronize()
import cutile as ct
from attention import attention
start = time.perf_counter()
ct.launch(None, (5, 4), attention, (q, k, v, out, 0.125, 4, 1, 64, 64, 64, True))
print(1e3 * (time.perf_counter() - start))
"""

COLD = """
import sys, time
try:
    import torch
    a, b, c = (torch.zeros(1024, device="cuda") for _ in range(3))
    torch.cuda.synchronize()
except ImportError:
    import cupy
    a, b, c = (cupy.zeros(1024, "f4") for _ in range(3))
    cupy.cuda.runtime.deviceSynchronize()
from vector_add import ct, vector_add
start = time.perf_counter()
ct.launch(None if ct.__name__ == "cutile" else torch.cuda.current_stream(), (1,), vector_add, (a, b, c, 1024))
print(1e3 * (time.perf_counter() - start))
"""
SHARE = 0.5  # of cuda.tile's time
NO_CACHE = {"CUTILE_CACHE": "0", "CUDA_TILE_CACHE_DIR": "0"}

BARS = (("import cutile", IMPORT, 150), ("front end and lowering", LOWERING, 60),
        ("first launch, code in the cache", LAUNCH, 60))


def run(text: str, cache: str, kernels: Path = ROOT / "examples", more: dict[str, str] | None = None) -> float | None:
    """Milliseconds; None if the process failed."""
    path = os.pathsep.join((str(ROOT), str(kernels), os.environ.get("PYTHONPATH", "")))
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": path, "CUTILE_CACHE_DIR": cache, **(more or {})}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment)
    return float(done.stdout) if done.returncode == 0 else None


def main(runs: int = 12) -> int:
    missed = 0
    with tempfile.TemporaryDirectory() as cache:
        for name, text, bar in BARS:
            if run(text, cache) is None:  # the first one also writes .pyc files and fills the cache
                print(f"{name:32} not run: no GPU with PyTorch or CuPy" if text is LAUNCH else f"{name:32} FAILED")
                missed += text is not LAUNCH
                continue
            times = sorted(run(text, cache) for _ in range(runs))
            missed += times[0] > bar
            print(f"{name:32} {times[0]:6.1f} ms (median {times[len(times) // 2]:.1f}), bar {bar} ms: "
                  f"{'ok' if times[0] <= bar else 'MISSED'}")
    return 1 if missed + cold(runs) else 0


def cold(runs: int) -> bool:
    """The first launch of a vector add without any cache. Returns whether the bar is missed."""
    with tempfile.TemporaryDirectory() as cache:
        folder = Path(cache)
        for name, module in (("ours", "cutile"), ("official", "cuda.tile")):
            (folder / name).mkdir()
            (folder / name / "vector_add.py").write_text(
                (ROOT / "examples/vector_add.py").read_text().replace("import cutile as ct", f"import {module} as ct"))
            (folder / name / "_report.py").write_text((ROOT / "examples/_report.py").read_text())
        ours, official = ([t for t in times if t is not None] for times in zip(*(
            [run(COLD, cache, folder / name, NO_CACHE) for name in ("ours", "official")] for _ in range(runs + 1)),
            strict=True))
    if not ours:
        print(f"{'first launch of a vector add':32} not run: no GPU with PyTorch or CuPy, or no assembler")
        return False
    print(f"{'first launch of a vector add':32} {min(ours):6.1f} ms", end="")
    if not official:
        print("; without cuda.tile, which is not installed")
        return False
    share = min(ours) / min(official)
    print(f", {share:.2f} of cuda.tile's {min(official):.1f} ms, bar {SHARE}: {'ok' if share <= SHARE else 'MISSED'}")
    return share > SHARE


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
