"""Results that searches leave on disk and in files."""

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

import cutile as ct
from cutile.cli.main import app
from tests.functions.kernels import scaled_kernel
from tests.functions.shows import shows
from tests.functions.tuning import TILES, X, tuned, wrong_at_16

pytestmark = pytest.mark.usefixtures("own_cache")


@shows("TUN-7.disk", "TUN-7.content")
def test_results_on_disk(times):
    times[16] = 1.0
    tuned()(X, 2.0)
    count = len(times["tried"])
    again = tuned()
    assert np.array_equal(again(X, 2.0), X * 2) and len(times["tried"]) == count and again.last.best == {"TILE": 16}
    tuned(TILES[:2])(X, 2.0)
    assert len(times["tried"]) > count
    count = len(times["tried"])
    tuned(TILES[:1])(X, 2.0)
    assert len(times["tried"]) > count
    count = len(times["tried"])
    tuned(TILES[:1], kernel=wrong_at_16)(X, 2.0)
    assert len(times["tried"]) > count


def test_damaged_results_are_none(times, tmp_path):
    tuned()(X, 2.0)
    [path] = (tmp_path / "cache" / "tuned").glob("*.json")
    for text in ("", "[]", "{}", path.read_text().replace('"format": 2', '"format": 1')):
        path.write_text(text)
        count = len(times["tried"])
        tuned()(X, 2.0)
        assert len(times["tried"]) > count


@shows("TUN-7.export", "TUN-7.save")
def test_files(times, tmp_path, monkeypatch):
    times[16] = 1.0
    f = tuned(save=tmp_path / "best.json")
    f(X, 2.0), f(X[:10], 2.0)
    f.export(tmp_path / "other.json")
    assert len(json.loads((tmp_path / "best.json").read_text())["results"]) == 2
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path / "empty"))
    count = len(times["tried"])
    tuned(save=tmp_path / "best.json")(X, 2.0)
    g = tuned()
    g.load(tmp_path / "other.json")
    assert np.array_equal(g(X, 2.0), X * 2) and g.last.best == {"TILE": 16} and len(times["tried"]) == count
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="no file with results"):
        g.load(tmp_path / "other.json")
    os.mkfifo(tmp_path / "pipe")
    for endless in ("/dev/zero", tmp_path / "pipe"):
        with pytest.raises(ValueError, match="is a device or a pipe"):
            g.load(endless)


@shows("TUN-7.save")
def test_a_file_gets_what_was_kept_before(times, tmp_path):
    tuned()(X, 2.0)
    count = len(times["tried"])
    tuned(save=tmp_path / "best.json")(X, 2.0)
    assert len(times["tried"]) == count
    assert len(json.loads((tmp_path / "best.json").read_text())["results"]) == 1


@shows("TUN-7.save")
def test_files_that_cannot_be_written_are_refused_before_a_search(times, tmp_path, monkeypatch):
    nowhere, locked = tmp_path / "nowhere", tmp_path / "locked"
    locked.mkdir()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != locked and access(path, mode))
    for again in range(2):  # where nothing was found before, and where a result is kept on disk
        for folder, kind, says in ((nowhere, FileNotFoundError, "names a file in a folder that does not exist"),
                                   (locked, PermissionError, "names a file in a folder that may not be written to")):
            f = tuned(save=folder / "best.json")
            for call in (f, f.best, *[f.tune] * (not again)):
                with pytest.raises(kind, match=f"save= of ct.autotune {says}") as e:
                    call(X, 2.0)
                assert e.value.filename == str(folder / "best.json")
            assert not times["tried"] or again
        tuned()(X, 2.0)
    nowhere.mkdir()
    assert np.array_equal(tuned(save=nowhere / "best.json")(X, 2.0), X * 2) and (nowhere / "best.json").exists()


@shows("TUN-7.export")
def test_results_of_another_function(times, tmp_path):
    f = tuned()
    f(X, 2.0)
    f.export(tmp_path / "best.json")
    g = ct.autotune(TILES, quiet=True)(ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"), name="g"))
    with pytest.warns(UserWarning, match="best.json' has no results of g, only of scaled; calls of g search"):
        g.load(tmp_path / "best.json")


def test_commands(times):
    times[16] = 1.0
    assert said("cache", "tuned") == "no configurations are kept\n"
    tuned()(X, 2.0)
    shown = said("cache", "tuned")
    assert "scaled" in shown and "interpreter" in shown and "16" in shown
    assert said("cache", "tuned", "--clear") == "removed 1\n"
    assert said("cache", "tuned") == "no configurations are kept\n"


def said(*words):
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output
