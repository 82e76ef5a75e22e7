"""Refuses outputs that are not what the kernel stores to: it would overwrite an argument and return nothing of use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cutile.analysis.aliasing import first_writes
from cutile.errors import TileTypeError, refusal
from cutile.functions.out import LAST, Output
from cutile.ir.nodes import Kernel as Program

if TYPE_CHECKING:
    from cutile.functions.binding import Bound
    from cutile.functions.tile_function import TileFunction


def check_call(bound: Bound, arguments: tuple) -> None:
    """Check the outputs for a call with these launch arguments, unless calls of its kind were checked before.

    Errors of the launch are left to the launch.
    """
    f = bound.function
    kinds = (*((a.name, a.dtype.name, len(a.shape)) for a in bound.arrays),
             *(repr(bound.values[n]) for n, spec in f.specs.items() if spec.constant and n in bound.values))
    if not f.outputs or kinds in f.checked:
        return
    try:
        program = f.launched.program(f.launched.classify(arguments))
    except Exception:
        return
    check(f, program.kernel)
    f.checked.keep(kinds, True)


def check(f: TileFunction, program: Program) -> None:
    """TileTypeError where the kernel stores to an argument, and not to an output [JIT-7].

    Other arguments may be stored to, such as counters, and an output that has a name may be one that only some
    constants let the kernel store to. But if a kernel stores to none of its outputs, or not to one that was found by
    its position, the declaration names the wrong parameters.
    """
    writes = {program.param_names[program.params.index(p)].partition("[")[0]: n
              for p, n in first_writes(program).items()}
    missed = [o for o in f.outputs if o.name not in writes]
    arguments = [n for n in f.parameters if n in writes and n not in f.returned]
    by_position = any(o.out.name is None for o in missed)
    if arguments and missed and (by_position or len(missed) == len(f.outputs)):
        stored, output = arguments[0], missed[0]
        why = f"; {LAST}" if output.out.name is None else ""
        raise refusal(TileTypeError(
            f"the kernel stores to `{stored}`, which callers pass, and not to `{output.name}`, the output of "
            f"{f.__name__}", writes[stored].span,
            help=f"write ct.Out(..., name=\"{stored}\") if `{stored}` is the output{why}. If calls are meant to "
                 f"change `{stored}`, say so by {f.__name__}.inout(\"{stored}\")"))


def in_words(outputs: Sequence[Output]) -> str:
    return " and ".join(f"`{o.name}`" for o in outputs)
