"""Every op that can stand in the IR has a rule."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cutile.errors import TileInternalError
from cutile.gpu.tileir.operations import OPS
from cutile.gpu.tileir.rules import lowering_rule
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


INTERRUPTED = """
import importlib, sys
import cutile.gpu.tileir.lower

def forget():
    for name in [n for n in sys.modules if n.startswith("cutile.gpu.tileir.rules") or n == "cutile.gpu.tileir.lower"]:
        del sys.modules[name]
    vars(cutile.gpu.tileir).pop("rules", None)
    vars(cutile.gpu.tileir).pop("lower", None)

def table():
    importlib.import_module("cutile.gpu.tileir.lower")
    rules = sys.modules["cutile.gpu.tileir.rules._rule"].RULES
    return {o.name: f"{f.__module__} {f.__qualname__}" for o, f in rules.items()}

lines, stop = 0, -1

def trace(frame, event, arg):
    global lines
    if frame.f_code.co_name != "<module>" or "tileir/rules" not in frame.f_code.co_filename.replace("\\\\", "/"):
        return trace if "importlib" in frame.f_code.co_filename or frame.f_code.co_name == "<module>" else None
    if event == "line":
        lines += 1
        if lines == stop:
            raise KeyboardInterrupt
    return trace

forget()
sys.settrace(trace)
whole = table()
sys.settrace(None)
total = lines
assert total > 200 and len(whole) > 50, (total, len(whole))
for k in range(1, total, 17):
    forget()
    lines, stop = 0, k
    sys.settrace(trace)
    try:
        table()
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError(f"no interrupt at {k}")
    finally:
        sys.settrace(None)
    assert table() == whole, k
print("whole")
"""


def test_an_interrupted_import_is_made_up_for():
    """Wherever an interrupt ends the import of the rules, the next one makes the table whole."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300)
    assert done.stdout == "whole\n", done.stdout + done.stderr
