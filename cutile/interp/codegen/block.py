"""Emits code for the block schedule: plain Python that runs one block, as the user would step through it.

Branches and loops become Python's, and each frame becomes a function, so a debugger shows the user's own stack. The
user's variables are locals with their names. Code reads a variable wherever it holds the value that is needed. So a
value that the user assigns in the debugger is used from then on. Other values are in temporaries such as `.t0`, which
are deleted after their last use.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from cutile.dtypes import info
from cutile.interp.codegen.copy_propagation import is_temp, propagate_copies
from cutile.interp.codegen.emit import (
    BLOCK,
    CTX,
    EmittedCode,
    Liveness,
    breakpoint_call,
    environment,
    is_breakpoint,
    meaning_call,
)
from cutile.interp.codegen.links import ENVIRONMENT, Functions
from cutile.interp.codegen.py_ast import (
    NO_POSITION,
    NONE,
    Compare,
    Expr,
    If,
    Pass,
    Position,
    Return,
    Subscript,
    assign,
    assign_all,
    attribute,
    call,
    constant,
    delete,
    header,
    inherit_position,
    load,
    position,
    set_position,
    tuple_of,
)
from cutile.interp.codegen.templates import from_template
from cutile.interp.codegen.variables import OpenLoop, Path, Variables, claimed
from cutile.interp.exec.combine import combine_elements, map_elements
from cutile.interp.exec.divergence import bad_step, count_step
from cutile.interp.show import Tile
from cutile.ir import nodes as ir
from cutile.ir.nodes import TERMINATORS, Kernel, Node, Op, Region, Template, Value
from cutile.ir.recursion import recursive
from cutile.ir.walk import shown_values
from cutile.ops import create, shape
from cutile.ops.elementwise import elementwise
from cutile.spans import Span
from cutile.types import TileType

CALLS_PER_CHECK = 64  # nested calls after which running code may continue in a further thread
FOLDED_OPS = (create.constant, shape.broadcast_to)  # the front end inserts these for a number beside a tile
INTERNAL_SPAN = Span("<cutile>", 1, 0, 1, 0, "cutile")  # the position of functions that the user did not write


def compile_kernel(kernel: Kernel, *, check: bool, step_limit: bool, syntax: bool = False) -> EmittedCode:
    """The kernel as a Python function (ctx, block, *arguments), the object ".kernel" of the emitted code. `syntax`:
    keep the functions' syntax.
    """
    code = EmittedCode(kernel, check, step_limit, editable=True, syntax=[] if syntax else None)
    return emit_kernel(kernel, Function(code, liveness_of(kernel), deque()))


def liveness_of(kernel: Kernel) -> Liveness:
    """Which values are read where, for code in which each call and each combine function is a Python function."""
    functions = Functions(lambda n: isinstance(n, ir.Frame | Op), lambda n: isinstance(n, ir.Frame), _shown_at_call)
    return Liveness(kernel.body, shown=True, functions=functions)


def emit_kernel(kernel: Kernel, top: Function) -> EmittedCode:
    """The emitted code of a kernel, where `top` is the function that calls the kernel's."""
    code, queue = top.code, top.queue
    code.objects[".Tile"] = Tile
    at = position(INTERNAL_SPAN)  # a generator that goes on would else have no line, which pdb of Python 3.11.2 needs
    enter = set_position(Return(top.enter(kernel.name, kernel.span, kernel.body, kernel.params)), at)
    params = [CTX, BLOCK, *top.temps(kernel.params)]
    code.define("launch", params, [enter], INTERNAL_SPAN.filename, at, ".kernel")
    while queue:  # frames nest deeper than Python's stack allows recursion here
        queue.popleft()()
    code.finish()
    return code


class Function:
    """One Python function under construction.

    The interleave schedule overrides `survives_deep_stack`, `inner`, `called`, `pause`, `before_loop`,
    `before_iteration` and `combining`.
    """

    def __init__(self, code: EmittedCode, liveness: Liveness, queue: deque, constants: dict[Value, str] | None = None):
        self.code, self.liveness, self.queue = code, liveness, queue
        self.constants = {} if constants is None else constants  # shared by all functions of the kernel
        self.depth = 0  # how many calls this function is nested in
        self.linked = False  # see links.py
        self.variables = Variables()
        self.loops: list[OpenLoop] = []
        self.ends: list[Callable[[Node], list[ast.stmt]]] = []  # for each open region, what its Yield becomes

    def enter(self, name: str, span: Span, body: Region, values: Sequence[Value]) -> ast.expr:
        """Queue a function, and return a call of it. `values` are the values visible here that the body may read.

        The first Binds of a body, up to the line of its header, name its parameters. They become parameters of the
        Python function, so that all of them exist when a debugger stops in its first line.
        """
        arriving = _arriving(body, span)
        named: dict[str, Template] = {n.name: n.template for n in arriving}
        skip, link = len(arriving), self.liveness.links[body]
        read = {v for n in body.nodes[skip:] for v in self.liveness.reads(n)}
        values = [v for v in values if v in read]
        slot, inner = self.code.slot("function"), self.inner()
        inner.depth = self.depth + 1
        for variable, v in named.items():
            if isinstance(v, Value):
                inner.variables.bind(variable, (v,))
        params = [*named, *self.temps(values)]
        shown = [from_template(self.code, t, self.use) for t in named.values()]
        made = call(load(slot), [load(CTX), load(BLOCK), *shown, *map(self.use, values)])
        if link is not None:
            inner.linked = True
            params.append(ENVIRONMENT)
            keys = self.liveness.links.key
            made.args.append(environment(self.code, [(keys(v), self.use(v)) for v in link.stores], self.linked))
        self.queue.append(lambda: inner.define(name, span, body, slot, params, values, skip, made))
        return self.called(made, body)

    def define(self, name: str, span: Span, body: Region, slot: str, params: Sequence[str], own: Sequence[Value],
               skip: int = 0, entry: ast.Call | None = None) -> None:
        """Emit a function. `own`: the values that its parameters hold as temporaries; the first `skip` nodes of the
        body need no code. `entry`: the only call; temporaries that the body does not read are dropped from both.
        """
        link = self.liveness.links[body]
        fetched = () if link is None else link.fetched
        stmts, _ = self.region(body, span.line, [*own, *fetched], skip)
        stmts[:0] = [set_position(assign(self.temps([v]), self.fetch(v)), NO_POSITION) for v in fetched]
        reads = propagate_copies(stmts)
        if entry is not None:
            unread = {i for i, p in enumerate(params) if is_temp(p) and not reads[p]}
            params = [p for i, p in enumerate(params) if i not in unread]
            entry.args[:] = [x for i, x in enumerate(entry.args, -2) if i not in unread]
        done = self.when_made(slot, body) if self.depth % CALLS_PER_CHECK == CALLS_PER_CHECK - 1 else None
        self.code.define(name, [CTX, BLOCK, *params], inherit_position(stmts), span.filename, header(span), slot,
                            done)

    def when_made(self, slot: str, body: Region) -> Callable:
        """Called with the function that has this body when it is made: it then survives a nearly full stack."""
        def done(function: Callable) -> None:
            self.code.objects[slot] = self.survives_deep_stack(function, body)
        return done

    # -------------------------------------------------------------- what the interleave schedule adds

    def survives_deep_stack(self, function: Callable, body: Region) -> Callable:
        """`function`, whose body is `body`, wrapped so that it can be called when the stack is nearly full."""
        return recursive(function)

    def inner(self) -> Function:
        """A function that is called from this one."""
        return Function(self.code, self.liveness, self.queue, self.constants)

    def called(self, y: ast.Call, body: Region) -> ast.expr:
        """An expression for the result of a call of the function with that body."""
        return y

    def pause(self, n: Op) -> list[ast.stmt]:
        """Statements before an op."""
        return []

    def before_loop(self, n: ir.While) -> list[ast.stmt]:
        """Statements before a loop."""
        return []

    def before_iteration(self, n: ir.While) -> list[ast.stmt]:
        """Statements at the beginning of each iteration, before the condition."""
        return []

    def combining(self) -> Callable:
        """The function that calls a combine function for all elements."""
        return combine_elements

    # -------------------------------------------------------------- values

    def use(self, v: Value) -> ast.expr:
        """The variable of the user that holds a value, or its temporary."""
        return load(self.variables.holder(v) or self.constants.get(v) or self.code.temp(v))

    def carrier(self, v: Value) -> ast.expr:
        """The value as an operand of a meaning: a tile's carrier, an array's descriptor."""
        x = self.use(v)
        return attribute(x, "carrier") if isinstance(v.type, TileType) else x

    def tile(self, x: ast.expr, t: TileType) -> ast.expr:
        return call(load(".Tile"), (), [("carrier", x), ("type", self.code.ref(t, "type"))])

    def fetch(self, v: Value) -> ast.expr:
        return Subscript(load(ENVIRONMENT), constant(self.liveness.links.key(v)), ast.Load())

    def temps(self, values: Iterable[Value]) -> list[str]:
        return [self.code.temp(v) for v in values]

    def move(self, targets: Sequence[str], operands: Sequence[Value]) -> list[ast.stmt]:
        """Assign values to temporaries, all at once."""
        pairs = [(t, x) for t, x in zip(targets, map(self.use, operands), strict=True)
                 if not (isinstance(x, ast.Name) and x.id == t)]
        return [set_position(assign_all([t for t, _ in pairs], [x for _, x in pairs]), NO_POSITION)] if pairs else []

    # ------------------------------------------------------------- regions

    @recursive
    def region(self, region: Region, line: int = 0, own: Iterable[Value] = (),
               skip: int = 0) -> tuple[list[ast.stmt], bool]:
        """The statements of a region from node `skip` on, and whether control can reach its end.

        `line`: that of the header of a function or loop; the first Binds belong to it. `own`: values whose temporaries
        may be deleted in this region, besides those that it defines.
        """
        out: list[ast.stmt] = []
        local = set(own)
        header_end = line  # Binds up to this line say what variables hold; the user assigns nothing there
        last = self.liveness.last_uses(region)
        for i, n in enumerate(region.nodes):
            if i < skip:
                continue
            if isinstance(n, TERMINATORS):
                before = region.nodes[i - 1] if i else None
                return out + TERMINATE[type(n)](self, n, before), isinstance(n, ir.Yield | ir.Continue)
            if isinstance(n, ir.Bind):
                out += self.bind(n, arriving=n.span.line <= header_end)
                falls = True
            else:
                header_end = n.span.end_line if isinstance(n, ir.If | ir.For | ir.While) else 0
                stmts, falls = EMIT[type(n)](self, n)
                out += stmts
            local.update(ir.results_of(n))
            if not falls:
                return out, False
            if dead := self.temps(v for v in self.liveness.ending(n, last) if v in local):
                out.append(set_position(delete(dead), NO_POSITION))
        return out, True

    # -------------------------------------------------------------- plain nodes

    def op(self, n: Op) -> tuple[list[ast.stmt], bool]:
        at = position(n.span)
        if is_breakpoint(n):
            return [set_position(Expr(breakpoint_call(n)), at)], True
        if n.op in FOLDED_OPS and all(v in self.constants for v in n.operands):
            self.constants[n.results[0]] = self.folded(n)
            return [], True
        combine = None if n.region is None else self.combine(n)
        y = meaning_call(self.code, n, [self.carrier(v) for v in n.operands], combine)
        if len(n.results) == 1 and isinstance(n.results[0].type, TileType):
            y = self.tile(y, n.results[0].type)
        stmts = [*self.pause(n), set_position(assign(self.temps(n.results), y), at)]
        if len(n.results) > 1:
            stmts += [set_position(assign([t], self.tile(load(t), v.type)), at)
                      for t, v in zip(self.temps(n.results), n.results, strict=True) if isinstance(v.type, TileType)]
        return stmts, True

    def folded(self, n: Op) -> str:
        """An op on constants that the user did not write. It is computed now, so a debugger never steps into it."""
        # The carrier of the constant, even if the user's variable holds something else by now.
        operands = [attribute(load(self.constants[v]), "carrier") for v in n.operands]
        y = self.tile(meaning_call(self.code, n, operands, None), n.results[0].type)
        return self.code.ref(self.code.evaluate(y), "constant").id

    def bind(self, n: ir.Bind, arriving: bool) -> list[ast.stmt]:
        """`name = template`. No statement if the header of a function or loop binds a variable (`arriving`) that holds
        the value already.
        """
        v = n.template
        if not n.name:  # it only marks that control came here
            return [set_position(Pass(), position(n.span))]
        if isinstance(v, Value):
            if arriving and v in self.variables[n.name]:
                return []
            source = self.use(v)
            self.variables.bind(n.name, (v,))
        else:
            source = from_template(self.code, v, self.use)
            self.variables.bind(n.name)
        return [set_position(assign([n.name], source), NO_POSITION if arriving else position(n.span))]

    # -------------------------------------------------------------- structured nodes

    def if_(self, n: ir.If) -> tuple[list[ast.stmt], bool]:
        at = header(n.span)
        test = self.carrier(n.cond)
        before, arriving, sides = self.variables.mark(), [], []
        for side in (n.then, n.orelse):
            self.ends.append(lambda y: self._arrive(y, n.results, before, arriving))
            stmts, _ = self.region(side)
            self.ends.pop()
            self.variables.undo(before)
            sides.append(stmts)
        then, orelse = sides
        self.variables.meet(arriving)
        return [set_position(If(test, then or [set_position(Pass(), NO_POSITION)], orelse), at)], bool(arriving)

    def _arrive(self, y: ir.Yield, results: Sequence[Value], before: int, arriving: list[Path]) -> list[ast.stmt]:
        arriving.append(self.variables.path(before, y.operands, results))
        return self.move(self.temps(results), y.operands)

    def for_(self, n: ir.For) -> tuple[list[ast.stmt], bool]:
        at, p = header(n.span), self.code
        iv, i = p.temp(n.iv), p.temp(n.iv) + "i"
        start, stop, step = (self.carrier(v) for v in (n.start, n.stop, n.step))
        bad = If(Compare(step, [ast.LtE()], [constant(0)]),
                     [Expr(call(p.ref(bad_step, "bad_step"), [step, p.ref(n.span, "span")]))], NONE)
        number = call(load(".array"), [load(i), p.ref(info(n.iv.type.dtype).carrier, "carrier")])

        def body(loop: OpenLoop) -> list[ast.stmt]:
            self._end(loop)
            first = [set_position(assign([iv], self.tile(number, n.iv.type)), at), *self.count(n.span, at)]
            return first + self.region(n.body, n.span.line)[0]

        bounds = [call(load(".int"), [x]) for x in (start, stop, step)]
        stmts, falls = self.loop(n, body, lambda stmts: ast.For(
            ast.Name(i, ast.Store()), call(load(".range"), bounds), stmts, NONE), at)
        return [*stmts[:-1], set_position(bad, at), stmts[-1]], falls

    def while_(self, n: ir.While) -> tuple[list[ast.stmt], bool]:
        at = header(n.span)

        def body(loop: OpenLoop) -> list[ast.stmt]:
            stmts = self.before_iteration(n)
            if n.cond is not None:
                self.ends.append(lambda y: self._leave_unless(y, loop))
                stmts += self.region(n.cond)[0]
                self.ends.pop()
            return stmts + self.count(n.span, at) + self.region(n.body, n.span.line)[0]

        before = self.before_loop(n)
        stmts, falls = self.loop(n, body, lambda stmts: ast.While(constant(True), stmts, NONE), at)
        return before + stmts, falls

    def _leave_unless(self, y: ir.Yield, loop: OpenLoop) -> list[ast.stmt]:
        test = ast.UnaryOp(ast.Not(), self.carrier(y.operands[0]))
        self._end(loop)
        return [set_position(If(test, [ast.Break()], NONE), position(y.span))]

    def count(self, span: Span, at: Position) -> list[ast.stmt]:
        if not self.code.step_limit:
            return []
        args = [load(CTX), self.code.ref(span, "span")]
        return [set_position(Expr(call(self.code.ref(count_step, "count"), args)), at)]

    def _end(self, loop: OpenLoop) -> None:
        """Note that the loop may end here with its current carried values."""
        loop.normal.append(self.variables.path(loop.mark, loop.node.params, loop.node.results))

    def loop(self, n: ir.For | ir.While, body: Callable[[OpenLoop], list[ast.stmt]], statement: Callable,
             at: Position) -> tuple[list[ast.stmt], bool]:
        """A loop. `body(loop)` gives its statements.

        Carried values share the temporaries of the results, so no exit has to copy them.
        """
        for p, r in zip(n.params, n.results, strict=False):
            self.code.share(p, r)
        start = self.move(self.temps(n.params), n.inits)
        loop = OpenLoop(n, claimed(self.variables, n), self.variables.mark(), wrong=True)
        while loop.wrong:
            loop = OpenLoop(n, loop.claims, loop.mark)
            loop.begin(self.variables)
            self.loops.append(loop)
            stmts = body(loop)
            self.loops.pop()
            self.variables.undo(loop.mark)
        exits = loop.normal + loop.breaks
        self.variables.meet(exits)
        return [*start, set_position(statement(stmts), at)], bool(exits)

    def frame(self, n: ir.Frame) -> tuple[list[ast.stmt], bool]:
        y = self.enter(n.function, n.def_span, n.body, self.liveness[n.body])
        return [set_position(assign(self.temps(n.results), y), position(n.span))], True

    def combine(self, n: Op) -> ast.expr:
        """The `combine` of a meaning, as an expression: the user's function of a reduce or scan, or of elements, and
        what it captures.
        """
        slot, values = self.code.slot("combine"), self.liveness[n.region]
        inner = Function(self.code, self.liveness, self.queue, self.constants)
        inner.ends.append(inner.give)
        params = [*n.region.params, *values]
        self.queue.append(lambda: inner.define("combine", INTERNAL_SPAN, n.region, slot, self.temps(params), params))
        types = self.code.ref(tuple(v.type for v in n.region.params), "types")
        if n.op is elementwise:
            results = self.code.ref(tuple(v.type for v in n.region.terminator.operands), "types")
            return call(load(".partial"), [self.code.ref(map_elements, "elements"), load(slot), load(CTX), load(BLOCK),
                                           types, results, tuple_of(map(self.use, values))])
        elements = self.code.ref(self.combining(), "elements")
        return call(load(".partial"), [elements, load(slot), load(CTX), load(BLOCK), types,
                                       tuple_of(map(self.use, values))])

    # -------------------------------------------------------------- terminators

    def give(self, n: ir.Return | ir.Yield, at: Position = NO_POSITION) -> list[ast.stmt]:
        values = [self.use(v) for v in n.operands]
        value = None if not values else values[0] if len(values) == 1 else tuple_of(values)
        return [set_position(Return(value), at)]

    def yield_(self, n: ir.Yield, before: Node | None) -> list[ast.stmt]:
        return self.ends[-1](n)

    def continue_(self, n: ir.Continue, before: Node | None) -> list[ast.stmt]:
        loop = self.loops[-1]
        loop.next(self.variables, n.operands)
        own = (n.span.line, n.span.col) != (loop.node.span.line, loop.node.span.col)  # the user wrote `continue`
        return [*self.move(self.temps(loop.node.params), n.operands),
                set_position(ast.Continue(), position(n.span) if own else NO_POSITION)]

    def break_(self, n: ir.Break, before: Node | None) -> list[ast.stmt]:
        loop = self.loops[-1]
        loop.breaks.append(self.variables.path(loop.mark, n.operands, loop.node.results))
        return [*self.move(self.temps(loop.node.results), n.operands), set_position(ast.Break(), position(n.span))]

    def return_(self, n: ir.Return, before: Node | None) -> list[ast.stmt]:
        implicit = not n.operands and before is not None and _inside(before.span, n.span)
        return self.give(n, NO_POSITION if implicit else position(n.span))


EMIT: dict[type, Callable] = {Op: Function.op, ir.If: Function.if_, ir.For: Function.for_, ir.While: Function.while_,
                              ir.Frame: Function.frame}
TERMINATE: dict[type, Callable] = {ir.Yield: Function.yield_, ir.Continue: Function.continue_,
                                   ir.Break: Function.break_, ir.Return: Function.return_}


def _arriving(body: Region, span: Span) -> list[ir.Bind]:
    """The first Binds of a function's body, up to the line of its header."""
    return list(takewhile(lambda n: isinstance(n, ir.Bind) and bool(n.name) and n.span.line <= span.line, body.nodes))


def _shown_at_call(n: ir.Frame) -> list[Value]:
    """The values in the arguments of a call, which its caller builds."""
    return [v for b in _arriving(n.body, n.def_span) for v in shown_values(b.template)]


def _inside(inner: Span, outer: Span) -> bool:
    return outer.line <= inner.line <= outer.end_line
