"""Building a Tile IR module: what a lowering calls.

    m = Module("13.4")                                     # or Module(None): the newest that tileiras reads
    f = m.entry("kernel", [tile(ptr(f32)), tile(i32)], hints={"sm_90": {"num_cta_in_cga": 2}}, loc=span)
    p, n = f.arguments
    b = f.body                                             # a Builder: appends operations where it stands
    x, _, _ = b.op("get_tile_block_id")
    c = b.constant(tile(f32, (64,)), 1.0)                  # one number for all elements, or an array of the shape
    y = b.op("addf", [c, c], flush_to_zero=True)           # rounding_mode="nearest_even" is the default

`b.op(name, operands, result=None, loc=None, **attributes)` appends any operation of `operations.OPS`, whose rows say
what it takes. `operands` has one entry for each operand of the row: a value, a list of values where the row says `*`,
or None where it says `?`. Optional operands at the end may be left out, or given by name (`token=t`). `result` is the
type of the result where the row has no rule for it (a list of types where it says `*`). `op` returns the value; a tuple
of values where the row has several results or `*`; None where it has none. Results that the version does not have yet
(print_tko's token in 13.1) are left out. Enumerations are written as their names (`mode="addf"`).

Structured control flow:

    with b.if_(cond, [t]) as branch:                       # results of type t
        with branch.then:      b.op("yield", [[x]])
        with branch.otherwise: b.op("yield", [[y]])        # if the `if` has results, both branches must be filled
    (z,) = branch.results
    with b.for_(lo, hi, step, [init], unsigned=False) as loop:     # no break in it; ends with continue
        i, acc = loop.arguments
        b.op("continue", [[b.op("addi", [acc, i])]])
    with b.loop([init], results=[t]) as loop:              # ends with continue or break, which gives `results`
        (x,) = loop.arguments
        ...
    with b.reduce([x], dim=0, identities=[0.0]) as r:      # also b.scan(..., reverse=False)
        element, accumulated = r.arguments                 # for each operand such a pair, both of shape ()
        b.op("yield", [[b.op("addf", [accumulated, element])]])
    (s,) = r.results

`break`, `continue` and `return` may end an if's branch. A value can be used only inside the region that defines it.

    b.constant(type, data) · b.assume(x, DivBy(16)) · b.tensor_view(base, type, sizes, strides)
    with b.at(span): ...                                   # source of what is built inside
    m.variable("name", type, data)                         # a global; b.op("get_global", name=..., result=...)
    m.to_bytes()

Misuse (an unknown operation or attribute, a wrong number or type of operands) is a `TileInternalError`; something the
chosen version lacks is a `TileUnsupportedFeatureError` that names the version. Both point at the current source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cutile.errors import TileInternalError, TileUnsupportedFeatureError
from cutile.gpu.tileir import number_bits
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.bytecode_writer import encode
from cutile.gpu.tileir.checking import RESULT_RULES, check_hints, check_type, too_old, wrong_value
from cutile.gpu.tileir.module import (
    Block,
    Bounded,
    Constant,
    DivBy,
    Entry,
    Global,
    Hints,
    Identity,
    Operation,
    Predicate,
    SameElements,
    TileModule,
    Value,
)
from cutile.gpu.tileir.operations import ENUM_SINCE, OPS, Attr, Operand, Spec
from cutile.spans import Span

__all__ = ["Module", "EntryHandle", "Builder", "OpenRegion", "If", "DivBy", "Bounded", "SameElements", "Value"]


class Module:
    """A bytecode file under construction; `contents` is what it holds so far."""

    def __init__(self, version: str | ty.Version | None = None, *, producer: str | None = "cutile"):
        if version is None:
            from cutile.gpu.tileir.tileiras import newest_version  # most modules say their version

            version = newest_version()
        self.contents = TileModule(ty.parse_version(version), producer)

    @property
    def version(self) -> ty.Version:
        return self.contents.version

    def entry(self, name: str, arg_types: Sequence[ty.Type], *, hints: Hints | None = None,
              loc: Span | None = None) -> EntryHandle:
        """A kernel that the host can launch."""
        if any(e.name == name for e in self.contents.entries):
            raise TileInternalError(f"the module has an entry named {name!r} already", loc)
        for t in arg_types:
            if not isinstance(t, ty.Tile) or t.shape:
                raise TileInternalError(f"an entry takes numbers and pointers, not {t}", loc)
            check_type(self.version, t, loc)
        check_hints(self.version, hints or {}, loc)
        entry = Entry(name, Block(arg_types), hints or None, loc)
        self.contents.entries.append(entry)
        return EntryHandle(entry, Builder(self, entry.block, loc))

    def variable(self, name: str, type: ty.Tile, data, *, alignment: int = 0, constant: bool = False,
                 visibility: str = "public") -> None:
        """A variable in global memory. The operation `get_global` returns its address."""
        if self.version < (13, 3) and (constant or visibility != "public"):
            raise TileUnsupportedFeatureError(too_old("a constant or private variable", (13, 3), self.version))
        value = number_bits.constant(type, data)
        self.contents.globals.append(Global(name, type, value, alignment, constant, visibility))

    def to_bytes(self) -> bytes:
        """The bytecode. TileInternalError where a block has no terminator."""
        return encode(self.contents)


class EntryHandle:
    """An entry: `body` is the builder of its operations, `arguments` are the values of its parameters."""

    def __init__(self, entry: Entry, body: Builder):
        self.entry = entry
        self.body = body

    @property
    def arguments(self) -> tuple[Value, ...]:
        return self.entry.arguments


class Builder:
    """Appends operations to a block, checking each against the table."""

    def __init__(self, module: Module, block: Block, loc: Span | None = None):
        self.module = module
        self.version = module.version
        self.block = block
        self.loc = loc

    @contextmanager
    def at(self, span: Span | None) -> Iterator[None]:
        """Within the `with` block, operations get this position; None changes nothing."""
        before = self.loc
        self.loc = before if span is None else span
        try:
            yield
        finally:
            self.loc = before

    def op(self, name: str, operands: Sequence = (), /, result=None, loc: Span | None = None, **attrs):
        """Append an operation and return its results (see the head of this module)."""
        operation = self._append(name, operands, result, loc, attrs)
        results = operation.results
        if any(r.variadic for r in operation.spec.results) or len(results) > 1:
            return results
        return results[0] if results else None

    def constant(self, type: ty.Tile, data, loc: Span | None = None) -> Value:
        """A tile known now: `data` is one number for all elements, or an array-like of the tile's shape."""
        value = data if isinstance(data, Constant) else number_bits.constant(type, data)
        return self.op("constant", result=type, value=value, loc=loc)

    def assume(self, value: Value, predicate: Predicate, loc: Span | None = None) -> Value:
        """The same value; the compiler may rely on the predicate."""
        return self.op("assume", [value], predicate=predicate, loc=loc)

    def tensor_view(self, base: Value, type: ty.TensorView, sizes: Sequence[Value], strides: Sequence[Value],
                    loc: Span | None = None) -> Value:
        """A view of memory. `sizes` and `strides` have a value for each dimension that is None in the type."""
        for what, values, dims in (("sizes", sizes, type.shape), ("strides", strides, type.strides)):
            if len(values) != dims.count(None):
                raise self.misuse(f"{type} needs {dims.count(None)} {what}, not {len(values)}")
        return self.op("make_tensor_view", [base, sizes, strides], result=type, loc=loc)

    def if_(self, condition: Value, results: Sequence[ty.Type] = (), loc: Span | None = None) -> If:
        return If(self, self._append("if", [condition], results, loc, {}))

    def for_(self, lower: Value, upper: Value, step: Value, init: Sequence[Value] = (), *, unsigned: bool = False,
             loc: Span | None = None) -> OpenRegion:
        """A loop that counts from `lower` while below `upper`. Its region's arguments: counter, carried values."""
        carried = [v.type for v in init]
        operation = self._append("for", [lower, upper, step, init], carried, loc, {"unsignedCmp": unsigned})
        return OpenRegion(self, operation, [lower.type, *carried])

    def loop(self, init: Sequence[Value] = (), results: Sequence[ty.Type] | None = None,
             loc: Span | None = None) -> OpenRegion:
        """A loop that runs until a break. Its region's arguments: the carried values.

        `results`: the types of the values that break gives; by default those of the carried values.
        """
        carried = [v.type for v in init]
        operation = self._append("loop", [init], carried if results is None else results, loc, {})
        return OpenRegion(self, operation, carried)

    def reduce(self, operands: Sequence[Value], dim: int, identities: Sequence, loc: Span | None = None) -> OpenRegion:
        """A reduction along `dim`, which is dropped from the results.

        Its region's arguments: for each operand, an element and the accumulated value.
        """
        results = [ty.Tile(v.type.element, v.type.shape[:dim] + v.type.shape[dim + 1:]) for v in operands]
        return self._fold("reduce", operands, results, {"dim": dim, "identities": identities}, loc)

    def scan(self, operands: Sequence[Value], dim: int, identities: Sequence, *, reverse: bool,
             loc: Span | None = None) -> OpenRegion:
        """Like reduce, but every partial result is kept: results have the types of the operands."""
        attrs = {"dim": dim, "identities": identities, "reverse": reverse}
        return self._fold("scan", operands, [v.type for v in operands], attrs, loc)

    def _fold(self, name: str, operands: Sequence[Value], results: list[ty.Type], attrs: dict,
              loc: Span | None) -> OpenRegion:
        if len(attrs["identities"]) != len(operands):
            raise self.misuse(f"{name} of {len(operands)} operands takes as many identities", loc)
        attrs["identities"] = tuple(i if isinstance(i, Identity) else number_bits.identity(v.type.element, i)
                                    for v, i in zip(operands, attrs["identities"]))
        operation = self._append(name, [operands], results, loc, attrs)
        return OpenRegion(self, operation, [ty.Tile(v.type.element) for v in operands for _ in range(2)])

    def _append(self, name: str, operands: Sequence, result, loc: Span | None, attrs: dict) -> Operation:
        loc = self.loc if loc is None else loc
        spec = OPS.get(name)
        if spec is None:
            raise self.misuse(f"Tile IR has no operation {name!r}", loc)
        if spec.since > self.version:
            raise TileUnsupportedFeatureError(too_old(name, spec.since, self.version), loc)
        if self.block.terminated:
            raise self.misuse(f"{name} after {self.block.ops[-1].spec.name}, which ends its block", loc)
        ins = self._operands(spec, operands, attrs, loc)
        attributes = self._attributes(spec, attrs, ins, loc)
        types = self._result_types(spec, ins, result, loc)
        operation = Operation(spec, ins, attributes, tuple(Value(t, self.block) for t in types), loc)
        self.block.ops.append(operation)
        return operation

    def _operands(self, spec: Spec, given: Sequence, attrs: dict, loc) -> tuple:
        if len(given) > len(spec.operands):
            raise self.misuse(f"{spec.name} takes {len(spec.operands)} operands, not {len(given)}", loc)
        out = []
        for i, operand in enumerate(spec.operands):
            x = given[i] if i < len(given) else None
            if operand.name in attrs and (operand.optional or operand.variadic):
                if x is not None:
                    raise self.misuse(f"{spec.name} was given its operand {operand.name} twice", loc)
                x = attrs.pop(operand.name)
            out.append(self._operand(spec, operand, x, loc))
        if spec.uniform and len({x.type for x in out}) > 1:
            raise self.misuse(f"the operands of {spec.name} differ in type: {', '.join(str(x.type) for x in out)}", loc)
        return tuple(out)

    def _operand(self, spec: Spec, operand: Operand, x, loc):
        if operand.variadic:
            values = tuple(x or ())
        elif x is None:
            if not operand.optional:
                raise self.misuse(f"{spec.name} needs its operand {operand.name}", loc)
            return None
        else:
            values = (x,)
        for v in values:
            if not isinstance(v, Value):
                raise self.misuse(f"operand {operand.name} of {spec.name} is {v!r}, which is no value", loc)
            if not v.block.open:
                raise self.misuse(f"operand {operand.name} of {spec.name} belongs to a region that is closed", loc)
        if values and operand.since > self.version:
            what = f"operand {operand.name} of {spec.name}"
            raise TileUnsupportedFeatureError(too_old(what, operand.since, self.version), loc)
        return values if operand.variadic else x

    def _attributes(self, spec: Spec, given: dict, ins: tuple, loc) -> dict[str, object]:
        out = {}
        for attr in spec.attrs:
            value = given.pop(attr.name, None)
            if value is None:
                value = spec.filled(attr, ins)
            if value is None and not attr.flagged:
                raise self.misuse(f"{spec.name} needs its attribute {attr.name}", loc)
            problem = None if value is None else wrong_value(attr, value)
            if problem:
                raise self.misuse(f"attribute {attr.name} of {spec.name} is {value!r}; {problem}", loc)
            if attr.kind == "hints":
                check_hints(self.version, value or {}, loc)
            self._check_attr_version(spec, attr, value, ins, loc)
            out[attr.name] = value
        if given:
            raise self.misuse(f"{spec.name} has no attribute {next(iter(given))!r}", loc)
        return out

    def _check_attr_version(self, spec: Spec, attr: Attr, value, ins, loc) -> None:
        since = ENUM_SINCE.get((attr.kind, value), spec.since) if isinstance(value, str) else spec.since
        if attr.since > self.version and value != spec.filled(attr, ins):
            since = max(since, attr.since)
        if since > self.version:
            what = f"{attr.name}={value!r} of {spec.name}"
            raise TileUnsupportedFeatureError(too_old(what, since, self.version), loc)

    def _result_types(self, spec: Spec, ins: tuple, given, loc) -> list[ty.Type]:
        results = [r for r in spec.results if r.since <= self.version]
        if results and results[0].variadic:
            types = list(given or ())
        else:
            types = [given if i == 0 and given is not None else self._ruled(spec, r.rule, ins, loc)
                     for i, r in enumerate(results)]
            if given is not None and not results:
                raise self.misuse(f"{spec.name} has no result", loc)
        for t in types:
            check_type(self.version, t, loc)
        return types

    def _ruled(self, spec: Spec, rule: str, ins: tuple, loc) -> ty.Type:
        if not rule:
            raise self.misuse(f"{spec.name} needs the type of its result", loc)
        if rule.isdigit():
            return ins[int(rule)].type
        return RESULT_RULES[rule](ins[0] if ins else None)

    def misuse(self, text: str, loc: Span | None = None) -> TileInternalError:
        return TileInternalError(text, self.loc if loc is None else loc)


class OpenRegion:
    """A region of an operation, filled inside `with`. `arguments`: of the region; `results`: of the operation."""

    def __init__(self, builder: Builder, operation: Operation, arg_types: Sequence[ty.Type] = ()):
        self._builder, self._operation = builder, operation
        self._block = Block(arg_types)
        self._outer: Block | None = None
        operation.regions.append(self._block)

    @property
    def arguments(self) -> tuple[Value, ...]:
        return self._block.args

    @property
    def results(self) -> tuple[Value, ...]:
        return self._operation.results

    def __enter__(self) -> OpenRegion:
        self._outer, self._builder.block = self._builder.block, self._block
        return self

    def __exit__(self, kind, error, trace) -> None:
        self._builder.block = self._outer
        self._block.open = False
        if kind is None and not self._block.terminated:
            raise self._builder.misuse(f"a region of {self._operation.spec.name} ends without a terminator")


class If:
    """An if. `then` and `otherwise` are its regions; a branch that is not filled yields nothing."""

    def __init__(self, builder: Builder, operation: Operation):
        self._builder, self._operation = builder, operation
        self.then, self.otherwise = OpenRegion(builder, operation), OpenRegion(builder, operation)

    @property
    def results(self) -> tuple[Value, ...]:
        return self._operation.results

    def __enter__(self) -> If:
        return self

    def __exit__(self, kind, error, trace) -> None:
        if kind is not None:
            return
        for region in (self.then, self.otherwise):
            if not region._block.terminated:
                if self.results:
                    raise self._builder.misuse("a branch of an if with results is not written")
                with region:
                    self._builder.op("yield", loc=self._operation.loc)
