"""CUTILE_CHECK: check every result of an op against its type."""

from __future__ import annotations

import numpy as np

from cutile.dtypes import info
from cutile.errors import TileInternalError
from cutile.ir.nodes import Op
from cutile.ops import _numeric
from cutile.types import TileType


def finish(n: Op, y):
    """Round the results of a meaning, and check that they have the dtype, shape and values of their types."""
    ys = y if len(n.results) > 1 else (y,)
    if not isinstance(ys, tuple) or len(ys) != len(n.results):
        raise _wrong(n, f"{len(n.results)} results expected, got {type(y).__name__}")
    out = []
    for v, x in zip(n.results, ys, strict=True):
        if not n.op.exact:
            x = _numeric.round_to(v.type.dtype, x)
        out.append(check(n, v.type, np.asarray(x)))
    return tuple(out) if len(n.results) > 1 else out[0]


def check(n: Op, t: TileType, x: np.ndarray) -> np.ndarray:
    d, shape, ndim = info(t.dtype), t.shape, x.ndim - len(t.shape)
    if x.dtype != d.carrier:
        raise _wrong(n, f"a {t} is carried in {d.carrier}, got {x.dtype}")
    if ndim < 0 or x.shape[ndim:] != shape:
        raise _wrong(n, f"a {t} has trailing axes {shape}, got an array of shape {x.shape}")
    if d.floating:
        again = _numeric.round_to(t.dtype, x)
        if d.format.has_inf:  # `round_to` turns infinities of some dtypes into the largest number
            again = np.where(np.isinf(x), x, again)
        if not np.array_equal(again, x, equal_nan=True):
            raise _wrong(n, f"a value is not representable in {t.dtype.name}")
    return x


def _wrong(n: Op, what: str) -> TileInternalError:
    return TileInternalError(f"the meaning of {n.op.name} broke its contract: {what}", n.span)
