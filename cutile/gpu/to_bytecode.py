"""From a typed kernel to Tile IR bytecode."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from cutile.gpu.target import ARCHITECTURES, Target, check_version, parse_target
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.builder import Module
from cutile.gpu.tileir.checking import takes_hint
from cutile.gpu.tileir.lower import lower
from cutile.gpu.tileir.operations import HINT_SINCE, HINTS_FREE
from cutile.ir.nodes import Kernel, Op
from cutile.ir.walk import walk
from cutile.spans import Span

# Compiler options of a kernel that are part of the bytecode, with their names in it. opt_level is a flag of the
# assembler instead.
ENTRY_HINTS = {"num_ctas": "num_cta_in_cga", "occupancy": "occupancy", "num_worker_warps": "num_worker_warps_per_cta"}
ACCESS_HINTS = ("latency", "allow_tma")  # of loads and stores, by their names in the language and there
USUAL_WARPS = (4, 8)


def to_bytecode(kernel: Kernel, facts: Sequence[Any] | None = None, target: Target | str | None = None,
                version: str | ty.Version | None = None, options: Any = None, *, symbol: str | None = None,
                chosen: Mapping[str, int] | None = None) -> bytes:
    """The bytecode of a kernel that was typed and went through the fma pass.

    facts    of each IR parameter: facts.ArrayFacts, facts.ListFacts, an array constraint or list constraint, or None
    target   "sm_90"; None for all targets
    version  of the bytecode; None is the newest that the installed assembler reads
    options  the kernel's compiler options (runtime.options.Options)
    symbol   name of the entry
    chosen   options that the author left open, with any values that the assembler takes; they need a target
    """
    return module_of(kernel, facts, target, version, options, symbol=symbol, chosen=chosen).to_bytes()


def module_of(kernel: Kernel, facts: Sequence[Any] | None = None, target: Target | str | None = None,
              version: str | ty.Version | None = None, options: Any = None, *, symbol: str | None = None,
              module: Module | None = None, chosen: Mapping[str, int] | None = None) -> Module:
    """The module that `to_bytecode` writes. With `module`, the kernel is added to it as an entry."""
    where = None if target is None else parse_target(target)
    module = module or Module(version)
    if where is None:
        check_version(module.version, "compilation for every target", kernel.span)
    elif module.version < HINTS_FREE:
        _warn_of_dropped_hints(kernel, options, where, module.version)
    hints = entry_hints(options, where, module.version)
    if chosen and where is not None:
        given = {ENTRY_HINTS[k]: v for k, v in chosen.items() if takes_hint(module.version, ENTRY_HINTS[k])}
        hints = {**hints, where.tool_name: {**hints.get(where.tool_name, {}), **given}}
    return lower(kernel, facts, target=where, hints=hints, symbol=symbol, module=module)


def entry_hints(options: Any, target: Target | None, version: ty.Version) -> dict[str, dict[str, int]]:
    """The options in the form of the bytecode: for the target, or for each target on which they differ
    [KERN-4, EXP-5].

    Options that a version of the bytecode has no name for are left out; they are only hints.
    """
    if options is None:
        return {}
    if target is not None:
        names = {target.tool_name: target.tool_name}
    else:
        names = {"default": "", **{f"sm_{n}": f"sm_{n}" for n in ARCHITECTURES}}
    out = {key: _hints(options, name, version) for key, name in names.items() if takes_hint(version, key)}
    usual = out.get("default")
    return {k: h for k, h in out.items() if h and (k == "default" or h != usual)}


def _hints(options: Any, target: str, version: ty.Version) -> dict[str, int]:
    found, options = {}, options.on(target)
    for option, name in ENTRY_HINTS.items():
        value = getattr(options, option)
        if value is None or not takes_hint(version, name):
            continue
        if option == "num_worker_warps" and value not in USUAL_WARPS:
            check_version(version, "num_worker_warps other than 4 and 8")
        found[name] = value
    return found


def _warn_of_dropped_hints(kernel: Kernel, options: Any, target: Target, version: ty.Version) -> None:
    """A UserWarning, at the line of the hint, for each of the author's hints that this version of the bytecode cannot
    express for the target.
    """
    given: dict[str, tuple[Any, Span | None]] = {}
    if options is not None:
        on_target = options.on(target.tool_name)
        given = {o: (getattr(on_target, o), kernel.span) for o in ENTRY_HINTS if getattr(on_target, o) is not None}
    for n in walk(kernel.body):
        if isinstance(n, Op):
            for name in ACCESS_HINTS:
                if n.attrs.get(name) is not None:
                    given.setdefault(name, (n.attrs[name], n.span))
    for name, (value, span) in given.items():
        since = max(HINT_SINCE.get(k, HINTS_FREE) for k in (target.tool_name, ENTRY_HINTS.get(name, name)))
        if version < since:
            text = (f"the hint {name}={value} is left out: Tile IR bytecode {ty.version_text(version)} cannot carry it "
                    f"for {target.tool_name}, {ty.version_text(since)} can")
            at = (span.filename, span.line) if span is not None else ("<kernel>", 1)
            warnings.warn_explicit(text, UserWarning, *at)
