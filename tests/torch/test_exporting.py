"""Warnings about exported programs that no other process can load, in a script of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
SCRIPT = """
import torch, warnings
import cutile as ct, cutile.torch
from tests.torch import graph_kernels as kernels

@ct.kernel
def twice(x, y):
    ct.store(y, ct.bid(0), 2 * ct.load(x, ct.bid(0), 16))

double = cutile.torch.op("main::double", ct.jit(twice, grid=(3,), out=ct.Out(like="x")))

class Launch(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        ct.launch(None, (3,), twice, (x, y))
        return y

class Operator(torch.nn.Module):
    def forward(self, x):
        return double(x)

class Imported(torch.nn.Module):
    def forward(self, x):
        return kernels.Scale()(kernels.DOUBLE(x))

torch.compile(Operator(), backend="eager")(torch.ones(40))
for module in (Launch, Operator, Imported):
    for strict in (False, True):
        torch._dynamo.reset()
        cutile.torch.exporting._warn.cache_clear()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            torch.export.export(module(), (torch.ones(40),), strict=strict)
        print(module.__name__, strict, *sorted({str(w.message) for w in found if "exported program" in str(w.message)}))
"""


def test_what_is_in_the_script_that_runs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})
    lines = done.stdout.splitlines()
    assert len(lines) == 6, done.stderr
    for line, what in zip(lines, ["the kernel"] * 2 + ["the operator main::double"] * 2 + [None] * 2):
        if what is None:
            assert line in ("Imported False", "Imported True")
        else:
            assert f"the exported program has {what}" in line and "put it into a module that both import" in line
