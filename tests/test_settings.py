"""Settings: where a value comes from, which values are accepted, and the text of refusals."""

import contextvars
import os
import threading
from contextlib import nullcontext

import pytest

from cutile import settings


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for s in settings.table().values():
        monkeypatch.delenv(s.variable, raising=False)


def test_defaults_without_environment():
    assert {n: settings.get(n) for n in settings.table()} == {n: s.default for n, s in settings.table().items()}


@pytest.mark.parametrize("name, text, value", [
    ("CHECK", "1", True), ("CHECK", "off", False), ("CHECK", "True", True),
    ("DEBUG", "0", 0), ("DEBUG", "6", 6),
    ("SCHEDULE", "block", "block"), ("SCHEDULE", " Interleave ", "interleave"),
    ("UNDETERMINED", "poison", "poison"), ("PORTABLE", "1", True),
    ("STEP_LIMIT", "1000", 1000), ("BACKEND", "interp", "interp"),
    ("SANITIZE", "all", frozenset(settings.CHECKS)), ("SANITIZE", " Bounds , alias", frozenset(("bounds", "alias"))),
    ("PROFILE", "1", "cutile.speedscope.json"), ("PROFILE", "0", None), ("PROFILE", "x.json", "x.json"),
    ("SANITIZE", "off", frozenset()), ("SANITIZE", "alias,all", frozenset(settings.CHECKS)),
    ("SANITIZE", "memcheck", frozenset(("memcheck",))),
    ("SANITIZE", "traps", frozenset(settings.TRAPS)), ("SANITIZE", "nan,race", frozenset(("nan", "race"))),
    ("MEMORY", "64M", 64 << 20), ("MEMORY", "1000", 1000),
    ("BLOCK", "3,0,1", (3, 0, 1)), ("BLOCK", "2", (2, 0, 0)),
])
def test_environment(monkeypatch, name, text, value):
    monkeypatch.setenv("CUTILE_" + name, text)
    got = settings.get(name)
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize("name, text", [
    ("CHECK", "maybe"), ("DEBUG", "7"), ("DEBUG", "-1"), ("DEBUG", "x"), ("SCHEDULE", "blocks"),
    ("UNDETERMINED", "nan"), ("SANITIZE", "bound"),
    ("SANITIZE", "off,bounds"), ("SANITIZE", "all,memcheck"), ("SANITIZE", "bounds alias"),
    ("STEP_LIMIT", "0"), ("BACKEND", "cpu"), ("MEMORY", "much"), ("MEMORY", "-1"),
    ("BLOCK", "1,2,3,4"), ("BLOCK", "a"),
])
def test_refusal_names_variable_value_and_what_is_accepted(monkeypatch, name, text):
    monkeypatch.setenv("CUTILE_" + name, text)
    with pytest.raises(ValueError) as e:
        settings.get(name)
    assert str(e.value) == f"CUTILE_{name} is {text!r}; it accepts {settings.table()[name].accepts}"


def test_read_at_call_time_and_empty_is_unset(monkeypatch):
    monkeypatch.setenv("CUTILE_DEBUG", "2")
    assert settings.get("DEBUG") == 2
    monkeypatch.setenv("CUTILE_DEBUG", "3")
    assert settings.get("DEBUG") == 3
    monkeypatch.setenv("CUTILE_DEBUG", "")
    assert settings.get("DEBUG") == 0


def test_untouched(monkeypatch):
    """`untouched`, and the C code with the same purpose."""

    def both(*names):
        overridden, get, space, name, environ, behind, *keys = settings.watch(*names)
        assert space[name] is environ is os.environ and (overridden[0] or not get())
        assert settings.untouched(*names) == (not get() and not any(k in behind for k in keys))
        return settings.untouched(*names)

    assert both("DEBUG", "BACKEND") and both()
    monkeypatch.setenv("CUTILE_BACKEND", "interp")
    assert not both("DEBUG", "BACKEND") and both("DEBUG")
    monkeypatch.delenv("CUTILE_BACKEND")
    with settings.override(BACKEND=None):
        assert not both("BACKEND")
    assert both("DEBUG", "BACKEND")


def test_an_environment_of_another_kind(monkeypatch):
    monkeypatch.setattr(os, "environ", {"CUTILE_DEBUG": "2"})
    assert settings.get("DEBUG") == 2 and settings.get("CHECK") is False
    assert not settings.untouched("DEBUG") and settings.untouched("CHECK") and settings.watch("DEBUG") is None


def test_override_nests_and_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("CUTILE_SCHEDULE", "block")
    with settings.override(SCHEDULE="batch", CHECK=True):
        with settings.override(SCHEDULE=None):
            assert settings.get("SCHEDULE") is None
            assert settings.get("CHECK") is True
        assert settings.get("SCHEDULE") == "batch"
    assert settings.get("SCHEDULE") == "block"
    assert settings.get("CHECK") is False


def test_override_ends_with_an_exception():
    with pytest.raises(KeyError), settings.override(PORTABLE=True):
        raise KeyError
    assert settings.get("PORTABLE") is False


@pytest.mark.parametrize("values, message", [
    ({"SCHEDULE": "x"}, "CUTILE_SCHEDULE is 'x'; it accepts batch, block or interleave"),
    ({"DEBUG": True}, "CUTILE_DEBUG is True; it accepts an integer from 0 to 6"),
    ({"CHECK": None}, "CUTILE_CHECK is None; it accepts 1 or 0"),
    ({"CHEKC": True}, "there is no setting 'CHEKC'; the settings are CHECK, "),
])
def test_override_refuses(values, message):
    with pytest.raises(ValueError) as e, settings.override(**values):
        pass
    assert str(e.value).startswith(message)


def test_an_override_stays_in_its_context():
    seen = []
    with settings.override(DEBUG=5):
        t = threading.Thread(target=lambda: seen.append(settings.get("DEBUG")))
        t.start()
        t.join()
        c = contextvars.copy_context()
    assert seen == [0]
    assert c.run(settings.get, "DEBUG") == 5


@pytest.mark.parametrize("before", ["", "2"])  # nothing is set; something is set
def test_steady_looks_a_variable_up_once(monkeypatch, before):
    monkeypatch.setenv("CUTILE_DEBUG", before) if before else None
    with settings.steady():
        first = settings.get("DEBUG"), settings.get("SEED")
        monkeypatch.setenv("CUTILE_DEBUG", "5")
        monkeypatch.setenv("CUTILE_SEED", "7")
        assert (settings.get("DEBUG"), settings.get("SEED")) == first == (int(before or 0), 0)
        with settings.override(DEBUG=3):
            assert settings.get("DEBUG") == 3
    assert (settings.get("DEBUG"), settings.get("SEED")) == (5, 7)


def test_untouched_without_names_asks_for_all_of_the_interpreter(monkeypatch):
    for s in settings.table().values():
        monkeypatch.delenv(s.variable, raising=False)
    assert settings.untouched()
    with settings.override(SEED=1):
        assert not settings.untouched() and not settings.untouched("DEBUG")
    with settings.steady():
        assert settings.untouched()
        monkeypatch.setenv("CUTILE_SEED", "1")
        assert settings.untouched()  # as it was before the launch
    assert not settings.untouched() and settings.untouched("DEBUG")
    with settings.steady():
        assert not settings.untouched()


def test_settings_of_devices_are_nothing_to_the_interpreter(monkeypatch):
    given = {"BACKEND": "interp", "CACHE_DIR": "/tmp", "LINEINFO": "1", "CACHE_SIZE": "7"}
    for s in settings.table().values():
        monkeypatch.delenv(s.variable, raising=False)
    for name, text in given.items():
        monkeypatch.setenv(f"CUTILE_{name}", text)
    for context in (nullcontext, settings.steady, settings.steady):  # one keeps no values for others
        with context():
            assert settings.untouched() and not settings.untouched(*given)
            assert [settings.get(name) for name in given] == ["interp", "/tmp", True, 7]
            assert settings.get("SEED") == 0
    monkeypatch.setenv("CUTILE_SEED", "1")
    with settings.steady():
        assert not settings.untouched() and settings.get("CACHE_DIR") == "/tmp"


def test_unknown_variables_are_found(monkeypatch):
    monkeypatch.setenv("CUTILE_DEBG", "1")
    monkeypatch.setenv("CUTILE_DEBUG", "1")
    assert settings.unknown() == ["CUTILE_DEBG"]


def test_table_is_complete_and_read_only():
    for name, s in settings.table().items():
        assert s.name == name and s.doc and s.accepts
    with pytest.raises(TypeError):
        settings.table()["NEW"] = None


def test_a_fixed_context_does_not_see_the_environment(monkeypatch):
    monkeypatch.setenv("CUTILE_DEBUG", "5")
    with settings.override(SEED=7):
        context = settings.fixed(CHECK=True)
    assert [context.run(settings.get, name) for name in ("CHECK", "DEBUG", "SEED")] == [True, 0, 0]
    assert settings.get("DEBUG") == 5
    with pytest.raises(ValueError, match="CUTILE_CHECK is 7; it accepts 1 or 0"):
        settings.fixed(CHECK=7)


def test_folders(monkeypatch, tmp_path):
    """~ is the current home, even if it was another one when the variable was first read."""
    monkeypatch.setenv("CUTILE_REPRODUCE", "~/x")
    for home in ("/a", "/b"):
        monkeypatch.setenv("HOME", home)
        monkeypatch.setenv("USERPROFILE", home)
        assert settings.folder("REPRODUCE") == os.path.expanduser("~/x") and home[1:] in settings.folder("REPRODUCE")
    monkeypatch.delenv("CUTILE_REPRODUCE")
    assert settings.folder("REPRODUCE") is None
    with settings.override(REPRODUCE="~nobody-of-that-name/x"), pytest.raises(settings.SettingError, match="no home"):
        settings.folder("REPRODUCE")
    with settings.override(REPRODUCE=tmp_path):
        assert settings.folder("REPRODUCE") == str(tmp_path)


def test_sanitize_nests_and_stays_in_its_thread():
    seen = []
    with settings.sanitize("bounds"):
        with settings.sanitize("off"):
            assert not settings.get("SANITIZE")
        assert settings.get("SANITIZE") == {"bounds"}
        other = threading.Thread(target=lambda: seen.append(settings.get("SANITIZE")))
        other.start()
        other.join()
        with settings.sanitize():
            assert settings.get("SANITIZE") == set(settings.CHECKS)
    assert not settings.get("SANITIZE") and seen == [frozenset()]
    with pytest.raises(settings.SettingError, match="CUTILE_SANITIZE is 'everything'; it accepts off, all, traps, or"):
        with settings.sanitize("everything"):
            pass


def test_sanitize_decorates():
    @settings.sanitize("alias")
    def checks():
        return settings.get("SANITIZE")

    assert checks() == {"alias"} and checks() == {"alias"} and not settings.get("SANITIZE")
