"""What the language has, by name: the ops with the dtypes that they take, and the kinds of statements.

Names that are no function of the API stand for syntax: "ternary" is `x if c else y`. If an op has several operands, the
dtype is that of the first.
"""

from __future__ import annotations

from conformance.generate import forms, idioms, stores
from conformance.generate.core import ALL, EVERY
from conformance.generate.dtypes import ARITHMETIC, FLOATS, INTS
from conformance.generate.functions import FUNCTIONS
from conformance.generate.structural import MMA

NUMBERS, IN_MEMORY = (*INTS, *FLOATS), (*ARITHMETIC, "e4m3", "e5m2", "e8m0", "e2m1")
WORDS = ("add", "max", "min", "and", "or", "xor")

# The dtypes of each op of the language, by which it is counted.
ALLOWED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "sub", "mul", "floordiv", "mod", "cdiv", "minimum", "maximum", "pow"), NUMBERS),
    **dict.fromkeys(("truediv", "negative", "abs", "positive", *FUNCTIONS), ARITHMETIC),
    **dict.fromkeys(("floor", "ceil", "isnan", "atan2"), FLOATS), "divmod": INTS,
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"), ("b1", *INTS)),
    **dict.fromkeys(("bitwise_lshift", "bitwise_rshift"), INTS),
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), ARITHMETIC),
    **dict.fromkeys(("where", "ternary", "logical_not", "reshape", "broadcast_to", "permute", "transpose",
                     "expand_dims", "cat", "extract", "insert", "item", "full", "ones", "astile", "reduce",
                     "scan"), EVERY),
    **dict.fromkeys(("zeros", "arange"), tuple(d for d in EVERY if d != "e8m0")),
    "astype": tuple(d for d in EVERY if d != "e8m0"), "astype from": EVERY,
    **dict.fromkeys(("pack_to_bytes", "unpack_from_bytes"), tuple(d for d in EVERY if d != "b1")),
    "bitcast": tuple(d for d in EVERY if d not in ("b1", "e2m1")),
    **dict.fromkeys(("sum", "prod", "max", "min", "argmax", "argmin", "cumsum", "cumprod"), ARITHMETIC),
    "mma": tuple(MMA), "matmul": tuple(MMA), "mma_scaled": ("e4m3", "e5m2", "e2m1"),
    **dict.fromkeys(("load", "gather", "store"), IN_MEMORY),
    **dict.fromkeys(("view_load", "view_store", "scatter", "load_offset", "store_offset", "load_advanced_indexing",
                     "store_advanced_indexing", "list_item", "from_foreign", "slice"), (*ARITHMETIC, "e4m3", "e5m2")),
    **{f"atomic_{w}": stores.SHARED for w in WORDS}, **{f"atomic_{w}_offset": stores.SHARED for w in WORDS},
    **{f"view_atomic_store_{w}": stores.SHARED for w in WORDS},
    **dict.fromkeys(("atomic_add", "atomic_add_offset"), (*stores.SHARED, *FLOATS)),
    **dict.fromkeys(("atomic_xchg", "atomic_cas", "atomic_xchg_offset", "atomic_cas_offset"),
                    (*stores.SHARED, "f32", "f64")),
    "static_assert": ALL, "print": ALL, "printf": NUMBERS,
    **{i.name: INTS for i in idioms.IDIOMS},
}
# Ops that are counted without a dtype.
OTHERS = (
    "bid", "num_blocks", "num_tiles", "view_num_tiles", "array_dim", "list_len", "assume_divisible_by", "tiled_view",
    "get_raw_memory", "foreign_pointer", "Slice", "connective", "constant", "parameter", "assert_", "static_exception",
    "static_iter", "with", "grid_dependency_control_wait", "grid_dependency_control_launch_dependents",
)
OPS = (*ALLOWED, *OTHERS)
LEFT_OUT = {
    "foreign_pointer_dtype": "a function of the host",
    "launch": "a function of the host",
    "print, printf": "compiled where no block comes, because what is printed is not compared",
    "float8_e8m0fnu in astype": "only two directed modes give it",
    "views, slices and scattering of float8_e8m0fnu and float4_e2m1fn": "these formats are loaded, gathered and stored",
}

KINDS = (
    "assign", "unpack", "call", "a = b =", "a, (b, c) =", "[a, b] =", "a: T =", "a, b = b, a", "@=",
    *(f"{sign}=" for sign in forms.SIGNS), "if", "elif", "for", "while", "while True", "static_iter", "with",
    "with several", "break", "continue", "return", "pass", "raise", "expression", "helper", "closure", "lambda",
    "tuple", "dataclass", "enum", "manager", "store", "scatter", "atomic", "assert_", "static_assert", "print",
    "printf", "dependency",
)
