"""Checks of gpu_smoke.py that spoil the GPU for their process, or print, as programs for processes of their own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from _smoke import ROOT

ALONE: dict[str, tuple[str, str]] = {}  # name: (program, what it must print)

HEAD = f"""
import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'benchmarks')!r}]
import numpy as np, cutile as ct
from _gpu_arrays import libraries
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()): lib = libraries()[0]
"""

ALONE["a failed assertion is told"] = ("""
@ct.kernel
def k(x):
    ct.assert_(ct.load(x, 0, ()) > 5, "too small")
x = lib.to_device(np.zeros(4, np.float32))
ct.launch(None, (1,), k, (x,))
try:
    lib.synchronize()
except Exception as e:
    print("synchronising:", type(e).__name__)
try:
    ct.launch(None, (1,), k, (x,))
    print("NO ERROR")
except RuntimeError as e:
    print(type(e).__name__, e)
""", "the process can use this GPU no more")

ALONE["what a kernel prints"] = ("""
@ct.kernel
def k(n):
    ct.print("block", ct.bid(0), "of", n)
ct.launch(lib.current(), (2,), k, (2,))
lib.synchronize()
""", "block 1 of 2")

ALONE["a forked process is told"] = ("""
import multiprocessing, os
@ct.kernel
def k(x): ct.store(x, 0, 1.0)
x = lib.to_device(np.zeros(4, np.float32))
ct.launch(None, (1,), k, (x,))
lib.synchronize()
sys.stdout.flush()
if os.fork() == 0:
    try:
        ct.launch(None, (1,), k, (x,))
        print("NO ERROR")
    except Exception as e:
        print(type(e).__name__, e)
    sys.stdout.flush(); os._exit(0)
os.wait()
""", "forked after CUDA was initialised")

ALONE["no context before the launch"] = ("""
from cuda.bindings import driver as d
x = lib.to_device(np.arange(4, dtype=np.float32)); y = lib.to_device(np.zeros(4, np.float32)); lib.synchronize()
d.cuCtxSetCurrent(d.CUcontext(0))
@ct.kernel
def k(x, y): ct.store(y, 0, ct.load(x, 0, (4,)))
ct.launch(None, (1,), k, (x, y))
assert int(d.cuCtxGetCurrent()[1]) == 0, "the context stayed behind"
lib.synchronize()
print(lib.to_host(y).tolist())
""", "[0.0, 1.0, 2.0, 3.0]")


def alone(program: str, expected: str) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.py")  # not -c: before Python 3.13 its source is lost
        file.write_text(HEAD + program)
        done = subprocess.run([sys.executable, file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=180)
    assert expected in done.stdout, f"said {done.stdout[-1500:]}"
    return next((line[:150] for line in done.stdout.splitlines() if expected in line), None)
