"""The error bounds of ops: wherever operands lie within their errors, the result lies within the bound."""

from __future__ import annotations

import numpy as np
import pytest

from cutile.dtypes import bool_, float64, info
from cutile.ops._constants import evaluate
from cutile.ops._error_bounds import monotone, monotone_in_each, of_comparison, of_larger
from cutile.ops._op import Sig, registry
from cutile.types import TileType
from tests.ops.samples import POSITIVE

BOUNDED = [o for o in registry().values() if o.error_bound is not None]
TO_BOOL = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan"}
N = 400
rng = np.random.default_rng(3)


def operands(o):
    """Numbers with errors, some of which are zero; `cond` of a choice is a mask."""
    xs = [rng.normal(0, 2, N) for _ in o.operands]
    es = [np.abs(x) * 10.0 ** rng.uniform(-9, 0.3, N) * (rng.random(N) < 0.8) for x in xs]
    if o.name in POSITIVE:
        xs[0] = np.abs(xs[0]) + 0.01
    if "cond" in o.operands:
        xs[0], es[0] = (xs[0] > 0).astype(float), np.zeros(N)
    return xs, es


def result(o, xs):
    types = [TileType(bool_ if name == "cond" else float64, (N,)) for name in o.operands]
    attrs = {k: p.default for k, p in o.__signature__.parameters.items() if p.default is not p.empty}
    given = [x.astype(info(t.dtype).carrier) for x, t in zip(xs, types, strict=True)]
    out = TileType(bool_ if o.name in TO_BOOL else float64, (N,))
    return np.asarray(evaluate(o, Sig(tuple(types), (out,)), given, attrs), float)


@pytest.mark.parametrize("o", BOUNDED, ids=lambda o: o.name)
def test_no_result_leaves_its_bound(o):
    xs, es = operands(o)
    y = result(o, xs)
    with np.errstate(all="ignore"):
        bound = np.broadcast_to(o.error_bound(*xs, *es, y), (N,))
        assert (bound >= 0).all() and (bound[np.all([e == 0 for e in es], axis=0)] == 0).all()
        assert np.isfinite(bound).mean() > 0.5, "says hardly anything"
        for _ in range(40):
            moved = [x + e * rng.choice([-1, 1, *rng.uniform(-1, 1, 3)], N) for x, e in zip(xs, es, strict=True)]
            off = np.abs(result(o, moved) - y)
            slack = 1e-9 * (1 + np.abs(y) + np.where(np.isfinite(bound), bound, 0))  # these are rounded themselves
            assert (~np.isfinite(off) & np.isinf(bound) | (off <= bound + slack) | np.isinf(bound)).all()


def test_beyond_the_end_of_a_function_nothing_is_known():
    with np.errstate(invalid="ignore"):
        bound = monotone(np.sqrt, least=0)(np.array([1.0, 1.0]), np.array([0.5, 1.5]), None)
    assert 0 < bound[0] < 1 and np.isinf(bound[1])
    corners = monotone_in_each(np.power, lambda x, y, ex, ey: x > ex)
    assert np.isinf(corners(np.array([1.0]), np.array([2.0]), np.array([1.0]), np.array([0.0]), None))


def test_sides_that_may_change_places_are_unknown():
    x, e = np.array([1.0, 1.0]), np.array([0.25, 0.75])
    assert of_comparison(x, np.array([2.0, 2.0]), e, e, None).tolist() == [0, np.inf]
    assert of_larger(x, x, e, 2 * e, None).tolist() == [0.5, 1.5]
