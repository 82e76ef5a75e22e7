"""Small kernels around one function of tiles, and many of them assembled at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import pytest

import cutile as ct
from cutile.dtypes import ARITHMETIC, NUMERIC, DType, float4_e2m1fn, info
from cutile.gpu.target import parse_target, supports
from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir.builder import Module
from cutile.gpu.to_bytecode import module_of
from cutile.ir.nodes import Kernel
from cutile.types import ArrayType, TileType
from tests.front.compiling import cell
from tests.gpu.tileir.lowering import TARGETS, typed, usual

FLOATS = tuple(d for d in ARITHMETIC if info(d).floating)
INTEGERS = tuple(d for d in NUMERIC if info(d).integral)
NUMBERS = INTEGERS + FLOATS
SINGLE = tuple(d for d in NUMERIC if d is not float4_e2m1fn)  # those of which there are single elements


def tile(dtype: DType, *shape: int) -> TileType:
    return TileType(dtype, shape or (16,))


def scalar(dtype: DType) -> TileType:
    return TileType(dtype)


@functools.cache  # a program is the same for each target and version
def program(f: Callable, *kinds: TileType) -> Kernel:
    """A kernel that loads a tile of each kind, applies `f`, and stores what it gives: a tile, or a tuple of tiles."""
    lines = [f"x{k} = ct.load(a{k}, {(0,) * max(t.ndim, 1)}, {t.shape})" for k, t in enumerate(kinds)]
    names = ", ".join(f"x{k}" for k in range(len(kinds)))
    arrays = ", ".join(f"a{k}" for k in range(len(kinds)))
    given = [ArrayType(t.dtype, max(t.ndim, 1)) for t in kinds]
    seen: list[TileType] = []

    def note(results) -> None:
        for r in results if isinstance(results, tuple) else (results,):
            seen.append(TileType(r.dtype, tuple(r.shape)))

    look = cell(_source(arrays, [*lines, f"r = f({names})", "ct.static_eval(note(r))"]), f=f, note=note)["kernel"]
    typed(look, *given)
    many = len(seen) > 1
    stores = [f"ct.store(o{k}, {(0,) * max(t.ndim, 1)}, r{f'[{k}]' if many else ''})" for k, t in enumerate(seen)]
    outs = "".join(f", o{k}" for k in range(len(seen)))
    run = cell(_source(arrays + outs, [*lines, f"r = f({names})", *stores]), f=f)["kernel"]
    return typed(run, *given, *(ArrayType(t.dtype, max(t.ndim, 1)) for t in seen))


def _source(params: str, lines: Iterable[str]) -> str:
    return f"def kernel({params.removeprefix(', ')}):\n" + "".join(f"    {line}\n" for line in lines)


Case = tuple[Callable, tuple[TileType, ...]]


def dtypes_of(kernel: Kernel) -> set[DType]:
    """The dtypes of its arrays."""
    return {p.type.dtype for p in kernel.params}


def module(cases: Iterable[Case], target: str = "sm_90", version: str = "13.4") -> Module:
    """One entry for each case, but for those whose arrays the target lacks."""
    m, where = Module(version), parse_target(target)
    for k, (f, kinds) in enumerate(cases):
        kernel = program(f, *kinds)
        if all(supports(where, d) for d in dtypes_of(kernel)):
            add(m, kernel, target, f"case_{k}")
    return m


def add(m: Module, kernel: Kernel, target: str, symbol: str) -> None:
    """Add an entry."""
    known = [usual(p.type) for p in kernel.params]
    module_of(kernel, known, target, symbol=symbol, module=m)


def assemble(cases: Iterable[Case], target: str = "sm_90", version: str = "13.4") -> bytes:
    """The cubin."""
    m = module(cases, target, version)
    assert m.contents.entries
    cubin = tileiras.assemble(m.to_bytes(), parse_target(target), opt_level=0)
    assert cubin
    return cubin


def operations(f: Callable, *kinds: TileType, target: str = "sm_90", version: str = "13.4") -> list:
    """The operations of the kernel in order, nested ones too."""
    pending = [module([(f, kinds)], target, version).contents.entries[0].block]
    found = []
    while pending:
        for o in pending.pop(0).ops:
            found.append(o)
            pending[:0] = o.regions
    return found


def names(f: Callable, *kinds: TileType, **options) -> list[str]:
    """Names of the operations of the function, without loads, stores and constants."""
    about = ("make_", "load_", "store_", "assume", "constant", "return", "yield", "continue")
    return [o.spec.name for o in operations(f, *kinds, **options) if not o.spec.name.startswith(about)]


def attributes(name: str, f: Callable, *kinds: TileType, **options) -> list[dict]:
    """The attributes of each operation by that name."""
    return [o.attrs for o in operations(f, *kinds, **options) if o.spec.name == name]


def sampled(cases: list[Case]) -> pytest.MarkDecorator:
    """A parameter (target, cases): each case for one target in turn, all for all of them when there is time."""
    some = [pytest.param(t, cases[i::len(TARGETS)], id=t) for i, t in enumerate(TARGETS)]
    every = [pytest.param(t, cases, marks=pytest.mark.deep, id=f"{t}-all") for t in TARGETS]
    return pytest.mark.parametrize(("target", "cases"), [*some, *every])


def refused(feature: str, version: str, f: Callable, *kinds: TileType, target: str = "sm_90") -> None:
    """Refused in this version, at the user's line, and taken in the next one."""
    with pytest.raises(ct.TileUnsupportedFeatureError, match=feature) as caught:
        module([(f, kinds)], target, version)
    assert caught.value.loc is not None
    newer = f"13.{int(version.split('.')[1]) + 1}"
    module([(f, kinds)], target, newer)
