"""A Tile IR module as data: functions, blocks, operations, values. `builder` makes it, `bytecode_writer` writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cutile._support.structs import field, structure
from cutile.gpu.tileir.operations import Spec
from cutile.gpu.tileir.types import Function, Tile, Type
from cutile.spans import Span


@structure(frozen=True, slots=True)
class DivBy:
    """All elements are multiples of `divisor`, a power of two; pointers are multiples of that many bytes. With `every`
    and `along`, only elements 0, every, 2·every, … along that dimension are; each element between is one more than the
    one before it.
    """

    divisor: int
    every: int | None = None
    along: int | None = None


@structure(frozen=True, slots=True)
class Bounded:
    """All elements, read as signed integers, lie between these bounds, both inclusive; None is no bound."""

    lower: int | None = None
    upper: int | None = None


@structure(frozen=True, slots=True)
class SameElements:
    """Along dimension k, each run of sizes[k] elements holds one value."""

    sizes: tuple[int, ...]


Predicate = DivBy | Bounded | SameElements
# Architecture ("sm_90") or "default" -> hint -> value.
Hints = Mapping[str, Mapping[str, int | bool]]


@structure(frozen=True, slots=True)
class Identity:
    """The element with which a reduce or scan begins: its bits, as an element of `type`."""

    type: Type
    bits: int


@structure(frozen=True, slots=True)
class Constant:
    """The elements in order, as the bytecode stores them, little-endian. A single element stands for a whole tile."""

    data: bytes


class Value:
    """A result of an operation or an argument of a block."""

    __slots__ = ("type", "block")

    def __init__(self, type: Type, block: Block):
        self.type = type
        self.block = block

    def __repr__(self) -> str:
        return f"<Value {self.type}>"


class Block:
    """Operations in a row; the last one is a terminator. While the block is `open` its values can be used."""

    __slots__ = ("args", "ops", "open")

    def __init__(self, arg_types: Sequence[Type] = ()):
        self.args = tuple(Value(t, self) for t in arg_types)
        self.ops: list[Operation] = []
        self.open = True

    @property
    def terminated(self) -> bool:
        return bool(self.ops) and self.ops[-1].spec.terminator


class Operation:
    """One operation. `operands` holds a value, None or a tuple of values for each operand of the table."""

    __slots__ = ("spec", "operands", "attrs", "results", "regions", "loc")

    def __init__(self, spec: Spec, operands: tuple, attrs: dict[str, object], results: tuple[Value, ...],
                 loc: Span | None):
        self.spec = spec
        self.operands = operands
        self.attrs = attrs
        self.results = results
        self.regions: list[Block] = []
        self.loc = loc

    def uses(self) -> list[Value]:
        """The operands as one list, without those that are absent."""
        out: list[Value] = []
        for x in self.operands:
            if type(x) is tuple:
                out.extend(x)
            elif x is not None:
                out.append(x)
        return out


@structure(slots=True)
class Entry:
    """A kernel entry point. `arguments` are the values of its parameters."""

    name: str
    block: Block
    hints: Hints | None = None
    loc: Span | None = None

    @property
    def arguments(self) -> tuple[Value, ...]:
        return self.block.args

    @property
    def type(self) -> Function:
        return Function(tuple(a.type for a in self.block.args))


@structure(slots=True)
class Global:
    """A variable in global memory with its first value."""

    name: str
    type: Tile
    value: Constant
    alignment: int = 0
    constant: bool = False
    visibility: str = "public"


@structure(slots=True)
class TileModule:
    """All that one bytecode file holds."""

    version: tuple[int, int]
    producer: str | None = None
    entries: list[Entry] = field(default_factory=list)
    globals: list[Global] = field(default_factory=list)
