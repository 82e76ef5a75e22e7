"""The stages of a kernel's compilation, each as text."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cutile import settings
from cutile.compilation.constraints import ParameterConstraint
from cutile.front.program import type_kernel
from cutile.gpu.target import Target
from cutile.ir.nodes import Frame
from cutile.ir.nodes import Kernel as Program
from cutile.ir.text import to_text
from cutile.ir.walk import walk
from cutile.runtime.kernel import Kernel, typed
from cutile.spans import lines_of


class Compilation:
    """A kernel on its way to machine code, for arguments of some types. What a stage needs is made when it is asked.

    constraints  what is known of each parameter of the Python function
    symbol       name of the entry
    target       the GPU that code is made for
    given        what the constraints come from, in words
    """

    def __init__(self, kernel: Kernel, arg_types: Sequence[Any], constraints: Sequence[ParameterConstraint],
                 symbol: str, target: Target, given: str, spans: bool = False):
        self.kernel, self.arg_types, self.constraints, self.symbol = kernel, arg_types, constraints, symbol
        self.target, self.given, self.spans = target, given, spans

    @functools.cached_property
    def typed(self) -> Program:
        return type_kernel(self.kernel.function, self.arg_types).kernel

    @functools.cached_property
    def program(self) -> Program:
        """What back ends take."""
        return typed(self.kernel, self.arg_types).kernel

    @functools.cached_property
    def bytecode(self) -> bytes:
        from cutile.gpu.facts import of_parameters  # the back ends are loaded when they are needed, here and below
        from cutile.gpu.to_bytecode import to_bytecode

        return to_bytecode(self.program, of_parameters(self.constraints), self.target, options=self.kernel.options,
                           symbol=self.symbol)

    @functools.cached_property
    def cubin(self) -> bytes:
        from cutile.gpu.selection import build

        return build(self.program, self.constraints, self.target, self.kernel.options, self.symbol)

    def text_of(self, program: Program) -> str:
        return to_text(program, spans=self.spans)


def _source(c: Compilation) -> str:
    spans = dict.fromkeys([c.typed.span, *(n.def_span for n in walk(c.typed.body) if isinstance(n, Frame))])
    return "\n\n".join(f"# {s.filename}:{s.line}\n{_function_at(lines_of(s.filename)[s.line - 1:])}" for s in spans)


def _function_at(lines: Sequence[str]) -> str:
    """The definition that begins in the first of these lines."""
    return "".join(inspect.getblock(list(lines))).rstrip()


def _passes(c: Compilation) -> str:
    from cutile.gpu.hints import choose_hints
    from cutile.gpu.tileir.lower import PASSES

    out, program = [], c.program
    for change in (*PASSES, functools.partial(choose_hints, target=c.target)):
        before, program = program, change(program)
        name = getattr(change, "__name__", "choose_hints")
        text = c.text_of(program)
        out.append(f"# after {name}{': no change' if text == c.text_of(before) else ''}")
        if text != c.text_of(before):
            out.append(text.rstrip())
    return "\n\n".join(out)


def _tile_ir(c: Compilation) -> str:
    from cutile.gpu.tileir.tileiras import disassemble

    return disassemble(c.bytecode, debug_info=c.spans)


def _remarks(c: Compilation) -> str:
    from cutile.gpu.tileir.tileiras import remarks

    opt_level = c.kernel.options.on(c.target.tool_name).opt_level
    return remarks(c.bytecode, c.target, opt_level=opt_level) or f"the assembler has no remarks for {c.target}"


def _resources(c: Compilation) -> str:
    from cutile.functions.resource_text import lines
    from cutile.gpu.cubin_resources import read

    taken = read(c.cubin, c.symbol)
    return "\n".join([f"{c.kernel.__name__} for {c.target}, {c.given}", *lines(taken, c.target)])


def _hints(c: Compilation) -> str:
    from cutile.functions.hint_text import text

    head = f"{c.kernel.__name__} for {c.target}, {c.given}"
    return f"{head}\n\n{text(c.program, c.constraints, c.target, c.kernel.options, c.symbol)}"


def _sass(c: Compilation) -> str:
    from cutile.gpu.disassembler import sass

    return sass(c.cubin)


def _host(c: Compilation) -> str:
    from cutile.interp.schedule import CompiledKernel, syntax_of

    plan = CompiledKernel(c.program).plan(None, settings.untouched())
    head = f"# schedule {plan.schedule} ({plan.why}), up to {plan.blocks} blocks at a time"
    return "\n\n".join([head, *map(ast.unparse, syntax_of(plan))])


class Stage(NamedTuple):
    doc: str
    text: Callable[[Compilation], str]


STAGES = {
    "source": Stage("the kernel and the functions that it calls, as written", _source),
    "ir": Stage("the typed IR", lambda c: c.text_of(c.typed)),
    "fma": Stage("the IR after multiply-adds are fused and element functions lifted: what the interpreter runs",
                 lambda c: c.text_of(c.program)),
    "passes": Stage("the IR after each pass on the way to a GPU", _passes),
    "tileir": Stage("Tile IR for the target", _tile_ir),
    "remarks": Stage("what the assembler remarks about memory and tensor cores", _remarks),
    "resources": Stage("what the GPU code takes of a multiprocessor", _resources),
    "hints": Stage("the hints that were chosen, and what the code takes with each", _hints),
    "sass": Stage("machine code for the target", _sass),
    "host": Stage("the Python code that the interpreter runs", _host),
}
