"""Coverage tools and profilers are no debuggers: kernels run in the batch schedule, and their lines are counted."""

from __future__ import annotations

import json

import pytest

from tests.interp.debugging.interpreters import every_python, run
from tests.interp.debugging.sessions import line_of

PROGRAM = '''
import numpy as np
import cutile as ct


def helper(t, n):
    if n == 1:
        return t + 1.0
    return t * 2.0  # never


@ct.kernel
def kernel(x, n: ct.Constant[int]):
    i = ct.bid(0)
    m = 4
    t = ct.load(x, (i,), (m,))
    pass
    if n > 1:
        t = t + 2.0  # dead
    for k in range(n):
        if i > 1:
            t = t + 3.0
        elif i > 100:
            t = t + 4.0  # no block comes here
        else:
            t = t - 1.0
    while i < 2:
        i = i + 1
    t = helper(t, n)
    s = ct.reduce(t, 0, lambda a, b: a + b, 0)
    ct.store(x, (ct.bid(0),), t + s)


ct.launch(None, (4,), kernel, (np.zeros(16, np.float32), 1))
'''


@every_python("coverage")
@pytest.mark.parametrize("core", ["ctrace", "pytrace", "sysmon"])
def test_lines_are_counted(python, core, tmp_path):
    """Missed are exactly the branch that is statically dead, the one that no block takes, and the return never made."""
    if core == "sysmon" and run(python, "-c", "import sys; sys.monitoring", ok=False).returncode:
        pytest.skip("sys.monitoring came with Python 3.12")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run(python, "-m", "coverage", "run", "--data-file=data", f"--include={program}", program, cwd=tmp_path,
               COVERAGE_CORE=core, CUTILE_DEBUG="1")
    assert "runs as batch" in done.stderr
    run(python, "-m", "coverage", "json", "--data-file=data", "-o", "report.json", cwd=tmp_path)
    files = json.loads((tmp_path / "report.json").read_text())["files"]
    report = next(r for name, r in files.items() if (tmp_path / name).resolve() == program.resolve())
    wanted = [line_of(text, program) for text in ("# never", "# dead", "# no block")]
    assert sorted(report["missing_lines"]) == sorted(wanted)


BRANCHES = '''
import numpy as np
import cutile as ct


def helper(t):
    if ct.max(t) > 12.0:
        t = t - 1.0
    return t


@ct.kernel
def kernel(x, out, n):
    i = ct.bid(0)
    t = ct.load(x, i, 4)
    for k in range(n):
        if k == i:
            continue
        t = t + 1.0
    while i > 2:
        i = i - 1
        if i == 2:
            break
    if i > 0 and n > 3:
        t = helper(t)
    else:
        t = t * 2.0
    ct.store(out, ct.bid(0), t)


x = np.arange(16, dtype=np.float32)
for _ in range(2):
    ct.launch(None, (4,), kernel, (x, np.zeros_like(x), 5))
ct.launch(None, (4,), kernel, (x, np.zeros_like(x), 0))
'''


@every_python("coverage")
@pytest.mark.parametrize("core", ["ctrace", "pytrace", "sysmon"])
def test_branches_are_counted(python, core, tmp_path):
    """A branch is missing exactly if no block takes it."""
    if core == "sysmon" and run(python, "-c", "import sys; sys.exit(sys.version_info < (3, 14))", ok=False).returncode:
        pytest.skip("coverage measures branches by sys.monitoring from Python 3.14 on")
    program = tmp_path / "program.py"
    program.write_text(BRANCHES)
    done = run(python, "-m", "coverage", "run", "--branch", "--data-file=data", f"--include={program}", program,
               cwd=tmp_path, COVERAGE_CORE=core, CUTILE_DEBUG="1")
    assert "runs as block (coverage of branches is measured)" in done.stderr
    run(python, "-m", "coverage", "json", "--data-file=data", "-o", "report.json", cwd=tmp_path)
    (report,) = json.loads((tmp_path / "report.json").read_text())["files"].values()
    at = [line_of(text, program) for text in ("while i > 2", "if i == 2", "break")]
    assert report["missing_branches"] == [[at[1], at[0]]] and not report["missing_lines"]


PROFILED = "import sys; {start}; sys.argv = ['program']; exec(compile(open('program.py').read(), 'program.py', 'exec'))"


@every_python()
@pytest.mark.parametrize("args", [["-m", "cProfile", "program.py"],
                                  ["-c", PROFILED.format(start="sys.setprofile(lambda *args: None)")],
                                  ["-m", "trace", "--count", "-C", ".", "program.py"]],
                         ids=["cProfile", "setprofile", "trace"])
def test_profilers_do_not_switch_the_schedule(python, args, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(python, *args, cwd=tmp_path, CUTILE_DEBUG="1")
    assert "runs as batch" in done.stderr and "(default)" in done.stderr


@every_python()
def test_a_debugger_does(python, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(python, "-m", "pdb", "program.py", stdin=f"b {line_of('i + 1', tmp_path / 'program.py')}\nc\nq\n",
               cwd=tmp_path, ok=False, CUTILE_DEBUG="1")
    assert "runs as block (a debugger is attached)" in done.stderr
