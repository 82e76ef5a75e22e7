"""The levels of CUTILE_DEBUG: each shows all lower ones, on standard error."""

import re

import pytest

from cutile import settings
from cutile._support import trace


@pytest.mark.parametrize("level", range(7))
def test_a_level_shows_all_lower_ones(capsys, level):
    with settings.override(DEBUG=level):
        for n in range(1, 7):
            assert trace.on(n) == (n <= level)
            trace.say(n, f"line {n}")
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err == "".join(f"cutile: line {n}\n" for n in range(1, level + 1))


def test_a_stage_is_timed(capsys):
    with settings.override(DEBUG=trace.TIMINGS), trace.timed("typing k"):
        pass
    assert re.fullmatch(r"cutile: typing k: \d+\.\d\d ms\n", capsys.readouterr().err)
    with settings.override(DEBUG=trace.LAUNCHES), trace.timed("typing k"):
        pass
    assert capsys.readouterr().err == ""
