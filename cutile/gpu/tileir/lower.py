"""From typed IR to a Tile IR module: everything but the lowering rules, and what the rules may use.

A rule (rules/_rule.py) is called with the `Lowering` of its kernel and the node. It has

    l.get(v)            the Tile IR value of a tile operand
    l.array(v), l.list(v)     the record of an array or list operand
    l.args(n)           the operands of a node in the groups that its op declares: records and values
    l.type(t)           the Tile IR type of a TileType (bool is i1)
    l.op(name, …)       append an operation at the node's source position; see builder.py. l.b is the builder itself
    l.const(dtype, value, shape=())
    l.memory(name, …)   append an operation on memory, or one that prints: with the tokens that order it
    l.before_broadcast(v)     the tile from which broadcasts made v; v if none did
    l.divisor(v)        a power of two that an integer scalar is a multiple of
    l.number(v)         the integer that all elements of a tile are, None if that is not known
    l.is_data(v)        whether the elements of a tile of integers are known to be other than places
    l.region(body, values)    append the body of a combine function on these values; returns what it yields
    l.combining         whether the node is in such a body
    l.check(feature)    refuse a feature, a name in the tables of gpu/target.py, that the target or the version lacks
    l.needs(feature, operation, attribute=None)     the same, for one that needs a newer operation, or attribute of one
    l.unsupported(text, help=…)     refuse
    l.target, l.version (target is None where the module is for all targets)

`lower` runs PASSES, choose_hints and without_needless_checks, then walks the IR once. Branches and loops carry an array
as its pointer, sizes and strides, because Tile IR carries no views.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from cutile._support.structs import cached, replace, structure
from cutile.analysis.access import Access, accesses
from cutile.analysis.divisibility import divisibility
from cutile.analysis.elements import differs_by_memory, number_of
from cutile.analysis.tokens import Key
from cutile.dtypes import DType, float4_e2m1fn
from cutile.errors import TileError, TileInternalError, TileUnsupportedFeatureError
from cutile.gpu import target as targets
from cutile.gpu.aligned_slices import aligned_slices
from cutile.gpu.hints import choose_hints
from cutile.gpu.predicated_loads import predicated_loads
from cutile.gpu.target import Target
from cutile.gpu.tileir import arrays
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.access import make_views
from cutile.gpu.tileir.arrays import Array, Lowered
from cutile.gpu.tileir.builder import Builder, Module, Value
from cutile.gpu.tileir.loops import Counting, Loops
from cutile.gpu.tileir.operations import OPS
from cutile.gpu.tileir.rules import lowering_rule
from cutile.gpu.tileir.tokens import TokenValues, order_of
from cutile.gpu.unchecked import without_needless_checks
from cutile.ir import nodes
from cutile.ir.check import falls_through
from cutile.ir.nodes import Break, Continue, For, If, Kernel, Node, Op, Region, Return, While, Yield
from cutile.ir.recursion import recursive
from cutile.ir.walk import definitions
from cutile.ops._op import READ, ROWS, TILES, WRITE
from cutile.passes.cse import cse
from cutile.passes.dce import dce
from cutile.passes.flatten_frames import flatten_frames
from cutile.passes.licm import licm
from cutile.passes.loop_split import loop_split
from cutile.passes.relaxed_atomic import relaxed_atomic
from cutile.passes.shared_division import shared_division
from cutile.passes.short_reduction import short_reduction
from cutile.passes.structured_exits import has_break, structured_exits
from cutile.passes.waiting_load import waiting_load
from cutile.spans import Span
from cutile.types import ListType, TileType

IN_BOUNDS_SINCE = OPS["load_view_tko"].attr("inbounds").since
MOST_ELEMENTS = 1 << 24  # of a tile, in every release of the assembler
PASSES = (flatten_frames, structured_exits, dce, short_reduction, cse, shared_division, licm, loop_split, dce,
          relaxed_atomic, waiting_load)


def after_passes(kernel: Kernel) -> Kernel:
    """The kernel after PASSES."""
    for change in PASSES:
        kernel = change(kernel)
    return kernel


def lower(kernel: Kernel, facts: Sequence[Any] | None = None, *, target: Target | None, version=None,
          hints: dict | None = None, symbol: str | None = None, module: Module | None = None) -> Module:
    """The module of a typed kernel (after fma).

    facts   what is known of each IR parameter: ArrayFacts, ListFacts (or constraints), None for nothing
    target  None for all targets
    hints   of the entry, by architecture (to_bytecode.entry_hints)
    symbol  name of the entry; that of the kernel by default
    module  one to add the entry to
    """
    module = module or Module(version)
    facts = facts or (None,) * len(kernel.params)
    kernel = choose_hints(after_passes(kernel), target)
    if module.version >= IN_BOUNDS_SINCE:
        kernel = without_needless_checks(kernel, facts)
    kernel = predicated_loads(aligned_slices(kernel, facts), facts)
    for p in kernel.params:
        check_dtype(p, module.version, target, kernel.span)
    types = [t for p in kernel.params for t in arrays.argument_types(p.type)]
    entry = module.entry(symbol or kernel.name, types, hints=hints, loc=kernel.span)
    Lowering(kernel, facts, entry.body, target).run(iter(entry.arguments))
    return module


def check_dtype(v: nodes.Value, version: ty.Version, target: Target | None, loc: Span) -> None:
    """Refuse a dtype that the target or the version lacks."""
    t = v.type.element if isinstance(v.type, ListType) else v.type
    targets.check_version(version, t.dtype, loc)
    targets.check(target, t.dtype, loc)
    if t.dtype is float4_e2m1fn and isinstance(t, TileType) and t.size == 1:
        raise TileUnsupportedFeatureError("Tile IR has no tile of a single float4_e2m1fn element", loc,
                                          help="convert the tile first: x.astype(ct.float16)")


def _check_size(v: nodes.Value, loc: Span) -> None:
    if isinstance(v.type, TileType) and v.type.size > MOST_ELEMENTS:
        raise TileUnsupportedFeatureError(
            f"a tile of shape {v.type.shape} has {v.type.size} elements, and on GPUs tiles have at most "
            f"{MOST_ELEMENTS}", loc, help="use smaller tiles, and a loop over them")


@structure(slots=True)
class _Loop:
    """The innermost loop. `arguments`: the carried values of its region.

    `counter`, `step`: of a For lowered to `loop` because of a break.
    """

    keys: tuple[Key, ...]
    arguments: tuple[Value, ...]
    counter: Value | None = None
    step: Value | None = None


def _goes_by_view(access: Access) -> bool:
    """Whether an access loads or stores tiles or rows: Tile IR does this through views, all else through pointers."""
    return access.effect in (READ, WRITE) and access.unit in (TILES, ROWS)


class Lowering:
    """The lowering of one kernel; see the head of this module."""

    def __init__(self, kernel: Kernel, facts: Sequence[Any], builder: Builder, target: Target | None):
        self.kernel, self.facts, self.b, self.target = kernel, facts, builder, target
        self.version = builder.version
        self.node: Op | None = None
        self._home = (kernel.span.function, kernel.span.filename)
        self._values: dict[nodes.Value, Lowered] = {}
        self._accesses = accesses(kernel)
        self._viewed: dict[nodes.Value, list[Access]] = defaultdict(list)  # arrays with the accesses by view
        for n, access in self._accesses.items():
            if _goes_by_view(access):
                self._viewed[n.operands[0]].append(access)
        self._tokens = TokenValues(builder, order_of(kernel, facts))
        self._divisors = divisibility(kernel, arrays.divisors_of(dict(zip(kernel.params, facts, strict=True))))
        self._counts = Loops(kernel, facts)
        self._loops: list[_Loop] = []
        self._on_yield: list[Callable[[Yield], None]] = []
        self.combining = False
        self.broadcasts: dict[nodes.Value, nodes.Value] = {}  # a result of broadcast_to → its operand

    @cached  # few kernels divide integers
    def _source(self) -> dict[nodes.Value, Node]:
        return definitions(self.kernel.body)

    def run(self, arguments: Iterator[Value]) -> None:
        self._tokens.begin()
        for p, f in zip(self.kernel.params, self.facts, strict=True):
            self._define(p, arrays.parameter(self.b, p.type, arguments, f))
        self._region(self.kernel.body)

    # -------------------------------------------------------------- what rules use

    def get(self, v: nodes.Value) -> Value:
        return self._values[v]

    array = list = get  # one table holds all three; the name says which kind of value the rule expects

    def args(self, n: Op) -> list:
        return n.op.group([self._values[v] for v in n.operands], n.layout)

    def type(self, t: TileType) -> ty.Tile:
        return ty.tile(ty.of_dtype(t.dtype), t.shape)

    def op(self, name: str, operands: Sequence = (), /, result=None, **attrs):
        return self.b.op(name, operands, result=result, **attrs)

    def const(self, dtype: DType, value, shape: tuple[int, ...] = ()) -> Value:
        return self.b.constant(ty.tile(ty.of_dtype(dtype), shape), value)

    def check(self, feature: str | DType) -> None:
        """Raises TileUnsupportedFeatureError, at the node, if the version or the target lacks a feature."""
        self._check(feature, self.node.op.since.get(feature))

    def needs(self, feature: str, operation: str, attribute: str | None = None) -> None:
        """The same, for a feature that came with an operation of Tile IR, or with an attribute of one."""
        spec = OPS[operation]
        self._check(feature, spec.since if attribute is None else spec.attr(attribute).since)

    def _check(self, feature: str | DType, since: ty.Version | None) -> None:
        targets.check_version(self.version, feature, self.b.loc, since)
        targets.check(self.target, feature, self.b.loc)

    def access(self, n: Op) -> Access:
        """What the analysis says about an op that reads or writes an array."""
        return self._accesses[n]

    def divisor(self, v: nodes.Value) -> int:
        """A power of two that an integer scalar is known to be a multiple of."""
        return self._divisors.get(v, 1)

    def number(self, v: nodes.Value) -> int | None:
        """The integer that all elements of a tile are, None if that is not known."""
        return number_of(self._source, v)

    def is_data(self, v: nodes.Value) -> bool:
        """Whether the elements of a tile of integers come from memory, say, and not from their places alone."""
        return self.combining or differs_by_memory(self._source, v)

    def before_broadcast(self, v: nodes.Value) -> nodes.Value:
        """The tile from which broadcasts made v, or v: elementwise work on it is cheaper."""
        while v in self.broadcasts:
            v = self.broadcasts[v]
        return v

    def unsupported(self, text: str, help: str | None = None) -> NoReturn:
        raise TileUnsupportedFeatureError(text, self.b.loc, help=help)

    def region(self, body: Region, values: Sequence[Value]) -> tuple[Value, ...]:
        """Append the body of a combine function on these values. Returns what it yields."""
        self._values.update(zip(body.params, values, strict=True))
        found: list[Yield] = []
        node, loc = self.node, self.b.loc
        self._on_yield.append(found.append)
        self.combining = True
        self._region(body)
        self.combining = False
        self._on_yield.pop()
        self.node, self.b.loc = node, loc
        return tuple(self._values[v] for v in found[0].operands)

    def memory(self, name: str, operands: Sequence = (), /, result=None, **attrs) -> Any:
        """Append an operation on memory, in its place in the order of accesses. Returns its result that is no token."""
        token = self._tokens.before(self.node)
        if token is not None:
            attrs["token"] = token
        out = self.b.op(name, operands, result=result, **attrs)
        *values, own = out if isinstance(out, tuple) else (out,)
        if own is not None:
            self._tokens.after(self.node, own)
        return values[0] if values else None

    # -------------------------------------------------------------- values and regions

    def _define(self, v: nodes.Value, x: Lowered) -> None:
        self._values[v] = x
        if v in self._viewed and isinstance(x, Array) and x.type.ndim:
            make_views(self, x, self._viewed[v])

    def _carried(self, values: Sequence[nodes.Value], keys: Sequence[Key]) -> list[Value]:
        """The Tile IR values that carry these values and tokens."""
        carried = [x for v in values for x in arrays.carried(self.b, self._values[v], v.type)]
        return carried + self._tokens.values(keys)

    def _carried_types(self, values: Sequence[nodes.Value], keys: Sequence[Key]) -> list[ty.Type]:
        return [t for v in values for t in arrays.carried_types(v.type)] + [ty.token] * len(keys)

    def _uncarried(self, values: Sequence[nodes.Value], keys: Sequence[Key], given: Iterable[Value],
                like: Sequence[nodes.Value] = ()) -> None:
        it = iter(given)
        known = [self._values.get(v) for v in like] or [None] * len(values)
        for v, x in zip(values, known, strict=False):
            self._define(v, arrays.uncarried(v.type, it, x))
        self._tokens.set(keys, it)

    @recursive
    def _region(self, region: Region) -> None:
        for n in region.nodes:
            self.b.loc = self._located(n.span)
            _NODES[type(n)](self, n)
        if not self.b.block.terminated and not isinstance(region.nodes[-1] if region.nodes else None, Yield):
            self._unreachable()

    def _located(self, span: Span) -> Span:
        """The span, placed in the kernel if its chain of calls does not begin there: debug info cannot express such a
        chain.
        """
        if span.call_site is None and (span.function, span.filename) != self._home:
            return replace(span, filename=self.kernel.span.filename, function=self.kernel.span.function)
        return span

    def _unreachable(self) -> None:
        """End a region whose end control never reaches."""
        if self._loops:
            self.b.op("continue", [self._loops[-1].arguments])
        else:
            self.b.op("return")

    def _op(self, n: Op) -> None:
        self.node = n
        for v in n.results:
            check_dtype(v, self.version, self.target, n.span)
            _check_size(v, n.span)
        rule = lowering_rule(n.op)
        if rule is None:
            raise TileInternalError(f"op {n.op.name} has no lowering to Tile IR", n.span)
        try:
            lowered = rule(self, n)
        except TileError as e:
            e.loc = e.loc or n.span
            raise
        results = lowered if isinstance(lowered, tuple) else () if lowered is None else (lowered,)
        for v, x in zip(n.results, results, strict=True):
            self._define(v, x)

    # -------------------------------------------------------------- structure

    def _if(self, n: If) -> None:
        goes_on = falls_through(n)
        keys = self._tokens.changed((n.then, n.orelse)) if goes_on else ()
        types = self._carried_types(n.results, keys) if goes_on else []
        self._on_yield.append(lambda y: self.b.op("yield", [self._carried(y.operands, keys)]))
        with self.b.if_(self.get(n.cond), types) as branch:
            for lowered, region in ((branch.then, n.then), (branch.otherwise, n.orelse)):
                with lowered, self._tokens.scope():
                    self._region(region)
        self._on_yield.pop()
        if goes_on:
            self._uncarried(n.results, keys, branch.results)

    def _for(self, n: For) -> None:
        keys = self._tokens.changed((n.body,))
        counting = self._counts.counting(self.b, n, [self.get(v) for v in (n.start, n.stop, n.step)])
        inits = self._carried(n.inits, keys)
        self._tokens.begin_loop(n)
        with self._tokens.scope():
            if has_break(n.body):
                results = self._counted_loop(n, keys, counting, inits)
            else:
                with self.b.for_(counting.start, counting.stop, counting.step, inits) as loop:
                    self._values[n.iv] = counting.number(loop.arguments[0])
                    self._body(n, _Loop(keys, loop.arguments[1:]), loop.arguments[1:])
                results = loop.results
        self._uncarried(n.results, keys, results, n.inits)

    def _counted_loop(self, n: For, keys, counting: Counting, inits: list[Value]):
        """Lower a For with a break to a `loop`: Tile IR's own `for` cannot be left."""
        with self.b.loop([counting.start, *inits], self._carried_types(n.results, keys)) as loop:
            counter, *carried = loop.arguments
            more = self.b.op("cmpi", [counter, counting.stop], comparison_predicate="less_than", signedness="signed")
            self._leave_unless(more, carried)
            self._values[n.iv] = counting.number(counter)
            self._body(n, _Loop(keys, loop.arguments, counter, counting.step), carried)
        return loop.results

    def _leave_unless(self, more: Value, carried: Sequence[Value]) -> None:
        with self.b.if_(more) as branch:
            with branch.then:
                self.b.op("yield")
            with branch.otherwise:
                self.b.op("break", [carried])

    def _body(self, n: For | While, loop: _Loop, carried: Sequence[Value]) -> None:
        """Lower the body of a loop, inside its region."""
        self._uncarried(n.params, loop.keys, carried, n.inits)
        self._loops.append(loop)
        if isinstance(n, While) and n.cond is not None:
            self._condition(n, loop.keys)
        self._region(n.body)
        self._loops.pop()

    def _condition(self, n: While, keys: Sequence[Key]) -> None:
        found: list[Yield] = []
        self._on_yield.append(found.append)
        self._region(n.cond)
        self._on_yield.pop()
        self._leave_unless(self.get(found[0].operands[0]), self._carried(n.params, keys))

    def _while(self, n: While) -> None:
        keys = self._tokens.changed((n.body,) if n.cond is None else (n.cond, n.body))
        goes_on = falls_through(n)
        types = self._carried_types(n.results, keys) if goes_on else []
        with self.b.loop(self._carried(n.inits, keys), types) as loop, self._tokens.scope():
            self._body(n, _Loop(keys, loop.arguments), loop.arguments)
        if goes_on:
            self._uncarried(n.results, keys, loop.results)

    def _yield(self, n: Yield) -> None:
        self._on_yield[-1](n)

    def _break(self, n: Break) -> None:
        self.b.op("break", [self._carried(n.operands, self._loops[-1].keys)])

    def _continue(self, n: Continue) -> None:
        loop = self._loops[-1]
        values = self._carried(n.operands, loop.keys)
        if loop.counter is not None:
            values = [self.b.op("addi", [loop.counter, loop.step]), *values]
        self.b.op("continue", [values])

    def _return(self, n: Return) -> None:
        self.b.op("return")


_NODES: dict[type[Node], Callable[[Lowering, Any], None]] = {
    Op: Lowering._op, If: Lowering._if, For: Lowering._for, While: Lowering._while, Yield: Lowering._yield,
    Break: Lowering._break, Continue: Lowering._continue, Return: Lowering._return, nodes.Bind: lambda l, n: None,
}
