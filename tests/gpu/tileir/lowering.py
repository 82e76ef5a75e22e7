"""Kernels lowered in tests: to a module, to Tile IR text, to a cubin."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from cutile.front.program import ArgType, type_kernel
from cutile.gpu.facts import ArrayFacts, ListFacts
from cutile.gpu.target import parse_target, supports
from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir.builder import Module
from cutile.gpu.to_bytecode import module_of
from cutile.ir.check import check
from cutile.ir.nodes import Kernel
from cutile.passes.fma import fma
from cutile.passes.lift import lift
from cutile.types import ArrayType, ListType

TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120")


def typed(fn: types.FunctionType, *kinds: ArgType) -> Kernel:
    kernel = lift(fma(type_kernel(fn, kinds).kernel))
    check(kernel)
    return kernel


def usual(t) -> ArrayFacts | ListFacts | None:
    """What a launch with fresh contiguous arrays knows."""
    if isinstance(t, ListType):
        return ListFacts(usual(t.element))
    if not isinstance(t, ArrayType):
        return None
    n = t.ndim
    return ArrayFacts((None,) * n, (None,) * (n - 1) + (1,) * min(n, 1), (1,) * n, (1,) * n, (0,) * n, 16, (), False)


def module(fn, *kinds, target: str | None = "sm_90", version: str = "13.4", facts: Sequence[Any] | None = None,
           **options) -> Module:
    kernel = typed(fn, *kinds)
    known = [usual(p.type) for p in kernel.params] if facts is None else facts
    return module_of(kernel, known, target, version, **options)


def text(fn, *kinds, **options) -> str:
    """The module as tileirdisasm shows it."""
    return tileiras.disassemble(module(fn, *kinds, **options).to_bytes())


def ops(fn, *kinds, **options) -> list[str]:
    """The names of the operations in order, nested ones too."""
    found: list[str] = []
    pending = [module(fn, *kinds, **options).contents.entries[0].block]
    while pending:
        for o in pending.pop(0).ops:
            found.append(o.spec.name)
            pending[:0] = o.regions
    return found


def assemble(fn, *kinds, target: str = "sm_90", **options) -> bytes:
    return tileiras.assemble(module(fn, *kinds, target=target, **options).to_bytes(), parse_target(target), opt_level=0)


def has(target: str, *features) -> bool:
    return all(supports(parse_target(target), f) for f in features)
