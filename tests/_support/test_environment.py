"""Variables are what os.environ says, whatever stands in its place."""

import os

import pytest

from cutile._support import environment


@pytest.fixture(params=["as it is", "a plain dictionary"], autouse=True)
def environ(request, monkeypatch):
    """os.environ, and a mapping that has no dictionary behind it."""
    if request.param == "a plain dictionary":
        monkeypatch.setattr(os, "environ", dict(os.environ))
    for name in ("ONE", "TWO"):
        os.environ.pop(environment.PREFIX + name, None)
    yield os.environ
    for name in ("ONE", "TWO"):
        os.environ.pop(environment.PREFIX + name, None)


def test_the_text_of_a_variable(environ):
    assert environment.text_of("ONE") is None
    for text in ("1", "", "ä"):
        environ["CUTILE_ONE"] = text
        assert environment.text_of("ONE") == text
    del environ["CUTILE_ONE"]
    assert environment.text_of("ONE") is None


def test_whether_any_is_set(environ):
    assert environment.none_set(("ONE", "TWO"))
    environ["CUTILE_TWO"] = ""
    assert environment.none_set(("ONE",)) and not environment.none_set(("ONE", "TWO"))
    del environ["CUTILE_TWO"]
    assert environment.none_set(("ONE", "TWO"))


def test_what_is_watched(environ):
    watched = environment.watch(("ONE", "TWO"))
    if type(environ) is dict:
        assert watched is None
        return
    holder, attribute, now, behind, *keys = watched
    assert holder[attribute] is now is os.environ
    environ["CUTILE_TWO"] = "2"
    assert [k in behind for k in keys] == [False, True]
