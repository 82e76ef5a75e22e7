"""The key of compiled code: how files are named in it, and which sources count."""

import linecache
import sys

from cutile.gpu import cache_key


def test_a_notebooks_cell_counts_by_its_content(monkeypatch):
    for name, lines in {"<cell 1>": ["a\n"], "<cell 2>": ["a\n"], "<cell 3>": ["b\n"]}.items():
        monkeypatch.setitem(linecache.cache, name, (1, None, lines, name))
    assert cache_key.portable("<cell 1>") == cache_key.portable("<cell 2>") != cache_key.portable("<cell 3>")


def test_files_are_named_from_the_innermost_folder_of_the_path(monkeypatch, tmp_path):
    (tmp_path / "src" / "p").mkdir(parents=True)
    file = tmp_path / "src" / "p" / "k.py"
    file.write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "src"), str(tmp_path / "sr")])
    assert cache_key.portable(str(file)) == "p/k.py"
    monkeypatch.setattr(sys, "path", [])
    assert cache_key.portable(str(file)) == "k.py"


def test_the_sources_that_make_code_are_in_the_key(tmp_path, monkeypatch):
    package = tmp_path / "cutile"
    counted = ("dtypes.py", "ir/a.py", "ops/b.py", "analysis/e.py", "passes/c.py", "gpu/tileir/d.py")
    for name in ("types.py", "gpu/cache_key.py", *counted):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(name)
    monkeypatch.setattr(cache_key, "__file__", str(package / "gpu" / "cache_key.py"))
    seen = set()
    for name in (*counted, "gpu/tileir/new.py"):
        seen.add(cache_key.sources.__wrapped__())
        (package / name).write_text("edited")
    seen.add(cache_key.sources.__wrapped__())
    assert len(seen) == 8
    (package / "front.py").write_text("what it does shows in the IR")
    assert cache_key.sources.__wrapped__() in seen
