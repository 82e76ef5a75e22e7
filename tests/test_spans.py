"""Pieces of source: their text, and call chains."""

from cutile.errors import TileTypeError
from cutile.spans import Span
from tests.spans import CALL, PLACE


def test_render_of_one_line():
    assert PLACE.render() == '  "<errors>", line 6, col 12-18, in helper\n    return z.größe\n           ^^^^^^^'


def test_render_of_several_lines():
    assert CALL.render() == '  "<errors>", lines 2--3, col 9-17, in k\n    y = helper(x +\n        ^^^^^^^^^^'


def test_render_of_one_column_and_of_none():
    assert Span("<errors>", 2, 4, 2, 5, "k").render().splitlines()[0] == '  "<errors>", line 2, col 5, in k'
    assert Span("<errors>", 2, 4, 2, 4, "k").render().splitlines()[2] == "    ^"


def test_render_without_source():
    assert Span("<nowhere>", 2, 4, 2, 5, "k").render() == '  "<nowhere>", line 2, col 5, in k'
    assert Span("<errors>", 4, 0, 4, 1, "k").render() == '  "<errors>", line 4, col 1, in k'


def test_frames_outermost_first():
    assert [s.function for s in PLACE.frames()] == ["k", "helper"]


def test_repeated_frames_are_counted():
    place = None
    for _ in range(10):
        place = Span("<errors>", 6, 11, 6, 18, "helper", place)
    lines = TileTypeError("deep", place).render().splitlines()
    assert len(lines) == 1 + 3 * 3 + 1
    assert lines[-1] == "  … and 7 more times the same call"
