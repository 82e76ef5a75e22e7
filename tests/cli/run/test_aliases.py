"""cutile under the name of another implementation."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

import cutile
from cutile.cli.run.aliases import NAMES, imported_as


@pytest.mark.parametrize("name", ["cuda.tile", "no_such_package.tile"])
def test_modules_are_those_of_cutile(name):
    spec, before = cutile.__spec__, dict(sys.modules)
    with imported_as(name):
        scope: dict = {}
        exec(f"import {name} as ct\nfrom {name} import compilation, load\nimport {name}.tune\n"
             f"from {name}.compilation import KernelSignature", scope)
        assert scope["ct"] is cutile and scope["load"] is cutile.load
        assert scope["KernelSignature"] is cutile.compilation.KernelSignature
        assert sys.modules[f"{name}.tune"] is importlib.import_module("cutile.tune")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"{name}.no_such_module")
    assert cutile.__spec__ is spec and importlib.import_module("cutile.tune").__spec__.name == "cutile.tune"
    assert {n: m for n, m in sys.modules.items() if n.startswith(name)} == {
        n: m for n, m in before.items() if n.startswith(name)}


def test_scripts_for_cuda_compute():
    with imported_as("cuda.compute"):
        scope: dict = {}
        exec("import cuda.compute as cc\nfrom cuda.compute import OpKind, algorithms, iterators, types\n"
             "from cuda.compute.op import RawOp\nimport cuda.compute.struct, cuda.compute.determinism\n"
             "import cuda.compute.typing", scope)
        assert scope["cc"] is cutile.compute and scope["algorithms"].reduce_into is cutile.compute.reduce_into
        assert scope["RawOp"] is cutile.compute.RawOp and set(NAMES) == {"cuda.tile", "cuda.compute"}
        assert scope["types"].float32 == scope["types"].from_numpy_dtype("f4")
    assert "cuda.compute" not in sys.modules


def test_an_installed_implementation_is_back_afterwards(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tile.py").write_text("WHO = 'other'")
    monkeypatch.syspath_prepend(tmp_path)
    import other.tile as real
    with imported_as("other.tile"):
        import other.tile as ours
        assert ours is cutile
    import other
    assert other.tile is real and sys.modules["other.tile"] is real
    for name in ("other", "other.tile"):
        monkeypatch.delitem(sys.modules, name)
