"""debugpy, which VS Code uses, in kernels: over the Debug Adapter Protocol.

justMyCode is on unless a test says otherwise.
"""

from __future__ import annotations

from tests.interp.debugging.dap import session
from tests.interp.debugging.interpreters import every_python
from tests.interp.debugging.sessions import KERNELS, line_of

FILE = KERNELS.name
LOAD, EXP2, CALL, HELPER, INSIDE = map(
    line_of, ("ct.load(", "ct.exp2(", "scale(acc", "shifted * factor", "bigger = a > b"))


@every_python("debugpy")
def test_a_session(python):
    """Breakpoints in the kernel, a helper and a combine function, one of them conditional; stack, variables, steps."""
    with session(python, KERNELS) as editor:
        wanted = [{"line": EXP2, "condition": "i == 2 and k == 1"},
                  {"line": HELPER, "condition": "__block__ == (2, 0, 0)"},
                  {"line": INSIDE, "condition": "__block__ == (3, 0, 0)"}]
        assert editor.attach(KERNELS, wanted) == [True, True, True]

        stack = editor.stopped()
        assert stack[0] == (FILE, EXP2, "kernel")
        assert (FILE, line_of("ct.launch("), "main") in stack
        found = editor.variables()
        assert found["tile"] == f"f32[16] [{', '.join(f'{0.5 + k / 64:.4g}' for k in range(16))}]"
        assert found["i"] == "i32 2"
        assert found["n"] == "2"
        assert editor.evaluate("tile.sum()").endswith("9.875)")
        assert editor.evaluate("ct.float32, T") == "(<DType 'float32'>, 16)"

        assert editor.go("next")[0] == (FILE, line_of("for k in"), "kernel")
        assert editor.go("next")[0] == (FILE, CALL, "kernel")
        assert editor.go("stepIn")[0] == (FILE, HELPER - 1, "scale")
        stack = editor.go("continue")
        assert stack[:2] == [(FILE, HELPER, "scale"), (FILE, CALL, "kernel")]
        assert editor.variables(1)["acc"].startswith("f32[16] ")
        assert editor.go("stepOut")[0][2] == "kernel"

        stack = editor.go("continue")
        assert stack[0] == (FILE, INSIDE, "larger")
        assert [f for f in stack if f[0] == FILE][1] == (FILE, line_of("larger, -np.inf"), "kernel")
        assert editor.variables()["a"].startswith("f32 ")
        editor.breakpoints(KERNELS, [])
        editor.end()


@every_python("debugpy")
def test_editing_and_stepping_into_an_op(python):
    """With justMyCode off a step into exp2 stops in its NumPy definition; an edited variable changes the result."""
    with session(python, KERNELS) as editor:
        editor.attach(KERNELS, [{"line": EXP2, "condition": "i == 1 and k == 0"},
                                {"line": line_of("both = "), "condition": "i == 1"}], just_my_code=False)
        assert editor.stopped()[0] == (FILE, EXP2, "kernel")
        assert editor.go("stepIn")[0][::2] == ("math.py", "exp2")
        assert editor.go("stepOut")[0][2] == "kernel"
        editor.go("next")
        editor.evaluate("acc = acc.like(50)")
        stack = editor.go("continue")
        assert stack[0] == (FILE, line_of("both = "), "kernel")
        assert editor.evaluate("float(top) > 1e15") == "True"
        editor.breakpoints(KERNELS, [])
        editor.end()
