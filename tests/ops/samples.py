"""What tests of all kinds know of the operands of functions."""

from __future__ import annotations

POSITIVE = frozenset({"log", "log2", "sqrt", "rsqrt", "pow"})  # functions whose first operand is sampled above 0
