"""Runs a launch to see what it does, and leaves its arrays as they were."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from cutile import settings
from cutile._support.float_mode import in_usual_mode
from cutile.errors import TileError, TileInternalError, TileSanitizerError, TileUnsupportedFeatureError, refusal
from cutile.interp import CompiledKernel, HostLaunch
from cutile.interp.traces.watchers import watched
from cutile.ir.nodes import Kernel as Program
from cutile.pictures.record import MOST_ELEMENTS, Recorder
from cutile.runtime import launch_plan
from cutile.runtime.float4_packing import PackedLaunch
from cutile.runtime.kernel import Kernel
from cutile.runtime.launch import no_kernel, padded_grid
from cutile.runtime.launch_plan import LaunchPlan
from cutile.runtime.restoring import restored

Block = tuple[int, int, int]

DETAILED = 48  # blocks whose steps are recorded, besides those that are asked for and those of findings


class Trace(NamedTuple):
    """What a launch did.

    findings  what the sanitizer reports
    error     with which it ended otherwise, if it did
    """

    program: Program
    grid: Block
    recorder: Recorder
    findings: Sequence[TileSanitizerError]
    error: TileError | None


@in_usual_mode
def trace(kernel: Any, grid: Any, args: Any, stream: Any = None, blocks: Iterable[Sequence[int]] = ()) -> Trace:
    """Run a launch twice: with the sanitizer, then with a watcher. Its arrays are as before afterwards.

    blocks  whose steps are to be recorded, besides those that are chosen
    The errors of ct.launch for wrong arguments; ValueError for a block outside the grid; TileUnsupportedFeatureError
    for arrays of too many elements.
    """
    if not isinstance(kernel, Kernel):
        raise refusal(TypeError(no_kernel(kernel, "first argument of view()")))
    if not isinstance(args, tuple):
        raise refusal(TypeError(f"args must be a tuple, got {type(args).__name__}"))
    dims = padded_grid(grid)
    asked = [_block(b, dims) for b in blocks]
    plan, values = launch_plan.find(kernel, args, stream)
    program = plan.program.kernel
    _check_size(kernel, plan, values)
    with _as_usual(SANITIZE="all"), contextlib.redirect_stdout(io.StringIO()):  # the second run prints
        failed = _run(plan, CompiledKernel(program, plan.program.elements), dims, values, stream)
    findings = failed.errors if isinstance(failed, TileSanitizerError) else ()
    found = [f.block for f in findings if f.block is not None]
    recorder = Recorder(program, dims, dict.fromkeys([*asked, *found, *_chosen(dims)]))
    with _as_usual(SANITIZE="off"):
        error = _run(plan, CompiledKernel(watched(program, recorder)), dims, values, stream)
    return Trace(program, dims, recorder, findings, error)


def _run(plan: LaunchPlan, compiled: CompiledKernel, grid: Block, values: list, stream: Any) -> TileError | None:
    """Run a kernel in the place of a plan's. Returns the error with which it ends, unless it is a bug of ours."""
    inner: Any = HostLaunch(compiled, repeatable=False)
    if plan.ordinal is not None:
        from cutile.runtime.host_copies import HostCopyLaunch  # it loads the driver

        inner = HostCopyLaunch(inner, plan.ordinal, plan.dims)
    else:
        inner = PackedLaunch(inner)  # which does nothing where no array is packed
    with restored(plan, values, stream):
        try:
            inner.run(grid, stream, values, False)
        except TileError as e:
            if type(e) is TileInternalError:
                raise
            return e
    return None


@contextlib.contextmanager
def _as_usual(SANITIZE: str) -> Iterator[None]:
    """Within the `with` block, all blocks run, with these checks, and nothing else measures or changes them."""
    with settings.override(SANITIZE=SANITIZE, PROFILE=None, BLOCK=None, UNDETERMINED="zero"):
        yield


def _block(given: Sequence[int], grid: Block) -> Block:
    try:
        block = settings.block_of(given)
    except ValueError:
        raise refusal(ValueError(f"{given!r} is no block: write (3, 0, 0), or the text 3,0,0")) from None
    if not all(i < n for i, n in zip(block, grid, strict=True)):
        raise refusal(ValueError(f"block {block} is outside the grid {grid}"))
    return block


def _chosen(grid: Block) -> list[Block]:
    """Some blocks of a grid: all, if they are few; else first those at its corners, then others, evenly spread."""
    count = prod(grid)
    if count <= DETAILED:
        return list(product(*map(range, grid)))
    corners = list(product(*({0: None, n - 1: None} for n in grid)))
    numbers = [k * (count - 1) // (DETAILED - 1) for k in range(DETAILED)]
    spread = [(n // (grid[1] * grid[2]), n // grid[2] % grid[1], n % grid[2]) for n in numbers]
    return list(dict.fromkeys([*corners, *spread]))[:DETAILED]


def _check_size(kernel: Kernel, plan: LaunchPlan, values: list) -> None:
    shapes = [d[0] for given in plan.dims for d in (given if isinstance(given, list) else [given]) if d is not None]
    if plan.ordinal is None:
        shapes = [a.shape for v in values for a in (v if isinstance(v, list) else [v]) if hasattr(a, "shape")]
    total = sum(map(prod, shapes))
    if total > MOST_ELEMENTS:
        raise TileUnsupportedFeatureError(
            f"{kernel.__name__} was launched on arrays of {total:,} elements, and a picture has at most "
            f"{MOST_ELEMENTS:,}", help="view a launch on smaller arrays: a picture shows no more of larger ones")
