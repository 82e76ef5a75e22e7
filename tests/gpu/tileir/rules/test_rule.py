"""Every op that can stand in the IR has a rule."""

from __future__ import annotations

import pytest

from cutile.errors import TileInternalError
from cutile.gpu.tileir.operations import OPS
from cutile.gpu.tileir.rules._regular import lowering_rule
from cutile.gpu.tileir.rules._rule import RULES, rule
from cutile.ops import arithmetic
from cutile.ops._op import registry

# Their typing rules make other ops, so no node of theirs exists.
NEVER_NODES = {"positive", "tiled_view", "get_raw_memory", "expand_dims", "transpose", "item", "ones", "zeros",
               "arange", "astile", "print", "printf", "Slice", "matmul", "elementwise"}


def test_no_rule_is_missing():
    assert {o.name for o in registry().values() if lowering_rule(o) is None} == NEVER_NODES


def test_regular_ops_name_operations_and_have_no_rule():
    regular = [o for o in registry().values() if o.elementwise and o.tileir is not None and o not in RULES]
    assert len(regular) >= 23
    for o in regular:
        names = o.tileir if isinstance(o.tileir, tuple) else (o.tileir,)
        assert len(names) in (1, 2) and set(names) <= set(OPS), o.name
        assert all(len(OPS[name].operands) == len(o.operands) for name in names), o.name


def test_a_second_rule_is_refused():
    with pytest.raises(TileInternalError, match="op mod has two lowering rules"):
        rule(arithmetic.mod)(lambda lowering, n: None)
