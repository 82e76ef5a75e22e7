"""Folders of the assembler: nothing stays behind, and nothing of others goes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutile.gpu.tileir import work_folder as places
from cutile.gpu.tileir.work_folder import work_folder
from tests.gpu.tileir.test_tileiras import CODE, posix, stand_in
from tests.other_users import give_away

ROOT = Path(__file__).parents[3]
NAME = "cutile-tileiras-abcd_123"


@pytest.fixture
def parent(tmp_path, monkeypatch):
    """Where temporary files go, not yet looked through."""
    monkeypatch.setattr(places.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(places, "_looked_through", set())
    return tmp_path


def test_it_is_removed_with_what_is_in_it(parent):
    for error in (None, KeyError, KeyboardInterrupt):
        try:
            with work_folder() as folder:
                assert folder.parent == parent and os.listdir(parent) == [folder.name]
                (folder / "a").mkdir()
                (folder / "a" / "b").write_text("x")
                if error:
                    raise error
        except (KeyError, KeyboardInterrupt):
            pass
        assert os.listdir(parent) == []


def test_two_at_once(parent):
    with work_folder() as one, work_folder() as two:
        places._looked_through.clear()
        with work_folder() as three:  # looks through them
            assert len({one, two, three}) == 3 and set(parent.iterdir()) == {one, two, three}


@posix
def test_the_tool_works_there(parent, monkeypatch, tmp_path_factory):
    """Its temporary files are in it, and so is its current folder."""
    from cutile.gpu.tileir.tileiras import assemble

    tool = stand_in(tmp_path_factory.mktemp("tool"),
                    'for last; do :; done; printf "%s\\n" "$TMPDIR" "$TMP" "$TEMP" "$PWD" > "$last"')
    monkeypatch.setenv("TMPDIR", str(parent))
    said = assemble(CODE, "sm_90", tool=tool).decode().splitlines()
    assert len(said) == 4 and len(set(said)) == 1 and Path(said[0]).parent == parent
    assert os.listdir(parent) == []


HELD = """import sys, time
from cutile.gpu.tileir.work_folder import work_folder
with work_folder() as folder:
    (folder / "half").write_text("x")
    print(folder, flush=True)
    time.sleep(60)
"""


@posix
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_killed_process_leaves_goes_with_the_next(parent, sent):
    env = {**os.environ, "TMPDIR": str(parent)}
    killed = subprocess.Popen([sys.executable, "-c", HELD], env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    left = Path(killed.stdout.readline().strip())
    with work_folder():
        assert left.is_dir()  # while the other runs
    killed.send_signal(sent)
    killed.communicate()
    assert left.is_dir()
    places._looked_through.clear()
    with work_folder():
        assert not left.exists()
    assert os.listdir(parent) == []


def _folder(path: Path) -> None:
    path.mkdir(mode=0o700)
    (path / "x").write_text("mine")


@posix
@pytest.mark.parametrize(("name", "make"), [
    ("cutile-notes", _folder), ("cutile-tileiras", _folder), ("cutile-tileiras-abc", _folder),
    ("cutile-tileiras-abcd_1234", _folder), ("cutile-tileiras-ABCD_123", _folder), ("cutile-abcd_123", _folder),
    (NAME, lambda p: p.write_text("mine")), (NAME, lambda p: p.symlink_to(p.parent / "folder")), (NAME, os.mkfifo),
    (NAME, lambda p: (_folder(p), p.chmod(0o755)))],
    ids=["words", "prefix", "short", "long", "capitals", "other prefix", "file", "link", "pipe", "mode"])
def test_what_is_of_others_stays(parent, name, make):
    _folder(parent / "folder")
    make(parent / name)
    os.utime(parent / name, (1, 1), follow_symlinks=False)
    with work_folder():
        pass
    assert sorted(os.listdir(parent)) == sorted([name, "folder"]) and os.listdir(parent / "folder") == ["x"]


def test_what_is_of_another_user_stays(parent):
    _folder(parent / NAME)
    give_away(parent / NAME)
    with work_folder():
        pass
    assert os.listdir(parent) == [NAME]


@posix
@pytest.mark.parametrize(("age", "stays"), [(7200, False), (600, True)])
def test_where_there_are_no_locks_age_decides(parent, monkeypatch, age, stays):
    import contextlib

    monkeypatch.setattr(places, "lock_open", lambda fd: None)
    monkeypatch.setattr(places, "try_hold", lambda path: contextlib.nullcontext(None))
    _folder(parent / NAME)
    os.utime(parent / NAME, (time.time() - age,) * 2)
    with work_folder() as folder:
        assert folder.is_dir()
    assert (parent / NAME).exists() == stays


@posix
def test_a_new_folder_that_another_process_takes_for_abandoned(parent, monkeypatch):
    """Between its making and its locking: another is made."""
    made, taken = [], iter([True, False, False])
    mkdtemp, lock_open = places.tempfile.mkdtemp, places.lock_open

    def make(**kw):
        made.append(mkdtemp(**kw))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    def lock(fd):
        if next(taken):
            return False
        return lock_open(fd)

    monkeypatch.setattr(places.tempfile, "mkdtemp", make)
    monkeypatch.setattr(places, "lock_open", lock)
    with work_folder() as folder:
        assert str(folder) == made[2] and folder.is_dir()
