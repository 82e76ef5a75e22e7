"""Everything that is measured on a GPU: python benchmarks/gpu_all.py [FOLDER]

Runs the benchmarks one after another, each within its share of seven minutes, and shows what they print. FOLDER
(default: gpu_figures) gets that as text, the figures as JSON where a benchmark writes them, and `summary.json` with
the machine, the versions, and which benchmarks passed. Needs what they need: a GPU, PyTorch, cutile's gpu extra.
`cuda.tile` and CuPy take part where they are installed. The exit status is 1 if one of them fails or takes too long.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = ("cutile", "torch", "triton", "cupy-cuda13x", "cuda-tile", "nvidia-cuda-tileiras", "numpy")


@dataclass(frozen=True)
class Benchmark:
    """A script with its arguments; `share` is in seconds. The shares add up to seven minutes."""

    script: str
    share: int
    arguments: tuple[str, ...] = ()
    json: bool = False


BENCHMARKS = (Benchmark("gpu_launch.py", 30), Benchmark("membound.py", 190, json=True),
              Benchmark("tensorcore.py", 200, ("--first", "6"), json=True))


def run(b: Benchmark, folder: Path) -> dict:
    """Run one, copying its output to the terminal and into a file."""
    stem = Path(b.script).stem
    command = [sys.executable, str(HERE / b.script), *b.arguments]
    if b.json:
        command += ["--json", str(folder / f"{stem}.json")]
    print(f"\n{' '.join(command[1:])}", flush=True)
    start = time.monotonic()
    with open(folder / f"{stem}.txt", "w+", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            status: int | str = process.wait(b.share)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            status = f"stopped after {b.share} s"
        out.seek(0)
        print(out.read(), flush=True)
    return {"status": status, "seconds": round(time.monotonic() - start, 1)}


def versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "gpu_figures")
    folder.mkdir(parents=True, exist_ok=True)
    done = {b.script: run(b, folder) for b in BENCHMARKS}
    (folder / "summary.json").write_text(json.dumps({"versions": versions(), "benchmarks": done}, indent=1))
    for script, how in done.items():
        print(f"{script:20} {how['seconds']:6.1f} s  {'ok' if how['status'] == 0 else how['status']}")
    return int(any(how["status"] != 0 for how in done.values()))


if __name__ == "__main__":
    sys.exit(main())
