"""Operators, under the names of `cuda.compute.op`."""

from cutile.compute.operators import OpKind, RawOp
from cutile.compute.operators import operator as make_op_adapter

__all__ = ["OpKind", "RawOp", "make_op_adapter"]
