"""Reading bytecode back into a module: what was written must read back as it was.

It reads what `bytecode_writer` writes, by the same table of operations, and refuses everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cutile.gpu.tileir import debuginfo as di
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.bytecode_writer import ATTR_TAGS, DYNAMIC, HAS_HINTS, IS_KERNEL, TYPE_TAGS
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
    SameElements,
    TileModule,
    Value,
)
from cutile.gpu.tileir.operations import ENUMS, OPS, Attr, Spec
from cutile.ir.recursion import recursive
from cutile.spans import Span
from tests.tileir_eval.bytecode_cursor import Cursor, MalformedBytecode, sections, table

_BY_OPCODE = {s.opcode: s for s in OPS.values()}


class TablesReader:
    """Strings, types and constants by number."""

    def __init__(self, version: ty.Version, found: dict[str, bytes]):
        self.version = version
        self.strings = [s.decode() for s in _table_of(found, "string", 4)]
        self.constants = [self._constant(Cursor(c)) for c in _table_of(found, "constant", 8)]
        self._types: list[ty.Type] = []
        for entry in _table_of(found, "type", 4):
            cursor = Cursor(entry)
            self._types.append(self._read_type(cursor))
            if not cursor.done:
                raise MalformedBytecode(f"bytes left after type {self._types[-1]}")

    @staticmethod
    def _constant(cursor: Cursor) -> Constant:
        return Constant(cursor.take(cursor.varint()))

    def string(self, cursor: Cursor) -> str:
        return self.strings[cursor.varint()]

    def type(self, cursor: Cursor) -> ty.Type:
        return self._types[cursor.varint()]

    def types(self, cursor: Cursor) -> tuple[ty.Type, ...]:
        return tuple(self.type(cursor) for _ in range(cursor.varint()))

    def _read_type(self, cursor: Cursor) -> ty.Type:
        tag = cursor.varint()
        if tag in _SCALARS:
            return _SCALARS[tag]
        if tag not in _TYPES:
            raise MalformedBytecode(f"unknown type tag {tag}")
        return _TYPES[tag](self, cursor)

    def no_pointer_attr(self, cursor: Cursor) -> None:
        if self.version >= (13, 4) and cursor.varint():
            raise MalformedBytecode("a pointer with an attribute")


def _table_of(found: dict[str, bytes], name: str, width: int) -> list[bytes]:
    return table(Cursor(found[name]), width) if name in found else []


SCALARS = tuple(t for t in vars(ty).values() if isinstance(t, ty.Scalar))
_SCALARS = {s.tag: s for s in SCALARS}


def _pointer(tables: TablesReader, cursor: Cursor) -> ty.Pointer:
    tables.no_pointer_attr(cursor)
    return ty.Pointer(tables.type(cursor))


def _tile(tables: TablesReader, cursor: Cursor) -> ty.Tile:
    return ty.Tile(tables.type(cursor), cursor.ints(8))


def _tensor_view(tables: TablesReader, cursor: Cursor) -> ty.TensorView:
    tables.no_pointer_attr(cursor)
    element = tables.type(cursor)
    shape, strides = (tuple(None if d == DYNAMIC else d for d in cursor.ints(8)) for _ in range(2))
    return ty.TensorView(element, shape, strides)


def _view(middle: Callable, tables: TablesReader, cursor: Cursor) -> ty.View:
    early = tables.version >= (13, 3)
    padded = cursor.varint() if early else None
    shape = cursor.ints(4)
    make = middle(tables, cursor)
    if not early:
        padded = cursor.byte()
    return make(shape, ty.PADDINGS[cursor.varint()] if padded else None)


def _partition(tables: TablesReader, cursor: Cursor) -> Callable:
    view, dim_map = tables.type(cursor), cursor.ints(4)
    return lambda shape, padding: ty.PartitionView(shape, view, dim_map, padding)


def _strided(tables: TablesReader, cursor: Cursor) -> Callable:
    steps, view, dim_map = cursor.ints(4), tables.type(cursor), cursor.ints(4)
    return lambda shape, padding: ty.StridedView(shape, steps, view, dim_map, padding)


def _gather_scatter(tables: TablesReader, cursor: Cursor) -> Callable:
    view, sparse = tables.type(cursor), cursor.varint()
    return lambda shape, padding: ty.GatherScatterView(shape, view, sparse, padding)


_TYPES: dict[int, Callable[[TablesReader, Cursor], ty.Type]] = {TYPE_TAGS[t]: read for t, read in {
    ty.Pointer: _pointer, ty.Tile: _tile, ty.TensorView: _tensor_view, ty.Token: lambda tables, cursor: ty.token,
    ty.PartitionView: partial(_view, _partition), ty.StridedView: partial(_view, _strided),
    ty.GatherScatterView: partial(_view, _gather_scatter),
    ty.Function: lambda tables, cursor: ty.Function(tables.types(cursor), tables.types(cursor)),
}.items()}


def _tag(cursor: Cursor, *names: str) -> str:
    tag = cursor.varint()
    for name in names:
        if ATTR_TAGS[name] == tag:
            return name
    raise MalformedBytecode(f"attribute tag {tag} where {' or '.join(names)} was expected")


def _maybe(cursor: Cursor) -> list[int | None]:
    flags = cursor.byte()
    return [cursor.signed() if flags & bit else None for bit in (1, 2)]


def _predicate(tables: TablesReader, cursor: Cursor):
    match _tag(cursor, "DivBy", "Bounded", "SameElements"):
        case "DivBy":
            return DivBy(cursor.varint(), *_maybe(cursor))
        case "Bounded":
            return Bounded(*_maybe(cursor))
        case _:
            return SameElements(cursor.ints(8))


def _identity(tables: TablesReader, cursor: Cursor) -> Identity:
    tag, t = _tag(cursor, "Integer", "Float"), tables.type(cursor)
    if not isinstance(t, ty.Scalar):
        raise MalformedBytecode(f"an identity of type {t}")
    if tag == "Integer":
        return Identity(t, cursor.varint())
    return Identity(t, cursor.byte() if t.bits <= 8 else cursor.signed() & ((1 << 64) - 1))


def _hints(tables: TablesReader, cursor: Cursor) -> Hints:
    out: dict[str, dict[str, int | bool]] = {}
    for _ in range(cursor.varint()):
        values = out[tables.string(cursor)] = {}
        _tag(cursor, "Dictionary")
        for _ in range(cursor.varint()):
            name = tables.string(cursor)
            values[name] = _hint(tables, cursor)
    return out


def _hint(tables: TablesReader, cursor: Cursor) -> int | bool:
    if _tag(cursor, "Bool", "Integer") == "Bool":
        return bool(cursor.byte())
    tables.type(cursor)
    return cursor.varint()


_ATTRS: dict[str, Callable[[TablesReader, Cursor], object]] = {
    "bool": lambda tables, cursor: bool(cursor.byte()),
    "int": lambda tables, cursor: cursor.varint(),
    "str": lambda tables, cursor: tables.string(cursor),
    "i32s": lambda tables, cursor: cursor.ints(4),
    "bools": lambda tables, cursor: tuple(bool(cursor.byte()) for _ in range(cursor.varint())),
    "dense": lambda tables, cursor: tables.constants[cursor.varint()],
    "predicate": _predicate,
    "identities": lambda tables, cursor: tuple(_identity(tables, cursor) for _ in range(cursor.varint())),
    "hints": _hints,
}


class FunctionReader:
    """Reads the body of one entry. `positions`: that of the entry first, then those of its operations."""

    def __init__(self, tables: TablesReader, cursor: Cursor, positions: list[Span | None]):
        self.tables, self.cursor = tables, cursor
        self.version = tables.version
        self.values: list[Value] = []
        self.positions = iter(positions[1:])

    def body(self, block: Block, end: int) -> None:
        self.values = list(block.args)
        while self.cursor.at < end:
            self._op(block)

    def _op(self, block: Block) -> None:
        cursor, tables = self.cursor, self.tables
        opcode = cursor.varint()
        if opcode not in _BY_OPCODE or _BY_OPCODE[opcode].since > self.version:
            raise MalformedBytecode(f"opcode {opcode:#x} is not known in {ty.version_text(self.version)}")
        spec = _BY_OPCODE[opcode]
        loc = next(self.positions, None)
        count = cursor.varint() if spec.counts_results else len([r for r in spec.results if r.since <= self.version])
        results = tuple(Value(tables.type(cursor), block) for _ in range(count))
        flags = cursor.varint() if spec.flags and spec.flags_since <= self.version else 0
        there = {name for bit, name in enumerate(spec.flags) if flags >> bit & 1}
        attrs = {a.name: self._attr(a, there) for a in spec.attrs}
        operands = self._operands(spec, there)
        attrs |= {a.name: spec.filled(a, operands) for a in spec.attrs if a.since > self.version}
        operation = Operation(spec, operands, attrs, results, loc)
        block.ops.append(operation)
        if spec.regions:
            if cursor.varint() != spec.regions:
                raise MalformedBytecode(f"{spec.name} has another number of regions than {spec.regions}")
            operation.regions = [self._region() for _ in range(spec.regions)]
        self.values += results

    def _attr(self, attr: Attr, there: set[str]):
        if attr.kind == "unit":
            return attr.name in there
        if attr.since > self.version or (attr.optional and attr.name not in there):
            return None
        if attr.kind in ENUMS:
            return ENUMS[attr.kind][self.cursor.varint()]
        return _ATTRS[attr.kind](self.tables, self.cursor)

    def _operands(self, spec: Spec, there: set[str]) -> tuple:
        if spec.segmented:
            return tuple(self._row(self.cursor.varint()) if o.variadic
                         else None if o.optional and o.name not in there else self._value() for o in spec.operands)
        fixed = [o for o in spec.operands if not o.variadic]
        if len(fixed) == len(spec.operands):
            return self._row(len(fixed))
        row = self._row(self.cursor.varint())  # only the last operand of an operation may be variadic
        return (*row[:len(fixed)], row[len(fixed):])

    def _row(self, n: int) -> tuple[Value, ...]:
        return tuple(self._value() for _ in range(n))

    def _value(self) -> Value:
        n = self.cursor.varint()
        if n >= len(self.values):
            raise MalformedBytecode(f"value {n} does not exist")
        return self.values[n]

    @recursive
    def _region(self) -> Block:
        if self.cursor.varint() != 1:
            raise MalformedBytecode("a region of other than one block")
        before = len(self.values)
        block = Block(self.tables.types(self.cursor))
        self.values += block.args
        for _ in range(self.cursor.varint()):
            self._op(block)
        del self.values[before:]
        return block


def _debug(tables: TablesReader, data: bytes) -> list[list[Span | None]]:
    """For each function: its own position, then those of its operations."""
    cursor = Cursor(data)
    count = cursor.varint()
    cursor.align(4)
    starts = [int.from_bytes(cursor.take(4), "little") for _ in range(count)]
    total = cursor.varint()
    cursor.align(8)
    numbers = [int.from_bytes(cursor.take(8), "little") for _ in range(total)]
    entries = [_fields(e) for e in table(cursor, 4)]
    spans: dict[int, Span | None] = {}

    def span(n: int, site: Span | None = None) -> Span | None:
        if n == di.UNKNOWN:
            return None
        match entries[n - 1]:
            case (di.CALL_SITE, callee, caller):
                return span(callee, span(caller))
            case (di.LOC, scope, file, line, column):
                function = tables.strings[entries[scope - 1][3]]
                return Span(tables.strings[file], line, column - 1, line, column, function, site)
        raise MalformedBytecode(f"debug entry {n} is no position")

    def known(n: int) -> Span | None:
        if n not in spans:
            spans[n] = span(n)
        return spans[n]

    bounds = [*starts, total]
    return [[known(n) for n in numbers[a:b]] for a, b in zip(bounds, bounds[1:])]


def _fields(entry: bytes) -> tuple[int, ...]:
    cursor, out = Cursor(entry), []
    while not cursor.done:
        out.append(cursor.varint())
    return tuple(out)


def _entry(tables: TablesReader, cursor: Cursor, positions: list[list[Span | None]]) -> Entry:
    name, signature = tables.string(cursor), tables.type(cursor)
    flags, index = cursor.byte(), cursor.varint()
    if flags & ~HAS_HINTS != IS_KERNEL or not isinstance(signature, ty.Function):
        raise MalformedBytecode(f"function {name} is no entry")
    hints = None
    if flags & HAS_HINTS:
        _tag(cursor, "OptimizationHints")
        hints = _hints(tables, cursor)
    own = positions[index - 1] if index else [None]
    entry = Entry(name, Block(signature.inputs), hints, own[0])
    length = cursor.varint()
    FunctionReader(tables, cursor, own).body(entry.block, cursor.at + length)
    return entry


def _global(tables: TablesReader, cursor: Cursor) -> Global:
    variable = Global(tables.string(cursor), tables.type(cursor), tables.constants[cursor.varint()], cursor.varint())
    if tables.version >= (13, 3):
        variable.visibility = ENUMS["Visibility"][cursor.varint()]
        variable.constant = bool(cursor.varint())
    return variable


def decode(data: bytes) -> TileModule:
    """The module that some bytecode holds. Raises MalformedBytecode if it cannot be read."""
    version, found = sections(data)
    try:
        tables = TablesReader(version, found)
        producer = tables.strings[Cursor(found["producer"]).varint()] if "producer" in found else None
        module = TileModule(version, producer)
        if "global" in found:
            cursor = Cursor(found["global"])
            module.globals = [_global(tables, cursor) for _ in range(cursor.varint())]
        positions = _debug(tables, found["debug"]) if "debug" in found else []
        cursor = Cursor(found["func"])
        module.entries = [_entry(tables, cursor, positions) for _ in range(cursor.varint())]
    except (IndexError, KeyError, UnicodeDecodeError, RecursionError) as e:
        raise MalformedBytecode(f"the bytecode refers to something that is not there: {e}") from e
    return module
