"""From a typed kernel to machine code of a GPU. The code is taken from the cache, or made and put there.

If threads want the same code at the same time, one makes it and the others wait; so do processes that share a cache.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from cutile import settings
from cutile._support import trace
from cutile._support.structs import cached as once
from cutile.gpu import cache
from cutile.gpu.cache_key import digest, key_text
from cutile.gpu.facts import of_parameters
from cutile.gpu.find_tileiras import find_tool
from cutile.gpu.hints import OWN, EntryHints, choose_entry_hints
from cutile.gpu.target import Target
from cutile.ir import nodes

if TYPE_CHECKING:
    from cutile.compilation.constraints import ParameterConstraint
    from cutile.runtime.options import Options


def build(program: nodes.Kernel, constraints: Sequence[ParameterConstraint], target: Target, options: Options,
          symbol: str) -> bytes:
    """The cubin of a kernel that was typed and went through the fma pass. Threads may call it at the same time.

    constraints  what is known of each parameter of the Python function
    symbol       name of the entry
    A TileError for what the target lacks or the assembler refuses; FileNotFoundError if the code is not in the
    cache and there is no assembler.
    """
    request = Request(program, constraints, target, options, symbol)
    return request.kept(lambda: request.compiled(request.first_hints))


def cached(program: nodes.Kernel, constraints: Sequence[ParameterConstraint], target: Target, options: Options,
           symbol: str) -> bytes | None:
    """What `build` would return, if that is in the cache on disk; None if it would have to be compiled."""
    return Request(program, constraints, target, options, symbol).find()


class Request:
    """Code that is wanted: what `build` takes, and the settings of now."""

    def __init__(self, program: nodes.Kernel, constraints: Sequence[ParameterConstraint], target: Target,
                 options: Options, symbol: str):
        self.program, self.target, self.options, self.symbol = program, target, options, symbol
        self._facts, self._lineinfo = of_parameters(constraints), settings.lineinfo()

    @once
    def _text(self) -> str:
        return key_text(self.program, self._facts, self.target, self.options, self.symbol, self._lineinfo)

    @once
    def first_hints(self) -> EntryHints:
        """What the code is compiled with where the author names no hints of the kernel."""
        return choose_entry_hints(self.program, self.options, self.target)[0]

    def find(self, about: str = "") -> bytes | None:
        """The code in the cache on disk, or None. `about` sets it apart from other code for the same request."""
        disk = cache.current()
        return None if disk is None else disk.get(digest(self._text + about), _release(disk))

    def kept(self, make: Callable[[], tuple[bytes, dict[str, Any]]], about: str = "") -> bytes:
        """The code in the cache on disk; if it is not there, it is made and put there."""
        text = self._text + about
        key = digest(text)
        return _one_at_a_time(key, lambda: _from_cache(key, text, self.program.name, make))

    def compiled(self, hints: EntryHints) -> tuple[bytes, dict[str, Any]]:
        """The code with some hints, and its metadata for the cache."""
        start = time.perf_counter()
        code = _compiled(self.program, self._facts, self.target, self.options, self.symbol, self._lineinfo, hints)
        return code, self.metadata(code, start)

    def metadata(self, code: bytes, start: float) -> dict[str, Any]:
        """What an entry of the cache says of code whose making began at `start`."""
        return {"kernel": self.program.name, "symbol": self.symbol, "target": self.target.tool_name,
                "made": time.time(), "seconds": round(time.perf_counter() - start, 3), "cubin": len(code)}


def _from_cache(key: str, text: str, name: str, compile_it: Callable[[], tuple[bytes, dict[str, Any]]]) -> bytes:
    """The code of a key from the cache on disk; if it is not there, it is compiled and put there."""
    disk = cache.current()
    if disk is None:
        return compile_it()[0]
    release = _release(disk)
    cubin = disk.get(key, release)
    if cubin is None:
        with disk.lock(key):
            cubin = disk.get(key, release)  # another process may have made it by now
            if cubin is None:
                cubin, metadata = compile_it()
                disk.put(key, release, cubin, text, metadata)
                return cubin
    trace.say(trace.TIMINGS, f"{name}: GPU code {key[:8]} was in the cache")
    return cubin


def _release(disk: cache.Cache) -> str | None:
    """The release of the assembler; None without one."""
    try:
        tool = find_tool()
    except FileNotFoundError:
        return None
    if tool.packaged:
        return tool.packaged
    file = os.stat(tool.path)
    return disk.noted(f"tool-{digest(f'{tool.path} {file.st_mtime_ns} {file.st_size}')}", lambda: tool.version)


def _compiled(program: nodes.Kernel, facts: Sequence[Any], target: Target, options: Options, symbol: str,
              lineinfo: bool, hints: EntryHints) -> bytes:
    from cutile.gpu import to_bytecode as bytecode  # lowering is loaded when it is needed
    from cutile.gpu.tileir import tileiras
    from cutile.ir.walk import walk

    with trace.timed(f"lowering {program.name}"):
        code = bytecode.to_bytecode(program, facts, target, options=options, symbol=symbol,
                                    chosen=_as_taken(hints, tileiras).given())
    if trace.on(trace.TILE_IR):
        trace.say(trace.TILE_IR, f"Tile IR of {program.name}\n{tileiras.disassemble(code)}")
    with trace.timed(f"assembling {program.name} for {target}"):
        return tileiras.assemble(code, target, opt_level=options.on(target.tool_name).opt_level, lineinfo=lineinfo,
                                 memcheck=settings.memcheck(), spans=(n.span for n in walk(program.body)),
                                 name=program.name)


def _as_taken(hints: EntryHints, tileiras: Any) -> EntryHints:
    """Hints that the assembler takes: releases before 13.5 know 4 and 8 warps."""
    warps = hints.num_worker_warps
    if warps is None or warps == 8 or tileiras.takes_any_warps():
        return hints
    return EntryHints(8) if warps > 8 else OWN


# ------------------------------------------------------------------ one at a time


class _Compilation:
    """One compilation in progress: its lock, then its cubin. It lives as long as threads compile or wait for it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.cubin: bytes | None = None


_guard = threading.Lock()
_compilations: WeakValueDictionary[str, _Compilation] = WeakValueDictionary()


def _one_at_a_time(key: str, make: Callable[[], bytes]) -> bytes:
    """Make the code of a key in one thread while others wait. If it fails, each waiting thread retries.

    Locks are held by `with` alone, so that no interrupt comes between taking one and releasing it.
    """
    with _guard:
        compilation = _compilations.setdefault(key, _Compilation())
    with compilation.lock:
        if compilation.cubin is None:
            compilation.cubin = make()
        return compilation.cubin


def _after_fork() -> None:
    """Forget in a forked child what other threads were compiling: the child does not have these threads."""
    global _guard, _compilations
    _guard, _compilations = threading.Lock(), WeakValueDictionary()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
