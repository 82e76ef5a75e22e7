"""Where the cache is, how much it may keep, and in which folders it trusts."""

import os
import tempfile
from pathlib import Path

import pytest

from cutile import settings
from cutile.gpu import cache
from cutile.gpu.cache import Cache
from tests.gpu.cache.entries import KEY, assert_silent, posix, put
from tests.other_users import another, give_away


@posix
@pytest.mark.parametrize(("mode", "named", "problem"), [
    (0o700, True, None), (0o755, True, None), (0o755, False, None), (0o700, False, None), (0o775, True, None),
    (0o777, True, "every user"), (0o777, False, "every user"), (0o1777, True, "every user"),
    (0o702, True, "every user"), (0o775, False, "its group"), (0o720, False, "its group")])
def test_folders_that_others_may_write(tmp_path, monkeypatch, mode, named, problem):
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.delenv("CUTILE_CACHE", raising=False)
    folder = tmp_path / "cutile"
    folder.mkdir()
    shared_group = os.stat(folder).st_uid + 1
    try:
        os.chown(folder, -1, shared_group)
    except OSError:
        shared_group = os.stat(folder).st_gid
    os.chmod(folder, mode)
    if problem == "its group" and shared_group == os.stat(folder).st_uid:
        pytest.skip("this user has no other group")
    for name in ("CUTILE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(*(("CUTILE_CACHE_DIR", str(folder)) if named else ("XDG_CACHE_HOME", str(tmp_path))))
    if problem is None:
        assert cache.current().folder == folder
        return
    with pytest.warns(RuntimeWarning, match=f"not taken from .*{problem}.*compiled again in each process"):
        assert cache.current() is None
    assert_silent(lambda: cache.current())  # once
    assert cache.current() is None


@posix
def test_a_group_of_one_user_is_no_group(tmp_path, monkeypatch):
    monkeypatch.delenv("CUTILE_CACHE_DIR", raising=False)
    monkeypatch.setattr(os, "stat", lambda p: os.stat_result((0o40775, 0, 0, 1, os.geteuid(), os.geteuid(), *[0] * 4)))
    assert cache.distrusted(tmp_path) is None


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
def test_a_folder_of_another_user(tmp_path, monkeypatch, mode):
    monkeypatch.setattr(cache, "_warned", set())
    folder = tmp_path / "kept"
    put(Cache(folder, 1 << 20))
    os.chmod(folder, mode)
    give_away(folder)
    with settings.override(CACHE_DIR=folder, CACHE=True), pytest.warns(RuntimeWarning, match="owned by another user"):
        assert cache.current() is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="looks at a folder of root")
def test_a_folder_of_root_serves_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with another():
        assert cache.distrusted(Path()) is None


@posix
@pytest.mark.parametrize("mask", [0, 0o002, 0o022, 0o077])
def test_folders_that_are_made_here_are_trusted(tmp_path, monkeypatch, mask):
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "usual"))
    monkeypatch.delenv("CUTILE_CACHE_DIR", raising=False)
    monkeypatch.delenv("CUTILE_CACHE", raising=False)
    before = os.umask(mask)
    try:
        usual = cache.current()
        with settings.override(CACHE_DIR=tmp_path / "named"):
            named = cache.current()
        for kept in (usual, named):
            put(kept)
            with kept.lock(KEY) as held:
                assert held
        assert cache.current() is not None and cache.distrusted(named.folder) is None
    finally:
        os.umask(before)
    assert os.stat(usual.folder).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("link", ["file", "folder"])
@posix
def test_locks_are_not_made_through_links(kept, tmp_path, link):
    kept.folder.mkdir()
    victim = tmp_path / "victim"
    if link == "file":
        (kept.folder / "locks").mkdir()
        (kept.folder / "locks" / KEY[:2]).symlink_to(victim)
    else:
        victim.mkdir()
        (kept.folder / "locks").symlink_to(victim)
    with kept.lock(KEY) as held:
        assert not held
    assert not victim.exists() or os.listdir(victim) == []


def test_the_folder(tmp_path):
    with settings.override(CACHE_DIR=tmp_path, CACHE_SIZE="3K", CACHE=True):
        assert (cache.current().folder, cache.current().limit) == (tmp_path, 3072)
    with settings.override(CACHE=False):
        assert cache.current() is None


@posix
def test_homes_in_the_name_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name, found in (("~", tmp_path), ("~/kept", tmp_path / "kept"), ("./~/kept", Path("~/kept")), ("a~", "a~")):
        monkeypatch.setenv("CUTILE_CACHE_DIR", name)
        assert cache.folder() == Path(found)
    monkeypatch.setenv("CUTILE_CACHE_DIR", "~nobody-of-that-name/kept")
    with pytest.raises(ValueError, match="CUTILE_CACHE_DIR is .*no home folder"):
        cache.folder()
    monkeypatch.delenv("CUTILE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "~/other")
    assert cache.folder() == tmp_path / "other" / "cutile"


@posix
def test_a_user_without_a_home(tmp_path, monkeypatch):
    for name in ("CUTILE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda p: p)
    assert cache.folder() == Path(tempfile.gettempdir(), f"cache-{os.getuid()}", "cutile")


@pytest.mark.parametrize("variables", [{}, {"XDG_CACHE_HOME": "/somewhere/else"}, {"XDG_CACHE_HOME": " "},
                                       {"HOME": "/home/of/another"}])
def test_the_usual_folder_is_that_of_platformdirs(monkeypatch, variables):
    import platformdirs

    for name in ("CUTILE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/of/one"} | variables).items():  # without one the two differ
        monkeypatch.setenv(name, value)
    assert cache.folder() == platformdirs.user_cache_path("cutile", appauthor=False)


@pytest.mark.parametrize("text, size", [("0", 0), ("17", 17), ("2k", 2048), ("500M", 500 << 20), ("2G", 2 << 30),
                                        (9, 9)])
def test_sizes(text, size):
    with settings.override(CACHE_SIZE=text):
        assert settings.get("CACHE_SIZE") == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1.5G", "2GB", True, None])
def test_sizes_that_are_refused(text):
    with pytest.raises(ValueError, match="CUTILE_CACHE_SIZE"), settings.override(CACHE_SIZE=text):
        pass
