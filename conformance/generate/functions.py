"""The functions of one float operand, one row each: which arguments programs give them, and how large results are.

    "exp": Function(np.exp, most=3, gives=12, modes=("FULL", "APPROX"))

A row is all that the generator knows of such a function; its dtypes, its counts and its calls follow from it. Integers
and bool_ are converted to float32 [UN-1].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

WIDE = np.longdouble


@dataclass(frozen=True)
class Function:
    """exact      the function in longdouble
    most       log2 of the largest argument that programs give it
    gives      about log2 of the largest result
    positive   defined for positive arguments only, which most programs give it
    modes      its rounding modes
    ftz        whether it has flush_to_zero
    free       whether implementations may differ in the result without a rounding mode
    """

    exact: Callable
    most: int
    gives: int
    positive: bool = False
    modes: tuple[str, ...] = ()
    ftz: bool = False
    free: bool = True


FUNCTIONS = {
    "exp": Function(np.exp, 3, 12, modes=("FULL", "APPROX")),
    "exp2": Function(np.exp2, 3, 8, ftz=True),
    "log": Function(np.log, 20, 5, positive=True),
    "log2": Function(np.log2, 20, 7, positive=True),
    "sin": Function(np.sin, 4, 0),
    "cos": Function(np.cos, 4, 0),
    "tan": Function(np.tan, 3, 14),
    "sinh": Function(np.sinh, 3, 12),
    "cosh": Function(np.cosh, 3, 12),
    "tanh": Function(np.tanh, 6, 0, modes=("FULL", "APPROX")),
    "sqrt": Function(np.sqrt, 20, 10, positive=True, modes=("RN", "RZ", "RM", "RP", "APPROX"), ftz=True, free=False),
    "rsqrt": Function(lambda v: WIDE(1) / np.sqrt(v), 20, 20, positive=True, ftz=True),
}
