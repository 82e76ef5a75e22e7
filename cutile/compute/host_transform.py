"""Transforms of arrays in host memory by one call of NumPy, where the operator is one op of the language on integers. A
launch takes longer than NumPy adds two arrays of a million bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cutile import settings
from cutile.compute.function_key import debugged
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ArrayIterator
from cutile.compute.operators import Operator
from cutile.compute.results import result_of
from cutile.compute.value_types import Number
from cutile.dtypes import bool_, info

UFUNCS = {"add": np.add, "mul": np.multiply, "minimum": np.minimum, "maximum": np.maximum,
          "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
          "negative": np.negative, "bitwise_not": np.invert}


def ufunc_of(inputs: Sequence[IteratorBase], out: IteratorBase, op: Operator) -> np.ufunc | None:
    """What gives the results of an operator in one call, if something does."""
    t = out.value_type
    if debugged() or not isinstance(t, Number) or t.dtype == bool_ or not info(t.dtype).integral or not all(
            isinstance(it, ArrayIterator) and it.value_type == t for it in (*inputs, out)):
        return None
    return UFUNCS.get(result_of(op, *(it.value_type for it in inputs)).single)


def calling(ufunc: np.ufunc) -> Callable:
    """A function of the inputs and the output that applies a ufunc, and is false where launches are checked."""
    def apply(*arrays: np.ndarray) -> bool:
        if settings.get("SANITIZE"):
            return False
        ufunc(*arrays[:-1], out=arrays[-1])
        return True

    return apply
