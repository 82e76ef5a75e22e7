"""What docstrings of ops share: the texts of parameters and results."""

from __future__ import annotations

_TILELIKE = "tile, scalar or number"
_INDEX = "scalar, or tuple of scalars"
_WEAK = "default WEAK"

# Parameters by name, or by names of op and parameter: what they may be, and what they do.
PARAMETERS: dict[str, tuple[str, str]] = {
    "acc": ("tile", "What the product is added to; its dtype and shape are those of the result."),
    "allow_tma": ("bool or None, constant, default None", "A hint: whether the GPU's tensor memory accelerator may be "
                  "used. None: the compiler\ndecides. Ignored on the CPU."),
    "args": ("any values", "What is written: tiles, scalars, strings and other values of tile code."),
    "array": ("array", "The array, of any rank and dtype."),
    "axes": ("tuple of int, constant", "For each axis of the result, the axis of `x` that it was. Negative axes count "
             "from the end."),
    "axis": ("int, constant", "The axis; negative axes count from the end."),
    **dict.fromkeys(("sum.axis", "prod.axis", "max.axis", "min.axis"),
                    ("int, tuple of int or None, constant, default None",
                     "The axis or axes to reduce; None reduces all. Negative axes count from the end.")),
    **dict.fromkeys(("argmax.axis", "argmin.axis"),
                    ("int or None, constant, default None",
                     "The axis to reduce; None searches the tile in row-major order.")),
    **dict.fromkeys(("bid.axis", "num_blocks.axis"), ("int, constant", "The axis of the grid: 0, 1 or 2.")),
    **dict.fromkeys(("cumsum.axis", "cumprod.axis"), ("int, constant, default 0",
                                                      "The axis; negative axes count from the end.")),
    "num_tiles.axis": ("int, constant", "The axis of the tile space; negative axes count from the end."),
    "view_num_tiles.axis": ("int, constant", "The axis of the view; negative axes count from the end."),
    "expand_dims.axis": ("int, constant", "Where the new axis is in the result; negative axes count from the end."),
    "axis0": ("int or None, constant, default None", "One of the axes to swap. May be left out, with `axis1`, if `x` "
              "has two axes."),
    "axis1": ("int or None, constant, default None", "The other one."),
    "check_bounds": ("bool, constant, default True", "False promises that no element outside the array is accessed. "
                     "The CPU checks\nbounds all the same."),
    "cond": ("tile or scalar", "Where it is not zero, the condition holds."),
    "assert_.cond": ("tile or scalar of bool_", "The condition, which must hold for every element."),
    "desired": (_TILELIKE, "What is written where the element equals `expected`; broadcast to the indices."),
    "divisor": ("int, constant", "A positive divisor of `x`."),
    "dtype": ("dtype, constant", "The dtype of the result: of cutile, NumPy, PyTorch or ml_dtypes."),
    "end": ("str, constant, default newline", "What is written at the end."),
    "expected": (_TILELIKE, "What an element is compared with, bit by bit; broadcast to the indices."),
    "fill_value": ("scalar or number", "The value of all elements."),
    "flush_to_zero": ("bool, constant, default False", "Take subnormal operands as zeros of their sign, and make "
                      "subnormal results such zeros.\nFor float32 only."),
    "format": ("str, constant", "A format string as in C."),
    "func": ("function", "A function in tile code."),
    "elementwise.func": ("function", "An ordinary Python function of elements."),
    "reduce.func": ("function", "A function of two scalars (2 n for a tuple of n tiles) that returns one (n).\nIt must "
                    "be associative and commutative."),
    "scan.func": ("function", "A function of two scalars (2 n for a tuple of n tiles) that returns one (n).\n"
                  "It must be associative."),
    "identity": ("number, or tuple of numbers, constant", "What leaves the other operand of `func` as it is; one for "
                 "each tile."),
    "index": (_INDEX, "The tile index: one signed integer for each axis, in units of tiles. For rank 1 a\n"
              "single scalar will do."),
    "extract.index": (_INDEX, "Which part, in units of parts: one signed integer for each axis."),
    "insert.index": (_INDEX, "Which part is replaced, in units of parts: one signed integer for each axis."),
    "indices": ("integer tile, or tuple of integer tiles", "The index of each element, one tile for each axis of the "
                "array; they broadcast. For\nrank 1 a single tile will do. Negative indices are outside the array."),
    **dict.fromkeys(("load_advanced_indexing.indices", "store_advanced_indexing.indices"),
                    ("tuple", "One entry for each axis: exactly one 1-D integer tile of positions, and a\n"
                     "`ct.Slice(start, length)` for every other axis.")),
    "keepdims": ("bool, constant, default False", "Keep reduced axes, with size 1."),
    "latency": ("int or None, constant, default None", "A hint, from 1 to 10: how expensive the access is. Ignored on "
                "the CPU."),
    "length": ("int, constant", "How many positions; a power of two."),
    "mask": ("bool_ tile or None, default None", "Where it is False, nothing is accessed. It broadcasts to the "
             "indices."),
    "memory_order": ("MemoryOrder, constant, default ACQ_REL", "How the access orders other accesses to memory."),
    "memory_scope": ("MemoryScope, constant, default DEVICE", "Among which blocks it does so."),
    **dict.fromkeys(("load.memory_order", "store.memory_order"),
                    (f"MemoryOrder, constant, {_WEAK}", "How the access orders other accesses to memory.")),
    **dict.fromkeys(("load.memory_scope", "store.memory_scope"),
                    ("MemoryScope, constant, default NONE", "Among which blocks it does so.")),
    "message": ("str or None, constant, default None", "What the error says."),
    "offset": ("integer tile", "Offsets from the first element of the array, counted in elements."),
    "order": ('"C", "F" or tuple of int, constant, default "C"', 'Which axis of the array each dimension of the tile '
              'and of the index runs along: "C" is\nthe order of the array, "F" the reverse.'),
    "padding_mode": ("PaddingMode, constant, default UNDETERMINED", "What elements beyond an edge of the array read "
                     "as."),
    "padding_value": ("scalar or number, default 0", "The result where an index is outside the array, or `mask` is "
                      "False."),
    "propagate_nan": ("bool, constant, default False", "True: NaN if an operand is NaN. False: a NaN is passed over if "
                      "there is a number."),
    "raw": ("raw memory", "What `array.get_raw_memory()` returns."),
    "reverse": ("bool, constant, default False", "Begin at the last element."),
    "rounding_mode": ("RoundingMode or None, constant, default None", "How the result is rounded; None is to nearest, "
                      "ties to even, or what the clauses say."),
    "sep": ("str, constant, default a space", "What is written between the arguments."),
    "shape": ("int or tuple of int, constant", "The shape of the result; each dimension is a power of two."),
    "load.shape": ("int or tuple of int, constant", "The shape of the tile: a power of two for each axis of the array. "
                   "A single int will do\nfor rank 1; () loads one element, as a scalar."),
    "num_tiles.shape": ("int or tuple of int, constant", "The shape of the tiles."),
    "from_foreign.pointer": ("scalar", "The address of the first element, which `array.foreign_pointer` gives."),
    "from_foreign.shape": ("tuple of scalars", "The sizes: signed integers."),
    "from_foreign.strides": ("tuple of scalars", "The strides, counted in elements: signed integers."),
    "extract.shape": ("tuple of int, constant", "The shape of the part; it divides the shape of `x`."),
    "size": ("int, constant", "How many elements; a power of two."),
    "start": ("scalar or number, default 0", "The first element."),
    "slice.start": ("scalar or number", "The first element of the view along the axis."),
    "Slice.start": ("scalar or number", "The first position."),
    "step": ("scalar or number, default 1", "The difference of neighbours."),
    "stop": ("scalar or number", "The element after the last one of the view."),
    "tile": (_TILELIKE, "What is written. Its shape is the tile shape. Promotion with the array's dtype "
             "must give\nthat dtype."),
    "tile_shape": ("int or tuple of int, constant", "The shape of the tiles: a power of two for each axis."),
    "tiles": ("tuple of two tiles", "Tiles of one shape and dtype."),
    "traversal_steps": ("int, tuple of int or None, constant, default None", "How many elements lie between the first "
                        "elements of neighbouring tiles; None: as many as a\ntile has."),
    "update": (_TILELIKE, "The second operand; it broadcasts to the indices. Promotion with the array's "
               "dtype must\ngive that dtype."),
    "use_fast_acc": ("bool, constant, default False", "Permit float8 products to be accumulated less precisely. "
                     "Ignored on the CPU."),
    "value": (_TILELIKE, "What is written; it broadcasts to the indices. Promotion with the array's dtype "
              "must give\nthat dtype."),
    "astile.value": ("nested tuple of scalars", "The elements: tuples of equal lengths, which are powers of two."),
    "insert.value": ("tile", "The new part; its shape divides the shape of `x`."),
    "view": ("tiled view", "What `array.tiled_view(…)` returns."),
    "x": (_TILELIKE, "The operand."),
    **{f"{op}.x": (_TILELIKE, "The first operand.") for op in (
        "add", "sub", "mul", "minimum", "maximum", "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "not_equal",
        "less", "less_equal", "greater", "greater_equal")},
    **{f"{op}.x": (_TILELIKE, "The dividend.") for op in ("truediv", "floordiv", "mod", "cdiv", "divmod")},
    **{f"{op}.y": (_TILELIKE, "The divisor; it broadcasts against `x`.") for op in (
        "truediv", "floordiv", "mod", "cdiv", "divmod")},
    **{f"{op}.x": ("integer tile or number", "What is shifted.") for op in ("bitwise_lshift", "bitwise_rshift")},
    **{f"{op}.y": ("integer tile or number", "By how many bits; it broadcasts against `x`.") for op in (
        "bitwise_lshift", "bitwise_rshift")},
    "pow.x": (_TILELIKE, "The base."), "pow.y": (_TILELIKE, "The exponent; it broadcasts against `x`."),
    "where.x": (_TILELIKE, "The result where `cond` holds."), "where.y": (_TILELIKE, "The result elsewhere."),
    "elementwise.x": (_TILELIKE, "The arguments of `func`; they broadcast."),
    **{f"{op}.x": ("tile", "The left operand.") for op in ("mma", "mma_scaled", "matmul")},
    **{f"{op}.y": ("tile", "The right operand.") for op in ("mma", "mma_scaled", "matmul")},
    **{f"{op}.x": ("tile, or tuple of tiles", "The elements; several tiles broadcast and are combined side by side.")
       for op in ("reduce", "scan")},
    "assume_divisible_by.x": ("integer scalar", "The value of which something is promised."),
    "x1": (_TILELIKE, "The ordinate."), "x2": (_TILELIKE, "The abscissa; it broadcasts against `x1`."),
    "x_scale": ("tile", "The scales of `x`, one for a block of elements along K."),
    "y_scale": ("tile", "The scales of `y`, one for a block of elements along K."),
    "y": (_TILELIKE, "The second operand; it broadcasts against `x`."),
}

_PROMOTED = "tile\n    Of the dtype that promotion gives and the broadcast shape."
_SAME = "tile\n    Of the dtype and shape of `x`."
_FLOAT = "tile\n    Of the shape of `x`; float32 for integers and bool_, else of its dtype."
_BEFORE = "tile\n    The elements before, of the dtype of the array and the broadcast shape of the indices."
_REDUCED = "tile\n    Of the dtype of `x`, without the reduced axes, or with size 1 for each under `keepdims`."
_NOTHING = "None"

# Results, by the name of the op, or else of its typing rule.
RETURNS: dict[str, str] = {
    "from_foreign": "array\n    Of the dtype that the pointer points to.",
    **dict.fromkeys(("rounded_rule", "division_rule", "extremum_rule", "bitwise_rule", "shift_rule", "pow_rule",
                     "float_binary", "where_rule"), _PROMOTED),
    "truediv_rule": "tile\n    A float of the broadcast shape: of the promoted dtype if it is one, else float32.",
    "divmod_rule": "tuple of two tiles\n    Quotient and remainder, of the promoted dtype and the broadcast shape.",
    **dict.fromkeys(("negative_rule", "abs_rule", "bitwise_not_rule", "to_integral_rule", "_cumsum_rule",
                     "insert_rule", "assume_rule"), _SAME),
    "float_unary": _FLOAT,
    **dict.fromkeys(("comparison_rule", "isnan_rule"), "tile\n    Of dtype bool_ and the (broadcast) shape."),
    **dict.fromkeys(("_sum_rule", "_max_rule"), _REDUCED),
    "_argmax_rule": "tile\n    Of dtype int32, without the reduced axes, or with size 1 for each under `keepdims`.",
    "_reduce_rule": "tile, or tuple of tiles\n    One for each tile of `x`, without the axis, or with size 1.",
    "_scan_rule": "tile, or tuple of tiles\n    One for each tile of `x`, of its shape.",
    "astype_rule": "tile\n    Of the shape of `x`.", "bitcast_rule": "tile\n    Of the shape of `x`.",
    "pack_rule": "tile\n    A uint8 tile of rank 1.", "unpack_rule": "tile\n    A tile of rank 1.",
    **dict.fromkeys(("reshape_rule", "broadcast_rule", "full_rule", "ones", "zeros", "extract_rule"),
                    "tile\n    Of shape `shape`."),
    "expand_rule": "tile\n    With one axis more.", "permute_rule": "tile\n    With the axes in the new order.",
    "transpose_rule": "tile\n    With the axes swapped.", "cat_rule": "tile\n    Twice as long along `axis`.",
    "item": "scalar", "arange_rule": "tile\n    Of shape (size,).", "astile_rule": "tile",
    **dict.fromkeys(("_print_rule", "_printf_rule", "_assert_rule", "dependency_rule", "_store", "_store_advanced",
                     "_scatter", "_view_store", "_store_offset"), _NOTHING),
    "elementwise": "tile, or structure of tiles\n    What `func` returns, of the broadcast shape.",
    "block_rule": "int32 scalar", "num_tiles_rule": "int32 scalar", "_view_tiles": "int32 scalar",
    "_load": "tile, or scalar for shape ()\n    Of the dtype of the array and shape `shape`.",
    "_load_advanced": "tile\n    Of the dtype of the array; each axis as long as its tile of positions or slice.",
    "_index_slice": "slice of positions\n    For `load_advanced_indexing` and `store_advanced_indexing`.",
    "_gather": "tile\n    Of the dtype of the array and the broadcast shape of the indices.",
    "_load_offset": "tile\n    Of the dtype of the array and the shape of `offset`.",
    "_view_load": "tile\n    Of the dtype of the array and the shape of the view's tiles.",
    "_slice": "array", "_tiled_view": "tiled view", "_raw_memory": "raw memory",
    "_mma_rule": "tile\n    Of the dtype and shape of `acc`.", "_mma_scaled_rule": "tile\n    Of the shape of `acc`.",
    "_matmul_rule": "tile\n    Of the common dtype.",
    **{f"atomic_{kind}{suffix}": _BEFORE for kind in ("cas", "xchg", "add", "max", "min", "and", "or", "xor")
       for suffix in ("", "_offset")},
    **{f"view_atomic_store_{kind}": _NOTHING for kind in ("add", "max", "min", "and", "or", "xor")},
}
