"""The hints that were chosen for a kernel, and why, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cutile.gpu import hints, selection, unchecked
from cutile.gpu.cubin_resources import blocks_held
from cutile.gpu.target import Target
from cutile.ir.nodes import Kernel, Op
from cutile.ir.walk import walk

_COLUMNS = ("threads", "registers", "stack", "shared", "blocks", "warps")


def text(kernel: Kernel, constraints: Sequence[Any], target: Target, options: Any, symbol: str) -> str:
    """What is chosen for the code that serves every launch, and for the code of launches whose tiles all lie inside
    their arrays. The codes are made. Arguments and errors are those of gpu.cubin.build.
    """
    first = selection.for_first_launch(kernel, constraints, target, options, symbol)
    found = unchecked.unchecked(kernel, first.uses_tma)
    out = ["code for every launch", *_of(kernel, constraints, target, options, symbol)]
    if found is not None:
        out += ["", "code for launches whose tiles all lie inside their arrays",
                *_of(found.kernel, constraints, target, options, symbol)]
    return "\n".join(out)


def _of(kernel: Kernel, *rest: Any) -> Iterator[str]:
    constraints, target, options, symbol = rest
    _, why = hints.choose_entry_hints(kernel, options, target)
    tried, kept = selection.explain(kernel, constraints, target, options, symbol)
    yield f"  {_tma(kernel, target)}"
    yield f"  hints of the whole kernel: {tried[0].hints}, because {why}"
    width = max(len(str(t.hints)) for t in tried)
    yield f"  {'':{width}}" + "".join(f"{c:>11}" for c in _COLUMNS)
    for i, t in enumerate(tried):
        if t.taken is None:
            yield f"  {t.hints!s:{width}}  no code: {t.refused or 'its resources cannot be read'}"
            continue
        held, x = blocks_held(t.taken, target), t.taken
        figures = (x.threads, x.registers, x.stack, x.shared, held, held * x.warps)
        yield f"  {t.hints!s:{width}}" + "".join(f"{n:11}" for n in figures) + ("  kept" if i == kept else "")
    if len(tried) > 1:
        yield f"  kept is the one with {selection.CRITERION}"
    else:
        yield f"  no other is tried: {selection.why_alone(tried[0])}"


def _tma(kernel: Kernel, target: Target) -> str:
    """How many accesses are told not to use TMA."""
    from cutile.gpu.tileir.lower import after_passes

    program = hints.choose_hints(after_passes(kernel), target)
    tiles = [n for n in walk(program.body) if isinstance(n, Op) and n.op in (*hints.LOADS, *hints.STORES)]
    without = sum(n.attrs["allow_tma"] is False for n in tiles)
    return f"allow_tma=False for {without} of {len(tiles)} loads and stores of tiles"
