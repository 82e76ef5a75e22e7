"""Launches that take long say on a terminal how far they are."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.interp import progress_bar


@ct.kernel
def counts(x, n):
    i = ct.bid(0)
    t = ct.load(x, i, (4,))
    for _ in range(n):
        t = t + 1
    ct.store(x, i, t)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds pass when somebody looks."""

    def __init__(self, step: float):
        self.step, self.now = step, 0.0

    def monotonic(self) -> float:
        self.now += self.step
        return self.now


def shown(monkeypatch, step: float, stderr: io.StringIO, blocks: int = 3000, **options) -> str:
    monkeypatch.setattr(progress_bar, "time", Clock(step))
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    x = np.zeros(4 * blocks, np.float32)
    with settings.override(**options):
        for _ in range(2):  # the second is a repeated launch
            ct.launch(None, (blocks,), counts, (x, 2))
    assert (x == 4).all()
    return stderr.getvalue()


@pytest.mark.parametrize("schedule, blocks", [(None, 100_000), ("batch", 100_000), ("block", 500),
                                              ("interleave", 500)])
def test_a_long_launch_shows_blocks_rate_and_time(monkeypatch, schedule, blocks):
    text = shown(monkeypatch, 0.7, Terminal(), blocks, SCHEDULE=schedule)
    done = [int(n) for n in re.findall(rf"(\d+)/{blocks}", text)]
    assert "counts" in text and done and done[0] > 0, text
    assert re.search(r"\d+:\d\d:\d\d", text)


@pytest.mark.parametrize("step, stderr", [(1e-9, Terminal()), (0.7, io.StringIO())], ids=["short", "no terminal"])
def test_others_show_nothing(monkeypatch, step, stderr):
    assert shown(monkeypatch, step, stderr, SCHEDULE="block") == ""
    assert shown(monkeypatch, step, stderr) == ""


def test_without_stderr(monkeypatch):
    monkeypatch.setattr(progress_bar, "time", Clock(3.0))
    monkeypatch.setattr(sys, "stderr", None)
    with settings.override(SCHEDULE="block"):
        ct.launch(None, (4,), counts, (np.zeros(16, np.float32), 2))


def test_a_debugger_has_the_terminal_alone(monkeypatch):
    monkeypatch.setattr(progress_bar.debugger, "attached", lambda: True)
    assert shown(monkeypatch, 0.7, Terminal()) == ""


def test_what_is_shown_vanishes_after_an_error(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(progress_bar, "time", Clock(3.0))
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(ValueError), progress_bar.Progress("k", (10, 1, 1)) as p:
        p.add(1)
        raise ValueError
    assert "1/10" in terminal.getvalue() and terminal.getvalue().endswith("\x1b[2K")
