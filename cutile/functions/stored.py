"""Refuses outputs that are not what the kernel stores to: it would overwrite an argument, or return nothing of use."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cutile.analysis.aliasing import all_writes, first_writes, only_updates
from cutile.errors import TileTypeError, refusal
from cutile.front.source_text import definition_of
from cutile.functions.out import LAST, Output
from cutile.functions.placement import decorator, why
from cutile.ir.nodes import Kernel as Program
from cutile.ir.nodes import Op
from cutile.tracebacks import warn

if TYPE_CHECKING:
    from cutile.functions.binding import Bound
    from cutile.functions.tile_function import TileFunction


def check_call(bound: Bound, arguments: tuple, given: bool = False) -> None:
    """Check the outputs for a call with these launch arguments, unless calls of its kind were checked before.

    Errors of the launch are left to the launch. `given`: whether the outputs are arrays of the caller.
    """
    f = bound.function
    kinds = (given, *((a.name, a.dtype.name, len(a.shape)) for a in bound.arrays),
             *(repr(bound.values[n]) for n, spec in f.specs.items() if spec.constant and n in bound.values))
    if not f.returned or kinds in f.checked:
        return
    try:
        program = f.launched.program(f.launched.classify(arguments))
    except Exception:
        return
    constants = {n: bound.values[n] for n, s in f.specs.items() if s.constant and n in bound.values}
    check(f, program.kernel, given, constants)
    f.checked.keep(kinds, True)


def check(f: TileFunction, program: Program, given: bool = True, constants: Mapping[str, Any] = {}) -> None:
    """TileTypeError where the kernel stores to an argument and not to the output, or to no output [JIT-7].

    Other arguments may be stored to, such as counters, and an output that has a name may be one that only some
    constants let the kernel store to. But if a kernel stores to none of its outputs, or not to one that was found by
    its position, the declaration names the wrong parameters. Where it stores to no argument either, the store is
    missing, unless an output has a fill, or its code has a use of an output, which constants may have switched off. An
    argument that `inout` names must not be one that the code only reads [JIT-12]. `constants` are those of the call.
    """
    found = {program.param_names[program.params.index(p)].partition("[")[0]: accesses
             for p, accesses in all_writes(program).items()}
    writes = {n: accesses[0].op for n, accesses in found.items()}
    missed = [o for o in f.outputs if o.name not in writes]
    arguments = [n for n in f.parameters if n in writes and n not in f.returned]
    by_position = any(o.out.name is None for o in missed)
    if arguments and missed and (by_position or len(missed) == len(f.outputs)):
        raise _stores_elsewhere(f, arguments[0], missed[0], writes)
    none = len(missed) == len(f.outputs) and all(o.out.fill is None for o in missed)
    for o in missed:
        if none or not _is_used(f, o.name):
            raise _never_stored(f, o, constants)
    for n in sorted(f.returned - {o.name for o in f.outputs} - writes.keys()):
        if _is_only_read(f, n):
            raise refusal(TileTypeError(
                f"the kernel never stores to `{n}`, which {f.__name__}.inout(\"{n}\") says that calls change",
                definition_of(f.kernel.function).header_span(),
                help=f"write ct.store({n}, index, tile), or leave out inout(\"{n}\")"))
    for o in f.outputs:
        if not given and o.out.fill is None and (op := only_updates(found.get(o.name, ()))) is not None:
            raise refusal(TileTypeError(
                f"{op.op.name}() updates `{o.name}`, an output of {f.__name__}, whose elements are undetermined before",
                op.span, help=f"write ct.Out(..., fill=0), or what else they are to be before the launch; or give "
                              f"the array to update: {f.__name__}(..., out=array)"))


def check_declared(f: TileFunction, program: Program) -> None:
    """TileTypeError where the kernel stores to an array that callers pass and that `inout` does not name: for callers
    that rely on what is declared, as graphs do.
    """
    for p, op in first_writes(program).items():
        name = program.param_names[program.params.index(p)].partition("[")[0]
        if name not in f.returned:
            raise refusal(TileTypeError(
                f"{f.__name__} stores to `{name}`, which is no output: write {f.__name__}.inout(\"{name}\") before a "
                f"graph or an operator is made of it, since PyTorch leaves out calls whose results nobody reads",
                op.span, help=f"or declare an output: ct.Out(..., name=\"{name}\")"))


def _stores_elsewhere(f: TileFunction, stored: str, output: Output, writes: Mapping[str, Op]) -> TileTypeError:
    since = f"; {LAST}" if output.out.name is None else ""
    return refusal(TileTypeError(
        f"the kernel stores to `{stored}`, which callers pass, and not to `{output.name}`, the output of {f.__name__}",
        writes[stored].span,
        help=f"write {decorator(f, {output.name: stored})} if `{stored}` is the output{since}. If calls are meant to "
             f"change `{stored}`, say so by {f.__name__}.inout(\"{stored}\")"))


# ------------------------------------------------------------------ outputs that nothing is stored to


def _never_stored(f: TileFunction, output: Output, constants: Mapping[str, Any]) -> TileTypeError:
    """The error for an output that a kernel does not store to: at an assignment to its name, if there is one; at a
    store that constants switch off.
    """
    definition, name = definition_of(f.kernel.function), output.name
    store = next((n for n in ast.walk(definition.node) if name in _written_by(n)), None)
    if store is not None and constants:
        these = ", ".join(f"{n} = {v!r:.40}" for n, v in constants.items())
        return refusal(TileTypeError(
            f"with {these} the kernel never stores to `{name}`, the output of {f.__name__}", definition.span(store),
            help=f"write ct.store({name}, index, tile) for these constants, too, or say what it holds then: "
                 f"ct.Out(..., fill=0)"))
    assigned = next((n for n in ast.walk(definition.node) if isinstance(n, ast.Assign | ast.AugAssign | ast.AnnAssign)
                     and name in _names(n, ast.Store)), None)
    if assigned is None:
        return refusal(TileTypeError(f"the kernel never stores to `{name}`, the output of {f.__name__}",
                                     definition.header_span(),
                                     help=f"write ct.store({name}, index, tile){why(name, output.out)}"))
    return refusal(TileTypeError(
        f"this gives the name `{name}` to another value, and stores nothing to `{name}`, the output of {f.__name__}",
        definition.span(assigned), help=f"write ct.store({name}, index, tile)"))


def _written_by(n: ast.AST) -> set[str]:
    """The names of arrays that a call stores to, as its text shows."""
    if not (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.args):
        return set()
    stores = n.func.attr in ("store", "scatter") or n.func.attr.startswith("atomic_")
    return {n.args[0].id} if stores and isinstance(n.args[0], ast.Name) else set()


def _is_used(f: TileFunction, name: str) -> bool:
    """Whether the text of the kernel has a use of a parameter: without one, no constants let it be stored to."""
    return name in _names(definition_of(f.kernel.function).node, ast.Load)


def _is_only_read(f: TileFunction, name: str) -> bool:
    """Whether the text of the kernel only reads an array: no constants let it be stored to."""
    tree = definition_of(f.kernel.function).node
    read = [part for n in ast.walk(tree) for part in _read_by(n)]
    return all(n in read for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name)


def _read_by(n: ast.AST) -> Sequence[ast.AST]:
    """The parts of an expression that it only reads, where it is a load or asks for sizes or dtype."""
    if isinstance(n, ast.Attribute) and n.attr in ("shape", "dtype", "ndim"):
        return [n.value]
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ("load", "gather"):
        return n.args[:1]
    return []


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


# ------------------------------------------------------------------ arrays that are given for outputs


def check_apart(bound: Bound, given: Mapping[str, Any]) -> None:
    """ValueError for one array that is given for two outputs, and for an argument that would be filled. A warning where
    another is an argument as well [JIT-12].
    """
    f, outputs = bound.function, list(given.items())
    for i, (name, a) in enumerate(outputs):
        for other, b in outputs[:i]:
            if a is b:
                raise refusal(ValueError(f"{f.__name__}(): out= gives one array for `{other}` and for `{name}`; each "
                                         f"output needs an array of its own"))
    filled = {o.name: o.out.fill for o in f.outputs if o.out.fill is not None}
    for name, a in outputs:
        for x in bound.arrays:
            if a is x.value and name in filled:
                raise refusal(ValueError(f"{f.__name__}(): out= is the array that `{x.name}` is, too, and output "
                                         f"`{name}` is filled with {filled[name]} before the launch, so that the "
                                         f"kernel would read that; pass another array"))
            if a is x.value and (name, x.name) not in f.warned:
                f.warned.add((name, x.name))
                warn(
                    f"{f.__name__}(): out= is the array that `{x.name}` is, too. The kernel writes to it as `{name}` "
                    f"and reads it as `{x.name}`, so that a block may read what another has written. Pass another "
                    f"array, such as a copy of `{x.name}`. A kernel that is to work in place stores to `{x.name}` "
                    f"itself, and inout(\"{x.name}\") says so")


def in_words(outputs: Sequence[Output]) -> str:
    return " and ".join(f"`{o.name}`" for o in outputs)
