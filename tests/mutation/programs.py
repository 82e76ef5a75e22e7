"""What the suite launches, as programs that compile again on a mutant: a kernel, the types of its arguments, and what
is recorded of it.

A mutant is killed if bytecode, positions or messages of a program change: what `tests.digests` records, for one target
of each kind, and of errors of the front end all that they show. Nothing runs, so this judge is the cheapest.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from conformance.adapters.cutile_interp import Interp
from cutile.compilation.launch_signature import of_launch
from cutile.gpu.facts import of_parameters
from cutile.ir.nodes import Bind
from cutile.ir.text import to_text
from cutile.ir.walk import rewrite
from cutile.runtime import kernel as kernels
from tests.digests import compiling
from tests.digests.adapter import CHANGING, OLDEST_FOR, digest, running, said
from tests.digests.compiling import NEWEST, VERSIONS, Launch
from tests.mutation.lines import Line, Monitor
from tests.tileir_eval.adapter import Ordered

TARGETS = ("sm_90", "sm_100")


@dataclass
class Program:
    """A launch of a test, and by group what is recorded of it, the lines that this executes, and its seconds."""

    test: str
    kernel: Any
    arguments: list
    launch: Launch | None = None  # as typed without a mutant
    recorded: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, set[Line]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def typed(self) -> Launch:
        program = kernels.typed(self.kernel, [a.arg_type for a in self.arguments]).kernel
        constraints, symbol = of_launch(self.kernel, self.arguments)
        return Launch(program, tuple(of_parameters(constraints)), self.kernel.options, symbol)

    def parts(self, group: str) -> Iterator[str]:
        """What is recorded, piece by piece; an error is the last. Typed IR stands for what the front end gives, and
        mutants of the lowering get IR that is typed already.
        """
        if group == "tileir":
            if self.launch is not None:
                yield from bytecode(self.launch)
            return
        try:
            launch = self.typed()
        except Exception as e:
            yield _whole(e)
            return
        yield _text(launch)
        if group != "front":
            yield from bytecode(launch)

    def record(self, groups: Iterable[str], monitor: Monitor) -> bool:
        """Fill in what is recorded. False if it does not repeat."""
        try:
            self.launch = self.typed()
        except Exception:
            self.launch = None
        same = True
        for g in groups:
            before = list(self.parts(g))
            monitor.begin()
            began = time.monotonic()
            self.recorded[g] = list(self.parts(g))
            self.seconds[g] = time.monotonic() - began
            self.lines[g] = {(path, n) for path, numbers in monitor.end().items() for n in numbers}
            same &= before == self.recorded[g]
        return same

    def changed(self, group: str) -> bool:
        """Whether something else is recorded now. IR that is written otherwise counts only if bytecode differs."""
        try:
            now = self.parts(group)
            for i, was in enumerate(self.recorded[group]):
                got = next(now, None)
                if got != was and i == 0 and group != "tileir" and self.launch is not None and got is not None:
                    return list(bytecode(self.typed())) != self.recorded["tileir"]
                if got != was:
                    return True
            return next(now, None) is not None
        except BaseException:
            return True


def bytecode(launch: Launch) -> Iterator[str]:
    for target in TARGETS:
        yield _tried(launch, target, NEWEST)
    for version in VERSIONS:
        found = _tried(launch, OLDEST_FOR, version)
        yield found
        if not found.startswith("Tile"):
            break
    try:
        yield digest(compiling.positions(compiling.compiled(launch, OLDEST_FOR)))
    except Exception as e:
        yield said(e)


def _tried(launch: Launch, target: str | None, version: Any) -> str:
    """The digest of the bytecode, or the error; then the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            code = compiling.without_positions(compiling.compiled(launch, target, version))
            what = digest(re.sub(CHANGING, lambda found: b"0" * len(found[0]), code))
        except Exception as e:
            what = said(e)
    return "; ".join([what, *(str(w.message) for w in caught)])


def _whole(e: BaseException) -> str:
    """All that an error shows: each message of the kernel, its place, its notes and its help."""
    return f"{type(e).__name__}: {re.sub(r'0x[0-9a-f]+', '', str(e))}"


def _text(launch: Launch) -> str:
    """The typed IR with the positions of the source, without Binds."""
    bare = rewrite(launch.program, lambda old, n: [] if isinstance(n, Bind) else None)
    return re.sub(r"0x[0-9a-f]+", "", to_text(bare, True))


class _Capturing:
    """Keeps what is launched, each kernel once for equal types; of each test function of the suite at most MOST."""

    MOST = 12
    ct: Any

    def __init__(self) -> None:
        super().__init__()
        self.programs: dict[tuple, Program] = {}
        launch = self.ct.launch

        def captured(*args: Any, **options: Any) -> Any:
            if len(args) == 4 and isinstance(args[2], self.ct.kernel) and isinstance(args[3], tuple):
                self._keep(args[2], args[3])
            return launch(*args, **options)

        self.ct.launch = captured

    def _keep(self, kernel: Any, args: tuple) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arguments = kernel.classify(args)
        except Exception:
            return  # what is refused before typing is no program
        fn, test = kernel.function, running()
        key = (fn.__code__, id(fn.__globals__), str(kernel.options), *(repr(a.arg_type) for a in arguments),
               *map(repr, fn.__closure__ or ()))
        like = sum(p.test.partition("[")[0] == test.partition("[")[0] for p in self.programs.values())
        if key not in self.programs and (like < self.MOST or not test.startswith("conformance")):
            self.programs[key] = Program(test, kernel, arguments)


class Interpreted(_Capturing, Interp):
    """`--impl tests.mutation.programs:Interpreted`: the interpreter, which keeps what is launched."""

    name = "cutile:interp, captured"


class ThroughBytecode(_Capturing, Ordered):
    """The same through bytecode."""

    name = "cutile:tileir, captured"
