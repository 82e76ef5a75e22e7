"""What arguments may be, under the names of `cuda.compute.typing`, for annotations."""

from collections.abc import Callable
from typing import Any

from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operators import OpKind, RawOp
from cutile.compute.value_types import StructValue

DeviceArrayLike = Any  # whatever ct.launch takes as an array
StreamLike = Any  # whatever ct.launch takes as a stream
GpuStruct = StructValue
IteratorT = IteratorBase
Operator = Callable[..., Any] | OpKind | RawOp

__all__ = ["DeviceArrayLike", "GpuStruct", "IteratorT", "Operator", "StreamLike"]
