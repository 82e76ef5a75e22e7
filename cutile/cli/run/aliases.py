"""Lets scripts import cutile, or a part of it, under the name of another implementation: `import cuda.tile as ct`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

import cutile

NAMES = {"cuda.tile": "cutile", "cuda.compute": "cutile.compute"}  # what scripts import, and what they get


@contextmanager
def imported_as(name: str) -> Iterator[None]:
    """Within the `with` block, `import NAME` imports cutile or what NAMES says, and submodules are those of that."""
    finder = _Finder(name, NAMES.get(name, cutile.__name__))
    before = {n: m for n, m in sys.modules.items() if finder.real(n) is not None}
    for n in before:
        del sys.modules[n]
    sys.meta_path.insert(0, finder)
    parent = _parent(name)
    own = vars(parent).get(name.rpartition(".")[2])
    try:
        setattr(parent, name.rpartition(".")[2], importlib.import_module(name))
        yield
    finally:
        sys.meta_path.remove(finder)
        for n in [n for n in sys.modules if finder.real(n) is not None]:
            del sys.modules[n]
        sys.modules.update(before)
        if own is None:
            delattr(parent, name.rpartition(".")[2])
        else:
            setattr(parent, name.rpartition(".")[2], own)


def _parent(name: str) -> types.ModuleType:
    """The package that the name is in; an empty one if there is none."""
    parent = name.rpartition(".")[0]
    try:
        return importlib.import_module(parent)
    except ImportError:
        made = sys.modules[parent] = types.ModuleType(parent)
        made.__path__ = []
        return made


class _Finder(MetaPathFinder):
    """Finds a package and its modules under another name."""

    def __init__(self, name: str, package: str):
        self.name, self.package = name, package

    def real(self, fullname: str) -> str | None:
        """The own name of a module that has this name to scripts; None for other modules."""
        if fullname == self.name or fullname.startswith(self.name + "."):
            return self.package + fullname[len(self.name):]
        return None

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        real = self.real(fullname)
        if real is None or importlib.util.find_spec(real) is None:
            return None
        return ModuleSpec(fullname, _Loader(real))


class _Loader(Loader):
    """Loads the module of cutile itself, so that there are no second ones."""

    def __init__(self, real: str):
        self.real = real

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        module = importlib.import_module(self.real)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has replaced it
