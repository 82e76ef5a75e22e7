"""python -m cutile show."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cutile.cli.main import app
from cutile.functions.stages import STAGES
from cutile.ir.text import parse
from tests.gpu.tileir.tool import needs_nvdisasm, needs_tool

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "softmax.py")
SOFTMAX = [f"{EXAMPLE}::softmax_rows", "f32[2]", "f32[2]", "=4", "=1024"]


def said(*args: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(args), env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done.output


def test_show_prints_a_stage():
    for options in ([], ["--stage", "ir"]):
        text = said("show", *SOFTMAX, *options)
        assert "exp" in text and parse(text).name == "softmax_rows"


SCRIPT = """
import sys
import numpy as np
import cutile as ct

@ct.kernel
def doubles(x, out, n: ct.Constant[int]):
    ct.store(out, 0, ct.load(x, 0, n) * 2)

@ct.kernel
def empty():
    pass

@ct.kernel
def never(x):
    pass

if __name__ == "__main__":
    for dtype in sys.argv[1:] or ["float32", "float16"]:
        x = np.ones(8, dtype)
        ct.launch(None, (1,), doubles, (x, x, 8))
    open("ran", "w").close()
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    return "script.py"


def test_kernels_of_a_file(file, tmp_path):
    assert said("show", file).splitlines() == [
        "script.py::doubles(x, out, n)", "script.py::empty()", "script.py::never(x)"]
    assert not (tmp_path / "ran").exists()
    (tmp_path / "none.py").write_text("x = 5")
    assert said("show", "none.py").strip() == "none.py has no kernel"


def test_a_launch_says_the_types(file, tmp_path):
    assert "array<f32[?]>" in said("show", f"{file}::doubles")
    assert "array<f16[?]>" in said("show", f"{file}::doubles", "--launch", "2")
    assert "array<i64[?]>" in said("show", f"{file}::doubles", "--args", "int64")
    assert not (tmp_path / "ran").exists()  # the script ends at the launch
    assert "launched 2 times" in said("show", f"{file}::doubles", "--launch", "3", code=1)
    assert "never was never launched" in (text := said("show", f"{file}::never", code=1))
    assert "1 parameter(s), x: give a type for each" in text
    assert "kernel empty()" in said("show", f"{file}::empty")


def test_a_script_runs_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "once.py").write_text("import cutile as ct\nwith open('ran', 'a') as f: f.write('x')\n\n"
                                      "@ct.kernel\ndef k(x): pass\n\n@ct.kernel\ndef empty(): pass\n")
    for name, says, code in (("k", "k was never launched by once.py. k has 1 parameter(s), x: give a type", 1),
                             ("nope", "'nope' is no kernel of once.py; there are k, empty", 1),
                             ("empty", "kernel empty()", 0)):
        assert says in said("show", f"once.py::{name}", code=code)
        assert (tmp_path / "ran").read_text() == "x"
        (tmp_path / "ran").unlink()


@pytest.mark.parametrize("args, says", [
    (["nowhere.py"], "there is no file nowhere.py"),
    (["nowhere.py::k"], "there is no file nowhere.py"),
    ([f"{EXAMPLE}::nope", "i32"], "there are softmax_rows"),
    ([f"{__file__}::k", "i32"], "it has none"),
    ([SOFTMAX[0], "f32[2]"], "4 parameter(s), x, y, ROWS, COLS: give a type for each"),
    ([*SOFTMAX[:3], "f99[1]", "=4"], "is no type"),
    ([*SOFTMAX[:3], "f16", "=4"], "a scalar argument is"),
    ([*SOFTMAX[:4], "=3"], "power of two"),
    ([*SOFTMAX[:4], "=x"], "is a bool, an int or a float, not 'x'; without types the file is run"),
    ([*SOFTMAX[:4], "="], "is a bool, an int or a float, not ''; without types the file is run"),
    ([*SOFTMAX, "--stage", "nope"], "no stage 'nope'"),
])
def test_show_says_what_is_wrong(args, says):
    assert says in said("show", *args, code=1)


@pytest.mark.parametrize("word", [
    "f32[²]", "f32[1]]]", "f32[1", "f32]", "f32[]", "f32[-1]", "f32[ 1]", "f32[1] ", "f32[1.0]", "f32[٣]", "f32[65]",
    "f32[999999999]", "F32[1]", "float32[1]", "[1]", "", "f32[1]f32[1]", "f32[1]\n", "f32[[1]]", "f32[1,2]"])
def test_words_that_are_no_type(word):
    assert f"{word!r} is no type" in said("show", SOFTMAX[0], word, *SOFTMAX[2:], code=1)


@pytest.mark.parametrize(("code", "says"), [
    ("import nothing_here", "ModuleNotFoundError: No module named 'nothing_here'"),
    ("1 / 0", "ZeroDivisionError"), ("raise SystemExit(3)", "SystemExit(3)")])
def test_files_that_fail(tmp_path, code, says, capfd):
    """Their error is shown once, with none of our frames."""
    (tmp_path / "x.py").write_text(f"{code}\n")
    file = str(tmp_path / "x.py")
    for words in ([file], [f"{file}::k"], [f"{file}::k", "i32"]):
        output = said("show", *words, code=1) + "".join(capfd.readouterr())
        assert says in output or code.startswith("raise") and "k was never launched by" in output
        assert output.count("Traceback") <= 1 and "cutile/cli" not in output


def test_a_script_that_ends_before_the_launch(tmp_path):
    (tmp_path / "x.py").write_text("import cutile as ct\n@ct.kernel\ndef k(x): pass\n"
                                   "if __name__ == '__main__': raise SystemExit(0)\n")
    output = said("show", f"{tmp_path / 'x.py'}::k", code=1)
    assert "k was never launched by" in output and "1 parameter(s), x: give a type for each" in output


@pytest.mark.parametrize("content", [b"\0\x7fELF", b"def", b"\xff\xfe", b"# coding: none\n", b"x = (" + b"(" * 500])
def test_files_that_are_no_python(tmp_path, content):
    (tmp_path / "x.py").write_bytes(content)
    file = str(tmp_path / "x.py")
    for words in ([file], [f"{file}::k"], [f"{file}::k", "i32"]):
        assert "is no Python file that can be run" in said("show", *words, code=1)


def test_json_of_a_file(file):
    assert json.loads(said("show", file, "--json")) == [
        {"kernel": "doubles", "parameters": ["x", "out", "n"]}, {"kernel": "empty", "parameters": []},
        {"kernel": "never", "parameters": ["x"]}]


def test_json_of_a_stage_is_all_that_stdout_has(file):
    Path(file).write_text(SCRIPT.replace("    for dtype", "    print('begins')\n    for dtype"))
    done = CliRunner().invoke(app, ["show", f"{file}::doubles", "--stage", "ir", "--json"])
    found = json.loads(done.stdout)
    assert parse(found["text"]).name == found["kernel"] == "doubles" and "begins" in done.stderr
    assert (found["stage"], found["gpu"]) == ("ir", "sm_90")
    assert found["arguments"] == {"x": "array<f32[?]>", "out": "array<f32[?]>", "n": "=8"}


ELEMENTS = """
import numpy as np
import cutile as ct

def halved(x):
    while x > 1:
        x = x / 2
    return x

@ct.kernel
def halves(x):
    ct.store(x, 0, ct.elementwise(halved, ct.load(x, 0, 4)))

if __name__ == "__main__":
    ct.launch(None, (1,), halves, (np.arange(4.0),))
"""


ASSEMBLED = ("tileir", "hints", "remarks", "resources", "sass")


@pytest.mark.parametrize("stage", [
    pytest.param(s, marks=[needs_tool] * (s in ASSEMBLED) + [needs_nvdisasm] * (s == "sass")) for s in STAGES])
def test_every_stage_of_a_kernel_with_an_element_function(stage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text(ELEMENTS)
    text = said("show", "script.py::halves", "--stage", stage)
    assert ("elementwise" in text) == (stage in ("source", "ir"))
