"""What is shown on standard error, whatever stands in its place."""

import io
import sys

import pytest

from cutile._support import terminal


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Gone(Terminal):
    def write(self, text):
        raise BrokenPipeError


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, io.StringIO(), closed(), object()], ids=["none", "file", "closed", "object"])
def test_nobody_would_see_it(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)
    assert terminal.terminal() is None
    terminal.show("text")


def test_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    terminal.show("half")
    terminal.show("done")
    assert terminal.terminal() is stream and stream.getvalue() == "\r\x1b[Khalf\r\x1b[Kdone"


def test_a_terminal_that_has_gone(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Gone())
    terminal.show("text")
