"""Types of items, under the names of `cuda.compute.types`."""

from typing import Any, NoReturn

import cutile as ct
from cutile.compute.value_types import Number, ValueType, gpu_struct
from cutile.compute.value_types import value_type as from_numpy_dtype
from cutile.errors import TileUnsupportedFeatureError

int8, int16, int32, int64 = map(Number, (ct.int8, ct.int16, ct.int32, ct.int64))
uint8, uint16, uint32, uint64 = map(Number, (ct.uint8, ct.uint16, ct.uint32, ct.uint64))
float16, bfloat16, float32, float64 = map(Number, (ct.float16, ct.bfloat16, ct.float32, ct.float64))
boolean = Number(ct.bool_)


def struct(fields: Any, name: str = "AnonymousStruct") -> ValueType:
    """The type of a struct, of the fields that `gpu_struct` takes."""
    return gpu_struct(fields, name).value_type


def pointer(*_: Any, **__: Any) -> NoReturn:
    """TileUnsupportedFeatureError: items are numbers and structs."""
    raise TileUnsupportedFeatureError("pointers are no items of device-wide algorithms",
                                      help="pass positions, and an array that the operator captures or a "
                                           "PermutationIterator reads")


__all__ = ["bfloat16", "boolean", "float16", "float32", "float64", "from_numpy_dtype", "int16", "int32", "int64",
           "int8", "pointer", "struct", "uint16", "uint32", "uint64", "uint8"]
