"""Emits code for the batch schedule: straight-line Python over carriers with batch axes, a function for each region.

The parameters of such a function are the running blocks, the params of the region, and the values that it captures;
`exec/divergence.py` calls it. Locals are deleted after their last use, so that the allocator reuses memory that is in
the cache. The functions carry the user's file, names and positions, for tracebacks and coverage.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Container, Sequence
from itertools import chain
from types import FunctionType

import numpy as np

from cutile.analysis.affine import AffineIndex
from cutile.dtypes import float32, info
from cutile.interp.codegen.batch_analysis import batch_facts, block_function
from cutile.interp.codegen.batch_unit import Unit, rank_of, ranks_of
from cutile.interp.codegen.chains import chained
from cutile.interp.codegen.emit import (
    CTX,
    EmittedCode,
    Liveness,
    arguments,
    breakpoint_call,
    environment,
    finished,
    is_breakpoint,
    meaning_call,
)
from cutile.interp.codegen.exits import Enclosing, Exits
from cutile.interp.codegen.links import ENVIRONMENT, Functions, Link
from cutile.interp.codegen.py_ast import (
    NONE,
    Call,
    Compare,
    Expr,
    If,
    IfExp,
    Pass,
    Position,
    Return,
    Starred,
    Subscript,
    assign,
    attribute,
    call,
    constant,
    delete,
    fields_of,
    header,
    place,
    position,
    tuple_of,
    unpack,
)
from cutile.interp.exec import block_set, divergence, merge
from cutile.interp.exec.divergence import Combine, MergePoint, RegionCode
from cutile.interp.exec.merge import Kind
from cutile.interp.memory.loop_tiles import LoopTiles
from cutile.interp.memory.stored_view import as_stored
from cutile.ir import nodes as ir
from cutile.ir.nodes import TERMINATORS, Kernel, Node, Op, Region, Value, inner_of, uses_of
from cutile.ir.recursion import recursive
from cutile.ops import _layout, _numeric
from cutile.ops._combine import ufunc_of
from cutile.ops._promotion import broadcastable_to
from cutile.spans import Span

# Locals of emitted functions: the blocks that go on, the outcome of a node, the tile of an array to write to.
NARROWER, OUT, TARGET = ".next", ".out", ".target"
_WITH_HEADER = (ir.If, *ir.LOOPS)


def compile_kernel(kernel: Kernel, *, check: bool, step_limit: bool, syntax: bool = False) -> EmittedCode:
    """The kernel as a Python function (ctx, *arguments, *views), the object ".kernel" of the emitted code.

    `views`: for each op of `view_finders`, its tiles as one view of memory; with None, the default, the op itself finds
    them. `syntax`: keep the functions' syntax.
    """
    kernel = chained(kernel, check)
    facts = batch_facts(kernel, check)
    body = facts.body
    code = EmittedCode(kernel, check, step_limit, facts.streams(body), shared=True,
                       syntax=[] if syntax else None)
    for f in (divergence.branch, divergence.branch_all, divergence.for_loop, divergence.while_loop, divergence.frame,
              merge.narrow, merge.fetched, block_set.with_batch_axes, _layout.with_blocks_last, _layout.empty_result,
              _layout.copied_apart, as_stored):
        code.objects["." + f.__name__] = f
    code.objects |= {".empty_like": np.empty_like, ".reusable": reusable_or_none, ".put": operator.setitem}
    first: dict[int, Value] = {}  # by the id of the array that values share
    read = set(chain.from_iterable(map(uses_of, facts.local)))
    for v, x in facts.constants.items():
        if v in read:
            code.share(v, first.setdefault(id(x), v))
            code.objects[code.temp(v)] = x
    functions = Functions(lambda n: True, lambda n: isinstance(n, ir.Frame | ir.If))
    liveness = Liveness(body, False, facts.reads, facts.results, functions)
    unit = Unit(code, liveness, facts, Exits(body), body)
    unit.assign_views(body)
    view_finders, views = tuple(unit.views), tuple(unit.views.values())
    emit_function(unit, Enclosing(kernel.name, kernel.span), body, ".kernel", kernel.params, views, ir.Return,
                  leaving=False)
    while unit.queue:
        unit.queue.popleft()()
    code.finish()
    code.skipped, code.as_stored = frozenset(facts.skipped), facts.as_stored
    code.view_finders = {n: functools.partial(facts.find_view, n) for n in view_finders}
    code.objects[".kernel"].__defaults__ = (None,) * len(view_finders)
    return code


def nested_region(unit: Unit, enclosing: Enclosing, region: Region, tail: type, own: Sequence[Value],
                  given: Sequence[str] = (), views: Sequence[str] = (), *, leaving: bool | None = None,
                  at: Span | None = None, linked: bool = False) -> tuple[RegionCode, ast.expr]:
    """Queue the function of a nested region. Returns its RegionCode and an expression for what it captures. `linked`:
    the function that calls it is linked.

    The caller of the function passes the values `own`, the records `given`, in which blocks that leave the enclosing
    loops or frame are entered, and may pass `views`. `leaving`: whether blocks may leave the region before its end.
    """
    exits = unit.exits[region]
    leaving = bool(exits) if leaving is None else leaving
    captured = [v for v in unit.liveness[region] if v not in own]
    records = [r for r in enclosing.records(exits) if r not in given]
    link = unit.liveness.links[region]
    passed = [*map(unit.code.value, captured), *map(unit.code.load, records)]
    if link is not None:
        passed.append(environment(unit.code, unit.entries(link.stores), linked))
        records.append(ENVIRONMENT)
    code = RegionCode((*ranks_of(captured), *(Kind.SHARED for _ in records)), leaving)
    slot = unit.code.slot("region")
    params = [*own, *captured]

    unit.queue.append(functools.partial(  # not a closure, which has a cell for each of these
        emit_function, unit, enclosing, region, slot, params, (*records, *given, *views), tail, leaving=leaving,
        done=functools.partial(_made, unit, region, code, len(views)), at=at))
    return code, tuple_of(passed)


def _made(unit: Unit, region: Region, code: RegionCode, views: int, function: FunctionType) -> None:
    """The function of a nested region has been made."""
    function.__defaults__ = (None,) * views
    code.function = recursive(function) if unit.may_begin_thread(region) else function


def emit_function(unit: Unit, enclosing: Enclosing, region: Region, slot: str, params: Sequence[Value],
                  records: Sequence[str], tail: type, *, leaving: bool, done: Callable | None = None,
                  at: Span | None = None) -> None:
    """Emit the function of a region as the object `slot`. Nodes of class `tail` end the region, so they become
    `return`.
    """
    at = at or enclosing.span
    body = Body(unit, enclosing, tail, leaving, unit.liveness.links[region])
    stmts = body.emit(region, 0 if tail is ir.Yield else at.line, params)
    unit.code.define(enclosing.name, [CTX, *unit.temps(params), *records], stmts, enclosing.span.filename,
                     header(at), slot, done)


class Body:
    """The statements of one function."""

    def __init__(self, unit: Unit, enclosing: Enclosing, tail: type, leaving: bool, link: Link | None):
        self.unit, self.enclosing, self.tail, self.leaving, self.link = unit, enclosing, tail, leaving, link
        self.code, self.load = unit.code, unit.code.load
        self.line = 0  # of the latest statement
        self.places: dict[int, dict[str, int] | None] = {}  # by the id of a span: the fields of its position here

    def emit(self, region: Region, line: int, params: Sequence[Value]) -> list[ast.stmt]:
        """The statements of a region. `line`: that of the header of a function or loop; the first Binds belong to it.
        """
        fetched = () if self.link is None else self.link.fetched
        out = [unpack(self.unit.temps(fetched), self.fetch(fetched))] if fetched else []
        header_end = line
        skipped, exits, filename = self.unit.facts.skipped, self.unit.exits, self.enclosing.span.filename
        liveness = self.unit.liveness
        free: list[Value] = []  # values whose locals have been deleted: few names make many statements alike
        last = liveness.last_uses(region)
        alive = dict.fromkeys([v for v in (*params, *fetched) if v in last])  # that some node reads
        for n in region.nodes:
            kind = type(n)
            if kind is ir.Bind:
                if n.span.line > header_end and n.span.filename == filename:
                    out += self.cover_line(n)
                continue
            if kind in TERMINATORS:
                return out + self.terminator(n)
            header_end = n.span.end_line if kind in _WITH_HEADER else 0
            if n in skipped:
                out += self.cover_line(n)
                continue
            dead = liveness.ending(n, last)
            replaced = self.replaced_by(n, dead, alive) if kind is Op else None
            if free and kind is Op and replaced is None and len(n.results) == 1:
                self.code.share(n.results[0], free.pop())
            out += EMIT[kind](self, n)
            results = n.results
            ended = [v for v in dead if v in alive or v in results]
            left = [v for v in ended if v is not replaced] if replaced is not None else ended
            if left:
                out.append(self.code.delete(self.unit.temps(left)))
                free += left
            for v in ended:
                alive.pop(v, None)
            if kind is not Op and exits.node(n):  # the results of `n` are already narrowed to the blocks that go on
                out += self.narrow_after(list(alive))
            alive.update([(v, None) for v in results if v not in ended])
        return [*out, Return(constant(None))]

    def fetch(self, values: Sequence[Value]) -> ast.expr:
        """The values of these blocks, from the environment."""
        keys = self.unit.ref(tuple(map(self.unit.liveness.links.key, values)), "keys")
        return call(self.load(".fetched"), [self.load(CTX), self.load(ENVIRONMENT), keys,
                                            self.unit.ref(ranks_of(values), "ranks")])

    def replaced_by(self, n: Op, dead: Sequence[Value], alive: Container[Value]) -> Value | None:
        """An operand of an op that no later node reads: the result goes into its local, which then needs no `del`."""
        if n.region is None and len(n.results) == 1:
            for v in n.operands:
                if v in dead and v in alive:
                    self.code.share(n.results[0], v)
                    return v
        return None

    def narrow_after(self, values: Sequence[Value]) -> list[ast.stmt]:
        """Narrow `ctx` and the values to the blocks that reach the end of a node; other blocks may have left it."""
        load = self.load
        moved = [v for v in values if rank_of(v) is not Kind.SHARED]
        narrowed = call(load(".narrow"), [load(CTX), load(NARROWER), self.unit.loads(moved),
                                          self.unit.ref(ranks_of(moved), "ranks")])
        different = Compare(load(NARROWER), [ast.IsNot()], [load(CTX)])
        body = [unpack(self.unit.temps(moved), narrowed)] if moved else []
        return [If(different, [*body, assign([CTX], load(NARROWER))], NONE)]

    def positioned(self, stmt: ast.stmt, n: Node) -> ast.stmt:
        """The statement at the position of a node in this file; what took the place of a call stands at the call."""
        if type(n) in _WITH_HEADER:
            here = self.place_of(n.span, header)
        else:
            key = id(n.span)  # which unrolled loops repeat
            if key not in self.places:
                self.places[key] = self.place_of(n.span, position)
            here = self.places[key]
        if here is None:
            return stmt
        self.line = here["lineno"]
        return place(stmt, here)

    def place_of(self, span: Span | None, of: Callable[[Span], Position]) -> dict[str, int] | None:
        """The fields of the position of a span, or of the call in this file that led there; None if there is none."""
        while span is not None and span.filename != self.enclosing.span.filename:
            span = span.call_site
        return None if span is None else fields_of(of(span))

    # -------------------------------------------------------------- plain nodes

    def op(self, n: Op) -> list[ast.stmt]:
        if is_breakpoint(n):
            return [self.positioned(Expr(breakpoint_call(n)), n)]
        facts, load = self.unit.facts, self.load
        if n in facts.implicit:
            return [self.positioned(self.code.assign(self.unit.temps(n.results), self.code.value(n.operands[0])), n)]
        operands, combine, results = self.operands(n), None, n.results
        if n.region is not None:
            combine, operands = self.combine(n, operands)
        if facts.moved and n.op.target is not None:
            operands[-1] = call(load(".copied_apart"), [operands[-1], constant(n.operands[-1].type.ndim)])
        changed = {}
        if "want_old" in n.attrs and facts.unread(n):
            changed["want_old"] = constant(False)
        stmts: list[ast.stmt] = []
        store = facts.stored_by.get(n)
        if n.op.takes_out:
            if store is not None:
                stmts = [self.positioned(assign([TARGET], self.viewed(store, load, self.target(store))), store)]
                changed["out"] = load(TARGET)
            elif (buffer := self.buffer(n, operands)) is not None:
                changed["out"] = buffer
        move = n in facts.moved and store is None
        if move and n.op.elementwise and n.op.takes_out and info(n.results[0].type.dtype).carried_exactly:
            carrier = self.unit.ref(info(n.results[0].type.dtype).carrier, "carrier")
            changed["out"] = call(load(".empty_result"), [constant(n.results[0].type.ndim), carrier, *operands])
            move = False
        y = meaning_call(self.code, n, operands, combine, **changed)
        if n in self.unit.views:
            y = self.viewed(n, self.view_access(n, operands), y)
        targets = [self.code.temp(results[0])] if len(results) == 1 else self.unit.temps(results)
        if move and type(y) is IfExp:  # which `place` knows at the top only
            stmts.append(self.positioned(self.code.assign(targets, y), n))
            y = load(targets[0])
        if move:
            y = call(load(".with_blocks_last"), [y, constant(n.results[0].type.ndim)])
        stmts.append(self.positioned(self.code.assign(targets, y), n))
        if n in facts.stores:
            there = Compare(operands[-1], [ast.IsNot()], [load(TARGET)])
            return [self.positioned(If(there, stmts, NONE), n)]
        return stmts

    def viewed(self, n: Op, short: Callable[[str], ast.expr], long: ast.expr) -> ast.expr:
        """The code of an op: `short(view)` where its tile was passed as a view, otherwise `long`."""
        view = self.unit.views.get(n)
        return long if view is None else IfExp(
            Compare(self.load(view), [ast.IsNot()], [constant(None)]), short(view), long)

    def view_access(self, n: Op, operands: list[ast.expr]) -> Callable[[str], ast.expr]:
        """How an op accesses its view: a load returns it, a store writes its tile to it."""
        if n.op.view is not None:
            return lambda view: finished(self.code, n, self.load(view)) if self.code.check else self.load(view)

        def put(view: str) -> ast.expr:
            dtype = n.operands[0].type.dtype
            if info(dtype).storage == info(dtype).carrier or n in self.unit.facts.as_stored:
                return call(self.load(".put"), [self.load(view), constant(...), operands[-1]])
            return call(self.unit.ref(_numeric.encoder(dtype), "put"), [self.load(view), operands[-1]])

        return put

    def buffer(self, n: Op, operands: list[ast.expr]) -> ast.expr | None:
        """The memory for the result of an op: that of an operand that is not read again, or new memory. None: the op
        decides.
        """
        reusable = self.unit.facts.reusable.get(n)
        if reusable is None or not info(reusable.type.dtype).carried_exactly:
            return call(self.load(".empty_like"), operands) if _is_f32_unary(n) else None
        others = [x for x, v in zip(operands, n.operands, strict=True) if v is not reusable]
        return call(self.load(".reusable"), [self.code.value(reusable), *others])

    def operands(self, n: Op) -> list[ast.expr]:
        indices = self.unit.facts.indices
        if n.op.accesses is None:  # it has no tile indices
            return list(map(self.code.value, n.operands))
        given = [self.block_index(indices[n, i]) if (n, i) in indices else self.code.value(v)
                 for i, v in enumerate(n.operands)]
        if n in self.unit.facts.as_stored:
            given[0] = call(self.load(".as_stored"), given[:1])
        return given

    def block_index(self, index: AffineIndex) -> ast.expr:
        """A tile index that is an affine function of block indices."""
        function = block_function(index)
        function = self.unit.functions.setdefault(function, function)
        return call(attribute(self.load(CTX), "index"), [self.unit.ref(function, "index")])

    def target(self, store: Op) -> ast.expr:
        """The view of memory that a store writes to, or None."""
        args, keywords = arguments(self.code, store, self.operands(store), {"ctx": self.load(CTX)})
        return Call(self.unit.ref(store.op.target, "target"), args[:-1], keywords)

    def combine(self, n: Op, operands: list[ast.expr]) -> tuple[ast.expr, list[ast.expr]]:
        """The user's function over carriers, and the operands. If the function captures values, which may have batch
        axes, all operands get batch axes.
        """
        enclosing = Enclosing(n.span.function, n.span)
        code, captured = nested_region(self.unit, enclosing, n.region, ir.Yield, n.region.params)
        if code.ranks:
            operands = [call(self.load(".with_batch_axes"), [x, self.unit.ref(v.type, "type"), self.load(CTX)])
                        for x, v in zip(operands, n.operands, strict=True)]
        bind = attribute(self.unit.ref(Combine(code, ufunc_of(n.region)), "combine"), "bind")
        return call(bind, [self.load(CTX), captured]), operands

    def cover_line(self, n: ir.Bind | Op) -> list[ast.stmt]:
        """A statement without effect for a line of the user that computes nothing, so that coverage counts the line."""
        if n.span.line == self.line or n.span.filename != self.enclosing.span.filename:
            return []
        return [self.positioned(Pass(), n)]

    # -------------------------------------------------------------- structured nodes

    def assign_outcome(self, n: Node, results: Sequence[Value], outcome: ast.expr) -> list[ast.stmt]:
        """Assign the results of a node from its outcome. If no block can leave the node, the outcome is the results.
        Otherwise it is (blocks, results), or None if all blocks leave it: then the emitted function returns None.
        """
        if not self.unit.exits.node(n):
            return [self.positioned(unpack(self.unit.temps(results), outcome), n)]
        none = Compare(self.load(OUT), [ast.Is()], [constant(None)])
        return [self.positioned(assign([OUT], outcome), n), If(none, [Return(constant(None))], NONE),
                unpack([NARROWER, self.unit.temps(results)], self.load(OUT)), delete([OUT])]

    def if_(self, n: ir.If) -> list[ast.stmt]:
        leaving = bool(self.unit.exits.node(n))
        sides: list[ast.expr] = []
        for side in (n.then, n.orelse):
            code, captured = nested_region(self.unit, self.enclosing, side, ir.Yield, (), leaving=leaving, at=n.span,
                                           linked=self.link is not None)
            sides += [self.unit.ref(code, "side"), captured]
        run = self.load(".branch" if leaving else ".branch_all")
        point = self.unit.ref(MergePoint(ranks_of(n.results), n.span), "point")
        cond = self.code.value(n.cond)
        return self.assign_outcome(n, n.results, call(run, [self.load(CTX), cond, *sides, point]))

    def loop_body(self, n: ir.For | ir.While, views: Sequence[str] = ()) -> list[ast.expr]:
        leaving = bool(self.unit.exits[n.body])
        enclosing, given = self.enclosing, ()
        if leaving:
            given = (self.unit.record("breaks"), self.unit.record("continues"))
            enclosing = Enclosing(enclosing.name, enclosing.span, enclosing.returns, *given)
        code, captured = nested_region(self.unit, enclosing, n.body, ir.Continue, inner_of(n), given, views,
                                       leaving=leaving, at=n.span)
        return [self.unit.ref(code, "body"), captured]

    def for_(self, n: ir.For) -> list[ast.stmt]:
        point = self.unit.ref(MergePoint(ranks_of(n.params), n.span, info(n.iv.type.dtype).carrier), "point")
        bounds = self.unit.loads((n.start, n.stop, n.step))
        loads = {} if self.unit.exits[n.body] else self.unit.facts.loop_loads(n)
        body = self.loop_body(n, [self.unit.view(m) for m in loads])
        tiles = tuple_of(self.loop_tiles(m, n.iv, indices) for m, indices in loads.items())
        outcome = call(self.load(".for_loop"), [self.load(CTX), bounds, self.unit.loads(n.inits), *body, point, tiles])
        return self.assign_outcome(n, n.results, self.only_results(n, outcome))

    def loop_tiles(self, n: Op, iv: Value, indices: Sequence[AffineIndex | None]) -> ast.expr:
        """A call of `LoopTiles.tiles` for a load, bound to its array and its tile indices for a counter of 0."""
        array, *given = self.operands(n)
        at_zero = [x if i is None else self.index_at_zero(i.without(iv)) for i, x in zip(indices, given, strict=True)]
        find = self.unit.ref(LoopTiles(n, [i.coefficient(iv) if i else 0 for i in indices]).tiles, "loop_tiles")
        return call(self.load(".partial"), [find, array, tuple_of(at_zero)])

    def index_at_zero(self, index: AffineIndex) -> ast.expr:
        return self.block_index(index) if index.terms else self.unit.ref(np.asarray(index.constant), "index")

    def while_(self, n: ir.While) -> list[ast.stmt]:
        cond = [constant(None), tuple_of(())]
        if n.cond is not None:
            code, captured = nested_region(self.unit, self.enclosing, n.cond, ir.Yield, n.params, at=n.span)
            cond = [self.unit.ref(code, "cond"), captured]
        point = self.unit.ref(MergePoint(ranks_of(n.params), n.span), "point")
        outcome = call(self.load(".while_loop"), [self.load(CTX), self.unit.loads(n.inits), *cond, *self.loop_body(n),
                                                  point, self.unit.ref(ranks_of(n.results), "ranks")])
        return self.assign_outcome(n, n.results, self.only_results(n, outcome))

    def only_results(self, n: Node, outcome: ast.expr) -> ast.expr:
        """The results alone of a loop's outcome, if no block leaves it by Return."""
        return outcome if self.unit.exits.node(n) else Subscript(outcome, constant(1), ast.Load())

    def frame(self, n: ir.Frame) -> list[ast.stmt]:
        leaving = bool(self.unit.exits[n.body])
        enclosing, given = Enclosing(n.function, n.def_span), ()
        if leaving:
            given = (self.unit.record("returns"),)
            enclosing = Enclosing(n.function, n.def_span, *given)
        number = self.unit.same.get(n)
        if number in self.unit.emitted:
            code, captured = self.unit.emitted[number], self.unit.loads(self.unit.liveness[n.body])
        else:
            code, captured = nested_region(self.unit, enclosing, n.body, ir.Return, (), given, leaving=leaving,
                                           linked=self.link is not None)
        if number is not None:
            self.unit.emitted[number] = code
        r = self.unit.ref(code, "frame")
        if leaving:
            point = self.unit.ref(MergePoint(ranks_of(n.results), n.span), "point")
            outcome = call(self.load(".frame"), [self.load(CTX), r, captured, point])
        else:
            outcome = call(attribute(r, "function"), [self.load(CTX), Starred(captured, ast.Load())])
        return [self.positioned(unpack(self.unit.temps(n.results), outcome), n)]

    # -------------------------------------------------------------- terminators

    def terminator(self, n: Node) -> list[ast.stmt]:
        values = self.unit.loads(n.operands)
        if isinstance(n, self.tail):
            result = tuple_of([self.load(CTX), values]) if self.leaving else values
            written = isinstance(n, ir.Return) and n.operands  # by the user, unlike the end of any other region
            return [place(Return(result), fields_of(position(n.span))) if written else Return(result)]
        records = self.enclosing
        record = {ir.Break: records.breaks, ir.Continue: records.continues, ir.Return: records.returns}[type(n)]
        stmts = []
        if record is not None:  # a Return from the kernel needs no record
            left = tuple_of([self.load(CTX), values])
            stmts.append(Expr(call(attribute(self.load(record), "append"), [left])))
        return [self.positioned(s, n) for s in (*stmts, Return(constant(None)))]


def _is_f32_unary(n: Op) -> bool:
    return len(n.operands) == 1 and n.results[0].type.dtype is float32 and n.results[0].type == n.operands[0].type


def reusable_or_none(x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray | None:
    """x, if the result of an elementwise op on x and y has its shape and can be written there; else None. The result of
    a compiled form has an element once in memory where it repeats.
    """
    fits = y is None or y.shape == x.shape or broadcastable_to(y.shape, x.shape)
    return x if fits and x.flags.writeable else None


EMIT: dict[type, Callable] = {Op: Body.op, ir.If: Body.if_, ir.For: Body.for_, ir.While: Body.while_,
                              ir.Frame: Body.frame}
