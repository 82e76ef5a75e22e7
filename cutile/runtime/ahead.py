"""Launches compiled ahead: for arrays and sizes that are not known yet, to run where there is no assembler; and those
that are about to run one after another, with an assembler for each at a time.
"""

from __future__ import annotations

import contextvars
import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutile import settings
from cutile._support.float_mode import in_usual_mode
from cutile.errors import TileUnsupportedFeatureError
from cutile.runtime.kernel import Kernel

if TYPE_CHECKING:
    from cutile.gpu.carried import Carried


@in_usual_mode
def codes(launches: Iterable[tuple[Kernel, tuple]], capabilities: Sequence[tuple[int, int]]) -> dict[str, list[Any]]:
    """Machine code for launches of kernels with arguments like these, for GPUs of these compute capabilities: for
    arrays of any size that are laid out as these are, and for any others.

    The names are those that `carried.find` looks for. Errors of the assembler, and FileNotFoundError without one.
    """
    from concurrent.futures import ThreadPoolExecutor

    from cutile.compilation.launch_signature import of_launch
    from cutile.compilation.mangling import symbol_of
    from cutile.gpu import carried, cubin  # back ends are loaded when they are needed
    from cutile.gpu.target import of_device

    targets = [of_device(*c) for c in capabilities]
    programs: dict[tuple, tuple] = {}
    for kernel, values in launches:
        arguments = kernel.classify(values)
        program = kernel.program(arguments).kernel
        constraints, _ = of_launch(kernel, arguments)
        for facts in carried.assumptions(program, constraints):
            programs.setdefault((program, repr(facts)), (kernel, facts))
    wanted = {(program, facts, t): (program, given, t, kernel.options, symbol_of(kernel.__name__))
              for (program, facts), (kernel, given) in programs.items() for t in targets}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(contextvars.copy_context().run, cubin.build, *what) for what in wanted.values()]
        made = [job.result() for job in jobs]
    found: dict[str, list[Any]] = {}
    for (program, facts, target, options, symbol), code in zip(wanted.values(), made, strict=True):
        found.setdefault(carried.name_of(program, target, options), []).append(carried.Code(facts, symbol, code))
    return found


@in_usual_mode
def build_together(launches: Sequence[tuple[Kernel, tuple]], ordinal: int) -> None:
    """Put the code that first launches on a GPU need into the cache on disk, where they find it: that of different
    kernels at the same time, each from when it is typed on. What fails is left to the launches, which tell the user.
    """
    if len(launches) < 2 or settings.on_host() or not settings.get("CACHE"):
        return
    from concurrent.futures import ThreadPoolExecutor

    from cutile.gpu import cubin

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        try:
            for what in _not_carried(launches, ordinal):
                pool.submit(contextvars.copy_context().run, cubin.build, *what)
            pool.shutdown()
        except BaseException:  # Ctrl-C: finish those that run, and begin no other
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _not_carried(launches: Iterable[tuple[Kernel, tuple]], ordinal: int) -> Iterator[tuple]:
    """What `cubin.build` takes for launches of which no code is carried, each once."""
    from cutile.compilation.launch_signature import of_launch
    from cutile.gpu import carried
    from cutile.gpu.driver import driver

    target, met = driver().device(ordinal).target, {}
    for kernel, values in launches:
        arguments = kernel.classify(values)
        program = kernel.program(arguments).kernel
        constraints, symbol = of_launch(kernel, arguments)
        key = id(program), repr(constraints)
        if key not in met and carried.find(program, constraints, target, kernel.options) is None:
            met[key] = program  # which lives as long as its id is looked for
            yield program, constraints, target, kernel.options, symbol


def carry(found: dict[str, list[Any]]) -> Carried:
    """Have launches find code, as long as the result is held."""
    from cutile.gpu.carried import Carried

    return Carried(found)


def as_plain(code: Any) -> tuple[list, str, bytes]:
    """What code assumes as lists of plain values, its symbol, and the code."""
    return [f and [getattr(f, n) for n in type(f).__struct_fields__] for f in code.facts], code.symbol, code.cubin


def from_plain(facts: list, symbol: str, cubin: bytes) -> Any:
    """The inverse of `as_plain`."""
    from cutile.gpu.carried import Code
    from cutile.gpu.facts import ArrayFacts

    return Code([f and ArrayFacts(*f) for f in facts], symbol, cubin)


@functools.cache
def sources() -> str:
    """A hash of all sources of this package, which code that is compiled ahead depends on."""
    from cutile.gpu.cache_key import hash_of

    return hash_of(sorted(os.listdir(Path(__file__).parents[1])))


def cache_folder() -> Path | None:
    """The folder of compiled code; None under CUTILE_CACHE=0."""
    from cutile.gpu import cache

    return cache.folder() if settings.get("CACHE") else None


def clear_cache() -> int:
    """Remove all compiled code on disk; how many files that were."""
    from cutile.gpu import cache

    folder = cache_folder()
    return 0 if folder is None else len(cache.Cache(folder, 0).clear())


def capabilities_here() -> list[tuple[int, int]]:
    """The compute capabilities of the GPUs of this machine, each once."""
    from cutile.gpu.driver import DriverError, driver

    try:
        found = driver()
        return list(dict.fromkeys(found.capability(i) for i in range(found.count())))
    except (TileUnsupportedFeatureError, DriverError):
        return []
