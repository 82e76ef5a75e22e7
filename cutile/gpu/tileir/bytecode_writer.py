"""Writing the bytecode of a module: header, then sections, each a table or a list of functions.

    file     "\\x7fTileIR\\0" major:u8 minor:u8 tag:u16 section* 0x00
    section  id:u8 (high bit: aligned) length:varint [alignment:varint padding] data
    table    count:varint, padding, an offset for each entry, the entries

Facts from lib/Bytecode of NVIDIA/cuda-tile 13.3 and, for newer versions, from asking `tileirdisasm`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cutile.errors import TileInternalError
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.debuginfo import DebugInfo
from cutile.gpu.tileir.encoding import PADDING, Interned, int_list, signed_varint, table, varint
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
from cutile.gpu.tileir.operations import ENUMS, Attr
from cutile.ir.recursion import recursive

MAGIC = b"\x7fTileIR\x00"
SECTIONS = {"string": 1, "func": 2, "debug": 3, "constant": 4, "type": 5, "global": 6, "producer": 7}
ATTR_TAGS = {"Integer": 1, "Float": 2, "Bool": 3, "DivBy": 8, "SameElements": 9, "Dictionary": 10,
             "OptimizationHints": 11, "Bounded": 12}
TYPE_TAGS = {ty.Pointer: 12, ty.Tile: 13, ty.TensorView: 14, ty.PartitionView: 15, ty.Function: 16, ty.Token: 17,
             ty.GatherScatterView: 20, ty.StridedView: 21}
DYNAMIC = -(1 << 63)
IS_KERNEL, HAS_HINTS = 0x02, 0x04


def section(name: str, data: bytes, alignment: int, position: int) -> bytes:
    """A whole section that starts at `position` of the file."""
    if alignment < 2:
        return bytes((SECTIONS[name],)) + varint(len(data)) + data
    head = bytes((SECTIONS[name] | 0x80,)) + varint(len(data)) + varint(alignment)
    return head + PADDING * (-(position + len(head)) % alignment) + data


class TablesWriter:
    """Strings, constants and types, each numbered; the sections share them."""

    def __init__(self, version: ty.Version):
        self.version = version
        self.strings: Interned = Interned()
        self.constants: Interned = Interned()
        self._types: dict[ty.Type, int] = {}
        self._type_data: list[bytes] = []

    def string(self, text: str) -> int:
        return self.strings[text.encode()]

    def constant(self, value: Constant) -> int:
        return self.constants[varint(len(value.data)) + value.data]

    def type(self, t: ty.Type) -> int:
        n = self._types.get(t)
        if n is None:
            data = self._encoded(t)  # numbers its parts first
            n = self._types[t] = len(self._type_data)
            self._type_data.append(data)
        return n

    def _encoded(self, t: ty.Type) -> bytes:
        if isinstance(t, ty.Scalar):
            return varint(t.tag)
        return varint(TYPE_TAGS[type(t)]) + _TYPES[type(t)](self, t)

    def types(self, types) -> bytes:
        return varint(len(types)) + b"".join(varint(self.type(t)) for t in types)

    def type_table(self) -> bytes:
        return table(self._type_data, 4)


def _pointer(tables: TablesWriter, t: ty.Pointer) -> bytes:
    return _no_pointer_attr(tables) + varint(tables.type(t.pointee))


def _no_pointer_attr(tables: TablesWriter) -> bytes:
    """From 13.4 on a pointer or tensor view says whether it has an attribute; those that we write have none."""
    return varint(0) if tables.version >= (13, 4) else b""


def _tile(tables: TablesWriter, t: ty.Tile) -> bytes:
    return varint(tables.type(t.element)) + int_list(t.shape, 8)


def _tensor_view(tables: TablesWriter, t: ty.TensorView) -> bytes:
    dims = [int_list([DYNAMIC if d is None else d for d in dims], 8) for dims in (t.shape, t.strides)]
    return _no_pointer_attr(tables) + varint(tables.type(t.element)) + dims[0] + dims[1]


def _view(middle: Callable[[TablesWriter, ty.View], bytes], tables: TablesWriter, t: ty.View) -> bytes:
    """A view: whether it has padding, its shape, then what this kind of view adds (`middle`), then the padding."""
    padding = b"" if t.padding is None else varint(ty.PADDINGS.index(t.padding))
    shape = int_list(t.tile_shape, 4)
    if tables.version >= (13, 3):
        return varint(bool(padding)) + shape + middle(tables, t) + padding
    return shape + middle(tables, t) + bytes((bool(padding),)) + padding


def _partition(tables: TablesWriter, t: ty.PartitionView) -> bytes:
    return varint(tables.type(t.tensor_view)) + int_list(t.dim_map, 4)


def _strided(tables: TablesWriter, t: ty.StridedView) -> bytes:
    return int_list(t.traversal_strides, 4) + varint(tables.type(t.tensor_view)) + int_list(t.dim_map, 4)


def _gather_scatter(tables: TablesWriter, t: ty.GatherScatterView) -> bytes:
    return varint(tables.type(t.tensor_view)) + varint(t.sparse_dim)


_TYPES: dict[type, Callable[[TablesWriter, ty.Type], bytes]] = {
    ty.Pointer: _pointer, ty.Tile: _tile, ty.TensorView: _tensor_view, ty.Token: lambda tables, t: b"",
    ty.PartitionView: partial(_view, _partition), ty.StridedView: partial(_view, _strided),
    ty.GatherScatterView: partial(_view, _gather_scatter),
    ty.Function: lambda tables, t: tables.types(t.inputs) + tables.types(t.results),
}


def _predicate(tables: TablesWriter, p) -> bytes:
    if isinstance(p, DivBy):
        return varint(ATTR_TAGS["DivBy"]) + varint(p.divisor) + _maybe(p.every, p.along)
    if isinstance(p, Bounded):
        return varint(ATTR_TAGS["Bounded"]) + _maybe(p.lower, p.upper)
    assert isinstance(p, SameElements)
    return varint(ATTR_TAGS["SameElements"]) + int_list(p.sizes, 8)


def _maybe(*values: int | None) -> bytes:
    """Optional values: a byte with a bit for each that is there, then those values."""
    flags = sum(1 << i for i, v in enumerate(values) if v is not None)
    return bytes((flags,)) + b"".join(signed_varint(v) for v in values if v is not None)


def _identities(tables: TablesWriter, identities: tuple[Identity, ...]) -> bytes:
    return varint(len(identities)) + b"".join(_identity(tables, i) for i in identities)


def _identity(tables: TablesWriter, i: Identity) -> bytes:
    head = varint(tables.type(i.type))
    if i.type.kind == "i":
        return varint(ATTR_TAGS["Integer"]) + head + varint(i.bits)
    return varint(ATTR_TAGS["Float"]) + head + (bytes((i.bits,)) if i.type.bits <= 8 else signed_varint(i.bits))


def _hints(tables: TablesWriter, hints: Hints) -> bytes:
    out = varint(len(hints))
    for arch, values in hints.items():
        out += varint(tables.string(arch)) + varint(ATTR_TAGS["Dictionary"]) + varint(len(values))
        for name, value in values.items():
            out += varint(tables.string(name)) + _hint(tables, value)
    return out


def _hint(tables: TablesWriter, value: int | bool) -> bytes:
    if isinstance(value, bool):
        return varint(ATTR_TAGS["Bool"]) + bytes((value,))
    return varint(ATTR_TAGS["Integer"]) + varint(tables.type(ty.i32)) + varint(value)


def _bools(tables: TablesWriter, values) -> bytes:
    return varint(len(values)) + bytes(map(bool, values))


_ATTRS: dict[str, Callable[[TablesWriter, object], bytes]] = {
    "bool": lambda tables, x: bytes((x,)),
    "int": lambda tables, x: varint(x),
    "str": lambda tables, x: varint(tables.string(x)),
    "i32s": lambda tables, x: int_list(x, 4),
    "bools": _bools,
    "dense": lambda tables, x: varint(tables.constant(x)),
    "predicate": _predicate,
    "identities": _identities,
    "hints": _hints,
}
_ENUM_CODES = {name: {v: varint(i) for i, v in enumerate(values)} for name, values in ENUMS.items()}


class FunctionWriter:
    """Writes the body of one entry. Values are numbered in order; at the end of a region its numbers become free."""

    def __init__(self, tables: TablesWriter, loc: Callable[[object], None]):
        self.tables = tables
        self.version = tables.version
        self.loc = loc
        self.numbers: dict[Value, int] = {}
        self.next = 0

    def body(self, block: Block) -> bytes:
        self._number(block.args)
        return b"".join(self._op(o) for o in _terminated(block))

    def _number(self, values) -> None:
        for v in values:
            self.numbers[v] = self.next
            self.next += 1

    def _op(self, operation: Operation) -> bytes:
        spec = operation.spec
        self.loc(operation.loc)
        out = [varint(spec.opcode)]
        if spec.counts_results:
            out.append(varint(len(operation.results)))
        out += [varint(self.tables.type(r.type)) for r in operation.results]
        out.append(self._flags(operation))
        out += [self._attr(a, operation.attrs[a.name]) for a in spec.attrs]
        out += self._operands(operation)
        if spec.regions:
            out.append(varint(spec.regions))
            out += [self._region(r) for r in operation.regions]
        self._number(operation.results)
        return b"".join(out)

    def _flags(self, operation: Operation) -> bytes:
        spec = operation.spec
        if not spec.flags or spec.flags_since > self.version:
            return b""
        there = {o.name for o, x in zip(spec.operands, operation.operands) if x is not None and x != ()}
        there |= {name for name, value in operation.attrs.items() if value is not None and value is not False}
        return varint(sum(1 << bit for bit, name in enumerate(spec.flags) if name in there))

    def _attr(self, attr: Attr, value) -> bytes:
        if attr.kind == "unit" or value is None or attr.since > self.version:
            return b""
        codes = _ENUM_CODES.get(attr.kind)
        return codes[value] if codes else _ATTRS[attr.kind](self.tables, value)

    def _operands(self, operation: Operation) -> list[bytes]:
        numbers = self.numbers
        if not operation.spec.segmented:
            uses = [varint(numbers[v]) for v in operation.uses()]
            counted = any(o.variadic or o.optional for o in operation.spec.operands)
            return [varint(len(uses)), *uses] if counted else uses
        out = []
        for operand, x in zip(operation.spec.operands, operation.operands):
            if operand.variadic:
                out.append(varint(len(x)))
                out += [varint(numbers[v]) for v in x]
            elif x is not None:
                out.append(varint(numbers[x]))
        return out

    @recursive
    def _region(self, block: Block) -> bytes:
        before = self.next
        self._number(block.args)
        args = self.tables.types([a.type for a in block.args])
        ops = [self._op(o) for o in _terminated(block)]
        self.next = before
        return varint(1) + args + varint(len(ops)) + b"".join(ops)


def _terminated(block: Block) -> list[Operation]:
    if not block.terminated:
        raise TileInternalError("a block of Tile IR ends without a terminator",
                                block.ops[-1].loc if block.ops else None)
    return block.ops


def _function(tables: TablesWriter, debug: DebugInfo, entry: Entry) -> bytes:
    name, signature = tables.string(entry.name), tables.type(entry.type)
    function = debug.function(entry.name, entry.loc)
    body = FunctionWriter(tables, function.add).body(entry.block)
    flags = IS_KERNEL | (HAS_HINTS if entry.hints else 0)
    hints = varint(ATTR_TAGS["OptimizationHints"]) + _hints(tables, entry.hints) if entry.hints else b""
    return b"".join((varint(name), varint(signature), bytes((flags,)), varint(function.index), hints,
                     varint(len(body)), body))


def _global(tables: TablesWriter, g: Global) -> bytes:
    fields = [tables.string(g.name), tables.type(g.type), tables.constant(g.value), g.alignment]
    if tables.version >= (13, 3):
        fields += [ENUMS["Visibility"].index(g.visibility), int(g.constant)]
    return b"".join(map(varint, fields))


def encode(module: TileModule) -> bytes:
    """The bytecode of a module: the whole file."""
    tables = TablesWriter(module.version)
    debug = DebugInfo(tables.string)
    globals_ = varint(len(module.globals)) + b"".join(_global(tables, g) for g in module.globals)
    functions = varint(len(module.entries)) + b"".join(_function(tables, debug, e) for e in module.entries)
    functions += PADDING * (-len(functions) % 8)
    producer = varint(tables.string(module.producer)) if module.producer and module.version >= (13, 3) else b""
    sections = [("global", globals_ if module.globals else b"", 1), ("func", functions, 8),
                ("constant", table(list(tables.constants), 8) if tables.constants else b"", 8),
                ("debug", debug.section(), 8), ("type", tables.type_table(), 4), ("producer", producer, 1),
                ("string", table(list(tables.strings), 4), 4)]
    out = bytearray(MAGIC + bytes(module.version) + b"\0\0")
    for name, data, alignment in sections:
        if data:
            out += section(name, data, alignment, len(out))
    return bytes(out) + b"\0"
