"""Every kernel that the conformance suite launches, assembled for GPUs.

    python -O -m tests.gpu.assembling [--targets sm_90,…] [--version 13.4] [--opt-level 0] [--jobs 1]
                                       [arguments of pytest]

goes through the suite without running its kernels, keeps each program that it types, then lowers all for each target,
many to a module, and assembles them, `jobs` modules at a time. Each is assembled, refused by our own check
(TileUnsupportedFeatureError), or a fault. With -O the suite's assertions about results are gone; without it a test
ends at its first one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from conformance.adapters.cutile_interp import Interp
from cutile.compilation import CallingConvention, KernelSignature
from cutile.compilation.export import arg_types
from cutile.errors import TileError, TileUnsupportedFeatureError
from cutile.gpu.facts import of_parameters
from cutile.gpu.target import parse_target
from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir.builder import Module
from cutile.gpu.to_bytecode import module_of
from cutile.ir import nodes
from cutile.ir.text import to_text
from cutile.runtime.kernel import typed
from tests.gpu.tileir.lowering import TARGETS

ENTRIES = 64  # a module


@dataclass(frozen=True)
class Program:
    """A typed kernel, what is known of its parameters, its options, and the test that it is from."""

    kernel: nodes.Kernel
    known: Sequence[Any]
    options: Any
    test: str


@dataclass
class Verdicts:
    """What became of the programs on one target."""

    assembled: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)  # test, message
    faults: list[tuple[str, str]] = field(default_factory=list)


class Collect(Interp):
    """Types kernels, keeps each program once, and runs none."""

    name = "cutile, assembled"
    features = Interp.features - {"export", "cubins"}  # those tests compile for themselves
    strict = False

    def __init__(self) -> None:
        super().__init__()
        self.programs: dict[str, Program] = {}
        self.ct.launch = self._launch  # some tests launch by themselves

    def _launch(self, stream: Any, grid: Any, kernel: Any, kernel_args: Any, /, **options: Any) -> None:
        convention = CallingConvention.cutile_python_v2()
        signature = KernelSignature.from_kernel_args(kernel, tuple(kernel_args), convention, symbol="k")
        program = typed(kernel, arg_types(kernel, signature)).kernel
        known = of_parameters(signature.parameters)
        key = f"{to_text(program, False)}\n{known}\n{kernel.options}"
        test = os.environ.get("PYTEST_CURRENT_TEST", "?").removesuffix(" (call)")
        self.programs.setdefault(key, Program(program, known, kernel.options, test))


def collected(arguments: Sequence[str]) -> list[Program]:
    """The programs of the suite, or of the part of it that pytest's arguments name."""
    given = list(arguments) or ["conformance"]
    pytest.main([*given, "--impl", f"{__name__}:Collect", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no",
                 "--no-summary", "--assert=plain", "-W", "ignore::pytest.PytestConfigWarning"])
    from conformance.harness.api import impl

    return list(impl.programs.values())


def verdicts(programs: Sequence[Program], target: str, version: str | None = None, opt_level: int = 0,
             jobs: int = 1) -> Verdicts:
    """Lower and assemble all programs for a target, `jobs` modules at a time: the assembler is a process of its own."""
    out = Verdicts()
    ready: list[Program] = []
    for p in programs:
        try:
            _module([p], target, version)
        except TileUnsupportedFeatureError as e:
            out.refused.append((p.test, str(e).split("\n")[0]))
        except Exception as e:
            out.faults.append((p.test, f"{type(e).__name__}: {e}"))
        else:
            ready.append(p)
    early = len(out.faults)
    parts = [ready[i:i + ENTRIES] for i in range(0, len(ready), ENTRIES)]
    with ThreadPoolExecutor(jobs) as pool:
        for failed in pool.map(lambda part: list(_failures(part, target, version, opt_level)), parts):
            out.faults += failed
    out.assembled = len(ready) - len(out.faults) + early
    return out


def _module(programs: Sequence[Program], target: str, version: str | None) -> Module:
    module = Module(version)
    for k, p in enumerate(programs):
        module_of(p.kernel, p.known, target, version, p.options, symbol=f"k{k}", module=module)
    return module


def _failures(programs: Sequence[Program], target: str, version: str | None,
              opt_level: int) -> Iterator[tuple[str, str]]:
    """Those that the assembler does not take, found by halving."""
    try:
        tileiras.assemble(_module(programs, target, version).to_bytes(), parse_target(target), opt_level=opt_level)
    except TileError as e:
        if len(programs) == 1:
            yield programs[0].test, f"{type(e).__name__}: {e}"
            return
        half = len(programs) // 2
        for part in (programs[:half], programs[half:]):
            yield from _failures(part, target, version, opt_level)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Assemble every kernel of the conformance suite.")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--version", help="of the bytecode; the newest by default")
    parser.add_argument("--opt-level", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="modules that are assembled at a time")
    given, rest = parser.parse_known_args(arguments)
    programs = collected(rest)
    print(f"{len(programs)} programs", flush=True)
    bad = 0
    for target in given.targets.split(","):
        begin = time.perf_counter()
        found = verdicts(programs, target, given.version, given.opt_level, given.jobs)
        print(f"{target}: {found.assembled} assembled, {len(found.refused)} refused by our check, "
              f"{len(found.faults)} faults, {time.perf_counter() - begin:.0f} s", flush=True)
        for test, message in sorted(set(found.refused)):
            print(f"  refused  {test}: {message}")
        for test, message in found.faults:
            print(f"  FAULT  {test}: {message}")
        bad += len(found.faults)
    print("what the assembler itself gets wrong, with what we do instead: docs/assembler-bugs.md")
    return int(bad > 0)


if __name__ == "__main__":
    from tests.gpu import assembling  # under the name by which the suite loads it

    sys.exit(assembling.main(sys.argv[1:]))
