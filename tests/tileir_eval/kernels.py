"""Kernels run through their bytecode: what stands between `ct.launch` and `evaluate`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from cutile import interp, settings
from cutile.analysis.aliasing import written_params
from cutile.compilation.calling_convention import CallingConvention
from cutile.compilation.constraints import ListConstraint
from cutile.compilation.derive import array_constraint
from cutile.errors import TileAssertionError
from cutile.gpu import unchecked
from cutile.gpu.to_bytecode import to_bytecode
from cutile.ir.nodes import Kernel
from cutile.runtime.annotations import ArrayAnnotation
from cutile.runtime.arguments import array_of
from cutile.types import ArrayType, ListType
from tests.tileir_eval.disassembled import check
from tests.tileir_eval.launch import evaluate
from tests.tileir_eval.messages import AssertionFailed

VERSION = "13.4"
SYMBOL = "kernel"

_variants: WeakKeyDictionary[Kernel, unchecked.Unchecked | None] = WeakKeyDictionary()
_compiled: WeakKeyDictionary[Kernel, dict[tuple, bytes]] = WeakKeyDictionary()


def facts_of(kernel: Kernel, leaves: Sequence[Any]) -> tuple:
    """The facts about each parameter that a launch with these arguments knows."""
    return tuple(_facts(p.type, x) for p, x in zip(kernel.params, leaves, strict=True))


def _facts(t, x):
    convention = CallingConvention.cutile_python_v1()
    if isinstance(t, ArrayType):
        return array_constraint(t, [array_of(x)], ArrayAnnotation(), convention)
    if isinstance(t, ListType):
        element = array_constraint(t.element, list(map(array_of, x)), ArrayAnnotation(), convention)
        return ListConstraint(element, alias_groups=(), elements_may_alias=True)
    return None


def bytecode_of(kernel: Kernel, leaves: Sequence[Any], version: str = VERSION) -> bytes:
    """The bytecode, for every target, that a launch of a typed kernel with these arguments compiles to."""
    key = facts_of(kernel, leaves), version
    known = _compiled.setdefault(kernel, {})
    if key not in known:
        known[key] = to_bytecode(kernel, key[0], None, version, symbol=SYMBOL)
    return known[key]


def variant_of(kernel: Kernel, grid: tuple[int, int, int], leaves: Sequence[Any]) -> Kernel | None:
    """The program without checks of bounds that such a launch may run; None if there is none."""
    if kernel not in _variants:
        _variants[kernel] = unchecked.unchecked(kernel, True)
    found = _variants[kernel]
    dims = [[_dims(a) for a in x] if isinstance(x, list) else _dims(x) for x in leaves]
    return found.kernel if found is not None and found.for_arrays(dims)(grid) else None


def _dims(x: Any) -> Any:
    return (array_of(x).shape, ()) if hasattr(x, "shape") and hasattr(x, "strides") else None


def run(kernel: Kernel, grid: tuple[int, int, int], leaves: Sequence[Any], *, disassembled: bool = False,
        unchecked: bool = False, version: str = VERSION, tell: Callable[[bool], None] = lambda variant: None,
        **options: bool) -> None:
    """`cutile.interp.launch`, by way of bytecode of a version; `options` are those of `evaluate`.

    disassembled  NVIDIA's disassembler must read the bytecode as our reader does
    unchecked     the program without checks of bounds runs, where it may; `tell` is called with whether it does
    """
    variant = variant_of(kernel, (*grid, 1, 1, 1)[:3], leaves) if unchecked else None
    tell(variant is not None)
    kernel = variant or kernel
    stored = written_params(kernel)
    for p, name, x in zip(kernel.params, kernel.param_names, leaves, strict=True):
        if p in stored and not all(a.flags.writeable for a in (x if isinstance(x, list) else [x])):
            raise TypeError(f"the kernel stores to parameter `{name}`, but the array given for it is read-only")
    bytecode = bytecode_of(kernel, leaves, version)
    if disassembled:
        check(bytecode)
    try:
        sys.stdout.write("".join(evaluate(bytecode, SYMBOL, grid, list(leaves), **options)))
    except AssertionFailed as e:
        raise TileAssertionError(f"assertion failed: {e.message} in block {e.block}") from e


@contextlib.contextmanager
def instead_of_interpreter(**options: Any) -> Iterator[list[Kernel]]:
    """Inside, `ct.launch` runs kernels through their bytecode; gives a list of those that it ran."""
    before, ran = interp.HostLaunch.run, []

    def instead(self: interp.HostLaunch, grid: tuple, stream: Any, values: Sequence[Any], dependent: bool) -> None:
        ran.append(self.compiled.kernel)
        run(self.compiled.kernel, grid, values, **options)

    interp.HostLaunch.run = instead
    try:
        with settings.override(LAUNCHER="python"):  # C code asks no HostLaunch
            yield ran
    finally:
        interp.HostLaunch.run = before
