"""Running programs that were exported before, on a GPU without a compiler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from conformance.generate import Program
from conformance.referee.export import APPLICABLE, INDEX, SYMBOL, digest, path_of, signature_of
from conformance.referee.gpu import Gpu, GpuError, NoArray
from conformance.referee.implementations import Implementation, Modules
from conformance.referee.packing import pack


class NotExported(Exception):
    """The program has no machine code; the text is what the exporter said."""


class NotApplicable(Exception):
    """The target lacks something, or the export ended before this program."""


class Exported(Implementation):
    """The programs as one API exported them, from a folder that export.py wrote."""

    not_applicable = (NotApplicable, NoArray)

    def __init__(self, api: str, folder: Path, gpu: Gpu | None = None):
        self.name, self.api, self.folder = f"{api}, exported", api, folder
        self.index = json.loads((folder / INDEX).read_text())
        self.failures = self.index["failures"].get(api)
        if self.failures is None:
            raise SystemExit(f"{folder} has programs of {', '.join(self.index['failures'])}, none of {api}")
        self.gpu = gpu or Gpu()

    @property
    def spoiled(self) -> bool:
        return self.gpu.lost

    def run(self, program: Program, modules: Modules) -> tuple:
        kind, said = self.failures.get(str(program.seed), (None, ""))
        if kind is not None:
            raise (NotApplicable if kind == APPLICABLE else NotExported)(said)
        if str(program.seed) not in self.index["programs"]:
            raise NotApplicable("it was not exported")
        module = modules("cutile")
        args = module.arguments()
        signature = signature_of(module.kernel, args)
        if self.index["programs"].get(str(program.seed)) != digest(program, signature):
            raise SystemExit(f"program {program.seed} is not what {self.folder} was made of: export it again")
        cubin = path_of(self.folder, program.seed, self.api).read_bytes()
        try:
            self.gpu.run(cubin, SYMBOL, program.grid, list(arrays_in(args)),
                         lambda address, table: pack(signature, args, address, table))
        except GpuError as e:
            raise GpuError(f"{e}, launching") from None
        return args


def arrays_in(x: Any) -> Iterator[np.ndarray]:
    """All arrays among arguments, each once."""
    seen: set[int] = set()

    def walk(x: Any) -> Iterator[np.ndarray]:
        if isinstance(x, np.ndarray) and id(x) not in seen:
            seen.add(id(x))
            yield x
        elif isinstance(x, list | tuple):
            for v in x:
                yield from walk(v)

    return walk(x)
