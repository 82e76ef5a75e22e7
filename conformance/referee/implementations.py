"""Implementations for the referee: any adapter of the suite, and the generator's own reference."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from conformance import adapters
from conformance.generate import Program, reference

Modules = Callable[[str], ModuleType]
EXPORTED = "exported:"


class Implementation:
    """Runs a program: `run` gives its arguments as they are afterwards, or raises the implementation's error.

    `modules(api)` is the program as a module that imports that API; it is executed once.
    `not_applicable`: errors that say that the hardware lacks something.
    `spoiled`: the implementation can run nothing more in this process.
    """

    name = "unnamed"
    spoiled = False
    not_applicable: tuple[type[BaseException], ...] = ()

    def run(self, program: Program, modules: Modules) -> tuple:
        raise NotImplementedError


class Reference(Implementation):
    """The meanings that the generator wrote beside the ops."""

    name = "reference"

    def run(self, program: Program, modules: Modules) -> tuple:
        args = modules("cutile").arguments()
        reference.run(program, list(args))
        return args


class ByAdapter(Implementation):
    """An implementation with the public API, through its adapter.

    Adapters of one API share the program's kernel, and so its typed form. An adapter that changes the meaning of ops
    needs `own_kernels = True`.
    """

    def __init__(self, adapter: Any):
        self.adapter, self.name, self.not_applicable = adapter, adapter.name, adapter.not_applicable

    @property
    def spoiled(self) -> bool:
        return self.adapter.lost() is not None

    def run(self, program: Program, modules: Modules) -> tuple:
        if getattr(self.adapter, "own_kernels", False):
            with loaded(program) as own:
                return self._launch(program, own(self.adapter.module))
        return self._launch(program, modules(self.adapter.module))

    def _launch(self, program: Program, module: ModuleType) -> tuple:
        args = module.arguments()
        self.adapter.launch(program.grid, module.kernel, args)
        return args


def implementation(name: str) -> Implementation:
    """By name: "reference", a known adapter, package.module:Adapter, or exported:API:FOLDER."""
    if name == "reference":
        return Reference()
    if name.startswith(EXPORTED):
        from conformance.referee.replay import Exported  # needs a GPU's driver

        api, _, folder = name.removeprefix(EXPORTED).partition(":")
        return Exported(api, Path(folder))
    return ByAdapter(adapters.load(name))


def known_as(name: str) -> str:
    """The name under which known differences of this implementation are listed."""
    if not name.startswith(EXPORTED):
        return name
    api = name.removeprefix(EXPORTED).partition(":")[0]
    return "cutile:gpu" if api == "cutile" else api


_numbers = iter(range(1 << 62))


@contextmanager
def loaded(program: Program) -> Iterator[Modules]:
    """The program as modules, while they are needed. Their source can be read, as the APIs need it."""
    made: dict[str, ModuleType] = {}

    def module(api: str) -> ModuleType:
        if api not in made:
            made[api] = _executed(program.source(api))
        return made[api]

    try:
        yield module
    finally:
        for m in made.values():
            del sys.modules[m.__name__], linecache.cache[m.__file__]


def _executed(source: str) -> ModuleType:
    name = f"generated_{next(_numbers)}"
    module = ModuleType(name)
    module.__file__ = filename = f"<{name}.py>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    sys.modules[name] = module
    exec(compile(source, filename, "exec"), module.__dict__)
    return module


def flat(program: Program, args: tuple) -> list[tuple[str, np.ndarray]]:
    """The arrays among the arguments, including those in lists."""
    out = []
    for p, a in zip(program.params, args, strict=True):
        if isinstance(a, list):
            out += [(f"{p.name}[{i}]", x) for i, x in enumerate(a)]
        elif isinstance(a, np.ndarray):
            out.append((p.name, a))
    return out
