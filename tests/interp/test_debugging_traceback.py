"""Tracebacks through kernels quote the user's lines; kernels work wherever Python can show their source."""

from __future__ import annotations

import functools
import linecache
import traceback

import numpy as np
import pytest

import cutile as ct
from cutile import errors, settings
from cutile.ops import math
from tests.interp.debugging.interpreters import every_python, run


def helper(t):
    ct.assert_(t < 3.0, "too large")
    return t + 1.0


@ct.kernel
def failing(x):
    t = ct.load(x, (ct.bid(0),), (4,))
    u = t * 2.0 + helper(t * 0.5)
    ct.store(x, (ct.bid(0),), u)


def text_of(kernel, args, grid=(4,), schedule="block") -> str:
    with settings.override(SCHEDULE=schedule), pytest.raises(errors.TileAssertionError) as e:
        ct.launch(None, grid, kernel, args)
    return "".join(traceback.format_exception(e.value))


def carets(text: str, line: str) -> str:
    """The part of a quoted source line that the carets under it mark."""
    lines = text.splitlines()
    at = next(i for i, t in enumerate(lines) if t.strip() == line)
    marks = lines[at + 1]
    assert set(marks.strip()) <= set("^~"), marks
    return lines[at][len(marks) - len(marks.lstrip()):len(marks)]


def test_an_assertion_quotes_the_users_lines_with_carets():
    text = text_of(failing, (np.arange(16, dtype=np.float32),))
    assert carets(text, "u = t * 2.0 + helper(t * 0.5)") == "helper(t * 0.5)"
    assert 'ct.assert_(t < 3.0, "too large")' in text
    assert "in failing\n" in text and "in helper\n" in text
    assert "assertion failed: too large in block (1, 0, 0)" in text


def test_an_error_inside_an_op_quotes_the_expression(monkeypatch):
    """Whatever is raised while a meaning runs shows the kernel's line and, under it, the expression."""
    @functools.wraps(math.exp2.meaning)
    def broken(*args, **kwargs):
        raise RuntimeError("no room")

    monkeypatch.setattr(math.exp2, "meaning", broken)

    @ct.kernel
    def kernel(x):
        t = ct.load(x, (0,), (4,))
        ct.store(x, (0,), t + ct.exp2(t))

    with settings.override(SCHEDULE="block"), pytest.raises(RuntimeError) as e:
        ct.launch(None, (1,), kernel, (np.zeros(4, np.float32),))
    text = "".join(traceback.format_exception(e.value))
    assert carets(text, "ct.store(x, (0,), t + ct.exp2(t))") == "ct.exp2(t)"


SOURCE = """
import cutile as ct

@ct.kernel
def kernel(x):
    t = ct.load(x, (0,), (4,))
    ct.assert_(t < 0.0)
"""


def test_a_string_that_is_registered_in_linecache():
    name = "a registered kernel"
    scope: dict = {}
    linecache.cache[name] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), name)
    exec(compile(SOURCE, name, "exec"), scope)
    text = text_of(scope["kernel"], (np.zeros(4, np.float32),), grid=(1,))
    assert f'File "{name}", line 7, in kernel' in text
    assert "    ct.assert_(t < 0.0)\n" in text


def test_a_string_that_is_not_registered_says_what_to_do():
    scope: dict = {}
    exec(compile(SOURCE, "<nowhere>", "exec"), scope)
    with pytest.raises(errors.TileSyntaxError, match="the source of kernel .* is not available") as e:
        ct.launch(None, (1,), scope["kernel"], (np.zeros(4, np.float32),))
    assert "linecache" in str(e.value) and "file" in str(e.value)


PROMPT = """\
import numpy as np
import cutile as ct
@ct.kernel
def kernel(x):
    t = ct.load(x, (0,), (4,))
    ct.store(x, (0,), t + 1.0)

x = np.zeros(4, np.float32)
ct.launch(None, (1,), kernel, (x,))
print("x", x.tolist())
"""


@every_python()
def test_the_prompt(python):
    """Python keeps what is typed from 3.13 on; before, the error says so."""
    done = run(python, "-i", "-q", stdin=PROMPT, ok=False)
    version = run(python, "-c", "import sys; print(sys.version_info >= (3, 13))").stdout.strip()
    if version == "True":
        assert "x [1.0, 1.0, 1.0, 1.0]" in done.stdout, done.stderr
    else:
        assert "x [0.0, 0.0, 0.0, 0.0]" in done.stdout
        assert "TileSyntaxError: the source of kernel (<stdin>, line 1) is not available" in done.stderr
        assert "put the function into a file or a notebook cell" in done.stderr


def test_the_traceback_has_no_function_that_the_user_did_not_write_between_kernel_and_helper():
    with settings.override(SCHEDULE="block"), pytest.raises(errors.TileAssertionError) as e:
        ct.launch(None, (4,), failing, (np.arange(16, dtype=np.float32),))
    names = [f.name for f in traceback.extract_tb(e.value.__traceback__)]
    at = names.index("failing")
    assert names[at:at + 2] == ["failing", "helper"]
