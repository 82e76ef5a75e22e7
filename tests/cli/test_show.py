"""python -m cutile show."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cutile.cli.main import app
from cutile.ir.text import parse

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "softmax.py")
SOFTMAX = [f"{EXAMPLE}::softmax_rows", "f32[2]", "f32[2]", "=4", "=1024"]


def said(*args: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(args), env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done.output


def test_show_prints_a_stage():
    for options in ([], ["--stage", "ir"]):
        text = said("show", *SOFTMAX, *options)
        assert "exp" in text and parse(text).name == "softmax_rows"


@pytest.mark.parametrize("args, says", [
    (["softmax.py"], "is not FILE.py::KERNEL"),
    (["nowhere.py::k"], "there is no file nowhere.py"),
    ([f"{EXAMPLE}::nope"], "there are softmax_rows"),
    ([f"{__file__}::k"], "it has none"),
    ([SOFTMAX[0], "f32[2]"], "4 parameter(s), x, y, ROWS, COLS: give a type for each"),
    ([*SOFTMAX[:3], "f99[1]", "=4"], "is no type"),
    ([*SOFTMAX[:3], "f16", "=4"], "a scalar argument is"),
    ([*SOFTMAX[:4], "=3"], "power of two"),
    ([*SOFTMAX, "--stage", "nope"], "no stage 'nope'"),
])
def test_show_says_what_is_wrong(args, says):
    assert says in said("show", *args, code=1)


@pytest.mark.parametrize("word", [
    "f32[²]", "f32[1]]]", "f32[1", "f32]", "f32[]", "f32[-1]", "f32[ 1]", "f32[1] ", "f32[1.0]", "f32[٣]", "f32[65]",
    "f32[999999999]", "F32[1]", "float32[1]", "[1]", "", "f32[1]f32[1]", "f32[1]\n", "f32[[1]]", "f32[1,2]"])
def test_words_that_are_no_type(word):
    assert f"{word!r} is no type" in said("show", SOFTMAX[0], word, *SOFTMAX[2:], code=1)


@pytest.mark.parametrize("content", [b"\0\x7fELF", b"def", b"\xff\xfe", b"# coding: none\n", b"x = (" + b"(" * 500])
def test_files_that_are_no_python(tmp_path, content):
    (tmp_path / "x.py").write_bytes(content)
    assert "is no Python file that can be run" in said("show", f"{tmp_path / 'x.py'}::k", code=1)
