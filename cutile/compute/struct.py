"""Structs, under the name of `cuda.compute.struct`."""

from cutile.compute.value_types import gpu_struct

__all__ = ["gpu_struct"]
