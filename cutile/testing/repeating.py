"""assert_repeatable: whether a function gives the same bits each time, in any order of its blocks [BEN-6]."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cutile._support.opaque import opaque
from cutile.errors import refusal
from cutile.functions import libraries, options
from cutile.functions.binding import read_array
from cutile.functions.entry import OUTSIDE
from cutile.functions.tuning_check import copies, on_host
from cutile.runtime.turn_schedule import schedule
from cutile.tracebacks import for_callers

_KINDS = {"f": options.FUNCTION, "args": options.ARGUMENTS, "named": options.BY_NAME, "repeats": options.COUNT}


@opaque(OUTSIDE)
@for_callers
def assert_repeatable(f: Callable[..., Any], args: Sequence[Any], *, named: dict[str, Any] | None = None,
                      repeats: int = 10) -> None:
    """Check that a function gives the same bits each time.

    On arrays in CPU memory the first call takes the blocks of launches in their usual order, and each further one in
    another order, as `cutile explore` does: blocks take turns at each access to global memory, and a seed decides whose
    turn it is.

    Parameters
    ----------
    f : function
        What is called. Each call gets copies of the arguments.
    args : sequence
        Its arguments.
    named : dict, optional
        Arguments by name.
    repeats : int, default 10
        How often it is called.

    Raises
    ------
    AssertionError
        It does not; the text names the first element that differs, and how to repeat that call.
    ValueError
        `repeats` is below 2.

    Notes
    -----
    [BEN-6] No number of orders proves that none differs. `ct.sanitize("race")` finds accesses whose order is open.

    Examples
    --------
    >>> @ct.jit(grid="cdiv(N, 4)", out=ct.Out("1", fill=0))
    ... @ct.kernel
    ... def total(x: ct.Array["N"], y):
    ...     ct.atomic_add(y, 0, ct.sum(ct.load(x, ct.bid(0), 4)))
    >>> cutile.testing.assert_repeatable(total, (np.arange(32),))    # integers: any order gives the same
    >>> try:
    ...     cutile.testing.assert_repeatable(total, (np.float32(1) / np.arange(1, 33, dtype=np.float32),))
    ... except AssertionError as e:
    ...     print(str(e)[:24])
    total: output 0 at [0] i
    """
    options.check("assert_repeatable", {"f": f, "args": args, "named": named, "repeats": repeats}, _KINDS)
    if repeats < 2:
        raise ValueError(f"repeats is 2 or more, not {repeats!r}: one call has nothing to be compared with")
    named = named or {}
    ordered = _in_cpu_memory((*args, *named.values()))

    def outputs(seed: int | None) -> list[np.ndarray]:
        with contextlib.nullcontext() if seed is None else schedule(seed=seed):
            found = f(*copies(tuple(args)), **copies(named))
            if found is None:
                raise refusal(ValueError(f"{getattr(f, '__name__', f)} returns nothing that could be compared"))
            return [on_host(a) for a in (found if isinstance(found, tuple | list) else (found,))]

    first = outputs(None)
    for n in range(1, repeats):
        for i, (a, b) in enumerate(zip(first, outputs(n - 1 if ordered else None), strict=True)):
            different = _bits(a) != _bits(b)
            if different.any():
                index = tuple(map(int, np.argwhere(different)[0]))
                how = f", which `with ct.schedule(seed={n - 1})` repeats" if ordered else ""
                raise AssertionError(f"{getattr(f, '__name__', f)}: output {i} at {list(index)} is {a[index]} in the "
                                     f"first call and {b[index]} in call {n + 1}{how}")


def _in_cpu_memory(args: Sequence[Any]) -> bool:
    """Whether the first array is there: then calls run in the interpreter."""
    for value in args:
        for _, x in libraries.arrays_in(value, ""):
            a = read_array(x) if not libraries.is_jax(x) else None
            if a is not None:
                return a[2] is None
    return False


def _bits(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a).view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[a.dtype.itemsize])
