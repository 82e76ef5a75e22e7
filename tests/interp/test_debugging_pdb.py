"""pdb in kernels: where it stops, what it shows, what it can change."""

from __future__ import annotations

import pytest

from tests.interp.debugging.interpreters import every_python, run
from tests.interp.debugging.sessions import KERNELS, line_of, pdb

LOAD, EXP2, CALL, STORE = map(line_of, ("ct.load(", "ct.exp2(", "scale(acc", "ct.store("))
FILE = KERNELS.name


@every_python()
def test_looking_at_a_block(python):
    """One session: a conditional breakpoint, the source, the variables, the stack of kernel and helper."""
    helper = line_of("shifted * factor")
    look = ["p __block__", "p i, k", "p tile", "p n, T", "p acc.dtype, acc.shape", "p tile.sum(), tile[3:5]", "ll", "l"]
    deeper = ["cl 1", f"b {FILE}:{helper}, float(factor) == 3", "c"]
    around = ["w", "p t", "p factor", "up", "p part", "p tile", "d", "r", "n"]
    answers = pdb(python, [f"b {FILE}:{EXP2}, __block__ == (2, 0, 0)", "c", *look, *deeper, *around], KERNELS)
    first, second, returned, after = (answers[i] for i in (1, len(look) + 4, -2, -1))
    said = {x.command: x.text.strip() for x in answers}

    assert first.stop == (FILE, EXP2, "kernel")
    assert first.source == "acc = ct.exp2(acc)"
    assert said["p __block__"] == "(2, 0, 0)"
    assert said["p i, k"] == "(i32 2, i32 0)"
    assert said["p tile"] == f"f32[16] [{', '.join(f'{0.5 + k / 64:.4g}' for k in range(16))}]"
    assert said["p n, T"] == "(2, 16)"
    assert said["p acc.dtype, acc.shape"] == "(<DType 'float32'>, (16,))"
    assert "array([0.546875, 0.5625  ], dtype=float32)" in said["p tile.sum(), tile[3:5]"]
    assert "def kernel(x, out, n: ct.Constant[int]):" in said["ll"]
    assert "ct.store(out, (i,), part)" in said["ll"]
    assert "def main" not in said["ll"]
    assert "acc = acc - 1.0" in said["l"]

    assert second.stop == (FILE, helper, "scale")
    stack = [line.split(FILE)[1] for line in said["w"].splitlines() if FILE in line]
    assert stack[-2:] == [f"({CALL})kernel()", f"({helper})scale()"]
    assert said["p t"].startswith("f32[16] [2, 2.022, ")
    assert said["p factor"] == "3.0"
    assert f"({CALL})kernel()" in said["up"]
    assert "NameError" in said["p part"]  # not assigned yet
    assert returned.text.startswith("--Return--") and returned.line == helper
    assert after.stop == (FILE, line_of("part, 0, larger"), "kernel")


@every_python()
def test_conditions_on_variables_of_the_user(python):
    """`i == 2` on a tile of the user; stops once, in that block."""
    stop, block, end = pdb(python, [f"b {FILE}:{STORE}, i == 2", "c", "p i, __block__", "c"], KERNELS)[1:]
    assert stop.stop == (FILE, STORE, "kernel")
    assert block.text.strip() == "(i32 2, (2, 0, 0))"
    assert end.text.startswith("out [")


@every_python()
def test_combine_functions(python):
    """Breakpoints in the def and the lambda that a reduce was given; elements are scalars, the stack tells."""
    inside, lam = line_of("bigger = a > b"), line_of("lambda p, q")
    a = pdb(python, [f"b {FILE}:{inside}", "c", "p a, b", "n", "p bigger", "w", "cl 1", f"b {FILE}:{lam}",
                     "c", "p i", "c", "p p, q"], KERNELS)
    assert a[1].stop == (FILE, inside, "larger")
    assert a[2].text.strip().startswith("(f32 ")
    assert a[3].line == inside + 1
    assert a[4].text.strip() in ("b1 True", "b1 False")
    stack = [line.split(FILE)[1] for line in a[5].text.splitlines() if FILE in line]
    assert stack[-2:] == [f"({line_of('larger, -np.inf')})kernel()", f"({inside + 1})larger()"]
    assert a[8].stop == (FILE, lam, "kernel")
    assert a[9].text.strip() == "i32 0"
    assert a[10].stop == (FILE, lam, "<lambda>")
    assert a[11].text.strip().startswith("(f32 ")


@every_python()
def test_stepping_into_an_op_lands_in_its_meaning(python):
    """`s` on exp2 stops in the NumPy definition of exp2, `r` comes back."""
    a = pdb(python, [f"b {FILE}:{EXP2}", "c", "s", "s", "p x.dtype", "r", "n"], KERNELS)
    assert a[2].text.startswith("--Call--")
    assert a[2].stop[0] == "math.py" and a[2].stop[2] == "exp2"
    assert a[4].text.strip() == "dtype('float32')"


@every_python()
@pytest.mark.parametrize("edit", ["!acc = acc + 100", "!acc = acc.like(100)"])
def test_what_is_edited_flows_on(python, edit):
    """A new tile in a variable of the user is what later lines compute with."""
    a = pdb(python, [f"b {FILE}:{CALL}, i == 0", "c", edit, "n", "p bool(part.min() >= 300)", "c"], KERNELS)
    assert a[4].text.strip() == "True"
    out = eval(a[5].text.split("out ")[1].splitlines()[0])
    assert out[0] >= 16 * 300 and max(out[1:]) < 1000


@every_python()
def test_until_and_next_walk_the_lines(python):
    """`n` visits the lines in the order of a Python loop; `unt` leaves it."""
    k, head = line_of("if k == 1"), line_of("for k in")
    steps = pdb(python, [f"b {FILE}:{head}", "c", *["n"] * 8, "unt"], KERNELS)[1:]
    assert [s.line for s in steps] == [head, k, k + 3, EXP2, head, k, k + 1, EXP2, head, CALL]


BREAKS = """
import pdb
import numpy as np
import cutile as ct


@ct.kernel
def kernel(x):
    i = ct.bid(0)
    t = ct.load(x, (i,), (4,))
    if i == 1:
        {stop}
        t = t + 1
    ct.store(x, (i,), t)


x = np.zeros(8, np.float32)
ct.launch(None, (2,), kernel, (x,))
print("x", x.tolist())
"""


@every_python()
@pytest.mark.parametrize("stop", ["breakpoint()", "pdb.set_trace()"])
def test_breakpoint_in_the_kernel(python, stop, tmp_path):
    """It stops in the user's frame: at the line itself or, before Python 3.13, at the next one."""
    program = tmp_path / "program.py"
    program.write_text(BREAKS.format(stop=stop))
    here = line_of(stop, program)
    a = pdb(python, ["p t", "p __block__", "!t = t + 5", "c"], program, module=False)
    assert a[0].stop[0] == "program.py" and a[0].stop[2] == "kernel" and a[0].line in (here, here + 1)
    assert a[1].text.strip() == "f32[4] [0, 0, 0, 0]"
    assert a[2].text.strip() == "(1, 0, 0)"
    assert a[4].text.strip() == "x [0.0, 0.0, 0.0, 0.0, 6.0, 6.0, 6.0, 6.0]"


@every_python()
def test_only_one_block(python):
    """CUTILE_BLOCK runs one block; one outside the grid runs nothing, and says so."""
    out = eval(run(python, KERNELS, CUTILE_BLOCK="3,0,0").stdout.split("out ")[1])
    assert out[:3] == [0, 0, 0] and out[3] != 0
    outside = run(python, KERNELS, CUTILE_BLOCK="4,0,0")
    assert outside.stdout == "out [0.0, 0.0, 0.0, 0.0]\n"
    assert "CUTILE_BLOCK" in outside.stderr and "(4, 1, 1)" in outside.stderr


@every_python()
def test_breakpoints_by_name(python):
    """A kernel and its helper, named while pdb stands in their file, stop on their first lines."""
    named, helper, first, second, *_ = pdb(python, ["b kernel", "b scale", "c", "c"], KERNELS)
    assert named.text.startswith("Breakpoint 1 at ") and helper.text.startswith("Breakpoint 2 at ")
    assert first.stop == (FILE, line_of("i = ct.bid(0)"), "kernel")
    assert second.stop == (FILE, line_of("shifted = "), "scale")


CLOSURES = """
import numpy as np
import cutile as ct


def stencil(width, dtype):
    @ct.kernel
    def kernel(x, out, T: ct.Constant[int]):
        rows = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)

        def at(down):
            def plus(a):
                return a + rows.astype(dtype)
            return plus(ct.gather(x, rows + down * width))

        ct.store(out, ct.bid(0), at(1) + at(2))

    return kernel


x, out = np.arange(8.0), np.zeros(4)
ct.launch(None, (1,), stencil(2, ct.float64), (x, out, 4))
print("out", out.tolist())
"""


@every_python()
def test_free_variables_stand_in_the_frame_of_a_closure(python, tmp_path):
    """Those of the kernel, of a closure around it, and of the Python function that makes the kernel; no others. Values
    without a name are in the frame alone whose expression has not ended.
    """
    program = tmp_path / "program.py"
    program.write_text(CLOSURES)
    outer, inner = line_of("return plus(", program), line_of("return a +", program)
    names = "p sorted(n for n in locals() if n[0] != '_' and n != '.ctx')"
    a = pdb(python, [f"b program.py:{outer}", "c", names, "p rows", "p width", f"tbreak program.py:{inner}", "c", names,
                     "p dtype", "up", "up", f"{names[:-1]} and n[0] != '.')"], program)
    said = [x.text.strip() for x in a]
    assert a[1].stop == ("program.py", outer, "at") and said[2] == "['down', 'dtype', 'plus', 'rows', 'width', 'x']"
    assert said[3:5] == ["i32[4] [0, 1, 2, 3]", "2"]
    assert a[6].stop == ("program.py", inner, "plus") and said[7:9] == ["['a', 'dtype', 'rows']", "float64"]
    assert said[11] == "['T', 'at', 'dtype', 'out', 'rows', 'width', 'x']"
