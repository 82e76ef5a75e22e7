"""Code for a GPU, selected among up to three by what it takes of a multiprocessor.

gpu/hints.py chooses hints for many warps on a multiprocessor, before anybody knows how many registers the kernel needs.
If that code keeps registers in memory, or if code without such hints fills a multiprocessor with few warps, two more
are made, and `best` decides. The decision stands in the cache on disk, under a key of its own, with its reasons.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from cutile._support import trace
from cutile._support.structs import structure
from cutile.errors import TileCompilerExecutionError, TileCompilerTimeoutError
from cutile.gpu import cubin
from cutile.gpu.cubin import Request
from cutile.gpu.cubin_resources import Resources, blocks_held, read
from cutile.gpu.hints import HELD, MOST_WARPS, USUAL_WARPS, EntryHints, may_have_more_warps
from cutile.gpu.target import Target
from cutile.gpu.unchecked import uses_tma

FEW = 16  # warps; code without hints that lets a multiprocessor hold fewer is not the only one tried
CRITERION = f"the least stack; then the most warps that a multiprocessor holds, up to {HELD}; then the first"
_ABOUT = "\nselected\n"  # sets a decision apart from code that is compiled with the hints to begin with


@structure(frozen=True, slots=True)
class Tried:
    """One of the codes, with its hints. `taken` is None where the assembler did not make it, as `refused` says."""

    hints: EntryHints
    code: bytes
    taken: Resources | None
    refused: str = ""


@structure(frozen=True, slots=True)
class First:
    """The code for a first launch; whether it is what `build` would return; whether tiles move by TMA in the code that
    was compiled first.
    """

    code: bytes
    settled: bool
    uses_tma: bool


# ------------------------------------------------------------------ what launches use


def build(*what: Any) -> bytes:
    """The code to keep. Arguments and errors are those of cubin.build."""
    first, request = cubin.build(*what), Request(*what)
    hints = others(request, first)
    return request.kept(lambda: _selected(request, first, hints), _ABOUT) if hints else first


def cached(*what: Any) -> bytes | None:
    """What `build` would return, if that is in the cache on disk; None if something would have to be compiled."""
    first = cubin.cached(*what)
    return None if first is None else _decided(Request(*what), first)


def for_first_launch(*what: Any) -> First:
    """Code that takes one assembly at most."""
    first, request = cubin.build(*what), Request(*what)
    found, warps = _decided(request, first), request.first_hints.num_worker_warps
    warps = warps or request.options.on(request.target.tool_name).num_worker_warps
    return First(found or first, found is not None, uses_tma(first, request.symbol, warps))


def explain(*what: Any) -> tuple[list[Tried], int]:
    """Everything that `build` tries, and which of these it keeps."""
    first, request = cubin.build(*what), Request(*what)
    tried = _all(request, first, others(request, first))
    return tried, best(tried, request.target)


def _decided(request: Request, first: bytes) -> bytes | None:
    return request.find(_ABOUT) if others(request, first) else first


# ------------------------------------------------------------------ what is tried


def others(request: Request, first: bytes) -> tuple[EntryHints, ...]:
    """Which hints to try besides the first ones, given the code that these led to.

    Hints that left too few registers are tried with larger blocks, whose threads do less each, if that changes no order
    of floating-point sums; else for fewer warps on a multiprocessor, then not at all. A kernel without hints that lets
    a multiprocessor hold FEW warps is tried with larger blocks too.
    """
    taken, hints = _read(first, request.symbol), request.first_hints
    if taken is None or hints.occupancy is not None and not taken.stack:
        return ()
    larger = may_have_more_warps(request.program, request.options, request.target)
    if hints.occupancy is None:
        few = larger and _warps_held(taken, request.target) < FEW
        return (EntryHints(2 * USUAL_WARPS), EntryHints(MOST_WARPS)) if few else ()
    if larger:
        return tuple(EntryHints(w, HELD // w) for w in (2 * USUAL_WARPS, MOST_WARPS))
    fewer, left = divmod(3 * hints.occupancy, 4)
    return (*([] if left else [EntryHints(hints.num_worker_warps, fewer)]), EntryHints(hints.num_worker_warps))


def best(tried: Sequence[Tried], target: Target) -> int:
    """The index of the code to keep, by CRITERION."""
    return max((i for i, t in enumerate(tried) if t.taken is not None),
               key=lambda i: (-tried[i].taken.stack, min(_warps_held(tried[i].taken, target), HELD), -i), default=0)


def why_alone(first: Tried) -> str:
    """Why `others` are none."""
    if first.taken is None:
        return "this form of code cannot be read"
    if first.hints.occupancy is not None:
        return "it keeps no registers in memory"
    return f"no other hints may be chosen, or a multiprocessor holds {FEW} warps or more"


def _warps_held(taken: Resources, target: Target) -> int:
    return blocks_held(taken, target) * taken.warps


# ------------------------------------------------------------------ making it


def _read(code: bytes, symbol: str) -> Resources | None:
    """The resources of code; None for a form of cubin that this package cannot read."""
    try:
        return read(code, symbol)
    except ValueError:
        return None


def _all(request: Request, first: bytes, hints: Sequence[EntryHints]) -> list[Tried]:
    out = [Tried(request.first_hints, first, _read(first, request.symbol))]
    for h in hints:
        try:
            code, _ = request.compiled(h)
        except (TileCompilerExecutionError, TileCompilerTimeoutError) as e:
            out.append(Tried(h, b"", None, str(e).partition("\n")[0]))
        else:
            out.append(Tried(h, code, _read(code, request.symbol)))
    return out


def _selected(request: Request, first: bytes, hints: Sequence[EntryHints]) -> tuple[bytes, dict[str, Any]]:
    start, tried = time.perf_counter(), _all(request, first, hints)
    kept = tried[best(tried, request.target)]
    trace.say(trace.TIMINGS, f"{request.program.name}: of {len(tried)} codes, that with {kept.hints} is kept")
    return kept.code, request.metadata(kept.code, start) | {"selected": str(kept.hints)}
