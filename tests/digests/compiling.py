"""The way into the compiler: from a kernel and arguments to bytecode. All that is not public is imported here.

Bytecode holds the positions of source lines. It is taken without them, so that an edit above a kernel changes nothing;
they have a text of their own, in which files have numbers, and lines count from the first one that is named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cutile.compilation.launch_signature import of_launch
from cutile.gpu import to_bytecode as compiling
from cutile.gpu.facts import of_parameters
from cutile.gpu.target import ARCHITECTURES
from cutile.gpu.tileir.builder import Module
from cutile.ir.nodes import Kernel
from cutile.ir.text import to_text
from cutile.spans import Span

TARGETS = (None, *(f"sm_{n}" for n in ARCHITECTURES))
VERSIONS = ("13.1", "13.2", "13.3", "13.4")
NEWEST = VERSIONS[-1]


@dataclass(frozen=True)
class Launch:
    """What a launch compiles: the typed program, what is known of its parameters, options, and the entry's name."""

    program: Kernel
    facts: tuple
    options: Any
    symbol: str

    @property
    def text(self) -> str:
        """Equal for launches that compile to equal bytecode."""
        return "\n".join([self.symbol, str(self.options), *map(repr, self.facts), to_text(self.program, True)])


def launched(kernel: Any, args: tuple) -> Launch:
    """What a launch on a GPU compiles for these arguments; errors as the launch gives them."""
    arguments = kernel.classify(args)
    program = kernel.program(arguments).kernel
    constraints, symbol = of_launch(kernel, arguments)
    return Launch(program, tuple(of_parameters(constraints)), kernel.options, symbol)


def compiled(launch: Launch, target: str | None, version: str = NEWEST) -> Module:
    return _module_of(launch.program, launch.facts, target, version, launch.options, symbol=launch.symbol)


_module_of = compiling.module_of


def listen(heard: Callable[[Launch, Any, Any], None]) -> None:
    """From now on whatever is compiled ahead of time is told to `heard`: launch, target and version."""

    def module_of(program, facts=None, target=None, version=None, options=None, *, symbol=None, **others):
        heard(Launch(program, tuple(facts or ()), options, symbol), target, version)
        return _module_of(program, facts, target, version, options, symbol=symbol, **others)

    compiling.module_of = module_of


# ------------------------------------------------------------------ positions


def without_positions(module: Module) -> bytes:
    """The bytecode of a module, as it is where nothing has a position."""
    for e in module.contents.entries:
        e.loc = None
    return module.to_bytes()


def positions(module: Module) -> str:
    """Where each operation stands, in the order of the bytecode."""
    first: dict[str, int] = {}
    out = []
    for e in module.contents.entries:
        out.append(_said(e.loc, first))
        waiting = [e.block]
        while waiting:
            for op in waiting.pop().ops:
                out.append(f"{op.spec.name} {_said(op.loc, first)}")
                waiting += op.regions
    return "\n".join(out)


def _said(span: Span | None, first: dict[str, int]) -> str:
    """A position and who called it; `first` has the first line that was met of each file."""
    parts = []
    while span is not None:
        line = span.line - first.setdefault(span.filename, span.line)
        file = list(first).index(span.filename)
        parts.append(f"{file}:{line}:{span.col} {span.end_line - span.line}:{span.end_col} {span.function}")
        span = span.call_site
    return " from ".join(parts) or "nowhere"
