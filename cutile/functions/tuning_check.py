"""Whether configurations of a search store the same [TUN-5]."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutile._support.structs import structure
from cutile.analysis.aliasing import written_params
from cutile.dtypes import INFO
from cutile.runtime import launch as launching
from cutile.runtime.arguments import array_of
from cutile.runtime.restoring import restored
from cutile.tune.candidates import Candidate
from cutile.tune.trial import Copied, copied

SLACK = 2.0**-13  # of the largest element: what sums in another order may differ by
ULPS = 4  # of the dtype of an output


@structure(frozen=True)
class Outcome:
    """Arrays that a launch stored to, as copies in CPU memory."""

    names: tuple[str, ...]
    arrays: tuple[np.ndarray, ...]

    @staticmethod
    def of_arrays(given: Any) -> Outcome:
        """What a reference returned: one array, or a tuple of them."""
        arrays = tuple(given) if isinstance(given, tuple | list) else (given,)
        return Outcome(tuple(f"output {i}" for i in range(len(arrays))), tuple(map(on_host, arrays)))


def on_host(a: Any) -> np.ndarray:
    """A copy of an array in CPU memory."""
    c: Any = copied(a) if array_of(a) is not None else np.asarray(a)
    if not isinstance(c, Copied):
        return c
    storage = INFO[c.dtype].storage
    return np.ndarray(c.shape, storage, bytearray(c.memory), c.first, tuple(s * storage.itemsize for s in c.strides))


def outcome_of(c: Candidate, args: tuple, stream: Any) -> Outcome:
    """What a configuration stores. Afterwards the arrays are as before."""
    found = c.plan(args)
    if found is None:
        launching.launch(stream, c.grid, c.kernel, args)  # raises the error
        return Outcome((), ())
    plan, values = found
    with restored(plan, values, stream):
        launching.launch(stream, c.grid, c.kernel, args)
        _wait(plan.ordinal, stream)
        program = plan.program.kernel
        stored = {n for p, n in zip(program.params, program.param_names) if p in written_params(program)}
        pairs = [(n, a) for n, a in zip(c.kernel.names, args) if n in stored and array_of(a) is not None]
        return Outcome(tuple(n for n, _ in pairs), tuple(on_host(a) for _, a in pairs))


def _wait(ordinal: int | None, stream: Any) -> None:
    if ordinal is not None:
        from cutile.gpu.driver import driver
        from cutile.gpu.streams import handle

        d = driver()
        with d.device(ordinal).current():
            d.ask("the kernel failed", d.api.cuStreamSynchronize(handle(stream)))


def agree(got: Outcome, want: Outcome) -> str | None:
    """Where two outcomes differ by more than sums in another order may; None if they do not.

    Integers must be equal. Floats may differ by 2**-13 of the largest element, and by 4 ulp of the dtype at it.
    """
    if len(got.arrays) != len(want.arrays):
        return f"it stores to {len(got.arrays)} arrays instead of {len(want.arrays)}"
    for name, a, b in zip(got.names, got.arrays, want.arrays):
        if a.shape != b.shape:
            return f"`{name}` has shape {a.shape} instead of {b.shape}"
        wrong = _wrong(a, b)
        if wrong is not None and wrong.any():
            index = tuple(map(int, np.argwhere(wrong)[0]))
            return (f"`{name}`{list(index)} is {a[index]} instead of {b[index]}, and {int(wrong.sum())} of {a.size} "
                    f"elements differ")
    return None


def _wrong(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        return np.asarray(a != b)
    x, y = a.astype(np.float64), b.astype(np.float64)
    finite = y[np.isfinite(y)]
    scale = float(np.abs(finite).max()) if finite.size else 0.0
    with np.errstate(all="ignore"):
        near = np.abs(x - y) <= scale * max(SLACK, ULPS * _epsilon(a.dtype))
    return np.asarray(~(near | (x == y) | (np.isnan(x) & np.isnan(y))))


def _epsilon(dtype: np.dtype) -> float:
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).eps)
