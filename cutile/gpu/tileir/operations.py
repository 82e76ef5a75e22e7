"""The operations of Tile IR as one table: opcode, operands, attributes, results, regions, and since which version.

A table of facts, in the order of the opcodes. Up to opcode 0x75 they are those of BytecodeOpcodes.td, Ops.td and
AttrDefs.td of the Tile IR specification (NVIDIA/cuda-tile 13.3); what 13.4 adds was found by giving
`tileirdisasm` bytecode to read. `tests/gpu/tileir/test_operations.py` writes each row and has that tool read it.

How a row is read (names are the specification's, except where it has none):

    operands    `x` one value · `x?` none or one · `x*` any number · `x?@13.2` since that version
    attributes  `name:kind`, `name:kind=default`, `name:kind?` may be absent, `…@13.3` since that version
    results     `name:rule` has a rule for its type: a digit, the type of that operand, or a name in
                `checking.RESULT_RULES`; of `name` the caller gives the type; `name*` any number of results
    segmented   operands are written group by group; otherwise as one list
    uniform     all operands have one type

Order of an operation in the bytecode: opcode, result types (their number first where an operand or result is `*`),
flags (a bit for each attribute or operand that may be absent, older ones first), attributes, operands, regions.
"""

from __future__ import annotations

from cutile._support.structs import structure
from cutile.gpu.tileir.types import PADDINGS, Version, parse_version

# The values of an enumeration are the numbers of its names, counted from 0.
ENUMS: dict[str, tuple[str, ...]] = {
    "Signedness": ("unsigned", "signed"),
    "IntegerOverflow": ("none", "no_signed_wrap", "no_unsigned_wrap", "no_wrap"),
    "RoundingMode": ("nearest_even", "zero", "negative_inf", "positive_inf", "approx", "full", "nearest_int_to_zero",
                     "nearest_away"),
    "ComparisonOrdering": ("unordered", "ordered"),
    "ComparisonPredicate": ("equal", "not_equal", "less_than", "less_than_or_equal", "greater_than",
                            "greater_than_or_equal"),
    "AtomicRMWMode": ("and", "or", "xor", "add", "addf", "max", "min", "umax", "umin", "xchg"),
    "MemoryScope": ("tl_blk", "device", "sys"),
    "MemoryOrdering": ("weak", "relaxed", "acquire", "release", "acq_rel"),
    "PaddingValue": PADDINGS,
    "Visibility": ("public", "private"),
}
# Values of enumerations that came later than the enumeration itself.
ENUM_SINCE: dict[tuple[str, str], Version] = {("RoundingMode", "nearest_away"): (13, 4)}
# Hints: since which version their keys (architectures) and names are accepted. From 13.3 on, any name is.
# From 13.3 on "default" stands for every architecture that has no key of its own.
HINT_SINCE: dict[str, Version] = {
    **{f"sm_{n}": (13, 1) for n in (80, 90, 100, 103, 110, 120, 121)},
    **{f"sm_{n}": (13, 2) for n in (86, 87, 88, 89, 107)},
    **dict.fromkeys(("num_cta_in_cga", "occupancy", "allow_tma", "latency"), (13, 1)),
}
HINTS_FREE: Version = (13, 3)


@structure(frozen=True, slots=True)
class Operand:
    name: str
    optional: bool
    variadic: bool
    since: Version


@structure(frozen=True, slots=True)
class Attr:
    """`kind` is the name of an enumeration or one of unit, bool, int, str, i32s, bools, dense, predicate, identities,
    hints. A `unit` is a bit of the flags and has no data. An attribute not given has the value `default`, the only one
    possible in versions that lack it."""

    name: str
    kind: str
    default: object = None
    optional: bool = False
    since: Version = (13, 1)

    @property
    def flagged(self) -> bool:
        return self.optional or self.kind == "unit"


@structure(frozen=True, slots=True)
class Result:
    """`rule`: a digit or a name in `checking.RESULT_RULES`; empty if the caller gives the type."""

    name: str
    rule: str
    variadic: bool
    since: Version


@structure(frozen=True, slots=True)
class Spec:
    """What the table says of an operation."""

    name: str
    opcode: int
    operands: tuple[Operand, ...]
    attrs: tuple[Attr, ...]
    results: tuple[Result, ...]
    regions: int
    since: Version
    segmented: bool
    uniform: bool
    terminator: bool
    flags: tuple[str, ...]  # what each bit of the flags stands for
    flags_since: Version  # the version from which on there are flags
    counts_results: bool  # the number of results comes before their types

    def operand(self, name: str) -> Operand:
        return next(o for o in self.operands if o.name == name)

    def attr(self, name: str) -> Attr:
        return next(a for a in self.attrs if a.name == name)

    def filled(self, attr: Attr, operands: tuple) -> object:
        """The value of an attribute that was not given, None if it has none.

        For kind `bools`: False for each entry of the operand `index`.
        """
        if attr.kind == "bools":
            return (False,) * len(operands[[o.name for o in self.operands].index("index")])
        return attr.default


def _since(text: str, default: Version) -> tuple[str, Version]:
    name, _, version = text.partition("@")
    return name, parse_version(version) if version else default


def _operand(text: str, default: Version) -> Operand:
    name, since = _since(text, default)
    return Operand(name.rstrip("?*"), name.endswith("?"), name.endswith("*"), since)


def _default(kind: str, text: str) -> object:
    if kind == "bool":
        return text == "true"
    return int(text) if kind == "int" else text


def _attr(text: str, default: Version) -> Attr:
    text, since = _since(text, default)
    name, _, kind = text.partition(":")
    kind, _, value = kind.partition("=")
    optional = kind.endswith("?")
    kind = kind.rstrip("?")
    return Attr(name, kind, False if kind == "unit" else _default(kind, value) if value else None, optional, since)


def _result(text: str, default: Version) -> Result:
    text, since = _since(text, default)
    name, _, rule = text.partition(":")
    return Result(name.rstrip("*"), rule, name.endswith("*"), since)


def _flags(segmented: bool, attrs: tuple[Attr, ...], operands: tuple[Operand, ...]) -> list[Attr | Operand]:
    flagged: list[Attr | Operand] = [a for a in attrs if a.flagged]
    if segmented:
        flagged += [o for o in operands if o.optional]
    return sorted(flagged, key=lambda x: x.since)  # stable: attributes before operands, in the order of the row


def _op(name, opcode, operands="", attrs="", results="", *, regions=0, since="13.1", segmented=False, uniform=False,
        terminator=False) -> Spec:
    version = parse_version(since)
    ins = tuple(_operand(t, version) for t in operands.split())
    attributes = tuple(_attr(t, version) for t in attrs.split())
    flags = _flags(segmented, attributes, ins)
    outs = tuple(_result(t, version) for t in results.split())
    return Spec(name, opcode, ins, attributes, outs, regions, version, segmented, uniform, terminator,
                tuple(f.name for f in flags), min((f.since for f in flags), default=version),
                any(x.variadic for x in (*ins, *outs)))


def _unary(name, opcode, attrs="", **options):
    return _op(name, opcode, "source", attrs, "result:0", **options)


def _binary(name, opcode, attrs="", **options):
    return _op(name, opcode, "lhs rhs", attrs, "result:0", uniform=True, **options)


_ROUND = "rounding_mode:RoundingMode=nearest_even"
_FTZ = "flush_to_zero:unit"
_NAN = "propagate_nan:unit"
_SIGN = "signedness:Signedness"
_WRAP = "overflow:IntegerOverflow=none"
_ORDER = "memory_ordering_semantics:MemoryOrdering"
_SCOPE = "memory_scope:MemoryScope"
_HINTS = "optimization_hints:hints?"
_INBOUNDS = "inbounds:bools@13.4"

_TABLE = (
    _unary("absf", 0x00),
    _unary("absi", 0x01),
    _binary("addf", 0x02, f"{_ROUND} {_FTZ}"),
    _binary("addi", 0x03, _WRAP),
    _binary("andi", 0x04),
    _op("assert", 0x05, "condition", "message:str"),
    _op("assume", 0x06, "value", "predicate:predicate", "result:0"),
    _op("atomic_cas_tko", 0x07, "pointers cmp val mask? token?", f"{_ORDER} {_SCOPE}", "result:1 result_token:token",
        segmented=True),
    _op("atomic_rmw_tko", 0x08, "pointers arg mask? token?", f"{_ORDER} {_SCOPE} mode:AtomicRMWMode",
        "result:1 result_token:token", segmented=True),
    _op("bitcast", 0x09, "source", "", "result"),
    _op("break", 0x0A, "operands*", terminator=True),
    _op("broadcast", 0x0B, "source", "", "result"),
    _op("cat", 0x0C, "lhs rhs", "dim:int", "result"),
    _unary("ceil", 0x0D),
    _op("cmpf", 0x0E, "lhs rhs", "comparison_predicate:ComparisonPredicate comparison_ordering:ComparisonOrdering",
        "result:bool", uniform=True),
    _op("cmpi", 0x0F, "lhs rhs", f"comparison_predicate:ComparisonPredicate {_SIGN}", "result:bool", uniform=True),
    _op("constant", 0x10, "", "value:dense", "result"),
    _op("continue", 0x11, "operands*", terminator=True),
    _unary("cos", 0x12),
    _unary("cosh", 0x13),
    _binary("divf", 0x14, f"{_ROUND} {_FTZ}"),
    _binary("divi", 0x15, f"{_SIGN} rounding:RoundingMode=zero"),
    _unary("exp", 0x17, "rounding_mode:RoundingMode=full@13.3"),
    _unary("exp2", 0x18, _FTZ),
    _op("exti", 0x25, "from", _SIGN, "to"),
    _op("extract", 0x26, "source indices*", "", "result"),
    _unary("floor", 0x27),
    _op("fma", 0x28, "lhs rhs acc", f"{_ROUND} {_FTZ}", "result:0", uniform=True),
    _op("for", 0x29, "lowerBound upperBound step initValues*", "unsignedCmp:unit@13.2", "resultValues*", regions=1),
    _op("ftof", 0x2A, "from", _ROUND, "to"),
    _op("ftoi", 0x2B, "from", f"saturating:unit@13.4 {_SIGN} rounding_mode:RoundingMode=nearest_int_to_zero", "to"),
    _op("get_global", 0x2C, "", "name:str", "result"),
    _op("get_index_space_shape", 0x2D, "src", "", "result*"),
    _op("get_num_tile_blocks", 0x2E, "", "", "gridSize_x:i32 gridSize_y:i32 gridSize_z:i32"),
    _op("get_tensor_shape", 0x2F, "src", "", "result*"),
    _op("get_tile_block_id", 0x30, "", "", "blockId_x:i32 blockId_y:i32 blockId_z:i32"),
    _op("if", 0x32, "condition", "", "results*", regions=2),
    _op("int_to_ptr", 0x33, "source", "", "result"),
    _op("iota", 0x3A, "", "", "result"),
    _op("itof", 0x3B, "from", f"{_SIGN} {_ROUND}", "to"),
    _op("join_tokens", 0x3C, "tokens*", "", "result:token"),
    _op("load_ptr_tko", 0x3D, "source mask? paddingValue? token?", f"{_ORDER}=weak {_SCOPE}? {_HINTS}",
        "result:pointee result_token:token", segmented=True),
    _op("load_view_tko", 0x3E, "view index* token?", f"{_ORDER}=weak {_SCOPE}? {_HINTS} {_INBOUNDS}",
        "tile:view result_token:token", segmented=True),
    _unary("log", 0x3F),
    _unary("log2", 0x40),
    _op("loop", 0x41, "initValues*", "", "resultValues*", regions=1),
    _op("make_partition_view", 0x42, "tensor_view", "", "result"),
    _op("make_tensor_view", 0x43, "base dynamicShape* dynamicStrides*", "", "result", segmented=True),
    _op("make_token", 0x44, "", "", "result:token"),
    _binary("maxf", 0x45, f"{_NAN} {_FTZ}"),
    _binary("maxi", 0x46, _SIGN),
    _binary("minf", 0x47, f"{_NAN} {_FTZ}"),
    _binary("mini", 0x48, _SIGN),
    _op("mmaf", 0x49, "lhs rhs acc", "fast_acc:unit@13.3", "result:2"),
    _op("mmai", 0x4A, "lhs rhs acc", "signedness_lhs:Signedness signedness_rhs:Signedness", "result:2"),
    _binary("mulf", 0x4C, f"{_ROUND} {_FTZ}"),
    _op("mulhii", 0x4D, "x y", "", "result:0", uniform=True),
    _binary("muli", 0x4E, _WRAP),
    _unary("negf", 0x4F),
    _unary("negi", 0x50, f"{_WRAP}@13.2"),
    _op("offset", 0x51, "ptr offset", "", "result:0"),
    _binary("ori", 0x52),
    _op("permute", 0x53, "source", "permutation:i32s", "result"),
    _op("pow", 0x54, "source exponent", "", "result:0", uniform=True),
    _op("print_tko", 0x55, "args* token?@13.2", "str:str", "result_token:token@13.2", segmented=True),
    _op("ptr_to_int", 0x56, "source", "", "result"),
    _op("ptr_to_ptr", 0x57, "source", "", "result"),
    _op("reduce", 0x58, "operands*", "dim:int identities:identities", "results*", regions=1),
    _binary("remf", 0x59),
    _binary("remi", 0x5A, _SIGN),
    _op("reshape", 0x5B, "source", "", "result"),
    _op("return", 0x5C, "operands*", terminator=True),
    _unary("rsqrt", 0x5D, _FTZ),
    _op("scan", 0x5E, "operands*", "dim:int reverse:bool=false identities:identities", "results*", regions=1),
    _op("select", 0x5F, "cond val_if_true val_if_false", "", "result:1"),
    _binary("shli", 0x60, _WRAP),
    _binary("shri", 0x61, _SIGN),
    _unary("sin", 0x62),
    _unary("sinh", 0x63),
    _unary("sqrt", 0x64, f"{_ROUND} {_FTZ}"),
    _op("store_ptr_tko", 0x65, "destination value mask? token?", f"{_ORDER}=weak {_SCOPE}? {_HINTS}",
        "result_token:token", segmented=True),
    _op("store_view_tko", 0x66, "tile view index* token?", f"{_ORDER}=weak {_SCOPE}? {_HINTS} {_INBOUNDS}",
        "result_token:token", segmented=True),
    _binary("subf", 0x67, f"{_ROUND} {_FTZ}"),
    _binary("subi", 0x68, _WRAP),
    _unary("tan", 0x69),
    _unary("tanh", 0x6A, "rounding_mode:RoundingMode=full@13.2"),
    _op("trunci", 0x6B, "from", _WRAP, "to"),
    _binary("xori", 0x6C),
    _op("yield", 0x6D, "operands*", terminator=True),
    _op("atan2", 0x6E, "x y", "", "result:0", uniform=True, since="13.2"),
    _op("pack", 0x6F, "source", "", "result", since="13.3"),
    _op("unpack", 0x70, "source", "", "result", since="13.3"),
    _op("alloca", 0x71, "", "num_elem:int alignment:int global:unit", "result", since="13.3"),
    _op("mmaf_scaled", 0x72, "lhs rhs acc lhs_scale rhs_scale", "", "result:2", since="13.3"),
    _op("make_gather_scatter_view", 0x73, "tensor_view", "", "result", since="13.3"),
    _op("make_strided_view", 0x74, "tensor_view", "", "result", since="13.3"),
    _op("atomic_red_view_tko", 0x75, "view index* value token?", f"{_ORDER} {_SCOPE} mode:AtomicRMWMode",
        "result_token:token", segmented=True, since="13.3"),
    _op("insert", 0x76, "source destination indices*", "", "result:1", since="13.4"),
    _op("gdc_launch_dependents_tko", 0x77, "token?", "", "result_token:token", segmented=True, since="13.4"),
    _op("gdc_wait_tko", 0x78, "token?", "", "result_token:token", segmented=True, since="13.4"),
    _op("fpowi", 0x79, "source exponent", "", "result:0", since="13.4"),
)

OPS: dict[str, Spec] = {s.name: s for s in _TABLE}
