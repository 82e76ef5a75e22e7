"""Types of arguments as words."""

from __future__ import annotations

import pytest
import typer

from cutile.cli.show.words import MAX_RANK, arg_type
from cutile.dtypes import bfloat16, bool_, float8_e4m3fn, float32, int64
from cutile.front.program import Embedded
from cutile.types import ArrayType, TileType


@pytest.mark.parametrize("word, t", [
    ("f32[2]", ArrayType(float32, 2)), ("bf16[0]", ArrayType(bfloat16, 0)), (f"b1[{MAX_RANK}]", ArrayType(bool_, 64)),
    ("f32", TileType(float32)), ("i64", TileType(int64)), ("b1", TileType(bool_)),
    ("e4m3[1]", ArrayType(float8_e4m3fn, 1)),
])
def test_types(word, t):
    assert arg_type(word) == t


@pytest.mark.parametrize("word, value", [("=5", 5), ("=-1.5", -1.5), ("=True", True), ("=None", None), ("=add", "add"),
                                         ("=", "")])
def test_constants(word, value):
    t = arg_type(word)
    assert isinstance(t, Embedded) and t.value == value and type(t.value) is type(value)


@pytest.mark.parametrize("word, says", [("f64", "a scalar argument is"), ("f99[1]", "is no type"),
                                        (f"f32[{MAX_RANK + 1}]", "is no type")])
def test_wrong_words(word, says, capsys):
    with pytest.raises(typer.Exit):
        arg_type(word)
    assert says in capsys.readouterr().err
