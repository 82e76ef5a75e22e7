"""Every op that can stand in the IR has a rule."""

from __future__ import annotations

import pytest

import cutile.gpu.tileir.rules  # noqa: F401  fills RULES
from cutile.errors import TileInternalError
from cutile.gpu.tileir.opcodes import OPS
from cutile.gpu.tileir.rules._rule import RULES, rule
from cutile.ops import arithmetic
from cutile.ops._op import registry

# Their typing rules make other ops, so no node of theirs exists.
NEVER_NODES = {"positive", "tiled_view", "get_raw_memory", "expand_dims", "transpose", "item", "ones", "zeros",
               "arange", "astile", "print", "printf", "Slice", "matmul"}


def test_no_rule_is_missing():
    assert {o.name for o in registry().values() if o not in RULES} == NEVER_NODES


def test_the_data_name_operations():
    for o in RULES:
        data = o.tileir if isinstance(o.tileir, tuple) else (o.tileir,)
        if o.family in ("arithmetic", "bits", "math", "select") and o.tileir is not None:
            assert [d for d in data if d is not None and d not in OPS and d not in ("not_equal",)] == [], o.name


def test_a_second_rule_is_refused():
    with pytest.raises(TileInternalError, match="op add has two lowering rules"):
        rule(arithmetic.add)(lambda lowering, n: None)
